"""Which parts of lines are seen to run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from codemods.rewriting.parts import missing, pieces
from verify.probe.lines.reach import Reach
from verify.probe.lines.sites import Tree

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="before, instructions have no places")

#: A function, and what it is called with.
TEXT = """\
def f(a, b, xs=()):
    x = a + 1 if a else b + 2
    y = a and b + 3
    z = [e + 4 for e in xs if e > 5]
    g = lambda: a + 6
    if a: x = a + 7
    for e in xs: x = e + 8
    while b > 9 and a: b = b - 1
    if a is None and b: x = 10
    return x, y, z, g
"""


def seen(folder: Path, *calls: tuple[Any, ...]) -> set[str]:
    """The parts of TEXT that are seen while ``f`` is called so, as ``kind text``."""
    (folder / "a.py").write_text(TEXT)
    parts = missing(pieces(TEXT, "a.py", set(range(2, 11))), [], whole=True)
    found: list[dict[str, Any]] = []
    reach = Reach([], Tree(str(folder)), found.append, [], [list(part.place) for part in parts])
    namespace: dict[str, Any] = {}
    exec(compile(TEXT, str(folder / "a.py"), "exec"), namespace)
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        reach.install()
        for call in calls:
            namespace["f"](*call)
        reach.remove()
    finally:
        sys.settrace(trace)
    texts = {part.place: f"{part.kind} {part.text}" for part in parts}
    return {texts[tuple(event["place"])] for event in found if event["event"] == "part"}


def test_only_the_sides_that_are_taken(tmp_path: Path) -> None:
    found = seen(tmp_path, (1, 2, (3,)))
    assert {"ran a + 1", "ran b + 3", "ran x = a + 7", "ran x = e + 8", "loop xs"} <= found
    assert found.isdisjoint({"ran b + 2", "ran e + 4", "ran a + 6", "both a", "both e > 5", "both a is None"})


def test_both_outcomes(tmp_path: Path) -> None:
    found = seen(tmp_path, (1, 2, (3, 8)), (0, 11, ()), (None, 1, ()))
    assert {"ran b + 2", "ran e + 4", "both a", "both e > 5", "both b > 9", "both a is None"} <= found
    assert "ran a + 6" not in found, "nobody called it"


def test_a_loop_that_is_left_has_not_come_to_its_end(tmp_path: Path) -> None:
    found = seen(tmp_path, (1, 2, ()))
    assert "loop xs" not in found, "it never turned"


#: Functions with defaults, and calls of them.
DEFAULTS = """\
def plain(a, b=1.5, *, c=None): return a, b, c
class Thing:
    @staticmethod
    def method(x=(7,),
               y="text"): return x, y
small = lambda n=2.5: n
"""


@pytest.mark.parametrize(
    ("calls", "left"),
    [
        ("", set()),
        ("plain(1, 2.0, c=3)", set()),
        ("plain(1)", {"b", "c"}),
        ("plain(1, c=3)", {"b"}),
        ("plain(1, 2.5 + 1, c=[])", set()),
        ("Thing.method()", {"x", "y"}),
        ("Thing.method((7, 8))", {"y"}),
        ("small(1); small()", {"n"}),
    ],
)
def test_parameters_that_a_call_leaves_to_their_defaults(tmp_path: Path, calls: str, left: set[str]) -> None:
    text = f"{DEFAULTS}\n\ndef calls():\n    {calls or 'pass'}\n"
    (tmp_path / "a.py").write_text(text)
    parts = missing(pieces(text, "a.py", set(range(1, 7))), [], whole=True)
    wanted = [list(part.place) for part in parts if part.kind.startswith("default")]
    assert len(wanted) == 5
    assert watched(tmp_path, text, wanted) == {f"default {name}" for name in left}


def watched(folder: Path, text: str, parts: list[list[Any]]) -> set[str]:
    """The kinds of ``parts`` that are seen while ``calls`` of ``text`` runs."""
    found: list[dict[str, Any]] = []
    reach = Reach([], Tree(str(folder)), found.append, [], parts)
    namespace: dict[str, Any] = {}
    exec(compile(text, str(folder / "a.py"), "exec"), namespace)
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        reach.install()
        namespace["calls"]()
        reach.remove()
    finally:
        sys.settrace(trace)
    return {event["place"][5] for event in found if event["event"] == "part"}
