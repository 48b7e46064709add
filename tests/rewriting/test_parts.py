"""What inside a changed statement has to run before the change has run."""

from __future__ import annotations

import pytest

from codemods.rewriting.constants import (
    changed_constants,
    changed_operands,
    dropped_settings,
    fixed_values,
    unread_settings,
)
from codemods.rewriting.parts import missing, pieces


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
        ("if a > b: x\n", "if a >= b: x\n", [("both", "a >= b"), ("tie", "a >= b")]),
        ("if a <= b: x\n", "if a < b: x\n", [("both", "a < b"), ("tie", "a < b")]),
        ("if a <= b: x\n", "if a > b: x\n", [("both", "a > b")]),
        ("if a < b: x\n", "if a < f(b): x\n", [("both", "a < f(b)")]),
        ("if a: x\n", "if a < b: x\n", [("both", "a < b")]),
        ("x = a < b\n", "x = a == b\n", []),
        ("x = a < b\n", "x = a <= b\n", [("tie", "a <= b")]),
        ("x = a == b\n", "x = a is b\n", [("value", "a is b")]),
        ("x = a in b\n", "x = a not in b\n", [("value", "a not in b")]),
        ("x = torch.fmin(a, b)\n", "x = torch.fmin(a, c)\n", [("value", "torch.fmin(a, c)")]),
        ("x = a.mean()\n", "x = a.nanmean()\n", [("value", "a.nanmean()")]),
        ("x = min(a, b)\n", "x = min(a, c)\n", [("value", "min(a, c)")]),
        ("x = y.clamp(0, b)\n", "x = y.clamp(0, c)\n", [("value", "y.clamp(0, c)")]),
        ("clip_grad_norm_(p, a)\n", "clip_grad_norm_(p, b)\n", [("value", "clip_grad_norm_(p, b)")]),
        ("x = y\n", "x = abs(y)\n", [("value", "abs(y)")]),
        ("x = y\n", "x = y.squeeze()\n", [("value", "y.squeeze()")]),
        ("x = sorted(a)\n", "x = sorted(b)\n", [("value", "sorted(b)")]),
        ("x = y // 30\n", "x = y // (30 + y)\n", [("value", "y // (30 + y)")]),
        ("x = int(a * b)\n", "x = int(a * c)\n", [("value", "int(a * c)")]),
        ("x = y[:n]\n", "x = y[:m]\n", [("value", "m")]),
        ("x = c.get('k', a)\n", "x = c.get('k', b)\n", [("fallback", "c.get('k', b)")]),
        ("x = getattr(c, 'k', a)\n", "x = getattr(c, 'k', b)\n", [("fallback", "getattr(c, 'k', b)")]),
        ("x = next(c)\n", "x = next(c, a)\n", [("fallback", "next(c, a)")]),
        ("with a: x\n", "with suppress(E): x\n", [("error", "suppress")]),
        ("s.enter(a)\n", "s.enter(contextlib.suppress(E))\n", [("error", "suppress")]),
        ("f()\n", "dist.barrier()\n", [("order", "dist.barrier()")]),
        ("a.synchronize()\n", "b.synchronize()\n", [("order", "b.synchronize()")]),
        ("x = y.to(d)\n", "x = y.to(e)\n", [("device", "y.to(e)")]),
        ("x = f(device=None)\n", "x = f(device=0)\n", [("device", "f(device=0)")]),
        ("x = L(d)\n", "x = L(d, pin_memory=False, device=None)\n", []),
        ("x = L(d, pin_memory=True)\n", "x = L(d, pin_memory=False)\n", []),
        ("x = L(d, pin_memory=False)\n", "x = L(d, pin_memory=True)\n", [("device", "L(d, pin_memory=True)")]),
        ("x = y.cuda()\n", "x = y.cpu()\n", [("device", "y.cpu()")]),
        ("x = torch.zeros(3, device=d)\n", "x = torch.zeros(3, device=e)\n", [("device", "torch.zeros(3, device=e)")]),
        ("def f(a, b=c): pass\n", "def f(a, b=d): pass\n", [("default b", "d")]),
        ("def f(*, b=c): x\n", "def f(*, b=d): x\n", [("default b", "d")]),
        ("g = lambda a=b: a\n", "g = lambda a=c: a\n", [("default a", "c")]),
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
        ("x = f(y // 2)\n", "x = f(y // 2).item()\n"),
        ("x = 'at %d' % a\n", "x = 'of %d' % b\n"),
        ("x = f'{a}' % b\n", "x = f'{b}' % a\n"),
        ("x = y[i]\n", "x = y[j:]\n"),
        ("x = y.to(d) + a\n", "x = z.to(d) + b\n"),
        ("x = y.to(torch.float32)\n", "x = y.to(torch.float64)\n"),
        ("x = c.get('a', b)\n", "x = d.get('e', b)\n"),
        ("x = c.get('a')\n", "x = d.get('b')\n"),
        ("x = max(y)\n", "x = max(z)\n"),
        ("dist.barrier()\n", "dist.barrier(); pass\n"),
        ("with a: x = 1\n", "with torch.no_grad(): x = 1\n"),
        ("def f(a=b): x = 1\n", "def f(c, a=b): x = 1\n"),
    ],
)
def test_what_stays_as_it_was_need_not(old: str, new: str) -> None:
    assert told(old, new) == []


