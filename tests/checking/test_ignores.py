"""Suppression comments that do nothing: found, reported, taken out."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.checking.check import CheckResult, check
from codemods.checking.ignores import remove_unused_ignores
from codemods.source.options import Options, PerFileIgnores
from tests import fakes

# Rules that there are; the fake engine's findings carry other names, so that these are found nowhere.
IDLE = "stored-graph"


def checked(text: str, folder: Path | None = None, **options: object) -> CheckResult:
    source = fakes.source("a.py", text, folder)
    return check(
        [source], options=Options(**options), analyse=fakes.Analyser(), report_unused_ignores=True  # type: ignore[arg-type]
    )  # fmt: skip


def said(text: str, **options: object) -> list[tuple[int, tuple[str, ...] | None, str]]:
    return [(one.comment.line, one.rules, one.reason) for one in checked(text, **options).unused]


def test_used_ones_are_not_reported() -> None:
    assert said("x = WRONG  # codemod: ignore\ny = (\n    WRONG,  # codemod: ignore\n)\n") == []
    assert said("# codemod: ignore-file\nx = WRONG\n") == []
    assert said("x = 1\n") == []


def test_what_suppresses_nothing() -> None:
    assert said("x = 1  # codemod: ignore\n") == [(1, None, "suppresses nothing")]
    assert said(f"x = WRONG  # codemod: ignore[{IDLE}]\n") == [(1, None, f"{IDLE} is not found here")]
    assert said("# codemod: ignore-file\nx = 1\n") == [(1, None, "suppresses nothing")]
    assert said("x = 1  # codemod: ignore[]\n") == [(1, None, "names no rule and suppresses nothing")]


def test_a_comment_by_itself() -> None:
    ((line, rules, reason),) = said("# codemod: ignore\nx = WRONG\n")
    assert (line, rules, "is not on a statement" in reason) == (1, None, True)


def test_rules_that_do_not_exist() -> None:
    text = "x = WRONG  # codemod: ignore[stored-grph]\n"
    assert said(text) == [(1, None, "no rule is called stored-grph, did you mean stored-graph?")]
    # Whatever is selected, no rule is called that.
    assert said(text, select=("attached-loss-total",)) != []


def test_some_of_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codemods.rules.rule_names", lambda: ("wrong", IDLE))
    monkeypatch.setattr("codemods.checking.ignores._judged", lambda path, options: frozenset({"wrong", IDLE}))
    assert said(f"x = WRONG  # codemod: ignore[wrong, {IDLE}, nope]\n") == [
        (1, (IDLE, "nope"), f"no rule is called nope; {IDLE} is not found here")
    ]


def test_nothing_is_said_of_rules_that_were_left_out() -> None:
    named = f"x = 1  # codemod: ignore[{IDLE}]\ny = 1  # codemod: ignore[empty-cache]\n"
    assert [line for line, *_ in said(named)] == [1]  # the other rule is for those who ask for it
    assert said(named, ignore=(IDLE,)) == []
    assert said(named, select=("attached-loss-total",)) == []
    assert said(named, per_file_ignores=PerFileIgnores(str(Path.cwd()), (("*.py", (IDLE,)),))) == []
    assert said("x = 1  # codemod: ignore\n", ignore=(IDLE,)) == []


def test_nothing_is_said_of_a_file_that_is_no_python() -> None:
    assert said("x = 1  # codemod: ignore\ny = (\n") == []


def test_taken_out(tmp_path: Path) -> None:
    text = f"# codemod: ignore\nx = 1  # noqa  # codemod: ignore\ny = WRONG  # codemod: ignore\nz = 1  # codemod: ignore[{IDLE}] -- x\n"  # noqa: E501
    result = checked(text, tmp_path)
    source = fakes.source("a.py", text, tmp_path)
    done = remove_unused_ignores(result.unused, [source])
    assert (done.paths, done.number, done.unwritten) == (("a.py",), 3, ())
    left = (tmp_path / "a.py").read_text()
    assert left == "x = 1  # noqa\ny = WRONG  # codemod: ignore\nz = 1\n"
    assert checked(left, tmp_path).unused == ()


def test_a_file_that_changed_meanwhile_is_left(tmp_path: Path) -> None:
    result = checked("x = 1  # codemod: ignore\n", tmp_path)
    source = fakes.source("a.py", "x = 1  # codemod: ignore\n", tmp_path)
    (tmp_path / "a.py").write_text("x = 2  # codemod: ignore\n")
    done = remove_unused_ignores(result.unused, [source])
    assert (done.paths, [entry.path for entry in done.unwritten]) == ((), ["a.py"])
    assert (tmp_path / "a.py").read_text() == "x = 2  # codemod: ignore\n"
