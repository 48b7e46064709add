"""Flags of losses that distributions compute, and doubts that leave advice: what is not proven is never dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found

RULE = "surplus-retain-graph"

START = """\
import sys
import torch
from torch import nn
from torch import distributions as D

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""

LOOP = """
for step in range(3):
    x = torch.randn(9, 4)
    loss = {loss}
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""


@pytest.mark.parametrize(
    ("made", "loss"),
    [
        ("prior = D.Normal(torch.zeros(2), torch.ones(2))", "-prior.log_prob(net(x)).sum(-1).mean()"),
        ("prior = torch.distributions.Laplace(0.0, 1.0)", "-prior.log_prob(net(x)).mean()"),
        ("prior = D.Normal(0.0, 1.0)\nshape = prior.expand([2])", "-shape.log_prob(net(x)).mean()"),
        ("", "-D.Normal(net(x), 1.0).log_prob(torch.zeros(2)).mean()"),
    ],
)
def test_a_distribution_computes_with_what_it_gets(tmp_path: Path, made: str, loss: str) -> None:
    findings = found(tmp_path, RULE, START, made, LOOP.format(loss=loss))
    assert [f.promise.value for f in findings] == ["exact"]


KEEPS = """
class Kept(D.{base}):
    last = None

    def {method}(self, value, *more):
        made = {kept}
        if Kept.last is not None:
            made = made + Kept.last
        Kept.last = made
        return made
"""


@pytest.mark.parametrize(
    ("classes", "loss"),
    [
        (
            KEEPS.format(base="Normal", method="log_prob", kept="super().log_prob(value)")
            + "\nprior = Kept(torch.zeros(2), torch.ones(2))",
            "-prior.log_prob(net(x)).mean()",
        ),
        (
            KEEPS.format(base="ExpTransform", method="log_abs_det_jacobian", kept="net(torch.ones(4))")
            + "\nprior = D.TransformedDistribution(D.Normal(torch.zeros(2), torch.ones(2)), [Kept()])",
            "-prior.log_prob(net(x).exp()).mean()",
        ),
        (
            KEEPS.format(base="Normal", method="log_prob", kept="super().log_prob(value)")
            + "\nprior = D.Independent(Kept(torch.zeros(2), torch.ones(2)), 1)",
            "-prior.log_prob(net(x)).mean()",
        ),
        ("prior = D.Normal(0.0, 1.0)\nlast = [0.0]", "-prior.log_prob(net(x)).mean() + last[0]; last[0] = loss"),
    ],
)
def test_a_distribution_of_the_program_may_keep_it(tmp_path: Path, classes: str, loss: str) -> None:
    findings = found(tmp_path, RULE, START, classes, LOOP.format(loss=loss))
    assert [f for f in findings if f.promise.value != "advice"] == []


HOOKED = """
seen = []
net.register_forward_hook(lambda *given: seen.append(given))
"""
LOST = """
kept = {}
def name():
    return open("name").read()
