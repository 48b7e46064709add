"""What happens to values: who reads, stores and changes them, and which of them code gets that cannot be seen.

Rules ask a node for its uses, stores and escapes; this is where they are noted.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from operator import is_, is_not
from typing import Any

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cells import Key
from codemods.graph.model.kinds import CarrierKind, Escape, Marked, NodeKind, UnseenKind, UseKind
from codemods.graph.model.nodes import Carrier, Node, Place, Shadow, Unseen, Use, Value, Walk
from codemods.graph.model.state import FOLLOWED
from codemods.graph.model.trace import Handing, Reading
from codemods.graph.model.values import (
    DATA,
    INDEX,
    Function,
    Instance,
    Join,
    Mapping,
    Method,
    Optimizer,
    Parameters,
    Partial,
    Sequence,
    Tensor,
    Tuple,
    Unknown,
    may_carry,
)
from codemods.graph.model.walks import may_walk
from codemods.graph.run.contents import ITEMS, REST
from codemods.graph.run.joins import Joins


class Uses(Joins):
    """The part of the engine that notes what becomes of values."""

    # what the layers above supply

    def call_value(self, function: Value, args: Arguments, at: ast.AST) -> Value:
        """Call any value."""
        raise NotImplementedError

    # readers and carriers

    def use(self, value: Value | None, kind: UseKind, at: ast.AST, name: str = "") -> None:
        """Record that a value was read by something that makes no node of it: the method or function ``name``."""
        if not may_carry(value) and value.__class__ is not Tensor and value.__class__ is not Unknown:
            return
        assert value is not None
        for node in self.nodes_of(value):
            node.uses.append(Use(kind, self.place(at), name))
        for origin in self.shadow_of([value]):
            if isinstance(origin, Node):
                origin.uses.append(Use(kind, self.place(at), name, detached=True))

    def refused(self, value: Value, at: ast.AST) -> None:
        """Record that something is done here that torch refuses for a tensor with a history, if code counts on it."""
        if self.s.grad is not False and self.trying and self.nodes_of(value):
            self.mark(Marked.ERROR_CAUGHT, at)
        if self.catching:
            self.use(value, UseKind.HISTORY_READ, at)

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
        outlives = (
            containers
            or carrier.kind in (CarrierKind.ATTRIBUTE, CarrierKind.ELEMENT)
            or any(n.birth < walked for n in nodes)
        )
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

    def replace_everywhere(self, old: Value, new: Value) -> list[Key]:
        """Something was changed in place: whatever holds ``old`` holds ``new`` now. Returns the cells that do."""
        return self._replace([old], lambda value: new if value is old else value)

    def write_through(self, old: Tensor, new: Tensor, at: ast.AST) -> None:
        """A tensor was changed in place into ``new``: whatever holds it holds that now, and what shares its memory may
        depend on what was written."""
        memory = self.memory(old)
        if not memory:
            return
        mine = frozenset(map(id, memory))
        changed: dict[int, Tensor] = {id(old): replace(new, bases=memory)}

        def rewritten(value: Value) -> Value:
            if not isinstance(value, Tensor) or value is new:
                return value
            if id(value) not in mine and mine.isdisjoint(map(id, value.bases)):
                return value
            if id(value) not in changed:
                node = self.node(
                    at, NodeKind.OP, [*self.nodes_of(value), *self.nodes_of(new)], saves=False, certain=False
                )
                changed[id(value)] = replace(value, node=node, either=(), bases=self.memory(value))
            return changed[id(value)]

        self._replace(memory, rewritten)

    def _replace(self, wanted: Collection[Value], change: Callable[[Value], Value]) -> list[Key]:
        """Change values wherever they are held: those that are ``wanted``, and what shares memory with one. Returns the
        cells that hold something else now."""

        def replaced(value: Value) -> Value:
            if isinstance(value, Tuple):
                items = tuple(replaced(v) for v in value.items)
                return Tuple(items, value.names, value.closed) if any(map(is_not, items, value.items)) else value
            if isinstance(value, Join):
                options = tuple(change(option) for option in value.options)
                return Join(options) if any(map(is_not, options, value.options)) else value
            return change(value)

        written: list[Key] = []
        for key in self._holders(wanted):
            content = self.s.here(key)
            if isinstance(content, tuple):
                changed: Any = tuple(replaced(v) if isinstance(v, Value) else v for v in content)
                if any(a is not b for a, b in zip(changed, content, strict=True)):
                    self.s.set(key, changed)
                    written.append(key)
            else:
                changed = replaced(content)
                if changed is not content:
                    self.s.set(key, changed)
                    written.append(key)
        return written

    def _holders(self, wanted: Collection[Value]) -> list[Key]:
        """The cells that hold one of ``wanted``, or what shares memory with one."""
        for key, content in self.s.written:
            for identity in self._identities_written(key, content):
                self.cells_with.setdefault(identity, {})[key] = None
        self.s.written.clear()
        asked = frozenset(map(id, wanted))
        # whatever was written once: by now, or on this path, there may be something else
        cells: Iterable[Key] = dict.fromkeys(key for v in wanted for key in self.cells_with.get(id(v), ()))
        if any(value.__class__ not in FOLLOWED for value in wanted):
            cells = self.s.cells()
        found = ((key, self.s.here(key)) for key in cells)
        return [
            key for key, content in found if content is not None and not asked.isdisjoint(self._identities(content))
        ]

    def _identities_written(self, key: Key, content: Any) -> Iterable[int]:
        """The identities of what was written into a cell; of a list that grew, of what is new in it."""
        if not isinstance(content, tuple):
            return self._identities(content)
        before = self.lists_written.get(key, ())
        self.lists_written[key] = content
        grown = len(content) >= len(before) and all(map(is_, before, content))
        new = content[len(before) :] if grown else content
        return [identity for v in new if isinstance(v, Value) for identity in self._identities(v)]

    def _identities(self, content: Any) -> frozenset[int]:
        """The identities of what a cell holds, and of what its tensors share memory with."""
        known = self.identities.get(id(content))
        if known is not None:
            return known[1]
        if isinstance(content, tuple):
            found = frozenset[int]().union(*(self._identities(v) for v in content if isinstance(v, Value)))
        elif isinstance(content, (Tuple, Join)):
            inside = content.items if isinstance(content, Tuple) else content.options
            found = frozenset({id(content)}).union(*(self._identities(v) for v in inside))
        else:
            found = frozenset({id(content), *map(id, content.bases if isinstance(content, Tensor) else ())})
        # kept with what it tells of: an identity is free again when its owner is gone
        self.identities[id(content)] = (content, found)
        return found

    def asked(self, old: Tensor | Unknown, new: Tensor, at: ast.AST) -> None:
        """Gradients were asked for of a tensor: by whatever name or container it is read, it is the leaf ``new`` now.

        Where branches met, it is one of several: each of these may be the leaf.
        """
        written: dict[Key, None] = {}
        for one in (old, *(old.either if isinstance(old, Tensor) else ())):
            if one is not DATA and one is not INDEX:
                other = new if one is old else self.join(one, new)
                written |= dict.fromkeys(self.replace_everywhere(one, other))
        for owner, name in written:
            if name in (ITEMS, REST) or isinstance(name, tuple):
                self.stored(new, Carrier(CarrierKind.HELD, owner, ""), at)
            elif owner in self.attributes:
                self.stored(new, Carrier(CarrierKind.ATTRIBUTE, owner, str(name)), at)
            elif owner == self.frame.module_globals:
                self.stored(new, Carrier(CarrierKind.GLOBAL, owner, str(name)), at)

    # code that cannot be seen

    def escape(self, value: Value | None, how: Escape) -> None:
        """Record that a value goes where code that cannot be seen may back-propagate it."""
        for node in self.nodes_of(value):
            node.escapes.append(how)

    def escape_all(self, values: Iterable[Value], how: Escape) -> None:
        """The same for all that can be come to from ``values``."""
        for node in self.reach(values):
            node.escapes.append(how)

    def poison(self, args: Arguments, at: ast.AST) -> None:
        """Record that graphs are handed to a call that cannot be seen."""
        for value in args.all():
            for node in self.nodes_of(value):
                node.uses.append(Use(UseKind.CALLED_UNSEEN, self.place(at)))

    def opaque(
        self, at: ast.AST, label: str, inputs: Iterable[Value], *, public: bool = False, of: Value | None = None
    ) -> Unknown:
        """What a call that cannot be seen makes of ``inputs``: perhaps attached, if one of them is.

        ``label`` is a full public name, or what the program calls it: that has no dots, and says nothing. ``of`` is
        what is called, among them, where its code is Python's own or of the tree.
        """
        given = list(inputs)
        if not public:
            self.may_alter(given, at)
        label = label if public else label.rpartition(".")[2]
        for value in given:
            self.use(value, UseKind.CALL if public else UseKind.UNSEEN_CALL, at, label)
        parents = [n for value in given for n in self.nodes_of(value)] + self.held_in(given)
        # functions of torch take no gradients but where that is their purpose: these are known by their names
        models = not (public and label.startswith("torch.")) and self.brings_model(
            value for value in given if value is not of
        )
        if parents or models:
            self.trace.handings.append(Handing(self.place(at), tuple(given), models))
        node = self.node(at, NodeKind.CALL, parents, certain=False, label=label)
        made = self.unseen_result(label, node, given, at, public=public)
        if models:
            self.give_model(made)
        return made

    def unseen_result(
        self, label: str, node: Node | None, given: Iterable[Value], at: ast.AST, *, public: bool = False
    ) -> Unknown:
        """What code that cannot be seen made of ``given``, with what is not known of them."""
        made = self.unknown(label, node, public=public)
        made.shadow = tuple(o for o in self._given_away(given, at) if isinstance(o, Unseen))
        if made.node is not None:
            made.node.shadow = made.shadow
        return made

    def mixed(self, at: ast.AST, label: str, args: Arguments) -> Node | None:
        """The node of a library's result, made of its arguments without parameters; None if they have no history."""
        given = [value for value in args.all() if not isinstance(value, Parameters)]
        parents = [n for value in given for n in self.nodes_of(value)] + self.held_in(given)
        made = self.node(at, NodeKind.CALL, parents, certain=False, label=label)
        shadow = self._given_away(args.all(), at)
        if made is not None:
            made.shadow = shadow
        return made

    def _given_away(self, values: Iterable[Value], at: ast.AST) -> Shadow:
        """The shadow of the values that unseen code gets at ``at``."""
        shadow = self.shadow_of(values)
        for origin in shadow:
            if isinstance(origin, Place):
                self.trace.given_away.setdefault(id(origin.node), []).append(self.place(at))
        return shadow

    def lost(self, name: str = "item", kind: UnseenKind = UnseenKind.LOST) -> Unknown:
        """Something that is there, but that the simulation cannot name: it may carry any graph made before."""
        made = self.unknown(name)
        made.shadow = (Unseen(kind, name),)
        return made

    def unseen_call(self, made: Unknown, name: str) -> Unknown:
        """What code that cannot be seen made: it may carry a graph that nothing here tells of."""
        origin = Unseen(UnseenKind.CALL, name)
        self.unseen_since[origin] = self.clock
        made.shadow = (origin, *made.shadow)
        if made.node is not None:
            made.node.shadow = made.shadow
        return made

    def may_be_put(self, args: Arguments, made: Unknown, at: ast.AST) -> None:
        """Code that cannot be seen, and of whose result nothing is made, may have put some of its arguments into
        others: lists and dicts hold what it made, too."""
        if made.node is None or not self.frame.file.is_statement(at):
            return
        for value in args.all():
            for option in self.options(value):
                if isinstance(option, (Sequence, Mapping)):
                    rest = self.s.get((option.oid, REST))
                    self.s.set((option.oid, REST), self.join(rest, made) if isinstance(rest, Value) else made)

    def walked_later(self, walk: Walk, since: int) -> None:
        """What a generator does after its ``yield``, and a function that code which cannot be seen calls, happens at
        another time than it is run here: what was made up to ``since`` may be walked once others have walked it."""
        for node in walk.seen if since else ():
            if node.birth <= since and not node.leaf:
                node.escapes.append(Escape.WALKED_ELSEWHERE)
                self.trace.complete = False

    def may_call(self, values: Iterable[Value]) -> None:
        """Note the functions and objects among ``values``, which code gets that cannot be seen."""
        for value in values:
            for option in self.options(value):
                if isinstance(option, Partial):
                    self.may_call([option.function, *option.args])
                elif isinstance(option, Method):
                    option = option.function or option.receiver
                if isinstance(option, Function):
                    self.trace.called_unseen.add(option.definition)
                elif isinstance(option, Instance):
                    self.trace.called_unseen.update(info.node for info in option.cls.mro())
                elif isinstance(option, (Tuple, Sequence)):
                    self.may_call(self.elements(option))

    def hand_over(self, args: Arguments, at: ast.AST) -> None:
        """Note what code that cannot be seen gets."""
        if any(
            isinstance(o, (Parameters, Optimizer)) or self.is_module(o) for v in args.all() for o in self.options(v)
        ):
            self.mark(Marked.HANDED_OUT, at)
        self.trace.handed.update(o.oid for v in args.all() for o in self.options(v) if isinstance(o, Instance))
        self.may_call(args.all())

    def run_callbacks(self, args: Arguments, at: ast.AST) -> list[Value]:
        """Run the functions of the tree that are handed to code that cannot be seen; what they return."""
        results: list[Value] = []
        self.hand_over(args, at)
        given = args.keywords.get("args")
        extra = list(given.items) if isinstance(given, Tuple) else []
        keywords = self.keywords_in(args.keywords.get("kwargs"))
        more: list[Value] = []
        for value in args.all():
            for option in self.options(value):
                kept = isinstance(option, Method) and isinstance(option.receiver, (Sequence, Mapping, Unknown))
                if kept and not more:
                    more = self._others(args, at)
                if (
                    isinstance(option, (Function, Partial))
                    or (isinstance(option, Method) and option.function is not None)
                    or (isinstance(option, Instance) and isinstance(option.cls.find("__call__"), Function))
                    or (kept and more)
                ):
                    if not extra and not keywords:
                        more = more or self._others(args, at)
                    first, walks, now = len(self.trace.frames), len(self.trace.walks), self.clock
                    positional = more if kept else list(extra)
                    rest = [] if kept else more
                    result = self.call_value(option, Arguments(args.call, positional, dict(keywords), rest), at)
                    for frame in self.trace.frames[first : first + 1]:
                        frame.handed = True
                    for walk in self.trace.walks[walks:]:
                        self.walked_later(walk, now)
                    self.escape_all([result], Escape.RETURNED)
                    results.append(result)
        return results

    def run_walking(self, args: Arguments, at: ast.AST) -> None:
        """Run those functions of the tree that back-propagate, which a library gets that keeps all else to itself."""
        walking = [value for value in args.all() if self.walking(value)]
        if walking:
            self.run_callbacks(Arguments(args.call, walking), at)

    def walking(self, value: Value) -> bool:
        """Whether it is a function, method or object of the tree whose call back-propagates, by its look."""
        for option in self.options(value):
            while isinstance(option, Partial):
                option = option.function
            called = option.function if isinstance(option, Method) else option
            if isinstance(called, Instance):
                called = called.cls.find("__call__")
            if isinstance(called, Function) and may_walk(called.file, called.definition):
                return True
        return False

    def _others(self, args: Arguments, at: ast.AST) -> list[Value]:
        """What a function that is handed over may get of the arguments beside it."""
        others = Tuple(tuple(v for v in args.all() if not isinstance(v, (Function, Method, Partial))))
        return [self.taken(at, others)] if self.nodes_of(others) or self.held_in([others]) else []

    def keywords_in(self, value: Value | None) -> dict[str, Value]:
        """What is known to stand in a dict under texts."""
        if not isinstance(value, Mapping):
            return {}
        found = {k[1]: self.s.get((value.oid, k)) for k in self.mapping_keys(value) if isinstance(k, tuple)}
        return {k: v for k, v in found.items() if isinstance(k, str) and isinstance(v, Value)}
