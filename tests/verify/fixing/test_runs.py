"""Which runs are made again, and which are not."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from verify.diagnosis.diagnose import plain_plan
from verify.fixing.runs import SharedRunner
from verify.isolation import machine_memory
from verify.measured.records import Record
from verify.measured.results import Outcome, Run
from verify.running.runner import Asked, Runner
from verify.running.settings import Command, Settings

COMMAND = Command(("python", "t.py"), Path("/tree"), "t.py")
SETTINGS = Settings(steps=3)
DOCTOR = {"doctor": plain_plan(SETTINGS), "params": False}
LINE, OTHER = ("t.py", 1), ("t.py", 2)


class _Made:
    """The runs that are really made, each of which comes to the lines in ``reached`` and makes ``steps``."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.reached = {LINE, OTHER}
        self.steps = 3

    def run(self, runner: Runner, name: str, command: Command, **asked: Any) -> Run:
        self.asked.append(asked)
        record = Record(reached=set(self.reached), steps=[None] * self.steps)  # type: ignore[list-item]
        return Run(name, ("t.py",), Outcome.OK, 0, float(len(self.asked)), 0, (record,), "")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> _Made:
    made = _Made()
    monkeypatch.setattr(Runner, "run", lambda runner, name, command, **asked: made.run(runner, name, command, **asked))
    return made


@pytest.fixture
def runner() -> SharedRunner:
    return SharedRunner(Path("/tree"), SETTINGS)


def test_one_run_answers_a_diagnosis_and_a_verification(runner: SharedRunner, made: _Made) -> None:
    first = runner.run("watching everything", COMMAND, more=DOCTOR)
    second = runner.run("original", COMMAND, files={}, more={"knobs": False, "parts": []})
    assert (len(made.asked), second.wall, second.name) == (1, first.wall, "original")
    # It watched for both.
    assert made.asked[0]["more"]["doctor"] == DOCTOR["doctor"]
    assert made.asked[0]["more"]["params"]


def test_the_original_is_run_again_and_another_program_by_itself(runner: SharedRunner, made: _Made) -> None:
    runner.run("original", COMMAND)
    runner.run("original", COMMAND, watch=[[LINE]], replay=[])
    runner.run("rewritten", COMMAND, files={"t.py": b"1"}, watch=[[LINE]], replay=[])
    assert len(made.asked) == 3
    runner.run("watching everything", COMMAND, files={"t.py": b"1"}, more=DOCTOR)
    runner.run("original", COMMAND, watch=[[LINE]], replay=[])
    assert len(made.asked) == 3
    runner.instead = runner.instead.beside("wandb")
    runner.run("original", COMMAND)
    assert len(made.asked) == 4


def test_a_closer_look_is_a_run_of_its_own(runner: SharedRunner, made: _Made) -> None:
    runner.run("watching everything", COMMAND, more=DOCTOR)
    closer = {"doctor": {**DOCTOR["doctor"], "writes": True}, "params": False}  # type: ignore[dict-item]
    runner.run("who writes", COMMAND, more=closer)
    assert made.asked[1]["more"] == closer


def test_one_run_of_the_original_tells_what_several_will_ask(runner: SharedRunner, made: _Made) -> None:
    runner.ahead = Asked(frozenset([frozenset([LINE]), frozenset([OTHER])]))
    for line in (LINE, OTHER):
        runner.run("original", COMMAND, watch=[[line]], replay=[])
    assert len(made.asked) == 1
    assert sorted(made.asked[0]["watch"]) == [[LINE], [OTHER]]


def test_a_run_that_may_have_waited_for_the_lines_of_others_answers_nobody_else(
    runner: SharedRunner, made: _Made
) -> None:
    made.reached = {LINE}
    runner.ahead = Asked(frozenset([frozenset([LINE]), frozenset([OTHER])]))
    runner.run("original", COMMAND, watch=[[LINE]], replay=[])
    assert [each["watch"] for each in made.asked] == [[[LINE], [OTHER]], [[LINE]]]
    made.steps = 2
    runner.ahead = Asked(frozenset([frozenset([("u.py", 1)]), frozenset([OTHER])]))
    runner.run("original", COMMAND, watch=[[OTHER]], replay=[])
    assert len(made.asked) == 3


def test_several_threads_that_ask_for_one_program_get_one_run(runner: SharedRunner, made: _Made) -> None:
    begun, ended = threading.Event(), threading.Event()
    plain = made.run

    def slow(*given: Any, **asked: Any) -> Run:
        begun.set()
        assert ended.wait(60)
        return plain(*given, **asked)

    made.run = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(runner.run, "original", COMMAND, watch=[[LINE]])
        assert begun.wait(60)
        second = pool.submit(runner.run, "original", COMMAND, watch=[[LINE]])
        other = pool.submit(runner.run, "rewritten", COMMAND, files={"t.py": b"1"}, watch=[[LINE]])
        ended.set()
        walls = {first.result().wall, second.result().wall}
        assert (len(walls), other.result().wall in walls, len(made.asked)) == (1, False, 2)


@pytest.mark.parametrize(
    ("device", "share", "wall", "spare"),
    [("cpu", 0.1, 5.0, True), ("a card", 0.1, 5.0, False), ("cpu", 0.4, 5.0, False), ("cpu", 0.1, 100.0, False)],
)
def test_only_small_programs_without_a_card_run_side_by_side(
    runner: SharedRunner, made: _Made, device: str, share: float, wall: float, spare: bool
) -> None:
    assert not runner.spare()
    run = Run(
        "x", ("t.py",), Outcome.OK, 0, wall, int(share * machine_memory()), (Record(about={"device": device}),), ""
    )
    made.run = lambda *_, **__: run  # type: ignore[method-assign]
    runner.run("original", COMMAND)
    assert runner.spare() is spare


def test_what_is_proved_is_part_of_every_run_and_makes_another_original(runner: SharedRunner, made: _Made) -> None:
    runner.run("original", COMMAND)
    runner.base = {"t.py": b"1"}
    runner.run("original", COMMAND)
    runner.run("rewritten", COMMAND, files={"u.py": b"2"}, watch=[[LINE]])
    assert [dict(each["files"]) for each in made.asked] == [{}, {"t.py": b"1"}, {"t.py": b"1", "u.py": b"2"}]
    runner.run("original", COMMAND, files={"t.py": b"1"})
    assert len(made.asked) == 3
    runner.ahead = Asked(frozenset([frozenset([LINE]), frozenset([OTHER])]))
    runner.run("original", COMMAND, watch=[[LINE]], replay=[])
    assert sorted(made.asked[3]["watch"]) == [[LINE], [OTHER]]


def test_files_are_read_as_they_are_run(tmp_path: Path) -> None:
    for name in ("t.py", "u.py"):
        (tmp_path / name).write_text("old = 0\n", encoding="utf-8")
    runner = SharedRunner(tmp_path, SETTINGS)
    runner.base = {"t.py": b"new = 1\n"}
    texts = {Path(source.path).name: source.text for source in runner.sources()}
    assert texts == {"t.py": "new = 1\n", "u.py": "old = 0\n"}
