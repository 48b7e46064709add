"""Whether a change helps, by what is wrong before and after it."""

from __future__ import annotations

import pytest

from verify.diagnosis.model import Clue, Diagnosis, Fault, Kind
from verify.fixing.showing import better, no_worse, uncovers


def diagnosis(*faults: Fault, backwards: int = 2, reason: str = "") -> Diagnosis:
    return Diagnosis("t.py", "/tree", faults, (), (), (), backwards, backwards, (), reason)


def fault(kind: Kind, role: str = "carrier", *, name: str = "", source: str = "") -> Fault:
    return Fault(kind, "", None, (Clue(role, None, source, name),))


GRAPH = fault(Kind.GROWING_GRAPH, name="self.log[*]['out']")
SECOND = fault(Kind.SECOND_BACKWARD, "cause", source="state = cell(x, state)")
TOTAL = fault(Kind.GROWING_GRAPH, name="total")


@pytest.mark.parametrize("kind", [Kind.GROWING_TENSORS, Kind.GROWING_CONTAINER])
def test_values_that_were_kept_with_their_graphs_may_stay(kind: Kind) -> None:
    left = diagnosis(fault(kind, name="t.log"))
    assert better(diagnosis(GRAPH), left)
    # Those of another container came with the change.
    assert not better(diagnosis(GRAPH), diagnosis(fault(kind, name="copies")))
    # As long as the graphs are there nothing is better.
    assert not better(diagnosis(GRAPH), diagnosis(GRAPH, fault(kind, name="t.log")))
    assert not no_worse(diagnosis(SECOND), left)


def test_what_an_error_hid_is_uncovered() -> None:
    assert uncovers(SECOND, diagnosis(SECOND), diagnosis(TOTAL, backwards=9))
    other = fault(Kind.SECOND_BACKWARD, "cause", source="y = a @ b")
    assert uncovers(SECOND, diagnosis(SECOND), diagnosis(other))


@pytest.mark.parametrize(
    "after",
    [
        diagnosis(SECOND),
        diagnosis(SECOND, TOTAL),
        diagnosis(TOTAL, backwards=1),
        diagnosis(reason="the program stops"),
        diagnosis(),
        diagnosis(fault(Kind.SLOWER_STEPS)),
    ],
)
def test_nothing_is_uncovered_where_the_fault_stays_or_the_program_gets_less_far(after: Diagnosis) -> None:
    assert not uncovers(SECOND, diagnosis(SECOND), after)


def test_what_only_takes_time_hides_nothing() -> None:
    waste = fault(Kind.UNUSED_FORWARDS)
    assert not uncovers(waste, diagnosis(waste), diagnosis(TOTAL))
