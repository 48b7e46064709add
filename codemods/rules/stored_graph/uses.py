"""What becomes of an attached value that is stored: in its own step, in later ones, and in code that cannot be seen."""

from __future__ import annotations

import ast

from codemods.graph.model.kinds import NodeKind
from codemods.graph.model.nodes import Node, Place, Walk
from codemods.graph.model.values import Sequence
from codemods.proofs.carried import Carry, Ledger
from codemods.proofs.containers import ADDING
from codemods.proofs.reach import reach, spread, through_phi
from codemods.proofs.turns import crossed, only_once
from codemods.source import walking


def is_loss(ledger: Ledger, node: Node) -> bool:
    """Whether a walk starts at it, or at a sum of it: losses and totals have rules of their own."""
    sums = spread([node], lambda one: [c for c in one.children if c.scalar and not c.saves])
    return any(one in ledger.roots for one in sums)


def is_handed_on(carry: Carry) -> bool:
    """Whether it is carried under a name that is written anew each turn, and not of itself: ``last = loss``."""
    statement = carry.store.statement
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    kept = ast.unparse(statement.targets[0])
    return all(ast.unparse(n) != kept for n in walking.walk(statement.value) if isinstance(n, ast.expr))


def kept_apart(ledger: Ledger, carries: list[Carry]) -> bool:
    """Whether it is put into a container for later steps only: ``seen.append(loss)``, where no sum goes on with it and
    its own step does not read it back."""
    node = carries[0].store.node
    added = any(s.place.node is node and s.method in ADDING for s in ledger.trace.storings)
    return added and not any(ledger.grows(c) or used_through(ledger, c) for c in carries)


def used_through(ledger: Ledger, carry: Carry) -> bool:
    """Whether its own step reads a stored value back and back-propagates it: the one that is carried, or one that the
    same statement stored there in an earlier turn or call of the step."""
    store = carry.store
    between = (w for w in ledger.trace.walks if store.clock < w.place.clock < carry.reading.place.clock)
    walks = [w for w in between if not crossed(store, w.place)]
    wanted = reach([carry.old]) if carry.old.kind is NodeKind.PHI else {carry.old}
    # what a variable holds that has it on one path and something else on another
    wanted |= set(spread([carry.old], lambda node: [c for c in node.children if c.kind is NodeKind.PHI]))
    if walks and any(_read_back(ledger, carry, node, store, walks) for node in wanted):
        return True
    if any(_comes_back(carry, node, walks) for node in wanted):
        return True
    before = [(p, n) for p, n in ledger.stored_in.get(carry.carrier, ()) if p.statement is store.statement]
    for place, node in before:
        # only what no backward has come to yet when it is read belongs to the same step
        first = next((w for w in ledger.trace.walks if w.place.clock > place.clock and node in w.seen), None)
        if first is not None and _read_back(ledger, carry, node, place, [first]):
            return True
    return False


def _read_back(ledger: Ledger, carry: Carry, node: Node, store: Place, walks: list[Walk]) -> bool:
    """Whether what was stored is read by where it was stored, between that moment and the last of walks over it."""
    for reading in ledger.readings_of.get(node, ()):
        if not store.clock <= reading.place.clock < walks[-1].place.clock:
            continue
        if reading.place.clock == store.clock and reading.place.statement is store.statement:
            # the container is read to be written to
            continue
        if crossed(store, reading.place) is carry.loop:
            continue
        same = reading.carrier == carry.carrier or carry.carrier.owner in reading.containers
        if same and any(node in w.seen for w in walks) and not _other_key(store, reading.place):
            return True
    return False


