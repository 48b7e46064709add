"""A run that is to look closer and ends by an error of its own: the diagnosis says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.verify.builders import OTHER, record, run
from verify.diagnosis import diagnose, resources
from verify.diagnosis.model import Diagnosis
from verify.diagnosis.reports.text import render
from verify.measured.results import Run
from verify.running.missing import Instead
from verify.running.settings import Command, Settings


def examined(monkeypatch: pytest.MonkeyPatch, first: Run, second: Run, *, slower: bool = False) -> Diagnosis:
    """The diagnosis of a program whose steps seem to get slower, which a second run is to show."""
    runs = iter([first, second])
    runner = SimpleNamespace(
        root=Path.cwd(),
        settings=Settings(),
        instead=Instead(),
        leaving=None,
        run=lambda name, *_, **__: replace(next(runs), name=name),
        trouble=lambda: "",
    )
    fault = diagnose.Fault(diagnose.Kind.SLOWER_STEPS, "steps get slower", None)
    monkeypatch.setattr(resources, "slows", lambda _: 1)
    monkeypatch.setattr(resources, "slower", lambda *_: [fault] if slower else [])
    command = Command(("python", "train.py"), Path.cwd(), "train.py", None)
    told: Any = runner
    return diagnose.examine(command, told, names=False)


def test_nothing_found_is_not_said_where_the_second_run_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    fine, failed = run(record([1.0] * 6)), run(record([1.0] * 2, error=OTHER))
    diagnosis = examined(monkeypatch, fine, failed)
    assert diagnosis.status == 3
    assert "which line gets slower" in diagnosis.reason
    assert "raises ValueError" in diagnosis.reason
    shown = render(diagnosis)
    assert "nothing found" not in shown
    assert diagnosis.reason in shown


def test_what_is_found_stands_beside_the_run_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    fine, failed = run(record([1.0] * 6)), run(record([1.0] * 2, error=OTHER))
    diagnosis = examined(monkeypatch, fine, failed, slower=True)
    assert (diagnosis.status, diagnosis.reason) == (1, "")
    assert any("raises ValueError" in text for text in diagnosis.unwatched)


def test_an_error_that_the_first_run_had_too_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = run(record([1.0] * 2, error=OTHER))
    diagnosis = examined(monkeypatch, failed, failed)
    assert diagnosis.reason.startswith("the program stops")
    assert not any("raises" in text for text in diagnosis.unwatched)


def test_runs_that_end_alike_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fine = run(record([1.0] * 6))
    diagnosis = examined(monkeypatch, fine, fine)
    assert (diagnosis.status, diagnosis.reason) == (0, "")
    assert "nothing found" in render(diagnosis)
