"""What a run records graphs for, stretch by stretch: for a backward, for what looks at gradients, or for nothing."""

from __future__ import annotations

import ast
import itertools
import re
from bisect import bisect_left
from typing import Any

from codemods.graph import facts
from codemods.graph.facts import WITH_INDICES
from codemods.graph.trace import Forward, Place, Trace
from codemods.graph.values import Node, all_ancestors, all_descendants

_NEED_GRADIENTS = {
    "requires_grad": "an input asks for gradients",
    "grad-read": ".grad is read",
    "hook": "a gradient hook is registered",
    "module-hook": "a hook is registered",
    "enable_grad": "gradients are switched on inside",
    "set_grad_enabled": "gradients are switched on inside",
    "functional-gradient": "a functional gradient is taken",
    "graph-read": "the graph itself is read",
    "requires_grad-read": "the code branches on requires_grad",
    "gradients-changed": "gradients are changed",
}

_OTHER_KERNELS = frozenset(
    [
        "LSTM",
        "GRU",
        "MultiheadAttention",
        "TransformerEncoder",
        "TransformerEncoderLayer",
        "Transformer",
        "TransformerDecoder",
    ]
)
"""Modules that choose other kernels without gradients: results differ by 1e-8 to 5e-7 (ran; GRU was seen identical)."""

_LOOK_AT_NOTHING = frozenset(
    [
        "detach",
        "data",
        "method:size",
        "method:dim",
        "method:numel",
        "method:nelement",
        "method:type",
        "method:get_device",
    ]
)
"""Uses of a tensor that do not look at its values."""

_LEARNS = re.compile(r"^call:(.*[._])?(learn|train|fit|optimi[sz]e|minimi[sz]e|backprop)(_|$)")
"""Calls of code that cannot be seen, by whose names it may well walk what it is given."""

_STEPS = re.compile(r"\b\w*optim\w*\b|\bopt\b|\.parameters\(")
"""Arguments beside which a loss is given away to be walked: ``scaler(loss, optimizer)``."""

_LOOKS = re.compile(
    r"^call:([\w.]*[._])?(print|assert\w*|save\w*|show|im(show|write|save)|display|dump|write\w*|plot\w*|draw\w*|log(ged|ging)?"
    r"|report\w*|evaluat\w*|process\w*|visuali[sz]e\w*|record\w*)(_\w*)?$"
)
"""Calls of code that cannot be seen, and of whose results nothing is made, that by their names only look."""


class Recordings:
    """What was recorded, needed and tampered with, as sorted clocks, so that any stretch of a run is judged at once."""

    def __init__(self, trace: Trace) -> None:
        needed = {id(n) for n in all_ancestors([n for n in trace.nodes if n.walks or n.escapes or _is_kept_unseen(n)])}
        real = [n for n in trace.nodes if n.kind not in ("leaf", "phi", "argument")]
        self._made = [n for n in real if n.certain]
        self._made.sort(key=lambda n: n.birth)
        self._births = [n.birth for n in self._made]
        self._kernels = sorted(n.birth for n in real if n.label in _OTHER_KERNELS)
        self._needed = sorted(n.birth for n in real if id(n) in needed)
        self._walks = sorted(w.place.clock for w in trace.walks)
        self._steps = sorted(s.place.clock for s in trace.steps)
        self._marks = sorted((m.place.clock, m.kind) for m in trace.marks if m.kind in _NEED_GRADIENTS)
        origins = [
            origin
            for walk in trace.walks
            if walk.kind == "backward"
            for node in walk.seen
            for origin in node.shadow
            if isinstance(origin, Node)
        ]
        self._taught = {id(node) for node in all_ancestors(origins)}

    def made_in(self, first: int, last: int) -> list[Any]:
        """The certain nodes made in a stretch."""
        return self._made[bisect_left(self._births, first) : bisect_left(self._births, last)]

    def applies_layers(self, first: int, last: int) -> bool:
        """Whether a module was applied in a stretch."""
        return any(n.kind == "module" for n in self.made_in(first, last))

    def taught(self, nodes: list[Any]) -> bool:
        """Whether something detached from one of the nodes (or computed of it) takes part in a loss."""
        return any(id(n) in self._taught for n in nodes)

    def judge(self, first: int, last: int) -> tuple[str, dict[str, Any]]:
        """``fault`` (graphs recorded for nothing), ``needed``, or ``quiet`` where nothing was recorded."""
        low = bisect_left(self._marks, (first, ""))
        marked = low < len(self._marks) and self._marks[low][0] < last
        if _count(self._walks, first, last):
            return "needed", {"walks": True, "marked": marked, "steps": _count(self._steps, first, last) > 0}
        if marked:
            return "needed", {"why": _NEED_GRADIENTS[self._marks[low][1]], "marked": True}
        if _count(self._needed, first, last):
            return "needed", {"flows": True}
        if not self.made_in(first, last):
            return "quiet", {}
        return "fault", {"kernels": _count(self._kernels, first, last) > 0}


