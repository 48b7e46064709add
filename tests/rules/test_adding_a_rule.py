"""The page about adding a rule: its very texts are a rule, a fixture and a page of the manual."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import codemods.rules
import fixtures
from codemods.manual.explain import explain
from codemods.manual.pages import page
from codemods.rules import rule
from codemods.terms.findings import Promise
from tests.commands import codemod
from tests.rules.tools import found

NAME = "retain-grad-on-leaf"
PAGE = Path(__file__).parents[2] / "docs" / "adding-a-rule.md"
RULE, BEFORE, CASE = re.findall(r"```(?:python|toml)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
AFTER = "".join(line for number, line in enumerate(BEFORE.splitlines(keepends=True), 1) if number != 7)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the rule among the others, and its fixture."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "retain_grad_on_leaf.py").write_text(RULE)
    monkeypatch.setattr(codemods.rules, "__path__", [*codemods.rules.__path__, str(tmp_path / "rules")])
    case = tmp_path / "fixtures" / NAME / "saliency"
    case.mkdir(parents=True)
    for name, text in (("before.py", BEFORE), ("after.py", AFTER), ("case.toml", CASE)):
        (case / name).write_text(text)
    monkeypatch.setattr(fixtures, "HERE", tmp_path / "fixtures")
    rule.cache_clear()
    yield tmp_path
    sys.modules.pop("codemods.rules.retain_grad_on_leaf", None)
    rule.cache_clear()


def test_the_rule_is_under_80_lines() -> None:
    assert len(RULE.splitlines()) < 80


def test_the_fixture_is_found_and_mended_and_stays_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [case] = fixtures.cases(NAME)
    monkeypatch.chdir(folder)
    for path, text in case.before.items():
        Path(path).write_bytes(text)
    report = json.loads(codemod("check", *case.before, "--format", "json", *case.options).stdout)
    assert [(f["rule"], f["path"], f["line"], f["promise"]) for f in report["findings"]] == case.findings
    codemod("apply", *case.before, *case.options)
    assert {path: Path(path).read_bytes() for path in case.before} == case.after
    assert codemod("apply", *case.before, "--dry-run", *case.options).stdout == ""


def test_its_docstring_and_fixture_make_a_page(folder: Path) -> None:
    told = explain(NAME, fixtures=folder / "fixtures")
    text = page(told, (), ())
    assert text.startswith("<!-- Written by `python -m codemods.manual.pages docs/rules` from the rule and its fixt")
    for said in (
        f"# {NAME}",
        "## Why it hurts",
        "## What it leaves alone",
        "-image.retain_grad()",
        "Tensor.retain_grad.html",
    ):
        assert said in text


START = """
import torch

net = torch.nn.Linear(4, 1)
x = torch.rand(2, 4, requires_grad=True)
frozen = torch.rand(2, 4)
"""


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("x.retain_grad()\nnet(x).sum().backward()\n", 8),
        ("net.weight.retain_grad()\nnet(x).sum().backward()\n", 8),
        ("for _ in range(3):\n    x.retain_grad()\n    net(x).sum().backward()\n", 9),
        ("h = net(x)\nh.retain_grad()\nh.sum().backward()\n", None),
        ("frozen.retain_grad()\nnet(frozen).sum().backward()\n", None),
        ("h = x * 2\nfor _ in range(2):\n    h.retain_grad()\n    h.sum().backward()\n    h = x\n", None),
        ("x.retain_grad()\nnet(frozen).sum().backward()\n", None),
        ("x.register_hook(print)\nnet(x).sum().backward()\n", None),
    ],
)
def test_what_is_found_and_what_is_left(folder: Path, tmp_path: Path, program: str, line: int | None) -> None:
    found_here = [(f.span.line, f.promise) for f in found(tmp_path, NAME, START, program)]
    assert found_here == ([] if line is None else [(line, Promise.EXACT)])
