"""What has to run before it is known that nobody needs a graph that is no longer kept."""

from __future__ import annotations

import pytest

from codemods.rewriting.constants import dropped_calls
from codemods.rewriting.walks import later_walks

REST = "    if late:\n        other.backward()\n        torch.autograd.grad(a, b)\n"


@pytest.mark.parametrize(
    ("old", "new", "asked"),
    [
        ("loss.backward(retain_graph=True)", "loss.backward()", True),
        ("loss.backward(retain_graph=late)", "loss.backward(retain_graph=later)", True),
        ("loss.backward(retain_graph=True)", "loss.backward(retain_graph=False)", True),
        ("grad(a, b, create_graph=True)", "grad(a, b)", True),
        ("grad(a, b, create_graph=True, retain_graph=True)", "grad(a, b, create_graph=True)", True),
        ("loss.backward(retain_graph=late)", "loss.backward(retain_graph=True)", False),
        ("loss.backward(retain_graph=False)", "loss.backward()", False),
        ("loss.backward()", "loss.sum().backward()", False),
        ("loss.backward()", "loss.backward(retain_graph=True)", False),
    ],
)
def test_other_walks_are_asked_for_where_less_is_kept(old: str, new: str, asked: bool) -> None:
    before, after = (f"for late in x:\n    {each}\n{REST}" for each in (old, new))
    found = [part.line for part in later_walks(before, after, "a.py", {2}, {2})]
    assert found == ([4, 5] if asked else [])


@pytest.mark.parametrize(
    ("old", "new", "gone"),
    [
        ("f(a)\n", "", "`f(a)`"),
        ("f(a)\n", "pass\n", "`f(a)`"),
        ("@f(a)\ndef g(): ...\n", "def g(): ...\n", "`f(a)`"),
        ("with f(a): b = 1\n", "b = 1\n", "`f(a)`"),
        ("for a in b:\n    f(a)\n", "", "`f(a)`"),
        ("f(a)\n", "g(a)\n", ""),
        ("a.zero_()\n", "a = a.new(0)\n", ""),
        ("a = a.detach()\nf(a)\n", "a = a.detach()\n", "`f(a)`"),
        ("f(a)\nb = 1\n", "b = 1\nf(a)\n", ""),
        ("b = f(a)\n", "", ""),
        ("b = 1\n", "", ""),
        ("'text'\n", "", ""),
    ],
)
def test_calls_that_are_dropped(old: str, new: str, gone: str) -> None:
    lines = [range(1, each.count("\n") + 1) for each in (old, new)]
    rest = "c = 3\n"
    assert dropped_calls(old + rest, new + rest, "a.py", *lines) == gone


def test_a_call_that_moves_is_not_dropped() -> None:
    assert dropped_calls("f(a)\nb = 1\nc = 2\n", "b = 1\nc = 2\nf(a)\n", "a.py", {1}, ()) == ""
