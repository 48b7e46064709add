"""The JSON is JSON, carries everything, and has the shape that docs/verify-json.md promises."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codemods.checking.reported import Reported
from codemods.reports import Detail, Report
from codemods.reports.json import render as render_check
from tests.verify.reports import tools
from verify.measured.results import Verification
from verify.reports import render

DOCS = Path(__file__).parents[3] / "docs" / "verify-json.md"


def strict(text: str) -> Any:
    """What a reader that knows no NaN makes of ``text``."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("shape", tools.ALL)
def test_every_shape_is_json(shape: Callable[[], Verification]) -> None:
    text = render(shape(), "json", colour=True)
    assert strict(text)["version"] == 2
    assert text.endswith("}\n")
    assert text == render(shape(), "json")


def test_numbers_that_are_not_finite_are_strings() -> None:
    entry = strict(render(tools.not_a_number(), "json"))["entries"][0]
    losses = entry["original"]["figures"]["losses"][0]
    assert losses["values"][8:16] == [2.31, "nan", "nan", "nan", "nan", "nan", "nan", "inf"]
    assert losses["last"] == "inf"
    assert entry["rewritten"]["records"][0]["steps"][0]["rates"] == [{"lr": "-inf"}]
    assert entry["comparison"]["parameters"] == "nan"
    assert entry["comparison"]["losses"] == 0.0


def test_runs_come_through() -> None:
    made = tools.repaired()
    told = strict(render(made, "json"))
    assert (told["status"], told["judged"], told["root"]) == (0, True, "/home/ada/project")
    assert told["diff"] == made.diff
    assert told["summary"] == {"kept": 1, "not_reached": 1}
    original, rewritten = (told["entries"][0][name] for name in ("original", "rewritten"))
    assert original["outcome"] == "raised"
    assert original["error"]["kind"] == "freed"
    assert original["figures"]["raised"] == 1
    assert original["figures"]["leak"] is None
    assert original["records"][0]["traceback"] == tools.TRACEBACK
    assert original["records"][0]["error_site"] == {"path": "train.py", "line": 41, "function": "train"}
    assert [step["digest"] for step in rewritten["records"][0]["steps"]] == [f"{index:016x}" for index in range(20)]
    assert len(rewritten["records"][0]["backwards"]) == 20
    assert rewritten["figures"]["steps"] == {"Adam": 20}


def test_findings_have_the_shape_of_check() -> None:
    made = tools.repaired()
    told = strict(render(made, "json"))["rewrites"][0]["findings"]
    report = Report(files=1, findings=tuple(Reported(one, None) for one in made.rewrites[0].findings), skipped=())
    assert told == json.loads(render_check(report, Detail.NORMAL))["findings"]


def test_what_was_not_run_is_null() -> None:
    entry = strict(render(tools.nothing(), "json"))["entries"][0]
    assert entry["rewritten"] is None
    assert entry["comparison"] is None
    assert strict(render(tools.unjudged(), "json"))["entries"][0]["deterministic"] is None


def test_settings_of_any_kind_are_told() -> None:
    made = tools.verification(settings={"path": Path("/data"), "pair": (1, float("inf")), "deep": {"a": None}})
    assert strict(render(made, "json"))["settings"] == {"path": "/data", "pair": [1, "inf"], "deep": {"a": None}}


def test_names_that_are_no_unicode_survive() -> None:
    # As the command line writes it; a name of bytes comes as lone surrogates.
    text = render(tools.verification(root="/home/\udcff"), "json").encode("utf-8", "backslashreplace")
    assert strict(text.decode())["root"] == "/home/\udcff"


#: Objects whose keys are names of the user's and not fields of ours.
_OPEN = {
    "printed",
    "rates",
    "compared",
    "settings",
    "steps",
    "caught",
    "about",
    "ages",
    "standins",
    "capped",
    "summary",
}


def _fields(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, entry in value.items():
            if name not in _OPEN:
                yield key
            yield from _fields(entry, key)
    elif isinstance(value, list):
        # A list of steps, or of what was caught, holds objects of ours.
        for entry in value:
            yield from _fields(entry, name if name in ("rates", "standins", "capped") else "")


def test_every_field_is_documented() -> None:
    documented = set(re.findall(r"`(\w+)`", DOCS.read_text(encoding="utf-8")))
    finding = set(
        json.loads(render_check(Report(1, (Reported(tools.finding(), None),), ()), Detail.NORMAL))["findings"][0]
    ) | {"note"}
    for shape in tools.ALL:
        unknown = set(_fields(strict(render(shape(), "json")))) - documented - finding
        assert not unknown, shape.__name__
