"""The tables of methods of tensors and functions of torch. What stands in none of them is described by the tables of
:mod:`codemods.graph.model.facts`, or carries on what goes in."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.handlers import Handlers
from codemods.graph.model.nodes import Value
from codemods.graph.torch.results import Results

OF_TENSORS: Handlers[Callable[[Results, Value, str, Arguments, ast.AST], Value]] = Handlers()
"""What a method of a tensor gives, by its name."""

OF_TORCH: Handlers[Callable[[Results, str, str, Arguments, ast.AST], Value | None]] = Handlers()
"""What a function gives, by the module of torch that it stands in and its name; None where nothing is known."""

OF_SEVERAL: Handlers[Callable[[Results, str, str, Arguments, ast.AST], Value | None]] = Handlers()
"""The same for functions that may give several tensors, and for which there is no table of these."""
