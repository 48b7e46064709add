"""Wrapping and replacing expressions, with parentheses where the grammar asks for them and nowhere else."""

from __future__ import annotations

import pytest

from codemods.terms.edits import DropArgument, ReplaceExpression, WrapExpression
from tests.edits.tools import check, check_refused, expression


@pytest.mark.parametrize(
    ("before", "target", "prefix", "suffix", "after"),
    [
        # No parentheses.
        ("y = x\n", "x", "", ".detach()", "y = x.detach()\n"),
        ("y = x.a[0](1)\n", "x.a[0](1)", "", ".detach()", "y = x.a[0](1).detach()\n"),
        ("y = x.a\n", "x.a", "", ".detach()", "y = x.a.detach()\n"),
        ("y = 'a'\n", "'a'", "", ".upper()", "y = 'a'.upper()\n"),
        ("y = 'a' 'b'\n", "'a' 'b'", "", ".upper()", "y = 'a' 'b'.upper()\n"),
        ("y = [a]\n", "[a]", "", ".copy()", "y = [a].copy()\n"),
        ("y += x\n", "x", "", ".item()", "y += x.item()\n"),
        ("y = a + b * c\n", "b", "float(", ")", "y = a + float(b) * c\n"),
        ("y = a + b\n", "a + b", "float(", ")", "y = float(a + b)\n"),
        ("y = a if b else c\n", "a if b else c", "float(", ")", "y = float(a if b else c)\n"),
        ("y = lambda: a\n", "lambda: a", "g(", ")", "y = g(lambda: a)\n"),
        # Parentheses.
        ("y = a + b\n", "a + b", "", ".detach()", "y = (a + b).detach()\n"),
        ("y = -a\n", "-a", "", ".detach()", "y = (-a).detach()\n"),
        ("y = a < b\n", "a < b", "", ".detach()", "y = (a < b).detach()\n"),
        ("y = not a\n", "not a", "", ".detach()", "y = (not a).detach()\n"),
        ("y = a and b\n", "a and b", "", ".detach()", "y = (a and b).detach()\n"),
        ("y = a if b else c\n", "a if b else c", "", ".detach()", "y = (a if b else c).detach()\n"),
        ("y = lambda: a\n", "lambda: a", "", ".detach()", "y = (lambda: a).detach()\n"),
        ("y = 1\n", "1", "", ".real", "y = (1).real\n"),
        ("y = 1.5\n", "1.5", "", ".real", "y = 1.5.real\n"),
        ("y = a, b\n", "a, b", "", ".count(1)", "y = (a, b).count(1)\n"),
        ("y = a, b\n", "a, b", "list(", ")", "y = list((a, b))\n"),
        ("return_ = a, *b\n", "a, *b", "list(", ")", "return_ = list((a, *b))\n"),
        ("for x in a, b: pass\n", "a, b", "list(", ")", "for x in list((a, b)): pass\n"),
        # Parentheses that are there are put to use.
        ("y = (a + b)\n", "a + b", "", ".detach()", "y = (a + b).detach()\n"),
        ("y = ((a + b))\n", "a + b", "", ".detach()", "y = ((a + b)).detach()\n"),
        ("y = (  # c\n    a +\n    b\n)\n", "a +\n    b", "", ".detach()", "y = (  # c\n    a +\n    b\n).detach()\n"),
        ("y = (\n    a\n)\n", "a", "", ".detach()", "y = (\n    a.detach()\n)\n"),
        ("y = (a, b)\n", "(a, b)", "", ".count(1)", "y = (a, b).count(1)\n"),
        ("y = (a, b)\n", "(a, b)", "list(", ")", "y = list((a, b))\n"),
        ("y = ((a, b))\n", "(a, b)", "list(", ")", "y = (list((a, b)))\n"),
        ("y = ()\n", "()", "list(", ")", "y = list(())\n"),
        ("y = f((a, b))\n", "(a, b)", "list(", ")", "y = f(list((a, b)))\n"),
        ("y = (x := 1)\n", "x := 1", "", ".real", "y = (x := 1).real\n"),
        ("y = (x for x in z)\n", "(x for x in z)", "list(", ")", "y = list((x for x in z))\n"),
        # A generator that borrows the parentheses of its call.
        ("y = sum(x for x in z)\n", "(x for x in z)", "list(", ")", "y = sum(list(x for x in z))\n"),
        ("y = sum (x for x in z)\n", "(x for x in z)", "", ".a()", "y = sum ((x for x in z).a())\n"),
        # Other places.
        ("f(*a)\n", "a", "list(", ")", "f(*list(a))\n"),
        ("f(*a or b)\n", "a or b", "", ".x", "f(*(a or b).x)\n"),
        ("f(k=a + b)\n", "a + b", "", ".x", "f(k=(a + b).x)\n"),
        ("f(x := a)\n", "a", "float(", ")", "f(x := float(a))\n"),
        ("y = f'{x:.3f} {z!r}'\n", "x", "", ".item()", "y = f'{x.item():.3f} {z!r}'\n"),
        ("async def f():\n    return await x\n", "await x", "", ".y", "async def f():\n    return (await x).y\n"),
        ("async def f():\n    return await x\n", "x", "", ".y", "async def f():\n    return await x.y\n"),
        ("def f():\n    y = yield x\n", "yield x", "float(", ")", "def f():\n    y = float((yield x))\n"),
        ("def f():\n    y = (yield)\n", "yield", "float(", ")", "def f():\n    y = float((yield))\n"),
        ("y = [x for x in z if x]\n", "x", "", ".w", "y = [x.w for x in z if x]\n"),
        ("y = a if(b)else c\n", "b", "", ".w", "y = a if(b.w)else c\n"),
        ("def f():\n    return(a+b)\n", "a+b", "", ".w", "def f():\n    return(a+b).w\n"),
        ("@d\ndef f(a=b): pass\n", "b", "", ".w", "@d\ndef f(a=b.w): pass\n"),
        # What is put around may bind less tightly than what is around.
        ("y = a * b\n", "b", "", " + 1", "y = a * (b + 1)\n"),
        ("y = a\n", "a", "", " + 1", "y = a + 1\n"),
        ("f(a)\n", "a", "", " / n", "f(a / n)\n"),
        ("f(*a)\n", "a", "", " or b", "f(*(a or b))\n"),
        ("y = a.b\n", "a", "-", "", "y = (-a).b\n"),
        ("y = a.b\n", "a", "await ", "", "y = (await a).b\n"),
        ("y = (a).b\n", "a", "-", "", "y = (-a).b\n"),
        ("y = a + b\n", "a + b", "2 * ", "", "y = 2 * (a + b)\n"),
        ("y = a * b\n", "a * b", "2 + ", "", "y = 2 + a * b\n"),
        ("y = f'{x}'\n", "x", "lambda: ", "", "y = f'{(lambda: x)}'\n"),
        ("y = x\n", "x", "lambda: ", "", "y = lambda: x\n"),
    ],
)
def test_expression_is_wrapped(before: str, target: str, prefix: str, suffix: str, after: str) -> None:
    if "await" in prefix:
        before, after = (f"async def f():\n    {line}" for line in (before, after))
    check(before, after, WrapExpression(expression(before, target), prefix, suffix))


