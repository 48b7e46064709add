"""A verification in Markdown, read by a renderer; and as evidence for the other reports."""

from __future__ import annotations

import pytest

from tests.reports.test_markdown import require_harmless, tokens
from tests.verify.reports import tools
from verify.measured.results import Rewrite, Verdict, Verification
from verify.reports import render
from verify.reports.evidence import evidence_of
from verify.reports.markdown import section

ALL = {
    make.__name__: make
    for make in (
        tools.repaired,
        tools.exact,
        tools.broken,
        tools.crashed,
        tools.not_reached,
        tools.unjudged,
        tools.no_torch,
        tools.not_a_number,
        tools.random,
        tools.nothing,
        tools.stand_ins,
        tools.many,
        tools.hostile,
        tools.wide,
    )
}


@pytest.fixture(params=ALL)
def verification(request: pytest.FixtureRequest) -> Verification:
    return ALL[request.param]()


def test_every_verification_is_told_and_nothing_breaks_out(verification: Verification) -> None:
    told = render(verification, "markdown")
    assert told.endswith("\n")
    assert told.startswith("**")
    kinds = [token.type for token in require_harmless(told)]
    tables = len(verification.entries) + bool(verification.rewrites)
    assert kinds.count("table_open") == tables or len(verification.rewrites) > 12
    assert all(kinds.count(f"{kind}_open") == kinds.count(f"{kind}_close") for kind in ("table", "tr", "td", "th"))


def test_rows_have_as_many_cells_as_the_head(verification: Verification) -> None:
    width = cells = 0
    for token in tokens(render(verification, "markdown")):
        width = 0 if token.type == "table_open" else width + (token.type == "th_open")
        cells = 0 if token.type == "tr_open" else cells + (token.type == "td_open")
        if token.type == "tr_close" and cells:
            assert cells == width


def test_verdicts_and_figures() -> None:
    told = render(tools.repaired(), "markdown")
    assert told.startswith("**Every promise that was put to the test held.** 1 kept, 1 not reached.")
    assert "| ✅ kept | `carried-hidden-state` | `train.py:33` | repair |" in told
    assert "| ➖ not reached |" in told
    assert "`python train.py --epochs 1`" in told
    assert "| calls of backward | **2, 1 raised** | 20 |" in told


def test_a_plot_is_shown_where_one_was_drawn() -> None:
    assert "](<a%20b.svg>)" in section(tools.exact(), plot="a b.svg")
    assert "![" not in section(tools.exact())


def test_evidence() -> None:
    verification = tools.exact()
    evidence = evidence_of(verification, plot="plot.svg")
    keys = {frozenset(finding.key for finding in rewrite.findings) for rewrite in verification.rewrites}
    assert set(evidence.proofs) == keys
    assert {proof.verdict for proof in evidence.proofs.values()} == {"kept"}
    assert all(proof.why for proof in evidence.proofs.values())
    assert "plot.svg" in evidence.markdown
    assert evidence.plot.startswith(b"<?xml")


def test_evidence_without_anything_to_draw() -> None:
    assert evidence_of(tools.no_torch()).plot == b""


def test_a_path_with_blanks_is_one_place() -> None:
    found = tools.finding("surplus-retain-graph", 13, path="my runs/train it.py", trail=())
    run = tools.run("original", tools.record())
    why = "my runs/train it.py:13 never ran within these steps"
    made = tools.verification(tools.entry(run, run, (Rewrite((found,), Verdict.NOT_REACHED, why),)))
    assert "`my runs/train it.py:13` never ran within these steps" in render(made, "markdown")
