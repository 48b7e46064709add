"""Every format tells every kind of report."""

from __future__ import annotations

import json

import pytest

from codemods.checking.reported import Reported
from codemods.reports import Detail, Report, formats, renderer
from codemods.rewriting.result import Failure
from codemods.terms.findings import Finding, Promise, Skipped, TrailStep
from codemods.terms.spans import Span

FINDING = Finding(
    rule="surplus-retain-graph",
    path="train.py",
    span=Span(41, 8, 41, 43),
    promise=Promise.EXACT,
    message="The graph is kept, and nobody walks it again.",
    remedy="drop retain_graph=True",
    trail=(TrailStep("model.py", 20, "graph produced here"),),
    partners=(("carried-hidden-state", "model.py", 12),),
)
EMPTY = Report(files=0, findings=(), skipped=())
FULL = Report(
    files=10,
    findings=(Reported(FINDING, None), Reported(FINDING, "it is advice")),
    skipped=(Skipped("old.py", 3, "Python 2 print statement"), Skipped("gone.py", 0, "no such file")),
    notes=("gave up on train.py:7, too many paths",),
    fixed=(FINDING,),
    failures=(Failure("stored-graph", "train.py", 9, "the finding is still there after the edit"),),
    unwritten=(Skipped("a.py", 0, "read-only file"),),
    changed=("train.py",),
    applied=True,
)


@pytest.mark.parametrize("name", formats())
@pytest.mark.parametrize("report", [EMPTY, FULL], ids=["empty", "full"])
@pytest.mark.parametrize("detail", list(Detail))
def test_every_format_renders_every_report(name: str, report: Report, detail: Detail) -> None:
    text = renderer(name)(report, detail, colour=False)
    assert text == "" or text.endswith("\n")
    assert "\x1b" not in text


def test_formats_are_the_modules() -> None:
    assert {"json", "text"} <= set(formats())
    with pytest.raises(KeyError):
        renderer("nothing")


def test_json_is_the_same_at_every_detail() -> None:
    render = renderer("json")
    assert render(FULL, Detail.QUIET) == render(FULL, Detail.VERBOSE, colour=True)


def test_json_counts_columns_from_one() -> None:
    found = json.loads(renderer("json")(FULL, Detail.NORMAL))["findings"][0]
    assert (found["line"], found["column"], found["end_line"], found["end_column"]) == (41, 9, 41, 44)


def test_text_of_a_full_report() -> None:
    text = renderer("text")(FULL, Detail.VERBOSE)
    assert text == (
        "train.py:41:9: surplus-retain-graph [exact] fixed: The graph is kept, and nobody walks it again.\n"
        "    model.py:20: graph produced here\n"
        "train.py:41:9: surplus-retain-graph [exact] The graph is kept, and nobody walks it again.\n"
        "    model.py:20: graph produced here\n"
        "    remedy: drop retain_graph=True\n"
        "train.py:41:9: surplus-retain-graph [exact] The graph is kept, and nobody walks it again.\n"
        "    model.py:20: graph produced here\n"
        "    remedy: drop retain_graph=True\n"
        "    apply leaves it: it is advice\n"
        "old.py:3: skipped: Python 2 print statement\n"
        "gone.py: skipped: no such file\n"
        "train.py:9: stored-graph: our edit was taken back: the finding is still there after the edit\n"
        "a.py: not saved: read-only file\n"
        "note: gave up on train.py:7, too many paths\n"
        "10 files, 1 finding fixed in 1 file, 2 left, 2 skipped, 1 edit taken back, 1 not saved\n"
        "  surplus-retain-graph  1 fixed\n"
        "  surplus-retain-graph  2 left\n"
        "2 could not be checked: --exclude leaves out what is meant to be so, as does `# codemod: ignore-file` at its "
        "top\n"
    )
