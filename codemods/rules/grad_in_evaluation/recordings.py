"""What a run records graphs for, stretch by stretch: for a backward, for what looks at gradients, or for nothing."""

from __future__ import annotations

import ast
import enum
import itertools
import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from codemods.graph.model.facts.layers import OTHER_KERNELS
from codemods.graph.model.facts.operations import WITH_INDICES
from codemods.graph.model.kinds import CarrierKind, Marked, NodeKind, UseKind, WalkKind
from codemods.graph.model.nodes import Frame, Node, Place, Use, Value, all_ancestors, all_descendants
from codemods.graph.model.trace import Forward, Trace
from codemods.graph.model.values import Instance, Module, Optimizer, Parameters, Unknown, options_of
from codemods.proofs.gradients import meant_for_idle_steps
from codemods.proofs.marks import clearings
from codemods.proofs.observations import Shows
from codemods.proofs.reach import folds, spread
from codemods.proofs.recomputing import recomputing
from codemods.proofs.syntax import DEFINITIONS
from codemods.proofs.unseen import Way, leaves_sight, ways_out
from codemods.rules.grad_in_evaluation.presumed import made_unseen, presumed_forwards
from codemods.source.walking import children
from codemods.terms.words import words

_NEED_GRADIENTS = frozenset((
    Marked.REQUIRES_GRAD, Marked.GRADIENT_READ, Marked.HOOK, Marked.MODULE_HOOK, Marked.ENABLE_GRAD,
    Marked.SET_GRAD_ENABLED, Marked.FUNCTIONAL_GRADIENT, Marked.GRAPH_READ, Marked.REQUIRES_GRAD_READ,
    Marked.GRADIENTS_CHANGED, Marked.GRAD_MODE_READ,
))  # fmt: skip
"""What code asks for, takes or looks at that is not there without a graph."""

_NOT_LOOKING = words(
    "size dim numel nelement type get_device new new_zeros new_ones new_tensor new_full new_empty register_hook "
    "retain_grad register_post_accumulate_grad_hook"
)
"""Methods of a tensor that do not look at its values."""

_SIZES = words("shape size ndim dim numel nelement __len__")
"""What asks for the shape of a tensor."""

_LEARNS = frozenset(("learn", "train", "fit", "optimize", "optimise", "minimize", "minimise", "backprop"))
"""Methods of what cannot be seen that may well walk what they are given, whatever is made of their result. That it is
called so can only keep a rewrite from being made."""

_MOST = 2000
"""So much of what is computed of a forward is looked at. What lies beyond could only make a finding more of it, or make
advice fixable."""


class SiteOf(enum.Enum):
    """What of a place an observation is about."""

    FUNCTION = "function"
    STATEMENT = "statement"
    FORWARD = "forward"
    OPEN = "open"
    """A function that hands out graphs."""
    COVERED = "covered"
    """A function that somebody calls with gradients switched off."""
    LEAVING = "leaving"
    """A statement that makes graphs which outlive its function."""
    PARTIAL = "partial"
    """A function that was followed in part."""
    PARTIAL_SCRIPT = "partial-script"
    TELLS_WRAPPERS = "tells-wrappers"
    """A file that tells decorated functions from others."""


class _Fate(enum.Enum):
    NEEDED = "needed"
    DOUBTED = "doubted"


