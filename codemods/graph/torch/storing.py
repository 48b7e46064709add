"""Values put into containers, and the record of it: which expression brought which graph there."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import UseKind
from codemods.graph.model.nodes import Use, Value
from codemods.graph.model.trace import Storing
from codemods.graph.model.values import Const, Mapping, Tensor, Unknown
from codemods.graph.run.contents import KEYS, REST
from codemods.graph.torch.modules import Modules


class Stores(Modules):
    """The part of the engine that records stores."""

    def put_item(self, mapping: Mapping, key: Value, value: Value) -> None:
        """``mapping[key] = value``."""
        names = self.attributes.setdefault(mapping.oid, {})
        if self.nodes_of(key):
            known = self.s.get((mapping.oid, KEYS))
            self.s.set((mapping.oid, KEYS), key if known is None else self.join(known, key))
        if isinstance(key, Const):
            cell = ("key", key.value)
            names[cell] = None
            self.s.set((mapping.oid, cell), value)
        else:
            old = self.s.get((mapping.oid, REST))
            self.s.set((mapping.oid, REST), value if old is None else self.join(old, value))

    def note_storing(
        self, container: Value, expression: ast.expr | None, value: Value, method: str, at: ast.AST
    ) -> None:
        """Record that a container of the program got a value."""
        if expression is None:
            return
        self.tick()
        nodes = tuple(dict.fromkeys(self.nodes_of(value)))
        held = tuple(dict.fromkeys(self.nodes_of(container))) if nodes else ()
        parts = tuple(self.parts_of(expression)) if nodes else ()
        self.trace.storings.append(
            Storing(
                self.place(at),
                container,
                expression,
                value,
                method,
                self.s.grad,
                nodes,
                held,
                parts,
                self.born.get(getattr(container, "oid", 0), self.clock),
            )
        )

    def note_element(self, target: ast.Subscript, expression: ast.expr | None, value: Value, changed: Tensor) -> None:
        """Record that a tensor got a value in one of its elements; ``changed`` is the tensor afterwards."""
        nodes = tuple(dict.fromkeys(self.nodes_of(value)))
        if expression is not None and nodes and changed.node is not None:
            self.trace.storings.append(
                Storing(
                    self.place(target),
                    changed,
                    expression,
                    value,
                    "element",
                    self.s.grad,
                    nodes,
                    (changed.node,),
                    tuple(self.parts_of(expression)),
                    self.clock,
                )
            )

    def store_in_unknown(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> None:
        """Record that something that cannot be seen was given values to keep."""
        for value in args.all():
            for node in self.nodes_of(value):
                node.uses.append(Use(UseKind.STORED_UNSEEN, self.place(at), name))
        for i, value in enumerate(args.positional):
            if self.nodes_of(value) and isinstance(at, ast.Call) and i < len(at.args):
                self.trace.storings.append(Storing(self.place(at), receiver, at.args[i], value, name, self.s.grad))

    def parts_of(self, expression: ast.expr) -> list[tuple[ast.expr, Value]]:
        """The smallest expressions in ``expression`` that carry a graph into it, as evaluated last, and their
        values."""
        if isinstance(expression, (ast.Tuple, ast.List)):
            return [part for inner in expression.elts for part in self.parts_of(inner)]
        if isinstance(expression, ast.Dict):
            return [part for inner in expression.values for part in self.parts_of(inner)]
        value = self.values.get(expression)
        if value is None or not self.nodes_of(value):
            return []
        if isinstance(expression, ast.UnaryOp):
            return self.parts_of(expression.operand) or [(expression, value)]
        if isinstance(expression, ast.BinOp) and isinstance(expression.op, (ast.Mult, ast.Div, ast.Add, ast.Sub)):
            sides = [s for s in (expression.left, expression.right) if self.nodes_of(self.values.get(s))]
            if len(sides) == 1 and not (isinstance(expression.op, ast.Div) and sides[0] is expression.right):
                return self.parts_of(sides[0])
        return [(expression, value)]
