"""Attributes that are written under names which nobody knows: one that is written by its name afterwards, on all paths,
is what it was given; any other may be what lies under such a name."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.rules.tools import REMEMBERING, found

RULE = "surplus-retain-graph"

PROGRAM = """
import argparse, contextlib, json, sys

class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x)

class Trainer{base}:
    def __init__(self, net, other, options):
        super().__init__()
        self.net = net
        self.more = 0.0
{made}
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def early(self, net, other):
        setattr(self, sys.argv[1], other)
        if len(sys.argv) > 3:
            return
        self.net = net

    def step(self, x):
        loss = self.net(x).pow(2).mean() + self.more
        self.opt.zero_grad()
        loss.backward(retain_graph=True)
        self.opt.step()
        return loss

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
trainer = Trainer(Plain(), Keeping(), parser.parse_args())
for x in [torch.randn(3, 4) for _ in range(9)]:
    loss = trainer.step(x)
{after}
"""

OPTIONS = {
    "the dict": "self.__dict__.update(vars(options))",
    "its vars": "vars(self).update(options.__dict__)",
    "a file": "self.__dict__.update(**json.load(open('options.json')))",
    "one by one": "for key, value in vars(options).items():\n    setattr(self, key, value)",
    "by the base": "for key in vars(options):\n    object.__setattr__(self, key, getattr(options, key))",
}
OWN = "self.net, self.more = net, 0.0"
UNKNOWN = "setattr(self, sys.argv[1], other)\n"


def promises(folder: Path, made: str, after: str = "pass", base: str = "") -> list[str]:
    text = PROGRAM.format(made=indent(dedent(made), " " * 8), after=indent(after, " " * 4), base=base)
    return [f.promise.value for f in found(folder, RULE, REMEMBERING.format(name="Keeping"), text)]


@pytest.mark.parametrize("base", ["", "(nn.Module)"])
@pytest.mark.parametrize("way", OPTIONS)
def test_what_is_written_after_the_options(tmp_path: Path, way: str, base: str) -> None:
    assert promises(tmp_path, f"{OPTIONS[way]}\n{OWN}", base=base) == ["exact"]


@pytest.mark.parametrize(
    "made",
    [
        f"if len(sys.argv) > 1:\n    {OWN}\nelse:\n    self.net, self.more = Plain(), 1.0",
        f"with contextlib.suppress(ValueError):\n    int(sys.argv[1])\n{OWN}",
        f"del self.net\n{OWN}",
        f"{UNKNOWN}{OWN}",
    ],
)
def test_what_is_written_on_all_paths(tmp_path: Path, made: str) -> None:
    assert promises(tmp_path, f"{UNKNOWN}{made}") == ["exact"]


@pytest.mark.parametrize(
    "made",
    [
        f"{OWN}\n{UNKNOWN}",
        f"{OWN}\nself.__dict__.update({{sys.argv[1]: other}})",
        f"{OWN}\nvars(self)[sys.argv[1]] = other",
        f"{OWN}\nobject.__setattr__(self, sys.argv[1], other)",
        f"{UNKNOWN}if len(sys.argv) > 2:\n    {OWN}",
        f"{UNKNOWN}if len(sys.argv) > 2:\n    {OWN}\nelse:\n    self.lr = 0.1",
        f"{OWN}\nif len(sys.argv) > 2:\n    {UNKNOWN}",
        f"{UNKNOWN}try:\n    int(sys.argv[1])\n    {OWN}\nexcept ValueError:\n    pass",
        f"{UNKNOWN}match sys.argv[2]:\n    case 'a':\n        {OWN}\n    case _:\n        pass",
        "self.early(net, other)",
    ],
)
def test_another_model_may_lie_there(tmp_path: Path, made: str) -> None:
    assert "exact" not in promises(tmp_path, made)


@pytest.mark.parametrize(
    "after",
    [
        "setattr(trainer, sys.argv[1], loss)",
        "trainer.__setattr__(sys.argv[1], loss)",
        "object.__setattr__(trainer, sys.argv[1], loss)",
        "trainer.__dict__[sys.argv[1]] = loss",
        "trainer.__dict__.update({sys.argv[1]: loss})",
        "if len(sys.argv) > 1:\n    setattr(trainer, sys.argv[1], loss)",
        "setattr(trainer, sys.argv[1], loss)\nif len(sys.argv) > 1:\n    trainer.more = 0.0",
        "for name in sys.argv:\n    setattr(trainer, name, loss)",
        "setattr(trainer, sys.argv[1], loss)\ndel trainer.net\ntrainer.net = Plain()",
    ],
)
def test_a_loss_may_lie_there(tmp_path: Path, after: str) -> None:
    assert "exact" not in promises(tmp_path, f"self.__dict__.update(vars(options))\n{OWN}", after)
