"""Classes derived from ``DataParallel``: their forward is that of the model that they get."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.tools import REMEMBERING, found

RULE = "surplus-retain-graph"

PLAIN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x)
"""

TRAIN = """
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
{model}
{wrapper}
    {own}

net = Wrapper(Net())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in [torch.randn(3, 4) for _ in range(9)]:
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""

WRAPPERS = {
    "DataParallel": "class Wrapper(nn.DataParallel):",
    "parallel.DataParallel": "class Wrapper(nn.parallel.DataParallel):",
    "DistributedDataParallel": "class Wrapper(DistributedDataParallel):",
    "twice": "class Base(nn.DataParallel):\n    pass\n\nclass Wrapper(Base):",
}
OWN = {
    "nothing": "pass",
    "init": "def __init__(self, model):\n        super().__init__(model, device_ids=[0])",
    "init by keyword": "def __init__(self, model):\n        super(Wrapper, self).__init__(module=model)",
    "init of the class": "def __init__(self, model):\n        nn.DataParallel.__init__(self, model)",
    "forward": "def forward(self, *args, **kwargs):\n        return super().forward(*args, **kwargs)",
    "attributes of the model": """def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)""",
    "gather": "def gather(self, outputs, device):\n        return torch.cat([o.to('cpu') for o in outputs])",
    "scatter": "def scatter(self, inputs, kwargs, device_ids):\n        return [inputs], [kwargs]",
}
KEEPING = {
    "gather": """def gather(self, outputs, device):
        self.sum = getattr(self, 'sum', 0) + outputs[0]
        return self.sum""",
    "replicate": "def replicate(self, module, device_ids):\n        return shared(module, device_ids)",
    "parallel_apply": "def parallel_apply(self, replicas, inputs, kwargs):\n        return run_all(replicas, inputs)",
    "forward": """def forward(self, x):
        self.sum = getattr(self, 'sum', 0) + super().forward(x)
        return self.sum""",
    "scatter": """def scatter(self, inputs, kwargs, device_ids):
        inputs = (inputs[0] + getattr(self, 'bias', 0),)
        self.bias = self.module(inputs[0]).mean()
        return [inputs], [kwargs]""",
}


def promises(folder: Path, model: str, wrapper: str, own: str) -> list[str]:
    program = TRAIN.format(model=model, wrapper=WRAPPERS[wrapper], own=own)
    return [f.promise.value for f in found(folder, RULE, program)]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_the_model_is_run(tmp_path: Path, wrapper: str) -> None:
    assert promises(tmp_path, PLAIN, wrapper, "pass") == ["exact"]


@pytest.mark.parametrize("own", OWN)
def test_methods_that_are_followed(tmp_path: Path, own: str) -> None:
    assert promises(tmp_path, PLAIN, "DataParallel", OWN[own]) == ["exact"]


@pytest.mark.parametrize("own", OWN)
def test_a_model_that_remembers(tmp_path: Path, own: str) -> None:
    assert set(promises(tmp_path, REMEMBERING.format(name="Net"), "DataParallel", OWN[own])) <= {"advice"}


@pytest.mark.parametrize("own", KEEPING)
def test_a_method_that_keeps_a_graph(tmp_path: Path, own: str) -> None:
    assert set(promises(tmp_path, PLAIN, "DataParallel", KEEPING[own])) <= {"advice"}


def test_an_evaluation_through_it(tmp_path: Path) -> None:
    evaluation = """
def evaluate(batches):
    net.eval()
    right = 0
    for x in batches:
        right += int((net(x).argmax(1) == 0).sum())
    return right

print(evaluate([torch.randn(3, 4) for _ in range(9)]))
"""
    program = TRAIN.format(model=PLAIN, wrapper=WRAPPERS["DataParallel"], own="pass") + evaluation
    assert [f.promise.value for f in found(tmp_path, "grad-in-evaluation", program)] == ["exact"]
