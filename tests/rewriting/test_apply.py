"""The pipeline from findings to files, with an analyser and an editor that know words instead of graphs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codemods.analysis.analyse import Analysis
from codemods.rewriting.apply import MAX_ROUNDS, apply, write
from codemods.rewriting.result import ApplyResult
from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.terms.findings import Finding
from tests.fakes import REMEDIES, Analyser, edit, source


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory without a project around it."""
    monkeypatch.chdir(tmp_path)


def run(*files: SourceFile, dry_run: bool = True, **options: Any) -> ApplyResult:
    return apply(files, options=Options(**options), dry_run=dry_run, analyse=Analyser(), editor=edit)


def rewritten(result: ApplyResult) -> dict[str, str]:
    return {rewrite.source.path: rewrite.new for rewrite in result.rewrites}


def rules(findings: Sequence[Any]) -> list[str]:
    return [finding.rule for finding in findings]


def test_mends_what_it_finds_and_nothing_else() -> None:
    result = run(source("a.py", "x = WRONG\ny = 2\n"), source("b.py", "fine = 1\n"))
    assert rewritten(result) == {"a.py": "x = right\ny = 2\n"}
    assert rules(result.fixed) == ["wrong"]
    assert not result.remaining
    assert not result.failures


def test_two_findings_on_one_line_are_both_mended() -> None:
    assert rewritten(run(source("a.py", "x = WRONG; y = WRONG\n"))) == {"a.py": "x = right; y = right\n"}


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STUBBORN", "the finding is still there after the edit"),
        ("WORSE", "it causes a new finding, new in line 3 of a.py"),
        ("BROKEN", "line 3 after the edit: invalid syntax"),
        ("REFUSED", "the edit could not be made: nothing to put at line 3"),
    ],
)
def test_bad_edit_is_taken_back_and_named_and_the_others_go_on(word: str, reason: str) -> None:
    text = f"x = WRONG\n\ny = {word}\nz = WRONG\n"
    result = run(source("a.py", text), source("b.py", "b = WRONG\n"))
    assert rewritten(result) == {"a.py": f"x = right\n\ny = {word}\nz = right\n", "b.py": "b = right\n"}
    assert [(f.rule, f.path, f.line) for f in result.failures] == [(word.lower(), "a.py", 3)]
    assert result.failures[0].reason == reason
    assert [(r.finding.rule, r.finding.span.line) for r in result.remaining] == [(word.lower(), 3)]


def test_many_bad_edits_of_each_kind_leave_the_good_ones() -> None:
    words = ["STUBBORN", "WORSE", "BROKEN", "REFUSED"]
    text = "".join(f"a{n} = {words[n % 4]}\nb{n} = WRONG\n" for n in range(8))
    result = run(source("a.py", text))
    assert rewritten(result) == {"a.py": text.replace("WRONG", "right")}
    assert len(result.failures) == 8


def test_edit_whose_text_the_encoding_lacks_is_taken_back() -> None:
    result = run(source("a.py", b"# coding: latin-1\nx = WRONG  # \xe9\ny = FOREIGN\n"))
    assert rewritten(result) == {"a.py": "# coding: latin-1\nx = right  # \xe9\ny = FOREIGN\n"}
    assert result.failures[0].reason.endswith("cannot be written in the file's encoding, iso-8859-1")


def test_new_advice_is_no_reason_to_take_an_edit_back() -> None:
    result = run(source("a.py", "x = ADVISED\n"))
    assert rewritten(result) == {"a.py": "x = ADVICE\n"}
    assert [r.finding.rule for r in result.remaining] == ["advice"]


def test_a_finding_that_stays_beside_a_mended_one_is_not_new() -> None:
    text = "x = (\n    WRONG,\n    ADVICE, RISKY,\n)\n"
    assert rewritten(run(source("a.py", text))) == {"a.py": text.replace("WRONG", "right")}


def test_a_new_finding_far_from_the_edit_counts() -> None:
    result = run(source("a.py", "x = CHAIN\ny = 1\nz = LINK\n"), source("b.py", "x = WRONG\n"))
    assert rewritten(result) == {"b.py": "x = right\n"}
    assert [(f.rule, f.reason) for f in result.failures] == [
        ("chain", "it causes a new finding, link in line 3 of a.py"),
    ]


