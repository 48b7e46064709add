"""Two runs side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.verify.builders import FREED, OTHER, record, run, values
from verify.comparing.compare import compare, unsteady
from verify.measured.records import FileKind, Loss, Output, Record, Tensors, Variables, Waiting, Written
from verify.measured.results import Difference, Run
from verify.measured.values import Site, Values

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


def steady(made: Record, *names: str) -> Run:
    """A run of which it is known that all but ``names`` is the same each time."""
    return replace(run(made), unsteady=frozenset(names))


def trained(**fields: Any) -> Record:
    """A training whose steps have ``fields``, a value a step."""
    made = record(LOSSES)
    for number, step in enumerate(made.steps):
        made.steps[number] = replace(step, **{name: given[number] for name, given in fields.items()})
    return made


def two(first: Sequence[float], second: Sequence[float]) -> Record:
    """A training of two parameters."""
    start = Tensors(("large", "small"), ("float32", "float32"), values([0.0], [0.0]))
    grads = [values([1.0], [1.0])] * 4
    return trained(
        params=[values([a], [b]) for a, b in zip(first, second, strict=True)], tensors=[start] * 4, grads=grads
    )


def test_a_small_parameter_that_learns_otherwise_does_not_hide_behind_a_large_one() -> None:
    one = two([1e3, 2e3, 3e3, 4e3], [1e-6, 2e-6, 3e-6, 4e-6])
    for other in ([1e-6, 2e-6, 3e-6, 5e-6], [0.0, 0.0, 0.0, 0.0]):
        found = compare(run(one), run(two([1e3, 2e3, 3e3, 4e3], other)), tolerance=1e-3)
        assert found.difference is Difference.DIFFERENT
        assert "small" in found.first
    close = two([1e3, 2e3, 3e3, 4e3], [1e-6, 2e-6, 3e-6, 4.0001e-6])
    assert compare(run(one), run(close), tolerance=1e-3).difference is Difference.CLOSE


def test_a_small_loss_is_measured_by_itself() -> None:
    found = compare(run(record([1e-7, 2e-7, 1e-7])), run(record([2e-7, 4e-7, 2e-7])), tolerance=1e-3)
    assert found.difference is Difference.DIFFERENT


def test_a_loss_that_cancels_itself_out_for_once_is_not() -> None:
    one, other = record([0.5, 1e-9, 0.4]), record([0.5, 3e-9, 0.4])
    assert compare(run(one), run(other), tolerance=1e-3).difference is Difference.CLOSE


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"grads": [values([1.0])] * 3 + [values([1.5])]}, "gradients"),
        ({"rng": ["a", "a", "a", "x"]}, "random generators"),
        ({"rates": [({"lr": 0.1},)] * 3 + [({"lr": 0.2},)]}, "learning rates"),
        ({"buffers": [values([1.0], [2.0])] * 3 + [values([1.0], [3.0])]}, "buffers"),
    ],
)
def test_what_else_differs_breaks_unless_the_original_differs_there_too(fields: dict[str, Any], word: str) -> None:
    one, other = trained(**{name: [given[0]] * 4 for name, given in fields.items()}), trained(**fields)
    assert compare(steady(one), run(one), tolerance=1e-3).compared[word] == 4
    assert compare(steady(one), run(other), tolerance=1e-3).difference is Difference.DIFFERENT
    left_out = compare(steady(one, word), run(other), tolerance=1e-3)
    assert left_out.difference is Difference.IDENTICAL
    assert any(text.startswith(word) for text in left_out.not_compared)
    assert word in unsteady(run(one), run(other))
    assert unsteady(run(one), run(one)) == frozenset()
    # Of what is not known to be steady nothing is said.
    assert compare(run(one), run(other), tolerance=1e-3).difference is Difference.IDENTICAL


def test_none_instead_of_zeros_is_no_difference() -> None:
    zeros = values([1.0], [0.0])
    nothing = replace(zeros, digest="other", count=1, missing=1)
    one, other = (trained(grads=[grads] * 4) for grads in (zeros, nothing))
    assert compare(steady(one), run(other), tolerance=0).difference is Difference.IDENTICAL


def waiting(value: Values) -> Record:
    made = record(LOSSES)
    made.steps[-1] = replace(made.steps[-1], waiting=(Waiting(1, "Adam", value),))
    return made


def test_gradients_that_wait_count_and_those_that_only_one_has_are_not_decided() -> None:
    one = waiting(values([1.0]))
    assert compare(steady(one), run(waiting(values([2.0]))), tolerance=1e-3).difference is Difference.DIFFERENT
    found = compare(steady(one), run(waiting(replace(values([0.0]), count=0))), tolerance=1e-3)
    assert found.difference is Difference.IDENTICAL
    assert "Adam, which has made no step" in found.undecided


def test_gradients_that_wait_for_an_optimizer_which_steps_later_may_be_cleared_before() -> None:
    one, other = waiting(values([1.0])), waiting(replace(values([0.0]), count=0))
    for made in (one, other):
        made.trained = {1}
    found = compare(steady(one), run(other), tolerance=1e-3)
    assert (found.difference, found.undecided) == (Difference.IDENTICAL, "")


def output(*rows: Sequence[float], line: int = 0) -> Output:
    return Output(Site("evaluate.py", 8, "main"), line, 1, values(*rows), 0)


def test_outputs_may_differ_in_their_last_digits() -> None:
    def evaluated(value: float) -> Record:
        return replace(record([], end="completed"), outputs=[output([value])])

    one = evaluated(1.0)
    found = compare(steady(one), run(evaluated(1.0 + 1e-7)), tolerance=0)
    assert (found.difference, found.outputs) == (Difference.IDENTICAL, 1)
    assert found.digits == pytest.approx(1e-7)
    assert compare(steady(one), run(evaluated(1.01)), tolerance=1e-3).difference is Difference.DIFFERENT


def printing(*lines: str) -> Record:
    return replace(record(LOSSES), printed={"stdout": list(lines)})


def test_numbers_printed() -> None:
    one = printing("loss 0.5 in 3s", "loss 0.25 in 3s")
    for lines, difference in (
        (("loss 0.5 in 4s", "loss 0.25 in 9s"), Difference.IDENTICAL),
        (("loss 0.5 in 3s", "loss 0.250001 in 3s"), Difference.IDENTICAL),
        (("loss 0.5 in 3s", "loss 0.26 in 3s"), Difference.DIFFERENT),
        (("loss 0.5 in 3s",), Difference.DIFFERENT),
    ):
        assert compare(steady(one), run(printing(*lines)), tolerance=1e-3).difference is difference
    masked = unsteady(run(one), run(printing("loss 0.5 in 3s", "loss 0.26 in 3s")))
    found = compare(replace(run(one), unsteady=masked), run(printing("loss 0.9 in 3s", "x 1")), tolerance=1e-3)
    assert found.difference is Difference.DIFFERENT


def written(path: str, *rows: Sequence[float], numbers: dict[str, float] | None = None) -> Written:
    return Written(path, "tensors", ("weight",), values(*rows), numbers or {}, ())


def test_files_by_name() -> None:
    def saved(*files: Written) -> Record:
        return replace(record(LOSSES), files=list(files))

    model = written("model.pt", [1.0], numbers={".loss": 0.5})
    one = saved(model, Written("log.csv", FileKind.TEXT, (), Values("", 0), {}, ("step,loss", "1,0.5")))
    right = saved(
        written("model.pt", [1.0], numbers={".loss": 0.50000001}),
        Written("log.csv", FileKind.TEXT, (), Values("", 0), {}, ("step,loss", "1,0.5")),
    )
    assert compare(steady(one), run(right), tolerance=0).difference is Difference.IDENTICAL
    for wrong in (
        saved(written("model.pt", [1.0], numbers={".loss": 0.6}), one.files[1]),
        saved(written("model.pt", [1.5], numbers={".loss": 0.5}), one.files[1]),
        saved(model, one.files[1]._replace(lines=("step,loss", "1,0.6"))),
        saved(model),
    ):
        found = compare(steady(one), run(wrong), tolerance=1e-3)
        assert found.difference is Difference.DIFFERENT
        assert "model.pt" in found.first or "log.csv" in found.first


def test_modes_and_folders() -> None:
    def changed(**states: str) -> Record:
        files = [written(path, [1.0]) for path in states if path.endswith("pt")]
        return replace(record(LOSSES), files=files, changed=states)

    one = changed(**{"a.pt": "-rw-r--r--", "runs/20260101-120000": "drwxr-xr-x", "old": "gone"})
    same = changed(**{"a.pt": "-rw-r--r--", "runs/20260101-120001": "drwxr-xr-x", "old": "gone"})
    assert compare(steady(one), run(same), tolerance=0).difference is Difference.IDENTICAL
    for wrong, told in (
        ({**one.changed, "a.pt": "-rw-------"}, "a.pt is -rw-r--r-- and -rw-------"),
        ({**one.changed, "plots": "drwxr-xr-x"}, "plots is drwxr-xr-x after one of the programs"),
        ({"a.pt": "-rw-r--r--", "runs/20260101-120000": "drwxr-xr-x"}, "old is gone after one of the programs"),
        ({**one.changed, "data.csv": "-r--r--r--"}, "data.csv is -r--r--r-- after one of the programs"),
    ):
        found = compare(steady(one), run(changed(**wrong)), tolerance=1)
        assert found.difference is Difference.DIFFERENT
        assert told in found.first
    # A file that only one of them wrote is told by its name, and folders of names made up each time by nothing.
    lone = compare(steady(changed()), run(changed(**{"b.pt": "-rw-r--r--"})), tolerance=1)
    assert lone.first == "b.pt is written, or more often"
    made_up = [changed(**{f"runs/{name}": "drwxr-xr-x"}) for name in "abc"]
    masked = unsteady(run(made_up[0]), run(made_up[1]))
    found = compare(replace(run(made_up[0]), unsteady=masked), run(made_up[2]), tolerance=0)
    assert found.difference is Difference.IDENTICAL


def test_texts_in_files() -> None:
    def saved(**texts: str) -> Record:
        file = Written("kept.pt", FileKind.TENSORS, (), values(), {}, (), texts)
        return replace(record(LOSSES), files=[file])

    one = saved(arch="small")
    assert compare(steady(one), run(saved(arch="small")), tolerance=0).difference is Difference.IDENTICAL
    assert compare(steady(one), run(saved(arch="large")), tolerance=1).first == "arch in kept.pt: 'small' and 'large'"
    assert compare(steady(one), run(saved()), tolerance=1).first == "kept.pt holds other things: arch"


def naming_files(*paths: str, value: float = 0.5) -> Record:
    """A record of files, each with a number."""
    return replace(record(LOSSES, end="steps"), files=[written(path, [1.0], numbers={".a": value}) for path in paths])


def test_names_that_are_made_up_each_time() -> None:
    one, again = naming_files("best.pt", "tmp1ab"), naming_files("best.pt", "tmp2cd")
    original = replace(run(one), unsteady=unsteady(run(one), run(again)))
    found = compare(original, run(naming_files("best.pt", "tmp3ef")), tolerance=0)
    assert (found.difference, found.undecided) == (Difference.IDENTICAL, "")
    assert any("run twice, differs there" in told for told in found.not_compared)
    more = compare(original, run(naming_files("best.pt", "tmp3ef", "tmp4gh")), tolerance=0)
    assert more.first == "1 files of other names, such as tmp1ab, and 2"
    other = compare(original, run(naming_files("best.pt", "tmp3ef", value=0.75)), tolerance=0)
    assert other.difference is Difference.DIFFERENT
    assert compare(original, run(naming_files("last.pt", "tmp3ef")), tolerance=0).difference is Difference.DIFFERENT


def test_names_that_are_made_up_each_time_in_runs_of_other_lengths() -> None:
    one = naming_files("tmp1ab", "tmp5ij", "best.pt")
    first = replace(naming_files("tmp2cd", "best.pt"), steps=one.steps[:1])
    original = replace(run(one), unsteady=unsteady(run(one), run(first)))
    found = compare(original, run(naming_files("tmp3ef", "tmp4gh", "best.pt")), tolerance=0)
    assert found.difference is Difference.IDENTICAL
    found = compare(original, run(naming_files("tmp3ef", "tmp4gh", "last.pt")), tolerance=0)
    assert found.difference is Difference.DIFFERENT


def test_another_name_is_a_difference_where_names_are_steady() -> None:
    found = compare(steady(naming_files("best.pt")), run(naming_files("last.pt")), tolerance=0)
    assert found.first == "best.pt is not written, or less often"


def test_the_time_in_a_name_is_none() -> None:
    one, other = naming_files("runs/Nov26_12-01-02/a.pt"), naming_files("runs/Nov26_12-01-59/a.pt")
    assert compare(steady(one), run(other), tolerance=0).difference is Difference.IDENTICAL
    wrong = naming_files("runs/Nov26_12-01-59/a.pt", value=0.75)
    assert compare(steady(one), run(wrong), tolerance=0).difference is Difference.DIFFERENT


def test_marks_between_numbers_leave_it_undecided() -> None:
    def saved(line: str) -> Record:
        return replace(record(LOSSES), files=[Written("log.csv", FileKind.TEXT, (), Values("", 0), {}, (line,))])

    found = compare(steady(saved("1,0.5")), run(saved("1;0.5")), tolerance=0)
    assert (found.difference, found.undecided) == (Difference.IDENTICAL, "log.csv: '1,0.5' and '1;0.5'")


def test_files_of_which_nobody_knows_what_they_hold_leave_it_undecided() -> None:
    def saved(digest: str) -> Record:
        return replace(record(LOSSES), files=[Written("plot.png", FileKind.BYTES, (), Values(digest, 0), {}, ())])

    same = compare(steady(saved("a")), run(saved("a")), tolerance=0)
    assert (same.undecided, same.not_compared) == ("", ())
    found = compare(steady(saved("a")), run(saved("b")), tolerance=0)
    assert found.difference is Difference.IDENTICAL
    assert found.undecided == "plot.png differs, and what such a file holds is not known here"


def holding(numbers: dict[str, float], **tensors: Sequence[float]) -> Record:
    """A record of variables with these values."""
    kept = Variables(tuple(tensors), values(*tensors.values()), numbers)
    return replace(record(LOSSES, end="steps"), variables=kept)


def test_variables_leave_it_undecided() -> None:
    one = holding({"bad": 3.0, "total": 100.0, "mine": 1.0, "t": 2.0}, shadow=[1.0, 2.0], other=[1.0])
    assert compare(steady(one), run(one), tolerance=0).undecided == ""
    # The last digits of a total, a name that only one of them has.
    total = holding({"bad": 3.0, "total": 100.0001, "yours": 2.0, "t": 2.0}, shadow=[1.0, 2.0])
    found = compare(steady(one), run(total), tolerance=0)
    assert (found.difference, found.undecided) == (Difference.IDENTICAL, "")
    assert (
        compare(steady(one), run(holding({"bad": 4.0})), tolerance=0).undecided == "`bad` differs at the end: 3 and 4"
    )
    found = compare(steady(one), run(holding({}, shadow=[1.0, 2.5])), tolerance=0)
    assert found.undecided.startswith("`shadow` differs at the end: 0.19 of its size")
    nan = holding({"bad": math.nan})
    assert compare(steady(nan), run(nan), tolerance=0).undecided == ""
    assert compare(steady(nan), run(one), tolerance=0).undecided.startswith("`bad`")


def naming(texts: dict[str, str], **numbers: float) -> Record:
    """A record of variables with these texts and numbers."""
    return replace(record(LOSSES, end="steps"), variables=Variables((), values(), numbers, texts))


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ({"kind": "small"}, ""),
        ({"yours": "new"}, ""),
        ({"note": "loss 0.50000001"}, ""),
        ({"kind": "small 1"}, "`kind` differs at the end: 'small' and 'small 1'"),
        ({"kind": "small1"}, "`kind` differs at the end: 'small' and 'small1'"),
        ({"kind": "large"}, "`kind` differs at the end: 'small' and 'large'"),
        ({"note": "loss 0.75"}, "`note` differs at the end: 'loss 0.5000000' and 'loss 0.75'"),
        ({"count": "None"}, "`count` differs at the end: something else and 'None'"),
    ],
)
def test_texts_of_variables_leave_it_undecided(texts: dict[str, str], told: str) -> None:
    one = naming({"kind": "small", "note": "loss 0.5000000"}, count=1.0)
    found = compare(steady(one), run(naming(texts)), tolerance=0)
    assert (found.difference, found.undecided) == (Difference.IDENTICAL, told)
    again = replace(run(one), unsteady=unsteady(run(one), run(naming(texts))))
    assert compare(again, run(naming(texts)), tolerance=0).undecided == ""


def test_a_text_that_became_a_number() -> None:
    one, other = naming({"kind": "small"}), naming({}, kind=1.0)
    found = compare(steady(one), run(other), tolerance=0)
    assert found.undecided == "`kind` differs at the end: 'small' and something else"


def test_variables_that_differ_anyway_say_nothing() -> None:
    one, again = holding({"times[0]": 1.0, "times[1]": 2.0, "bad": 1.0}), holding({"times[0]": 1.5, "times[1]": 2.0})
    original = replace(run(one), unsteady=unsteady(run(one), run(again)))
    later = holding({"times[0]": 1.0, "times[1]": 3.0, "bad": 1.0})
    found = compare(original, run(later), tolerance=0)
    assert found.undecided == ""
    assert found.not_compared == ("variable times[*]: the original, run twice, differs there",)


def test_variables_of_programs_that_end_elsewhere_are_not_compared() -> None:
    one = holding({"step": 4.0})
    more = replace(holding({"step": 5.0}), end="completed")
    assert compare(steady(one), run(more), tolerance=0).undecided == ""
    left = [replace(holding({"step": value}), end="left") for value in (4.0, 5.0)]
    assert compare(steady(left[0]), run(left[1]), tolerance=0).undecided.startswith("`step`")


def test_whole_numbers_have_no_last_digits() -> None:
    def written(number: str) -> Record:
        text = Written("log.json", FileKind.TEXT, (), Values("", 0), {}, (f"seen {number}",))
        return replace(record(LOSSES), files=[text])

    found = compare(steady(written("1000000")), run(written("1000001")), tolerance=0)
    assert (found.difference, found.digits) == (Difference.IDENTICAL, 0.0)
    assert found.undecided == "log.json: 1000000 and 1000001 in 'seen 1000000'"
    assert compare(steady(written("1000000.5")), run(written("1000000.6")), tolerance=0).undecided == ""


def test_learning_rates_have_no_tolerance() -> None:
    def rated(rate: float) -> Record:
        made = record(LOSSES)
        made.steps[:] = [replace(step, rates=({"lr": rate},)) for step in made.steps]
        return replace(made, precision="bfloat16")

    assert compare(steady(rated(0.1)), run(rated(0.1 + 1e-9)), tolerance=1e-3).difference is Difference.CLOSE
    assert compare(steady(rated(0.1)), run(rated(0.101)), tolerance=1e-3).difference is Difference.DIFFERENT


def moved(gradients: Sequence[Sequence[float]], parameters: Sequence[float], device: str = "cpu") -> Record:
    """A training on a device of these gradients of two tensors of one module, and of a parameter."""
    start = Tensors(("net.weight", "net.bias"), ("float32", "float32"), values([-1.0], [-1.0]))
    made = trained(
        grads=[values(*([each] for each in row)) for row in gradients],
        params=[values([each], [each]) for each in parameters],
        tensors=[start] * len(LOSSES),
    )
    made.about = {"device": device}
    return made


PLAIN = [[1.0, 1e-3]] * 4


@pytest.mark.parametrize(
    ("gradients", "parameters", "undecided"),
    [
        # Another order of a sum, also where a small gradient is what is left of large numbers.
        ([[1.0 + 3e-6, 1e-3 + 2e-6], *PLAIN[1:]], [0.0, 1.0 + 1e-6, 2.0, 3.0], False),
        # A loss that is larger by 0.00002 of its size.
        ([[1.0 + 2e-5, 1e-3 + 2e-8], *PLAIN[1:]], [0.0, 1.0 + 2e-5, 2.0, 3.0], True),
        # Once parameters differ, what was rounded may have grown.
        ([PLAIN[0], [1.0 + 2e-5, 1e-3], *PLAIN[2:]], [1e-6, 1.0 + 2e-5, 2.0, 3.0], False),
        ([PLAIN[0], [1.0 + 2e-5, 1e-3], *PLAIN[2:]], [0.0, 1.0 + 2e-5, 2.0, 3.0], True),
    ],
)
def test_gradients_of_the_same_parameters_differ_by_rounding_alone(
    gradients: list[list[float]], parameters: list[float], undecided: bool
) -> None:
    one, other = moved(PLAIN, [0.0, 1.0, 2.0, 3.0]), moved(gradients, parameters)
    found = compare(steady(one), run(other), tolerance=1e-3)
    assert found.difference is Difference.CLOSE
    assert ("times their precision apart" in found.undecided) is undecided
    # A card may round more coarsely than the type says, and so do lower types.
    for record_ in (moved(PLAIN, [0.0, 1.0, 2.0, 3.0], "NVIDIA"), replace(one, precision="bfloat16")):
        same = replace(other, about=record_.about, precision=record_.precision)
        assert compare(steady(record_), run(same), tolerance=1e-3).undecided == ""


def test_a_loss_that_differs_by_more_than_rounding_while_all_parameters_are_the_same_is_another() -> None:
    one, other = record(LOSSES, [0.0] * 4), record([1.0 + 1e-6, 0.5 + 3e-4, 0.25, 0.125], [0.0] * 4)
    one.about = other.about = {"device": "cpu"}
    found = compare(run(one), run(other), tolerance=1e-3)
    assert found.difference is Difference.DIFFERENT
    later = record([1.0 + 1e-6, 0.5 + 3e-4, 0.25, 0.125], [1e-6, 0.0, 0.0, 0.0])
    later.about = {"device": "cpu"}
    assert compare(run(one), run(later), tolerance=1e-3).difference is Difference.CLOSE


def test_modules_that_compute_in_another_type_are_told() -> None:
    one, other = record(LOSSES), replace(record(LOSSES), precision="bfloat16")
    assert "bfloat16" in compare(steady(one), run(other), tolerance=1e-3).undecided
    assert not compare(steady(other), run(replace(other)), tolerance=1e-3).undecided


def test_what_one_alone_prints_or_writes_differs() -> None:
    quiet = record(LOSSES, end="completed")
    talks = replace(quiet, printed={"stdout": ["loss 1.5"]})
    writes = replace(quiet, files=[Written("log.txt", FileKind.TEXT, (), values([]), {}, ("1.5",))])
    for one, other in ((quiet, talks), (talks, quiet), (quiet, writes), (writes, quiet)):
        assert compare(steady(one), steady(other), tolerance=0).difference is Difference.DIFFERENT
        assert compare(steady(one), steady(one), tolerance=0).difference is Difference.IDENTICAL


@pytest.mark.parametrize(("form", "other", "same"), [
    (("a number (float32)",), ("a number",), True),
    (("a number (float32)",), ("a number (float64)",), False),
    (("a number",), ("None",), False),
    (("list of 1", "a number"), ("list of 1",), False),
])  # fmt: skip
def test_what_a_call_by_itself_returned(form: tuple[str, ...], other: tuple[str, ...], same: bool) -> None:
    site = Site("train.py", 1, "score")
    one, two = (
        replace(record(LOSSES), outputs=[Output(site, 9, 1, values([1.0]), 4, each, "0")]) for each in (form, other)
    )
    found = compare(steady(one), steady(two), tolerance=0)
    assert (found.difference is Difference.IDENTICAL) is same
    assert same or "what call 1 of score returned or left behind" in found.first


def test_a_graph_in_one_alone_is_undecided() -> None:
    site = Site("train.py", 1, "score")
    one, two = (
        replace(record(LOSSES), outputs=[Output(site, 9, 1, values([1.0]), 4, ("a number",), each)]) for each in "01"
    )
    assert "carries a graph" in compare(steady(one), steady(two), tolerance=0).undecided


def test_what_threads_are_given_is_compared_in_any_order() -> None:
    def made(*results: float) -> Record:
        outputs = [output([result])._replace(call=call, thread=True) for call, result in enumerate(results, 1)]
        return replace(record(LOSSES, end="completed"), outputs=outputs)

    one = made(1.0, 2.0)
    assert not compare(steady(one), steady(made(2.0, 1.0)), tolerance=0).undecided
    assert "to other threads differs" in compare(steady(one), steady(made(1.0, 3.0)), tolerance=0).undecided
    assert "to other threads differs" in compare(steady(one), steady(made(1.0)), tolerance=0).undecided


@pytest.mark.parametrize(("other", "undecided"), [("1|a", False), ("1|b", True), ("1", True)])
def test_gradients_of_made_up_arguments_alone_break_nothing(other: str, undecided: bool) -> None:
    site = Site("train.py", 1, "score")
    one, two = (
        replace(record(LOSSES), outputs=[Output(site, 9, 1, values([1.0]), 4, ("a number",), each)])
        for each in ("1|a", other)
    )
    found = compare(steady(one), steady(two), tolerance=0)
    assert ("made-up argument" in found.undecided) is undecided
    assert found.difference is Difference.IDENTICAL