kept[name()] = net(torch.randn(2, 4)).mean()
"""


@pytest.mark.parametrize(
    ("before", "loss", "why"),
    [
        (HOOKED, "net(x).mean()", "hooks of modules"),
        (LOST, "net(x).mean() + kept.get(name(), 0.0)", ""),
    ],
)
def test_a_doubt_is_advice_that_is_never_applied(tmp_path: Path, before: str, loss: str, why: str) -> None:
    findings = found(tmp_path, RULE, START, before, LOOP.format(loss=loss))
    assert {f.promise.value for f in findings} <= {"advice"}
    assert not any(f.fixable(unsafe=True) for f in findings)
    if why:
        assert [why in f.message for f in findings] == [True]


def test_what_was_not_looked_at_to_its_end_is_advice(tmp_path: Path) -> None:
    deep = "".join(f"def f{i}(v):\n    return f{i + 1}(v)\n" for i in range(30)) + "def f30(v):\n    return v\n"
    findings = found(tmp_path, RULE, START, deep, "f0(1)", LOOP.format(loss="net(x).mean()"))
    assert [(f.promise.value, f.fixable(unsafe=True)) for f in findings] == [("advice", False)]


FED = """
import feeder
name = sys.argv[1]
left, right = ("premise", "hypothesis") if name == "pairs" else ("first", "second")
for batch in feeder.read():
    {before}
    loss = {loss}
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    {after}
"""


@pytest.mark.parametrize(
    ("before", "loss"),
    [
        ("x = getattr(batch, name)", "net(x).mean()"),
        ("x, y = getattr(batch, left), getattr(batch, right)", "(net(x) - y).abs().mean()"),
        ("x = getattr(batch, left, None)", "net(x).mean()"),
    ],
)
def test_a_part_of_a_batch_by_any_name_is_no_graph(tmp_path: Path, before: str, loss: str) -> None:
    findings = found(tmp_path, RULE, START, FED.format(before=before, loss=loss, after="pass"))
    assert [f.promise.value for f in findings] == ["exact"]


@pytest.mark.parametrize(
    ("before", "loss", "after"),
    [
        ("feeder.last = net(batch.x)", "feeder.last.mean() + getattr(feeder, name)", "pass"),
        ("batch = feeder.one", "net(batch.x).mean() + getattr(batch, name)", "batch.kept = loss"),
        ("batch = feeder.one", "net(batch.x).mean() + getattr(batch, name)", "setattr(batch, right, loss)"),
        ("kept = feeder.kept", "net(batch.x).mean() + getattr(kept, name)", "kept.losses.append(loss)"),
        ("kept = feeder.Kept()", "kept(net(batch.x)).mean() + getattr(kept, name)", "kept.put(loss)"),
        ("model = feeder.model", "getattr(model, name)(batch.x).mean()", "pass"),
    ],
)
def test_what_was_put_into_it_may_be_there_under_any_name(tmp_path: Path, before: str, loss: str, after: str) -> None:
    findings = found(tmp_path, RULE, START, FED.format(before=before, loss=loss, after=after))
    assert [f for f in findings if f.promise.value != "advice"] == []


SIZED = """
def fit(width):
    for step in range(3):
        x = torch.randn(9, 4)
        loss = {loss}
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
"""


@pytest.mark.parametrize(
    ("loss", "promise"),
    [
        ("net(x).view(-1, width).pow(2).mean()", "exact"),
        ("net(x).sum(dim=width).pow(2).mean()", "exact"),
        ("torch.unsqueeze(net(x), width).pow(2).mean()", "exact"),
        ("nn.functional.dropout(net(x), width).pow(2).mean()", "exact"),
        ("net(x).mul(width).mean()", "advice"),
        ("(net(x) / width).mean()", "advice"),
        ("torch.cat([net(x), width]).mean()", "advice"),
        ("torch.unsqueeze(*width).mean() + net(x).mean()", "advice"),
    ],
)
def test_a_size_that_its_caller_gives_brings_no_graph(tmp_path: Path, loss: str, promise: str) -> None:
    findings = found(tmp_path, RULE, START, SIZED.format(loss=loss))
    assert [f.promise.value for f in findings] == [promise]


BALANCED = """
def train(model, layer, optimizer, loader, losses):
    for step, (x, targets) in enumerate(loader):
        outputs = model(x)
        each = torch.stack([losses[i](outputs[i], targets[i]) for i in range(2)])
        weights = nn.Parameter(torch.ones(2))
        optimizer.zero_grad()
        (weights @ each).backward(retain_graph=True)
        norms = []
        for i in range(2):
            {norm}
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("norm", "promises"),
    [
        ("norms.append(torch.autograd.grad(weights[i] * each[i], layer.parameters(), retain_graph=True)[0])", []),
        ("norms.append(torch.autograd.grad(outputs[i].sum(), layer.parameters())[0])", []),
        # the graph of the weights alone, which is in sight
        ("norms.append(torch.autograd.grad(weights[i] * each[i], weights, create_graph=True)[0])", ["exact"]),
        # not surely of that graph, or of one of its own
        ("norms.append(torch.autograd.grad(each[i], layer.parameters(), allow_unused=True)[0])", ["exact"]),
        ("norms.append(torch.autograd.grad(model(x)[i].sum(), layer.parameters())[0])", ["exact"]),
        ("norms.append(torch.autograd.grad(layer(x).sum(), layer.parameters())[0])", ["exact"]),
        ("norms.append(weights[i].grad)", ["exact"]),
    ],
)
def test_gradients_of_what_must_be_there_keep_its_graph(tmp_path: Path, norm: str, promises: list[str]) -> None:
    findings = found(tmp_path, RULE, START, BALANCED.format(norm=norm))
    assert [f.likely.value for f in findings if f.likely is not None] == promises
    assert all(f.promise is Promise.ADVICE for f in findings)


