"""Values put into containers, and the record of it: which expression brought which graph there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import CarrierKind, SequenceKind, UseKind
from codemods.graph.model.nodes import Carrier, Node, Use, Value
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.state import TURNS, VIEWS
from codemods.graph.model.trace import GROWN, Copied, Storing
from codemods.graph.model.values import (
    Const,
    Function,
    Instance,
    Mapping,
    Plain,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
    options_of,
)
from codemods.graph.run.contents import ITEMS, KEYS, REST
from codemods.graph.torch.modules import Modules


def _only_keeps(cls: ClassInfo) -> bool:
    """Whether objects of a class get their arguments under names, and nothing else happens when they are made."""
    own = ("__new__", "__post_init__", "__setattr__")
    if cls.container or cls.family != "plain" or cls.setters or any(cls.find(name) is not None for name in own):
        return False
    init = cls.find("__init__")
    body = init.definition.body if isinstance(init, Function) else []
    return init is None or (isinstance(body, list) and bool(body) and all(map(_puts_away, body)))


def _puts_away(statement: ast.AST) -> bool:
    """Whether a statement is ``self.name = name``, or says nothing."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    value = getattr(statement, "value", None)
    return isinstance(value, (ast.Name, ast.Constant)) and all(isinstance(t, ast.Attribute) for t in targets)


