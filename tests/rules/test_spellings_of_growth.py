"""Totals, running means and histories that grow in other ways than by ``+=`` and ``append``."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from codemods.terms.findings import Finding
from tests.rules.tools import LEARNING, found, mended

TOTAL, HISTORY = "attached-loss-total", "attached-loss-history"

TOTALS = {
    "operator.add": ("import operator\nsum_ = 0", "sum_ = operator.add(sum_, loss)", "sum_"),
    "operator.iadd": ("import operator\nsum_ = 0", "sum_ = operator.iadd(sum_, loss)", "sum_"),
    "torch.add": ("sum_ = torch.zeros(())", "sum_ = torch.add(sum_, loss)", "sum_"),
    "torch.add by alpha": ("sum_ = torch.zeros(())", "sum_ = torch.add(sum_, loss, alpha=0.5)", "sum_"),
    "method": ("sum_ = torch.zeros(())", "sum_ = sum_.add(loss)", "sum_"),
    "in place": ("sum_ = torch.zeros(())", "sum_.add_(loss)", "sum_"),
    "in place, of an element": ("sums = {'a': torch.zeros(())}", "sums['a'].add_(loss)", "sums['a']"),
    "sum of a display": ("sum_ = 0", "sum_ = sum([sum_, loss])", "sum_"),
    "walrus": ("sum_ = 0", "print(sum_ := sum_ + loss)", "sum_"),
    "lerp": ("sum_ = torch.zeros(())", "sum_ = torch.lerp(sum_, loss, 0.1)", "sum_"),
    "lerp, method": ("sum_ = torch.zeros(())", "sum_ = sum_.lerp(loss, 0.1)", "sum_"),
    "lerp in place": ("sum_ = torch.zeros(())", "sum_.lerp_(loss, 0.1)", "sum_"),
    "mean by methods": ("sum_ = torch.zeros(())", "sum_ = sum_.mul(0.9).add(loss, alpha=0.1)", "sum_"),
    "mean in place": ("sum_ = torch.zeros(())", "sum_.mul_(0.9).add_(loss, alpha=0.1)", "sum_"),
    "mean of a display": ("sum_ = 0", "sum_ = sum((0.9 * sum_, 0.1 * loss))", "sum_"),
    "mean by a count": ("sum_, n = 0, 0", "n += 1\nsum_ = (sum_ * (n - 1) + loss) / n", "sum_"),
    "lowest": ("sum_ = torch.tensor(9.0)", "sum_ = torch.min(sum_, loss)", "sum_"),
    "highest": ("sum_ = torch.zeros(())", "sum_ = torch.maximum(loss, sum_)", "sum_"),
    "lowest, method": ("sum_ = torch.tensor(9.0)", "sum_ = sum_.minimum(loss)", "sum_"),
    "lowest, or the first": (
        "sum_ = None",
        "sum_ = loss.detach() if sum_ is None else torch.min(sum_, loss)",
        "sum_",
    ),
    "setattr": ("class B: sum_ = 0\nb = B()", "setattr(b, 'sum_', b.sum_ + loss)", "b.sum_"),
    "setattr and getattr": ("class B: sum_ = 0\nb = B()", "setattr(b, 'sum_', getattr(b, 'sum_') + loss)", "b.sum_"),
    "a computed name": (
        "class B:\n    def __init__(self): self.sum_a = 0\nb = B()",
        "for k in 'a':\n    setattr(b, 'sum_' + k, getattr(b, 'sum_' + k) + loss)",
        "b.sum_a",
    ),
    "a name in vars": (
        "class B:\n    def __init__(self): self.sum_ = 0\nb = B()",
        "vars(b)['sum_'] = b.sum_ + loss",
        "b.sum_",
    ),
    "a display": ("sum_ = {'a': 0, 'n': 0}", "sum_ = {**sum_, 'a': sum_['a'] + loss, 'n': 1}", "sum_['a']"),
    "dict by names": ("sum_ = {'a': 0}", "sum_ = dict(sum_, a=sum_['a'] + loss)", "sum_['a']"),
    "dict by spread names": ("sum_ = {}", "sum_ = dict(sum_, **{'a': sum_.get('a', 0) + loss})", "sum_['a']"),
    "union": ("sum_ = {'a': 0}", "sum_ = sum_ | {'a': sum_['a'] + loss}", "sum_['a']"),
    "union in place": ("sum_ = {'a': 0}", "sum_ |= {'a': sum_['a'] + loss}", "sum_['a']"),
    "update": ("sum_ = {'a': 0}", "sum_.update({'a': sum_['a'] + loss})", "sum_['a']"),
    "update by names": ("sum_ = {'a': 0}", "sum_.update(n=1, a=0.9 * sum_['a'] + 0.1 * loss)", "sum_['a']"),
    "update by pairs": ("sum_ = {'a': 0}", "sum_.update([('a', sum_['a'] + loss)])", "sum_['a']"),
    "update by zip": ("sum_ = {'a': 0}", "sum_.update(zip(['a'], [sum_['a'] + loss]))", "sum_['a']"),
    "update of names": ("class B: sum_ = 0\nb = B()", "b.__dict__.update(sum_=b.sum_ + loss)", "b.sum_"),
    "update of vars": ("class B: sum_ = 0\nb = B()", "vars(b).update({'sum_': b.sum_ + loss})", "b.sum_"),
    "a list in turns": ("sum_ = [0, 0]", "sum_ = [v + loss for v in sum_]", "sum_[0]"),
    "a list in numbered turns": ("sum_ = [0]", "sum_ = [v + i * loss for i, v in enumerate(sum_)]", "sum_[0]"),
    "a dict in turns": ("sum_ = {'a': 0}", "sum_ = {k: v + loss for k, v in sum_.items()}", "sum_['a']"),
    "a dict by its names": ("sum_ = {'a': 0}", "sum_ = {k: sum_[k] + loss for k in sum_}", "sum_['a']"),
}
"""What stands before the loop, what grows in it, and what reads it: only ``sum_`` and ``b`` outlive a step."""

HISTORIES = {
    "slice and display": ("kept = []", "kept = kept[-9:] + [loss]", "kept"),
    "slice in a display": ("kept = []", "kept = [*kept[-9:], loss]", "kept"),
    "slice of a sum": ("kept = []", "kept = (kept + [loss])[-9:]", "kept"),
    "list of a sum": ("kept = []", "kept = list(kept + [loss])", "kept"),
    "tuple of a chain": ("import itertools\nkept = ()", "kept = tuple(itertools.chain(kept, [loss]))", "kept"),
    "sorted": ("kept = []", "kept = sorted(kept + [loss])", "kept"),
    "sorted behind": ("kept = []", "kept.append(loss)\nkept = sorted(kept, key=float)", "kept"),
    "copied first": ("kept = []", "kept = kept.copy() + [loss]", "kept"),
    "appended, then cut": ("kept = []", "kept.append(loss)\nkept = kept[-9:]", "kept"),
    "deque made anew": (
        "from collections import deque\nkept = deque()",
        "kept = deque([*kept, loss], 9)",
        "kept",
    ),
    "ior": ("kept = {}\nstep = 0", "step += 1\nkept |= {step: loss}", "list(kept.values())"),
    "dict of spread": ("kept = {}\nstep = 0", "step += 1\nkept = dict({**kept, step: loss})", "list(kept.values())"),
    "named tuples": (
        "from collections import namedtuple\nRow = namedtuple('Row', 'n loss')\nkept = []",
        "kept.append(Row(1, loss))",
        "[row.loss for row in kept]",
    ),
    "a class of named tuples": (
        "from typing import NamedTuple\nclass Row(NamedTuple):\n    n: int\n    loss: object\nkept = []",
        "kept.append(Row(n=1, loss=loss))",
        "[row.loss for row in kept]",
    ),
    "setattr": ("class B: kept = []\nb = B()", "setattr(b, 'kept', b.kept + [loss])", "b.kept"),
}


def program(before: str, grows: str, *, first: str = "", after: str = "") -> str:
    step = "loss = criterion(net(x), y)\nlearn(loss)\n"
    return f"{before}\nfor x, y in batches():\n{indent(first + step + grows, '    ')}\n{after}\n"


def findings(folder: Path, rule: str, text: str) -> list[Finding]:
    return found(folder, rule, LEARNING.replace("loss.backward()", "loss.backward(retain_graph=True)"), text)


@pytest.mark.parametrize("name", TOTALS)
def test_a_total_is_found_in_any_spelling(tmp_path: Path, name: str) -> None:
    before, grows, read = TOTALS[name]
    seen = findings(tmp_path, TOTAL, program(before, grows, after=f"print(float({read}))"))
    assert [f.promise.value for f in seen] == ["exact"]
    assert any(form in mended(tmp_path, seen) for form in ("loss.item()", "loss.detach()"))


@pytest.mark.parametrize("name", TOTALS)
def test_a_total_that_is_walked_is_none_in_any_spelling(tmp_path: Path, name: str) -> None:
    before, grows, read = TOTALS[name]
    assert findings(tmp_path, TOTAL, program(before, grows, after=f"learn({read})")) == []


@pytest.mark.parametrize("name", [name for name in TOTALS if "sum_" in TOTALS[name][0].split("\n")[-1].split(" ")[0]])
def test_a_total_that_begins_anew_in_each_step_is_none(tmp_path: Path, name: str) -> None:
    before, grows, read = TOTALS[name]
    text = program("", grows + f"\nprint(float({read}))", first=before + "\n")
    assert findings(tmp_path, TOTAL, text) == []


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_is_found_in_any_spelling(tmp_path: Path, name: str) -> None:
    before, grows, read = HISTORIES[name]
    seen = findings(tmp_path, HISTORY, program(before, grows, after=f"print([float(v) for v in {read}])"))
    assert [f.promise.value for f in seen] == ["exact"]


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_that_is_walked_is_none_in_any_spelling(tmp_path: Path, name: str) -> None:
    before, grows, read = HISTORIES[name]
    assert findings(tmp_path, HISTORY, program(before, grows, after=f"learn(torch.stack({read}).mean())")) == []


@pytest.mark.parametrize("name", [name for name in HISTORIES if "class" not in HISTORIES[name][0]])
def test_a_history_that_begins_anew_in_each_step_is_none(tmp_path: Path, name: str) -> None:
    before, grows, read = HISTORIES[name]
    text = program("", grows + f"\nprint([float(v) for v in {read}])", first=before + "\n")
    assert findings(tmp_path, HISTORY, text) == []


@pytest.mark.parametrize(
    "grows",
    [
        "kept = sorted([loss])",
        "kept = list([loss])",
        "kept = {**{}, 'last': loss}",
        "kept = [*others[-9:], loss]",
        "kept = others[-9:] + [loss.item()]",
        "sum_ = torch.add(x.sum(), loss)",
        "sum_ = torch.lerp(sum_.detach(), loss.detach(), 0.1)",
        "sum_.detach().add_(loss.detach())",
        "sum_ = sum([1, loss])",
        "sum_ = torch.min(loss, x.sum())",
        "sum_ = torch.max(net(x), 1)[0].sum()",
        "sum_ = torch.max(sum_.detach().view(1), 0)[0]",
        "print(sum_ := loss + 1)",
    ],
)
def test_what_does_not_grow_is_left_alone(tmp_path: Path, grows: str) -> None:
    text = program("kept, others, sum_ = [], [], torch.zeros(())", grows, after="print(kept, sum_)")
    for rule in (TOTAL, HISTORY):
        assert findings(tmp_path, rule, text) == []


@pytest.mark.parametrize(
    ("losses", "form"),
    [("[loss, loss]", "b.item()"), ("[0.5, loss]", "float(b)"), ("[loss, 0.5]", "float(b)"), ("[y, loss]", "")],
)
def test_each_turn_of_a_comprehension_counts(tmp_path: Path, losses: str, form: str) -> None:
    seen = findings(tmp_path, TOTAL, program("sums = [0, 0]", f"sums = [a + b for a, b in zip(sums, {losses})]"))
    assert not form or form in mended(tmp_path, seen)
    assert "b.item()" not in mended(tmp_path, seen) or form == "b.item()"


@pytest.mark.parametrize(
    "grows",
    [
        "sums.update({'b': sums['a'] + loss})",
        "sums = {**sums, 'b': sums['a'] + loss}",
        "sums = {**sums, 'a': sums['a'] + loss.item()}",
        "sums.update(a=sums['a'] + loss.detach())",
        "sums.update(a=loss)",
        "sums = {k: 0 + loss for k in sums}",
        "sums = {k: loss + v.mean() for k, v in zip(sums, x)}",
        "others = {k: v + loss for k, v in sums.items()}",
        "others = [v + loss for v in sums.values()]",
        "vars(b).update(last=b.sum_ + loss)",
    ],
)
def test_entries_that_do_not_grow_are_no_totals(tmp_path: Path, grows: str) -> None:
    before = "sums = {'a': 0}\nclass B: sum_ = 0\nb = B()"
    assert findings(tmp_path, TOTAL, program(before, grows, after="print(sums, vars(b))")) == []


def test_a_method_of_something_else_is_no_sum(tmp_path: Path) -> None:
    text = program("seen = set()", "seen.add(loss.item())\nlast = {'a': loss}", after="print(seen)")
    assert findings(tmp_path, TOTAL, text) == []


@pytest.mark.parametrize(
    ("other", "form"),
    [
        ("y", "b.detach()"),
        ("y[0]", "b.detach()"),
        ("y.sum(0)", "b.detach()"),
        ("loss * 2", "b.item()"),
        ("y.mean()", "b.item()"),
    ],
)
def test_what_has_several_elements_on_another_path_stays_a_tensor(tmp_path: Path, other: str, form: str) -> None:
    grows = f"b = loss\nif len(sys.argv) > 1:\n    b = {other}\nsum_ = sum_ + b"
    seen = findings(tmp_path, TOTAL, program("import sys\nsum_ = 0", grows, after="print(sum_)"))
    assert f"sum_ + {form}" in mended(tmp_path, seen)
