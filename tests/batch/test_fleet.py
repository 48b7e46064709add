"""What a campaign comes to: every number from the ledger, and pages that hold whatever repositories are called."""

from __future__ import annotations

import csv
import dataclasses
import html.parser
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from codemods.batch.campaign.settings import Campaign, read
from codemods.batch.errors import CampaignError
from codemods.batch.fleet import burndown, data, write_reports
from codemods.batch.fleet.html import page
from codemods.batch.fleet.markdown import sentence, text
from codemods.batch.fleet.numbers import size, span
from codemods.batch.ledger.ledger import Ledger
from codemods.batch.places import slug_of
from tests.batch.tools import campaign_file

EVIL = "<script>alert(1)</script>|x\x1b[31m"


def finding(rule: str, fate: str = "fixed", path: str = "train.py", proof: str = "") -> dict[str, Any]:
    row = {"rule": rule, "path": path, "line": 3, "promise": "exact", "fate": fate, "proof": proof}
    return {**row, "obstacle": "", "message": EVIL}


def run(
    version: str, nodes: int | None, error: str = "", outcome: str = "ok", step: float = 1e4, seconds: float = 0.001
) -> dict[str, Any]:
    numbers = {"steps": 8, "backwards": 8, "nodes": nodes, "nodes_last": nodes, "nodes_per_step": 1.0, "leak": None}
    more = {"bytes": 1 << 20, "bytes_per_step": step, "resident": 1 << 28, "seconds_per_step": seconds, "wall": 3.0}
    return {"command": "python train.py", "version": version, "outcome": outcome, "error": error, **numbers, **more}


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """A campaign of which only the ledger exists: something of everything."""
    made = read(campaign_file(tmp_path))
    made.work.mkdir()
    with Ledger.open(made.work) as ledger:
        names = ["saved", "repaired", "left", "clean", "refused", "failed", "waiting", EVIL, "alone"]
        ledger.register(((f"{n}", name, f"https://host/{name}", "") for n, name in enumerate(names)), slug_of)
        rewritten = {"head": "a", "files": 2, "lines": 50, "changed": 1, "commits": 1, "seconds": 1.0}
        kept = {"verification": "kept", "why": "every promise held"}
        unproven = {**finding("a-rule", "left", "other.py"), "obstacle": "verify: not reached"}
        verdict = {"path": "train.py", "line": 3, "promise": "exact", "why": "the same"}
        ledger.change(
            1, "verified", stage="verify",
            facts={
                **rewritten, **kept, "findings": [finding("a-rule", proof="kept"), unproven, finding("b-rule", "left")],
                "verdicts": [{"rule": "a-rule", "verdict": "kept", **verdict}],
                "runs": [run("original", 480, step=3e4), run("rewritten", 8, step=0.0, seconds=0.0008)],
            },
        )  # fmt: skip
        ledger.change(
            2, "verified", stage="verify",
            facts={
                **rewritten, **kept, "findings": [finding("a-rule", proof="kept")],
                "verdicts": [{"rule": "a-rule", "verdict": "kept", **verdict}],
                "runs": [run("original", None, "RuntimeError", "raised"), run("rewritten", 8)],
            },
        )  # fmt: skip
        why = {"verification": "not judged", "why": "the original stops: No such file '/data/1'"}
        ledger.change(3, "rewritten", stage="verify", facts={**rewritten, **why, "findings": [finding("a-rule")]})
        ledger.change(4, "unchanged", stage="rewrite", facts={**rewritten, "changed": 0, "findings": []})
        ledger.change(5, "refused", stage="clone", reason="30000 files; the limit of this campaign is 20000")
        ledger.change(6, "failed", stage="clone", reason=f"git clone: {EVIL}")
        alone = {**rewritten, "findings": [], "entries": []}
        ledger.change(9, "rewritten", stage="rewrite", facts=alone)
        ledger.change(8, "rewritten", stage="rewrite", facts={**rewritten, "findings": [finding("b-rule", path=EVIL)]})
    return made


def test_numbers(campaign: Campaign) -> None:
    fleet = data.read(campaign)
    assert fleet.states == {"planned": 1, "unchanged": 1, "rewritten": 3, "verified": 2, "failed": 1, "refused": 1}
    assert (fleet.findings, fleet.fixed, fleet.changed, fleet.verified) == (6, 4, 5, 2)
    assert fleet.proven == 2
    assert sentence(fleet).endswith(
        "4 fixed on branches of 5 repositories, 2 of them kept by a run; all that is on the branch was kept in "
        "2 repositories. 1 script that stopped with an error now run."
    )
    assert (fleet.files, fleet.lines) == (12, 300)
    with Ledger.open(campaign.work) as ledger:
        ledger.change(1, "refused", stage="verify", reason="a promise was broken")
    assert " 1 of the fixed is in refused repositories, of which nothing is published. " in sentence(
        data.read(campaign)
    )
    assert {row["rule"]: row["unproven"] for row in fleet.rules} == {"a-rule": 1, "b-rule": 0}
    rules = {row["rule"]: (row["findings"], row["fixed"], row["kept"], row["repositories"]) for row in fleet.rules}
    assert rules == {"a-rule": (4, 3, 2, 3), "b-rule": (2, 1, 0, 2)}
    assert [(saving.slug, saving.factor) for saving in fleet.savings] == [("repaired", 1.0), ("saved", 60.0)]
    assert [saving.label for saving in fleet.savings] == ["repaired · train.py", "saved · train.py"]
    assert [saving.slug for saving in fleet.repaired] == ["repaired"]
    assert fleet.median_factor == 60.0
    assert fleet.median_pace == pytest.approx(0.9)
    assert ("refused", "clone", "N files; the limit of this campaign is N", 1) in fleet.reasons
    assert ("not verified", "verify", "the original stops: No such file …", 1) in fleet.reasons
    assert ("not verified", "verify", "no script to run was found", 1) in fleet.reasons


