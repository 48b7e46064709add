"""Dropping arguments: no dangling comma, no odd whitespace, and the comments of the other arguments."""

from __future__ import annotations

import pytest

from codemods.terms.edits import DropArgument, WrapExpression
from tests.edits.tools import check, check_refused, expression


def _call(text: str) -> str:
    """The call of ``f`` in ``text``, as it is written."""
    start = text.index("f(")
    depth = 0
    for end in range(start, len(text)):
        depth += (text[end] == "(") - (text[end] == ")")
        if text[end] == ")" and not depth:
            return text[start : end + 1]
    raise AssertionError(text)


@pytest.mark.parametrize(
    ("before", "argument", "after"),
    [
        ("f(a, k=True)\n", "k", "f(a)\n"),
        ("f(k=True)\n", "k", "f()\n"),
        ("f( k=True )\n", "k", "f()\n"),
        ("f(k=True,)\n", "k", "f()\n"),
        ("f(k=True, a=1)\n", "k", "f(a=1)\n"),
        ("f(k=True , a=1)\n", "k", "f(a=1)\n"),
        ("f( k=True, a=1 )\n", "k", "f( a=1 )\n"),
        ("f(a, k=True, b=2)\n", "k", "f(a, b=2)\n"),
        ("f(a, k=True, **b)\n", "k", "f(a, **b)\n"),
        ("f(a, k=True,)\n", "k", "f(a,)\n"),
        ("f(a, k=True, )\n", "k", "f(a, )\n"),
        ("f(a ,k = True)\n", "k", "f(a)\n"),
        ("x = f(a, k=g(1, 2)) + 1\n", "k", "x = f(a) + 1\n"),
        ("f(None, True)\n", 1, "f(None)\n"),
        ("f(None, True)\n", 0, "f(True)\n"),
        ("f(*a, b)\n", 0, "f(b)\n"),
        ("f(*a, b)\n", 1, "f(*a)\n"),
        ("f(k=1, *b)\n", 0, "f(k=1)\n"),
        ("f(a, (b, c), d)\n", 1, "f(a, d)\n"),
        # Several lines.
        ("f(\n    a,\n    k=True,\n)\n", "k", "f(\n    a,\n)\n"),
        ("f(\n    a,\n    k=True\n)\n", "k", "f(\n    a\n)\n"),
        ("f(\n    k=True,\n    a=1,\n)\n", "k", "f(\n    a=1,\n)\n"),
        ("f(\n    a,\n    k=True,\n    b=2,\n)\n", "k", "f(\n    a,\n    b=2,\n)\n"),
        ("f(\n    k=True,\n)\n", "k", "f()\n"),
        ("f(\n    k=True\n)\n", "k", "f()\n"),
        ("f(a,\n  k=True)\n", "k", "f(a)\n"),
        ("f(k=True,\n  a=1)\n", "k", "f(a=1)\n"),
        ("f(a, k=True,\n  b=1)\n", "k", "f(a,\n  b=1)\n"),
        ("f(a,\n  k=True, b=1)\n", "k", "f(a,\n  b=1)\n"),
        ("f(a, k=True\n)\n", "k", "f(a\n)\n"),
        ("f(a, \\\n  k=True)\n", "k", "f(a)\n"),
        ("f(a, \\\n  k=True, b=1)\n", "k", "f(a, b=1)\n"),
        ("if x:\n\tf(\n\t\ta,\n\n\t\tk=True,\n\t)\n", "k", "if x:\n\tf(\n\t\ta,\n\t)\n"),
        # Comments: the one behind the argument goes, all others stay.
        ("f(\n    a,  # one\n    k=True,  # two\n)\n", "k", "f(\n    a,  # one\n)\n"),
        ("f(\n    a,  # one\n    k=True  # two\n)\n", "k", "f(\n    a  # one\n)\n"),
        ("f(\n    a,  # one\n    k=True)\n", "k", "f(\n    a  # one\n    )\n"),
        (
            "f(\n    a,  # one\n    k=True,  # two\n    b=3,  # three\n)\n",
            "k",
            "f(\n    a,  # one\n    b=3,  # three\n)\n",
        ),
        (
            "f(\n    # own\n    k=True,  # two\n    # other\n    b=3,\n)\n",
            "k",
            "f(\n    # own\n    # other\n    b=3,\n)\n",
        ),
        ("f(\n    a,\n    # own\n    k=True,\n)\n", "k", "f(\n    a,\n    # own\n)\n"),
        ("f(  # open\n    k=True,  # two\n)\n", "k", "f(  # open\n)\n"),
        ("f(\n    # own\n    k=True,\n)\n", "k", "f(\n    # own\n)\n"),
        ("f(k=True,  # two\n  b=3)\n", "k", "f(b=3)\n"),
        ("f(k=True,\n  # other\n  b=3)\n", "k", "f(\n  # other\n  b=3)\n"),
        ("f(a  # one\n  , k=True)\n", "k", "f(a  # one\n  )\n"),
    ],
)
def test_argument_is_dropped(before: str, argument: str | int, after: str) -> None:
    check(before, after, DropArgument(expression(before, _call(before)), argument))


def test_several_arguments_of_one_call_are_dropped() -> None:
    before = "f(a, 1, k=True, b=2, l=False)\n"
    call = expression(before, _call(before))
    check(before, "f(a, b=2)\n", DropArgument(call, "l"), DropArgument(call, 1), DropArgument(call, "k"))


def test_all_arguments_are_dropped() -> None:
    before = "f(\n    a,\n    k=True,\n)\n"
    call = expression(before, _call(before))
    check(before, "f()\n", DropArgument(call, 0), DropArgument(call, "k"))


def test_nested_calls_lose_arguments_too() -> None:
    before = "f(g(x, k=1), k=2)\n"
    inner = DropArgument(expression(before, "g(x, k=1)"), "k")
    check(before, "f(g(x))\n", inner, DropArgument(expression(before, _call(before)), "k"))


def test_a_call_is_wrapped_without_its_argument() -> None:
    before = "y = f(a, k=True)\n"
    call = expression(before, _call(before))
    check(before, "y = f(a).detach()\n", WrapExpression(call, "", ".detach()"), DropArgument(call, "k"))


def test_columns_count_characters() -> None:
    before = "é = 'ü\u2028\x0b'; f('ß', k=True)\n"
    check(before, "é = 'ü\u2028\x0b'; f('ß')\n", DropArgument(expression(before, "f('ß', k=True)"), "k"))


def test_missing_arguments_are_refused() -> None:
    before = "f(a, k=True)\n"
    call = expression(before, _call(before))
    check_refused(before, "no argument j= at line 1", DropArgument(call, "j"))
    check_refused(before, "no positional argument 1", DropArgument(call, 1))
    check_refused(before, "no positional argument -1", DropArgument(call, -1))


def test_what_is_no_call_is_refused() -> None:
    before = "f(a, k=True)\n"
    call = expression(before, _call(before))
    check_refused(before, "no call at line 1", DropArgument(expression(before, "a"), 0))
    check_refused(before, "no expression at line 1", DropArgument(call._replace(column=1), "k"))
    check_refused(before, "no expression at line 9", DropArgument(call._replace(line=9, end_line=9), "k"))
