"""Calls of Python's builtins: looked up in the table of them."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import NONE, Instance, Mapping, Namespace, Sequence
from codemods.graph.python.builtins import BUILTINS
from codemods.graph.python.containers import Containers
from codemods.graph.run.contents import BACKING

_CONTAINERS = ("dict", "list", "set", "deque")

_KEEPING = ("dict.fromkeys", "staticmethod", "classmethod")
"""Builtins that keep the functions which they are given, and call none (docs: Built-in Functions)."""


class BuiltinCalls(Containers):
    """The part of the engine that calls builtins."""

    def builtin(self, name: str, args: Arguments, at: ast.AST) -> Value:
        """A call of a builtin, or of a method of one: ``list.append``."""
        handler = BUILTINS.get(name)
        found = handler(self, name, args, at) if handler is not None else self._method_of_type(name, args, at)
        if found is not None:
            return found
        if name in _KEEPING:
            self.run.hand_over(args, at)
        else:
            self.run.run_callbacks(args, at)
        return self.run.opaque(at, name, args.all())

    def _method_of_type(self, name: str, args: Arguments, at: ast.AST) -> Value | None:
        """``list.append(self, value)`` of a derived class; None of anything else."""
        kind, _, method = name.partition(".")
        first = args.positional[0] if args.positional else None
        if kind not in _CONTAINERS or not isinstance(first, (Instance, Sequence, Mapping, Namespace)):
            return None
        given = args.positional[1:]
        if method == "__init__" and isinstance(first, Instance):
            self.run.s.set((first.oid, BACKING), self.builtin(kind, Arguments(args.call, given, args.keywords), at))
            return NONE
        inner = self.run.contained(first) or first
        return self.container_method(inner, method, Arguments(args.call, given, args.keywords, args.more), at)
