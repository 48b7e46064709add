"""The text says what matters, fits the terminal and drives it nowhere."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import pytest
from rich.cells import cell_len

from codemods.cli._ours import is_ours
from tests.verify.reports import tools
from verify.measured.records import Caught
from verify.measured.results import Rewrite, Verdict, Verification
from verify.reports import render

ESCAPE = re.compile("\x1b\\[[0-9;]*m")


@pytest.fixture(autouse=True)
def _roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def row(text: str, label: str) -> str:
    """The first line of a row of the table, without its label, blanks as one."""
    line = next(line for line in text.splitlines() if line.startswith(label))
    return " ".join(line.removeprefix(label).split())


@pytest.mark.parametrize("columns", [20, 60, 80, 100, 120, 300])
@pytest.mark.parametrize("shape", tools.ALL)
def test_every_shape_fits(shape: Callable[[], Verification], columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = render(shape(), "text")
    assert max(map(cell_len, text.splitlines())) <= min(max(columns, 60), 120)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert not any(line != line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("shape", tools.ALL)
def test_colours_change_nothing_else(shape: Callable[[], Verification]) -> None:
    plain, coloured = render(shape(), "text"), render(shape(), "text", colour=True)
    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    uncoloured = [line.rstrip() for line in ESCAPE.sub("", coloured).splitlines()]
    assert uncoloured == plain.splitlines()


def test_surroundings_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = render(tools.exact(), "text")
    for name, value in {"NO_COLOR": "1", "TERM": "dumb", "FORCE_COLOR": "1", "CI": "1", "JUPYTER_COLUMNS": "9"}.items():
        monkeypatch.setenv(name, value)
    assert render(tools.exact(), "text") == plain


def test_repair() -> None:
    text = render(tools.repaired(), "text")
    assert text.startswith("python train.py --epochs 1\ncpu, torch 2.13.0, Python 3.11.9, 1 thread")
    assert row(text, "outcome") == "raised RuntimeError ok, stopped after 20 steps"
    assert row(text, "calls of backward") == "2, 1 raised 20"
    assert row(text, "live graph nodes") == "0, too few steps to tell a trend flat, 0"
    assert "train.py:41 in train" in text
    assert "original: RuntimeError: Trying to backward through the graph a second time" in text
    assert re.search(
        r"^kept +carried-hidden-state +train\.py:33 +repair\n    the error of the original", text, re.MULTILINE
    )
    assert re.search(r"^not reached +grad-in-evaluation +train\.py:88 +exact\n    lines 88 to 97", text, re.MULTILINE)
    assert "together with" in text
    assert "or directly access" not in text, "torch's advice would have the graph retained"
    assert "Traceback" not in text, "the expected error is no news"
    assert text.endswith("every promise that was put to the test held: 1 kept, 1 not reached\n")


def test_growth_and_waste() -> None:
    text = render(tools.exact(), "text")
    assert row(text, "live graph nodes") == "growing, +152 a step flat, 0"
    assert "152 → 3,040" in text
    assert "held by total in train" in text
    assert row(text, "wasted forwards").endswith("none")
    assert "eval.py:12: 60 calls, none used, 20 alive" in text
    assert row(text, "memory, each step") == "+59.8 KiB 0 B"
    assert row(text, "time a step") == "12 ms (12 ms to 12 ms) 12 ms (12 ms to 12 ms)"
    assert "original again" not in text, "it says the same as the original"
    assert row(text, "same as the original").startswith("deterministic: run twice")


def test_broken() -> None:
    text = render(tools.broken(), "text")
    assert row(text, "first difference") == "– loss of call 3 of the backward at train.py:41:"
    assert "1.99791 and 2.14083\n" in text
    assert "random numbers)\n" in text
    assert "with surplus-retain-graph at train.py:9 alone: ok" in text
    kept = dataclasses.replace(tools.broken().entries[0], rewrites=tools.exact().entries[0].rewrites)
    assert "alone: ok" not in render(tools.verification(kept), "text")
    assert "2.14083; without" in text
    assert "it the rest holds\n" in text
    assert text.endswith("1 of 2 promises broken: 1 kept, 1 broken\n")


def test_what_broke_is_not_in_the_rewritten_column() -> None:
    told = "rewritten is the program without the rewrite that broke its promise"
    assert f"\n{told}\n" in render(tools.broken(), "text")
    assert f"{told[0].upper()}{told[1:]}." in render(tools.broken(), "html")
    for shape in (tools.exact, tools.crashed, tools.not_reached, tools.unjudged):
        assert "rewritten is" not in render(shape(), "text"), shape.__name__


def test_rewritten_program_that_raises_shows_its_traceback() -> None:
    text = render(tools.crashed(), "text")
    assert "rewritten:\n    Traceback (most recent call last):\n      File" in text
    assert text.count("Traceback") == 1


def test_the_same_error_twice_is_told_once() -> None:
    original, gone = tools.unjudged().entries[0].original, tools.unjudged()
    error = original.record.error
    assert error is not None
    for other, times in ((error, 1), (error._replace(message="somewhere else"), 2)):
        record = dataclasses.replace(original.record, error=other)
        rewritten = dataclasses.replace(original, name="rewritten", records=(record,))
        made = dataclasses.replace(gone, entries=(tools.entry(original, rewritten, comparison=None),))
        assert render(made, "text").count("Traceback") == times


def test_an_exception_that_ended_the_run_was_not_caught() -> None:
    ended = tools.record(1, raised=tools.FREED, caught=[Caught(tools.LINE, tools.FREED)])
    went_on = tools.record(1, raised=tools.FREED, caught=[Caught(tools.LINE, tools.FREED)] * 3)
    for record, told in ((ended, ""), (went_on, "caught 2 × RuntimeError")):
        entry = tools.entry(tools.run("original", record, outcome=tools.Outcome.RAISED), None)
        text = render(tools.verification(entry), "text")
        assert told in text
        assert ("caught" in text) is bool(told)


def reasons(*rewrites: tuple[str, Verdict], judged: bool = True) -> str:
    """What the report says of ``rewrites``, each a reason and a verdict."""
    made = tuple(Rewrite((tools.finding(line=n),), verdict, why) for n, (why, verdict) in enumerate(rewrites, 1))
    run = tools.run("original", tools.record())
    text = render(tools.verification(tools.entry(run, run, made), judged=judged, reason="" if judged else "no"), "text")
    return text[text.index(made[0].verdict.value + "  ") :].split("\n\n")[0]


def test_short_reasons_stand_beside_the_rewrite() -> None:
    kept = Verdict.KEPT
    assert reasons(("same", kept), ("other", kept)).splitlines() == [
        "kept  surplus-retain-graph  train.py:1  exact  same",
        "kept  surplus-retain-graph  train.py:2  exact  other",
    ]


def test_long_reasons_stand_below_and_are_shared() -> None:
    kept, long = Verdict.KEPT, "a reason that fits nowhere beside names such as these, as most of the reasons are"
    text = reasons((long, kept), (long, kept), ("other", kept), (long, kept), (long, kept), (long, kept))
    assert text.splitlines() == [
        "kept  surplus-retain-graph  train.py:1  exact",
        "kept  surplus-retain-graph  train.py:2  exact",
        f"    both: {long}",
        "kept  surplus-retain-graph  train.py:3  exact",
        "    other",
        "kept  surplus-retain-graph  train.py:4  exact",
        "kept  surplus-retain-graph  train.py:5  exact",
        "kept  surplus-retain-graph  train.py:6  exact",
        f"    all 3: {long}",
    ]


def test_lines_out_of_reach_need_no_reason_where_nothing_ran() -> None:
    missed = ("train.py:9 never ran within these steps", Verdict.NOT_REACHED)
    assert "never ran" in reasons(missed)
    assert "never ran" not in reasons(missed, judged=False)
    assert "not deterministic" in reasons(("not deterministic", Verdict.NOT_JUDGED), judged=False)


def test_what_could_not_be_judged_shows_traceback_and_advice() -> None:
    text = render(tools.unjudged(), "text")
    assert '    open("data/train.bin")' in text
    assert "loss" not in text, "there is nothing to say of losses"
    assert text.index("Traceback") < text.index("could not be judged") < text.index("- give the path of the data")


def test_output_stands_in_for_a_traceback() -> None:
    silent = tools.run("original", outcome=tools.Outcome.NOT_STARTED, output="\n".join(f"line {n}" for n in range(40)))
    made = tools.verification(
        tools.entry(silent, None, repeatable=None, again=None), judged=False, reason="no", diff=""
    )
    text = render(made, "text")
    assert "line 39" in text
    assert "line 25" in text
    assert "line 24" not in text


def test_limits_and_notes() -> None:
    text = render(tools.stand_ins(), "text")
    assert "stand-in data for CIFAR10, shape 50000×32×32×3" in text
    assert "nothing about accuracy" in text
    assert "the CPU took its place: Tensor.cuda(), torch.device('cuda:0')" in text
    assert "train.py:30: DataLoader stopped after 5 of 1,563 batches" in text
    assert "caught 3 × RuntimeError" in text
    assert text.count("cannot be seen") == 1, "every note once"
    assert "limits:" not in render(tools.exact(), "text")
    assert "notes:" not in render(tools.exact(), "text")


def test_original_again_is_shown_where_it_differs() -> None:
    text = render(tools.random(), "text")
    assert row(text, "loss, first → last") == "2.31 → 0.58182 2.29 → 0.57678 2.3 → 0.47173"
    assert "not deterministic: losses up" in text


def test_nothing_to_hold() -> None:
    assert render(tools.nothing(), "text").endswith("nothing was rewritten, so there is no promise to hold\n")
    assert render(tools.no_torch(), "text").startswith("could not be judged\n/usr/bin/python3 has no torch")


def test_what_was_kept_is_told_where_not_all_could_be_judged() -> None:
    kept, unknown = (
        Rewrite((tools.finding(line=line),), verdict, "a reason")
        for line, verdict in ((3, Verdict.KEPT), (9, Verdict.NOT_JUDGED))
    )
    record = tools.record()
    made = tools.verification(
        tools.entry(tools.run("original", record), tools.run("rewritten", record), (kept, unknown))
    )
    text = render(made, "text")
    assert text.endswith("\n1 of 2 promises held; not all could be judged: 1 kept, 1 not judged\n")
    assert is_ours(text.encode(), ["text"])


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
@pytest.mark.parametrize("shape", tools.ALL)
def test_a_report_gives_way_to_a_newer_one(shape: Callable[[], Verification], form: str) -> None:
    assert is_ours(render(shape(), form).encode(), [form])


def test_no_file_drives_the_terminal() -> None:
    text = render(tools.hostile(), "text")
    assert "^[[31m" in text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f]", text)


def test_unknown_format() -> None:
    with pytest.raises(KeyError):
        render(tools.nothing(), "plots")
