"""What inside a changed statement has to run before the change has run."""

from __future__ import annotations

import pytest

from codemods.rewriting.parts import changed_constants, missing, pieces


def told(old: str, new: str, *, whole: bool = True) -> list[tuple[str, str]]:
    """The parts of the one line ``new`` that have to be seen, where ``old`` stood there."""
    parts = missing(pieces(new, "a.py", {1}), pieces(old, "a.py", {1}), whole=whole)
    return [(part.kind, part.text) for part in parts]


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("x = a if c else b\n", "x = a if c else b * 2\n", [("ran", "b * 2")]),
        ("x = a if c else b\n", "x = b if c else a\n", [("ran", "b"), ("ran", "a")]),
        ("x = a if c else b\n", "x = a if d else b\n", [("both", "d")]),
        ("x = a and b\n", "x = a and f(b)\n", [("ran", "f(b)")]),
        ("x = a and b\n", "x = a or b\n", [("both", "a"), ("ran", "b")]),
        ("x = [e for e in y if e]\n", "x = [e for e in y if not e]\n", [("both", "e")]),
        ("x = [e for e in y]\n", "x = [f(e) for e in y]\n", [("ran", "f(e)")]),
        ("x = {k: v for k, v in y}\n", "x = {k: f(v) for k, v in y}\n", [("ran", "(k, f(v))")]),
        ("f = lambda: a\n", "f = lambda: b\n", [("ran", "b")]),
        ("if a: x = 1\n", "if a: x = f()\n", [("ran", "x = f()")]),
        ("if a: x = 1\n", "if b: x = 1\n", [("both", "b")]),
        ("a; b\n", "a; c\n", [("ran", "c")]),
        ("while a and b: pass\n", "while a and c: pass\n", [("both", "c"), ("ran", "c")]),
        ("for x in y: pass\n", "for x in y[1:]: pass\n", [("loop", "y[1:]")]),
        ("assert a, b\n", "assert a, c\n", [("ran", "c")]),
        ("x = a < b < c\n", "x = a < b < d\n", [("ran", "d")]),
        ("x = f(n >= 0)\n", "x = f(n < 50)\n", [("value", "n < 50")]),
        ("x = min(a, b)\n", "x = min(a, c)\n", [("value", "min(a, c)")]),
        ("x = y.clamp(0, b)\n", "x = y.clamp(0, c)\n", [("value", "y.clamp(0, c)")]),
        ("clip_grad_norm_(p, a)\n", "clip_grad_norm_(p, b)\n", [("value", "clip_grad_norm_(p, b)")]),
    ],
)
def test_what_may_stay_out_has_to_be_seen(old: str, new: str, parts: list[tuple[str, str]]) -> None:
    assert sorted(told(old, new)) == sorted(parts)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x = a if c else b\n", "x = (a if c else b).detach()\n"),
        ("x = f(a) and b\n", "y = f(a) and b\n"),
        ("x = f(a)\n", "x = f(a, b)\n"),
        ("while True: x = f()\n", "while 1: x = f()\n"),
        ("if a: x = 1\n", "if  a: x = 1  # why\n"),
        ("assert a\n", "assert b\n"),
    ],
)
def test_what_stays_as_it_was_need_not(old: str, new: str) -> None:
    assert told(old, new) == []


def test_our_own_rules_answer_for_their_conditions_and_for_plain_names() -> None:
    assert told("x = h\n", "x = h.detach() if h is not None else None\n", whole=False) == [("ran", "h.detach()")]


def test_clauses_and_second_lines() -> None:
    text = "match a:\n    case n if n > 5: x = 1\n    case _: x = 2\n"
    found = missing(pieces(text, "a.py", {2}), [], whole=True)
    assert {(part.kind, part.text) for part in found} == {
        ("ran", "n > 5"),
        ("both", "n > 5"),
        ("ran", "x = 1"),
    }


@pytest.mark.parametrize(
    ("old", "new", "constants"),
    [
        ("f(x, 5.0)\n", "f(x, 50.0)\n", "5.0 became 50.0"),
        ("x = y if t > 300 else z\n", "x = y if t > 350 else z\n", "300 became 350"),
        ("f(-10, 10)\n", "f(-1, 1)\n", "10 became 1"),
        ("f(1)\n", "f(1.0)\n", ""),
        ("f(2 * 30)\n", "f(60)\n", ""),
        ("f(1.0 + 0.0)\n", "f(0.0 + 1.0)\n", ""),
        ("f(True)\n", "f(False)\n", ""),
        ("f(x, how='mean')\n", "f(x, how='sum')\n", "'mean' became 'sum'"),
        ("f(x, how='mean')\n", "f(x, how=mean)\n", ""),
        ("f(x, op=Op.SUM)\n", "f(x, op=Op.MAX)\n", "'SUM' became 'MAX'"),
        ("f(x, op=Op.SUM)\n", "f(x, op=Other.SUM)\n", ""),
        ("x = y.T\n", "x = y.H\n", ""),
        ("f(x.mean())\n", "f(x.sum())\n", ""),
        ("f(x, 5)\n", "g(x, 6)\n", ""),
        ("f(x)\n", "f(x, 6)\n", ""),
    ],
)
def test_changes_of_constants_alone(old: str, new: str, constants: str) -> None:
    assert changed_constants(old, new, "a.py", {1}, {1}) == constants
