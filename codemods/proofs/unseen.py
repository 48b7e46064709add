"""Which ways lead from a graph to code that cannot be seen, and may back-propagate it; what such callers come to."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from codemods.graph.model.facts.gradients import FUNCTIONAL_GRADIENTS
from codemods.graph.model.facts.libraries import LOOKING_LIBRARIES, NUMERIC_LIBRARIES, is_logging
from codemods.graph.model.facts.python import CARRYING_LIBRARIES
from codemods.graph.model.kinds import CarrierKind, NodeKind, UseKind
from codemods.graph.model.nodes import Carrier, Node, Place
from codemods.graph.model.trace import Trace
from codemods.graph.run.contents import ANY
from codemods.proofs.syntax import FUNCTIONS
from codemods.source.walking import walk


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


class Outside:
    """The callers of a run that cannot be seen, and what they have."""

    def __init__(self, trace: Trace) -> None:
        ran = {frame.fid for frame in trace.frames}
        called = [f for f in trace.frames if f.root or (f.call is not None and f.call.frame.fid not in ran)]
        self.frames = {frame.fid for frame in called}
        """The calls that they make."""
        self.objects = trace.handed | {getattr(frame.receiver, "oid", None) for frame in called} - {None}
        """What they certainly have."""
        first = trace.frames[0] if trace.frames else None
        # what is run for itself has a longer name
        self._script = first if first is not None and first.file.path == trace.root else None
        self._files = {frame.file for frame in trace.frames}

    @cached_property
    def any(self) -> bool:
        """Whether there are such callers."""
        return bool(self.frames or self.objects)

    def keeps(self, carrier: Carrier, place: Place) -> bool:
        """Whether a caller may come to what is stored in ``carrier`` at ``place``.

        So it is with a global variable, and with an attribute or an element of what was there before the call; not with
        a variable of the script itself, which nothing imports: only its own functions read it.
        """
        if carrier.kind is CarrierKind.LOCAL:
            return False
        if carrier.kind is CarrierKind.GLOBAL:
            return self.any and not self._of_the_script(carrier)
        return carrier.owner in self.objects or any(
            carrier.owner < one.frame.fid for one in place.chain() if one.frame.fid in self.frames
        )

    def _of_the_script(self, carrier: Carrier) -> bool:
        """Whether a global variable is one of the script that no function reads, and nothing asks for all of them."""
        script = self._script
        if script is None or carrier.owner != script.module_globals or self.reflected:
            return False
        return carrier.name not in script.file.once(_in_functions, script.file.tree)

    @cached_property
    def reflected(self) -> bool:
        """Whether code asks for all variables of a module, or runs a text that may."""
        return any(file.once(_reflects, file.tree) for file in self._files)

    def keeps_node(self, node: Node, *, elements: bool = True) -> bool:
        """The same for a node, wherever it is stored; with or without the elements of containers."""
        return any(
            self.keeps(carrier, place)
            for carrier, place in node.stores
            if elements or carrier.kind in (CarrierKind.GLOBAL, CarrierKind.ATTRIBUTE)
        )


def _in_functions(tree: ast.AST) -> set[str]:
    """The names that stand in the functions and classes of a file."""
    inside = (n for n in walk(tree) if isinstance(n, (*FUNCTIONS, ast.ClassDef)))
    return {n.id for one in inside for n in walk(one) if isinstance(n, ast.Name)} | {
        name for n in walk(tree) if isinstance(n, ast.Global) for name in n.names
    }


def _reflects(tree: ast.AST) -> bool:
    return any(_asks_for_all(node) for node in walk(tree))


def _asks_for_all(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in ("globals", "locals", "exec", "eval")
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("vars", "dir") and not node.args
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any(alias.name == "__main__" for alias in node.names) or getattr(node, "module", "") == "__main__"
    if isinstance(node, ast.Attribute) and node.attr in (
        "__defaults__",
        "__kwdefaults__",
        "__closure__",
        "__globals__",
    ):
        return True
    return isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.modules", "sys._getframe", "inspect.stack")
