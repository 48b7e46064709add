"""Which line of the user's made a graph node, as far as a diagnosis had it noted (see doctor/lines.py)."""

from __future__ import annotations

import typing
from typing import Any

_KEY = "traceback_"
#: The text that a node keeps, and the site that it stands for.
SITES: typing.Dict[str, typing.List[Any]] = {}  # noqa: UP006 - evaluated here, in Python 3.8


def site(node: Any) -> list[Any] | None:
    """The site that made ``node``; None where nobody watched, or no line of the tree was running."""
    if node is None:
        return None
    stack = node.metadata.get(_KEY)
    return SITES.get(stack[-1]) if type(stack) is list and stack else None