def saving(growth: tuple[float | None, float | None], command: str = "python -m a.b", slug: str = "x") -> data.Saving:
    return data.Saving(slug, command, (1, 1), growth, (1, 1), (None, 0.1), "", "ok")


@pytest.mark.parametrize(
    ("growth", "shown"),
    [
        ((30e3, 0.0), True),
        ((30e3, -100.0), True),
        ((30e3, 14e3), True),
        ((0.0, 30e3), True),  # what became worse is told too
        ((30e3, 16e3), False),  # chance
        ((3e3, 0.0), False),  # the allocator's own
        ((None, 30e3), False),  # the original stopped: there is nothing to compare
        ((30e3, None), False),
    ],
)
def test_which_growth_is_drawn(
    campaign: Campaign, tmp_path: Path, growth: tuple[float | None, float | None], shown: bool
) -> None:
    fleet = dataclasses.replace(data.read(campaign), savings=[saving(growth)])
    assert ("Memory that each step adds" in page(fleet, tmp_path)) is shown


def test_a_row_is_called_by_repository_and_script() -> None:
    none = (None, None)
    assert saving(none).label == "x"
    assert saving(none, "python code/train.py --a b.py", "owner+name").label == "name · train.py"
    assert saving(none, "python 'Early Stopping.ipynb'", "a-name-that-is-really-long").label.startswith(
        "a-name-that-is-real…"
    )
    assert saving(none).pace is None


