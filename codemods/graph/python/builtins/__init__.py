"""What Python's builtins do with symbols: a function each, found by its name in ``table.BUILTINS``."""

from __future__ import annotations

from codemods.graph.python.builtins import classes, conversions, names, sequences, turns
from codemods.graph.python.builtins.table import BUILTINS

__all__ = ["BUILTINS", "classes", "conversions", "names", "sequences", "turns"]
