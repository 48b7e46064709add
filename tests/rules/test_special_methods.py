"""Special methods that Python calls out of sight: whether they may keep what goes through them."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import found

RULE = "surplus-retain-graph"

PROGRAM = """
import torch
from torch import nn

kept = []
names = ["loss"]

class Log:
    def __init__(self):
        self.out = None
        self.kept = kept

    def __str__(self):
{body}

log = Log()
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    opt.zero_grad()
    log.out = net(torch.ones(2, 3)).tanh()
    log.out.mean().backward(retain_graph=True)
    print(log)
    {end}
    opt.step()
"""

OWN = {
    "a list of lines": "lines = []\nfor name in names:\n    lines.append(name)\nreturn ', '.join(lines)",
    "a list that another is added to": "lines = [str(self.out)]\nlines += names\nreturn ' '.join(lines)",
    "a dict": "found = {}\nfor name in names:\n    found[name] = name\nreturn str(found)",
    "a dict that is updated": "found = {}\nfound.update(a=1)\nreturn 'x' * len(found)",
    "a set": "seen = {0}\nseen.add(1)\nreturn repr(seen)",
    "a list that is gone through": "lines = [1]\nlines.extend([2])\nreturn ''.join(str(each) for each in lines)",
    "what it gets": "lines = []\nlines.append(self.out.item())\nreturn ' '.join(map(str, [lines[0]]))",
}

KEEPING = {
    "a list of the object": "self.kept.append(self.out)\nreturn ''",
    "another name of it": "lines = self.kept\nlines.append(self.out)\nreturn ''",
    "now one, now the other": "lines = []\nlines = self.kept\nlines.append(self.out)\nreturn ''",
    "a list of the file": "kept.append(self.out)\nreturn ''",
    "an element of it": "lines = [kept]\nlines[0].append(self.out)\nreturn ''",
    "one that goes through it": "for each in [kept]:\n    each.append(self.out)\nreturn ''",
    "a list that is put away": "lines = []\nlines.append(self.out)\nkeep(lines)\nreturn ''",
    "a list under another name": "lines = []\nother = lines\nlines.append(self.out)\nkeep(other)\nreturn ''",
    "a list within": "def inner():\n    lines.append(self.out)\nlines = []\nkept.append(lines)\ninner()\nreturn ''",
    "a list that is stored": "lines = []\nlines.append(self.out)\nself.kept = lines\nreturn ''",
    "one of two": "lines = [] if step else kept\nlines.append(self.out)\nreturn ''",
    "its own element": "kept[:] = [self.out]\nreturn ''",
}


def promises(tmp_path: Path, body: str, end: str) -> list[Promise | None]:
    code = PROGRAM.format(body=indent(body, " " * 8), end=end)
    code = code.replace("class Log:", "def keep(lines):\n    kept.append(lines[0])\n\nclass Log:")
    return [f.promise for f in found(tmp_path, RULE, code)]


@pytest.mark.parametrize("way", OWN)
def test_what_goes_with_the_call_keeps_nothing(tmp_path: Path, way: str) -> None:
    assert promises(tmp_path, OWN[way], "pass") == [Promise.EXACT]


@pytest.mark.parametrize("way", KEEPING)
def test_what_stays_may_be_walked_again(tmp_path: Path, way: str) -> None:
    assert Promise.EXACT not in promises(tmp_path, KEEPING[way], "kept[-1].sum().backward()")


def test_a_generator_keeps_its_lists(tmp_path: Path) -> None:
    code = """
        import torch
        from torch import nn

        class Rows:
            def __init__(self):
                self.out = None

            def __format__(self, spec):
                return next(self.turns())

            def turns(self):
                lines = []
                while True:
                    lines.append(self.out)
                    lines[0].sum().backward()
                    yield ""

        rows = Rows()
        net = nn.Linear(3, 1)
        for step in range(3):
            rows.out = net(torch.ones(2, 3)).tanh()
            rows.out.mean().backward(retain_graph=True)
            print(f"{rows}")
    """
    assert Promise.EXACT not in [f.promise for f in found(tmp_path, RULE, code)]


def test_an_average_of_many_meters_is_shown_by_a_text(tmp_path: Path) -> None:
    code = """
        from collections import defaultdict
        import torch
        from torch import nn

        class Meter:
            def __init__(self):
                self.total, self.count = 0.0, 0

            def add(self, value):
                self.total += value
                self.count += 1

            def __str__(self):
                return f"{self.total / self.count:.4f}"

        class Board:
            def __init__(self):
                self.meters = defaultdict(Meter)

            def put(self, **values):
                for name, value in values.items():
                    self.meters[name].add(value.item())

            def __getattr__(self, name):
                if name in self.meters:
                    return self.meters[name]
                raise AttributeError(name)

            def __str__(self):
                parts = []
                for name, meter in self.meters.items():
                    parts.append(f"{name}: {meter}")
                return "  ".join(parts)

            def turns(self, rows):
                for row in rows:
                    yield row
                    print(self)

        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        board = Board()
        for x in board.turns([torch.ones(2, 3)] * 3):
            loss = net(x).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            opt.step()
            board.put(loss=loss)
    """
    assert [f.promise for f in found(tmp_path, RULE, code)] == [Promise.EXACT]
