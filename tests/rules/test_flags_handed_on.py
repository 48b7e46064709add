"""``retain_graph`` that does not stand at the backward as a literal: names, wrappers, dictionaries, bound methods."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Finding
from tests.rules.tools import LEARNING, added, found, mended

RULE = "surplus-retain-graph"

WRAPPERS = {
    "**kw": "def walk(loss, **kw):\n    loss.backward(**kw)",
    "by name": "def walk(loss, retain_graph=False):\n    loss.backward(retain_graph=retain_graph)",
    "by another name": "def walk(loss, keep=False):\n    loss.backward(retain_graph=keep)",
    "keyword only": "def walk(loss, *, keep=None):\n    torch.autograd.backward(loss, retain_graph=keep)",
    "a method": "class W:\n    def go(self, loss, **kw):\n        loss.backward(**kw)\nwalk = W().go",
    "through two": (
        "def inner(loss, **kw):\n    loss.backward(**kw)\n"
        "def walk(loss, keep=False):\n    inner(loss, retain_graph=keep)"
    ),
}


def flags(folder: Path, before: str, *lines: str) -> list[Finding]:
    body = "\n".join(f"    {line}" for line in lines)
    step = f"    loss = criterion(net(x), y)\n    opt.zero_grad()\n{body}\n    opt.step()\n"
    return found(folder, RULE, LEARNING, f"{before}\nfor x, y in batches():\n{step}")


def changed(folder: Path, findings: list[Finding]) -> list[str]:
    return [line.strip() for line in added((folder / "train.py").read_text(), mended(folder, findings))]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_the_call_that_says_so_is_mended(tmp_path: Path, wrapper: str) -> None:
    word = "retain_graph" if wrapper in ("**kw", "by name", "a method") else "keep"
    findings = flags(tmp_path, WRAPPERS[wrapper], f"walk(loss, {word}=True)")
    assert [f.promise.value for f in findings] == ["exact"]
    assert changed(tmp_path, findings) == ["walk(loss)"]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_call_whose_graph_is_walked_again_is_not(tmp_path: Path, wrapper: str) -> None:
    word = "retain_graph" if wrapper in ("**kw", "by name", "a method") else "keep"
    assert flags(tmp_path, WRAPPERS[wrapper], f"walk(loss, {word}=True)", "walk(loss)") == []


def test_of_two_calls_only_the_last_is_mended(tmp_path: Path) -> None:
    findings = flags(
        tmp_path, WRAPPERS["by name"], "walk(loss, retain_graph=True)", "walk(loss * 2, retain_graph=True)"
    )
    assert changed(tmp_path, findings) == ["walk(loss * 2)"]


@pytest.mark.parametrize(
    "wrapper",
    [
        "def walk(loss, keep=True):\n    loss.backward(retain_graph=keep)",
        "def walk(loss, keep):\n    loss.backward(retain_graph=keep)",
        "def walk(loss, keep=False):\n    loss.backward(retain_graph=keep)\n    print(keep)",
        "def walk(loss, keep=False):\n    if keep:\n        print(loss)\n    loss.backward(retain_graph=keep)",
    ],
)
def test_a_wrapper_that_needs_its_argument_is_advice(tmp_path: Path, wrapper: str) -> None:
    findings = flags(tmp_path, wrapper, "walk(loss, keep=True)")
    assert [f.promise.value for f in findings] == ["advice"]


@pytest.mark.parametrize(
    ("before", "call", "after"),
    [
        ("KEEP = True", "loss.backward(retain_graph=KEEP)", "loss.backward()"),
        ("class C:\n    keep = True", "loss.backward(retain_graph=C.keep)", "loss.backward()"),
        ("", "loss.backward(retain_graph=1)", "loss.backward()"),
        ("", "torch.Tensor.backward(loss, retain_graph=True)", "torch.Tensor.backward(loss)"),
    ],
)
def test_a_name_that_is_always_true(tmp_path: Path, before: str, call: str, after: str) -> None:
    findings = flags(tmp_path, before, call)
    assert [f.promise.value for f in findings] == ["exact"]
    text = mended(tmp_path, findings)
    assert f"    {call}\n" not in text
    assert f"    {after}\n    opt.step()" in text


@pytest.mark.parametrize(
    ("before", "call"),
    [
        ("kw = {'retain_graph': True}", "loss.backward(**kw)"),
        ("kw = dict(retain_graph=True)", "loss.backward(**kw)"),
        ("import functools", "functools.partial(loss.backward, retain_graph=True)()"),
        ("debug = False", "loss.backward(retain_graph=not debug)"),
        ("def walk(loss, keep=True):\n    loss.backward(retain_graph=keep)", "walk(loss)"),
    ],
)
def test_a_flag_from_elsewhere_is_advice(tmp_path: Path, before: str, call: str) -> None:
    assert [f.promise.value for f in flags(tmp_path, before, call)] == ["advice"]
    assert flags(tmp_path, before, call, "loss.backward()") == []


@pytest.mark.parametrize(
    ("before", "call"),
    [
        ("KEEP = False", "loss.backward(retain_graph=KEEP)"),
        ("KEEP = len(opt.param_groups) > 1", "loss.backward(retain_graph=KEEP)"),
        ("import functools", "functools.partial(torch.autograd.backward, loss, None)(False, True)"),
        ("def walk(loss, **kw):\n    loss.backward(**kw)", "walk(loss, retain_graph=False)"),
        ("def walk(loss, **kw):\n    loss.backward(**kw)", "walk(loss, retain_graph=True, create_graph=True)"),
        ("def walk(loss, keep=False):\n    loss.backward(retain_graph=keep)", "walk(loss)"),
    ],
)
def test_a_flag_that_is_off_or_cannot_be_seen(tmp_path: Path, before: str, call: str) -> None:
    assert flags(tmp_path, before, call) == []


def test_a_method_by_its_class_walks(tmp_path: Path) -> None:
    assert flags(tmp_path, "", "loss.backward(retain_graph=True)", "torch.Tensor.backward(loss)") == []
