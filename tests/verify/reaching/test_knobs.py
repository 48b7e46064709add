"""Knobs are written within the lines that they concern, at one place in both texts, or nowhere."""

from __future__ import annotations

import ast
import builtins
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codemods.source.files import read_source
from codemods.source.options import Options
from tests.verify.builders import record, run
from verify.probe.lines import knobs as probe
from verify.reaching.knobs import Bound, Cap, Knobs, Unfit, comparisons, counters
from verify.running.rewriting import RuleRewriter

LOOPS = """\
seen = []
for epoch in range(1, 7):
    for letter in "a", "b", "ü", "d":
        seen.append(letter)
    count = 0
    while (count := count + 1) or seen:
        seen.append(count)
    if epoch % 100 == 0 and epoch > 50:
        seen.append("hundredth")
    if not epoch % 100:
        seen.append("again")
    if len(seen) is None or "x" in seen:
        seen.append("never")
"""


@pytest.fixture
def told() -> Iterator[list[dict[str, Any]]]:
    """The builtins in this process, and the events that they write."""
    events: list[dict[str, Any]] = []
    probe.install(events.append)
    yield events
    for name in (probe.TURNS, probe.TURN, probe.BOUND):
        delattr(builtins, name)


def turned(tmp_path: Path, text: str, knobs: Knobs) -> str:
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    return knobs.over(rewriter(tmp_path), tmp_path, None)["train.py"].decode()


def rewriter(root: Path) -> RuleRewriter:
    return RuleRewriter([read_source(root / "train.py")], Options(), root=root, jobs=1)


def test_loops_end_and_bounds_are_met(tmp_path: Path, told: list[dict[str, Any]]) -> None:
    caps = (Cap("train.py", 2, 1), Cap("train.py", 3, 3), Cap("train.py", 6, 2))
    text = turned(tmp_path, LOOPS, Knobs(caps, (Bound("train.py", 8), Bound("train.py", 10))))
    assert text.count("\n") == LOOPS.count("\n")
    names: dict[str, Any] = {}
    exec(compile(text, "train.py", "exec"), names)
    assert names["seen"] == ["a", "b", "ü", 1, 2, "hundredth", "again"]
    assert [(event["kind"], event["line"]) for event in told] == [
        ("loop", 3), ("loop", 6), ("bound", 8), ("bound", 10), ("loop", 2),
    ]  # fmt: skip


def test_a_loop_that_ends_by_itself_is_left_alone(told: list[dict[str, Any]]) -> None:
    turns = getattr(builtins, probe.TURNS)
    assert list(turns([1, 2], "train.py:1", 3)) == [1, 2]
    turn = getattr(builtins, probe.TURN)
    assert [turn(value, "train.py:1", 5) for value in (1, 1, 0, [])] == [1, 1, 0, []]
    assert told == []


def test_nothing_more_is_asked_of_what_a_loop_runs_over(told: list[dict[str, Any]]) -> None:
    stream = io.StringIO("one\ntwo\nthree\n")
    assert list(getattr(builtins, probe.TURNS)(stream, "train.py:1", 2)) == ["one\n", "two\n"]
    assert stream.readline() == "three\n"


def test_a_while_loop_has_its_turns_in_each_call(told: list[dict[str, Any]]) -> None:
    turn = getattr(builtins, probe.TURN)

    def loop() -> int:
        count = 0
        while turn(True, "train.py:1", 2):
            count += 1
            if count == 5:
                break
        return count

    assert [loop(), loop()] == [2, 2]


def test_only_plain_truth_values_are_bounds(told: list[dict[str, Any]]) -> None:
    bound = getattr(builtins, probe.BOUND)
    odd = object()
    assert bound(odd, "train.py:1", True) is odd
    assert bound(False, "train.py:1", True) is True
    assert bound(True, "train.py:1", False) is False


@pytest.mark.parametrize("test", [
    "step > 59", "step % 10 == 0", "not step % 10", "self.step >= warmup", "step == 3 or flag", "3 < step <= 9",
])  # fmt: skip
def test_bounds(test: str) -> None:
    assert list(comparisons(condition(test), True, counters(ast.parse(COUNTING))))


@pytest.mark.parametrize("test", [
    "flag", "mode == 3", "best is None", "step in seen", "name == 'adam'", "step == 'last'", "'%d' % step == text",
    "isinstance(step, int)", "self.mode == 3", "loss < best", "not flag",
])  # fmt: skip
def test_no_bounds(test: str) -> None:
    assert not list(comparisons(condition(test), True, counters(ast.parse(COUNTING))))


COUNTING = "for step in range(9):\n    self.step += 1\n"


def condition(test: str) -> ast.expr:
    return ast.parse(test, mode="eval").body


REWRITTEN = """\
import torch
def train(model, optimizer, data, epochs):
    for epoch in range(epochs):
        total = 0
        for x, y in data:
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            total += loss
        if epoch % 10 == 0:
            print(total / len(data))
"""


def test_the_same_knobs_in_the_rewritten_text(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(REWRITTEN)
    made = rewriter(tmp_path)
    version = made.all()
    assert version.files
    knobs = Knobs((Cap("train.py", 5, 2),), (Bound("train.py", 11),))
    text = knobs.over(made, tmp_path, version)["train.py"].decode()
    assert f"for x, y in {probe.TURNS}((data), 'train.py:5', 2):" in text
    assert f"if {probe.BOUND}((epoch % 10 == 0), 'train.py:11', True):" in text
    assert text.count("\n") == version.files["train.py"].count(b"\n")


@pytest.mark.parametrize("knobs", [
    Knobs((Cap("train.py", 6, 2),)),
    Knobs((), (Bound("train.py", 5),)),
    Knobs((Cap("missing.py", 1, 2),)),
])  # fmt: skip
def test_a_knob_without_a_place_is_refused(tmp_path: Path, knobs: Knobs) -> None:
    (tmp_path / "train.py").write_text(REWRITTEN)
    with pytest.raises(Unfit):
        knobs.over(rewriter(tmp_path), tmp_path, None)


def test_files_without_knobs_are_those_of_the_version(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(REWRITTEN)
    made = rewriter(tmp_path)
    version = made.all()
    assert Knobs().over(made, tmp_path, version) == dict(version.files)
    assert Knobs().over(made, tmp_path, None) == {}


def test_tracebacks_show_the_lines_as_they_were() -> None:
    line = f"  for x in {probe.TURNS}((f(a, (1, 2))), 'a b.py:3', 2):\n"
    assert probe.plain(line) == "  for x in f(a, (1, 2)):\n"
    assert probe.plain(f"if {probe.BOUND}((n % 2 == 0), 'x:1', True) and y:") == "if n % 2 == 0 and y:"
    assert probe.plain("x = (1, 'two')") == "x = (1, 'two')"


def test_a_program_that_had_no_time_makes_fewer_steps_where_loops_are_cut_short() -> None:
    caps = Knobs(caps=(Cap("train.py", 3, 2),))
    late = run(record([1.0] * 7, end="watchdog"))
    assert caps.shorter(late).configuration()["steps"] == 7
    assert caps.shorter(run(record([1.0], end="watchdog"))).configuration()["steps"] == 2
    assert "steps" not in caps.shorter(run(record([1.0] * 20, end="steps"))).configuration()
