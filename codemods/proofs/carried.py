"""Values that one step leaves to the next together with a graph that ``backward`` has freed.

Shared by the rules ``carried-hidden-state`` and ``stored-graph``: what crosses from one turn of a loop to a later one,
what held it meanwhile, and what the flag ``retain_graph`` has to do with it.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from codemods.graph.model.kinds import CarrierKind, Marked, NodeKind, WalkKind
from codemods.graph.model.nodes import Carrier, Node, Place, Walk
from codemods.graph.model.opacity import opaque
from codemods.graph.model.trace import Reading, Trace
from codemods.graph.model.values import Tensor
from codemods.proofs.reach import SurePaths, gradient_read, origins, reach, spread, told_apart, weighted
from codemods.proofs.saving import saves_parameter
from codemods.proofs.turns import crossed, in_some_turns, named, of_a_changing_condition
from codemods.source import walking
from codemods.terms.findings import Promise


@dataclass(eq=False)
class Carry:
    """Something attached that a ``carrier`` held from one turn of ``loop`` to a later one.

    ``store`` wrote it, ``reading`` read it again; ``old`` is what was carried and ``child`` the first node made of it;
    ``freed_by`` is the last backward of the old turn that walked it and ``walk`` the later one that walks it again.
    ``graph`` is all that is walked again, ``soon`` what the first backward that comes to it
    walks; ``saving`` tells whether anything of it has saved tensors.
    """

    carrier: Carrier
    store: Place
    reading: Reading
    old: Node
    child: Node
    loop: ast.AST
    freed_by: Walk
    walk: Walk
    saving: bool
    graph: set[Node] = field(default_factory=set)
    edges: set[tuple[Node, Node]] = field(default_factory=set)
    soon: frozenset[Node] = frozenset()

    @property
    def key(self) -> tuple[Carrier, int]:
        """The carrier and the statement that stored it there: what these have in common is one value."""
        return self.carrier, id(self.store.statement)

    def add(self, other: Carry) -> None:
        """Note what another pair of turns shows of the same value."""
        self.edges |= other.edges
        self.saving |= other.saving
        self.graph |= other.graph

    @property
    def walked_in_some_turns(self) -> bool:
        """Whether the later backward stands under a condition that may change."""
        return in_some_turns(self.walk.place, self.loop)

    @property
    def read_in_some_turns(self) -> bool:
        """Whether the read by which the later backward finds the graph stands under a condition that may change."""
        return self.child.kind is not NodeKind.PHI and in_some_turns(self.child.place, self.loop, late=True)


_Twice = tuple[Walk, Node, bool, tuple[tuple[ast.AST, int], ...], int]
_Held = tuple[Node, frozenset[int], tuple[tuple[ast.AST, int], ...], int]


class Ledger:
    """What one run shows about carried values."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._reach: dict[int, set[Node]] = {}
        self._crossings: dict[Walk, list[tuple[Node, Node, ast.AST]]] = {}
        self._walked_again: dict[Walk, set[Node]] = {}
        self._kept_of: dict[Node, list[tuple[Reading, Place, Carrier]]] = {}
        self._twice: dict[_Twice, tuple[Walk, bool, frozenset[Node]] | None] = {}
        self._before: dict[Walk, list[tuple[Node, Node]]] = {}
        self._held_for: dict[_Held, list[tuple[Reading, Place, Carrier]]] = {}
        self._sure = SurePaths(trace.nodes)

    def reached(self, walk: Walk) -> set[Node]:
        """The nodes that a walk surely reaches."""
        if id(walk) not in self._reach:
            self._reach[id(walk)] = {node for node in reach(walk.roots) if node.leaf or walk.goes_through(node)}
        return self._reach[id(walk)]

    @cached_property
    def roots(self) -> frozenset[Node]:
        """What backwards started from."""
        walks = self.trace.walks
        return frozenset(root for walk in walks for root in walk.roots if walk.kind is WalkKind.BACKWARD)

    @cached_property
    def made_by(self) -> dict[ast.stmt | None, list[Node]]:
        """The nodes that each statement made, in order."""
        found: dict[ast.stmt | None, list[Node]] = {}
        for node in self.trace.nodes:
            found.setdefault(node.place.statement, []).append(node)
        return found

    @cached_property
    def stored_in(self) -> dict[Carrier, list[tuple[Place, Node]]]:
        """What each carrier came to hold, in order."""
        found: dict[Carrier, list[tuple[Place, Node]]] = {}
        for node in self.trace.nodes:
            for carrier, place in node.stores:
                found.setdefault(carrier, []).append((place, node))
        for entries in found.values():
            entries.sort(key=lambda entry: entry[0].clock)
        return found

    @cached_property
    def readings_of(self) -> dict[Node, list[Reading]]:
        """Where each node was read."""
        found: dict[Node, list[Reading]] = {}
        for reading in self.trace.readings:
            for node in reading.nodes:
                found.setdefault(node, []).append(reading)
        return found

    @cached_property
    def carries(self) -> list[Carry]:
        """What is walked again in a later turn, by what carried it."""
        walks = (w for w in self.trace.walks if any(crossed(earlier.place, w.place) for _, earlier in w.again))
        return as_one(carry for walk in walks for carry in self._carried_into(walk))

    @cached_property
    def perhaps(self) -> list[Carry]:
        """What is walked again on one of two paths into a turn, where a condition in the loop chooses between them;
        on the other path it is made anew, or cut. One for each pair of turns of each loop."""
        known = {carry.key for carry in self.carries}
        found = (carry for walk in self.trace.walks for carry in self._carried_into(walk, sometimes=True))
        return [carry for carry in found if carry.key not in known]

    def crossings(self, walk: Walk) -> list[tuple[Node, Node, ast.AST]]:
        """What a walk surely comes to and is computed of something that an earlier turn made; that, and the loop."""
        if walk not in self._crossings:
            self._crossings[walk] = [
                (child, old, loop)
                for child in sorted(self.reached(walk) if walk.again else (), key=lambda n: n.birth)
                for old in child.parents
                if not old.leaf and (loop := crossed(old.place, child.place)) is not None
            ]
        return self._crossings[walk]

    def _carried_into(self, walk: Walk, *, sometimes: bool = False) -> Iterator[Carry]:
        for child, old, loop in self.crossings(walk):
            if opaque(child) or (child.kind is NodeKind.PHI and not child.certain) is not sometimes:
                continue
            if sometimes and not of_a_changing_condition(child.place):
                continue
            if child.kind is not NodeKind.PHI or all(crossed(p.place, child.place) for p in child.parents):
                yield from self.carry(walk, child, old, loop, sometimes=sometimes)

    def _again(self, walk: Walk) -> set[Node]:
        """What a walk goes through as an earlier one did."""
        if walk not in self._walked_again:
            self._walked_again[walk] = {node for node, _ in walk.again}
        return self._walked_again[walk]

    def carry(self, walk: Walk, child: Node, old: Node, loop: ast.AST, *, sometimes: bool = False) -> Iterator[Carry]:
        """What carried ``old`` into the turn of ``loop`` that computes ``child`` of it; nothing where ``walk`` may not
        go through a freed graph there, or, unless ``sometimes`` will do, does so on some paths only."""
        sources = origins(old)
        if not sources or not all(crossed(o.place, child.place) for o in sources):
            return
        if any(map(told_apart, (old, *sources))):
            # the cut would put another object in its place
            return
        again = self._walked_twice(walk, child, old, sources, sometimes=sometimes)
        if again is None:
            return
        freed_by, saving, graph = again[0], again[1], set(again[2])
        if any(gradient_read(node, freed_by.place.clock) for node in (old, *sources)):
            # what is cut gathers no gradient, and refuses hooks
            return
        held = self._held(child, old, sources) or _met(child, old, sources)
        for reading, store, carrier in held:
            edges, soon = {(child, old)}, frozenset(graph)
            yield Carry(carrier, store, reading, old, child, loop, freed_by, walk, saving, graph, edges, soon)

    def _walked_twice(
        self, walk: Walk, child: Node, old: Node, sources: list[Node], *, sometimes: bool
    ) -> tuple[Walk, bool, frozenset[Node]] | None:
        """What ``walk`` goes through again of ``old``, the last walk that freed some of it, and whether that saved
        tensors; None where it may go through none of it.

        It is the same for all that one turn computes between two walks.
        """
        key = (walk, old, sometimes, child.place.turns(), bisect_left(self._moments, child.birth))
        if key not in self._twice:
            self._twice[key] = self._found_twice(walk, child, sources, sometimes=sometimes)
        return self._twice[key]

    @cached_property
    def _moments(self) -> list[int]:
        return sorted(walk.place.clock for walk in self.trace.walks)

    def _found_twice(
        self, walk: Walk, child: Node, sources: list[Node], *, sometimes: bool
    ) -> tuple[Walk, bool, frozenset[Node]] | None:
        again, graph = self._again(walk), set[Node]()
        freed_by: Walk | None = None
        saving = False
        for source in sources:
            mine = reach([source]) if sometimes else self._sure.below(source)
            walks = {n: w for n in mine if n in again and not n.leaf for w in [self._walked_before(n, child)] if w}
            if not walks or not all(walk.follows(w) for w in walks.values()):
                return None
            graph |= set(walks)
            for node, earlier in walks.items():
                if freed_by is None or earlier.place.clock > freed_by.place.clock:
                    freed_by = earlier
                saving |= node.saves and earlier.retains is False and earlier.creates is False
        assert freed_by is not None
        return freed_by, saving, frozenset(graph)

    def _walked_before(self, node: Node, child: Node) -> Walk | None:
        for walk in reversed(node.walks):
            if walk.place.clock < child.birth and crossed(walk.place, child.place):
                return walk if node in self.reached(walk) else None
        return None

    def _held(self, child: Node, old: Node, sources: list[Node]) -> list[tuple[Reading, Place, Carrier]]:
        """What held ``old``, where it was read for ``child``: the same for all that a statement computes in a turn."""
        kept = self._kept(old, sources)
        chain = frozenset(id(place.statement) for place in child.place.chain())
        read = bisect_right(kept, child.birth, key=lambda entry: entry[0].place.clock)
        key = (old, chain, child.place.turns(), read)
        if key not in self._held_for:
            self._held_for[key] = self._nearest(kept[:read], child, chain)
        return self._held_for[key]

    @staticmethod
    def _nearest(
        kept: list[tuple[Reading, Place, Carrier]], child: Node, chain: frozenset[int]
    ) -> list[tuple[Reading, Place, Carrier]]:
        found: dict[Carrier, tuple[Reading, Place, Carrier]] = {}
        for entry in kept:
            reading, _, carrier = entry
            if crossed(reading.place, child.place):
                continue
            # a test whether it is None reads it too
            closer = id(reading.place.statement) in chain
            if carrier not in found or (closer and id(found[carrier][0].place.statement) not in chain):
                found[carrier] = entry
        nearest = [entry for entry in found.values() if id(entry[0].place.statement) in chain]
        return nearest or list(found.values())

    def _kept(self, old: Node, sources: list[Node]) -> list[tuple[Reading, Place, Carrier]]:
        """The reads of ``old``, or of its ``sources``, in later turns than its own, in order: where what is read there
        was stored last before, and in what."""
        known = self._kept_of.get(old)
        if known is not None:
            return known
        stored = [(place, carrier) for node in (old, *sources) for carrier, place in node.stores]
        # of several at one moment the first counts
        stored.sort(key=lambda entry: -entry[0].clock)
        by_carrier: dict[Carrier, list[tuple[int, Place, Carrier]]] = {}
        elements: dict[int, list[tuple[int, Place, Carrier]]] = {}
        for number, (place, carrier) in enumerate(stored):
            by_carrier.setdefault(carrier, []).append((number, place, carrier))
            if carrier.kind is CarrierKind.ELEMENT:
                elements.setdefault(carrier.owner, []).append((number, place, carrier))
        readings = {id(r): r for node in (old, *sources) for r in self.readings_of.get(node, ())}
        found: list[tuple[Reading, Place, Carrier]] = []
        for reading in sorted(readings.values(), key=lambda r: r.place.clock):
            if not crossed(old.place, reading.place):
                continue
            direct = by_carrier.get(reading.carrier, ())
            best = next((entry for entry in direct if _stored_before(entry[1], reading.place)), None)
            if best is None:
                each = (elements.get(owner, ()) for owner in reading.containers)
                within = [entry for stores in each for entry in stores if _stored_before(entry[1], reading.place)]
                best = min(within, key=lambda entry: entry[0], default=None)
            if best is not None:
                found.append((reading, best[1], best[2]))
        self._kept_of[old] = found
        return found

    def later(self, carry: Carry) -> list[tuple[Place, Node]]:
        """What the same carrier came to hold in the turn that reads the old value."""
        return [
            (place, node)
            for place, node in self.stored_in.get(carry.carrier, ())
            if place.clock > carry.reading.place.clock and crossed(carry.old.place, place)
        ]

    def recurrent(self, carry: Carry) -> bool:
        """Whether the new value is computed from the old one through weights."""
        later = [node for _, node in self.later(carry)]
        after = set(carry.old.descendants()) - {carry.old} if later else set()
        return any(self._through_weights(node, after) for node in later)

    def grows(self, carry: Carry) -> bool:
        """Whether the new value is computed from the old one at all."""
        return any(carry.old in reach([node]) for _, node in self.later(carry))

    @staticmethod
    def _through_weights(new: Node, after: set[Node]) -> bool:
        """Whether weights act on what ``new`` is computed of, among all that comes ``after`` an old value."""
        between = spread([new], lambda node: () if opaque(node) else [p for p in node.parents if p in after])
        return new in after and any(weighted(node) and not opaque(node) for node in between)

    def changed(self, carry: Carry, by: Marked = Marked.PARAMETERS_CHANGED) -> bool:
        """Whether parameters were changed between the making of the old value and the walk that comes to it again: by
        a step or in place, or ``by`` a write through ``.data``."""
        first, last = carry.freed_by.place.clock, carry.walk.place.clock
        steps = self.trace.steps if by is Marked.PARAMETERS_CHANGED else ()
        if any(first <= s.place.clock <= last for s in steps if not s.unnoticed):
            return True
        return any(m.kind is by and first <= m.place.clock <= last for m in self.trace.marks)

    def promise(self, carry: Carry) -> Promise | None:
        """What cutting the carried value promises, None if nothing is wrong with it.

        A retained graph raises in the step that walks it first only if it saved parameters that have changed since.
        Where none of them was saved before the second step, that step learns through both before the third one raises.
        So it does, retained or freed, where the first step walks nothing.
        """
        freed_by = carry.freed_by
        if carry.saving:
            return Promise.BEHAVIOUR if self._learned_through(carry) else Promise.REPAIR
        if freed_by.retains is None or freed_by.creates is not False:
            return None
        if freed_by.retains is True:
            if self.changed(carry):
                raises = self._refused(carry) and not self._learned_through(carry)
                return Promise.REPAIR if raises else Promise.BEHAVIOUR
            return Promise.BEHAVIOUR if self.changed(carry, Marked.DATA_WRITTEN) else None
        return Promise.BEHAVIOUR

    def _refused(self, carry: Carry) -> bool:
        """Whether what the later walk comes to first saved parameters that surely change in every turn before it."""
        saving = {leaf for node in carry.soon if saves_parameter(node) for leaf in node.parents if leaf.leaf}
        first, last = carry.freed_by.place.clock, carry.walk.place.clock
        changes = [(s.place, s.leaves) for s in self.trace.steps if not s.unnoticed]
        changes += [(m.place, m.leaves) for m in self.trace.marks if m.kind is Marked.PARAMETERS_CHANGED]
        return any(
            first <= place.clock <= last
            # unknown parameters prove no change
            and not (leaves is None or saving.isdisjoint(leaves))
            and not in_some_turns(place, carry.loop)
            for place, leaves in changes
        )

    def _learned_through(self, carry: Carry) -> bool:
        """Whether a backward before the one that raises comes from a turn to the one before, which nothing walked."""
        edges = {(child.place.node, one.place.node) for child, old in carry.edges for one in (old, *origins(old))}
        for walk in self.trace.walks:
            if walk.place.clock >= carry.walk.place.clock:
                continue
            again = self._again(walk)
            if any((c.place.node, o.place.node) in edges and o not in again for c, o in self._of_before(walk)):
                return True
        return False

    @staticmethod
    def is_all(carry: Carry) -> bool:
        """Whether the later walk goes back to nothing but what is carried: who takes gradients of a kept graph, after
        each step anew, would be left without one."""
        cut = carry.edges
        left = spread(carry.walk.roots, lambda node: [p for p in node.parents if (node, p) not in cut])
        return not any(node.leaf for node in left)

    def _of_before(self, walk: Walk) -> list[tuple[Node, Node]]:
        """What a walk comes to that is computed of something of a turn before, with that: in another turn it may be a
        join of paths, and it may come from a turn of another loop."""
        if walk not in self._before:
            self._before[walk] = [
                (child, old)
                for child in self.reached(walk)
                for old in {one for parent in child.parents for one in self._one_of(parent)}
                if not old.leaf and crossed(old.place, child.place) and crossed(old.place, walk.place)
            ]
        return self._before[walk]

    def _one_of(self, node: Node) -> tuple[Node, ...]:
        return (node, *origins(node)) if node.kind is NodeKind.PHI else (node,)

    def surplus(self, carries: Iterable[Carry]) -> list[Walk]:
        """The walks whose ``retain_graph=True`` keeps alive nothing but what the cuts take away."""
        carries = list(carries)
        edges = {edge for carry in carries for edge in carry.edges}
        cut = {node for carry in carries for _, node in self.stored_in.get(carry.carrier, ())}
        found: dict[int, Walk] = {}
        for carry in carries:
            walk = carry.freed_by
            literal = walk.retains is True and walk.retain_argument is not None and walk.creates is False
            if literal and walk.call is not None and not self._needed(walk.call, edges, cut):
                found.setdefault(id(walk.call), walk)
        return list(found.values())

    def _needed(self, call: ast.Call, edges: set[tuple[Node, Node]], cut: set[Node]) -> bool:
        """Whether walks go a second time through what those at a call kept, also where the cuts are made."""

        def gone(parent: Node, node: Node) -> bool:
            stored = (o in cut and crossed(o.place, node.place) for o in origins(parent, sure=False))
            return (node, parent) in edges or all(stored)

        for number, walk in enumerate(self.trace.walks):
            earlier = {id(w) for w in self.trace.walks[:number] if w.call is call}
            if not earlier:
                continue
            left = spread(walk.roots, lambda node: [p for p in node.parents if not gone(p, node)])
            if any(not node.leaf and any(id(w) in earlier for w in node.walks) for node in left):
                return True
        return False


