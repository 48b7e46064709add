"""Estimators of scikit-learn make arrays of what they get: no graph comes out of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import found

PROGRAM = """
import torch
import torch.nn.functional as F
from torch import nn
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from elsewhere import Mixture

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
batches = [(torch.randn(3, 4), torch.randn(3, 2)) for _ in range(9)]

def scores():
    net.eval()
    out = torch.cat([net(x) for x, _ in batches])
    {estimate}

for _ in range(5):
    weights = scores()
    for (x, y), weight in zip(batches, weights):
        opt.zero_grad()
        (F.mse_loss(net(x), y) * weight).backward()
        opt.step()
"""

ARRAYS = {
    "a mixture": "gmm = GaussianMixture(n_components=2)\n    gmm.fit(out)\n    return gmm.predict_proba(out)[:, 0]",
    "fit and ask": "return GaussianMixture(2).fit(out).predict_proba(out)[:, 0]",
    "fit_predict": "return KMeans(n_clusters=2).fit_predict(out)",
    "its attributes": "means = KMeans(n_clusters=2).fit(out)\n    return means.labels_",
}
CARRYING = {
    "a function that hands it on": "return FunctionTransformer(torch.exp).fit_transform(out)[:, 0]",
    "a pipeline": "return Pipeline([('exp', FunctionTransformer(torch.exp))]).fit_transform(out)[:, 0]",
    "of a library that is not known": "return Mixture(2).fit(out).predict_proba(out)[:, 0]",
    "beside the array": "KMeans(n_clusters=2).fit(out.detach())\n    return out[:, 0]",
}


@pytest.mark.parametrize("name", ARRAYS)
def test_what_an_estimator_gives_has_no_graph(tmp_path: Path, name: str) -> None:
    findings = found(tmp_path, "grad-in-evaluation", PROGRAM.format(estimate=ARRAYS[name]))
    assert [f.promise.value for f in findings] == ["exact"]


@pytest.mark.parametrize("name", CARRYING)
def test_what_may_carry_the_graph_is_left_alone(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, "grad-in-evaluation", PROGRAM.format(estimate=CARRYING[name])) == []
