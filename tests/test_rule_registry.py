"""Rules are found by their files alone, and told by their docstrings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import codemods.rules
from codemods.manual.explain import as_json, as_text, catalogue, explain, list_as_json, list_as_text
from codemods.rules import UnknownRule, all_rules, require_known, rule, rule_names
from codemods.terms.findings import Promise

RULE = '''
from codemods.terms.findings import Promise
from codemods.rules.base import Rule


class LooseTotal(Rule):
    """A total that keeps every graph.

    Why it is bad: memory grows.
    """

    name = "loose-total"
    promise = Promise.EXACT
    summary = "a total of attached losses"
    opt_in = True


RULE = LooseTotal
'''


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is searched for rules too, with one in it."""
    (tmp_path / "loose_total.py").write_text(RULE)
    (tmp_path / "_helper.py").write_text("raise AssertionError('not a rule')\n")
    monkeypatch.setattr(codemods.rules, "__path__", [*codemods.rules.__path__, str(tmp_path)])
    rule.cache_clear()
    yield tmp_path
    sys.modules.pop("codemods.rules.loose_total", None)
    rule.cache_clear()


def test_a_new_file_is_a_new_rule(rules: Path) -> None:
    assert "loose-total" in rule_names()
    assert not {"base", "helper", "-helper"} & set(rule_names())
    assert rule("loose-total").promise is Promise.EXACT
    assert all_rules()["loose-total"] is rule("loose-total")


def test_names_are_known_without_importing_anything(rules: Path) -> None:
    (rules / "broken_rule.py").write_text("raise AssertionError('imported')\n")
    assert "broken-rule" in rule_names()
    require_known(["broken-rule"])


def test_unknown_names_come_with_the_nearest(rules: Path) -> None:
    with pytest.raises(UnknownRule, match="no rule is called 'lose-total'; did you mean loose-total"):
        rule("lose-total")
    with pytest.raises(UnknownRule, match=r"did you mean .*loose-total"):
        require_known(["total"])


def test_a_rule_must_be_called_as_its_module(rules: Path) -> None:
    (rules / "tight_total.py").write_text(RULE)
    with pytest.raises(TypeError, match="stands in the module of 'tight-total'"):
        rule("tight-total")


def test_every_rule_there_is_has_what_the_lists_show() -> None:
    for name, found in all_rules().items():
        assert found.name == name
        assert isinstance(found.promise, Promise)
        assert found.summary
        assert (type(found).__doc__ or "").strip()


def test_explanation_comes_from_docstring_and_shortest_fixture(rules: Path, tmp_path: Path) -> None:
    for case, text in (("long", "a = 1\n" * 9), ("short", "total += loss\n")):
        folder = tmp_path / "fixtures" / "loose-total" / case
        folder.mkdir(parents=True)
        (folder / "before.py").write_text(text)
        (folder / "after.py").write_text(text.replace("loss", "loss.item()"))
    told = explain("loose-total", fixtures=tmp_path / "fixtures")
    assert (told.before, told.after) == ("total += loss\n", "total += loss.item()\n")
    text = as_text(told)
    assert text.startswith("loose-total: a total of attached losses (only if selected by name)\n\nPromise: exact. ")
    assert "A total that keeps every graph.\n\nWhy it is bad: memory grows.\n" in text
    assert "    -total += loss\n    +total += loss.item()\n" in text
    assert json.loads(as_json(told))["before"] == "total += loss\n"


def test_explanation_without_fixtures_is_the_docstring(rules: Path, tmp_path: Path) -> None:
    text = as_text(explain("loose-total", fixtures=tmp_path / "nowhere"))
    assert "Why it is bad: memory grows.\n" in text
    assert "Example" not in text
    assert "Measured" not in text


def test_what_only_a_card_shows_is_told_with_where_it_was_measured() -> None:
    text = " ".join(as_text(explain("empty-cache")).split())
    assert "Measured (tests/benchmarks/emptied_cache.py, torch " in text


def test_catalogue_lists_every_rule(rules: Path) -> None:
    told = catalogue()
    assert [entry.name for entry in told] == list(rule_names())
    assert any(line.split()[:2] == ["loose-total", "exact"] for line in list_as_text(told).splitlines())
    listed = json.loads(list_as_json(told))["rules"]
    assert {
        "name": "loose-total",
        "promise": "exact",
        "summary": "a total of attached losses",
        "opt_in": True,
    } in listed
