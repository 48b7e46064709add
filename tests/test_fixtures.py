"""Every fixture: what is found in it, what becomes of it, and that a second time changes nothing."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from codemods.rules import rule
from codemods.rules._sites import SiteRule
from codemods.terms.findings import Promise
from fixtures import Case, cases
from tests.commands import codemod

ALL = list(cases())


@pytest.mark.parametrize("case", ALL, ids=str)
def test_case(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path, text in case.before.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text)

    report = json.loads(codemod("check", ".", "--format", "json", *case.options).stdout)
    found = [(f["rule"], f["path"], f["line"], f["promise"]) for f in report["findings"] if f["fixable"]]
    assert sorted(found) == case.findings
    advised = [(f["rule"], f["path"], f["line"]) for f in report["findings"] if f["promise"] == "advice"]
    assert set(case.advice) <= set(advised)
    assert sorted(f["cell"] for f in report["findings"] if f["fixable"] and "cell" in f) == case.cells

    codemod("apply", ".", *case.options)
    assert {path: (tmp_path / path).read_bytes() for path in case.before} == case.after

    again = codemod("apply", ".", "--dry-run", *case.options)
    assert again.stdout == ""


def test_each_rule_has_enough_cases() -> None:
    by_rule: dict[str, list[bool]] = {}
    for case in ALL:
        by_rule.setdefault(case.rule, []).append(case.keep)
    for name, keeps in by_rule.items():
        if rule(name).promise is Promise.ADVICE:
            # its pairs would be the same on both sides: what it finds and leaves stands in tests/rules
            assert any(case.advice for case in ALL if case.rule == name), name
            continue
        pairs, kept = keeps.count(False), keeps.count(True)
        if isinstance(rule(name), SiteRule):
            # programs may stand in tests/rules, where they take no time of their own
            told = importlib.import_module(f"tests.rules.test_{name.replace('-', '_')}")
            assert pairs, name
            pairs, kept = pairs + getattr(told, "WRITTEN", 0), kept + len(getattr(told, "LEFT", ()))
        assert pairs >= 6, name
        assert kept >= 8, name


@pytest.mark.parametrize("case", ALL, ids=str)
def test_case_says_why(case: Case) -> None:
    assert case.about["title"]
    assert case.about["why"]
    assert case.entry in case.before or case.entry.replace("before", "keep") in case.before
