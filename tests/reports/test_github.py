"""Annotations, read back as a runner reads them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from codemods.checking.reported import Reported
from codemods.reports import Detail, Report
from codemods.reports.github import render
from codemods.rewriting.result import Dropped, Failure
from codemods.terms.findings import Finding, Promise, Skipped
from codemods.terms.spans import Span

pytestmark = pytest.mark.usefixtures("folder")


def finding(promise: Promise = Promise.EXACT, **more: Any) -> Finding:
    return Finding(
        **{"rule": "x", "path": "a.py", "span": Span(3, 4, 3, 9), "message": "kept", **more, "promise": promise}
    )


def commands(report: Report, detail: Detail = Detail.NORMAL) -> list[tuple[str, dict[str, str], str]]:
    """Kind, properties and message of each line, unescaped as the runner does it."""
    found = []
    for line in render(report, detail).splitlines():
        match = re.fullmatch(r"::(\w+) (.*?)::(.*)", line)
        assert match, line
        pairs = (pair.split("=", 1) for pair in match[2].split(","))
        properties = {name: _back(_back(value, {"%3A": ":", "%2C": ","})) for name, value in pairs}
        found.append((match[1], properties, _back(match[3])))
    return found


def _back(text: str, table: dict[str, str] | None = None) -> str:
    for code, character in (table or {"%0D": "\r", "%0A": "\n", "%25": "%"}).items():
        text = text.replace(code, character)
    return text


def report_of(*findings: Finding, **more: Any) -> Report:
    return Report(1, tuple(Reported(each, None) for each in findings), **{"skipped": (), **more})


def test_a_finding_is_a_command_with_its_place() -> None:
    ((kind, properties, message),) = commands(report_of(finding(remedy="drop it")))
    assert kind == "warning"
    assert properties == {
        "file": "a.py",
        "line": "3",
        "endLine": "3",
        "col": "5",
        "endColumn": "10",
        "title": "x (exact)",
    }
    assert message == "kept\nRemedy: drop it"


def test_several_lines_have_no_columns() -> None:
    ((_, properties, _),) = commands(report_of(finding(span=Span(3, 4, 5, 1))))
    assert (properties["line"], properties["endLine"]) == ("3", "5")
    assert not {"col", "endColumn"} & set(properties)


@pytest.mark.parametrize("text", ["50% off", "a\nb\r\n", "x::y", "a,b=c", "%0A", "::error::no"])
def test_nothing_breaks_out(text: str) -> None:
    found = finding(message=text, path=text.replace("\n", " ").replace("\r", " "), rule=text)
    ((kind, properties, message),) = commands(report_of(found))
    assert kind == "warning"
    assert message == text
    assert properties["title"] == f"{text} (exact)"


def test_what_matters_most_comes_first() -> None:
    report = report_of(*(finding(promise, path=f"{n}.py") for n, promise in enumerate(Promise)))
    assert [kind for kind, _, _ in commands(report)] == ["error", "warning", "warning", "warning", "notice"]


def test_more_than_a_step_shows_is_said_in_the_log() -> None:
    found = [finding(path=f"{n}.py") for n in range(11)]
    assert "only 10" in render(report_of(*found), Detail.NORMAL).splitlines()[-1]
    assert "only 10" not in render(report_of(*found), Detail.QUIET)
    assert "only 10" not in render(report_of(*found[1:]), Detail.NORMAL)


def test_files_are_named_from_the_root_of_the_repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    assert commands(report_of(finding()))[0][1]["file"] == "a.py"
    (folder / ".git").mkdir()
    assert commands(report_of(finding()))[0][1]["file"] == "sub/a.py"
    monkeypatch.setenv("GITHUB_WORKSPACE", str(folder.parent))
    assert commands(report_of(finding()))[0][1]["file"] == f"{folder.name}/sub/a.py"


def test_troubles_are_told_too() -> None:
    report = report_of(
        skipped=(Skipped("old.py", 3, "no Python"),),
        failures=(Failure("x", "a.py", 2, "still there"),),
        unwritten=(Skipped("a.py", 0, "read-only"),),
        dropped=(Dropped("x", "a.py", 1, "broken", "losses differ"),),
    )
    assert [kind for kind, _, _ in commands(report)] == ["error", "warning", "notice", "notice"]
    assert len(commands(report, Detail.QUIET)) == 3


def test_a_dry_run_annotates_what_it_would_change_and_a_run_only_what_is_left() -> None:
    dry = report_of(applied=True, dry_run=True, fixed=(finding(),))
    assert len(commands(dry)) == 1
    assert commands(report_of(applied=True, fixed=(finding(),))) == []
