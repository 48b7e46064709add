"""Expressions of which no run shows how they come out."""

from __future__ import annotations

import ast

import pytest

from codemods.rewriting.choices import fixed, sized

SIZES = "batch, width = x.shape\nlast = len(x) - 1\nself.rows = x.size(0)\nsize = 64\n"


@pytest.mark.parametrize("text", [
    "x.view(64, -1)", "x.view(size, -1)", "x.reshape((64, 8))", "x.expand(self.count, 3)", "x.view([size, 8])",
    "model(x).view(args.batch_size, -1)", "x.view(64 // 2, 8)",
])  # fmt: skip
def test_sizes_that_another_batch_may_not_have(text: str) -> None:
    assert found(text) is not None


@pytest.mark.parametrize("text", [
    "x.view(-1, 64)", "x.view(x.size(0), -1)", "x.view(batch, -1)", "x.view(len(x), 8)", "x.view(last, 2)",
    "x.reshape(self.rows, -1)", "x.view(*shape)", "x.view(torch.float32)", "x.view()", "x.view(1, 3, 4)",
    "x.view(y.shape[0], 3)", "view(64, 2)", "x.repeat(64, 2)", "net.weight.view(64, -1)", "x.view(batch * 2, 3)",
])  # fmt: skip
def test_sizes_that_are_asked_for_or_of_no_batch(text: str) -> None:
    assert found(text) is None


def found(text: str) -> ast.expr | None:
    """The size in the first call of ``text``."""
    tree = ast.parse(SIZES + text)
    call = tree.body[-1].value  # type: ignore[attr-defined]
    return fixed(call, sized(tree))
