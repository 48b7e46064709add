"""Numbers that are printed: which differences are the last digits, which are none, and which count."""

from __future__ import annotations

import pytest

from verify.comparing.numbers import read, unlike


def gaps(one: str, other: str) -> list[bool]:
    """For each difference whether only the last digits differ."""
    return [found.digits for found in unlike(one.splitlines(), other.splitlines())]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss 0.5312", "loss 0.5312"),
        ("loss tensor(0.5312, grad_fn=<DivBackward0>)", "loss 0.5311862468719482"),
        ("loss tensor(1.2346e-05)", "loss 1.234567e-05"),
        ("loss tensor([0.5, 0.25], grad_fn=<StackBackward0>)", "loss tensor([0.5, 0.25])"),
        ("tensor(3., requires_grad=True)", "3.0"),
        ("mean 1.2346e+03", "mean 1234.5612"),
        ("epoch 3 took 1.25s", "epoch 3 took 9.5s"),
        ("1.5 seconds, 30 it/s, 3 GB", "7 seconds, 10 it/s, 2.5 GB"),
        ("Walks:  10%|#   | 1/10 [00:00<00:03,  2.5it/s]", "Walks:  10%|#   | 1/10 [00:00<00:16,  1.84s/it]"),
        ("3/9 [00:03<00:06, 1.01batch/s, loss=0.5]", "3/9 [00:04<00:08, 1.34s/batch, loss=0.5]"),
        ("2026-11-23 08:05:30,123 step 4", "2025-01-02 11:59:01,900 step 4"),
        ("<Net object at 0x7f12ab>", "<Net object at 0x7e00cd>"),
        ("nan", "nan"),
    ],
)
def test_no_difference(one: str, other: str) -> None:
    assert gaps(one, other) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("total 12.345678", "total 12.345679"), ("0.123456789", "0.123456790"), ("1.00000e-7", "1.00001e-7")],
)
def test_last_digits(one: str, other: str) -> None:
    assert gaps(one, other) == [True]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss 0.5", "loss 0.6"),
        ("loss 0.1234", "loss 0.1235"),
        ("right 93", "right 94"),
        ("loss 0.5", "loss nan"),
        ("loss 0.5", "loss -0.5"),
        ("loss 0.5", "lost 0.5"),
        ("loss 0.5", "loss 0.5 0.5"),
        ("1e-7", "2e-7"),
        ("tensor(0.5312)", "0.5314"),
        ("3/9 [00:03<00:06, 1.01it/s, loss=0.5]", "3/9 [00:04<00:08, 1.34s/it, loss=0.6]"),
    ],
)
def test_differences(one: str, other: str) -> None:
    assert gaps(one, other) == [False]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,0.5", "1;0.5"),
        ("a 1: 0.5", "a 1 = 0.5"),
        ("[1, 2]", "1, 2"),
        ("a1 0.5", "a2 0.5"),
        ("epoch 5", "epoch 5.0"),
        ('{"epoch": 5}', '{"epoch": 5.0}'),
        ("step 005", "step 5"),
        ("tensor(3)", "3.0"),
        ("accuracy 0.5625", "accuracy 0.6"),
        ("'accuracy': '0.6'", "'accuracy': '0.5625'"),
        ("rate 1.2e-05", "rate 1.23e-05"),
    ],
)
def test_marks_between_numbers(one: str, other: str) -> None:
    (found,) = unlike([one], [other])
    assert found.marks


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tensor(0.5)", "0.5"),
        ("tensor(3)", "3"),
        ("tensor(3., grad_fn=<SumBackward0>)", "3.0"),
        ("1e+05", "100000.0"),
        ("5 in 1.5s", "5 in 2s"),
        ("1 - 0.5", "1 -0.5"),
        ("5%|# | 1/20 [00:01<00:19]", "5%|## | 1/20 [00:01<?]"),
        ("1.5s,", "2s"),
        ("a1 took 1.5s,", "a1 took 22ms"),
    ],
)
def test_no_marks(one: str, other: str) -> None:
    assert not any(found.marks for found in unlike([one], [other]))


def test_a_number_is_told_by_its_words_and_place() -> None:
    (found,) = unlike(["epoch 1 loss 0.5 accuracy 0.75"], ["epoch 1 loss 0.5 accuracy 0.25"])
    assert (found.words, found.place) == ("epoch loss accuracy", 2)


def test_names_with_digits_are_no_numbers() -> None:
    assert read("conv2d layer3.weight v1.2.3 3d 10.0.0.1 0x10").numbers == ()


def test_nothing_is_compared_after_lines_that_say_something_else() -> None:
    assert gaps("a 1\nb 2\nc 3", "a 1\nx 2\nc 4") == [False]
    assert gaps("a 1\nb 2", "a 1") == []


def bar(done: int, total: int, seconds: int, rest: str = "", before: str = "") -> str:
    """What tqdm shows."""
    return f"{before}{100 * done // total}%|##| {done}/{total} [00:{seconds:02}<00:01,  {1.5 + seconds}it/s{rest}]"


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ([bar(0, 9, 0), bar(5, 9, 1), bar(9, 9, 2)], [bar(0, 9, 0), bar(9, 9, 1)]),
        ([bar(9, 9, 1), bar(9, 9, 2), "score 0.5"], [bar(3, 9, 0), bar(9, 9, 2), "score 0.5"]),
        ([bar(100, 100, 0), "loss 2.0"], [bar(95, 100, 0), bar(100, 100, 0), "loss 2.0"]),
        # The bar of the epochs is shown between those of the batches, or not.
        (
            [bar(2, 2, 1, before="Batch: "), bar(1, 5, 1, before="Epoch: "), bar(2, 2, 2, before="Batch: ")],
            [bar(2, 2, 1, before="Batch: "), bar(0, 2, 1, before="Batch: "), bar(2, 2, 2, before="Batch: ")],
        ),
        # On its way it has the loss of the step before, for a moment.
        (
            [bar(1, 9, 1, ", loss=0.5"), bar(2, 9, 1, ", loss=0.5"), bar(2, 9, 1, ", loss=0.4")],
            [bar(1, 9, 1, ", loss=0.5"), bar(2, 9, 1, ", loss=0.4")],
        ),
        (["3it [00:01, 2.5it/s]"], ["4it [00:02, 1.5it/s]"]),
    ],
)
def test_progress_bars_that_are_shown_at_other_times_are_alike(mine: list[str], theirs: list[str]) -> None:
    assert not list(unlike(mine, theirs))
    assert not list(unlike(theirs, mine))


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ([bar(0, 9, 0), bar(9, 9, 2, ", loss=0.5")], [bar(5, 9, 1), bar(9, 9, 2, ", loss=0.6")]),
        ([bar(2, 9, 1, ", loss=0.5"), bar(2, 9, 1, ", loss=0.4")], [bar(2, 9, 1, ", loss=0.3")]),
        ([bar(0, 9, 1), bar(4, 9, 2)], [bar(0, 8, 1), bar(8, 8, 2)]),
        ([bar(9, 9, 1, before="accuracy 0.9: ")], [bar(9, 9, 1, before="accuracy 0.8: ")]),
    ],
)
def test_what_a_bar_says_at_the_same_place_is_undecided(mine: list[str], theirs: list[str]) -> None:
    found = list(unlike(mine, theirs))
    assert found
    assert all(each.marks for each in found)


def test_lines_between_bars_are_compared() -> None:
    (found,) = unlike([bar(3, 9, 1), "loss 0.5", bar(9, 9, 1)], ["loss 0.6", bar(9, 9, 1)])
    assert not found.marks
    assert not found.digits
