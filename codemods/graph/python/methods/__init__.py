"""Methods of lists, deques, sets, tuples and dicts: a function each, found by its name in the tables of ``table``."""

from __future__ import annotations

from codemods.graph.python.methods import dicts, lists
from codemods.graph.python.methods.table import OF_DICTS, OF_LISTS

__all__ = ["OF_DICTS", "OF_LISTS", "dicts", "lists"]
