"""The tables of the methods of containers."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.handlers import Handlers
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import Mapping, Sequence
from codemods.graph.python.filling import Filling

OF_LISTS: Handlers[Callable[[Filling, Sequence, str, Arguments, ast.AST], Value | None]] = Handlers()
"""What a method of a list, a deque, a set or a generator does, by its name; None where nothing is known of it."""

OF_DICTS: Handlers[Callable[[Filling, Mapping, str, Arguments, ast.AST], Value | None]] = Handlers()
"""What a method of a dict does, by its name."""
