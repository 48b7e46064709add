"""Reports of other tools in the forms that we write too: none is lost to ``-o``."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.reports import formats
from tests.cli.conftest import Codemod


@pytest.fixture
def source(folder: Path) -> Path:
    """A file without findings in the working directory."""
    path = folder / "train.py"
    path.write_text("x = 1\n")
    return path


# As the tools write them: ruff, flake8, eslint, bandit, pytest, golangci-lint, semgrep.
OF_OTHERS = {
    "github": [
        "::error title=ruff (F401),file=/tmp/a.py,line=1,col=8,endLine=1,endColumn=10::a.py:1:8: F401 `os` unused\n",
        "::warning file=a.js,line=1,col=5::Missing semicolon\n",
        "::group::Install\nnothing\n::endgroup::\n",
    ],
    "azure": [
        "##vso[task.logissue type=error;sourcepath=/tmp/a.py;linenumber=1;columnnumber=8;code=F401;]`os` unused\n",
        "##vso[task.logissue type=warning]Something went wrong\n",
    ],
    "pylint": ["a.py:1: [F401] `os` imported but unused\n", "a.py:1:0: C0114: Missing docstring (missing-docstring)\n"],
    "gitlab": [
        '[\n {\n  "description": "unused",\n  "check_name": "F401",\n  "fingerprint": "1"\n }\n]\n',
        '[{"description":"unused","check_name":"F401","fingerprint":"1"}]',
        '[\n  {\n    "check_name": "F401",\n    "description": "unused"\n  }\n]',
    ],
    "checkstyle": [
        '<?xml version="1.0" encoding="utf-8"?>\n<checkstyle version="4.3">\n <file name="a.js">\n  <error line="1" '
        'column="5" severity="error" message="x &gt; y" source="eslint.rules.semi"/>\n </file>\n</checkstyle>\n',
        '<?xml version="1.0"?>\n<checkstyle version="8"><file name="a"><error line="1"/></file></checkstyle>',
    ],
    "junit": [
        '<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="pytest tests"><testsuite/></testsuites>',
        '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="ruff" tests="1" failures="1">\n</testsuites>\n',
        '<?xml version="1.0" encoding="utf-8"?>\n<testsuites><testsuite name="a"/></testsuites>',
    ],
    "rdjson": ['{\n "source": {\n  "name": "ruff"\n },\n "diagnostics": []\n}\n', '{"source":{"name":"golint"}}'],
    "sarif": [
        '{\n "$schema": "https://json.schemastore.org/sarif-2.1.0.json",\n "runs": [{"tool": {"driver": '
        '{"name": "ruff", "rules": []}}, "results": [{"message": {"text": "\\"name\\": codemod"}}]}]}',
    ],
    "json-lines": [
        '{"cell":null,"code":"F401","filename":"a.py"}\n',
        '{"rule": "no-semi", "path": "a.js", "line": 1}\n',
    ],
    "json": [
        '{\n "version": 1,\n "rules": []}',
        '{"version": 1, "findings": [{"rule": "python.lang.x", "path": "a.py"}]}',
        '{"version": 2, "status": "green"}',
    ],
    "html": ["<!DOCTYPE html>\n<html><head><title>Notes on codemod</title></head><body>codemod: good</body></html>"],
    "markdown": ["**Results.** 12 runs were made.\n", "**Every promise of last year.** Some were kept.\n"],
    "text": [
        "note: buy milk\n",
        "pkg/a.go: skipped: generated\nok\n",
        "# Notes\n\nIt said:\n\nevery promise held\n",
        "Review of the draft: 3 faults\nNo index.\n",
    ],
}


@pytest.mark.parametrize(("form", "text"), [(form, text) for form, texts in OF_OTHERS.items() for text in texts])
def test_a_report_of_another_tool_stays(codemod: Codemod, source: Path, form: str, text: str) -> None:
    Path("report").write_text(text)
    for command in (["check", "train.py"], ["apply", "train.py", "--dry-run"]):
        if command[0] == "check" or form != "text":
            ran = codemod(*command, "--format", form, "-o", "report")
            assert (ran.status, Path("report").read_text()) == (2, text), ran.err


# Of a form in which reports are joined, by another tool or by a shell's >>.
def joined(form: str, ours: str, theirs: str) -> str:
    if form == "checkstyle":
        return ours.replace("</checkstyle>", theirs[theirs.index(" <file") : theirs.index("</checkstyle>")])
    if form == "gitlab":
        return ours.rstrip("\n]") + "," + theirs[1:]
    return ours + theirs


@pytest.mark.parametrize("form", ["github", "azure", "pylint", "json-lines", "gitlab", "checkstyle"])
def test_so_does_one_that_another_tool_has_added_to(codemod: Codemod, source: Path, form: str) -> None:
    source.write_text("x = WRONG\ny = WRONG\n")
    codemod("check", "train.py", "--format", form, "-o", "report")
    text = joined(form, Path("report").read_text(), OF_OTHERS[form][0])
    Path("report").write_text(text)
    ran = codemod("check", "train.py", "--format", form, "-o", "report")
    assert (ran.status, Path("report").read_text()) == (2, text), ran.err


@pytest.mark.parametrize("name", sorted({*formats()} - {"html", "markdown", "sarif"}))
def test_a_report_of_a_file_that_cannot_be_checked_gives_way(codemod: Codemod, source: Path, name: str) -> None:
    Path("bad.py").write_text("x = (\n")
    source.write_text("x = WRONG\n")
    for quiet in ([], ["-q"]):
        Path("report").unlink(missing_ok=True)
        for paths in (["bad.py"], ["bad.py"], ["train.py", "bad.py"], ["train.py"]):
            assert codemod("check", *paths, *quiet, "--format", name, "-o", "report").status == 1
