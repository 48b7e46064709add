"""The graph as it is recorded: nodes, what they are computed from, aliases, and what values carry unseen.

Whether an operation leaves a node is decided here and nowhere else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from codemods.graph.model.facts.memory import CHANGES_SHAPE, SHARING_MEMORY
from codemods.graph.model.kinds import AliasForm, Altered, NodeKind, PlainKind, UnseenKind, UseKind
from codemods.graph.model.memo import Step
from codemods.graph.model.nodes import Alias, Node, Place, Shadow, Unseen, Use, Value
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Alteration
from codemods.graph.model.values import (
    INDEX,
    Const,
    Function,
    Join,
    Library,
    Method,
    Module,
    Optimizer,
    Parameters,
    Partial,
    Plain,
    Tensor,
    Unknown,
    memory,
)
from codemods.graph.run.holding import Holding
from codemods.source.walking import walk

MAX_UNSEEN = 16
"""So many graphs that cannot be seen are told apart in one value; of the others only that there are some."""

_OTHERS = Unseen(UnseenKind.CALL, "")
_LOST = Unseen(UnseenKind.LOST, "")
"""What is not told apart: all of it made by calls out of sight, or of any origin."""

_OF_NUMBERS = frozenset(name for kind in (int, float, bool) for name in dir(kind))
_ASKING = frozenset(("isinstance", "hasattr", "type", "is_tensor", "callable", "issubclass"))
"""Calls by which a program asks what a value is before it uses it."""

_SIMPLE = frozenset({Const, Plain, Library, Module, Function, Parameters, Optimizer})
"""Values that carry nothing unseen."""


class Recording(Holding):
    """The part of the engine that adds to the graph."""

    # nodes

    def node(
        self,
        at: ast.AST,
        kind: NodeKind,
        parents: Iterable[Node],
        *,
        saves: bool = True,
        certain: bool | None = None,
        scalar: bool = False,
        dimensionless: bool = False,
        label: str = "",
    ) -> Node | None:
        """Record an operation; None if recording is off or nothing that it is computed from has a history."""
        if self.s.grad is False:
            return None
        unique = tuple(p for p in dict.fromkeys(parents) if p.kind is not NodeKind.LEAF or not self.frozen(p))
        if not unique:
            return None
        sure = any(p.certain for p in unique) if certain is None else certain
        if self.s.grad is None:
            sure = False
        made = Node(
            self.birth(),
            kind,
            unique,
            self.place(at),
            saves=saves,
            certain=sure,
            scalar=scalar,
            dimensionless=dimensionless,
            label=label,
        )
        self.trace.nodes.append(made)
        if self.s.grad is None:
            self.perhaps_off.add(made)
        return made

    def once_more(self, step: Step, parents: Iterable[Node], again: Callable[[Place], Place]) -> Node | None:
        """A node of a remembered call once more, computed from ``parents``; None if none of them asks for gradients.

        ``again`` tells where a place of that call is in this one.
        """
        unique = tuple(p for p in dict.fromkeys(parents) if not p.leaf or not self.frozen(p))
        if not unique and step.parents:
            return None
        made = Node(
            self.birth(),
            step.kind,
            unique,
            again(step.like.place),
            saves=step.saves,
            certain=step.certain,
            scalar=step.like.scalar,
            dimensionless=step.like.dimensionless,
            public=step.like.public,
            label=step.like.label,
        )
        made.uses += [use._replace(place=again(use.place)) for use in step.uses]
        made.escapes += step.escapes
        self.trace.nodes.append(made)
        if not self.perhaps_off.isdisjoint(step.nodes):
            self.perhaps_off.add(made)
        if step.like in self.trace.unpacked:
            self.trace.unpacked.add(made)
        return made

    def leaf(self, at: ast.AST, label: str = "") -> Node:
        """A leaf: a parameter or an input that asks for gradients."""
        made = Node(self.birth(), NodeKind.LEAF, (), self.place(at), saves=False, certain=True, label=label)
        self.trace.nodes.append(made)
        return made

    def show_module(self, thing: Unknown, at: ast.AST, label: str) -> Module:
        """Treat something that cannot be seen as a module from here on."""
        thing.module = Module(self.new_oid(), "", self.leaf(at, label))
        self.found_leaves.clear()
        return thing.module

    def phi(self, nodes: list[Node], *, certain: bool) -> Node | None:
        """One of several nodes."""
        unique = list(dict.fromkeys(nodes))
        if not unique:
            return None
        if len(unique) == 1 and certain:
            return unique[0]
        made = Node(
            self.birth(),
            NodeKind.PHI,
            tuple(unique),
            # what a call returns is joined after its last statement
            self.place(self.joined_at or self.frame.statement or self.frame.definition or self.frame.file.tree),
            saves=False,
            certain=certain and all(n.certain for n in unique),
            scalar=all(n.scalar for n in unique),
            dimensionless=all(n.dimensionless for n in unique),
        )
        self.trace.nodes.append(made)
        return made

    def part(self, at: ast.AST, value: Value, label: str) -> Node | None:
        """The node of an element or attribute of something opaque that is attached."""
        if value.node is None:
            return None
        made = Node(
            self.birth(),
            NodeKind.PART,
            (value.node,),
            self.place(at),
            saves=False,
            certain=isinstance(value, Tensor) and value.node.certain,
            label=label,
        )
        self.trace.nodes.append(made)
        return made

    def parents_of(self, values: Iterable[Value]) -> list[Node]:
        """What an operation on ``values`` depends on; a value that has a history on some paths only, by a phi."""
        parents: list[Node] = []
        for value in values:
            nodes = self.nodes_of(value)
            if nodes and isinstance(value, Join):
                always = set(nodes).intersection(*(self.nodes_of(option) for option in value.options))
                sometimes = [n for n in nodes if n not in always]
                maybe = self.phi(sometimes, certain=False)
                nodes = [n for n in nodes if n in always] + ([maybe] if maybe is not None else [])
            parents += nodes
        return parents

    def tensor_op(
        self,
        at: ast.AST,
        label: str,
        inputs: Iterable[Value],
        *,
        saves: bool = True,
        scalar: bool = False,
        dimensionless: bool = False,
    ) -> Tensor:
        """The tensor that an operation makes of ``inputs``."""
        given = list(inputs)
        parents = self.parents_of(given)
        held = self.phi([n for n in self.held_in(given) if n not in parents], certain=False) if self.holders else None
        made = self.node(
            at,
            NodeKind.OP,
            parents if held is None else [*parents, held],
            saves=saves,
            scalar=scalar,
            dimensionless=dimensionless,
            label=label,
        )
        shadow = self.shadow_of(given)
        if made is not None:
            made.shadow = shadow
            if saves:
                self.drawn(given, made)
        bases = self.memory(given[0]) if label in SHARING_MEMORY and given else ()
        return Tensor(made, scalar, shadow=shadow, bases=bases)

    memory = staticmethod(memory)

    def drawn(self, inputs: Iterable[Value], node: Node) -> None:
        """Record the aliases among the inputs of an operation that may save them."""
        for value in inputs:
            if isinstance(value, Tensor) and value.aliases:
                self.trace.drawn.append((value.aliases, node))

    # what only a tensor has

    def wants_tensor(self, value: Value, name: str, at: ast.AST) -> None:
        """Record that ``name`` is asked of a value, if that is or may be a number or None, which have no such thing."""
        options = self.options(value)
        plain = [o for o in options if _plain(o)]
        if not plain or name in _OF_NUMBERS or name.startswith("__"):
            return
        if not _asked_before(self.frame.file, at):
            self._misused(name, len(plain) == len(options), at)

    @staticmethod
    def only_tensors(value: Value, name: str = "") -> Value:
        """``value`` as what takes tensors only finds it, or what asks it for ``name``: there a number or None raises,
        and what follows has seen a tensor."""
        if not isinstance(value, Join) or name in _OF_NUMBERS:
            return value
        left = tuple(o for o in value.options if not _plain(o))
        if len(left) == len(value.options) or not any(isinstance(o, Tensor) for o in left):
            return value
        return left[0] if len(left) == 1 else Join(left)

    def wants_graph(self, value: Value, name: str, at: ast.AST) -> None:
        """Record that ``name`` takes a gradient of a value, if that is or may be a tensor that has no graph."""
        options = self.options(value)
        graphless = [o for o in options if isinstance(o, Tensor) and o.node is None and not o.shadow]
        if graphless:
            self._misused(name, len(graphless) == len(options), at)

    def _misused(self, name: str, sure: bool, at: ast.AST) -> None:
        key = (self.frame.file.path, getattr(at, "lineno", 0), name)
        self.trace.misuses[key] = sure or self.trace.misuses.get(key, False)

    def wants_gradient(self, value: Value, at: ast.AST) -> None:
        """Record that the gradient of a tensor is read, or a hook waits for it: cut off it has none."""
        for node in self.nodes_of(value):
            if not node.leaf:
                node.uses.append(Use(UseKind.GRADIENT_READ, self.place(at)))

    def note_attribute(self, value: Tensor | Unknown, name: str, at: ast.AST) -> None:
        """Record that an attribute is read of a tensor, if numbers have none of that name."""
        if value.node is not None and name not in _OF_NUMBERS:
            value.node.uses.append(Use(UseKind.ATTRIBUTE, self.place(at), name))

    # aliases and changes in place

    @staticmethod
    def sharing(given: Value, made: Value) -> Value:
        """``made``, a view of ``given``: what is written to it is written to all that ``given`` is an alias of."""
        if isinstance(given, Tensor) and isinstance(made, Tensor) and given.aliases:
            return replace(made, aliases=given.aliases)
        return made

    @staticmethod
    def may_share(given: Value, made: Tensor) -> Tensor:
        """``made``, which may be ``given`` itself, a view of it or a tensor of its own."""
        if isinstance(given, Tensor) and given.aliases and not made.aliases:
            return replace(made, aliases=tuple(alias.perhaps() for alias in given.aliases))
        return made

    def alias(self, form: AliasForm, given: Value, made: Tensor, at: ast.AST) -> Tensor:
        """``made``, known as a tensor that shares its memory with ``given``."""
        one = Alias(form, self.place(at), given, self.s.grad)
        self.trace.aliases.append(one)
        known = given.aliases if isinstance(given, Tensor) else ()
        return replace(made, aliases=(*known, one))

    def alter(self, value: Value, how: Altered, at: ast.AST, *, sure: bool = True) -> None:
        """Record that a tensor is changed in place, or may be where it is not ``sure``."""
        options = self.options(value)
        for option in options:
            if isinstance(option, (Tensor, Unknown)):
                self.trace.alterations.append(Alteration(how, self.place(at), option, sure and len(options) == 1))

    @staticmethod
    def altered_by(method: str) -> Altered:
        """How a method whose name ends in ``_`` changes a tensor, by that name."""
        if method == "requires_grad_":
            return Altered.REQUIRES_GRAD
        return Altered.SHAPE if method.removesuffix("_") in CHANGES_SHAPE else Altered.VALUES

    def write(self, tensor: Value, values: Iterable[Value], at: ast.AST, *, sure: bool = True) -> None:
        """Record that ``values`` are written into a tensor, or may be where it is not ``sure``."""
        self.alter(tensor, Altered.ATTACHED if any(map(self.nodes_of, values)) else Altered.VALUES, at, sure=sure)

    def array_written(self, array: Value, at: ast.AST) -> None:
        """Record that an array is written to, and with it the tensor whose memory it shares."""
        for option in self.options(array):
            if isinstance(option, Plain) and option.shares is not None:
                self.trace.alterations.append(Alteration(Altered.UNSEEN, self.place(at), option.shares, sure=False))

    def may_alter(self, values: Iterable[Value], at: ast.AST) -> None:
        """Record that code that cannot be seen gets tensors whose memory others share, and may write to it."""
        for value in values:
            if isinstance(value, Tensor) and value.aliases:
                self.trace.alterations.append(Alteration(Altered.UNSEEN, self.place(at), value))

    def taken(self, at: ast.AST, value: Value, name: str = "item") -> Unknown:
        """What is in ``value``, or is handed out by it, in a way that is not followed: perhaps any of its graphs.

        Nothing is computed, so that it is attached where recording is off, too.
        """
        inside = list(dict.fromkeys([*self.nodes_of(value), *self.held_in([value])]))
        if len(inside) == 1 and value.node is not None:
            made = self.unknown(name, self.part(at, value, name))
        else:
            node = self.phi(inside, certain=False)
            made = self.unknown(name, node)
        made.shadow = tuple(o for o in self.shadow_of([value]) if isinstance(o, Unseen))
        if made.node is not None:
            made.node.shadow = made.shadow
        made.data = made.node is None and isinstance(value, Unknown) and value.data
        return made

    # values without history

    def shadow_of(self, values: Iterable[Value]) -> Shadow:
        """What values without history were detached from, and what they may carry unseen, the unseen first."""
        found: dict[int, Node | Place] = {}
        unseen: dict[int, Unseen] = {}
        for value in values:
            kind = value.__class__
            if kind in _SIMPLE or ((kind is Tensor or kind is Unknown) and not value.shadow):  # type: ignore[attr-defined]
                continue
            for option in value.options if isinstance(value, Join) else (value,):
                if option.__class__ in _SIMPLE:
                    continue
                if isinstance(option, (Tensor, Unknown)):
                    origins: Iterable[Node | Place | Unseen] = option.shadow
                else:
                    origins = self.origins_in(option)
                for origin in origins:
                    if isinstance(origin, Unseen):
                        unseen[id(origin)] = origin
                    else:
                        found[id(origin)] = origin
        if not unseen:
            return tuple(found.values())
        if len(unseen) > MAX_UNSEEN:
            more = list(unseen.values())[MAX_UNSEEN - 1 :]
            rest = _OTHERS if all(origin.kind is UnseenKind.CALL for origin in more) else _LOST
            unseen = dict(islice(unseen.items(), MAX_UNSEEN - 1)) | {id(rest): rest}
        return (*unseen.values(), *found.values())

    def shadow_of_new(self, values: Iterable[Value]) -> Shadow:
        """The same for a tensor that is made of ``values``: with gradients off it has no graph, whatever they are."""
        shadow = self.shadow_of(values)
        return shadow if self.s.grad is not False else tuple(o for o in shadow if not isinstance(o, Unseen))

    def origins_in(self, container: Value) -> Iterator[Node | Place | Unseen]:
        """The shadows of the elements of a container, or of what an object holds."""
        seen: set[int] = set()
        stack = [container]
        while stack:
            one = stack.pop()
            kind = one.__class__
            if kind in _SIMPLE:
                continue
            if isinstance(one, (Tensor, Unknown)):
                yield from one.shadow
            elif isinstance(one, Join):
                stack += one.options
            elif isinstance(one, Method):
                stack.append(one.receiver)
            elif isinstance(one, Partial):
                stack += self.given_to(one)
            elif getattr(one, "oid", 0) not in seen:
                seen.add(getattr(one, "oid", -1))
                stack += [value for value in self.elements(one) if value.__class__ not in _SIMPLE]

    def detached(self, value: Value, *, scalar: bool = False, index: bool = False) -> Tensor:
        """The same data without history."""
        shadow = (*self.nodes_of(value), *(o for o in self.shadow_of([value]) if not isinstance(o, Unseen)))
        return Tensor(None, scalar, index, shadow)

    def index_of(self, values: Iterable[Value]) -> Tensor:
        """Integers or booleans that are read off ``values``: which of them is the greatest, where they are the same."""
        given = list(values)
        origins = dict.fromkeys([n for v in given for n in self.nodes_of(v)])
        origins |= dict.fromkeys(o for o in self.shadow_of(given) if isinstance(o, Node))
        return Tensor(None, index=True, shadow=tuple(origins)) if origins else INDEX


def _plain(value: Value) -> bool:
    if isinstance(value, Const):
        return value.value is None or isinstance(value.value, (int, float))
    return isinstance(value, Plain) and value.kind is PlainKind.NUMBER


def _asked_before(file: ParsedFile, node: ast.AST) -> bool:
    """Whether the program asks what a value is, or is ready for its not being that, before it comes to ``node``."""
    inner, outer = node, file.parent(node)
    while outer is not None and not isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        if isinstance(outer, ast.Try) and outer.handlers and inner in outer.body:
            return True
        tests: list[ast.AST] = []
        if isinstance(outer, (ast.If, ast.IfExp, ast.While)):
            tests = [outer.test]
        elif isinstance(outer, ast.BoolOp):
            tests = list(outer.values)
        elif isinstance(outer, ast.comprehension):
            tests = list(outer.ifs)
        elif isinstance(outer, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            tests = [test for generator in outer.generators for test in generator.ifs]
        if any(_asks(part) for test in tests for part in walk(test)):
            return True
        inner, outer = outer, file.parent(outer)
    return False


def _asks(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")) in _ASKING