def source(made: list[Node], forward: Forward, stretches: list[tuple[int, int]]) -> str:
    """Where the graphs come from that go into a forward: ``trained`` if a backward walks one of them, ``evaluated`` if
    it has no parameters itself, and all of them come from other forwards (``stretches`` of the run) that no backward
    walks; else empty."""
    before = {p for n in made for p in n.parents if p.birth < forward.first}
    if any(walk.kind == "backward" for n in all_ancestors(before) if not n.leaf for walk in n.walks):
        return "trained"
    stack, seen, given = list(before), set(before), False
    while stack:
        node = stack.pop()
        if any(first <= node.birth < last for first, last in stretches):
            given = True
        elif node.leaf or not node.parents:
            return ""
        else:
            more = [p for p in node.parents if p not in seen]
            seen.update(more)
            stack.extend(more)
    return "evaluated" if given else ""


def _is_kept_unseen(node: Node) -> bool:
    """Whether it was handed, with its graph, to a container that cannot be followed or to code that may walk it."""
    return any(kind.startswith("stored-unseen") or _may_walk(kind, place) for kind, place in node.uses)


def is_dropped(place: Place) -> bool:
    """Whether nothing is made of what a call returns."""
    return isinstance(place.frame.file.parent(place.node), ast.Expr)


def _may_walk(kind: str, place: Place) -> bool:
    """Whether code that cannot be seen may well walk what it is given: by its name, because it gets an optimizer or
    parameters as well, or because nothing is made of what it returns, so that it must have done something."""
    if not kind.startswith("call:"):
        return False
    if _LEARNS.search(kind):
        return True
    call = place.node
    if not isinstance(call, ast.Call) or _is_onlooker(kind[5:]):
        return False
    if any(_STEPS.search(ast.unparse(a)) for a in (*call.args, *(k.value for k in call.keywords))):
        return True
    return is_dropped(place) and not _LOOKS.search(kind)


def _is_onlooker(name: str) -> bool:
    return name.partition(".")[0] in facts.NUMERIC_LIBRARIES or name.rpartition(".")[2] in facts.LOGGING_METHODS


def picks(made: list[Any], after: int) -> bool:
    """Whether indices are taken of a forward's results, from a moment on: a class, a token, an action."""
    return any(
        node.label in WITH_INDICES and not node.scalar and node.birth >= after
        for node in itertools.islice(all_descendants(made), 2000)
    )


def what_reads(made: list[Any], after: int, since: int = 0) -> str:
    """What reads the results of a forward from the moment ``since`` on: ``data`` where tensors are taken out,
    ``number`` for losses only, or empty."""
    found = ""
    for node in itertools.islice(all_descendants(made), 2000):
        kinds = (kind.removeprefix("detached:") for kind, place in node.uses if place.clock >= since)
        if node.escapes or any(kind not in _LOOK_AT_NOTHING for kind in kinds):
            if not node.scalar:
                return "data"
            found = "number"
    return "data" if picks(made, after) else found


def _count(clocks: list[int], first: int, last: int) -> int:
    return bisect_left(clocks, last) - bisect_left(clocks, first)


def severity(verdict: str) -> int:
    return ("quiet", "fault", "covered", "needed").index(verdict)
