"""The places that keep attached values beyond their step: in a sum, in a container, as the best so far."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from codemods.graph.model.kinds import CarrierKind, NodeKind, SequenceKind
from codemods.graph.model.nodes import Carrier, Node, Place, Value, all_ancestors
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import GROWN, NAMED, Accumulation, Storing, Trace
from codemods.graph.model.values import (
    Instance,
    Join,
    Sequence,
    Tensor,
    Unknown,
    nodes_of,
    options_of,
)
from codemods.proofs.earlier import assigned
from codemods.proofs.reach import through_phi
from codemods.proofs.sums import Means
from codemods.proofs.syntax import DEFINITIONS, LOOPS, bindings, own_nodes, scope
from codemods.rules.attached_loss_total.needs import (
    HISTORY,
    TOTAL,
    Copy,
    Judge,
    Kept,
    Result,
    Run,
    needed_at,
    scalar_part,
)
from codemods.source import walking

Parts = tuple[tuple[ast.expr, Value], ...]
"""Expressions that are kept, with their values."""


class Places:
    """The places of one run that keep attached values: sums, containers, and the best so far."""

    def __init__(self, trace: Trace) -> None:
        self.run = Run(trace)
        self.judge = Judge(self.run)

    def read(self) -> Iterator[Result]:
        """What the run shows, place by place."""
        trace = self.run.trace
        if not trace.complete:
            # nothing is known of what would have come
            events: list[Accumulation | Storing] = [*self.run.grown, *trace.storings]
            yield from (needed_at(event.place) for event in events if event.parts)
        elif trace.walks:
            yield from self._totals()
            yield from self._histories()
            yield from self._bests()

    # sums

    def _totals(self) -> Iterator[Result]:
        by_place: dict[int, list[Accumulation]] = defaultdict(list)
        for event in self.run.grown:
            by_place[id(event.place.node)].append(event)
        means = Means(self.run.trace)
        for events in by_place.values():
            if any(map(means.averages, events)):
                continue
            if any(_of_a_library(event.old) for event in events):
                yield needed_at(events[0].place)
                continue
            for i, event in enumerate(events):
                attached = self.run.proven(nodes_of(event.added))
                if not attached or not event.parts or not nodes_of(event.new) or event.grad is not True:
                    continue
                begun = self._begun(event)
                parts = (*event.parts, *(begun or ()))
                kept = self.judge.kept(
                    TOTAL, event.place, ast.unparse(event.target), _verb(event), parts, attached, nodes_of(event.new)
                )
                around = events[:i], events[i + 1 :]
                # what reads its beginning only, reads it as a tensor
                kept.tensor = begun is not None or self._begins_attached(event) or _takes_tensors(event)
                outlives = partial(self._sum_outlives, event, attached, *around)
                yield from self.judge.results(kept, partial(bool, True) if begun is not None else outlives)

    def _begins_attached(self, event: Accumulation) -> bool:
        """Whether the sum may have started from something attached that is not a sum of its own."""
        older = (_held_by(node, event.carrier) for node in nodes_of(event.old))
        made = (n for node in older for n in through_phi(node) if n.kind is not NodeKind.PHI and not n.leaf)
        return any(id(n) not in self.run.sums for n in made)

    def _begun(self, event: Accumulation) -> Parts | None:
        """What a mean began with that holds the graph of an earlier step, as ``mean = loss if mean is None else ...``;
        None where it is no such mean, or begins in a way that cannot be mended with it."""
        found: list[tuple[ast.expr, Value]] = []
        file, target = event.place.frame.file, ast.unparse(event.target)
        older = [_held_by(node, event.carrier) for node in nodes_of(event.old)]
        for node in older:
            if node.leaf or not node.walks or not self.run.next_step(node.birth, event.place.clock, [node]):
                return None
            stored = [place for carrier, place in node.stores if carrier == event.carrier]
            for place in stored:
                begin = place.statement
                if any(walk.place.clock > place.clock for walk in node.walks):
                    # a later loss reads it: it learns
                    return None
                if begin is event.place.statement:
                    continue
                if place.frame.file is not file or not isinstance(begin, ast.Assign):
                    return None
                if [ast.unparse(name) for name in begin.targets] != [target]:
                    return None
                found.append((begin.value, Tensor(node, node.scalar)))
            if not stored:
                return None
        return tuple(found) if older else None

    def _sum_outlives(
        self, event: Accumulation, attached: list[Node], before: list[Accumulation], after: list[Accumulation]
    ) -> bool:
        """Whether the sum is still there when the next step has begun."""
        return (
            any(self._carried(event, later, attached) for later in after)
            or any(self._carried(former, event, self.run.proven(nodes_of(former.added))) for former in before)
            or self._never_reset(event, attached)
        )

    def _carried(self, first: Accumulation, later: Accumulation, attached: list[Node]) -> bool:
        """Whether the sum of ``first`` is still there when the next step has begun and ``later`` adds to it."""
        sums = set(nodes_of(first.new))
        there = all_ancestors(nodes_of(later.old))
        return not sums.isdisjoint(there) and self.run.next_step(first.place.clock, later.place.clock, attached)

    def _never_reset(self, event: Accumulation, attached: list[Node]) -> bool:
        """Whether nothing assigns the target anew in the loop whose turns are the steps."""
        around = self.run.loop_around(event.place, attached)
        place = event.place
        if isinstance(place.statement, ast.Return) and place.frame.call is not None:
            # total = add(total, loss)
            place = place.frame.call
        frame = place.frame
        if around is None or not any(around[2] is loop for loop, _ in place.loops):
            return False
        if not isinstance(event.target, ast.Name):
            return False
        given = bindings(around[2], event.target.id)
        return all(frame.file.parent(n) is place.statement for n in given if isinstance(n.ctx, ast.Store))

    # containers

    def _histories(self) -> Iterator[Result]:
        by_place: dict[int, list[Storing]] = defaultdict(list)
        grown = (*self.run.trace.accumulations, *self.run.trace.growths)
        summed = {id(a.place.statement) for a in grown if nodes_of(a.new)}
        for event in self.run.trace.storings:
            if id(event.place.statement) not in summed:
                by_place[id(event.place.node)].append(event)
        for events in by_place.values():
            for i, event in enumerate(events):
                attached = [n for n in self.run.proven(event.nodes) if n.scalar or scalar_part(n, event)]
                if not attached:
                    continue
                # an element of a tensor: what its readers get is a tensor whatever was written
                written = list(event.held) if event.method == "element" else []
                kept = self.judge.kept(HISTORY, event.place, _container(event), "keeps", event.parts, attached, written)
                # a set holds every tensor, and equal numbers once; who reads an object's attributes is not always seen
                kept.tensor = bool(written) or _in_set(event) or _in_object(event)
                kept.copies = _copies(event, {n for part in kept.parts for n in part.nodes})
                if _is_bare(event):
                    kept.holder = getattr(event.container, "oid", 0)
                around = events[:i], events[i + 1 :]
                yield from self.judge.results(kept, partial(self._element_outlives, kept, event, attached, *around))

    def _element_outlives(
        self, kept: Kept, event: Storing, attached: list[Node], before: list[Storing], after: list[Storing]
    ) -> bool:
        """Whether the element is still there when the next step has begun, unless another takes its place each time."""
        if any(_same_name(event, other) for other in (*before, *after)):
            return False
        if _in_object(event) and not kept.freed:
            # code that gets the object may walk what is left of its graph
            return False
        return (
            any(self._still_held(event, later) for later in after)
            or any(self._still_held(former, event) for former in before)
            or self._outlives_turns(event, attached, after)
        )

    def _still_held(self, first: Storing, later: Storing) -> bool:
        """Whether what ``first`` stored is there when the next step has begun and ``later`` stores something, in the
        same container or in one made of it: ``losses = sorted(losses)``."""
        attached = self.run.proven(first.nodes)
        if first.method == "element":
            # of a tensor: what that has become is computed from it
            still = not set(first.held).isdisjoint(all_ancestors(later.held))
        else:
            still = not set(attached).isdisjoint(through_phi(*later.held))
        return still and self.run.next_step(first.place.clock, later.place.clock, attached)

    def _outlives_turns(self, event: Storing, attached: list[Node], after: list[Storing]) -> bool:
        """Whether the container is older than the loop whose turns are the steps, and neither is anything taken from it
        there nor another, made there, in its place in the next turn.

        The simulation runs two turns; what a later turn does first, after a warm-up, is seen once.
        """
        around = self.run.loop_around(event.place, attached)
        if around is None or event.method in ("element", GROWN, NAMED) or _constant_key(event):
            return False
        first, last, _ = around
        oid = getattr(event.container, "oid", 0)
        there = [e for e in after if first <= e.place.clock < last]
        if there and all(getattr(e.container, "oid", oid) != oid and e.born >= first for e in there):
            return False
        return event.born < first and not any(o == oid and first <= at < last for o, at in self.run.trace.emptied)

    # the best so far

    def _bests(self) -> Iterator[Result]:
        for node in self.run.trace.nodes:
            if not node.certain or node.leaf or not node.scalar or not node.walks or not node.reads:
                continue
            for carrier, place in node.stores:
                statement = place.statement
                if not isinstance(statement, ast.Assign) or carrier.kind not in (
                    CarrierKind.LOCAL,
                    CarrierKind.GLOBAL,
                    CarrierKind.ATTRIBUTE,
                ):
                    continue
                part = assigned(statement, place.node)
                candidate = _candidate(part, carrier.name) if part is not None else None
                if candidate is not None:
                    part = candidate
                elif part is None or not _chosen(place, part):
                    continue
                walked = node.walks[0].place.clock
                if not any(c == carrier and r.clock > walked and _later_turn(place, r) for c, r in node.reads):
                    continue
                kept = self.judge.kept(
                    TOTAL, place, carrier.name, "holds on to", ((part, Tensor(node, True)),), [node], []
                )
                kept.tensor = True
                kept.keeper = carrier
                yield from self.judge.results(kept, lambda: True)


def _of_a_library(value: Value) -> bool:
    """Whether it may be an object that a library made, which adds up what it wants to: metrics, records."""
    if isinstance(value, Join):
        return any(map(_of_a_library, value.options))
    if not isinstance(value, Unknown) or value.node is not None or value.owner is not None or value.data:
        return False
    return bool(value.path) and not value.path.startswith("torch.")


def _verb(event: Accumulation) -> str:
    """``torch.min(best, loss)`` keeps both graphs, but adds up nothing."""
    function = event.place.node.func if isinstance(event.place.node, ast.Call) else None
    best = isinstance(function, ast.Attribute) and function.attr.removeprefix("f")[:3] in ("min", "max")
    return "holds on to" if best else "adds up"


def _takes_tensors(event: Accumulation) -> bool:
    """Whether the sum is made by a function, which may ask for tensors as ``torch.lerp`` does, also on other paths than
    the one that makes it."""
    if isinstance(event.place.statement, ast.Return):
        definition = event.place.frame.definition
        inside = own_nodes(definition.body) if isinstance(definition, DEFINITIONS) else ()
        return sum(isinstance(n, ast.Return) for n in inside) > 1
    return isinstance(event.place.node, ast.Call)


def _held_by(node: Node, carrier: Carrier | None) -> Node:
    """The node in a carrier that ``node`` is a multiple of; the node itself where that is unknown."""
    held = node
    while not any(c == carrier for c, _ in held.stores):
        if len(held.parents) != 1:
            return node
        held = held.parents[0]
    return held


def _in_set(event: Storing) -> bool:
    """Whether it is a set, however it was filled, that the value is put into."""
    kinds = {o.kind for o in options_of(event.container) if isinstance(o, Sequence)}
    shown = isinstance(event.place.frame.file.parent(event.value_expr), ast.Set)
    return event.method == "add" or shown or not kinds.isdisjoint((SequenceKind.SET, SequenceKind.FROZEN_SET))


def _in_object(event: Storing) -> bool:
    """Whether it is an attribute of an object that is put into the container."""
    return any(isinstance(o, Instance) and not o.cls.container for o in options_of(event.value))


#: What fits into a comprehension: ``losses``, ``self.losses.values()``.
_SHORT = (ast.Name, ast.Attribute, ast.Call, ast.expr_context)


def _copies(event: Storing, others: set[Node]) -> tuple[Copy, ...]:
    """The containers that a value is copied from; nothing where it has graphs other than theirs and ``others``."""
    file = event.place.frame.file
    found = []
    for copied in event.copies:
        source, whole = copied.expression, copied.whole
        of_method = isinstance(whole, ast.Call) and isinstance(whole.func, ast.Attribute)
        if of_method and not _is_plain_container(file, source):
            return ()
        if whole is not None and all(isinstance(n, _SHORT) for n in walking.walk(source)):
            found.append(Copy(file.path, file.span(whole), copied.pairs, ast.unparse(source), copied.mixed))
        else:
            found.append(Copy(file.path, file.span(source), copied.pairs, "", copied.mixed))
    covered = others.union(*(copied.nodes for copied in event.copies))
    return tuple(found) if covered.issuperset(n for n in event.nodes if not n.leaf) else ()


def _is_plain_container(file: ParsedFile, source: ast.expr) -> bool:
    """Whether a variable is only ever given a list or dict that is of no other class: so is what its ``copy`` gives."""
    if not isinstance(source, ast.Name):
        return False
    made = [file.parent(name) for name in bindings(scope(file, source), source.id)]
    shown = (ast.Dict, ast.List, ast.DictComp, ast.ListComp)
    return bool(made) and all(isinstance(m, ast.Assign) and isinstance(m.value, shown) for m in made)


def _container(event: Storing) -> str:
    node, statement = event.place.node, event.place.statement
    if event.method == "update" and isinstance(statement, ast.Expr) and event.place.node is event.value_expr:
        node = statement.value
    if event.method == GROWN:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        return ast.unparse(targets[0]) if targets[0] is not None else "a container"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("heappush", "heappushpop", "heapreplace") and node.args:
            return ast.unparse(node.args[0])
        # what has another name than the method is one that was kept before, of something else
        return ast.unparse(node.func.value) if node.func.attr == event.method else "a container"
    if isinstance(node, ast.Subscript):
        return ast.unparse(node.value)
    if isinstance(node, ast.AugAssign):
        return ast.unparse(node.target)
    return "a container"


def _is_bare(event: Storing) -> bool:
    """Whether tensors are put into the container as they are, not within another container."""
    values = [event.value]
    if event.method in ("extend", "__iadd__") and isinstance(event.value_expr, (ast.List, ast.Tuple)):
        given = {id(expression): value for expression, value in event.parts}
        values = [given.get(id(element), event.value) for element in event.value_expr.elts]
    return all(isinstance(o, (Tensor, Unknown)) and o.node is not None for v in values for o in options_of(v))


def _same_name(event: Storing, other: Storing) -> bool:
    """Whether both put something under the same name of the same dict."""
    if not event.method == other.method == NAMED:
        return False
    return not _names(event).isdisjoint(_names(other))


def _names(event: Storing) -> set[Carrier]:
    """The names of a dict that a storing put something under."""
    return {
        c for n in event.nodes for c, at in n.stores if c.kind is CarrierKind.ELEMENT and at.node is event.place.node
    }


def _constant_key(event: Storing) -> bool:
    node = event.place.node
    return event.method == "[]" and isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


def _chosen(place: Place, part: ast.expr) -> bool:
    """Whether a store is one of a maximum or minimum: under an ``if`` that compares what is stored, within a loop."""
    file = place.frame.file
    text = ast.unparse(part)
    inner = place.statement
    for outer in file.outward(inner, *DEFINITIONS, *LOOPS) if inner is not None else ():
        for test in walking.walk(outer.test) if isinstance(outer, ast.If) else ():
            if isinstance(test, ast.Compare) and any(ast.unparse(e) == text for e in (test.left, *test.comparators)):
                return not isinstance(test.ops[0], (ast.Is, ast.IsNot))
    return False


def _candidate(value: ast.expr, name: str) -> ast.expr | None:
    """What is new in ``min(best, new)`` or ``new if new < best else best``."""
    arms: list[ast.expr] = []
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("min", "max"):
        arms = value.args
    elif isinstance(value, ast.IfExp) and isinstance(value.test, ast.Compare):
        arms = [value.body, value.orelse]
    others = [a for a in arms if getattr(a, "id", getattr(a, "attr", "")) != name]
    return others[0] if len(arms) == 2 and len(others) == 1 else None


def _later_turn(first: Place, later: Place) -> bool:
    turns = {id(loop): turn for loop, turn in first.turns()}
    return any(id(loop) in turns and turn > turns[id(loop)] for loop, turn in later.turns())
