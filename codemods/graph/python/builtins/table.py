"""The table of builtins."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.handlers import Handlers
from codemods.graph.model.nodes import Value
from codemods.graph.python.containers import Containers

BUILTINS: Handlers[Callable[[Containers, str, Arguments, ast.AST], Value | None]] = Handlers()
"""What a call of each builtin gives, by its name; None where nothing is known of a call with such arguments."""
