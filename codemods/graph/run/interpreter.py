"""What a run, and the model of torch, ask of the interpreter of Python that they work for."""

from __future__ import annotations

import ast
from typing import Protocol

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import Namespace


class Interpreter(Protocol):
    """The door upwards: hooks, callbacks and attributes of the user's classes are run by the interpreter."""

    def evaluate(self, expression: ast.expr) -> Value:
        """Evaluate an expression."""
        ...

    def call_value(self, function: Value, args: Arguments, at: ast.AST) -> Value:
        """Call any value."""
        ...

    def set_attribute(self, receiver: Value, name: str, value: Value, at: ast.AST) -> None:
        """``receiver.name = value``, by a setter where there is one."""
        ...

    def set_named(self, receiver: Value, name: Value, value: Value, at: ast.AST) -> None:
        """The same under a computed name."""
        ...

    def named_in(self, space: Namespace) -> dict[str, Value]:
        """What is known to stand in a namespace, by its name; modules of the tree are loaded for it."""
        ...

    def standard_call(self, path: str, args: Arguments, at: ast.AST) -> Value | None:
        """A call of one of Python's own libraries; None where nothing is known of it."""
        ...

    def answers(self, path: str) -> bool:
        """Whether the module of a library's function may hand what it gets to code of the tree."""
        ...

    def may_write(self, name: str) -> bool:
        """Whether a loaded file may write an attribute of that name in a way that is not followed."""
        ...

    def import_named(self, args: Arguments) -> Value | None:
        """What ``importlib.import_module`` gives; None where that is not in the tree."""
        ...
