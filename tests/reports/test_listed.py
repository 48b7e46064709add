"""The formats of other programs: every finding once, in their forms, whatever it holds."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from codemods.checking.reported import Reported
from codemods.reports import Detail, Report, renderer
from codemods.source.files import source_from_bytes
from codemods.terms.findings import Finding, Promise, Skipped
from codemods.terms.spans import Span

pytestmark = pytest.mark.usefixtures("folder")

TEXT = "x = 1\n\ntotal += loss\ntotal += loss\n"
FIRST = Finding("attached-loss-total", "train.py", Span(3, 0, 3, 13), Promise.REPAIR, "it; grows]\n100%", "keep a < b")
SECOND = replace(FIRST, span=Span(4, 0, 4, 13), promise=Promise.ADVICE)
BROKEN = Skipped("old.py", 3, "Python 2 print statement")
NAMES = ("gitlab", "azure", "checkstyle", "junit", "pylint", "json-lines", "rdjson")


def report(text: str = TEXT, *findings: Finding, skipped: tuple[Skipped, ...] = (BROKEN,)) -> Report:
    sources = {"train.py": source_from_bytes(text.encode(), "train.py")}
    found = tuple(Reported(one, None) for one in findings or (FIRST, SECOND))
    return Report(files=2, findings=found, skipped=skipped, sources=sources)


def shown(name: str, of: Report) -> str:
    return renderer(name)(of, Detail.NORMAL)


def test_gitlab_has_what_its_form_asks_for() -> None:
    first, second, broken = json.loads(shown("gitlab", report()))
    for entry in (first, second, broken):
        assert set(entry) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert re.fullmatch("[0-9a-f]{64}", entry["fingerprint"])
    assert (first["severity"], second["severity"], broken["severity"]) == ("major", "info", "major")
    assert first["location"] == {"path": "train.py", "lines": {"begin": 3}}
    assert (broken["check_name"], broken["location"]["path"]) == ("not-checked", "old.py")
    assert len({one["fingerprint"] for one in (first, second, broken)}) == 3


def test_fingerprints_stay_when_lines_come_above() -> None:
    moved = report(
        "import a\n" + TEXT, *(replace(f, span=Span(f.span.line + 1, 0, f.span.line + 1, 13)) for f in (FIRST, SECOND))
    )
    before, after = ([one["fingerprint"] for one in json.loads(shown("gitlab", each))] for each in (report(), moved))
    assert before == after
    changed = json.loads(shown("gitlab", report(TEXT.replace("loss", "lost"))))
    assert changed[0]["fingerprint"] != before[0]


def test_reviewdog_gets_places_severities_and_rules() -> None:
    first, second, broken = json.loads(shown("rdjson", report()))["diagnostics"]
    assert first["location"] == {"path": "train.py", "range": {"start": {"line": 3, "column": 1}}}
    assert (first["severity"], second["severity"], broken["severity"]) == ("ERROR", "INFO", "ERROR")
    assert (first["code"], broken["code"]) == ({"value": FIRST.rule}, {"value": "not-checked"})


def test_lines_for_programs_hold_what_the_json_does() -> None:
    *found, broken = map(json.loads, shown("json-lines", report()).splitlines())
    assert found == json.loads(shown("json", report()))["findings"]
    assert broken == {"rule": "not-checked", "path": "old.py", "line": 3, "reason": "Python 2 print statement"}


def test_pylint_has_a_line_for_each() -> None:
    first, _, broken = shown("pylint", report()).splitlines()
    assert first.startswith("train.py:3: [attached-loss-total] it; grows]")
    assert broken == "old.py:3: [not-checked] Python 2 print statement"


def test_azure_reads_back_what_was_meant() -> None:
    lines = shown("azure", report()).splitlines()
    assert lines[0] == (
        "##vso[task.logissue type=error;sourcepath=train.py;linenumber=3;columnnumber=1;code=attached-loss-total;]"
        "it; grows]%0A100%AZP25; keep a < b"
    )
    assert lines[1].startswith("##vso[task.logissue type=warning;")
    assert (
        lines[2] == "##vso[task.logissue type=error;sourcepath=old.py;linenumber=3;code=not-checked;]" + BROKEN.reason
    )
    odd = report(TEXT, replace(FIRST, path="a;b]%.py"))
    assert "sourcepath=a%3Bb%5D%AZP25.py;" in shown("azure", odd)


def test_checkstyle_and_junit_are_xml_with_every_finding() -> None:
    style = ET.fromstring(shown("checkstyle", report()))
    assert [file.get("name") for file in style] == ["train.py", "old.py"]
    assert [error.get("severity") for error in style.iter("error")] == ["error", "info", "error"]
    assert "keep a < b" in (next(style.iter("error")).get("message") or "")
    suites = ET.fromstring(shown("junit", report()))
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("3", "2", "1")
    assert [case.get("line") for case in suites.iter("testcase")] == ["3", "4", "3"]
    assert [child.tag for case in suites.iter("testcase") for child in case] == ["failure", "failure", "error"]


@pytest.mark.parametrize("name", NAMES)
def test_without_findings(name: str) -> None:
    told = shown(name, Report(files=3, findings=(), skipped=()))
    if name == "gitlab":
        assert json.loads(told) == []
    elif name == "rdjson":
        assert json.loads(told)["diagnostics"] == []
    elif name in ("azure", "pylint", "json-lines"):
        assert told == ""
    else:
        assert not list(ET.fromstring(told).iter("failure"))
        assert name != "junit" or len(list(ET.fromstring(told).iter("testcase"))) == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("nasty", ["\x1b[31m", "\x00", "<&>\"'", "##vso[task.complete]", "\ud800", "\u2028"])
def test_nothing_of_a_file_breaks_the_form(name: str, nasty: str) -> None:
    finding = replace(FIRST, path=f"a{nasty}.py", message=f"{nasty} is kept")
    told = shown(name, report(TEXT, finding)).encode("utf-8", "backslashreplace").decode()
    assert "\x1b" not in told
    assert "\x00" not in told
    if name == "gitlab":
        assert len(json.loads(told)) == 2
    elif name == "rdjson":
        assert len(json.loads(told)["diagnostics"]) == 2
    elif name == "json-lines":
        assert [json.loads(line)["rule"] for line in told.rstrip("\n").split("\n")] == [FIRST.rule, "not-checked"]
    elif name == "pylint":
        assert [bool(re.match(r"\S.*:\d+: \[[a-z-]+\] ", line)) for line in told.rstrip("\n").split("\n")] == [
            True,
            True,
        ]
    elif name == "azure":
        assert [line.startswith("##vso[task.logissue ") for line in told.rstrip("\n").split("\n")] == [True, True]
    else:
        ET.fromstring(told)


def test_paths_are_from_the_root_of_the_repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".git").mkdir()
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    assert json.loads(shown("gitlab", report()))[0]["location"]["path"] == "sub/train.py"
