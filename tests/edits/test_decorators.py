"""Decorating functions and methods, whatever stands around their ``def``."""

from __future__ import annotations

import pytest

from codemods.terms.edits import AddDecorator, WrapExpression
from tests.edits.tools import check, check_refused, expression, statement


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(): pass\n", "@n.o()\ndef f(): pass\n"),
        ("def f():\n    a\n", "@n.o()\ndef f():\n    a\n"),
        ("@d\ndef f():\n    a\n", "@d\n@n.o()\ndef f():\n    a\n"),
        ("@d  # c\n# e\n\ndef f():\n    a\n", "@d  # c\n# e\n\n@n.o()\ndef f():\n    a\n"),
        ("a\n\n\n# c\ndef f():\n    a\n", "a\n\n\n# c\n@n.o()\ndef f():\n    a\n"),
        ("# file\ndef f():\n    a\n", "# file\n@n.o()\ndef f():\n    a\n"),
        ("class A:\n\tdef f(self): pass\n", "class A:\n\t@n.o()\n\tdef f(self): pass\n"),
        (
            "class A:\n  @d(\n    1)\n  async def f(self):\n    a\n",
            "class A:\n  @d(\n    1)\n  @n.o()\n  async def f(self):\n    a\n",
        ),
        ("if x:\n    pass\nelse:\n    def f(): pass\n", "if x:\n    pass\nelse:\n    @n.o()\n    def f(): pass\n"),
        ("\x0cdef f(): pass\n", "\x0c@n.o()\ndef f(): pass\n"),
    ],
)
def test_function_is_decorated(before: str, after: str) -> None:
    start = "async def" if "async" in before else "def"
    check(before, after, AddDecorator(statement(before, start), "n.o()"))


def test_line_ends_are_those_of_the_function() -> None:
    before = "a\r\ndef f():\n    a\n"
    check(before, "a\r\n@n\ndef f():\n    a\n", AddDecorator(statement(before, "def"), "n"))


def test_nested_functions_are_decorated() -> None:
    before = "def f(a=b):\n    def g(): pass\n    return g\n"
    edits = [
        AddDecorator(statement(before, "def f"), "n"),
        AddDecorator(statement(before, "def g"), "m"),
        WrapExpression(expression(before, "b"), "", ".c"),
        AddDecorator(statement(before, "def f"), "o"),
    ]
    check(before, "@n\n@o\ndef f(a=b.c):\n    @m\n    def g(): pass\n    return g\n", *edits)


def test_decorators_that_are_the_same_are_added_once() -> None:
    before = "import torch\n\n\ndef f(): pass\n"
    f = statement(before, "def")
    edits = [AddDecorator(f, "{torch}.no_grad()"), AddDecorator(f, "torch.no_grad()")]
    check(before, "import torch\n\n\n@torch.no_grad()\ndef f(): pass\n", *edits)


def test_what_cannot_be_decorated_is_refused() -> None:
    before = "@d\nclass A: pass\nx = 1\n@e\ndef f(): pass\n"
    check_refused(before, "no function at line 2", AddDecorator(statement(before, "class"), "n"))
    check_refused(before, "no function at line 3", AddDecorator(statement(before, "x"), "n"))
    f = statement(before, "def")
    check_refused(before, "no statement at line 4", AddDecorator(f._replace(line=4), "n"))


@pytest.mark.parametrize("code", ["", "n\n@m", "a b", "n\ndef g(): pass", "n: 1"])
def test_what_is_no_decorator_is_refused(code: str) -> None:
    before = "def f(): pass\n"
    check_refused(before, "decorator", AddDecorator(statement(before, "def"), code))
