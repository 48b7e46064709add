"""What findings say about carried values: those of one statement, the trail of a graph, the backwards that raise."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from codemods.graph.model.kinds import CarrierKind, NodeKind
from codemods.graph.model.trace import Trace
from codemods.proofs.carried import Carry
from codemods.proofs.early_changes import late
from codemods.proofs.paired_flags import Late


def by_statement(carries: Iterable[Carry]) -> list[list[Carry]]:
    """What one statement stored, together; a local variable counts once however often its function ran."""
    grouped: dict[int, dict[tuple[CarrierKind, int, str], Carry]] = {}
    for carry in carries:
        carrier = carry.carrier
        owner = 0 if carrier.kind is CarrierKind.LOCAL else carrier.owner
        grouped.setdefault(id(carry.store.statement), {}).setdefault((carrier.kind, owner, carrier.name), carry)
    return [list(found.values()) for found in grouped.values()]


def trail(carry: Carry) -> list[tuple[str, int, str]]:
    """The stations of the carried graph, as plain data."""
    made = carry.store if carry.old.kind is NodeKind.PHI else carry.old.place
    return [
        (made.path, made.line, "graph produced here"),
        (
            carry.store.path,
            carry.store.line,
            f"carried by `{carry.carrier.name}`" if carry.carrier.name else "carried from here",
        ),
        (
            carry.freed_by.place.path,
            carry.freed_by.place.line,
            "retained here" if carry.freed_by.retains else "freed here",
        ),
        (carry.reading.place.path, carry.reading.place.line, "used again here, one step later"),
    ]


def too_late(trace: Trace, carries: Iterable[Carry]) -> list[Late]:
    """The backwards that the carried value makes raise, each with what frees or changes it, as plain data."""
    found: dict[Late, None] = {}
    for carry in carries:
        # of several that are carried at different times, other backwards went through the others
        carried = {id(node) for node in carry.graph}
        # what is carried of data only saves no weights: the turn after that one meets those that have changed
        turns = [w for w in trace.walks if w.call is carry.walk.call and w.place.clock >= carry.walk.place.clock]
        for earlier, walk in ((carry.freed_by, carry.walk), *pairwise(turns)):
            found.update(dict.fromkeys(late(trace, earlier, walk, carried.union(map(id, earlier.seen)))))
    return list(found)
