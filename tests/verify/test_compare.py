"""Two runs side by side."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.verify.builders import FREED, OTHER, record, run
from verify.compare import compare
from verify.records import Loss
from verify.results import Difference

LOSSES = [1.0, 0.5, 0.25, 0.125]


def test_the_same_numbers_are_identical() -> None:
    found = compare(run(record(LOSSES)), run(record(LOSSES)), tolerance=0)
    assert found.difference is Difference.IDENTICAL
    assert (found.steps, found.backwards, found.losses, found.parameters) == (4, 4, 0.0, 0.0)
    assert found.first == ""


def test_the_first_difference_is_named() -> None:
    found = compare(run(record(LOSSES)), run(record([1.0, 0.5, 0.26, 0.2])), tolerance=1e-3)
    assert found.difference is Difference.DIFFERENT
    assert found.first == "loss of call 3 of the backward at train.py:8: 0.25 and 0.26"
    assert found.losses == pytest.approx(0.075)


def test_rounding_is_close() -> None:
    found = compare(run(record(LOSSES)), run(record([1.0, 0.5, 0.25 + 1e-8, 0.125])), tolerance=1e-3)
    assert found.difference is Difference.CLOSE


def test_no_tolerance_for_more_than_rounding() -> None:
    found = compare(run(record([1000.0])), run(record([1002.0])), tolerance=1e-3)
    assert found.difference is Difference.DIFFERENT
    assert compare(run(record([1000.0])), run(record([1000.5])), tolerance=1e-3).difference is Difference.CLOSE


def test_parameters_count_where_losses_agree() -> None:
    one = run(record(LOSSES, [0.0, 0.1, 0.2, 0.3]))
    other = run(record(LOSSES, [0.0, 0.1, 0.25, 0.3]))
    found = compare(one, other, tolerance=1e-3)
    assert found.difference is Difference.DIFFERENT
    assert found.first.startswith("parameters after step 3: largest difference 0.05")
    assert found.parameters == pytest.approx(0.05)


def test_nan_on_both_sides_is_no_difference() -> None:
    nan = [1.0, math.nan, math.nan]
    assert compare(run(record(nan)), run(record(nan)), tolerance=0).difference is Difference.IDENTICAL


def test_nan_on_one_side_is_a_difference_that_no_tolerance_covers() -> None:
    found = compare(run(record([1.0, 2.0])), run(record([1.0, math.nan])), tolerance=10)
    assert found.difference is Difference.DIFFERENT
    assert math.isnan(found.losses or 0)


def test_infinities_of_one_sign_are_the_same() -> None:
    assert compare(run(record([math.inf])), run(record([math.inf])), tolerance=0).difference is Difference.IDENTICAL
    found = compare(run(record([math.inf])), run(record([-math.inf])), tolerance=10)
    assert found.difference is Difference.DIFFERENT


def test_random_numbers_that_moved_are_told_from_other_mathematics() -> None:
    moved = compare(run(record(LOSSES)), run(record([1, 2, 3, 4], rng="abcd")), tolerance=0)
    assert moved.random_moved
    same = compare(run(record(LOSSES)), run(record([1, 2, 3, 4])), tolerance=0)
    assert not same.random_moved


def test_fewer_steps_are_a_difference_only_for_the_whole() -> None:
    one, other = run(record(LOSSES)), run(record(LOSSES[:3], end="completed"))
    assert compare(one, other, tolerance=1).difference is Difference.DIFFERENT
    assert compare(one, other, tolerance=1, whole=False).difference is Difference.IDENTICAL


def test_a_run_that_raised_is_compared_up_to_there() -> None:
    found = compare(run(record(LOSSES[:1], error=FREED)), run(record(LOSSES)), tolerance=0)
    assert found.difference is Difference.IDENTICAL
    assert (found.steps, found.backwards) == (1, 1)


def test_merged_backwards_are_not_compared_one_to_one() -> None:
    split = run(record([[1.0, 2.0], [3.0, 4.0]], [0.5, 0.6]))
    merged = run(record([3.0, 7.0], [0.5, 0.6]))
    found = compare(split, merged, tolerance=0)
    assert found.difference is Difference.IDENTICAL
    assert (found.steps, found.backwards) == (2, 0)


def test_every_process_is_compared() -> None:
    one = run(record(LOSSES, process="rank-0"), record(LOSSES, process="rank-1"))
    other = run(record(LOSSES, process="rank-0"), record([1.0, 0.5, 0.3, 0.1], process="rank-1"))
    assert compare(one, other, tolerance=0).difference is Difference.DIFFERENT
    assert compare(one, one, tolerance=0).steps == 8


def test_a_process_that_is_missing_is_a_difference() -> None:
    one = run(record(LOSSES, process="rank-0"), record(LOSSES, process="rank-1"))
    other = run(record(LOSSES, process="rank-0"))
    assert compare(one, other, tolerance=1).difference is Difference.DIFFERENT


def test_nothing_to_compare_is_no_difference_and_no_proof() -> None:
    found = compare(run(record([], error=OTHER)), run(record([], error=OTHER)), tolerance=0)
    assert (found.steps, found.backwards, found.losses, found.parameters) == (0, 0, None, None)


def test_other_bytes_of_a_tensor_are_not_taken_for_rounding() -> None:
    one, other = record([1.0]), record([1.0])
    for made, digest in ((one, "a"), (other, "b")):
        made.steps.clear()
        made.backwards[0] = replace(made.backwards[0], losses=(Loss(None, digest, 8),))
    assert compare(run(one), run(other), tolerance=1).difference is Difference.DIFFERENT


def test_the_turn_that_failed_is_left_out() -> None:
    one = run(record(LOSSES[:2], error=FREED))
    other = run(record([1.0, 7.0, 0.3]))
    assert compare(one, other, tolerance=0).difference is Difference.DIFFERENT
    whole = compare(run(record(LOSSES[:1], error=FREED)), run(record([1.0, 7.0])), tolerance=0, before_failure=True)
    assert (whole.difference, whole.backwards) == (Difference.IDENTICAL, 1)


def test_swapped_blocks_are_the_same_losses_in_another_order() -> None:
    one = run(record([1.0, 2.0, 3.0], error=FREED))
    swapped = run(record([2.0, 1.0, 4.0, 3.0, 5.0]))
    assert compare(one, swapped, tolerance=0, before_failure=True).difference is Difference.IDENTICAL
    other = run(record([2.0, 1.5, 4.0, 3.0, 5.0]))
    assert compare(one, other, tolerance=0, before_failure=True).difference is Difference.DIFFERENT
