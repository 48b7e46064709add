"""How one command is judged: which runs are made again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.verify.builders import record, run
from verify.judging.bench import waited_in_vain


@pytest.mark.parametrize(
    ("made", "end", "came", "vain"),
    [
        (100, "steps", {}, True),
        (100, "steps", {("train.py", 3): 0, ("train.py", 9): 19}, True),
        (100, "steps", {("train.py", 3): 0, ("train.py", 9): 60}, False),
        (20, "steps", {("train.py", 3): 0}, False),
        (100, "completed", {("train.py", 3): 0}, False),
        (100, "watchdog", {}, False),
    ],
)
def test_a_run_that_waited_in_vain(made: int, end: str, came: dict[tuple[str, int], int], vain: bool) -> None:
    waited = run(replace(record([1.0] * made, end=end), reached_after=came))
    assert waited_in_vain(waited, 20) is vain
