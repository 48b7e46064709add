"""What people read: the code of a finding in a frame, findings by file, and what to type next."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from codemods.checking.check import check
from codemods.checking.reported import Reported
from codemods.reports import Detail, Report, renderer
from codemods.rewriting.apply import apply
from codemods.source.files import source_from_bytes
from codemods.source.options import Options
from codemods.source.targets import read_targets
from codemods.terms.findings import Finding, Promise, Skipped, TrailStep
from codemods.terms.spans import Span
from tests.notebooks import code, notebook
from tests.rewriting.test_fixes import PROGRAM

TEXT = "import torch\n\n\nfor x in xs:\n\tloss = model(x)\n\tloss.backward(retain_graph=True)\n\tstep()\n\n\nend()\n"
FINDING = Finding(
    "surplus-retain-graph",
    "train.py",
    Span(6, 1, 6, 33),
    Promise.EXACT,
    "nobody walks it again",
    "drop it",
    (TrailStep("model.py", 2, "graph produced here"), TrailStep("train.py", 6, "kept here")),
)


def report(*findings: Reported, **more: object) -> Report:
    sources = {
        "train.py": source_from_bytes(TEXT.encode(), "train.py"),
        "model.py": source_from_bytes(b"def f(x):\n    return x.sum()\n", "model.py"),
    }
    given = {"files": 2, "findings": findings or (Reported(FINDING, None),), "skipped": (), "sources": sources}
    return Report(**{**given, **more})  # type: ignore[arg-type]


def full(of: Report, detail: Detail = Detail.NORMAL, *, colour: bool = False) -> str:
    return renderer("full")(of, detail, colour=colour)


def test_a_finding_is_shown_with_its_code_its_trail_and_its_remedy() -> None:
    assert full(report()) == (
        "train.py:6:2: surplus-retain-graph [exact] nobody walks it again\n"
        "  |\n"
        "4 | for x in xs:\n"
        "5 |     loss = model(x)\n"
        "6 |     loss.backward(retain_graph=True)\n"
        "  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ kept here\n"
        "7 |     step()\n"
        "8 |\n"
        "  ::: model.py:2\n"
        "2 |     return x.sum()\n"
        "  |     -------------- graph produced here\n"
        "  |\n"
        "   help: drop it\n"
        "\n"
        "2 files, 1 finding, 1 fixable\n"
        "  surplus-retain-graph  1\n"
        "1 fixable: codemod apply\n"
    )


def test_what_apply_leaves_says_why_and_where_to_read_on() -> None:
    advice = replace(FINDING, promise=Promise.ADVICE)
    told = full(report(Reported(advice, "it is advice"), skipped=(Skipped("old.py", 1, "no Python"),)))
    assert "   note: apply leaves it: it is advice\n" in told
    assert "1 for a person to judge: codemod explain train.py:6 says why\n" in told
    assert "1 could not be checked: --exclude" in told
    assert "fixable:" not in told


def test_unsafe_rewrites_are_offered_once_and_not_to_who_has_them() -> None:
    risky = Reported(replace(FINDING, promise=Promise.BEHAVIOUR), "x at a:1 changes what is learned and needs --unsafe")
    for applied in (False, True):
        told = full(report(risky, applied=applied, command=("codemod", "apply", "a")))
        assert "1 more, which changes what is learned: codemod apply a --unsafe\n" in told
    told = full(report(risky._replace(obstacle="it depends on another"), command=("codemod", "check", "--unsafe")))
    assert "--unsafe" not in told


def test_what_is_likely_is_offered_to_who_has_not_run_it() -> None:
    likely = Reported(replace(FINDING, promise=Promise.ADVICE, likely=Promise.EXACT), "it is likely")
    assert "1 likely: codemod apply a --verify SCRIPT makes" in full(report(likely, command=("codemod", "check", "a")))
    ran = ("codemod", "apply", "a", "--verify", "train.py")
    assert "likely:" not in full(report(likely, applied=True, command=ran))


def test_the_next_command_has_the_options_of_this_one() -> None:
    again = report(command=("codemod", "check", "a b", "--select", "x", "--unsafe"))
    assert "1 fixable: codemod apply 'a b' --select x --unsafe\n" in full(again)
    told = report(command=("codemod", "check", "a", "--exit-zero", "--jobs=2", "-o", "b", "--format", "full", "-v"))
    assert "1 fixable: codemod apply a --jobs=2\n" in full(told)
    dry = ("codemod", "apply", "a", "--dry-run", "--max-hunks", "3", "--at", "a:1", "--patch", "p", "-q", "--no-cache")
    of_apply = report(applied=True, dry_run=True, fixed=(FINDING,), command=dry)
    for name in ("full", "grouped", "text", "concise"):
        told = renderer(name)(of_apply, Detail.NORMAL)
        assert "nothing was written: codemod apply a --max-hunks 3 --at a:1 writes it\n" in told
    # What would make it another run is no option to be repeated.
    assert "1 fixable: codemod apply\n" in full(report(command=("codemod", "check", "a", "--add-ignores")))


def test_quiet_is_without_a_summary_and_colour_only_where_asked_for() -> None:
    assert "fixable" not in full(report(), Detail.QUIET)
    assert "\x1b" not in full(report())
    coloured = full(report(), colour=True)
    assert "\x1b[33msurplus-retain-graph\x1b[0m \x1b[32m[exact]\x1b[0m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == full(report())


def test_nothing_of_a_file_steers_the_terminal() -> None:
    sources = {"train.py": source_from_bytes(TEXT.replace("step()", "step('\x1b[2J\x9b')").encode(), "train.py")}
    assert not {"\x1b", "\x9b"} & set(full(report(sources=sources)))


def test_a_long_line_and_a_tall_block_are_cut() -> None:
    wide = {"train.py": source_from_bytes(("x = [" + "1, " * 900 + "]\n").encode(), "train.py")}
    finding = replace(FINDING, span=Span(1, 0, 1, 2706), trail=())
    assert max(map(len, full(report(Reported(finding, None), sources=wide)).splitlines())) < 200
    tall = {"train.py": source_from_bytes(b"def f():\n" + b"    x = 1\n" * 300, "train.py")}
    finding = replace(FINDING, span=Span(1, 0, 301, 9), trail=())
    assert len(full(report(Reported(finding, None), sources=tall)).splitlines()) < 20


def test_without_the_text_there_is_no_frame() -> None:
    assert "|" not in full(report(sources={}))


def test_grouped_names_a_file_once() -> None:
    other = replace(FINDING, span=Span(10, 0, 10, 5), message="again")
    told = renderer("grouped")(report(Reported(FINDING, None), Reported(other, None)), Detail.NORMAL)
    assert told.startswith(
        "train.py:\n"
        "  6:2   surplus-retain-graph [exact] nobody walks it again\n"
        "  10:1  surplus-retain-graph [exact] again\n"
        "\n"
        "2 files"
    )


def test_concise_is_what_text_is() -> None:
    for detail in Detail:
        assert renderer("concise")(report(), detail) == renderer("text")(report(), detail)


def test_a_dry_run_says_would() -> None:
    told = renderer("text")(report(applied=True, dry_run=True, fixed=(FINDING,), findings=()), Detail.NORMAL)
    assert "would fix: " in told
    assert "  surplus-retain-graph  1 would be fixed\n" in told


def test_real_code_and_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(PROGRAM)
    Path("book.ipynb").write_bytes(notebook(code("# nothing"), code(PROGRAM)))
    told = full(Report.of_check(check(read_targets(["."]).sources, options=Options())))
    assert "15 |     total += loss\n   |     ^^^^^^^^^^^^^ " in told
    assert "book.ipynb:cell 2:15:5: attached-loss-total" in told
    assert told.count("help: ") == 8


@pytest.mark.parametrize("form", ["full", "html"])
def test_of_a_notebook_only_what_is_in_the_cell_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    program = PROGRAM.replace("    opt.step()\n", "    !ls -l\n    opt.step()\n").removesuffix("print(total)\n")
    first, _, second = program.partition("for _")
    cells = [code(first + "first = 1"), code(f"for _{second}".rstrip("\n")), code("last = 1")]
    Path("book.ipynb").write_bytes(notebook(*cells))
    sources, options = read_targets(["book.ipynb"]).sources, Options()
    for report in (
        Report.of_check(check(sources, options=options)),
        Report.of_check(check(sources, options=options), apply(sources, options=options, dry_run=True)),
        Report.of_apply(apply(sources, options=options, dry_run=True)),
    ):
        page = renderer(form)(report, Detail.VERBOSE)
        if not report.applied or form == "html":
            assert "!ls -l" in page
        assert "attached-loss-total" in page
        for other in ("[codemod, cell", "_ipython", "first = 1", "last = 1"):
            assert other not in page
