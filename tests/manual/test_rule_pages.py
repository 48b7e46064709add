"""The pages about the rules are what the rules, their fixtures and the measurements say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codemods.manual.explain import CHECKS, PROMISES, as_json, as_text, explain
from codemods.manual.measured import Measured, Side, figures, sentence
from codemods.manual.pages import DATA, Kept, examples, main, page, pages
from codemods.rules import rule_names
from codemods.terms.findings import Promise
from fixtures import cases

DOCS = Path(__file__).parents[2] / "docs"
STALE = "is stale: run `python -m codemods.manual.pages docs/rules`"


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return pages()


def test_the_pages_are_up_to_date(written: dict[str, str]) -> None:
    assert {file.name for file in (DOCS / "rules").iterdir()} == set(written)
    for name, text in written.items():
        assert (DOCS / "rules" / name).read_text(encoding="utf-8") == text, f"docs/rules/{name} {STALE}"
    assert DATA.read_text(encoding="utf-8") == examples(), f"{DATA.name} {STALE}"


def test_links_lead_somewhere(written: dict[str, str]) -> None:
    for name, text in written.items():
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            assert target.startswith("https://") or (DOCS / "rules" / target).is_file(), (name, target)


@pytest.mark.parametrize("name", rule_names())
def test_every_rule_says_all_there_is_to_say(name: str) -> None:
    one = explain(name)
    said = one.sections
    advises = one.promise is Promise.ADVICE
    assert {"what", "why", "advice" if advises else "rewrite", "left", "promise", "sources"} <= set(said)
    assert all(said.values())
    assert said["what"].count(".") >= 1
    assert one.promise.value in said["promise"].lower()
    assert re.search(r"https://(docs\.)?pytorch\.org/", said["sources"])
    assert one.before != one.after
    assert one.case
    text = as_text(one)
    assert f"# codemod: ignore[{one.name}]" in text
    assert "Measured" in text or advises
    assert len(text.splitlines()) < 110, "short enough for a terminal"


def test_examples_are_chosen_among_the_fixtures() -> None:
    for name in rule_names():
        chosen = [case for case in cases(name) if case.about.get("example")]
        assert [case.name for case in chosen] == [explain(name).case]
        assert name in {rule for rule, *_ in (*chosen[0].findings, *chosen[0].advice)}


def test_an_installation_tells_the_same_example(tmp_path: Path) -> None:
    for name in rule_names():
        assert explain(name, fixtures=tmp_path) == explain(name)
        assert as_json(explain(name, fixtures=tmp_path)) == as_json(explain(name))


def test_what_was_measured_is_every_pair() -> None:
    pairs = {str(case) for case in cases() if not case.keep and case.rule != "empty-cache"}
    assert {f"{one.rule}/{one.case}" for one in figures().cases} == pairs, "run `python -m tests.verify.measure`"
    assert {one.verdict for one in figures().cases} == {"kept"}


def test_what_verify_asks_is_what_its_page_says() -> None:
    text = (DOCS / "verify.md").read_text(encoding="utf-8")
    for promise, asked in CHECKS.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{promise.value}` |"))
        assert asked.removeprefix("losses and parameters ") in row
    assert set(PROMISES) - set(CHECKS) == {promise for promise in PROMISES if promise.value == "advice"}


FLAT = Side(20, 10, 11, 0.0, 1_000_000, 0, 0, 20, "")


def of(fault: str, before: Side, after: Side = FLAT) -> str:
    return sentence(Measured("rule", "case", fault, "kept", before, after))


def test_sentences() -> None:
    assert of("raises", FLAT._replace(error="RuntimeError: Trying (or directly). Saved", backwards=2)) == (
        "the original ends at backward 2 with RuntimeError: Trying; rewritten it runs on, with "
        "10 graph nodes alive at the last step"
    )
    assert of("grows", FLAT._replace(added=7.0, nodes=150, bytes_added=2048)) == (
        "every step left 7 graph nodes and 2.00 KiB behind, with 150 alive after 20 steps; rewritten none, with "
        "10 graph nodes alive at the last step"
    )
    assert of("retains", FLAT._replace(most=22)) == (
        "at most 22 graph nodes alive at the end of a step before the rewrite, 11 after it"
    )
    assert of("retains", FLAT._replace(bytes=1_010_240)).startswith("the heap held 10.0 KiB more")
    assert of("none", FLAT._replace(bytes=1_010_240)).startswith("the graph is the same")
    assert of("none", FLAT._replace(backwards=60)) == "60 calls of backward in 20 steps before the rewrite, 20 after it"
    assert "ends before its first backward with TypeError" in of(
        "raises", FLAT._replace(error="TypeError", backwards=0)
    )
    assert of("wasted-forwards", FLAT._replace(wasted=1)) == (
        "1 forward built a graph for nothing before the rewrite, none after it"
    )
    assert of("none", FLAT) == "the graph is the same before and after: 10 graph nodes alive at the last step"


def test_a_page_is_markdown_whatever_a_fixture_says() -> None:
    text = page(explain("unreset-loss"), [Kept("a_b *c* <d>", "x | y")], ["stored-graph"])
    assert r"* *a\_b \*c\* \<d\>*: x \| y" in text
    assert "[stored-graph](stored-graph.md)" in text


def test_writing(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codemods.manual.pages.DATA", tmp_path / "examples.json")
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "gone-rule.md").write_text("old")
    assert main([str(tmp_path / "rules")]) == 0
    assert (tmp_path / "rules" / "README.md").is_file()
    assert not (tmp_path / "rules" / "gone-rule.md").exists()
    assert (tmp_path / "examples.json").is_file()
    assert main([]) == main(["--help"]) == 2
    monkeypatch.setattr("codemods.manual.pages.FIXTURES", tmp_path / "nowhere")
    assert main([str(tmp_path)]) == 2
    assert "no fixtures here" in capsys.readouterr().err