def test_what_an_edit_brings_to_light_is_mended_in_the_next_round_and_needs_that_edit() -> None:
    text = "x = COVER \ny = 1\nz = COVERED\n"
    result = run(source("a.py", text))
    assert rewritten(result) == {"a.py": "x = open \ny = 1\nz = right\n"}
    first, second = result.mended
    assert (first.needs, second.needs) == (frozenset(), {first.key})
    assert not result.failures


def test_what_is_brought_to_light_and_cannot_be_mended_takes_the_edit_back() -> None:
    result = run(source("a.py", "x = COVER \nz = COVERED\n"), source("b.py", "x = WRONG\ny = WORSE\n"))
    assert rewritten(result) == {"a.py": "x = open \nz = right\n", "b.py": "x = right\ny = WORSE\n"}
    assert [f.reason for f in result.failures] == ["it causes a new finding, new in line 2 of b.py"]


def test_advice_and_unsafe_stay_unless_asked_for() -> None:
    text = "x = RISKY\ny = ADVICE\n"
    result = run(source("a.py", text))
    assert rewritten(result) == {}
    assert [(r.finding.rule, r.fixable) for r in result.remaining] == [("risky", False), ("advice", False)]
    assert rewritten(run(source("a.py", text), unsafe=True)) == {"a.py": "x = safe\ny = ADVICE\n"}


def test_partners_are_made_together() -> None:
    result = run(source("a.py", "x = LEFT\n"), source("b.py", "y = RIGHTHAND\n"))
    assert rewritten(result) == {"a.py": "x = left\n", "b.py": "y = righthand\n"}


def test_partners_are_left_together_where_one_is_not_selected() -> None:
    result = run(source("a.py", "x = LEFT\ny = RIGHTHAND\n"), select=("left",))
    assert rewritten(result) == {}
    assert [r.obstacle for r in result.remaining] == [
        "only makes sense together with righthand at a.py:2, which is not selected"
    ]


def test_a_partner_that_fails_takes_the_other_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REMEDIES, "RIGHTHAND", "RIGHTHAND")
    result = run(source("a.py", "x = LEFT\n"), source("b.py", "y = RIGHTHAND\nz = WRONG\n"))
    assert rewritten(result) == {"b.py": "y = RIGHTHAND\nz = right\n"}
    assert sorted(f.rule for f in result.failures) == ["left", "righthand"]


def test_only_what_is_wanted_is_made() -> None:
    files = [source("a.py", "x = WRONG\ny = WRONG\nz = WRONG\n")]
    options = Options()
    result = apply(
        files,
        options=options,
        dry_run=True,
        analyse=Analyser(),
        editor=edit,
        wanted=lambda findings: all(finding.span.line != 2 for finding in findings),
    )
    assert rewritten(result) == {"a.py": "x = right\ny = WRONG\nz = right\n"}
    assert [(r.finding.rule, r.finding.span.line) for r in result.remaining] == [("wrong", 2)]


def test_partners_are_asked_about_together() -> None:
    files = [source("a.py", "x = LEFT\n"), source("b.py", "y = RIGHTHAND\n")]
    asked: list[tuple[str, ...]] = []

    def wanted(findings: tuple[Finding, ...]) -> bool:
        asked.append(tuple(sorted(finding.rule for finding in findings)))
        return False

    result = apply(files, options=Options(), dry_run=True, analyse=Analyser(), editor=edit, wanted=wanted)
    assert set(asked) == {("left", "righthand")}
    assert not result.rewrites


def test_what_was_mended_is_told_in_groups_at_its_original_lines() -> None:
    result = run(source("a.py", "x = LEFT\nq = NEST(WRONG)\n"), source("b.py", "y = RIGHTHAND\n"))
    groups = {tuple(sorted((f.rule, f.path, f.span.line) for f in group.findings)) for group in result.mended}
    assert (("left", "a.py", 1), ("righthand", "b.py", 1)) in groups
    assert {line for group in result.mended for line in group.touched.before()} == {
        ("a.py", 1),
        ("a.py", 2),
        ("b.py", 1),
    }


def test_overlapping_edits_wait_for_the_next_round() -> None:
    result = run(source("a.py", "x = NEST(WRONG) + WRONG\n"))
    # The nest swallows the inner one; had both been handed over together, the fake editor would have raised.
    assert rewritten(result) == {"a.py": "x = nest(wrong) + right\n"}
    assert not result.failures


