"""Where paths meet: values, tensors and states are joined."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from codemods.graph.model.cells import Key
from codemods.graph.model.facts.layers import MODULES_WITHOUT_PARAMETERS
from codemods.graph.model.kinds import PlainKind
from codemods.graph.model.nodes import Alias, Value
from codemods.graph.model.state import SINCE, Log, State, merge, written_since
from codemods.graph.model.values import (
    NUMBER,
    Class,
    Const,
    Function,
    Imported,
    Instance,
    Join,
    Library,
    Module,
    Optimizer,
    Parameters,
    Plain,
    Tensor,
    TreeModule,
    Tuple,
    Unknown,
    is_setting,
)
from codemods.graph.run.recording import Recording

MAX_OPTIONS = 12
MAX_MODULES = 32
"""How many objects of the tree, or functions and classes that make them, are kept apart: programs choose one of them by
its name."""


class Joins(Recording):
    """The part of the engine that joins what two paths left."""

    def join(self, a: Value, b: Value) -> Value:
        """Either of two values."""
        if a is b:
            return a
        if isinstance(a, Const) and isinstance(b, Const) and type(a.value) is type(b.value) and a.value == b.value:
            return a
        options: list[Value] = []
        if isinstance(a, Join) and all(map(_is_chosen, a.options)):
            # these are what they are, whatever they are put beside
            options += a.options
        else:
            for option in self.options(a):
                self._add_option(options, option)
        for option in self.options(b):
            self._add_option(options, option)
        if len(options) == 1:
            return options[0]
        if len(options) > MAX_OPTIONS:
            options = _without_alike(options)
        if len(options) > (MAX_MODULES if all(map(_is_chosen, options)) else MAX_OPTIONS):
            nodes = [n for option in options for n in self.nodes_of(option)]
            several = self.unknown("several", self.phi(nodes, certain=False))
            several.shadow = self.shadow_of(options)
            return several
        return Join(tuple(options))

    def _add_option(self, options: list[Value], value: Value) -> None:
        kind = value.__class__
        for i, other in enumerate(options):
            if other is value:
                return
            if other.__class__ is kind:
                merge = _MERGED.get(kind)
                merged = merge(self, other, value) if merge is not None else None
            else:
                merged = _merged_plain(other, value) or _merged_plain(value, other)
            if merged is not None:
                options[i] = merged
                return
        options.append(value)

    def _merged_constants(self, a: Const, b: Const) -> Value | None:
        if type(b.value) is type(a.value) and b.value == a.value:
            return a
        if a.value is None or b.value is None:
            return None
        return NUMBER if not isinstance(b.value, str) else Plain(PlainKind.TEXT)

    def _merged_texts(self, a: Plain, b: Plain) -> Value | None:
        shown = a.shows | b.shows
        return a if _look(a) == _look(b) and shown == a.shows else Plain(a.kind, shows=shown)

    def _merged_tuples(self, a: Tuple, b: Tuple) -> Value | None:
        if len(a.items) != len(b.items):
            return None
        joined = tuple(self.join(x, y) for x, y in zip(a.items, b.items, strict=True))
        same = a.names == b.names
        return Tuple(joined, a.names if same else (), a.closed and b.closed and same)

    def _merged_modules(self, a: Module | Instance, b: Module | Instance) -> Value | None:
        # the module itself on one path, and what was made of it on the other
        return None if a.oid != b.oid else a if a.within is not None else b

    def _merged_unknowns(self, a: Unknown, b: Unknown) -> Value | None:
        if a.data and b.data and a.node is None and b.node is None:
            return a
        if a.node is None or b.node is None:
            return None
        return self.unknown(a.origin, self.phi([a.node, b.node], certain=True), public=a.path == b.path)

    def _join_tensors(self, a: Tensor, b: Tensor) -> Tensor:
        nodes = [n for n in (a.node, b.node) if n is not None]
        node = self.phi(nodes, certain=len(nodes) == 2) if nodes else None
        if node is not None and len(nodes) == 1:
            # of the tensor on the other path nothing more is known
            node.dimensionless = False
            node.scalar = node.scalar and all(t.scalar for t in (a, b) if t.node is None)
        aliases: tuple[Alias, ...] = ()
        if a.aliases or b.aliases:
            both = [o for o in a.aliases if o in b.aliases]
            # each once, or the aliases of what is joined in every turn of loops would double with it
            either = {o.origin: o.perhaps() for o in (*a.aliases, *b.aliases) if o not in both}
            aliases = (*both, *either.values())
        one_of = tuple(dict.fromkeys(t for o in (a, b) for t in (o.either or (o,)))) if node is None else ()
        shadow = self.shadow_of([a, b])
        shared = tuple(dict.fromkeys((*self.memory(a), *self.memory(b))))
        return Tensor(node, a.scalar and b.scalar, a.index and b.index, shadow, aliases, one_of, shared)

    def one_of(self, values: list[Value], at: ast.AST | None = None) -> Value | None:
        """The join of all values, None without any; ``at`` is the one expression that gave all of them."""
        result: Value | None = None
        self.joined_at = at
        for value in values:
            result = value if result is None else self.join(result, value)
        self.joined_at = None
        return result

    def maybe(self, value: Value) -> Value:
        """A value that is there on some paths only."""
        if isinstance(value, Tensor) and value.node is not None:
            maybe = self.phi([value.node], certain=False)
            return replace(value, node=maybe, aliases=tuple(a.perhaps() for a in value.aliases), either=())
        if isinstance(value, Unknown) and value.node is not None:
            return self.unknown(value.origin, self.phi([value.node], certain=False), public=value.public)
        if isinstance(value, Tuple):
            return Tuple(tuple(self.maybe(item) for item in value.items), value.names, value.closed)
        return value

    # what changes at times that are not known

    def unsettle(self, names: Iterable[Hashable]) -> None:
        """Note what code writes at times that are not known."""
        new = set(names) - self.unsettled
        if new:
            self.unsettled |= new
            # calls that are remembered may have been decided by it
            self.memos = {}

    def settled(self, key: Key, value: Value) -> Value:
        """What a cell holds that may have been written since: a setting, or something else."""
        if (key[1] in self.unsettled or key in self.unsettled) and is_setting(value):
            return self.join(value, self.unknown("setting", data=True))
        return value

    @contextmanager
    def at_another_time(self) -> Iterator[None]:
        """Code that is run in it runs at times that are not known, if at all: so are the settings that it writes."""
        outer = self.s.log
        self.s.log = Log(outer, self.clock)
        yield
        written = written_since(self.s, outer)
        outer.keys |= written
        self.s.log = outer
        for key in written:
            if isinstance(key[1], str) and key[1].startswith(SINCE):
                # it may have been written before what is written under names that are not known
                self.s.delete(key)
        settings = [key for key in written if is_setting(self.s.peek(key))]
        local = {frame.fid for frame in self.trace.frames if frame.function is not None} if settings else set()
        self.unsettle(key if key[0] in local else name for key in settings if (name := _name_in(key)))

    def meet(self, states: list[State], base_state: State) -> None:
        """Go on with the join of ``states``, which forked off from ``base_state``."""
        # every path has a copy of the memory: where that is large, it is what takes the time
        self.spent += base_state.weight() * (len(states) + 1)
        joined = merge(states, base_state.log, self.join, base_state, self.maybe)
        if joined is None:
            self.dead = True
            self.s = base_state
        else:
            self.dead = False
            self.s = joined


def _name_in(key: Key) -> str:
    """The name of a variable or an attribute, or the text under which an element lies; else empty."""
    name = key[1][1] if isinstance(key[1], tuple) else key[1]
    return name if isinstance(name, str) and name[:1] not in ("[", "*") and name[:2] != "__" else ""


def _is_chosen(option: Value) -> bool:
    """Whether a program chooses one of such by its name: an object of the tree, or what a file has beside these."""
    return isinstance(
        option, (Module, Function, Class, Instance, Optimizer, Library, TreeModule, Imported, Const, Plain)
    )


def _without_alike(options: list[Value]) -> list[Value]:
    """Of modules of the library that have no parameters one of each class: they compute the same."""
    kept: dict[object, Value] = {}
    for option in options:
        alike = isinstance(option, Module) and option.leaf is None and option.name in MODULES_WITHOUT_PARAMETERS
        kept.setdefault(option.name if isinstance(option, Module) and alike else option, option)
    return list(kept.values())


def _merged_plain(a: Value, b: Value) -> Value | None:
    """One value for a constant and for something plain that cannot be seen."""
    plain = isinstance(a, Plain) and isinstance(b, Const) and b.value is not None
    return Plain(a.kind, shows=a.shows) if plain and isinstance(a, Plain) else None


_MERGED: dict[type[Value], Callable[[Joins, Any, Any], Value | None]] = {
    Library: lambda joins, a, b: a if a.path == b.path else None,
    TreeModule: lambda joins, a, b: a if a.path == b.path else None,
    Const: Joins._merged_constants,
    Plain: Joins._merged_texts,
    Tensor: Joins._join_tensors,
    Tuple: Joins._merged_tuples,
    Parameters: lambda self, a, b: a if a.owner is b.owner else None,
    Module: Joins._merged_modules,
    Instance: Joins._merged_modules,
    Unknown: Joins._merged_unknowns,
}
"""What becomes of two values of one sort where paths meet, if they become one."""


def _look(value: Plain) -> tuple[object, ...]:
    return value.begin, value.end, value.turn, value.counts, value.number
