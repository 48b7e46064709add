"""Which ways lead from a graph to code that cannot be seen, and may back-propagate it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from codemods.graph.model.facts.gradients import FUNCTIONAL_GRADIENTS
from codemods.graph.model.facts.libraries import LOOKING_LIBRARIES, NUMERIC_LIBRARIES, is_logging
from codemods.graph.model.facts.python import CARRYING_LIBRARIES
from codemods.graph.model.kinds import NodeKind, UseKind
from codemods.graph.model.nodes import Node, Place
from codemods.graph.run.contents import ANY


class Way(Enum):
    """How a value gets out of sight."""

    ESCAPED = auto()
    """It goes where it can be kept and walked at any time."""
    STORED = auto()
    """It is put into something that cannot be seen."""
    MADE = auto()
    """It is what an unseen call made of a graph: what else that call made of it is unknown."""
    MODULE = auto()
    """A module that cannot be seen gets it."""
    CALL = auto()
    """A function that cannot be seen, or one that may do more than look, gets it."""


@dataclass(frozen=True, slots=True)
class WayOut:
    """One way out of sight: ``name`` is what gets the value, or says how; ``place`` where, if that is one place."""

    way: Way
    name: str
    place: Place | None = None


KEPT = frozenset({Way.ESCAPED, Way.STORED, Way.MADE, Way.MODULE})
"""The ways on which it may be kept; a plain call is thought to be over when it returns."""

_LOOKING = tuple(f"{library}." for library in LOOKING_LIBRARIES)

_OF_USES = {
    UseKind.STORED_UNSEEN: Way.STORED,
    UseKind.CALLED_UNSEEN: Way.MODULE,
    UseKind.UNSEEN_CALL: Way.CALL,
    UseKind.CALL: Way.CALL,
}


def ways_out(node: Node) -> Iterator[WayOut]:
    """The ways by which code that cannot be seen may come to ``node`` itself; what is computed from it has its own."""
    for escape in node.escapes:
        yield WayOut(Way.ESCAPED, escape.value)
    if node.kind is NodeKind.CALL:
        yield WayOut(Way.MADE, node.label, node.place)
    for use in node.uses:
        way = _OF_USES.get(use.kind)
        if way is None or use.detached or (use.kind is UseKind.CALL and only_looks(use.name)):
            continue
        yield WayOut(way, use.name, use.place)
    for carrier, place in node.stores:
        if carrier.name == ANY:
            yield WayOut(Way.STORED, "an unknown attribute", place)


def leaves_sight(nodes: Iterable[Node], ways: Container[Way] = KEPT) -> bool:
    """Whether one of ``nodes`` reaches code that cannot be seen by one of these ``ways``."""
    return any(out.way in ways for node in nodes for out in ways_out(node))


def only_looks(path: str) -> bool:
    """Whether the function with this public name only looks at its arguments, or returns them."""
    top = path.partition(".")[0]
    known = top == path or top in NUMERIC_LIBRARIES or top in CARRYING_LIBRARIES
    return known or is_logging(path) or computes(path)


def computes(path: str) -> bool:
    """Whether a function with this public name computes with what it gets, and never back-propagates it."""
    return path.startswith(_LOOKING) and not path.startswith(("torch.autograd.", *FUNCTIONAL_GRADIENTS))
