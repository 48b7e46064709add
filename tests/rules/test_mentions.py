"""What an edit mentions is bound where it comes to stand, or its finding is advice."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath
from textwrap import indent

import pytest

from codemods.graph.model.program import ParsedFile
from codemods.proofs.mentions import with_bound_names
from codemods.proofs.observations import Decision
from codemods.source.options import Options
from codemods.terms.edits import InsertStatements, MoveStatement
from codemods.terms.findings import Finding, Promise


def decided(code: str, *, move: bool = False, text: str = "x.step()") -> Promise:
    """The promise of a finding that puts ``text``, or moves ``moved(x)``, before ``here()`` in a function."""
    text_of_file = "import torch\nfrom m import moved\n\ndef f(a, b):\n" + indent(code, "    ") + "\n"
    file = ParsedFile("f.py", PurePosixPath("f.py"), text_of_file, ast.parse(text_of_file))
    simple = {ast.unparse(n): n for n in ast.walk(file.tree) if isinstance(n, (ast.Expr, ast.Assign))}
    anchor = file.span(simple["here()"])
    target = next((file.span(n) for t, n in simple.items() if "moved(" in t), anchor)
    edit = MoveStatement(target, anchor, "before") if move else InsertStatements(anchor, "before", text)
    finding = Finding("rule", "f.py", anchor, Promise.EXACT, "m", edits=(("f.py", edit),))
    (found,) = with_bound_names([finding], Decision(lambda path: file, Options()))
    assert bool(found.edits) == (found.promise is not Promise.ADVICE)
    return found.promise


@pytest.mark.parametrize(
    "code",
    [
        "if a:\n    x = 1\nhere()",
        "for x in a:\n    pass\nhere()",
        "try:\n    x = a()\nexcept E:\n    pass\nhere()",
        "x = 1\ndel x\nhere()",
        "y = [x for x in a]\nhere()",
        "if a:\n    x = 1\nhere()\nif a:\n    x.step()",
    ],
)
def test_what_may_be_unbound_is_not_inserted(code: str) -> None:
    assert decided(code) is Promise.ADVICE


@pytest.mark.parametrize(
    "code",
    [
        "x = 1\nhere()",
        "if a:\n    x = 1\nelse:\n    x = 2\nhere()",
        "if a:\n    x = 1\nx.step()\nhere()",
        "if a:\n    x = 1\nhere()\nx.step()",
        "global x\nhere()",
    ],
)
def test_what_is_bound_or_asked_for_anyway_is(code: str) -> None:
    assert decided(code) is Promise.EXACT


def test_what_an_edit_binds_itself_is_bound() -> None:
    assert decided("here()", text="y = {torch}.zeros(1)\nprint(y)") is Promise.EXACT


def test_a_statement_moves_only_to_where_its_names_are_bound() -> None:
    assert decided("here()\nx = 1\nmoved(x)", move=True) is Promise.ADVICE
    assert decided("x = 1\ny = 2\nhere()\nmoved(x)", move=True) is Promise.EXACT


def test_nothing_on_the_way_reads_what_a_moved_statement_binds() -> None:
    assert decided("y = moved(a)\nprint(y)\nhere()", move=True) is Promise.ADVICE
    assert decided("y = moved(a)\nprint(b)\nhere()", move=True) is Promise.EXACT
