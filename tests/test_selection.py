"""What a rule finds does not depend on the rules that are selected beside it: what was not asked for proves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.analysis import programs as runs
from codemods.analysis import workers
from codemods.analysis.analyse import analyse
from codemods.rules import rule_names
from codemods.source.discovery import discover
from codemods.source.files import display_path, read_source
from codemods.source.options import Options
from codemods.terms.findings import Finding
from fixtures import cases
from tests.analysis.test_roots import EVALUATE, NET, TREES

ATTACKED = {
    # of the words in the caller, none is one of the rule
    "scores.py": """\
def scores(model, x):
    model.eval()
    return model(x).softmax(1)


def best(model, x):
    return scores(model, x).argmax(1).tolist()
""",
    "attack.py": """\
import torch
from scores import scores


def slope(model, x):
    return torch.autograd.grad(scores(model, x.requires_grad_(True)).sum(), x)[0]
""",
    "model.py": NET,
    "main.py": """\
import torch
from model import Net
from scores import best

print(best(Net(), torch.randn(3, 4)))
""",
}

MANY = {
    # the words of other rules make further functions worth a run, and each then has less to spend
    "evaluation.py": EVALUATE,
    "tables.py": "from torch.autograd import Variable\n\n\n"
    + "\n\n".join(f"def column_{i}(x):\n    return Variable(x).sum(dim={i})" for i in range(300)),
}

PROGRAMS = {**TREES, "a caller that another rule is about": ATTACKED, "many functions of other rules": MANY}


def found(root: Path, monkeypatch: pytest.MonkeyPatch, *select: str) -> list[Finding]:
    monkeypatch.chdir(root)
    targets = [read_source(path, display_path(path)) for path in discover(["."]).files]
    workers._memory.clear()
    return analyse(targets, options=Options(select=select), jobs=1).findings


def assert_the_same_alone(root: Path, monkeypatch: pytest.MonkeyPatch, rules: tuple[str, ...]) -> None:
    """Each of ``rules`` finds alone what it finds among all that run by default, but for what goes with a finding of
    another rule."""
    together = found(root, monkeypatch)
    for rule in rules:
        alone = [f for f in found(root, monkeypatch, rule) if f.rule == rule]
        among = [f for f in together if f.rule == rule]
        assert all(f in among for f in alone if not f.partners)
        assert all(f in alone for f in among if not f.partners)
        assert not {f.key for f in alone} - {f.key for f in among}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rule_finds_alone_what_it_finds_among_others(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "setup.cfg").write_text("")
    for path, text in PROGRAMS[name].items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(runs, "FUNCTIONS_BUDGET", 30_000)
    monkeypatch.setattr(runs, "LEAST_BUDGET", 10)
    rules = ("grad-in-evaluation", "attached-loss-history", "legacy-variable")
    assert_the_same_alone(tmp_path, monkeypatch, rules)


@pytest.mark.slow
@pytest.mark.parametrize("rule", sorted(set(rule_names()) - {"empty-cache"}))
def test_fixtures_show_the_same_alone(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, case in enumerate(case for case in cases() if case.rule == rule):
        root = tmp_path / str(number)
        for path, text in {"setup.cfg": b"", **case.before}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text)
        assert_the_same_alone(root, monkeypatch, tuple({rule, "grad-in-evaluation"}))
