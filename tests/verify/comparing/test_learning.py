"""What learns in a run, and no longer in another; made-up records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from codemods.terms.findings import Promise
from tests.verify.builders import FREED, OTHER, record, run, values
from verify.comparing.learning import idle_optimizers, lost
from verify.judging.judge import check
from verify.measured.records import Record, Tensors, Waiting
from verify.measured.results import Run
from verify.measured.values import Trouble

NAMES = ("encoder.weight", "head.weight")
TENSORS = Tensors(NAMES, ("float32", "float32"), None)


def learned(*steps: Sequence[float], error: Trouble | None = None, leak: bool = False, name: str = "SGD") -> Record:
    """A training; each entry has the gradients of encoder and head in one step."""
    made = record([1.0 / (number + 1) for number in range(len(steps))], error=error, leak=leak)
    made.steps = [
        replace(step, name=name, tensors=TENSORS, grads=values(*[[each] for each in gradients]))
        for step, gradients in zip(made.steps, steps, strict=True)
    ]
    return made


BOTH, HEAD, NONE = (1.0, 2.0), (0.0, 2.0), (0.0, 0.0)
DEAD = run(learned(BOTH, error=FREED))


@pytest.mark.parametrize(
    ("after", "text"),
    [
        ([BOTH] * 9, ""),
        ([BOTH, HEAD, HEAD, BOTH, HEAD], ""),
        ([BOTH, HEAD, HEAD], ""),
        ([HEAD] * 9, "encoder.weight no longer learns"),
        ([NONE] * 9, "encoder.weight, head.weight no longer learn"),
        ([BOTH, *[HEAD] * 8], "after that encoder.weight no longer learns"),
        ([BOTH, *[NONE] * 8], "after that nothing is learned any more"),
        ([BOTH, BOTH, *[NONE] * 8], "after that nothing is learned any more"),
    ],
)
def test_what_learned_before_the_end_learns_after_it(after: Sequence[Sequence[float]], text: str) -> None:
    assert lost(DEAD, run(learned(*after)), died=True).text == text


@pytest.mark.parametrize(
    ("after", "held"),
    [([BOTH] * 9, True), ([HEAD] * 9, False), ([BOTH, *[HEAD] * 8], None), ([BOTH, *[NONE] * 8], False)],
)
def test_a_repair_that_learns_less_is_not_kept(after: Sequence[Sequence[float]], held: bool | None) -> None:
    result = check(Promise.REPAIR, DEAD, run(learned(*after)), deterministic=True, tolerance=1e-3)
    assert result.held is held
    assert ("learn" in result.why) is (held is not True)


def test_nor_is_what_gets_past_another_end() -> None:
    dead = run(learned(BOTH, BOTH, error=OTHER))
    for promise in (Promise.EXACT, Promise.EQUIVALENT, Promise.REPAIR):
        fine = check(promise, dead, run(learned(*[BOTH] * 9)), deterministic=True, tolerance=1e-3)
        assert fine.held is True
        cut = check(promise, dead, run(learned(BOTH, BOTH, *[NONE] * 7)), deterministic=True, tolerance=1e-3)
        assert cut.held is False


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ([BOTH] * 9, [BOTH] * 9, ""),
        ([BOTH] * 9, [HEAD] * 9, "encoder.weight no longer learns"),
        ([BOTH] * 9, [BOTH, *[HEAD] * 8], "after that encoder.weight no longer learns"),
        ([BOTH, *[HEAD] * 8], [BOTH, *[HEAD] * 8], ""),
        ([HEAD] * 9, [BOTH] * 9, ""),
        ([HEAD] * 9, [HEAD] * 9, ""),
        ([BOTH] * 9, [BOTH] * 3, ""),
    ],
)
def test_what_learned_in_a_leak(before: list[Sequence[float]], after: list[Sequence[float]], text: str) -> None:
    assert lost(run(learned(*before, leak=True)), run(learned(*after)), died=False).text == text


class TestWaiting:
    """Gradients that no step has taken when the original dies."""

    def dead(self, name: str = "SGD") -> Run:
        made = record([], error=FREED)
        made.backwards[-1:] = [replace(made.backwards[-1], waiting=(Waiting(0, name, values([1.0], [2.0])),))]
        return run(made)

    def test_they_have_to_come_again(self) -> None:
        assert lost(self.dead(), run(learned(*[HEAD] * 9)), died=True).never == ("encoder.weight",)
        assert lost(self.dead(), run(learned(*[BOTH] * 9)), died=True).text == ""

    def test_another_optimizer_says_nothing(self) -> None:
        assert lost(self.dead("Adam"), run(learned(*[HEAD] * 9)), died=True).text == ""

    def test_nor_one_of_two_that_look_alike(self) -> None:
        after = learned(*[HEAD] * 9)
        after.steps += [replace(step, params=values([1.0], [1.0])) for step in after.steps]
        assert lost(self.dead(), run(after), died=True).text == ""


def test_an_optimizer_that_steps_no_more() -> None:
    two = learned(*[BOTH] * 8)
    two.steps[1::2] = [replace(step, name="Adam") for step in two.steps[1::2]]
    one = learned(*[BOTH] * 8)
    assert idle_optimizers(two, one) == ("Adam",)
    assert idle_optimizers(one, two) == idle_optimizers(two, two) == ()
    late = learned(*[BOTH] * 8)
    late.steps[-1] = replace(late.steps[-1], name="Adam")
    assert idle_optimizers(late, one) == ()
    for promise in (Promise.REPAIR, Promise.BEHAVIOUR, Promise.EXACT):
        result = check(promise, run(two), run(one), deterministic=True, tolerance=1e-3)
        assert result.held is False
        assert "Adam no longer makes steps" in result.why


def test_an_optimizer_that_gets_more_parameters() -> None:
    few, many = learned(*[BOTH] * 8), learned(*[BOTH] * 8)
    many.steps[:] = [replace(step, params=values([1.0], [1.0], [1.0])) for step in many.steps]
    assert idle_optimizers(few, many) != ()
    assert idle_optimizers(few, many, resized=True) == ()
    assert check(Promise.BEHAVIOUR, run(few), run(many), deterministic=True, tolerance=1e-3).held is True
    assert check(Promise.REPAIR, run(few), run(many), deterministic=True, tolerance=1e-3).held is False
    both = learned(*[BOTH] * 8)
    both.steps[1::2] = [replace(step, params=values([1.0], [1.0])) for step in both.steps[1::2]]
    assert idle_optimizers(both, many, resized=True) == (few.steps[0].name,)
