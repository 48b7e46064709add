"""Values that one step may leave to the next: what a module that cannot be seen gives and gets again, and what a step
stores under a condition."""

from __future__ import annotations

import ast

from codemods.graph.model.kinds import NodeKind
from codemods.graph.model.nodes import Node
from codemods.graph.model.opacity import opaque
from codemods.proofs.carried import Carry, Ledger, as_one
from codemods.proofs.first_turns import passed_by_at_first
from codemods.proofs.reach import reach
from codemods.proofs.turns import crossed, every_turn


def presumed(ledger: Ledger) -> list[Carry]:
    """What is walked again in a later turn if the module keeps the graph of what it gets, by what carried it."""
    known = {carry.key for carry in ledger.carries}
    return as_one(
        carry
        for walk in ledger.trace.walks
        for child, old, loop in ledger.crossings(walk)
        if child.kind is NodeKind.MODULE and opaque(child) and _gave(child, old)
        for carry in ledger.carry(walk, child, old, loop)
        if carry.key not in known and not carry.walked_in_some_turns and not carry.read_in_some_turns
    )


def carried_at_times(ledger: Ledger) -> list[Carry]:
    """States that every turn of a loop back-propagates, and that only some turns cut or make anew: others than those
    that have nothing to cut."""
    perhaps = [carry for carry in ledger.perhaps if ledger.recurrent(carry)]
    # the first turn of an inner loop may get what the last turn of the outer one left
    open_to = {id(carry.store.statement) for carry in perhaps if not passed_by_at_first(carry)}
    return [
        carry for carry in perhaps if id(carry.store.statement) in open_to and every_turn(carry.walk.place, carry.loop)
    ]


def stored_at_times(ledger: Ledger) -> list[Carry]:
    """What some turns store behind their backward, or take away again, and all turns read and back-propagate: else a
    number, or nothing, is there.

    A turn that finds it walks the freed graph, whatever the condition says.
    """

    def at_times(child: Node) -> bool:
        one_of_several = child.kind is NodeKind.PHI and not child.certain
        return one_of_several and not isinstance(child.place.statement, ast.If)

    return as_one(
        carry
        for walk in ledger.trace.walks
        for child, old, loop in ledger.crossings(walk)
        if at_times(child) and all(not p.leaf and crossed(p.place, child.place) for p in child.parents)
        for carry in ledger.carry(walk, child, old, loop)
        # what is stored before its step's backward may be meant to learn in it
        if carry.store.clock > carry.freed_by.place.clock
        if all(every_turn(place, loop) for place in (walk.place, carry.freed_by.place, carry.reading.place))
    )


def _gave(child: Node, old: Node) -> bool:
    """Whether ``old`` comes out of a module with weights that ``child`` is computed with."""
    weights = {parent for parent in child.parents if parent.leaf}
    return any(n.kind is NodeKind.MODULE and not weights.isdisjoint(n.parents) for n in reach([old]))