def as_one(carries: Iterable[Carry]) -> list[Carry]:
    """Carries; what several pairs of turns show of one value, together."""
    found: dict[tuple[Carrier, int], Carry] = {}
    for carry in carries:
        found.setdefault(carry.key, carry).add(carry)
    return list(found.values())


def _stored_before(store: Place, reading: Place) -> bool:
    """Whether a store is of an earlier turn than a read, and before it."""
    return store.clock <= reading.clock and crossed(store, reading) is not None


def _met(child: Node, old: Node, sources: list[Node]) -> list[tuple[Reading, Place, Carrier]]:
    """What held a value on one of two paths, where the other binds it anew and so nobody reads it there."""
    branch = child.place.statement
    if child.kind is not NodeKind.PHI or not isinstance(branch, ast.If):
        return []
    bound = _bound_in(branch.body) ^ _bound_in(branch.orelse)
    latest: dict[Carrier, Place] = {}
    for node in (old, *sources):
        for carrier, place in node.stores:
            name = f".{carrier.name}" if carrier.kind is CarrierKind.ATTRIBUTE else carrier.name
            if name in bound and crossed(place, child.place):
                latest[carrier] = max(latest.get(carrier, place), place, key=lambda p: p.clock)
    return [
        (Reading(carrier, child.place, Tensor(old), (old,), frozenset()), place, carrier)
        for carrier, place in latest.items()
    ]


def _bound_in(statements: list[ast.stmt]) -> set[str]:
    nodes = (n for statement in statements for n in walking.walk(statement))
    return {named(n) for n in nodes if isinstance(getattr(n, "ctx", None), ast.Store)}
