"""Methods of things that cannot be seen: a function each, found by its name in the tables of ``methods``."""

from __future__ import annotations

from codemods.graph.python.unseen import command_lines, methods

__all__ = ["command_lines", "methods"]