class Stores(Modules):
    """The part of the engine that records stores."""

    def put_item(self, mapping: Mapping, key: Value, value: Value) -> None:
        """``mapping[key] = value``."""
        run = self.run
        run.trace.puts[mapping.oid].append(run.clock)
        self._show(mapping, key, value)
        names = run.attributes.setdefault(mapping.oid, {})
        if run.nodes_of(key):
            known = run.s.get((mapping.oid, KEYS))
            run.s.set((mapping.oid, KEYS), key if known is None else run.join(known, key))
        if isinstance(key, Const):
            cell = ("key", key.value)
            names[cell] = None
            run.s.set((mapping.oid, cell), value)
            if run.s.peek((mapping.oid, TURNS)):
                # this may be the name of one of the turns
                run.s.set((mapping.oid, TURNS), ())
        else:
            known = self._known_turns(mapping, key)
            old = run.s.get((mapping.oid, REST))
            run.s.set((mapping.oid, REST), value if old is None else run.join(old, value))
            if isinstance(key, Plain) and key.turn is not None:
                self._keep_turns(mapping, key, known, value)

    def _show(self, mapping: Mapping, key: Value, value: Value) -> None:
        """Let the views of a dict show what is put into it."""
        for name, shown in (("keys", key), ("values", value), ("items", Tuple((key, value)))):
            views = self.run.s.get((mapping.oid, VIEWS[name]))
            for view in self.run.options(views) if isinstance(views, Value) else ():
                if isinstance(view, Sequence):
                    old = self.run.s.get((view.oid, REST))
                    self.run.s.set((view.oid, REST), shown if old is None else self.run.join(old, shown))

    def put_in_turns(self, container: Value, key: Value) -> list[Value | None]:
        """What the turns of the same loop put into a list or dict, by their numbers, if nothing else changed it
        since.

        The last number stands for all further turns of a loop. What one of them has put is not where the next one
        counts to: there lies what the loop found, of which no more is known.
        """
        known = self._known_turns(container, key)
        found: list[Value | None] = known[::2]
        if isinstance(key, Plain) and key.counts is not None and key.turn and key.turn < len(found):
            loop = key.counts[0]
            began, turned = self.run.began.get(loop, 0), self.run.turned.get(loop, 0)
            if began < known[2 * key.turn + 1] < turned:
                found[key.turn] = None
        return found

    def put_before(self, container: Value, key: Value) -> Value | None:
        """What earlier turns of the loop that runs put where ``key``, the number of one of them, counts to."""
        if not isinstance(key, Plain) or key.turn is not None or key.counts is None:
            return None
        known = self._known_turns(container, key)
        began = self.run.began.get(key.counts[0], self.run.clock)
        return self.run.one_of([value for value, at in zip(known[::2], known[1::2], strict=True) if at > began])

    def put_by_all(self, container: Value, counts: tuple[ast.AST, int]) -> list[Value]:
        """What a loop that has come to its end put where it counts to, if each of its turns did so and nothing else
        changed the list since; in turns."""
        known = self._known_turns(container, Plain(counts=counts))
        began = self.run.began.get(counts[0], self.run.clock)
        return known[::2] if len(known) == 4 and all(at > began for at in known[1::2]) else []

    def _known_turns(self, container: Value, key: Value) -> list[Any]:
        """What turns put into a list or dict, each with the moment; None and 0 for those that put nothing."""
        oid = getattr(container, "oid", 0)
        counts, items, rest, *known = self.run.s.get((oid, TURNS)) or (None, None, None)
        same = items is self.run.s.get((oid, ITEMS)) and rest is self.run.s.get((oid, REST))
        return known if same and isinstance(key, Plain) and counts == key.counts else []

    def forget_turns(self) -> None:
        """Know no longer which turn put what into lists and dicts."""
        for key in [key for key, _ in self.run.s.cells().items() if key[1] == TURNS]:
            self.run.s.set(key, ())
            self.run.displaced.add(key[0])

    def put_in_turn(self, container: Sequence, key: Plain, value: Value, **cells: Any) -> None:
        """``container[key] = value`` in a turn of a loop, which leaves a list so: ``items`` or ``rest``."""
        known = self._known_turns(container, key)
        for cell, content in cells.items():
            self.run.s.set((container.oid, ITEMS if cell == "items" else REST), content)
        self._keep_turns(container, key, known, value)
        if key.counts is not None:
            self.run.filled.setdefault(key.counts, {})[container] = None

    def _keep_turns(self, container: Value, key: Plain, known: list[Any], value: Value) -> None:
        """Remember what a turn put into a list or dict beside what the others did."""
        oid, turn = getattr(container, "oid", 0), key.turn or 0
        turns = [*known, *[None, 0] * (turn + 1 - len(known) // 2)]
        turns[2 * turn : 2 * turn + 2] = value, self.run.tick()
        self.run.s.set((oid, TURNS), (key.counts, self.run.s.get((oid, ITEMS)), self.run.s.get((oid, REST)), *turns))

    def note_storing(
        self, container: Value, expression: ast.expr | None, value: Value, method: str, at: ast.AST
    ) -> None:
        """Record that a container of the program got a value."""
        run = self.run
        if expression is None:
            return
        run.tick()
        nodes = tuple(dict.fromkeys(self._nodes_in(value)))
        held = tuple(dict.fromkeys(run.nodes_of(container))) if nodes else ()
        parts = tuple(self.parts_of(expression)) if nodes else ()
        run.trace.storings.append(
            Storing(
                run.place(at),
                container,
                expression,
                value,
                method,
                run.s.grad,
                nodes,
                held,
                parts,
                run.born.get(getattr(container, "oid", 0), run.clock),
                tuple(self._copies_in(expression)) if nodes else (),
            )
        )

    def note_grown(self, container: Value, expressions: list[ast.expr]) -> None:
        """Record that a container was made anew of what it held before and the values of ``expressions``."""
        for expression in expressions:
            value = self.run.values.get(expression)
            if value is not None and self.run.nodes_of(value):
                self.run.stored(value, Carrier(CarrierKind.ELEMENT, getattr(container, "oid", 0), ""), expression)
                self.note_storing(container, expression, value, GROWN, expression)

    def note_element(self, target: ast.Subscript, expression: ast.expr | None, value: Value, changed: Tensor) -> None:
        """Record that a tensor got a value in one of its elements; ``changed`` is the tensor afterwards."""
        nodes = tuple(dict.fromkeys(self.run.nodes_of(value)))
        if expression is not None and nodes and changed.node is not None:
            self.run.trace.storings.append(
                Storing(
                    self.run.place(target),
                    changed,
                    expression,
                    value,
                    "element",
                    self.run.s.grad,
                    nodes,
                    (changed.node,),
                    tuple(self.parts_of(expression)),
                    self.run.clock,
                )
            )

    def store_in_unknown(self, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> None:
        """Record that something that cannot be seen was given values to keep."""
        run = self.run
        for value in args.all():
            for node in run.nodes_of(value):
                node.uses.append(Use(UseKind.STORED_UNSEEN, run.place(at), name))
        for i, value in enumerate(args.positional):
            if run.nodes_of(value) and isinstance(at, ast.Call) and i < len(at.args):
                run.trace.storings.append(Storing(run.place(at), receiver, at.args[i], value, name, run.s.grad))

    def _nodes_in(self, value: Value) -> list[Node]:
        """The nodes of a value, or of the attributes of an object that only keeps what it was made of."""
        if not isinstance(value, Instance) or not _only_keeps(value.cls):
            return self.run.nodes_of(value)
        kept = (self.run.s.get((value.oid, name)) for name in self.run.attributes.get(value.oid, ()))
        return [node for one in kept if isinstance(one, Value) for node in self.run.nodes_of(one)]

    def _copies_in(self, expression: ast.expr) -> Iterator[Copied]:
        """The containers that an expression is copied from: ``dict(losses)``, ``{**losses, "step": 3}``."""
        if isinstance(expression, (ast.List, ast.Tuple)):
            for element in expression.elts:
                if isinstance(element, ast.Starred):
                    alone = isinstance(expression, ast.List) and len(expression.elts) == 1
                    yield from self._copied(element.value, Sequence, expression if alone else None)
                else:
                    yield from self._copies_in(element)
        elif isinstance(expression, ast.Dict):
            for key, value in zip(expression.keys, expression.values, strict=True):
                whole = expression if len(expression.keys) == 1 else None
                yield from self._copied(value, Mapping, whole) if key is None else self._copies_in(value)
        elif isinstance(expression, ast.Call):
            made, given, named = self.run.trace.called.get(expression), expression.args, expression.keywords
            if made in ("builtins.dict", "builtins.list", "builtins.tuple") and len(given) == 1:
                kind = Mapping if made == "builtins.dict" else Sequence
                yield from self._copied(given[0], kind, None if named or made == "builtins.tuple" else expression)
            elif isinstance(expression.func, ast.Attribute) and expression.func.attr == "copy" and not (given or named):
                yield from self._copied(expression.func.value, (Mapping, Sequence), expression)

    def _copied(
        self, expression: ast.expr, kinds: type[Value] | tuple[type[Value], ...], whole: ast.expr | None = None
    ) -> Iterator[Copied]:
        """The container of such a kind that ``expression`` is, where all that it holds are tensors, numbers and
        texts."""
        container = self.run.values.get(expression)
        if not isinstance(container, (Mapping, Sequence)) or not isinstance(container, kinds):
            return
        pairs = isinstance(container, Mapping)
        if isinstance(container, Sequence) and container.kind is not SequenceKind.LIST:
            return
        if self.run.s.get((container.oid, KEYS)):
            # its keys have graphs too
            return
        held = [one for element in self.run.elements(container) for one in options_of(element)]
        nodes = tuple(dict.fromkeys(one.node for one in held if one.node is not None))
        plain = all(isinstance(one, (Tensor, Const, Plain)) for one in held)
        if nodes and plain and not any(node.leaf for node in nodes):
            yield Copied(expression, pairs, not all(isinstance(one, Tensor) for one in held), nodes, whole)

    def parts_of(self, expression: ast.expr) -> list[tuple[ast.expr, Value]]:
        """The smallest expressions in ``expression`` that carry a graph into it, as evaluated last, and their
        values."""
        if isinstance(expression, (ast.Tuple, ast.List)):
            return [part for inner in expression.elts for part in self.parts_of(inner)]
        if isinstance(expression, ast.Dict):
            return [part for inner in expression.values for part in self.parts_of(inner)]
        if isinstance(expression, (ast.ListComp, ast.DictComp)):
            element = expression.elt if isinstance(expression, ast.ListComp) else expression.value
            if parts := self.parts_of(element):
                return parts
        value = self.run.values.get(expression)
        if value is None or not self._nodes_in(value):
            return []
        if isinstance(expression, ast.Call) and isinstance(value, Instance):
            # Row(step, loss), if it is made of what it gets and nothing else
            given = [*expression.args, *(k.value for k in expression.keywords)]
            parts = [part for inner in given for part in self.parts_of(inner)]
            own = value.cls.find("__new__") is not None
            return [(expression, value)] if own or len(parts) != len(self._nodes_in(value)) else parts
        if isinstance(expression, ast.UnaryOp):
            return self.parts_of(expression.operand) or [(expression, value)]
        if isinstance(expression, ast.BinOp) and isinstance(expression.op, (ast.Mult, ast.Div, ast.Add, ast.Sub)):
            sides = [s for s in (expression.left, expression.right) if self.run.nodes_of(self.run.values.get(s))]
            if len(sides) == 1 and not (isinstance(expression.op, ast.Div) and sides[0] is expression.right):
                return self.parts_of(sides[0])
        return [(expression, value)]