UNSEEN = """
class Trainer:
    def __init__(self, model, optimizer, criterion, loader):
        self.model, self.optimizer, self.criterion, self.loader = model, optimizer, criterion, loader

    def fit(self):
        for batch in self.loader:
            self.step(batch)

    def step(self, batch):
        {losses}
        self.optimizer.zero_grad()
        {backward}
        self.optimizer.step()
"""
LOSS = "loss = self.criterion(self.model(batch['x']), batch['y'])"
OTHER = "other = self.criterion(self.model(batch['x']), batch['z'])"
RETAINED = "loss.backward(retain_graph=True)"


@pytest.mark.parametrize(
    ("losses", "backward"),
    [
        (LOSS, RETAINED),
        (LOSS.replace("loss", "self.loss", 1), "self." + RETAINED),
        (LOSS + " * 0.5", RETAINED),
        (LOSS, "(loss / 2).backward(retain_graph=True)"),
    ],
)
def test_the_only_loss_of_a_step_that_unseen_code_makes_is_likely(tmp_path: Path, losses: str, backward: str) -> None:
    findings = found(tmp_path, RULE, START, UNSEEN.format(losses=losses, backward=backward))
    assert [(f.promise, f.likely) for f in findings] == [(Promise.ADVICE, Promise.EXACT)]


@pytest.mark.parametrize(
    ("losses", "backward"),
    [
        # another backward of the same step may walk what they share
        (f"{LOSS}; {OTHER}", f"{RETAINED}; other.backward()"),
        (f"{LOSS}; {OTHER}", f"{RETAINED}; torch.autograd.grad(other, [batch['x']])"),
        (LOSS, f"{RETAINED}; loss.backward()"),
        # whoever made it may walk it
        ("loss = batch['loss']", RETAINED),
        ("loss = self.model.loss", RETAINED),
        (LOSS, "loss.backward(retain_graph=True, create_graph=True)"),
    ],
)
def test_a_loss_that_others_may_walk_is_left_alone(tmp_path: Path, losses: str, backward: str) -> None:
    assert found(tmp_path, RULE, START, UNSEEN.format(losses=losses, backward=backward)) == []


def test_a_loss_that_goes_back_to_unseen_callers_is_left_alone(tmp_path: Path) -> None:
    text = UNSEEN.format(losses=LOSS, backward=RETAINED).replace("self.step(batch)", "pass") + "        return loss\n"
    assert found(tmp_path, RULE, START, text) == []


DEFAULTS = """
import argparse
import json

def train(rounds, {star}keep=False):
    last = None
    for _ in range(rounds):
        out = net(torch.randn(9, 4)).tanh()
        loss = out.pow(2).mean()
        if keep and last is not None:
            loss = loss + last.mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)
        last = out

def main(**options):
    train(9, **options)

def pair(*options):
    train(9, *options)

options = argparse.ArgumentParser().parse_args()
read = json.load(open("options.json"))
{call}
"""


@pytest.mark.parametrize(
    ("call", "star", "surplus"),
    [
        ("train(9)", "", True),
        ("train(9)", "*, ", True),
        ("train(9, **{})", "", True),
        ("train(9, **{'keep': False})", "*, ", True),
        ("main()", "", True),
        ("pair()", "", True),
        ("main(keep=False)", "", True),
        ("train(9, False, *read)", "", True),
        ("train(9, **read)", "", False),
        ("train(9, **read)", "*, ", False),
        ("train(9, *read)", "", False),
        ("train(**read)", "", False),
        ("train(9, **vars(options))", "", False),
        ("main(**read)", "", False),
        ("pair(*read)", "", False),
        ("main(keep=True)", "", False),
    ],
)
def test_a_default_holds_where_nothing_unseen_may_replace_it(
    tmp_path: Path, call: str, star: str, surplus: bool
) -> None:
    findings = found(tmp_path, RULE, START, DEFAULTS.format(call=call, star=star))
    assert [f.promise.value for f in findings] == (["exact"] if surplus else [])
