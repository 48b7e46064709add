"""Layout by Graphviz's program ``dot``, where it is installed, for graphs too large for our own layout."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from verify.diagnosis.pictures.layout import GAP, ROW, Placed, Point

_INCH = 72.0
_SECONDS = 30.0


def installed() -> bool:
    """Whether there is a program ``dot``."""
    return shutil.which("dot") is not None


def place(sizes: Sequence[Point], edges: Sequence[tuple[int, int]]) -> Placed | None:
    """Return where ``dot`` puts boxes and lines; None where it fails or takes too long."""
    lines = [
        f'digraph {{ nodesep={GAP / _INCH:.3f}; ranksep={ROW / _INCH:.3f}; node [shape=box fixedsize=true label=""];'
    ]
    lines += [f"{i} [width={w / _INCH:.4f} height={h / _INCH:.4f}];" for i, (w, h) in enumerate(sizes)]
    lines += [f"{a} -> {b};" for a, b in edges]
    try:
        done = subprocess.run(
            ["dot", "-Tplain"], input="\n".join([*lines, "}"]), capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parsed(done.stdout, sizes, edges) if done.returncode == 0 else None


def parsed(text: str, sizes: Sequence[Point], edges: Sequence[tuple[int, int]]) -> Placed | None:
    """Return what ``dot -Tplain`` says in ``text``; None where something is missing."""
    width = height = 0.0
    corners: dict[int, Point] = {}
    curves: dict[tuple[int, int], list[Point]] = {}
    for words in (line.split() for line in text.splitlines()):
        if words[:1] == ["graph"]:
            width, height = float(words[2]) * _INCH, float(words[3]) * _INCH
        elif words[:1] == ["node"]:
            box = int(words[1])
            x, y = float(words[2]) * _INCH, height - float(words[3]) * _INCH
            corners[box] = (x - sizes[box][0] / 2, y - sizes[box][1] / 2)
        elif words[:1] == ["edge"]:
            numbers = [float(word) * _INCH for word in words[4 : 4 + 2 * int(words[3])]]
            points = [(x, height - y) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
            curves[int(words[1]), int(words[2])] = points
    if len(corners) != len(sizes) or set(curves) != set(edges):
        return None
    return Placed([corners[box] for box in range(len(sizes))], [curves[edge] for edge in edges], width, height)
