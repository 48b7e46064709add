"""Small training scripts whose faults, or lack of them, are known."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.verify.probe.tools import SCENARIOS, forked, probe, probe_all

pytestmark = pytest.mark.slow

LEAKS = {
    "buffer": "layer.average",
    "closure": "update.<closure average>",
    "hidden_retained": "net.state",
    "long_deque": "recent[*]",
    "loss_list": "self.logs['train']['loss'][*]",
    "short_function": "kept[*]",
    "slots": "Registry.meters['loss'].sum",
    "total_loss": "total",
}
#: script: (kind of error, the user's line, what is missing)
RAISES = {
    "carried_state": ("freed", 14, None),
    "same_loss_twice": ("freed", 10, None),
    "stepped_between": ("inplace", 14, None),
    "missing_file": ("missing", 5, "data/train.pt"),
    "missing_module": ("missing", 3, "a_package_that_nobody_has"),
}
FLAT = sorted(path.stem for path in (SCENARIOS / "flat").glob("*.py"))


def script(kind: str, name: str) -> Path:
    return SCENARIOS / kind / f"{name}.py"


def test_every_leak_is_listed() -> None:
    assert {path.stem for path in (SCENARIOS / "leaks").glob("*.py")} == {*LEAKS, "validation"}


@pytest.mark.parametrize("name", LEAKS)
def test_leaks_are_counted_and_named(name: str) -> None:
    record, done = forked(script("leaks", name))
    assert done.returncode == 0, done.stderr
    assert record.census is not None
    assert record.census.leak
    assert LEAKS[name] in [holder.name for holder in record.census.holders]
    live = [backward.live for backward in record.backwards]
    # Not a fit: with one graph more a step every later count is larger than every earlier one.
    assert all(later > earlier for earlier, later in itertools.pairwise(live[2:]))
    assert record.notes == []


def test_forwards_that_no_backward_uses() -> None:
    record, _ = probe(script("leaks", "validation"))
    (wasted,) = [row for row in record.forwards if row.wasted]
    assert (str(wasted.site), wasted.calls, wasted.used, wasted.peak) == ("validation.py:14", 24, 0, 12)


@pytest.mark.parametrize("name", FLAT)
def test_sound_training_is_silent(name: str) -> None:
    record, done = forked(script("flat", name))
    assert done.returncode == 0, done.stderr
    assert record.end == ("backwards" if name == "by_hand" else "steps")
    assert record.census is not None
    assert not record.census.leak
    assert record.census.holders == ()
    assert [row for row in record.forwards if row.wasted] == []
    assert record.error is None
    assert record.caught == []
    assert record.notes == []


def test_spawned_workers_stay_silent() -> None:
    records, done = probe_all(script("flat", "workers"), "spawn")
    assert done.returncode == 0, done.stderr
    assert [(record.process, record.end) for record in records] == [("main", "steps")]
    assert len(records[0].steps) == 20


@pytest.mark.parametrize("name", RAISES)
def test_errors_are_told_with_the_users_line(name: str) -> None:
    kind, line, missing = RAISES[name]
    record, done = forked(script("raises", name))
    assert done.returncode == 1
    assert record.end == "raised"
    assert record.error is not None
    assert record.error.kind == kind
    assert record.error_site is not None
    assert (record.error_site.path, record.error_site.line) == (f"{name}.py", line)
    assert record.missing == missing
    assert f'{name}.py", line {line}' in record.traceback
    # What Python itself prints is untouched.
    assert record.error.message.splitlines()[0] in done.stderr


def test_errors_of_backward_are_told_even_if_caught() -> None:
    record, _ = probe(script("raises", "caught"))
    ((site, trouble, *_),) = record.caught
    assert site is not None
    assert site.line == 14
    assert trouble.kind == "freed"
    assert record.error is None
    assert record.end == "steps"
    assert [backward.index for backward in record.backwards if backward.error is not None] == [6]