class Recordings:
    """What was recorded, needed and tampered with, as sorted clocks, so that any stretch of a run is judged at once."""

    def __init__(self, trace: Trace) -> None:
        blind = max(trace.blind, default=-1)
        idle = recomputing(trace)
        given = _Given(trace, idle)
        fates = {n: _Fate.NEEDED if _was_there(n, blind) else given.fate(n) for n in trace.nodes}
        # a step that finds no gradient was meant to: its forwards are no evaluation, their loss is cut off
        wanted = [n for n, fate in fates.items() if fate is _Fate.NEEDED]
        needed = {id(n) for n in all_ancestors([*wanted, *meant_for_idle_steps(trace)])}
        doubted = {id(n) for n in all_ancestors([n for n, fate in fates.items() if fate is _Fate.DOUBTED])}
        real = [n for n in trace.nodes if n.kind not in (NodeKind.LEAF, NodeKind.PHI, NodeKind.ARGUMENT)]
        self._made = [n for n in real if n.certain]
        self._made.sort(key=lambda n: n.birth)
        self._births = [n.birth for n in self._made]
        self._presumed = {f.place.clock: made_unseen(f, real) for f in presumed_forwards(trace)}
        self._presumed_births = sorted(n.birth for made in self._presumed.values() for n in made)
        self._kernels = sorted(n.birth for n in real if n.label in OTHER_KERNELS or folds(n))
        self._watched = any(m.kind is Marked.SAVED_TENSORS_HOOKS for m in trace.marks)
        self._padded = sorted(m.place.clock for m in trace.marks if m.kind is Marked.PADDED)
        self._needed = sorted(n.birth for n in real if id(n) in needed)
        self._doubted = sorted(n.birth for n in real if id(n) in doubted)
        self._handed = _handed(trace)
        self._outliving: dict[Frame, list[int]] = {}
        self._trace = trace
        self._read: dict[str, bool] = {}
        self._walks = sorted(w.place.clock for w in trace.walks)
        self._steps = sorted(s.place.clock for s in trace.steps)
        caught = [m for m in trace.marks if m.kind is Marked.ERROR_CAUGHT]
        self._caught = sorted(m.place.clock for m in caught)
        self._refused = {id(n) for n in all_ancestors(n for m in caught for n in m.of or ())}
        needing = [m for m in trace.marks if m.kind in _NEED_GRADIENTS and m.place.node not in idle]
        self._marks = sorted(m.place.clock for m in needing)
        backwards = [walk for walk in trace.walks if walk.kind is WalkKind.BACKWARD]
        # a gradient that a backward is given says what is learned as a loss does
        weighed = list(all_ancestors(node for walk in backwards for node in walk.weighed))
        losses = (*(node for walk in backwards for node in walk.seen), *weighed)
        detached = (origin for node in losses for origin in node.shadow if isinstance(origin, Node))
        self._taught = {id(node) for node in all_ancestors([*detached, *weighed])}
        self._forwards = united((f.first, f.last) for f in trace.forwards if f.grad is not False)
        self._walked: dict[Node, bool] = {}

    def made_in(self, first: int, last: int) -> list[Node]:
        """The certain nodes made in a stretch."""
        return self._made[bisect_left(self._births, first) : bisect_left(self._births, last)]

    def presumed_in(self, forward: Forward) -> list[Node]:
        """What a forward is presumed to have made."""
        return self._presumed.get(forward.place.clock, [])

    def applies_layers(self, first: int, last: int) -> bool:
        """Whether a module was applied in a stretch."""
        return any(n.kind is NodeKind.MODULE for n in self.made_in(first, last))

    def outliving(self, frame: Frame) -> list[int]:
        """The moments at which graphs were made in a call that outlive it, or that these are computed of."""
        if frame not in self._outliving:
            left = [*frame.left, *(n for name, held in frame.held.items() if not self._all_read(name) for n in held)]
            own = spread(left, lambda node: node.parents if node.birth >= frame.birth else ())
            # a choice among graphs that were there before is none of its own
            kinds = (NodeKind.LEAF, NodeKind.PHI, NodeKind.PART, NodeKind.ARGUMENT)
            self._outliving[frame] = sorted(n.birth for n in own if n.birth >= frame.birth and n.kind not in kinds)
        return self._outliving[frame]

    def _all_read(self, name: str) -> bool:
        """Whether all code that reads an attribute of that name has run: what it does with what lies there is seen."""
        if self._trace.blind:
            return False
        if name not in self._read:
            files = {frame.file for frame in self._trace.frames}
            ran = {frame.definition for frame in self._trace.frames}
            readers = (reader for file in files for reader in file.once(_readers, file.tree).get(name, ()))
            self._read[name] = all(reader in ran for reader in readers)
        return self._read[name]

    def leaves(self, frame: Frame, first: int, last: int) -> bool:
        """Whether graphs made in a stretch of a call outlive it."""
        return _count(self.outliving(frame), first, last) > 0

    def caught(self, nodes: list[Node]) -> bool:
        """Whether something is asked of what one of the nodes became that only a graph refuses, and code catches it."""
        return any(id(n) in self._refused for n in nodes)

    def taught(self, nodes: list[Any]) -> bool:
        """Whether something detached from one of the nodes (or computed of it) takes part in a loss."""
        return any(id(n) in self._taught for n in nodes)

    def judge(self, first: int, last: int) -> tuple[Shows, dict[str, Any]]:
        """A fault where graphs are recorded for nothing, and what the rule wants to remember of it.

        A fault is ``doubted`` where code that cannot be seen gets what was recorded, and does something with it;
        ``handed`` where it gets a model, of which it may take gradients, as attacks on it do. It is ``presumed`` where
        all that was recorded was so by methods that cannot be seen, and ``caught`` where code may catch an error that
        only gradients cause.
        """

        def has(clocks: list[int]) -> bool:
            return bisect_left(clocks, last) > bisect_left(clocks, first)

        if has(self._walks):
            return Shows.NEEDED, {"walks": True, "marked": has(self._marks), "steps": has(self._steps)}
        if has(self._marks):
            return Shows.NEEDED, {"marked": True}
        if has(self._needed):
            return Shows.NEEDED, {}
        if any(start < first and last < end and _count(self._needed, last, end) for start, end in self._trace.caching):
            # other forwards share what it computes from its weights
            return Shows.NEEDED, {"marked": True}
        presumed = not self.made_in(first, last)
        if presumed and not has(self._presumed_births):
            return Shows.NOTHING, {}
        if self._watched:
            # hooks see the tensors that are saved for a backward
            return Shows.NEEDED, {"marked": True}
        return Shows.FAULT, {
            "kernels": has(self._kernels), "padding": has(self._padded), "doubted": has(self._doubted),
            "handed": has(self._handed), "presumed": presumed, "caught": has(self._caught),
        }  # fmt: skip

    def source(self, made: list[Node], forward: Forward) -> str:
        """Where the graphs come from that go into a forward: ``trained`` if a backward walks one of them, ``evaluated``
        if it has no parameters itself, and all of them come from other forwards that no backward walks; else empty."""
        before = {p for n in made for p in n.parents if p.birth < forward.first}
        if self._any_walked(before):
            return "trained"
        stack, seen, given = list(before), set(before), False
        while stack:
            node = stack.pop()
            if self._in_forward(node.birth):
                given = True
            elif node.leaf or not node.parents:
                return ""
            else:
                more = [p for p in node.parents if p not in seen]
                seen.update(more)
                stack.extend(more)
        return "evaluated" if given else ""

    def _any_walked(self, nodes: Iterable[Node]) -> bool:
        """Whether a backward walks one of ``nodes``, or what one is computed from. What was made before any forward ran
        is no output: a parameter that was moved to a device."""
        known = self._walked
        began = self._forwards[0][0] if self._forwards else 0
        fresh: dict[Node, None] = {}
        stack = [node for node in nodes if node not in known]
        while stack:
            node = stack.pop()
            if node not in fresh:
                fresh[node] = None
                stack += [parent for parent in node.parents if parent not in known]
        for node in sorted(fresh, key=lambda n: n.birth):
            made = not node.leaf and node.birth >= began
            own = made and any(walk.kind is WalkKind.BACKWARD for walk in node.walks)
            known[node] = own or any(known[parent] for parent in node.parents)
        return any(known[node] for node in nodes)

    def _in_forward(self, moment: int) -> bool:
        """Whether a forward ran then that records graphs."""
        before = bisect_right(self._forwards, (moment, math.inf))
        return before > 0 and moment < self._forwards[before - 1][1]


