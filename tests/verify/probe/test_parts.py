"""Which parts of lines are seen to run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from codemods.rewriting.parts import missing, pieces
from verify.probe.reach import Reach
from verify.probe.sites import Tree

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
