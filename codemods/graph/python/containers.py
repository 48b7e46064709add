"""Methods of containers and of namespaces: looked up in the tables of them."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import SequenceKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import NONE, NUMBER, TEXT, Const, Mapping, Namespace, Sequence, Tuple
from codemods.graph.python.filling import Filling
from codemods.graph.python.methods import OF_DICTS, OF_LISTS

_SPECIAL = frozenset({"__getitem__", "__setitem__", "__iter__", "__reversed__"})


class Containers(Filling):
    """The part of the engine that calls methods of containers."""

    def container_method(self, container: Value, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of a list, deque, set, tuple or dict, or of a namespace."""
        if name in _SPECIAL:
            return self._special(container, name, args.positional, at)
        found: Value | None = None
        if isinstance(container, Namespace):
            found = self._method_of_names(container, name, args, at)
        elif isinstance(container, Sequence):
            handler = OF_LISTS.get(name)
            found = handler(self, container, name, args, at) if handler is not None else None
        elif isinstance(container, Mapping):
            of_dicts = OF_DICTS.get(name)
            found = of_dicts(self, container, name, args, at) if of_dicts is not None else None
        elif isinstance(container, Tuple):
            found = self._known_of_tuple(container, name)
        return found if found is not None else self.run.opaque(at, name, [*args.all(), container], of=container)

    @staticmethod
    def _known_of_tuple(container: Tuple, name: str) -> Value | None:
        if name in ("index", "count"):
            return NUMBER
        return container if name == "_replace" else None

    def _special(self, container: Value, name: str, given: list[Value], at: ast.AST) -> Value:
        """A special method of a container that is called by its name."""
        if name == "__getitem__" and given:
            return self.get_item(container, given[0], at)
        if name == "__setitem__" and len(given) > 1:
            self.set_item(container, given[0], given[1], at, None)
            return NONE
        return self.counted_as(
            self.run.new_sequence(list(self.iterate(container, at)), kind=SequenceKind.TURNS), container
        )

    def _method_of_names(self, space: Namespace, name: str, args: Arguments, at: ast.AST) -> Value:
        """A method of ``vars(obj)``: read from a copy, written to the object itself."""
        given = args.positional
        if name in ("update", "__ior__"):
            copied = self.run.new_mapping()
            self.container_method(copied, "update", args, at)
            for key in self.run.mapping_keys(copied):
                value = self.run.s.get((copied.oid, key))
                if isinstance(value, Value):
                    self.set_item(space, Const(key[1]) if isinstance(key, tuple) else TEXT, value, at, None)
            return NONE if name == "update" else space
        there = bool(given) and isinstance(given[0], Const) and given[0].value in self.named_in(space)
        if name == "setdefault" and len(given) > 1 and not there:
            self.set_item(space, given[0], given[1], at, None)
        if name in ("get", "pop", "setdefault") and given and isinstance(given[0], Const):
            found = self.named_item(space, given[0], at)
            if name == "pop":
                self.delete_item(space, str(given[0].value), at)
            return found if there or len(given) < 2 else self.run.join(found, given[1])
        if name in ("clear", "popitem"):
            for held in self.named_in(space):
                self.delete_item(space, held, at)
        copied = self.run.new_mapping()
        self.fill_mapping(copied, space, at)
        return self.container_method(copied, name, args, at)
