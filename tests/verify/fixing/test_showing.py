"""Whether a change helps, by what is wrong before and after it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from verify.diagnosis.model import Clue, Diagnosis, Fault, Kind, Measures
from verify.fixing import report
from verify.fixing.repairs import Fixed, Repair
from verify.fixing.searching import Kept, Search
from verify.fixing.showing import better, no_worse, past, shown, uncovers
from verify.measured.values import Site


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


def with_losses(*losses: float, learning: int = 2, backwards: int = 2) -> Diagnosis:
    measures = Measures(meant=2, learning=learning, losses=losses, first=losses[0])
    return replace(diagnosis(backwards=backwards), measures=measures)


CUT_OFF = fault(Kind.LOSS_CUT_OFF)


def test_a_program_that_goes_on_past_a_loss_without_a_graph_is_mended() -> None:
    proof, trouble = shown(CUT_OFF, with_losses(3.0, 2.0), with_losses(3.0, 2.0, 1.0, backwards=3))
    assert proof
    assert trouble == ""


@pytest.mark.parametrize(
    "after",
    [
        with_losses(3.0, 2.0),
        with_losses(3.0, 1.0, 1.0, backwards=3),
        with_losses(3.0, 2.0, 1.0, backwards=3, learning=1),
        with_losses(4.0, 2.0, 1.0, backwards=3),
    ],
)
def test_a_program_that_goes_no_further_or_computes_something_else_is_not(after: Diagnosis) -> None:
    assert shown(CUT_OFF, with_losses(3.0, 2.0), after)[0] == ()


def kept(way: str, *losses: float) -> Kept:
    after = with_losses(*losses)
    return Kept(Repair(way, "", (), "", after.measures), {}, after, frozenset({way}))


def best(*changes: Kept) -> str:
    tries: Any = None
    search = Search(SECOND, diagnosis(SECOND), tries, kept=list(changes))
    return search.best().repair.title


def test_what_is_built_again_and_never_changes_is_rather_cut() -> None:
    assert best(kept("rebuild", 3.0, 2.0), kept("cut", 3.0, 2.0)) == "cut"


def test_a_cut_is_not_worse_for_the_forward_that_nobody_uses_behind_it() -> None:
    cut = kept("cut", 3.0, 2.0)
    wasted = replace(cut, after=replace(cut.after, faults=(fault(Kind.UNUSED_FORWARDS),)))
    assert best(kept("rebuild", 3.0, 2.0), wasted) == "cut"
    worse = replace(cut, after=replace(cut.after, faults=(fault(Kind.GROWING_GRAPH),)))
    assert best(kept("rebuild", 3.0, 2.0), worse) == "rebuild"


def test_what_is_built_again_learns_where_its_values_change() -> None:
    assert best(kept("rebuild", 3.0, 2.0), kept("cut", 3.0, 2.5)) == "rebuild"
    # One loss says nothing of the next step.
    assert best(kept("rebuild", 3.0), kept("cut", 3.0)) == "rebuild"
    assert best(kept("afresh", 3.0, 2.0), kept("cut", 3.0, 2.0)) == "afresh"


def test_what_the_rules_find_is_told_where_nothing_was_repaired() -> None:
    left = diagnosis(GRAPH)
    told = report.text(Fixed(left, left, (), (), {}, {}, ("grad-in-evaluation at t.py:3",)), written=False)
    assert "the rules also find: grad-in-evaluation at t.py:3 (codemod apply --verify)" in told
    repair = Repair("cut", "", (), "")
    told = report.text(Fixed(left, left, (repair,), (), {}, {}, ("grad-in-evaluation at t.py:3",)), written=False)
    assert "the rules also find, and this does not need: grad-in-evaluation at t.py:3" in told


STOP = Site("t.py", 7, "f")


def stopped(*losses: float, stop: Site | None = STOP, backwards: int = 0) -> Diagnosis:
    measures = Measures(meant=2, learning=2, losses=losses)
    reason = "the program stops" if stop is not None else ""
    return replace(diagnosis(backwards=backwards, reason=reason), measures=measures, stop=stop)


@pytest.mark.parametrize(
    "after",
    [
        stopped(3.0, 2.0, stop=None, backwards=2),
        stopped(3.0, 2.0, stop=Site("t.py", 9, "f"), backwards=2),
        replace(stopped(3.0, 2.0, stop=None, backwards=2), faults=(TOTAL,)),
    ],
)
def test_a_program_that_goes_on_past_its_stop_and_does_the_same_is_mended(after: Diagnosis) -> None:
    assert past(stopped(3.0, backwards=1), after)[0]


@pytest.mark.parametrize(
    "after",
    [
        stopped(3.0, 2.0, backwards=2),
        stopped(4.0, 2.0, stop=None, backwards=2),
        stopped(stop=None),
        replace(stopped(3.0, backwards=1, stop=None), reason="no backward"),
    ],
)
def test_a_program_that_stops_there_or_computes_something_else_is_not_past_it(after: Diagnosis) -> None:
    proof, trouble = past(stopped(3.0, backwards=1), after)
    assert (proof, bool(trouble)) == ((), True)


@pytest.mark.parametrize(
    "kind",
    [Kind.GROWING_CACHE, Kind.SLOWER_STEPS, Kind.GROWING_TENSORS, Kind.GROWING_CONTAINER, Kind.NEVER_CLEARED],
)
def test_what_shows_only_behind_the_end_of_the_program_says_nothing_against_a_change(kind: Kind) -> None:
    assert better(diagnosis(SECOND), diagnosis(fault(kind), backwards=9))
    # It was there within the same backwards: the change brought it.
    assert not better(diagnosis(SECOND), diagnosis(fault(kind)))
    assert not better(diagnosis(GRAPH, backwards=9), diagnosis(fault(kind), backwards=9))


@pytest.mark.parametrize("kind", [Kind.NO_GRADIENT, Kind.LOSS_CUT_OFF, Kind.GROWING_GRAPH, Kind.OUT_OF_MEMORY])
def test_what_a_change_may_have_done_counts_wherever_it_shows(kind: Kind) -> None:
    assert not better(diagnosis(SECOND), diagnosis(fault(kind), backwards=9))


def test_a_program_that_ended_at_two_devices_before_any_loss_goes_on() -> None:
    fault_ = fault(Kind.OTHER_DEVICE)
    ended = diagnosis(fault_, backwards=0)
    assert shown(fault_, ended, diagnosis(backwards=3))[0]
    assert not shown(fault_, ended, diagnosis(backwards=0))[0]
    # Where there was a loss it has to be the same.
    assert not shown(fault_, with_losses(3.0, 2.0), with_losses(4.0, 2.0))[0]
    other = fault(Kind.NO_GRADIENT)
    assert not shown(other, diagnosis(other, backwards=0), diagnosis(backwards=3))[0]