def test_rounds_are_bounded_and_the_rest_is_told() -> None:
    # Every RIVAL changes one and the same place, so each waits for a round of its own.
    text = "x = RIVAL\n" * (MAX_ROUNDS + 3)
    result = run(source("a.py", text), source("other.py", "z = 1\n"))
    assert rewritten(result)["a.py"].count("x = y") == MAX_ROUNDS
    assert rewritten(result)["other.py"] == "y = 1\n"
    assert result.notes == (f"stopped after {MAX_ROUNDS} rounds of edits; run apply again to go on",)


def test_what_is_inserted_at_one_place_is_inserted_in_one_round() -> None:
    analyser = Analyser()
    files = [source("a.py", "x = ACROSS\n" * 3), source("other.py", "z = 1\n")]
    result = apply(files, options=Options(), dry_run=True, analyse=analyser, editor=edit)
    # all of them ask for the same line
    assert rewritten(result) == {"a.py": "x = over\n" * 3, "other.py": "y\nz = 1\n"}
    assert analyser.calls == 2


def test_who_changes_the_statement_beside_waits_for_what_is_inserted() -> None:
    result = run(source("a.py", "x = ACROSS\nx = RIVAL\n"), source("other.py", "z = 1\n"))
    assert rewritten(result)["a.py"] == "x = over\nx = y\n"
    assert not result.failures


def test_second_apply_changes_nothing(tmp_path: Path) -> None:
    text = "x = NEST(WRONG) + WRONG\ny = STUBBORN\nz = WORSE; q = LEFT; r = RIGHTHAND\n"
    run(source("a.py", text, tmp_path), dry_run=False)
    after = (tmp_path / "a.py").read_bytes()
    assert after != text.encode()
    again = run(source("a.py", after, tmp_path), dry_run=False)
    assert not again.rewrites
    assert (tmp_path / "a.py").read_bytes() == after


def test_edit_in_another_file_needs_that_file_among_the_targets() -> None:
    alone = run(source("a.py", "x = ACROSS\n"))
    assert not alone.rewrites
    assert [r.obstacle for r in alone.remaining] == [
        "would change other.py too, which is not among the files to change"
    ]
    both = run(source("a.py", "x = ACROSS\n"), source("other.py", "z = 1\n"))
    assert rewritten(both) == {"a.py": "x = over\n", "other.py": "y\nz = 1\n"}


def test_a_finding_in_a_file_that_was_not_named_is_not_told() -> None:
    class Wider(Analyser):
        def __call__(self, targets: Sequence[SourceFile], **options: Any) -> Any:
            return super().__call__([*targets, source("other.py", "x = WRONG\n")], **options)

    result = apply([source("a.py", "x = WRONG\n")], options=Options(), dry_run=True, analyse=Wider(), editor=edit)
    assert rewritten(result) == {"a.py": "x = right\n"}
    assert not result.remaining


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    run(source("a.py", "x = WRONG\n", tmp_path))
    assert (tmp_path / "a.py").read_text() == "x = WRONG\n"


def test_file_changed_since_it_was_read_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    files = [source(name, "x = WRONG\n", tmp_path) for name in ("a.py", "b.py")]
    (tmp_path / "a.py").write_text("somebody was here = WRONG\n")
    result = run(*files, dry_run=False)
    assert (tmp_path / "a.py").read_text() == "somebody was here = WRONG\n"
    assert (tmp_path / "b.py").read_text() == "x = right\n"
    assert [entry.path for entry in result.unwritten] == ["a.py"]
    assert [finding.path for finding in result.fixed] == ["b.py"]
    assert [(one.finding.path, one.obstacle) for one in result.remaining] == [("a.py", "the file could not be saved")]


@pytest.mark.parametrize("changed", ["a.py", "other.py"])
def test_files_of_one_edit_are_written_both_or_none(tmp_path: Path, changed: str) -> None:
    files = [source("a.py", "x = ACROSS\n", tmp_path), source("other.py", "z = 1\n", tmp_path)]
    (tmp_path / changed).write_text("new = 1\n")
    result = run(*files, dry_run=False)
    texts = {name: (tmp_path / name).read_text() for name in ("a.py", "other.py")}
    assert texts == {"a.py": "x = ACROSS\n", "other.py": "z = 1\n"} | {changed: "new = 1\n"}
    assert sorted(entry.path for entry in result.unwritten) == ["a.py", "other.py"]
    assert not result.fixed
    assert [one.finding.path for one in result.remaining] == ["a.py"]


