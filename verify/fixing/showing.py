"""Whether a change removes a fault and does no harm, by the diagnoses before and after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from verify.diagnosis.model import Diagnosis, Fault, Kind, Measures
from verify.fixing.clues import Candidate, apart_in_a_step, base

#: Parameters that are named; what the order of a sum makes of a loss.
_SHOWN = 4
_ROUNDING = 1e-4
#: Faults that a verification shows to be gone.
PROVABLE = frozenset({Kind.SECOND_BACKWARD, Kind.CHANGED_IN_PLACE, Kind.GROWING_GRAPH})
#: Faults that two diagnoses show to be gone.
SHOWABLE = frozenset(
    {Kind.NO_GRADIENT, Kind.OTHER_DEVICE, Kind.LOSS_CUT_OFF, Kind.NOT_IN_OPTIMIZER, Kind.NEVER_CLEARED}
)
#: The clues of a fault that every run tells, and that a change elsewhere leaves as they are.
_LINES: dict[Kind, tuple[str, ...]] = {
    Kind.SECOND_BACKWARD: ("cause", "consumer", "freed by"),
    Kind.CHANGED_IN_PLACE: ("saved by",),
}
#: What takes many steps to show, and what no change that is tried brings about.
_LATE = frozenset(
    {
        Kind.GROWING_TENSORS,
        Kind.GROWING_CONTAINER,
        Kind.GROWING_CACHE,
        Kind.SLOWER_STEPS,
        Kind.NEVER_CLEARED,
    }
)
#: What grows where values without a graph are kept.
_VALUES = frozenset({Kind.GROWING_TENSORS, Kind.GROWING_CONTAINER})


def verified(fault: Fault, candidate: Candidate) -> bool:
    """Whether a verification can tell that ``candidate`` removes ``fault``."""
    return fault.kind in PROVABLE and not candidate.summed


def shown(fault: Fault, before: Diagnosis, after: Diagnosis) -> tuple[tuple[str, ...], str]:
    """The same for a fault that verifications do not know: it is gone, and the program begins as it did."""
    old, new = before.measures, after.measures
    if fault.kind is Kind.OTHER_DEVICE and not before.backwards and after.backwards:
        # It ended the program before there was a loss.
        return (f"no tensors of two devices meet any more, and {after.backwards} backwards are made (none before)",), ""
    if old.first is None or old.first != new.first:
        return (), "the first loss is another one"
    lost = sorted(set(new.idle) - set(old.idle))
    if lost or new.learning < old.learning:
        return (), f"{', '.join(lost) or 'parameters'} no longer learn"
    same = old.losses == new.losses[: len(old.losses)]
    match fault.kind:
        case Kind.UNUSED_FORWARDS:
            told, same = "the forward makes no graph any more, and losses are the same", old.losses == new.losses
        case Kind.NEVER_CLEARED:
            told, same = "each step takes its own gradients; the first loss is the same, and no parameter is lost", True
        case Kind.OTHER_DEVICE:
            told = "no tensors of two devices meet any more, and losses are the same"
        case Kind.LOSS_CUT_OFF if after.backwards > before.backwards and new.learning == old.learning:
            told = (
                f"{after.backwards} backwards are made ({before.backwards} before), and losses up to there are the same"
            )
        case _ if new.learning <= old.learning:
            return (), "no more parameters learn"
        case _:
            told = f"{new.learning} of {new.meant} parameters learn ({old.learning} before); the first loss is the same"
            same = True
    return ((told,), "") if same else ((), "losses are other ones")


def past(before: Diagnosis, after: Diagnosis) -> tuple[tuple[str, ...], str]:
    """The same of a change at the line where a program stopped: it goes on, and does what it did up to there."""
    old, new = before.measures, after.measures
    if after.stop == before.stop or after.backwards < before.backwards or (after.reason and after.stop is None):
        return (), f"it does not help: {after.faults[0].headline if after.faults else after.reason}"
    if old.losses != new.losses[: len(old.losses)]:
        return (), "losses are other ones"
    made = f"{after.backwards} backwards are made ({before.backwards} before), and losses up to there are the same"
    return (f"the program no longer stops at {before.stop}; {made}",), ""


def as_sum(others: Sequence[Measures], measures: Measures) -> tuple[tuple[str, ...], str]:
    """Prove one backward of two losses by a repair that calls both: each loss is the sum of two of the repair's."""
    for other in others:
        pairs = list(zip(other.losses[::2], other.losses[1::2], strict=False))
        same = len(pairs) == len(measures.losses) and all(
            math.isclose(one + two, whole, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
            for (one, two), whole in zip(pairs, measures.losses, strict=True)
        )
        if same and pairs and measures.learning == other.learning:
            return (f"each of {len(pairs)} losses is the sum of the two that the other repair walks apart",), ""
    return (), "no other repair shows that the sum learns the same"


def price(fault: Fault, before: Diagnosis, after: Diagnosis) -> str:
    """What does not learn with a change that removes ``fault``; empty where nothing is lost, or something else is
    wrong."""
    old, new = before.measures, after.measures
    if starved := cut_from(fault, before, after):
        return starved
    came = {one.kind for one in after.faults} - {one.kind for one in before.faults}
    gone = [one.kind for one in after.faults].count(fault.kind) < [one.kind for one in before.faults].count(fault.kind)
    if not gone or came - {Kind.NO_GRADIENT} or after.reason or after.backwards < before.backwards:
        return ""
    if not new.learning or new.learning >= new.meant or old.losses[:1] != new.losses[:1]:
        return ""
    more = f" and {len(new.idle) - _SHOWN} more" if len(new.idle) > _SHOWN else ""
    return f"{', '.join(new.idle[:_SHOWN]) or 'some parameters'}{more} do not learn"


def cut_from(fault: Fault, before: Diagnosis, after: Diagnosis) -> str:
    """The parameters of which an optimizer learns nothing, while another one does, where the fault lies between their
    two losses; empty where there are none."""
    lost = [one for one in after.measures.starved if one not in before.measures.starved and apart_in_a_step(fault)]
    more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    return f"no loss reaches {', '.join(lost[:_SHOWN])}{more}" if lost else ""


def wrong(diagnosis: Diagnosis) -> list[Fault]:
    """The faults whose removal a run can show."""
    return [fault for fault in diagnosis.faults if fault.kind in PROVABLE | SHOWABLE]


def idle(diagnosis: Diagnosis) -> list[Fault]:
    """The faults that only waste time and memory."""
    return [fault for fault in diagnosis.faults if fault.kind is Kind.UNUSED_FORWARDS]


def helps(fault: Fault, before: Diagnosis, after: Diagnosis) -> bool:
    """Whether ``fault``, or one like it, is gone, none was added, and the program gets at least as far."""
    if fault.kind is Kind.UNUSED_FORWARDS:
        return len(idle(after)) < len(idle(before)) and no_worse(before, after)
    return better(before, after)


def better(before: Diagnosis, after: Diagnosis) -> bool:
    """Whether a fault is gone, none was added, and the program gets at least as far."""
    return len(_left(before, after)) < len(_harm(before)) and no_worse(before, after)


def no_worse(before: Diagnosis, after: Diagnosis) -> bool:
    """Whether no fault was added, and the program gets at least as far."""
    old, new = _harm(before), _left(before, after)
    if after.reason and not before.reason:
        return False
    return len(new) <= len(old) and not set(new) - set(old) and after.backwards >= before.backwards


def uncovers(fault: Fault, before: Diagnosis, after: Diagnosis) -> bool:
    """Whether ``fault`` is gone, the program gets at least as far, and another one shows, which it may have hidden."""
    if fault.kind not in PROVABLE or after.reason or after.backwards < before.backwards:
        return False
    return _marks(fault) not in map(_marks, after.faults) and bool(came(before, after))


def came(before: Diagnosis, after: Diagnosis) -> list[Fault]:
    """The faults of ``after`` that a run can show to be gone and that ``before`` does not have."""
    old = set(map(_marks, before.faults))
    return [fault for fault in wrong(after) if _marks(fault) not in old]


def _marks(fault: Fault) -> tuple[object, ...]:
    """What tells a fault from others of its kind: the text of the lines that any run knows, and who holds it."""
    roles = _LINES.get(fault.kind, ())
    lines = tuple(clue.source for clue in fault.clues if clue.role in roles)
    holders = fault.clues if fault.kind is Kind.GROWING_GRAPH else ()
    names = tuple(clue.name for clue in holders if clue.role == "carrier")
    return fault.kind, lines, names


def _left(before: Diagnosis, after: Diagnosis) -> list[Kind]:
    """The faults that count after a change: a container whose graphs are gone kept their values before as well, and
    what shows only behind the end of the program before, where it trains on, was there too."""
    graphs = {_holder(fault) for fault in before.faults if fault.kind is Kind.GROWING_GRAPH}
    gone = graphs - {_holder(fault) for fault in after.faults if fault.kind is Kind.GROWING_GRAPH}
    kept = [fault for fault in after.faults if fault.kind in _VALUES and _holder(fault) in gone]
    late = _LATE - {fault.kind for fault in before.faults} if after.backwards > before.backwards else frozenset()
    counted = [fault for fault in after.faults if fault not in kept and fault.kind not in late]
    return _harm(replace(after, faults=tuple(counted)))


def _holder(fault: Fault) -> str:
    """The last name of the container that grows."""
    carrier = fault.clue("carrier")
    return "" if carrier is None else base(carrier.name).rpartition(".")[2]


def _harm(diagnosis: Diagnosis) -> list[Kind]:
    """The faults, except those that only take time: after a cut, a forward whose result was learned from in vain
    shows up as one that nobody learns from."""
    return [fault.kind for fault in diagnosis.faults if fault.kind is not Kind.UNUSED_FORWARDS]
