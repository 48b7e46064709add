"""Cutting an expression down to one of its parts."""

from __future__ import annotations

import pytest

from codemods.terms.edits import DropArgument, KeepPart, RemoveStatement, RenameArgument, ReplaceExpression
from tests.edits.tools import check, check_refused, expression, statement


def _keep(text: str, target: str, kept: str, suffix: str = "") -> KeepPart:
    return KeepPart(expression(text, target), expression(text, kept), suffix)


@pytest.mark.parametrize(
    ("before", "target", "kept", "suffix", "after"),
    [
        ("y = V(x)\n", "V(x)", "x", "", "y = x\n"),
        ("y = V( x, k=1 )\n", "V( x, k=1 )", "x", "", "y = x\n"),
        ("y = V(x).d\n", "V(x)", "x", ".detach()", "y = x.detach().d\n"),
        ("y = V(a + b).cuda()\n", "V(a + b)", "a + b", "", "y = (a + b).cuda()\n"),
        ("y = V(a + b)\n", "V(a + b)", "a + b", ".detach()", "y = (a + b).detach()\n"),
        ("y = 2 * V(a + b)\n", "V(a + b)", "a + b", "", "y = 2 * (a + b)\n"),
        ("y = f(V(a + b), 1)\n", "V(a + b)", "a + b", "", "y = f(a + b, 1)\n"),
        ("y = (V(x))\n", "V(x)", "x", "", "y = (x)\n"),
        ("y = V((x))\n", "V((x))", "x", "", "y = (x)\n"),
        ("y = V(x)[0]\n", "V(x)[0]", "x", ".item()", "y = x.item()\n"),
        ("y = l.data.cpu()[0]\n", "l.data.cpu()[0]", "l", ".item()", "y = l.item()\n"),
        ("y = -l.data[0]\n", "l.data[0]", "l", ".item()", "y = -l.item()\n"),
        ("y = V(\n    x,\n    k=1,\n)\n", "V(\n    x,\n    k=1,\n)", "x", "", "y = x\n"),
        ("y = V(a +\n      b)\n", "V(a +\n      b)", "a +\n      b", "", "y = (a +\n      b)\n"),
        ("y = V(a\n      + b)\n", "V(a\n      + b)", "a\n      + b", "", "y = (a\n      + b)\n"),
        ("y = V(f(a,\n  b))\n", "V(f(a,\n  b))", "f(a,\n  b)", "", "y = f(a,\n  b)\n"),
        ("y = V(lambda: 1)()\n", "V(lambda: 1)", "lambda: 1", "", "y = (lambda: 1)()\n"),
        ("y = V(a if b else c)\n", "V(a if b else c)", "a if b else c", ".t()", "y = (a if b else c).t()\n"),
        ("print(V(x) , z)\n", "V(x)", "x", "", "print(x , z)\n"),
        # an attribute stays on its line, and what holds the lines together stands around it
        (
            "y = (f(x)\n  .cpu()\n  .data.n())\n",
            "f(x)\n  .cpu()\n  .data",
            "f(x)\n  .cpu()",
            ".detach()",
            "y = (f(x)\n  .cpu()\n  .detach().n())\n",
        ),
        ("y = (f(x)\n  .data\n  .n())\n", "f(x)\n  .data", "f(x)", ".detach()", "y = (f(x)\n  .detach()\n  .n())\n"),
        ("y = f(x) \\\n  .data\n", "f(x) \\\n  .data", "f(x)", ".detach()", "y = f(x) \\\n  .detach()\n"),
        ("y = x . data . n()\n", "x . data", "x", ".detach()", "y = x . detach() . n()\n"),
        ("y = (f(x)\n  .data\n)\n", "f(x)\n  .data", "f(x)", ".detach().a()", "y = (f(x)\n  .detach().a()\n)\n"),
        ("y = (a + b).data\n", "(a + b).data", "a + b", ".detach()", "y = (a + b).detach()\n"),
    ],
)
def test_part_is_kept(before: str, target: str, kept: str, suffix: str, after: str) -> None:
    check(before, after, _keep(before, target, kept, suffix))


def test_parts_of_parts() -> None:
    before = "y = f(V(g(V(x), h.data)), 1)\n"
    check(
        before,
        "y = f(g(x, h.detach()), 1)\n",
        _keep(before, "V(g(V(x), h.data))", "g(V(x), h.data)"),
        _keep(before, "V(x)", "x"),
        _keep(before, "h.data", "h", ".detach()"),
    )


def test_what_is_kept_may_be_replaced() -> None:
    before = "y = V(x)\n"
    check(before, "y = z.t()\n", _keep(before, "V(x)", "x", ".t()"), ReplaceExpression(expression(before, "x"), "z"))


def test_an_argument_of_what_goes_may_go() -> None:
    before = "y = V(x, k=1)\n"
    call = expression(before, "V(x, k=1)")
    check(before, "y = x\n", _keep(before, "V(x, k=1)", "x"), DropArgument(call, "k"))


def test_statement_that_goes_takes_its_edits_along() -> None:
    before = "a = 1\nx = V(x)\n"
    kept = KeepPart(expression(before, "V(x)"), expression(before, "x", 1))
    check(before, "a = 1\n", RemoveStatement(statement(before, "x = V")), kept)


def test_comments_are_not_lost() -> None:
    before = "y = V(\n    x,  # the input\n    k=1,\n)\n"
    check_refused(before, "comments", _keep(before, "V(\n    x,  # the input\n    k=1,\n)", "x"))
    before = "y = V(f(\n    x,  # the input\n    k=1,\n))\n"
    inner = "f(\n    x,  # the input\n    k=1,\n)"
    check(before, f"y = {inner}\n", _keep(before, f"V({inner})", inner))


def test_only_parts_can_be_kept() -> None:
    before = "y = V(x) + z\n"
    check_refused(before, "no part", KeepPart(expression(before, "V(x)"), expression(before, "z")))
    check_refused(before, "two parts", _keep(before, "V(x)", "x"), _keep(before, "V(x)", "x", ".t()"))


@pytest.mark.parametrize(
    ("before", "argument", "after"),
    [
        ("f(a, old=True)\n", "old", "f(a, new=True)\n"),
        ("f(a, old = True )\n", "old", "f(a, new = True )\n"),
        ("f(None, False)\n", 1, "f(None, new=False)\n"),
        ("f(False, k=2)\n", 0, "f(new=False, k=2)\n"),
        ("f(\n    a,\n    old=1,  # why\n)\n", "old", "f(\n    a,\n    new=1,  # why\n)\n"),
    ],
)
def test_argument_is_renamed(before: str, argument: str | int, after: str) -> None:
    check(before, after, RenameArgument(expression(before, before.rstrip("\n")), argument, "new"))


def test_argument_is_renamed_with_its_value() -> None:
    before = "f(old=False, gone=1)\n"
    call = expression(before, "f(old=False, gone=1)")
    check(
        before,
        "f(new='sum')\n",
        RenameArgument(call, "old", "new"),
        ReplaceExpression(expression(before, "False"), "'sum'"),
        DropArgument(call, "gone"),
    )


def test_argument_that_cannot_be_renamed() -> None:
    for before, argument, reason in (
        ("f(a, b)\n", 0, "after it"),
        ("f(a, new=1)\n", 0, "already"),
        ("f(*a)\n", 0, "keyword"),
        ("f(a)\n", "old", "no argument"),
    ):
        check_refused(before, reason, RenameArgument(expression(before, before.rstrip()), argument, "new"))
