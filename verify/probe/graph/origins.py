"""Which line of the user's made a graph node, as far as a diagnosis had it noted (see doctor/lines.py)."""

from __future__ import annotations

import typing
from typing import Any

_KEY = "traceback_"
#: The text that a node keeps, and the site that it stands for.
SITES: typing.Dict[str, typing.List[Any]] = {}  # noqa: UP006 - evaluated here, in Python 3.8
#: By that text: how many of the user's frames were running, and whether a library's code stood between them and torch.
DEPTHS: typing.Dict[str, typing.Tuple[int, bool]] = {}  # noqa: UP006
#: Nodes that are looked at below one that a library made.
_NEAR = 40


def site(node: Any) -> list[Any] | None:
    """The site that made ``node``; None where nobody watched, or no line of the tree was running."""
    return SITES.get(_text(node))


def _text(node: Any) -> str:
    stack = None if node is None else node.metadata.get(_KEY)
    return str(stack[-1]) if type(stack) is list and stack else ""


def nearest(node: Any) -> list[Any] | None:
    """The same; where a library made ``node`` of what a line further inside had made, that line: the first is the call
    of the library."""
    depth, library = DEPTHS.get(_text(node), (0, False))
    nodes, seen = [node], {node}
    while library and nodes and len(seen) < _NEAR:
        each = nodes.pop(0)
        if DEPTHS.get(_text(each), (0, False))[0] > depth:
            return site(each)
        for child, _ in each.next_functions:
            if child is not None and child not in seen:
                seen.add(child)
                nodes.append(child)
    return site(node)
