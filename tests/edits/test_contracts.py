"""What the edits of a file may change: an edit that does more, or less, is refused, whoever made the mistake."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import libcst as cst
import pytest

from codemods.edits import apply as applying
from codemods.edits.apply import apply_edits
from codemods.edits.contracts import check_contract
from codemods.edits.source import Source
from codemods.terms.edits import (
    AddDecorator,
    AddHelper,
    DropArgument,
    Edit,
    EditError,
    InsertStatements,
    KeepPart,
    MoveStatement,
    RemoveIdentity,
    RemoveStatement,
    RenameArgument,
    ReplaceExpression,
    WrapBlock,
    WrapExpression,
)
from tests.edits.tools import check, check_refused, expression, statement

PROGRAM = """\
import os
import torch


def f(x, y):
    # doubled
    a = g(x, k=1)  # first
    if y:
        a = a + 1
    else:
        a = a - 1
    return a


b = f(1, 2)
b = b
"""


def edits_of_all_kinds(text: str) -> dict[str, Edit]:
    call = expression(text, "g(x, k=1)")
    first = statement(text, "a = g(")
    return {
        "drop": DropArgument(call, "k"),
        "rename": RenameArgument(call, "k", "m"),
        "keep": KeepPart(call, expression(text, "x"), ".detach()"),
        "wrap": WrapExpression(call, "float(", ")"),
        "replace": ReplaceExpression(call, "h(2)"),
        "insert": InsertStatements(first, "after", "a.step()"),
        "remove": RemoveStatement(statement(text, "return a")),
        "identity": RemoveIdentity(statement(text, "b = b")),
        "move": MoveStatement(first, statement(text, "if y:"), "after"),
        "block": WrapBlock(first, statement(text, "if y:"), "with {torch}.no_grad():"),
        "decorate": AddDecorator(statement(text, "def f"), "{torch}.no_grad()"),
        "helper": AddHelper("h", "def h(x):\n    return x\n"),
    }


MADE = {kind: apply_edits(PROGRAM, [edit]) for kind, edit in edits_of_all_kinds(PROGRAM).items()}


def judged(text: str, edits: list[Edit], result: str) -> None:
    check_contract(Source(text), edits, {}, result, ast.parse(result))


@pytest.mark.parametrize("kind", MADE)
def test_each_kind_makes_what_it_may(kind: str) -> None:
    assert MADE[kind] != PROGRAM
    judged(PROGRAM, [edits_of_all_kinds(PROGRAM)[kind]], MADE[kind])


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("kind", MADE)
def test_none_makes_what_another_may(kind: str, made: str) -> None:
    if kind != made:
        with pytest.raises(EditError):
            judged(PROGRAM, [edits_of_all_kinds(PROGRAM)[kind]], MADE[made])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import os\n", ""),
        ("k=1", "k=True"),
        ("a = a + 1", "a += 1"),
        ("    else:\n        a = a - 1\n", ""),
        ("    return a\n", "    return a\n    pass\n"),
        ("def f(x, y)", "def f(x, y=None)"),
        ("b = f(1, 2)\n", "b = f(1, 2),\n"),
        ("b = b\n", ""),
        ("  # first", ""),
        ("    # doubled\n", ""),
    ],
)
@pytest.mark.parametrize("kind", ["wrap", "insert", "decorate", "helper"])
def test_what_an_edit_does_not_name_stays(kind: str, old: str, new: str) -> None:
    made = MADE[kind]
    assert made.count(old) == 1
    with pytest.raises(EditError):
        judged(PROGRAM, [edits_of_all_kinds(PROGRAM)[kind]], made.replace(old, new))


@pytest.mark.parametrize("kind", MADE)
def test_every_small_change_of_a_result_is_seen(kind: str) -> None:
    """Each statement of the result is taken away, doubled or exchanged with its neighbour, one at a time."""
    edit = edits_of_all_kinds(PROGRAM)[kind]
    count = 0
    # where a helper stands among the functions is all the same
    for mutate in (_without, _twice, *((_exchanged,) if kind != "helper" else ())):
        for number in range(len(list(ast.walk(ast.parse(MADE[kind]))))):
            tree = ast.parse(MADE[kind])
            if not mutate(tree, number) or ast.dump(tree) == ast.dump(ast.parse(MADE[kind])):
                continue
            result = f"# doubled\n# first\n{ast.unparse(ast.fix_missing_locations(tree))}\n"
            count += 1
            with pytest.raises(EditError):
                judged(PROGRAM, [edit], result)
    assert count > 10


def _suites(tree: ast.Module) -> list[list[ast.stmt]]:
    found = [getattr(n, name, None) for n in ast.walk(tree) for name in ("body", "orelse")]
    return [suite for suite in found if isinstance(suite, list)]


def _nth(tree: ast.Module, number: int) -> tuple[list[ast.stmt], int] | None:
    places = [(suite, index) for suite in _suites(tree) for index in range(len(suite))]
    return places[number] if number < len(places) else None


def _without(tree: ast.Module, number: int) -> bool:
    place = _nth(tree, number)
    if place is None:
        return False
    suite, index = place
    del suite[index]
    if not suite:
        suite.append(ast.Pass())
    return True


def _twice(tree: ast.Module, number: int) -> bool:
    place = _nth(tree, number)
    if place is None or isinstance(place[0][place[1]], ast.Import):
        return False
    suite, index = place
    suite.insert(index, suite[index])
    return True


def _exchanged(tree: ast.Module, number: int) -> bool:
    place = _nth(tree, number)
    if place is None or place[1] + 1 >= len(place[0]):
        return False
    suite, index = place
    suite[index], suite[index + 1] = suite[index + 1], suite[index]
    return True


def broken(name: str) -> Callable[..., Any]:
    """Edits as a careless hand would make them."""
    right = getattr(applying, name)
    wrong: dict[str, Callable[..., Any]] = {
        "drop_arguments": lambda call, indexes: call.with_changes(args=()),
        "rename_argument": lambda call, argument, new: call,
        "keep_part": lambda target, kept, suffix: right(target, kept, ""),
        "wrap_expression": lambda node, prefix, suffix: right(right(node, prefix, suffix), prefix, suffix),
        "replace_expression": lambda node, code: cst.Name("None"),
        "add_decorator": lambda function, code: right(right(function, code), code),
        "change_suite": lambda original, updated, changes, layout: updated,
    }
    return wrong[name]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("drop_arguments", ["drop"]),
        ("rename_argument", ["rename"]),
        ("keep_part", ["keep"]),
        ("wrap_expression", ["wrap"]),
        ("replace_expression", ["replace"]),
        ("add_decorator", ["decorate"]),
        ("change_suite", ["insert", "remove", "identity", "move", "block", "helper"]),
    ],
)
def test_a_broken_transformer_is_caught(name: str, kinds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, name, broken(name))
    for kind in kinds:
        with pytest.raises(EditError):
            apply_edits(PROGRAM, [edits_of_all_kinds(PROGRAM)[kind]])


@pytest.mark.parametrize(
    ("before", "target"),
    [
        ("x = x,\n", "x = x"),
        ("x = x if x is None else None\n", "x ="),
        ("x = x if y is not None else None\n", "x ="),
        ("x = x if x is not None else 0\n", "x ="),
        ("x = x if x is not None is None else None\n", "x ="),
        ("x = x if f() else x\n", "x ="),
        ("x = y\n", "x = y"),
        ("self.x = self.x\n", "self.x"),
        ("x[0] = x[0]\n", "x[0]"),
        ("x = y = x\n", "x = y"),
        ("x, y = y, x\n", "x, y"),
        ("x, y = x\n", "x, y"),
        ("*x, = *x,\n", "*x"),
        ("x: int = x\n", "x"),
        ("x += x\n", "x"),
        ("(y := x)\n", "(y"),
        ("class A:\n    x = x\n", "x = x"),
        ("a.x = a.x\n", "a.x"),
        ("a.x = 1\nif b:\n    a.x = a.x\n", "a.x = a.x"),
        ("a.x = a.x\na.x = 1\n", "a.x = a.x"),
        ("b.x = 1\na.x = a.x\n", "a.x = a.x"),
        ("a.b.x = 1\na.b.x = a.b.x\n", "a.b.x = a.b.x"),
        ("a[0] = 1\na[0] = a[0]\n", "a[0] = a[0]"),
        ("del x\n", "del"),
    ],
)
def test_what_does_something_is_no_identity(before: str, target: str) -> None:
    check_refused(before, "does more than to assign names", RemoveIdentity(statement(before, target)))


@pytest.mark.parametrize(
    "line",
    [
        "x = x",
        "x = x = x",
        "x, y = x, y",
        "[x, y] = (x, y)",
        "x = (x)",
        "x = x if x is not None else None",
        "x = None if x is None else x",
        "x = x if a.b else x",
    ],
)
def test_what_assigns_names_to_themselves_goes(line: str) -> None:
    before = f"a\n{line}\nb\n"
    check(before, "a\nb\n", RemoveIdentity(statement(before, line)))


def test_a_field_that_is_assigned_above_goes_too() -> None:
    before = "self.x = f()\nb\nself.x = self.x\n"
    check(before, "self.x = f()\nb\n", RemoveIdentity(statement(before, "self.x = self.x")))


def test_an_identity_may_come_of_other_edits() -> None:
    before = "def f(x, y):\n    x, y = V(x), V(y)  # both\n    return x\n"
    calls = [(expression(before, f"V({n})"), expression(before, n, 1)) for n in "xy"]
    edits = [KeepPart(call, given) for call, given in calls]
    target = statement(before, "x, y")
    check(before, "def f(x, y):\n    # both\n    return x\n", *edits, RemoveIdentity(target))
    check_refused(before, "does more", edits[0], RemoveIdentity(target))
    with_suffix = KeepPart(edits[1].target, edits[1].kept, ".detach()")
    check_refused(before, "does more", edits[0], with_suffix, RemoveIdentity(target))


@pytest.mark.parametrize(
    "before",
    [
        "def f(torch):\n    a(b)\n",
        "def f():\n    torch = 1\n    a(b)\n",
        "torch = c\na(b)\n",
        "if c:\n    import torch\na(b)\n",
        "[a(b) for torch in c]\n",
        "def f():\n    a(b)\n    import torch\n",
    ],
)
def test_torch_is_what_it_says_in_the_result(before: str) -> None:
    after = apply_edits(before, [WrapExpression(expression(before, "a(b)"), "{torch}.f(", ")")])
    wrong = before.replace("a(b)", "torch.f(a(b))")
    edit = WrapExpression(expression(before, "a(b)"), "{torch}.f(", ")")
    assert after != wrong
    with pytest.raises(EditError, match="not surely torch"):
        judged(before, [edit], wrong)


def test_a_name_that_is_used_stays_imported() -> None:
    source = Source("import os\nos.getcwd(1)\n")
    imported = source.tree.body[0]
    assert isinstance(imported, ast.Import)
    result = "os.getcwd()\n"
    edit = DropArgument(expression(source.text, "os.getcwd(1)"), 0)
    with pytest.raises(EditError, match="no longer be imported"):
        check_contract(source, [edit], {imported: {0}}, result, ast.parse(result))
