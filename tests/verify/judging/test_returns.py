"""Which variables of a function a turn of a loop reads from before."""

from __future__ import annotations

import ast

import pytest

from verify.judging.returns import carried


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("for e in n:\n  if f(e) > best:\n   best = f(e)", {"best", "n"}),
        ("best = 0\nfor e in range(n):\n  x = g(e)\n  best += x", {"best", "n"}),
        ("while n:\n  n = g(n)", {"n"}),
        ("net = f()\nfor x in n:\n  y = net(x)\n  y.sum()", {"net", "n"}),
        ("for e in n:\n  with f() as h:\n   y = h\n  g(y)", {"n"}),
        ("for e in n:\n  if e:\n   y = 1\n  else:\n   y = 2\n  g(y)", {"n"}),
        ("for e in n:\n  if e:\n   y = 1\n  g(y)", {"n", "y"}),
        ("for e in n:\n  for x, t in e:\n   y = x\n   g(y, t)", {"n", "e"}),
        ("for e in n:\n  try:\n   y = f()\n  except E:\n   y = 0\n  z = 1", {"n"}),
        ("where = 0\nbest = f(n)\nreturn best", set()),
        ("a = 1\ndef h():\n  return a\nfor e in n:\n  h()", {"h", "n"}),
    ],
)
def test_carried(body: str, names: set[str]) -> None:
    tree = ast.parse("def main(n):\n" + "".join(f" {line}\n" for line in body.splitlines()))
    assert carried(tree.body[0]) - {"h"} == names - {"h"}  # type: ignore[arg-type]