def united(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same moments in stretches that do not overlap, in their order."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(stretches):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def is_loss_of_others(made: list[Node], first: int) -> bool:
    """Whether a forward from the moment ``first`` on has no parameters, and gets graphs that were made before it."""
    before = [p for n in made for p in n.parents if p.birth < first]
    return bool(before) and not any(p.leaf for p in before)


def _readers(tree: ast.AST) -> dict[str, list[ast.AST]]:
    """The functions that read attributes, by the name of the attribute."""
    found: dict[str, list[ast.AST]] = defaultdict(list)
    stack: list[tuple[ast.AST, ast.AST | None]] = [(tree, None)]
    while stack:
        node, function = stack.pop()
        if isinstance(node, DEFINITIONS):
            function = node
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and function is not None:
            found[node.attr].append(function)
        stack.extend((child, function) for child in children(node))
    return found


def _was_there(node: Node, moment: int) -> bool:
    """Whether it was stored by then where code that was not entered may find it."""
    return any(place.clock <= moment and carrier.kind is not CarrierKind.LOCAL for carrier, place in node.stores)


def is_dropped(place: Place) -> bool:
    """Whether the result of a call is dropped."""
    return place.frame.file.is_statement(place.node)


def _handed(trace: Trace) -> list[int]:
    """The moments at which code that cannot be seen has a model to run: where it gets one, and where what it made of
    one runs, but for what is proven to be a module."""
    found = [handing.place.clock for handing in trace.handings if handing.models]
    for forward in trace.forwards:
        within = forward.module.within if isinstance(forward.module, (Module, Instance, Unknown)) else None
        if within is not None and not within.as_module:
            found.append(forward.first)
    return sorted(found)


class _Given:
    """What code that cannot be seen may do with the graphs that it is given."""

    def __init__(self, trace: Trace, idle: frozenset[ast.AST]) -> None:
        self._idle = idle
        stepping = [step.optimizer for step in trace.steps]
        stepping += [mark.by for mark in clearings(trace) if not is_module(mark.by)]
        steppers = {getattr(value, "oid", 0) for value in stepping} - {0}
        self._armed: set[ast.AST] = set()
        self._moduled: set[ast.AST] = set()
        for handing in trace.handings:
            options = [o for value in handing.given for o in options_of(value)]
            if any(isinstance(o, (Optimizer, Parameters)) or getattr(o, "oid", 0) in steppers for o in options):
                self._armed.add(handing.place.node)
            if any(is_module(o) for o in options):
                self._moduled.add(handing.place.node)

    def fate(self, node: Node) -> _Fate | None:
        """``needed`` where a graph is walked or may be kept to be walked; ``doubted`` where that depends on code that
        cannot be seen, and that got nothing to step with."""
        history = any(
            use.kind is UseKind.HISTORY_READ and not use.detached and use.place.node not in self._idle
            for use in node.uses
        )
        if node.walks or history or leaves_sight([node], (Way.ESCAPED, Way.STORED)):
            return _Fate.NEEDED
        fates = {self._called(out.name, out.place) for out in ways_out(node) if out.way is Way.CALL and out.place}
        return next((fate for fate in _Fate if fate in fates), None)

    def _called(self, name: str, place: Place) -> _Fate | None:
        """What a call may do: anything where it gets an optimizer or parameters as well; where nothing is made of what
        it returns, it must have done something."""
        if place.node in self._armed or name.rpartition(".")[2] in _LEARNS:
            return _Fate.NEEDED
        if not isinstance(place.node, ast.Call) or not is_dropped(place):
            return None
        return _Fate.NEEDED if place.node in self._moduled else _Fate.DOUBTED


def is_module(value: Value | None) -> bool:
    if isinstance(value, Unknown):
        return value.module is not None
    return isinstance(value, Module) or (isinstance(value, Instance) and value.cls.is_module)


def _looks_at_nothing(use: Use) -> bool:
    """Whether a use of a tensor does not look at its values."""
    plain = use.kind in (UseKind.DETACH, UseKind.DATA, UseKind.ATTRIBUTE)
    return plain or (use.kind is UseKind.METHOD and use.name in _NOT_LOOKING)


def picks(made: list[Any], after: int) -> bool:
    """Whether indices are taken of a forward's results, from a moment on: a class, a token, an action."""
    return any(
        node.label in WITH_INDICES and not node.scalar and node.birth >= after
        for node in itertools.islice(all_descendants(made), _MOST)
    )


def what_reads(made: list[Any], after: int, since: int = 0) -> str:
    """What reads the results of a forward from the moment ``since`` on: ``data`` where tensors are taken out,
    ``number`` for losses only, or empty."""
    found = ""
    for node in itertools.islice(all_descendants(made), _MOST):
        uses = (use for use in node.uses if use.place.clock >= since and not _goes_on(node, use.place))
        if node.escapes or not all(map(_looks_at_nothing, uses)):
            if not node.scalar:
                return "data"
            found = "number"
    return "data" if picks(made, after) else found


def is_sized(made: list[Any], forward: Place) -> bool:
    """Whether something else than a forward itself asks for the shape of its results."""
    return any(
        use.name in _SIZES and all(place.node is not forward.node for place in use.place.chain())
        for node in itertools.islice(all_descendants(made), _MOST)
        for use in node.uses
    )


def is_named(made: list[Any], after: int) -> bool:
    """Whether something that holds the graph of a forward is kept under a name once that is over."""
    return any(
        place.clock >= after for node in itertools.islice(all_descendants(made), _MOST) for _, place in node.stores
    )


def _goes_on(node: Node, place: Place) -> bool:
    """Whether a use is a call that cannot be seen and whose result, with the graph, is used: what reads that counts."""
    return not is_dropped(place) and any(c.kind is NodeKind.CALL and c.place.node is place.node for c in node.children)


def _count(clocks: list[int], first: int, last: int) -> int:
    return bisect_left(clocks, last) - bisect_left(clocks, first)


def severity(shows: Shows, facts: dict[str, Any]) -> int:
    """How much one judgement of a place weighs beside others of it: what is proven more than what is presumed."""
    weight = (Shows.NOTHING, Shows.FAULT, Shows.NEEDED).index(shows)
    return 2 * weight - bool(facts.get("presumed"))