def test_functions_and_contexts_of_the_file_that_end_errors() -> None:
    text = (
        "class Quiet:\n    def __exit__(self, *error): return True\n"
        "class Loud:\n    def __exit__(self, *error): return None\n"
        "@contextmanager\ndef hush():\n    try: yield\n    except ValueError: pass\n"
        "with Quiet(), Loud():\n    x = 1\n"
        "with hush():\n    x = 2\n"
        "@hush\ndef f():\n    x = 3\n"
    )
    found = missing(pieces(text, "a.py", set(range(9, 16))), [], whole=True)
    assert [(part.line, part.kind, part.text) for part in found] == [
        (9, "error", "Quiet"),
        (11, "error", "hush"),
        (13, "error", "hush"),
    ]


def test_what_a_condition_is_computed_of_its_outcomes_show() -> None:
    assert told("if i % n: x = 1\n", "if i % n == n - 1: x = 1\n") == [("both", "i % n == n - 1")]


def test_our_own_rules_answer_for_their_conditions_and_for_plain_names() -> None:
    assert told("x = h\n", "x = h.detach() if h is not None else None\n", whole=False) == [("ran", "h.detach()")]


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("except A", "except B", [("others", "B")]),
        ("except A", "except (A, B)", [("others", "(A, B)")]),
        ("except (A, B)", "except A", [("others", "A")]),
        ("except A", "except", [("others", "BaseException")]),
        ("except", "except A", [("others", "A")]),
        ("except A", "except A as e", []),
        ("except", "except BaseException", []),
    ],
)
def test_what_a_handler_would_catch_of_other_errors(old: str, new: str, parts: list[tuple[str, str]]) -> None:
    before, after = (pieces(f"try: a\n{each}: b\n", "a.py", {2}) for each in (old, new))
    assert [(part.kind, part.text) for part in missing(after, before, whole=True)] == parts
    assert missing(after, before, whole=False) == []


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
        ("f(-10, 10)\n", "f(-1, 1)\n", "-10 became -1, 10 became 1"),
        ("a = {'b': -1}\n", "a = {'b': 0}\n", "-1 became 0"),
        ("f(-x)\n", "f(0)\n", ""),
        ("f(1)\n", "f(1.0)\n", ""),
        ("f(2 * 30)\n", "f(60)\n", ""),
        ("f(1.0 + 0.0)\n", "f(0.0 + 1.0)\n", ""),
        ("f(True)\n", "f(False)\n", "True became False"),
        ("f(x, last=True)\n", "f(x, last=False)\n", "True became False"),
        ("f(1)\n", "f(True)\n", ""),
        ("f(x, how='mean')\n", "f(x, how='sum')\n", "'mean' became 'sum'"),
        ("f(x, how='mean')\n", "f(x, how=mean)\n", ""),
        ("f(x, op=Op.SUM)\n", "f(x, op=Op.MAX)\n", "'SUM' became 'MAX'"),
        ("f(x, op=Op.SUM)\n", "f(x, op=Other.SUM)\n", ""),
        ("x = y.T\n", "x = y.H\n", ""),
        ("f(x.mean())\n", "f(x.sum())\n", ""),
        ("f(x, 5)\n", "g(x, 6)\n", ""),
        ("f(x)\n", "f(x, 6)\n", ""),
        ("f(x, n=6)\n", "f(x)\n", "`n=6` is gone"),
        ("f(x)\n", "f(x, n=-6)\n", "`n=-6` is new"),
        ("f(g(x, n=6))\n", "f(g(x), how='a')\n", "`how='a'` is new, `n=6` is gone"),
        ("f(x, n=6, m=1)\n", "f(x, m=2)\n", "`n=6` is gone, 1 became 2"),
        ("f(x, last=True)\n", "f(x)\n", "`last=True` is gone"),
        ("f(x)\n", "f(x, last=False)\n", ""),
        ("f(x, strict=False)\n", "f(x)\n", "`strict=False` is gone"),
        ("f(x, retain_graph=True)\n", "f(x)\n", ""),
        ("f(x, retain_graph=True)\n", "f(x, retain_graph=False)\n", ""),
        ("f(x)\n", "f(x, set_to_none=True)\n", ""),
        ("f(x)\n", "f(x, op=Op.MAX)\n", "`op=Op.MAX` is new"),
        ("f(x, n=6)\n", "g(x)\n", ""),
        ("f(x, n=m)\n", "f(x)\n", ""),
    ],
)
def test_changes_of_constants_alone(old: str, new: str, constants: str) -> None:
    assert changed_constants(old, new, "a.py", {1}, {1}) == constants


