"""What a person sees while a campaign is at work."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from codemods.batch.executors import Doing
from codemods.batch.progress import Progress

LONG = "the original without what it lacks: train.py --epochs 1 " + "x" * 300


@pytest.mark.parametrize("width", [40, 50, 80, 200])
def test_long_texts_leave_the_stage_and_the_time_to_be_read(width: int) -> None:
    progress = Progress(quiet=True)
    progress.begin(12, 0)
    doing = [Doing("1", 1, "owner+" + "long-" * 20, "rewrite", LONG), Doing("12", 2, "args", "verify", "\x1b[2J")]
    shown = io.StringIO()
    Console(file=shown, width=width).print(progress._table(doing))
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "\x1b" not in shown.getvalue()
    head, first, second, total = lines
    assert "since" in head
    assert first.split()[0] == "1"
    assert " rewrite " in first
    assert first.endswith(" s")
    assert second.startswith("12 ")
    assert " verify " in second
    assert total.startswith("0 of 12 repositories")