def test_what_is_left_in_a_file_that_was_not_written_stands_at_its_old_line(tmp_path: Path) -> None:
    text = "z = 1\nq = RISKY\nr = WRONG\n"
    files = [source("a.py", "x = ACROSS\n", tmp_path), source("other.py", text, tmp_path)]
    (tmp_path / "other.py").write_text("new = 1\n")
    whole = [("a.py", 1), ("other.py", 2), ("other.py", 3)]
    for result in (run(*files, dry_run=False), write(run(*files))):
        assert [(r.finding.path, r.finding.span.line) for r in result.remaining] == whole
        assert not result.fixed


def test_lines_of_a_dry_run_are_those_of_the_file_on_disk() -> None:
    files = [source("a.py", "x = ACROSS\n"), source("other.py", "z = 1\nq = RISKY\nr = WRONG\n")]
    result = run(*files)
    assert rewritten(result)["other.py"] == "y\nz = 1\nq = RISKY\nr = right\n"
    assert [(r.finding.path, r.finding.span.line) for r in result.remaining] == [("other.py", 2)]
    assert [(f.path, f.span.line) for f in result.fixed] == [("a.py", 1), ("other.py", 3)]


def test_line_ends_of_every_kind_count_lines_alike() -> None:
    text = "a = 1\r\nb = 1\rx = STUBBORN\ny = WRONG\r\n"
    result = run(source("a.py", text))
    assert [(f.rule, f.line) for f in result.failures] == [("stubborn", 3)]


def test_unparsable_file_is_passed_over() -> None:
    result = run(source("a.py", "print 'x', WRONG\n"), source("b.py", "x = WRONG\n"))
    assert rewritten(result) == {"b.py": "x = right\n"}
    assert [(entry.path, entry.line) for entry in result.skipped] == [("a.py", 1)]


def test_nothing_to_mend_means_one_analysis() -> None:
    analyser = Analyser()
    apply([source("a.py", "x = 1\n")], options=Options(), dry_run=True, analyse=analyser, editor=edit)
    assert analyser.calls == 1


def test_good_edits_cost_two_analyses() -> None:
    analyser = Analyser()
    text = "x = WRONG\n" * 50
    apply([source("a.py", text)], options=Options(), dry_run=True, analyse=analyser, editor=edit)
    assert analyser.calls == 2


class Misused(Analyser):
    """Asks a number for ``x`` where line 30 is edited."""

    def __call__(self, targets: Sequence[SourceFile], **options: Any) -> Analysis:
        analysis = super().__call__(targets, **options)
        text = (options.get("overlay") or {}).get("a.py", targets[0].text)
        if text.splitlines()[29].endswith("right"):
            analysis.conduct.misuses["a.py", 30, "x"] = True
        return analysis


def test_an_edit_whose_own_line_breaks_is_found_at_once() -> None:
    analyser = Misused()
    text = "".join(f"x{number} = WRONG\n" for number in range(50))
    result = apply([source("a.py", text)], options=Options(), dry_run=True, analyse=analyser, editor=edit)
    assert [(f.line, f.reason) for f in result.failures] == [
        (30, "it would break line 30 of a.py: what is a number or None there is asked for x")
    ]
    # before, all, all but one, that one alone in the next round
    assert analyser.calls == 4


LINES = st.lists(st.sampled_from([*REMEDIES, "NEST(WRONG)", "NEST(STUBBORN) + WRONG", "LINK", "1"]), max_size=12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=LINES, second=LINES, unsafe=st.booleans())
def test_any_mixture_ends_where_a_second_apply_changes_nothing(
    first: list[str], second: list[str], unsafe: bool
) -> None:
    texts = {
        name: "".join(f"x{number} = {word}\n" for number, word in enumerate(words))
        for name, words in (("a.py", first), ("b.py", second))
    }
    once = run(*(source(name, text) for name, text in texts.items()), unsafe=unsafe)
    after = texts | rewritten(once)
    assert not re.search(r"\bWRONG\b", re.sub(r"NEST\(.*?\)", "", "".join(after.values())))
    twice = run(*(source(name, text) for name, text in after.items()), unsafe=unsafe)
    assert not twice.rewrites
