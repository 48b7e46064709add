"""Whether a name is bound at a place on every path."""

from __future__ import annotations

import ast
from pathlib import Path, PurePosixPath
from textwrap import dedent

import pytest

from codemods.graph.model.program import ParsedFile
from codemods.proofs.bindings import bound_at
from codemods.terms.findings import Promise
from tests.rules.tools import added, found, mended


def surely(code: str, name: str = "x", where: str = "after") -> bool:
    """Whether ``name`` is bound at the call of ``here()`` in a function with the body ``code``."""
    text = "def f(a, b):\n" + "\n".join(f"    {line}" for line in dedent(code).strip().splitlines()) + "\n"
    file = ParsedFile("f.py", PurePosixPath("f.py"), text, ast.parse(text))
    here = next(n for n in ast.walk(file.tree) if isinstance(n, ast.Expr) and ast.unparse(n).startswith("here("))
    return bound_at(file, here, name, where)


@pytest.mark.parametrize(
    "code",
    [
        "x = 1\nhere()",
        "if a:\n    x = 1\nelse:\n    x = 2\nhere()",
        "if a:\n    x = 1\nelse:\n    return\nhere()",
        "if a:\n    x = 1\nif a:\n    here()",
        "if not a.b:\n    x = 1\nif not a.b:\n    y = 1\n    here()",
        "for i in a:\n    x = i\n    here()",
        "for x in a:\n    here()",
        "x = 1\nfor i in a:\n    if i:\n        continue\n    here()",
        "while True:\n    x = a()\n    if x:\n        break\nhere()",
        "with a as x:\n    here()",
        "with a:\n    x = 1\nhere()",
        "with torch.no_grad(), open(a) as file:\n    x = 1\nhere()",
        "x = 0\nwith contextlib.suppress(E):\n    x = a()\nhere()",
        "with contextlib.suppress(E):\n    x = a()\n    here()",
        "try:\n    x = a()\nexcept E:\n    x = 1\nhere()",
        "try:\n    x = a()\nexcept E:\n    raise\nhere()",
        "try:\n    a()\nfinally:\n    x = 1\nhere()",
        "(x, y), *z = a\nhere()",
        "y = x = a\nhere()",
        "import x\nhere()",
        "def x(): pass\nhere()",
        "match a:\n    case 1:\n        x = 1\n        here()",
        "x = 1\nif a:\n    del x\n    return\nhere()",
    ],
)
def test_bound(code: str) -> None:
    assert surely(code)


@pytest.mark.parametrize(
    "code",
    [
        "here()",
        "here()\nx = 1",
        "if a:\n    x = 1\nhere()",
        "if a:\n    x = 1\nif b:\n    here()",
        "if a:\n    x = 1\na = b\nif a:\n    here()",
        "if a():\n    x = 1\nif a():\n    here()",
        "if a.b:\n    x = 1\na.b = 1\nif a.b:\n    here()",
        "if a:\n    x = 1\nelse:\n    here()",
        "for i in a:\n    x = i\nhere()",
        "for x in a:\n    pass\nhere()",
        "for i in a:\n    here()\n    x = i",
        "for i in a:\n    if i:\n        x = i\n    here()",
        "while a:\n    x = 1\nhere()",
        "while True:\n    if a():\n        break\n    x = 1\nhere()",
        "try:\n    x = a()\nexcept E:\n    pass\nhere()",
        "with contextlib.suppress(E):\n    x = a()\nhere()",
        "with b, suppress(E):\n    x = a()\nhere()",
        "try:\n    a()\n    x = 1\nexcept E:\n    here()",
        "y = [x for x in a]\nhere()",
        "y = sum(x for x in a)\nhere()",
        "y = lambda x: x\nhere()",
        "x: int\nhere()",
        "x = 1\ndel x\nhere()",
        "x = 1\nfor i in a:\n    here()\n    del x",
        "def g():\n    x = 1\nhere()",
        "match a:\n    case 1:\n        x = 1\nhere()",
        "for i in a:\n    if i > 1:\n        if i == 2:\n            x = 1\n        here()",
    ],
)
def test_not_surely_bound(code: str) -> None:
    assert not surely(code)


def test_before_and_after() -> None:
    assert not surely("here()\nx = 1", where="before")
    assert surely("x = 1\nhere()", where="before")


def test_names_of_outer_scopes() -> None:
    text = (
        "x = 1\nif x:\n    y = 1\n"
        "def f():\n    def g():\n        global z\n        here()\n    w = 1\n    return g\nz = 1\n"
    )
    file = ParsedFile("f.py", PurePosixPath("f.py"), text, ast.parse(text))
    here = next(n for n in ast.walk(file.tree) if isinstance(n, ast.Expr))
    assert [bound_at(file, here, name) for name in "xyzw"] == [True, False, True, True]
    assert not bound_at(file, here, "torch")


NETS = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 3)
        self.h = None

    def forward(self, x):
        self.h = self.cell(x, self.h) if self.h is not None else self.cell(x)
        return self.h

other = nn.Linear(3, 3)
opt = torch.optim.SGD(other.parameters(), lr=0.1)
"""


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (
            """
            net = Net()
            for i in range(6):
                loss = net(torch.randn(2, 3)).pow(2).mean()
                loss.backward()
                opt.step()
            """,
            "net.h = net.h.detach()",
        ),
        (
            """
            for i in range(6):
                loss = other(torch.randn(2, 3)).pow(2).mean()
                if i > 1:
                    if i == 2:
                        late = Net()
                    loss = loss + late(torch.randn(2, 3)).pow(2).mean()
                loss.backward()
                opt.step()
            """,
            None,
        ),
        (
            """
            nets = [Net(), Net()]
            for i in range(6):
                loss = sum(one(torch.randn(2, 3)).pow(2).mean() for one in nets)
                loss.backward()
                opt.step()
            """,
            None,
        ),
        (
            """
            state = 0
            net = Net()
            for i in range(6):
                state = net.cell(torch.randn(2, 3), torch.zeros(2, 3) + state)
                loss = state.pow(2).mean()
                loss.backward()
                opt.step()
            """,
            "state = state.detach()",
        ),
    ],
)
def test_a_detach_names_only_what_is_bound(tmp_path: Path, program: str, line: str | None) -> None:
    findings = found(tmp_path, "carried-hidden-state", NETS, program)
    text = NETS + "\n" + dedent(program)
    if line is None:
        assert {f.promise for f in findings} == {Promise.ADVICE}
    else:
        assert added(text, mended(tmp_path, findings)) == [line]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("state", "same"),
    [
        ("torch.ones(2)", False),
        ("[torch.ones(2), None, 3]", False),
        ("{'a': torch.ones(2), 'b': [torch.ones(1)]}", True),
        ("(torch.ones(2), [torch.ones(2)])", False),
        ("Pair(torch.ones(2), torch.ones(2))", False),
        ("collections.defaultdict(list, a=[torch.ones(2)])", True),
        ("None", True),
        ("'text'", True),
    ],
)
def test_the_helper_keeps_what_a_state_is(state: str, same: bool) -> None:
    torch = pytest.importorskip("torch")
    import collections

    from codemods.proofs.detaching import _HELPER

    names: dict[str, object] = {"torch": torch, "collections": collections}
    exec(_HELPER.replace("{torch}", "torch") + "\nPair = collections.namedtuple('Pair', 'a b')", names)
    exec(f"old = {state}\nnew = detach_state(old)", names)
    assert type(names["new"]) is type(names["old"])
    assert (names["new"] is names["old"]) is same
    assert str(names["new"]) == str(names["old"])