class Elements(html.parser.HTMLParser):
    """Every element that was opened."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_page_stands_alone_and_executes_nothing(campaign: Campaign, tmp_path: Path) -> None:
    fleet = data.read(campaign)
    shown = page(fleet, tmp_path)
    parser = Elements()
    parser.feed(shown)
    tags = [tag for tag, _ in parser.seen]
    assert "script" not in tags
    assert not {"img", "link", "iframe", "object"} & set(tags)
    assert tags.count("svg") == 4
    for _, attributes in parser.seen:
        assert not any(name.startswith("on") for name in attributes)
        assert not str(attributes.get("src", "")) + str(attributes.get("href", "")).removeprefix("https://host") or (
            not str(attributes.get("href", "")).startswith("javascript")
        )
    assert "\x1b" not in shown
    assert "1 script repaired" in shown.replace("</b><span>", " ")
    assert "480 → 8" in shown
    assert page(fleet, tmp_path) == shown


def test_the_text_is_a_text(campaign: Campaign) -> None:
    shown = text(data.read(campaign))
    assert "\x1b" not in shown
    # In code it is none.
    assert "<script>" not in re.sub(r"`[^`]*`", "", shown)
    assert "| a-rule | 3 | 4 | 3 | 2 | 0 | 0 | 0 |" in shown
    assert "Time a step: −10 %" in shown
    assert "| saved | `python train.py` | 480 → 8 | 29.3 KiB → 0 B |" in shown
    for line in shown.splitlines():
        if line.startswith("| ") and "---" not in line:
            assert line.endswith(" |")


def test_tables(campaign: Campaign, tmp_path: Path) -> None:
    import pyarrow.parquet

    folder = tmp_path / "out"
    names = [path.name for path in write_reports(campaign, folder)]
    assert names[:2] == ["report.html", "report.md"]
    assert len(names) == 14
    with open(folder / "repositories.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["slug"]: row["fixed"] for row in rows}["saved"] == "1"
    table = pyarrow.parquet.read_table(folder / "runs.parquet").to_pylist()
    assert [(row["slug"], row["nodes_before"], row["nodes_after"]) for row in table] == [
        ("repaired", None, 8),
        ("saved", 480, 8),
    ]
    for name in ("repositories", "rules", "findings", "verdicts"):
        columns = pyarrow.parquet.read_schema(folder / f"{name}.parquet").names
        with open(folder / f"{name}.csv", encoding="utf-8") as file:
            assert columns == file.readline().strip().split(",")
    assert json.dumps(table)


def test_only_the_forms_that_were_asked_for(campaign: Campaign, tmp_path: Path) -> None:
    assert [path.name for path in write_reports(campaign, None, ["markdown"])] == ["report.md"]
    assert (campaign.work / "report" / "report.md").is_file()


def test_parquet_without_its_library(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codemods.batch.fleet.tables.has_parquet", lambda: False)
    with pytest.raises(CampaignError, match=r"pip install '\.\[parquet\]'"):
        write_reports(campaign, None, ["parquet"])
    assert not any(path.suffix == ".parquet" for path in write_reports(campaign, None))


def test_nothing_to_report(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="nothing was done yet"):
        write_reports(read(campaign_file(tmp_path)))


def test_a_campaign_that_has_only_begun(tmp_path: Path) -> None:
    made = read(campaign_file(tmp_path))
    made.work.mkdir()
    with Ledger.open(made.work) as ledger:
        ledger.register([("k", "one", "u", "")], slug_of)
    shown = page(data.read(made), tmp_path)
    assert "1 planned" in shown
    assert "<svg" not in shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(None, "–"), (0, "0 B"), (1536, "1.5 KiB"), (-2048, "−2.0 KiB"), (-0.4, "0 B"), (5 << 30, "5.0 GiB")],
)
def test_sizes(count: float | None, shown: str) -> None:
    assert size(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(None, "–"), (0.00082, "820 µs"), (0.0012, "1.2 ms"), (3.4, "3.4 s"), (600, "10 min")]
)
def test_times(seconds: float | None, shown: str) -> None:
    assert span(seconds) == shown


def requests_ledger(folder: Path, told: list[tuple[str, str, str, str]]) -> Campaign:
    """A campaign over repositories that change, with requests: name, state, day opened, day ended."""
    campaign = read(campaign_file(folder))
    campaign.work.mkdir()
    with Ledger.open(campaign.work) as ledger:
        ledger.register(((name, name, f"https://host/{name}", "") for name, *_ in told), slug_of)
        for number, (name, state, opened, ended) in enumerate(told, 1):
            ledger.note(number, changed=1, state="verified")
            if state:
                days = [
                    time.mktime(time.strptime(day, "%Y-%m-%d")) + 43_200 if day else None for day in (opened, ended)
                ]
                request = json.dumps({"state": state})
                ledger.change(number, "published", stage="publish", pull_request=f"https://host/{name}/pull/1")
                ledger.note(number, request=request, opened_at=days[0], ended_at=days[1], followed_at=0)
    return campaign


def test_what_is_left_of_the_requests_from_day_to_day(tmp_path: Path) -> None:
    campaign = requests_ledger(
        tmp_path,
        [
            ("a", "merged", "2026-10-01", "2026-10-03"),
            ("b", "closed", "2026-10-01", "2026-10-02"),
            ("c", "open", "2026-10-03", ""),
            ("d", "", "", ""),
        ],
    )
    fleet = data.read(campaign)
    assert fleet.days == [
        ("2026-10-01", 2, 0, 0, 4),
        ("2026-10-02", 2, 0, 1, 4),
        ("2026-10-03", 3, 1, 1, 4),
    ]
    assert [(day.open, day.left) for day in fleet.days] == [(2, 4), (1, 3), (1, 2)]
    told = text(fleet)
    assert "| day | opened | merged | closed | open | left |" in told
    assert "| 2026-10-03 | 3 | 1 | 1 | 1 | 2 |" in told
    made = page(fleet, tmp_path)
    assert "2026-10-02: 1 open, 2 not opened yet, 0 merged, 1 closed" in made
    assert "2 requests of 4 not settled on 2026-10-03: 1 merged, 1 closed." in made
    table = {path.name: path for path in write_reports(campaign, tmp_path / "out", ["csv"])}["requests.csv"]
    rows = list(csv.DictReader(table.open()))
    assert [(row["slug"], row["state"]) for row in rows] == [("a", "merged"), ("b", "closed"), ("c", "open")]


def test_no_requests_no_burn_down(tmp_path: Path) -> None:
    fleet = data.read(requests_ledger(tmp_path, [("a", "", "", "")]))
    assert fleet.days == []
    assert "day by day" not in text(fleet) + page(fleet, tmp_path)


def test_a_request_that_was_never_followed_is_open_since_it_was_published(tmp_path: Path) -> None:
    campaign = requests_ledger(tmp_path, [("a", "open", "", "")])
    with Ledger.open(campaign.work) as ledger:
        ledger.note(1, request="", followed_at=None)
    assert [(day.date, day.open) for day in data.read(campaign).days] == [(time.strftime("%Y-%m-%d"), 1)]


def test_of_many_days_some_are_drawn_and_the_last_is_one() -> None:
    told = [burndown.Day(str(number), number, 0, 0, 1000) for number in range(1000)]
    drawn = burndown.thinned(told)
    assert 80 <= len(drawn) <= 90
    assert drawn[-1] == told[-1]
    assert burndown.thinned(told[:3]) == told[:3]


def test_tables_beside_pages_are_those_alone(campaign: Campaign, tmp_path: Path) -> None:
    places = tmp_path / "alone", tmp_path / "beside"
    alone, beside = (write_reports(campaign, place, forms) for place, forms in zip(places, (["csv"], []), strict=True))
    assert {path.name for path in alone} < {path.name for path in beside}
    for path in alone:
        assert path.read_bytes() == (places[1] / path.name).read_bytes(), path.name