@pytest.mark.parametrize(
    ("gone", "instead", "told"),
    [
        ("a.bad = 0", "", "`a.bad = 0` is gone"),
        ("a = 'text'", "", "`a = 'text'` is gone"),
        ("a, b.c = x, 0", "a = x\n", "`b.c = 0` is gone"),
        ("a = b = 1.0", "a = x\n", "`b = 1.0` is gone"),
        ("a, b = x, 0", "b, a = 0, x\n", ""),
        ("a, b = x, 0", "a, b = f(x)\n", ""),
        ("a = 0", "a += x\n", ""),
        ("a = None", "", ""),
        ("a = b", "", ""),
        ("f(0)", "", ""),
    ],
)
def test_constants_that_are_set_no_more(gone: str, instead: str, told: str) -> None:
    after = {1} if instead else set()
    assert dropped_settings(f"{gone}\nd = 1\n", f"{instead}d = 1\n", "a.py", {1}, after) == told


def test_a_constant_that_is_set_elsewhere_is_not_gone() -> None:
    assert dropped_settings("a = 0\nf()\ng()\n", "f()\na = 0\ng()\n", "a.py", {1}, ()) == ""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("if a < b: f()", "if first or a < b: f()", "`first` is new"),
        ("if a < b and ready: f()", "if a < b: f()", "`ready` is gone"),
        ("x = a or b", "x = a or c or b", "`c` is new"),
        ("while a and b: f()", "while a and (b or c): f()", "`b or c` is new, `c` is new"),
        ("if a or b: f()", "if b or a: f()", ""),
        ("if a or b < 1: f()", "if a or b <= 1: f()", ""),
        ("if not a and not b: f()", "if not (a or b): f()", ""),
        ("if a < b: f()", "if a <= b: f()", ""),
        ("x = f(a)", "x = f(b)", ""),
    ],
)
def test_operands_that_come_or_go(old: str, new: str, told: str) -> None:
    assert changed_operands(old + "\n", new + "\n", "a.py", {1}, {1}) == told


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("f(enabled=self.half)\n", "f(enabled=False)\n", "`self.half` became `False`"),
        ("f(enabled=False)\n", "f(enabled=self.half)\n", "`False` became `self.half`"),
        ("x = y / len(z)\n", "x = y / 8\n", "`len(z)` became `8`"),
        ("for x in range(n): g()\n", "for x in range(4): g()\n", "`n` became `4`"),
        ("n = 4; n = f()\nfor x in range(n): g()\n", "n = 4; n = f()\nfor x in range(4): g()\n", "`n` became `4`"),
        ("x = a - 1\n", "x = 1 - a\n", "`a` became `1`, `1` became `a`"),
        ("f(a, 1)\n", "f(1, a)\n", "`a` became `1`, `1` became `a`"),
    ],
)
def test_a_value_that_becomes_a_constant_is_the_same_by_chance(old: str, new: str, told: str) -> None:
    lines = set(range(1, old.count("\n") + 1))
    assert fixed_values(old, new, "a.py", lines, lines) == told


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n = 4\nf(n)\n", "n = 4\nf(4)\n"),
        (
            "class A:\n    rate = 0.1\n    def g(self): f(self.rate)\n",
            "class A:\n    rate = 0.1\n    def g(self): f(0.1)\n",
        ),
        ("f(1 / 2)\n", "f(0.5)\n"),
        ("import os\nf('a/b')\n", "import os\nf(os.path.join('a', 'b'))\n"),
        ("f(7)\n", "f(int('7'))\n"),
        ("x = a(3) * b(y)\n", "x = b(y) * a(3)\n"),
        ("x += f(y) * 2\n", "x += 2 * f(y)\n"),
        ("x = f(1 + y)\n", "x = f(y + 1)\n"),
        ("x = f(y)\n", "x = f(y).g(False)\n"),
        ("x.backward(retain_graph=a > b)\n", "x.backward(retain_graph=True)\n"),
        ("def f(n): g('b')\nx = f(1)\n", "def f(n, end='b'): g(end)\nx = f(1)\n"),
        ("x = (i + 1) % n == 0\n", "x = i % n == n - 1\n"),
        ("def f(n, end='b'): g(n)\nx = f(1)\nh('b')\n", "def f(n, end='b'): g(n)\nx = f(1)\nh(end)\n"),
        ("f(a)\n", "f(b)\n"),
        ("f(1)\n", "f(2)\n"),
        ("f(a, 1)\n", "f(a)\n"),
        ("x = f(a)\n", "x = f(a).item()\n"),
    ],
)
def test_what_no_value_becomes_constant_in(old: str, new: str) -> None:
    lines = set(range(1, old.count("\n") + 1))
    assert fixed_values(old, new, "a.py", lines, lines) == ""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('k = getattr(o, c["name"])\n', "k = o.SGD\n", "`c['name']`"),
        ('f(c["a"]["b"])\ng(c["a"])\n', 'f(b)\ng(c["a"])\n', "`c['a']['b']`"),
        ('f(c["a"])\n', 'x = c["a"]\nf(x)\n', ""),
        ('f(c["a"])\ng(c["a"])\n', 'f(b)\ng(c["a"])\n', ""),
        ("f(c[0])\n", "f(b)\n", ""),
        ('c["a"] = 1\n', "c = 1\n", ""),
    ],
)
def test_a_setting_that_nothing_reads_any_more(old: str, new: str, told: str) -> None:
    assert unread_settings(old, new, "a.py", {1}) == told
