"""Namespaces, as ``globals()`` and ``module.__dict__``: what they hold is read and written by name."""

from __future__ import annotations

import ast

from codemods.graph.model.kinds import CarrierKind
from codemods.graph.model.nodes import Carrier, Value
from codemods.graph.model.values import TEXT, Class, Const, Function, Imported, Join, Namespace, Plain, TreeModule
from codemods.graph.python.iteration import Iteration
from codemods.graph.run.contents import ANY
from codemods.graph.run.joins import MAX_MODULES


class Namespaces(Iteration):
    """The part of the engine that knows what lies under names that are computed."""

    # what the layers above supply

    def set_directly(self, target: Value, name: Value, value: Value, at: ast.AST) -> None:
        """``object.__setattr__(target, name, value)``."""
        raise NotImplementedError

    def named_item(self, space: Namespace, key: Value, at: ast.AST) -> Value:
        """What a namespace holds under a name."""
        if not isinstance(key, Const) or not isinstance(key.value, str):
            chosen = self.defined_in(space)
            if chosen is not None:
                return chosen
            made = self.run.taken(at, space)
            made.shadow = (*self.run.lost().shadow, *made.shadow)
            return made
        if isinstance(space.of, TreeModule):
            return self.module_member(space.of, key.value)
        if space.of is not None:
            return self.get_attribute(space.of, key.value, at)
        found = self.run.s.get((space.oid, key.value))
        return self.load_name(key.value, at) if not isinstance(found, Value) else found

    def defined_in(self, space: Namespace) -> Value | None:
        """What ``models.__dict__[name]`` and ``globals()[name]`` may be: a function or a class of a module of the tree.
        None where there are too many, or graphs beside them."""
        if isinstance(space.of, TreeModule):
            found = [self.module_member(space.of, n) for n in self.modules.globals.get(space.oid, ()) if n[:1] != "_"]
        elif space.of is None and space.oid == self.run.frame.module_globals:
            # globals()[name]: what runs is not meant
            named = [v for n, v in self.named_in(space).items() if n[:1] != "_"]
            seen = [(self.imported(v) or v) if isinstance(v, (Imported, Join)) else v for v in named]
            found = [v for v in seen if not (isinstance(v, Function) and v.definition in self.run.active)]
            if any(map(self.run.is_module, found)):
                return None
        else:
            return None
        defined: list[Value] = list(dict.fromkeys(v for v in found if isinstance(v, (Function, Class))))
        return None if len(defined) > MAX_MODULES or any(map(self.run.nodes_of, found)) else self.run.one_of(defined)

    def delete_item(self, space: Namespace, name: str, at: ast.AST) -> None:
        """``del space[name]``."""
        if space.of is not None:
            self.delete_attribute(space.of, name, at)
        else:
            self.run.s.delete((space.oid, name))

    def set_named_item(
        self, container: Namespace, key: Value, value: Value, at: ast.AST, expression: ast.expr | None
    ) -> None:
        """Write what a namespace holds under a name."""
        if container.of is not None:
            # past properties and ``__setattr__``
            self.set_directly(container.of, key, value, at)
        else:
            named = key.value if isinstance(key, Const) and isinstance(key.value, str) else ANY
            if named == ANY:
                old = self.run.s.get((container.oid, ANY))
                value = self.run.join(old, value) if isinstance(old, Value) else value
                self.run.named_as.setdefault(container.oid, []).append(key if isinstance(key, Plain) else TEXT)
            self.run.s.set((container.oid, named), value)
            self.run.stored(value, Carrier(CarrierKind.GLOBAL, container.oid, named), at)