def test_nested_targets_are_wrapped() -> None:
    before = "total += a + g(b, k=1)\n"
    edits = [
        WrapExpression(expression(before, "a + g(b, k=1)"), "", ".detach()"),
        WrapExpression(expression(before, "g(b, k=1)"), "float(", ")"),
        DropArgument(expression(before, "g(b, k=1)"), "k"),
        WrapExpression(expression(before, "b"), "", ".x"),
    ]
    check(before, "total += (a + float(g(b.x))).detach()\n", *edits)
    check(before, "total += (a + float(g(b.x))).detach()\n", *reversed(edits))


def test_two_wrappings_of_one_expression_nest() -> None:
    before = "y = a + b\n"
    target = expression(before, "a + b")
    check(before, "y = float((a + b).x)\n", WrapExpression(target, "", ".x"), WrapExpression(target, "float(", ")"))


@pytest.mark.parametrize(
    ("before", "target", "code", "after"),
    [
        ("y = f(x)\n", "f(x)", "x", "y = x\n"),
        ("y = f(x) * 2\n", "f(x)", "x + 1", "y = (x + 1) * 2\n"),
        ("y = f(x) + 2\n", "f(x)", "x", "y = x + 2\n"),
        ("y = (f(x))\n", "f(x)", "x + 1", "y = (x + 1)\n"),
        ("y = (a, b)\n", "(a, b)", "c", "y = c\n"),
        ("y = (a, b)\n", "(a, b)", "(c, d)", "y = (c, d)\n"),
        ("y = a, b\n", "a, b", "c, d", "y = c, d\n"),
        ("y = f(a)\n", "a", "c, d", "y = f((c, d))\n"),
        ("y = x.data[0]\n", "x.data[0]", "x.item()", "y = x.item()\n"),
        ("y = x[0].a\n", "x[0]", "1", "y = (1).a\n"),
        ("y = x[0]\n", "x[0]", "1", "y = 1\n"),
        ("f(x, key=g)\n", "g", "lambda a: a", "f(x, key=lambda a: a)\n"),
        ("y = g or h\n", "g", "lambda a: a", "y = (lambda a: a) or h\n"),
    ],
)
def test_expression_is_replaced(before: str, target: str, code: str, after: str) -> None:
    check(before, after, ReplaceExpression(expression(before, target), code))


