"""Where paths meet: values, tensors and states are joined."""

from __future__ import annotations

from dataclasses import replace

from codemods.graph.model import facts
from codemods.graph.model.nodes import Alias, Value
from codemods.graph.model.state import State, merge
from codemods.graph.model.values import (
    NUMBER,
    Class,
    Const,
    Function,
    Instance,
    Join,
    Module,
    Parameters,
    Plain,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.run.recording import Recording

MAX_OPTIONS = 12
MAX_MODULES = 32
"""How many models, or functions and classes that make them, are kept apart: programs choose one by its name."""


class Joins(Recording):
    """The part of the engine that joins what two paths left."""

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
            options = _without_alike(options)
        if len(options) > (MAX_MODULES if all(map(_makes_models, options)) else MAX_OPTIONS):
            nodes = [n for option in options for n in self.nodes_of(option)]
            several = self.unknown("several", self.phi(nodes, certain=False))
            several.shadow = self.shadow_of(options)
            return several
        return Join(tuple(options))

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
                if (value.begin, value.end) != (other.begin, other.end):
                    options[i] = Plain(other.kind)
                return
            elif isinstance(value, Plain) and isinstance(other, Const) and other.value is not None:
                options[i] = Plain(value.kind)
                return
            elif isinstance(value, Const) and isinstance(other, Plain) and value.value is not None:
                options[i] = Plain(other.kind)
                return
            elif isinstance(value, Tensor) and isinstance(other, Tensor):
                options[i] = self._join_tensors(other, value)
                return
            elif isinstance(value, Tuple) and isinstance(other, Tuple) and len(value.items) == len(other.items):
                joined = tuple(self.join(x, y) for x, y in zip(other.items, value.items, strict=True))
                names = other.names if other.names == value.names else ()
                options[i] = Tuple(joined, names, other.closed and value.closed and other.names == value.names)
                return
            elif isinstance(value, Parameters) and isinstance(other, Parameters) and value.owner is other.owner:
                return
            elif isinstance(value, Unknown) and isinstance(other, Unknown):
                if value.data and other.data and value.node is None and other.node is None:
                    return
                if value.node is not None and other.node is not None:
                    options[i] = self.unknown(
                        other.origin, self.phi([other.node, value.node], certain=True), public=other.path == value.path
                    )
                    return
        options.append(value)

    def _join_tensors(self, a: Tensor, b: Tensor) -> Tensor:
        nodes = [n for n in (a.node, b.node) if n is not None]
        node = self.phi(nodes, certain=len(nodes) == 2) if nodes else None
        if node is not None and len(nodes) == 1:
            # of the tensor on the other path nothing is known
            node.dimensionless = False
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

    def one_of(self, values: list[Value]) -> Value | None:
        """The join of all values, None without any."""
        result: Value | None = None
        for value in values:
            result = value if result is None else self.join(result, value)
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


def _makes_models(option: Value) -> bool:
    return isinstance(option, (Module, Function, Class)) or (isinstance(option, Instance) and option.cls.is_module)


def _without_alike(options: list[Value]) -> list[Value]:
    """Of modules of the library that have no parameters one of each class: they compute the same."""
    kept: dict[object, Value] = {}
    for option in options:
        alike = isinstance(option, Module) and option.leaf is None and option.name in facts.MODULES_WITHOUT_PARAMETERS
        kept.setdefault(option.name if isinstance(option, Module) and alike else option, option)
    return list(kept.values())