def _comes_back(carry: Carry, node: Node, walks: list[Walk]) -> bool:
    """Whether one of some walks comes to a stored value by what is computed of it later and not proven to be given it
    by another name, one that had it before."""
    store = carry.store
    until = max((walk.place.clock for walk in walks if node in walk.seen), default=store.clock)
    reads = [(c, p) for c, p in node.reads if store.clock <= p.clock < until and not crossed(store, p)]
    if any(c == carry.carrier and (p.clock, p.statement) != (store.clock, store.statement) for c, p in reads):
        return True
    named = {c for c, p in node.stores if p.clock <= store.clock and c != carry.carrier}
    for carrier, place in node.stores:
        # a parameter or variable that is given it by such a name
        if place.clock >= store.clock and any(_gives(p, place) for c, p in reads if c in named):
            named.add(carrier)
    given = [p for c, p in reads if c in named]
    return any(
        store.clock < child.birth < until
        and child.kind is not NodeKind.PHI
        and any(child in walk.seen for walk in walks)
        and not crossed(store, child.place)
        and not any(_gives(read, child.place) for read in given)
        for child in node.children
    )


def _gives(read: Place, taken: Place) -> bool:
    """Whether a value that is read goes right into an expression, or is returned to it."""
    while read.frame is not taken.frame:
        if not isinstance(read.statement, ast.Return) or read.frame.call is None:
            return False
        read = read.frame.call
    return any(outer is taken.node for outer in (read.node, *read.frame.file.outward(read.node))) or (
        read.statement is taken.statement and isinstance(getattr(taken.node, "ctx", None), ast.Store)
    )


def kept_for_good(ledger: Ledger, carry: Carry) -> bool:
    """Whether what its step stored is still there at the end of a later one, which stores nothing of its own.

    Such a cache may be meant to be computed anew in every step, and a cut would keep its parameters from learning.
    """
    return not any(
        place.clock > carry.store.clock
        and node is not carry.old
        and crossed(carry.store, place) is carry.loop
        and not only_once(place, carry.loop)
        for place, node in ledger.stored_in[carry.carrier]
    )


def goes_on_in_its_step(ledger: Ledger, carries: list[Carry], statement: ast.stmt) -> bool:
    """Whether a statement also takes its own value of an earlier turn or call, or what is carried, where no backward
    has come to that yet, and one does later: where the old value is cut there, its step learns otherwise."""
    first: dict[Node, int] = {}
    for walk in ledger.trace.walks:
        for node in walk.seen:
            first.setdefault(node, walk.place.clock)
    for child in ledger.trace.nodes:
        if child.place.statement is not statement:
            continue
        for old in through_phi(*child.parents):
            made, taken = old.place, child.place
            earlier = made.frame is not taken.frame or made.loops != taken.loops
            if earlier and made.statement is statement and first.get(old, -1) > child.birth:
                return True
    carriers = {carry.carrier for carry in carries}
    return any(
        first.get(node, -1) > reading.place.clock
        for reading in ledger.trace.readings
        if reading.place.statement is statement and reading.carrier in carriers
        for node in reading.nodes
    )


def _other_key(store: Place, read: Place) -> bool:
    """``seen[i]`` of a later turn of the loop over ``i`` is not the ``seen[i]`` that this turn has stored."""
    turned = crossed(store, read)
    target = getattr(turned, "target", None)
    if target is None or store.statement is None or not isinstance(store.statement, ast.Assign):
        return False
    written = store.statement.targets[0]
    if not isinstance(written, ast.Subscript):
        return False
    if not walking.names_in(target) & walking.names_in(written.slice):
        return False
    file = read.frame.file
    outer: ast.AST | None = read.node
    while outer is not None and not isinstance(outer, ast.Subscript):
        if isinstance(outer, (ast.Compare, ast.stmt)):
            # a test whether the key is there
            return True
        outer = file.parent(outer)
    return isinstance(outer, ast.Subscript) and ast.unparse(outer) == ast.unparse(written)


def appended_once(ledger: Ledger, carry: Carry) -> bool:
    """Whether a step puts one thing at the end of a list or deque."""
    mine = [s for s in ledger.trace.storings if s.place.node is carry.store.node]
    if not mine or mine[0].method != "append" or not isinstance(mine[0].container, Sequence):
        return False
    owner = carry.carrier.owner
    same = (s for s in ledger.trace.storings if getattr(s.container, "oid", 0) == owner)
    return len([s for s in same if not crossed(s.place, carry.store) and not crossed(carry.store, s.place)]) == 1