def test_replaced_expression_is_wrapped() -> None:
    before = "y = x[0]\n"
    target = expression(before, "x[0]")
    check(before, "y = (x + 1).a\n", WrapExpression(target, "", ".a"), ReplaceExpression(target, "x + 1"))


def test_contradictions_are_refused() -> None:
    before = "y = f(x, k=1)\n"
    call = expression(before, "f(x, k=1)")
    check_refused(before, "two edits replace", ReplaceExpression(call, "a"), ReplaceExpression(call, "b"))
    check_refused(before, "lose or rename an argument", ReplaceExpression(call, "a"), DropArgument(call, "k"))
    inner = WrapExpression(expression(before, "x"), "", ".a")
    check_refused(before, "part of an expression that is to be replaced", inner, ReplaceExpression(call, "a"))


def test_what_is_no_expression_is_refused() -> None:
    before = "f(*a, b.c, k=1, **d)\nx = y[1:2, 3]\n"
    check_refused(before, "starred", WrapExpression(expression(before, "*a"), "list(", ")"))
    b = expression(before, "b.c")
    check_refused(before, "no expression", WrapExpression(b._replace(column=b.column + 2), "", ".a"))
    k = expression(before, "1")
    check_refused(before, "no expression", WrapExpression(k._replace(column=12, end_column=13), "", ".a"))
    check_refused(before, "libcst has no Slice", WrapExpression(expression(before, "1:2"), "", ".a"))
    check_refused(before, "libcst has no Tuple", WrapExpression(expression(before, "1:2, 3"), "", ".a"))


def test_a_word_that_would_run_into_the_next_is_refused() -> None:
    before = "y = a if(b + 1)else c\n"
    check_refused(before, "would not be Python", WrapExpression(expression(before, "b + 1"), "", ".w"))


def test_assignment_targets_are_refused() -> None:
    before = "x = y\n"
    check_refused(before, "would not be Python", WrapExpression(expression(before, "x"), "float(", ")"))


@pytest.mark.parametrize(("prefix", "suffix"), [("f(", ""), ("", ")"), ("", "; x"), ("x = ", "")])
def test_what_does_not_make_an_expression_is_refused(prefix: str, suffix: str) -> None:
    before = "x = y\n"
    check_refused(before, "is not an expression", WrapExpression(expression(before, "y"), prefix, suffix))


def test_code_that_is_no_expression_is_refused() -> None:
    before = "x = y\n"
    check_refused(before, r"'1 \+' is not an expression", ReplaceExpression(expression(before, "y"), "1 +"))
