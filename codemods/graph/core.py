"""The ground the simulated engine stands on: identities, nodes, joins, backward."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from codemods.graph.arguments import Arguments
from codemods.graph.memo import Memo
from codemods.graph.program import ClassInfo, ParsedFile
from codemods.graph.state import FROZEN, Key, State, merge
from codemods.graph.trace import Alias, Alteration, Forward, Frame, Mark, Owned, Place, Reading, Step, Trace, Walk
from codemods.graph.values import (
    CONTAINING,
    NONE,
    NUMBER,
    Carrier,
    Const,
    Function,
    Instance,
    Join,
    Library,
    Mapping,
    Method,
    Module,
    Node,
    Optimizer,
    Parameters,
    Partial,
    Plain,
    Sequence,
    Shadow,
    Tensor,
    Tuple,
    Unknown,
    Unseen,
    Value,
    may_carry,
)

MAX_OPTIONS = 12
MAX_DEPTH = 24
MAX_RECURSION = 2
MAX_UNSEEN = 16
ITEMS = "[items]"
REST = "[rest]"
"""Cells of containers; no attribute can be called so."""


class BudgetEnded(Exception):
    """A root took more steps than it may; what it would have shown is unknown."""


class Core:
    """State, trace and identities of one simulated run.

    ``budget`` is the number of evaluated syntax nodes that a run may take. From two thirds of it on, calls are no
    longer entered; at its end the run stops and its trace is marked incomplete.
    """

    def __init__(self, budget: int = 150_000) -> None:
        self.s: State = State.empty()
        self.dead = False
        self.trace = Trace("")
        self.clock = 0
        self.oids = 0
        self.budget = budget
        self.spent = 0
        self.frame: Frame = None  # type: ignore[assignment]
        self.attributes: dict[int, dict[Any, None]] = {}
        """The names (for dicts: cells) under which an object holds anything, in the order in which they came."""
        self.looked_at: set[str] = set()
        """The files that imports were resolved to, by path below the root."""
        self.entered: dict[ast.AST, ParsedFile] = {}
        self.called: dict[ast.AST, ParsedFile] = {}
        """Functions that were entered because code of the tree calls them, other than themselves."""
        self.active: list[ast.AST] = []
        self.values: dict[ast.expr, Value] = {}
        """What each expression gave when it was evaluated last."""
        self.born: dict[int, int] = {}
        """The moment at which each list and dict was made."""
        self.memos: dict[Any, Memo] = {}
        self.class_attributes: set[str] = set()
        """The names under which anything was written to a class."""
        self.unknowns: list[Unknown] | None = None
        """Those that were made since a module is being loaded."""
        self.running: set[int] = set()
        """The ``Sequential`` modules whose children are being run."""
        self.caches: dict[ast.AST, Unseen | None] = {}
        self.written: set[Key] = set()
        """The cells that the call that ended last has written."""
        self.entering_root = False
        """Whether the next function entered is a root: nobody in the tree calls it."""

    # identities and places

    def new_oid(self) -> int:
        """A fresh identity."""
        self.oids += 1
        return self.oids

    def tick(self) -> int:
        """The next moment of the run."""
        self.clock += 1
        return self.clock

    def spend(self) -> None:
        """Count one evaluated syntax node against the budget."""
        self.spent += 1
        if self.spent > self.budget:
            raise BudgetEnded

    @property
    def tired(self) -> bool:
        """Whether so much of the budget is gone that calls are no longer entered."""
        return self.spent * 3 > self.budget * 2

    def place(self, node: ast.AST) -> Place:
        """Here and now, at ``node``."""
        frame = self.frame
        return Place(node, frame.statement, frame, tuple(frame.loops), self.clock)

    def mark(
        self,
        kind: str,
        node: ast.AST,
        of: Iterable[Node] | None = None,
        *,
        exact: bool = False,
        by: Value | None = None,
    ) -> None:
        """Record that gradients are needed or tampered with here: those ``of`` these nodes, None if that is unseen."""
        self.tick()
        self.trace.marks.append(Mark(kind, self.place(node), None if of is None else tuple(of), exact, by))

    def mark_owned(self, kind: str, node: ast.AST, value: Value | None) -> None:
        """The same for all parameters that ``value`` (a module, an optimizer, parameters) stands for."""
        owned = self.owned(value)
        self.mark(kind, node, None if owned.more else owned.leaves, exact=owned.exact, by=value)

    def owned(self, value: Value | None) -> Owned:
        """The parameters in what an optimizer was given, or in a module."""
        if isinstance(value, Optimizer):
            return value.owned or Owned((), False, True)
        if isinstance(value, Parameters):
            leaves = self._registered(value.owner)
            return Owned(leaves, not value.element, not leaves)
        if isinstance(value, Tensor):
            if value.node is None:
                return Owned((), True, False)
            if value.node.leaf:
                return Owned((value.node,), True, False)
            leaves = tuple(n for n in value.node.ancestors() if n.leaf)
            return Owned(leaves, False, value.node.kind != "phi")
        if isinstance(value, (Module, Instance)) or (isinstance(value, Unknown) and value.module is not None):
            return Owned(self._registered(value), True, False)
        if isinstance(value, Mapping):
            value = self.s.get((value.oid, ("key", "params")))
            return self.owned(value) if isinstance(value, Value) else Owned((), False, True)
        if isinstance(value, (Sequence, Tuple, Join)):
            parts = [self.owned(v) for v in (value.options if isinstance(value, Join) else self.elements(value))]
            leaves = tuple(dict.fromkeys(leaf for part in parts for leaf in part.leaves))
            # a generator's values are only known as far as they were followed
            exact = all(part.exact for part in parts) and getattr(value, "kind", "") != "generator"
            if isinstance(value, Join):
                exact = exact and all(set(part.leaves) == set(leaves) for part in parts)
            return Owned(leaves, exact, not parts or any(part.more for part in parts))
        return Owned((), isinstance(value, (Const, Plain)), not isinstance(value, (Const, Plain)))

    def _registered(self, module: Value) -> tuple[Node, ...]:
        """The leaves of a module's parameters: a tensor on it that only asks for gradients is none of them."""
        return tuple(leaf for leaf in self._all_leaves(module, set()) if leaf.label != "input")

    def unknown(self, origin: str = "", node: Node | None = None, *, data: bool = False) -> Unknown:
        """A fresh thing that cannot be seen."""
        made = Unknown(self.new_oid(), origin, node, data=data)
        if self.unknowns is not None:
            self.unknowns.append(made)
        return made

    # graph

    def node(
        self,
        at: ast.AST,
        kind: str,
        parents: Iterable[Node],
        *,
        saves: bool = True,
        certain: bool | None = None,
        scalar: bool = False,
        label: str = "",
    ) -> Node | None:
        """Record an operation; None if recording is off or nothing that it is computed from has a history."""
        if self.s.grad is False:
            return None
        unique = tuple(p for p in dict.fromkeys(parents) if p.kind != "leaf" or not self.frozen(p))
        if not unique:
            return None
        sure = any(p.certain for p in unique) if certain is None else certain
        if self.s.grad is None:
            sure = False
        made = Node(self.tick(), kind, unique, self.place(at), saves=saves, certain=sure, scalar=scalar, label=label)
        self.trace.nodes.append(made)
        return made

    def leaf(self, at: ast.AST, label: str = "") -> Node:
        """A leaf: a parameter or an input that asks for gradients."""
        made = Node(self.tick(), "leaf", (), self.place(at), saves=False, certain=True, label=label)
        self.trace.nodes.append(made)
        return made

    def tensor_op(
        self, at: ast.AST, label: str, inputs: Iterable[Value], *, saves: bool = True, scalar: bool = False
    ) -> Tensor:
        """The tensor that an operation makes of ``inputs``."""
        given = list(inputs)
        made = self.node(at, "op", self.parents_of(given), saves=saves, scalar=scalar, label=label)
        shadow = self.shadow_of(given)
        if made is not None:
            made.shadow = shadow
            if saves:
                self.drawn(given, made)
        return Tensor(made, scalar, shadow=shadow)

    def drawn(self, inputs: Iterable[Value], node: Node) -> None:
        """Record the aliases among the inputs of an operation that may save them."""
        for value in inputs:
            if isinstance(value, Tensor) and value.aliases:
                self.trace.drawn.append((value.aliases, node))

    def alias(self, form: str, given: Value, made: Tensor, at: ast.AST) -> Tensor:
        """``made``, known as a tensor that shares its memory with ``given``."""
        one = Alias(form, self.place(at), given, self.s.grad)
        self.trace.aliases.append(one)
        known = given.aliases if isinstance(given, Tensor) else ()
        return replace(made, aliases=(*known[-7:], one))

    def alter(self, value: Value, how: str, at: ast.AST) -> None:
        """Record that a tensor is changed in place."""
        for option in value.options if isinstance(value, Join) else (value,):
            if isinstance(option, (Tensor, Unknown)):
                self.trace.alterations.append(Alteration(how, self.place(at), option))

    def shadow_of(self, values: Iterable[Value]) -> Shadow:
        """What values without history were detached from, and what they may carry unseen, the unseen first."""
        found: dict[int, Node | Place] = {}
        unseen: dict[int, Unseen] = {}
        for value in values:
            kind = value.__class__
            if (kind is Tensor or kind is Unknown) and not value.shadow:  # type: ignore[attr-defined]
                continue
            for option in value.options if isinstance(value, Join) else (value,):
                if isinstance(option, (Tensor, Unknown)):
                    kept = 0
                    for origin in option.shadow:
                        if isinstance(origin, Unseen):
                            unseen[id(origin)] = origin
                        elif kept < 8:
                            found[id(origin)] = origin
                            kept += 1
                elif isinstance(option, (Tuple, Sequence, Mapping)):
                    for origin in self.unseen_in(option):
                        unseen[id(origin)] = origin
        if not unseen:
            return tuple(found.values())
        return (*list(unseen.values())[:MAX_UNSEEN], *found.values())

    def unseen_in(self, container: Value, depth: int = 0) -> Iterator[Unseen]:
        """What the elements of a container may carry unseen."""
        for item in self.elements(container):
            for option in item.options if isinstance(item, Join) else (item,):
                if isinstance(option, (Tensor, Unknown)):
                    yield from (origin for origin in option.shadow if isinstance(origin, Unseen))
                elif isinstance(option, (Tuple, Sequence, Mapping)) and depth < 2:
                    yield from self.unseen_in(option, depth + 1)

    def detached(self, value: Value, *, scalar: bool = False, index: bool = False) -> Tensor:
        """The same data without history."""
        shadow = (*self.nodes_of(value), *(o for o in self.shadow_of([value]) if not isinstance(o, Unseen)))
        return Tensor(None, scalar, index, shadow)

    def opaque(self, at: ast.AST, label: str, inputs: Iterable[Value]) -> Unknown:
        """What a call that cannot be seen makes of ``inputs``: perhaps attached, if one of them is."""
        given = list(inputs)
        for value in given:
            self.use(value, f"call:{label}", at)
        parents = [n for value in given for n in self.nodes_of(value)]
        made = self.unknown(label, self.node(at, "call", parents, certain=False, label=label))
        made.shadow = tuple(o for o in self.shadow_of(given) if isinstance(o, Unseen))
        if made.node is not None:
            made.node.shadow = made.shadow
        return made

    def lost(self, name: str = "item", kind: str = "lost") -> Unknown:
        """Something that is there, but that the simulation cannot name: it may carry any graph made before."""
        made = self.unknown(name)
        made.shadow = (Unseen(kind, name),)
        return made

    @staticmethod
    def unseen_call(made: Unknown, name: str) -> Unknown:
        """What code that cannot be seen made: it may carry a graph that nothing here tells of."""
        made.shadow = (Unseen("call", name), *made.shadow)
        if made.node is not None:
            made.node.shadow = made.shadow
        return made

    def part(self, at: ast.AST, value: Value, label: str) -> Node | None:
        """The node of an element or attribute of something opaque that is attached."""
        if value.node is None:
            return None
        return Node(
            self.tick(),
            "part",
            (value.node,),
            self.place(at),
            saves=False,
            certain=isinstance(value, Tensor) and value.node.certain,
            label=label,
        )

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

    def maybe(self, value: Value) -> Value:
        """A value that is there on some paths only."""
        if isinstance(value, Tensor) and value.node is not None:
            maybe = self.phi([value.node], certain=False)
            return Tensor(maybe, value.scalar, value.index, value.shadow, tuple(a.perhaps() for a in value.aliases))
        if isinstance(value, Unknown) and value.node is not None:
            return self.unknown(value.origin, self.phi([value.node], certain=False))
        if isinstance(value, Tuple):
            return Tuple(tuple(self.maybe(item) for item in value.items))
        return value

    def nodes_of(self, value: Value | None, depth: int = 0) -> list[Node]:
        """The graph nodes in a value, through containers."""
        # asked for nearly every value of a run: the commonest first, by class
        kind = value.__class__
        if kind is Tensor or kind is Unknown:
            return [value.node] if value.node is not None else []  # type: ignore[union-attr]
        if value is None or kind not in CONTAINING or depth > 4:
            return []
        if isinstance(value, Join):
            return [n for option in value.options for n in self.nodes_of(option, depth + 1)]
        if isinstance(value, (Tuple, Sequence, Mapping)):
            items = self.elements(value)
            self.spent += len(items) >> 2
            return [n for item in items for n in self.nodes_of(item, depth + 1)]
        if isinstance(value, Parameters):
            return self.parameter_leaves(value.owner)
        return []

    def elements(self, value: Value) -> list[Value]:
        """What is known to be in a container."""
        if isinstance(value, Tuple):
            return list(value.items)
        if isinstance(value, Sequence):
            items = self.s.get((value.oid, ITEMS)) or ()
            rest = self.s.get((value.oid, REST))
            return [*items, rest] if rest is not None else list(items)
        if isinstance(value, Mapping):
            found = [self.s.get((value.oid, key)) for key in self.mapping_keys(value)]
            return [v for v in found if v is not None]
        if isinstance(value, Join):
            return [item for option in value.options for item in self.elements(option)]
        return []

    def mapping_keys(self, value: Mapping) -> list[object]:
        """The cells of a dict: (``key``, constant) each, and the rest."""
        return [*self.attributes.get(value.oid, ()), REST]

    def parameter_leaves(self, owner: Value, seen: set[int] | None = None) -> list[Node]:
        """The leaves of all trainable parameters of a module, through its children."""
        seen = set() if seen is None else seen
        leaves: list[Node] = []
        if isinstance(owner, Join):
            return [leaf for option in owner.options for leaf in self.parameter_leaves(option, seen)]
        if isinstance(owner, Tensor):
            return [owner.node] if owner.node is not None and owner.node.leaf and not self.frozen(owner.node) else []
        if isinstance(owner, Unknown):
            return self.parameter_leaves(owner.module, seen) if owner.module is not None else []
        if isinstance(owner, (Sequence, Mapping, Tuple)):
            return [leaf for item in self.elements(owner) for leaf in self.parameter_leaves(item, seen)]
        if not isinstance(owner, (Module, Instance)) or owner.oid in seen:
            return leaves
        seen.add(owner.oid)
        if isinstance(owner, Instance) and not owner.cls.is_module:
            return leaves
        if owner.leaf is not None and not self.frozen(owner.leaf):
            leaves.append(owner.leaf)
        for child in self.children_of(owner):
            leaves += self.parameter_leaves(child, seen)
        return leaves

    def children_of(self, owner: Value) -> Iterator[Value]:
        """The values in the attributes and elements of an object."""
        if isinstance(owner, Unknown):
            if owner.module is not None:
                yield owner.module
            return
        if not isinstance(owner, (Module, Instance)):
            return
        for name in list(self.attributes.get(owner.oid, ())):
            value = self.s.get((owner.oid, name))
            if isinstance(value, Value):
                yield value
        yield from self.s.get((owner.oid, ITEMS)) or ()
        rest = self.s.get((owner.oid, REST))
        if isinstance(rest, Value):
            yield rest

    def frozen(self, leaf: Node) -> bool:
        """Whether ``requires_grad = False`` was set on what the leaf stands for."""
        return self.s.get((-leaf.birth, FROZEN)) is True

    def freeze(self, owner: Value, frozen: bool | None) -> None:
        """Set ``requires_grad`` of all parameters of ``owner``; None where it cannot be seen which way."""
        value = {True: True, False: False, None: "maybe"}[frozen]
        for leaf in self._all_leaves(owner, set()):
            self.s.set((-leaf.birth, FROZEN), value)

    def _all_leaves(self, owner: Value, seen: set[int]) -> Iterator[Node]:
        if isinstance(owner, Join):
            for option in owner.options:
                yield from self._all_leaves(option, seen)
        elif isinstance(owner, Tensor):
            if owner.node is not None and owner.node.leaf:
                yield owner.node
        elif isinstance(owner, (Sequence, Mapping, Tuple)):
            for item in self.elements(owner):
                yield from self._all_leaves(item, seen)
        elif isinstance(owner, Unknown):
            if owner.module is not None:
                yield from self._all_leaves(owner.module, seen)
        elif isinstance(owner, (Module, Instance)) and owner.oid not in seen:
            seen.add(owner.oid)
            if owner.leaf is not None:
                yield owner.leaf
            for child in self.children_of(owner):
                yield from self._all_leaves(child, seen)

    def holder(self, tensor: ast.expr) -> Module | None:
        """The module one of whose parameters ``tensor`` is written as: ``layer.weight``."""
        found = self.values.get(tensor.value) if isinstance(tensor, ast.Attribute) else None
        if isinstance(found, Unknown):
            found = found.module
        if not isinstance(tensor, ast.Attribute) or not isinstance(found, Module) or found.leaf is None:
            return None
        return None if isinstance(self.s.get((found.oid, tensor.attr)), Value) else found

    def thawed(self, tensor: ast.expr) -> bool:
        """Whether ``tensor`` is a parameter of a module that was frozen: asked for gradients, it learns again."""
        holder = self.holder(tensor)
        if holder is not None:
            self.freeze(holder, False)
        return holder is not None

    def has_parameters(self, owner: Value) -> bool:
        """Whether a module has any trainable parameter that we know of."""
        return bool(self.parameter_leaves(owner))

    def walk(
        self,
        call: ast.Call,
        values: Iterable[Value],
        kind: str,
        *,
        retains: bool | None,
        creates: bool | None,
        argument: str | int | None = None,
        with_gradient: bool = False,
    ) -> Walk:
        """Run backward through the graphs of ``values``: what it walks is freed unless it is retained."""
        self.tick()
        roots: list[Node] = []
        for value in values:
            for option in value.options if isinstance(value, Join) else (value,):
                if isinstance(option, Unknown) and option.node is None:
                    # backward proves that it is attached, whatever it is
                    option.node = Node(
                        self.tick(), "call", (), self.place(call), saves=True, certain=True, label=option.origin
                    )
                    option.node.shadow = option.shadow
                    self.trace.nodes.append(option.node)
            roots += self.nodes_of(value)
        place = self.place(call)
        walk = Walk(place, call, tuple(dict.fromkeys(roots)), kind, retains, creates, argument)
        walk.grad = self.s.grad
        walk.with_gradient = with_gradient
        walk.cells = self.s.cells.copy()
        seen: set[int] = set()
        for root in walk.roots:
            root.certain = True
            if not with_gradient and kind == "backward":
                root.scalar = True
            self._prove_source(root)
            for node in root.ancestors():
                if id(node) in seen:
                    continue
                seen.add(id(node))
                walk.seen.append(node)
                if node.walks and not node.leaf:
                    walk.again.append((node, node.walks[-1]))
        for node in walk.seen:
            node.walks.append(walk)
        self.trace.walks.append(walk)
        return walk

    @staticmethod
    def _prove_source(node: Node) -> None:
        """Where a graph can only have come from one input, that one is proven with it: a loss that is scaled or
        divided."""
        while (
            node.kind == "op"
            and len(node.parents) == 1
            and (node.label in ("scale", "neg") or node.label.endswith(":number"))
        ):
            parent = node.parents[0]
            parent.certain = True
            parent.scalar = parent.scalar or node.scalar
            node = parent

    # uses

    def use(self, value: Value | None, kind: str, at: ast.AST) -> None:
        """Record that a value was read by something that makes no node of it."""
        if not may_carry(value) and value.__class__ is not Tensor and value.__class__ is not Unknown:
            return
        assert value is not None
        for node in self.nodes_of(value):
            node.uses.append((kind, self.place(at)))
        for origin in self.shadow_of([value]):
            if isinstance(origin, Node):
                origin.uses.append((f"detached:{kind}", self.place(at)))

    def escape(self, value: Value | None, how: str) -> None:
        """Record that a value goes where code that cannot be seen may back-propagate it."""
        for node in self.nodes_of(value):
            node.escapes.append(how)

    def replace_everywhere(self, old: Value, new: Value) -> None:
        """Something was changed in place: whatever holds ``old`` holds ``new`` now."""

        def replaced(value: Value) -> Value:
            if value is old:
                return new
            if isinstance(value, Tuple) and any(replaced(v) is not v for v in value.items):
                return Tuple(tuple(replaced(v) for v in value.items))
            return value

        for key, content in list(self.s.cells.items()):
            if isinstance(content, tuple):
                changed: Any = tuple(replaced(v) if isinstance(v, Value) else v for v in content)
                if any(a is not b for a, b in zip(changed, content, strict=True)):
                    self.s.set(key, changed)
            elif isinstance(content, Value) and replaced(content) is not content:
                self.s.set(key, replaced(content))

    def stored(self, value: Value | None, carrier: Carrier, at: ast.AST) -> None:
        """Record that a carrier now holds a value."""
        for node in self.nodes_of(value):
            node.stores.append((carrier, self.place(at)))

    def read(self, value: Value | None, carrier: Carrier, at: ast.AST) -> None:
        """Record that a carrier was read that holds nodes which a backward has been through, or may be in a later
        step."""
        nodes = self.nodes_of(value)
        if not nodes or value is None:
            return
        for node in nodes:
            if node.walks and not node.leaf:
                node.stale_reads.append((carrier, self.place(at)))
        containers = self.containers_in(value)
        walked = self.trace.walks[-1].place.clock if self.trace.walks else -1
        outlives = containers or carrier.kind in ("attribute", "element") or any(n.birth < walked for n in nodes)
        if outlives and not all(n.leaf for n in nodes):
            self.trace.readings.append(Reading(carrier, self.place(at), value, tuple(nodes), containers))

    def containers_in(self, value: Value, depth: int = 0) -> frozenset[int]:
        """The identities of the lists and dicts in a value, itself among them."""
        if depth > 3:
            return frozenset()
        if isinstance(value, (Sequence, Mapping)):
            inner = (self.containers_in(v, depth + 1) for v in self.elements(value))
            return frozenset({value.oid}).union(*inner)
        if isinstance(value, Tuple):
            return frozenset().union(*(self.containers_in(v, depth + 1) for v in value.items))
        if isinstance(value, Join):
            return frozenset().union(*(self.containers_in(v, depth + 1) for v in value.options))
        return frozenset()

    # joins

    def join(self, a: Value, b: Value) -> Value:
        """Either of two values."""
        if a is b:
            return a
        if isinstance(a, Const) and isinstance(b, Const) and type(a.value) is type(b.value) and a.value == b.value:
            return a
        options: list[Value] = []
        for value in (a, b):
            for option in value.options if isinstance(value, Join) else (value,):
                self._add_option(options, option)
        if len(options) == 1:
            return options[0]
        if len(options) > MAX_OPTIONS:
            nodes = [n for option in options for n in self.nodes_of(option)]
            several = self.unknown("several", self.phi(nodes, certain=False))
            several.shadow = self.shadow_of(options)
            return several
        return Join(tuple(options))

    def phi(self, nodes: list[Node], *, certain: bool) -> Node | None:
        """One of several nodes."""
        unique = list(dict.fromkeys(nodes))
        if not unique:
            return None
        if len(unique) == 1 and certain:
            return unique[0]
        made = Node(
            self.tick(),
            "phi",
            tuple(unique),
            self.place(self.frame.statement or ast.Pass()),
            saves=False,
            certain=certain and all(n.certain for n in unique),
            scalar=all(n.scalar for n in unique),
        )
        self.trace.nodes.append(made)
        return made

    def _add_option(self, options: list[Value], value: Value) -> None:
        for i, other in enumerate(options):
            if other is value:
                return
            if isinstance(value, Const) and isinstance(other, Const):
                if type(value.value) is type(other.value) and value.value == other.value:
                    return
                if value.value is not None and other.value is not None:
                    options[i] = NUMBER if not isinstance(value.value, str) else Plain("text")
                    return
            elif isinstance(value, Plain) and isinstance(other, Plain):
                return
            elif isinstance(value, Plain) and isinstance(other, Const) and other.value is not None:
                options[i] = value
                return
            elif isinstance(value, Const) and isinstance(other, Plain) and value.value is not None:
                return
            elif isinstance(value, Tensor) and isinstance(other, Tensor):
                options[i] = self._join_tensors(other, value)
                return
            elif isinstance(value, Tuple) and isinstance(other, Tuple) and len(value.items) == len(other.items):
                options[i] = Tuple(tuple(self.join(x, y) for x, y in zip(other.items, value.items, strict=True)))
                return
            elif isinstance(value, Parameters) and isinstance(other, Parameters) and value.owner is other.owner:
                return
            elif isinstance(value, Unknown) and isinstance(other, Unknown):
                if value.data and other.data and value.node is None and other.node is None:
                    return
                if value.node is not None and other.node is not None:
                    options[i] = self.unknown(other.origin, self.phi([other.node, value.node], certain=True))
                    return
        options.append(value)

    def _join_tensors(self, a: Tensor, b: Tensor) -> Tensor:
        nodes = [n for n in (a.node, b.node) if n is not None]
        node = self.phi(nodes, certain=len(nodes) == 2) if nodes else None
        aliases: tuple[Alias, ...] = ()
        if a.aliases or b.aliases:
            both = [o for o in a.aliases if o in b.aliases]
            either = [o.perhaps() for o in (*a.aliases, *b.aliases) if o not in both]
            aliases = (*both, *either)[:8]
        return Tensor(node, a.scalar and b.scalar, a.index and b.index, self.shadow_of([a, b]), aliases)

    def meet(self, states: list[State], base_state: State) -> None:
        """Go on with the join of ``states``, which forked off from ``base_state``."""
        # every path has a copy of the memory: where that is large, it is what takes the time
        self.spent += base_state.weight() * (len(states) + 1)
        joined = merge(states, base_state.log, self.join, base_state.cells, self.maybe)
        if joined is None:
            self.dead = True
            self.s = base_state
        else:
            self.dead = False
            self.s = joined

    # helpers for other layers

    @staticmethod
    def options(value: Value) -> tuple[Value, ...]:
        """The possibilities of a value."""
        return value.options if isinstance(value, Join) else (value,)

    def truth(self, value: Value) -> bool | None:
        """What ``bool(value)`` gives, None if it cannot be seen."""
        if isinstance(value, Const):
            return bool(value.value)
        if isinstance(value, Library) and value.path in ("typing.TYPE_CHECKING", "typing_extensions.TYPE_CHECKING"):
            # packages import all their modules under it
            return False
        if isinstance(value, (Module, Optimizer, Function, Method, Partial)):
            return True
        if isinstance(value, Instance):
            return True if value.cls.find("__len__") is None and value.cls.find("__bool__") is None else None
        if isinstance(value, Tuple):
            return bool(value.items)
        if isinstance(value, Join):
            truths = {self.truth(option) for option in value.options}
            return truths.pop() if len(truths) == 1 else None
        return None

    def is_module(self, value: Value) -> bool:
        """Whether calling it is a forward of an ``nn.Module``."""
        if isinstance(value, Instance):
            return value.cls.is_module
        if isinstance(value, Unknown):
            return value.module is not None
        return isinstance(value, Module)

    def forwarded(
        self, at: ast.AST, module: Value, first: int, grad: bool | None, method: str, args: Arguments
    ) -> None:
        """Record a forward, unless it is part of another one."""
        if not self.frame.inside_module:
            while self.trace.forwards and self.trace.forwards[-1].first >= first:
                self.trace.forwards.pop()
            seen = module.module if isinstance(module, Unknown) and module.module is not None else module
            mode = self.s.get((getattr(seen, "oid", 0), "mode"))
            volatile = tuple(o for o in self.shadow_of(args.all()) if isinstance(o, Place))
            self.trace.forwards.append(
                Forward(self.place(at), module, first, self.clock + 1, grad, method, args, volatile, mode or "")
            )

    def stepped(self, at: ast.AST, optimizer: Value | None) -> None:
        """Record an optimizer step."""
        self.tick()
        self.trace.steps.append(
            Step(self.place(at), optimizer, self.owned(optimizer) if optimizer is not None else None)
        )


__all__ = ["ITEMS", "NONE", "REST", "BudgetEnded", "ClassInfo", "Core", "ParsedFile"]
