"""The lines that call modules bear the same numbers in both programs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.verify.builders import record, run, values
from verify.judging.counterparts import renumbered
from verify.measured.records import Output
from verify.measured.results import Run
from verify.measured.values import Site


def called(*lines: int | None, process: str = "main") -> Run:
    """A run that calls modules at these lines, in this order, twice each."""
    made = record([0.5], process=process)
    for call in (1, 2):
        for number, line in enumerate(lines):
            site = None if line is None else Site("train.py", line, "train")
            made.outputs.append(Output(site, number, call, values([float(number)]), 1))
    return run(made)


def numbers(before: Run, after: Run, origins: Mapping[int, list[int]]) -> list[int]:
    """How the lines of ``after`` are counted; ``origins`` of those that have moved."""
    found = renumbered(after, before, lambda path, line: [(path, each) for each in origins.get(line, [line])])
    first, second = ([each.line for each in found.record.outputs if each.call == call] for call in (1, 2))
    assert first == second
    return first


@pytest.mark.parametrize(
    ("before", "after", "origins", "expected"),
    [
        ([5, 9], [5, 9], {}, [0, 1]),
        ([5, 9], [5, 7, 10], {7: [], 10: [9]}, [0, 2, 1]),
        ([5, 9], [4, 6, 10], {4: [], 6: [5], 10: [9]}, [2, 0, 1]),
        ([5, 7, 9], [5, 8], {8: [9]}, [0, 2]),
        ([5, 9], [5, 20], {20: []}, [0, 1]),
        ([5, 9], [20, 30], {20: [], 30: []}, [0, 1]),
        ([5, 9], [6, 7], {6: [5, 6, 9], 7: [5, 6, 9]}, [0, 1]),
        ([5, 9], [5, 20, 30], {20: [], 30: []}, [0, 2, 3]),
        ([5], [5, 20, 30], {20: [], 30: []}, [0, 1, 2]),
        ([None, 9], [None, 10], {10: [9]}, [0, 1]),
        ([None], [None, 10], {10: []}, [1, 2]),
        ([], [5], {}, [0]),
    ],
)
def test_lines_have_the_number_of_their_counterpart(
    before: list[int | None], after: list[int | None], origins: dict[int, list[int]], expected: list[int]
) -> None:
    assert numbers(called(*before), called(*after), origins) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([("Net", 5)], [("Net", 5), ("MSELoss", 5)], [0, 1]),
        ([("Net", 5)], [("Flatten", 5), ("Net", 5)], [1, 0]),
        ([("Net", 5), ("Net", 5)], [("Net", 5), ("Net", 5)], [0, 1]),
        ([("Net", 5)], [("DataParallel", 5)], [0]),
    ],
)
def test_modules_on_one_line(before: list[tuple[str, int]], after: list[tuple[str, int]], expected: list[int]) -> None:
    runs = []
    for named in (before, after):
        made = called(*(line for _, line in named))
        made.record.outputs[:] = [each._replace(module=named[each.line][0]) for each in made.record.outputs]
        runs.append(made)
    assert numbers(*runs, {}) == expected


def test_what_functions_called_by_themselves_return_keeps_its_number() -> None:
    after = called(5, 9)
    after.record.outputs[0] = after.record.outputs[0]._replace(line=7, form=("a number",))
    found = renumbered(after, called(9), lambda path, line: [(path, line)])
    assert [each.line for each in found.record.outputs] == [7, 0, 1, 0]


def test_each_process_is_counted_by_itself() -> None:
    one, other = called(5, 9), called(3, 5, process="rank-1")
    both = run(*one.records, *other.records)
    swapped = run(*called(9, 5).records, *called(5, process="rank-1").records)
    found = renumbered(swapped, both, lambda path, line: [(path, line)])
    assert [[each.line for each in made.outputs] for made in found.records] == [[1, 0, 1, 0], [1, 1]]


def _told(*outputs: tuple[int, float]) -> Run:
    """A run of these outputs of modules of one class, each at its line, in this order."""
    made = record([0.5])
    lines = list(dict.fromkeys(line for line, _ in outputs))
    calls = dict.fromkeys(lines, 0)
    for line, value in outputs:
        calls[line] += 1
        site = Site("train.py", line, "train")
        made.outputs.append(Output(site, lines.index(line), calls[line], values([value]), 1, module="Linear"))
    return run(made)


def test_a_line_that_became_two_is_counted_as_before() -> None:
    before = _told((5, 1.0), (5, 2.0), (5, 3.0), (5, 4.0))
    after = _told((6, 1.0), (7, 2.0), (6, 3.0), (7, 4.0))
    found = renumbered(after, before, lambda path, line: [(path, 5)])
    assert [(each.line, each.call) for each in found.record.outputs] == [(0, 1), (0, 2), (0, 3), (0, 4)]


def test_a_call_more_beside_another_is_counted_by_itself() -> None:
    before = _told((5, 1.0), (5, 2.0))
    after = _told((6, 1.0), (7, 9.0), (6, 2.0), (7, 8.0))
    found = renumbered(after, before, lambda path, line: [(path, 5)])
    assert [(each.line, each.call) for each in found.record.outputs] == [(0, 1), (1, 1), (0, 2), (1, 2)]
