"""``async`` as the keyword of an argument: read as it stands, at its place."""

from __future__ import annotations

import ast

import pytest

from codemods.edits.apply import apply_edits
from codemods.edits.positions import span_of
from codemods.source.errors import Unparsable
from codemods.source.reserved import stand_in
from codemods.source.syntax import parse
from codemods.terms.edits import DropArgument, RenameArgument, ReplaceExpression


def _calls(tree: ast.AST) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sorted((call for call in calls if call.keywords), key=lambda call: call.lineno)


@pytest.mark.parametrize(
    "text",
    [
        "x = x.cuda(async=True)\n",
        "x = x.cuda(0, async = flag)\n",
        "x = x.cuda(\n    0,  # device\n    async=True)\n",
        "x = x.cuda(0,\r\n\tasync=True)\r\ny = 1\r\n",
        "s = 'f(async=True)'\nx = x.cuda(async=True)  # (async=True)\n",
        "async def f():\n    await g(async=True)\n",
        "é = x.cuda(async=True)",
    ],
)
def test_read_at_its_place(text: str) -> None:
    call = _calls(parse(text, "a.py"))[0]
    keyword = next(k for k in call.keywords if k.arg == "async")
    line = text.replace("\r\n", "\n").split("\n")[keyword.lineno - 1]
    assert line.encode()[keyword.col_offset :].decode().startswith("async")


@pytest.mark.parametrize(
    "text",
    [
        "async = 3\n",
        "def load(async=False):\n    pass\n",
        "def load(x, async=False):\n    return x.cuda(async=True)\n",
        "x.async\n",
        "f = lambda async=1: 0\n",
        "f = g(lambda x, async=1: 0)\n",
        "x = (async == 1)\n",
        "x = x.cuda(async=True\n",
        "x = x.cuda(async=True)\nprint 'x'\n",
    ],
)
def test_what_is_more_than_an_argument_is_refused(text: str) -> None:
    with pytest.raises(Unparsable):
        parse(text, "a.py")


def test_text_of_today_is_left_alone() -> None:
    assert stand_in("async def f():\n    pass\n") is None
    assert stand_in("# f(async=True)\n") is None
    assert stand_in("s = 'f(async=True)'\n") is None


def test_the_word_is_new_to_the_text() -> None:
    masked = stand_in("asana = asanb = 1\nx.cuda(async=True)\n")
    assert masked is not None
    assert masked[1] not in ("asana", "asanb")
    assert len(masked[1]) == len("async")


def test_edits_change_nothing_else() -> None:
    text = "x = x.cuda(0, async=True)  # async=True\r\ny = x.cuda(async=True); asana = 1\r\n"
    lines = text.split("\r\n")
    first, second = _calls(parse(text, "a.py"))
    assert isinstance(second.func, ast.Attribute)
    for mark in ("", "\ufeff"):
        renamed = apply_edits(mark + text, [RenameArgument(span_of(first, lines), "async", "non_blocking")])
        assert renamed == mark + text.replace("0, async=True)", "0, non_blocking=True)")
        dropped = apply_edits(mark + text, [DropArgument(span_of(second, lines), "async")])
        assert dropped == mark + text.replace("y = x.cuda(async=True)", "y = x.cuda()")
        other = apply_edits(mark + text, [ReplaceExpression(span_of(second.func.value, lines), "z")])
        assert other == mark + text.replace("y = x.cuda(", "y = z.cuda(")
