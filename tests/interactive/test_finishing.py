"""What is written after the answers: the accepted changes, made and checked anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codemods.analysis.analyse import Analysis
from codemods.interactive.finishing import Remark
from codemods.interactive.session import summary
from codemods.rewriting.apply import write
from tests.fakes import Analyser
from tests.interactive.scripted import Script, Tree
from tests.interactive.test_dialogue import to


def test_what_was_accepted_and_nothing_else(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "x = WRONG\n\n\ny = WRONG\n", "b.py": "z = WRONG\n"})
    texts, outcome = tree.made(Script("n", "y", "n"))
    assert texts == {"a.py": "x = WRONG\n\n\ny = right\n"}
    assert [(f.rule, f.span.line) for f in outcome.result.fixed] == [("wrong", 4)]
    assert [(one.finding.path, one.finding.span.line) for one in outcome.result.remaining] == [("a.py", 1), ("b.py", 1)]
    assert (tmp_path / "a.py").read_text() == "x = WRONG\n\n\ny = WRONG\n"
    written = write(outcome.result)
    assert (tmp_path / "a.py").read_text() == texts["a.py"]
    assert not written.dry_run
    assert (tmp_path / "b.py").read_text() == "z = WRONG\n"


def test_nothing_accepted_changes_nothing(tmp_path: Path) -> None:
    texts, outcome = Tree(tmp_path, {"a.py": "x = WRONG\n"}).made(Script("n"))
    assert (texts, outcome.result.rewrites) == ({}, ())


def test_given_up_changes_nothing(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "x = WRONG\ny = NEST(1)\n"})
    decisions = tree.ask(Script("y", "q", "n"))
    assert tree.finish(decisions).result.rewrites == ()
    assert summary(decisions) == "Aborted: nothing is written."


def test_what_depends_on_what_was_declined_is_named(tmp_path: Path) -> None:
    class Hidden(Analyser):
        """WRONG comes to light where NEST is mended."""

        def __call__(self, *arguments: Any, **named: Any) -> Analysis:
            found = super().__call__(*arguments, **named)
            nested = any(finding.rule == "nest" for finding in found.findings)
            kept = [replace(f, uncovers=("wrong",)) for f in found.findings if not nested or f.rule == "nest"]
            return found._replace(findings=kept)

    tree = Tree(tmp_path, {"a.py": "x = NEST(1)\n\n\ny = WRONG\n"}, analyse=Hidden())
    assert [item.change.rule for item in tree.items] == ["nest", "wrong"]
    assert tree.made(Script("y", "y"))[0] == {"a.py": "x = nest(1)\n\n\ny = right\n"}
    texts, outcome = tree.made(Script("n", "y"))
    assert texts == {}
    assert outcome.remarks == (
        Remark("a.py:4", "wrong", "accepted, but not made: it depends on nest at a.py:1, which was declined"),
    )
    texts, outcome = tree.made(Script("n", "E", editing=[to("y = 5\n")]))
    assert texts == {}
    assert [remark.text for remark in outcome.remarks] == [
        "not made: your own text does not fit without those that were declined"
    ]


def test_pairs_are_one_question_and_one_change(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "x = LEFT\n\n\n\ny = RIGHTHAND\n"})
    assert [len(item.findings) for item in tree.items] == [2]
    assert len(tree.items[0].hunks) == 2
    assert tree.made(Script("y"))[0] == {"a.py": "x = left\n\n\n\ny = righthand\n"}
    assert tree.made(Script("n"))[0] == {}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_an_own_text_stands_as_it_was_written(tmp_path: Path, line_end: str) -> None:
    text = "x = WRONG\n\n\ny = WRONG\nz = 3\n".replace("\n", line_end)
    mine = f"x = 1{line_end}w = 2{line_end}"
    texts, outcome = Tree(tmp_path, {"a.py": text}).made(Script("E", "y", editing=[to(mine)]))
    assert texts == {"a.py": text.replace(f"x = WRONG{line_end}", mine).replace("WRONG", "right")}
    assert [sorted(key) for key in outcome.own] == [[("wrong", "a.py", 1)]]
    assert [finding.span.line for finding in outcome.result.fixed] == [1, 4]


def test_an_own_text_that_leaves_the_finding_is_said_to(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "x = WRONG\n\n\ny = WRONG\n"})
    texts, outcome = tree.made(Script("E", "y", editing=[to("x = WRONG + 1\n")]))
    assert texts == {"a.py": "x = WRONG + 1\n\n\ny = right\n"}
    assert [remark.text for remark in outcome.remarks] == ["your own text leaves it as it was"]
    assert [finding.span.line for finding in outcome.result.fixed] == [4]
    assert [one.finding.span.line for one in outcome.result.remaining] == [1]


def test_a_reason_is_recorded_where_the_finding_is(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "x = WRONG\n\n\ny = (  # two\n    WRONG,\n)\n"})
    texts, outcome = tree.made(Script("i", "it is meant", "i", "this too"))
    assert texts == {
        "a.py": "x = WRONG  # codemod: ignore[wrong] -- it is meant\n\n\n"
        "y = (  # two\n    WRONG,  # codemod: ignore[wrong] -- this too\n)\n"
    }
    assert outcome.result.remaining == ()
    assert outcome.result.fixed == ()


def test_a_reason_beside_what_is_mended_and_an_own_text(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "x = WRONG\n\n\ny = WRONG\n\n\nz = WRONG\n"})
    texts, _ = tree.made(Script("E", "i", "meant", "y", editing=[to("x = 1\nw = 1\n")]))
    assert texts == {"a.py": "x = 1\nw = 1\n\n\ny = WRONG  # codemod: ignore[wrong] -- meant\n\n\nz = right\n"}


def test_files_that_could_not_be_read_stay_in_the_summary(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "x = WRONG\n", "b.py": "def (\n"})
    outcome = tree.made(Script("y"))[1]
    assert [entry.path for entry in outcome.result.skipped] == ["b.py"]


def test_the_summary_counts(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"a.py": "x = WRONG\n\n\ny = WRONG\n\n\nz = WRONG\n", "b.py": "v = WRONG\n\n\nw = WRONG\n"})
    decisions = tree.ask(Script("y", "E", "i", "meant", "n", "q", "y", editing=[to("y = 1\n")]))
    assert summary(decisions) == (
        "5 changes: 1 accepted, 1 declined, 1 in your own words, 1 declined for good, 1 not answered."
    )
