"""What is known of a value that something keeps, before anybody has judged it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from codemods.graph.model.nodes import Carrier, Node, Place
from codemods.graph.model.program import ParsedFile
from codemods.terms.spans import Span

TOTAL = "attached-loss-total"
HISTORY = "attached-loss-history"

Result = tuple[str, Span, str, dict[str, Any]]
"""Path, span, verdict and facts."""


@dataclass(frozen=True, eq=False)
class Part:
    """An expression to mend; ``number`` where it is sometimes a number, ``scalar`` where proven to have one element."""

    file: ParsedFile
    expression: ast.expr
    nodes: tuple[Node, ...]
    number: bool
    scalar: bool
    odd: bool
    """Whether it is sometimes neither a tensor nor a number."""


@dataclass(eq=False)
class Kept:
    """One value that something keeps, in one run: ``nodes`` are its graphs, ``since`` the moment it was put there."""

    rule: str
    place: Place
    name: str
    verb: str
    parts: list[Part]
    nodes: list[Node]
    sums: list[Node]
    since: int
    inside: frozenset[int] = frozenset()
    """Frames between the call that hands the value over and the place that keeps it."""
    keeper: Carrier | None = None
    """The name that keeps it, where that is a name."""
    tensor: bool = False
    number: bool = False
    odd: bool = False
    """Whether what keeps it was given something else elsewhere that is neither a tensor nor a number."""
