"""What each turn of a loop nests deeper is found again, however many turns there are."""

from __future__ import annotations

import pytest

from codemods.graph.model.values import Const, Instance
from tests.graph.tools import run

NESTED = {
    "dicts": """
c = t = {}
for k in 'abcde':
    c = c.setdefault(k, {})
c['v'] = net(x)
out = t['a']['b']['c']['d']['e']['v']
""",
    "dicts, by while": """
c = t = {}
n = 0
while n < 5:
    c['x'] = {}
    c = c['x']
    n += 1
c['v'] = net(x)
out = t['x']['x']['x']['x']['x']['v']
""",
    "around each other": """
t = {'v': net(x)}
for k in 'abcde':
    t = {k: t}
out = t['e']['d']['c']['b']['a']['v']
""",
    "objects": """
class A:
    x = None
c = t = A()
for k in range(5):
    c.x = A()
    c = c.x
c.v = net(x)
out = t.x.x.x.x.x.v
""",
    "lists": """
c = t = []
for k in range(5):
    c.append([])
    c = c[-1]
c.append(net(x))
out = t[0][0][0][0][0][0]
""",
}


@pytest.mark.parametrize("name", NESTED)
def test_a_graph_comes_back_from_any_depth(name: str) -> None:
    assert run(NESTED[name]).graph("out") != "free"


@pytest.mark.parametrize("name", NESTED)
def test_data_comes_back_as_data(name: str) -> None:
    text = NESTED[name].replace("net(x)", "net(x).detach()")
    assert run(text).graph("out") == "free"


def test_modules_around_each_other_are_followed_as_they_are() -> None:
    text = (
        "class Around(nn.Module):\n"
        "    def __init__(self, inner=None):\n        super().__init__()\n"
        "        self.inner, self.own = inner, nn.Linear(3, 3)\n"
        "    def forward(self, t):\n        t = self.own(t)\n"
        "        return t if self.inner is None else self.inner(t)\n"
        "model = Around()\nfor k in range(5):\n    model = Around(model)\nout = model(x)\n"
    )
    found = run(text)
    assert found.graph("out") == "attached"
    value, seen = found.value("model"), []
    while isinstance(value, Instance):
        seen.append(value.oid)
        value = found.machine.run.s.get((value.oid, "inner"))
    assert len(seen) == len(set(seen)) > 2
    assert isinstance(value, Const)
    assert value.value is None


def test_what_is_written_into_something_that_cannot_be_named_may_be_anywhere() -> None:
    text = "import types\nc = t = types.SimpleNamespace()\nfor k in 'abcde':\n"
    text += "    setattr(c, k, types.SimpleNamespace())\n    c = getattr(c, k)\n"
    assert run(text + "c.v = net(x)\n").trace.complete is False
    assert run(text + "c.v = 0.5\n").trace.complete is True
