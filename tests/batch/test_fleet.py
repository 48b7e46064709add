"""What a campaign comes to: every number from the ledger, and pages that hold whatever repositories are called."""

from __future__ import annotations

import csv
import html.parser
import json
from pathlib import Path
from typing import Any

import pytest

from codemods.batch.campaign import Campaign, read
from codemods.batch.errors import CampaignError
from codemods.batch.fleet import data, write_reports
from codemods.batch.fleet.html import page
from codemods.batch.fleet.markdown import text
from codemods.batch.fleet.numbers import size, span
from codemods.batch.ledger import Ledger
from codemods.batch.places import slug_of
from tests.batch.tools import campaign_file

EVIL = "<script>alert(1)</script>|x\x1b[31m"


def finding(rule: str, fate: str = "fixed", path: str = "train.py") -> dict[str, Any]:
    row = {"rule": rule, "path": path, "line": 3, "promise": "exact", "fate": fate}
    return {**row, "obstacle": "", "message": EVIL}


def run(version: str, nodes: int | None, error: str = "", outcome: str = "ok", step: float = 1e4) -> dict[str, Any]:
    numbers = {"steps": 8, "backwards": 8, "nodes": nodes, "nodes_last": nodes, "nodes_per_step": 1.0, "leak": None}
    more = {"bytes": 1 << 20, "bytes_per_step": step, "resident": 1 << 28, "seconds_per_step": 0.001, "wall": 3.0}
    return {"command": "python train.py", "version": version, "outcome": outcome, "error": error, **numbers, **more}


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """A campaign of which only the ledger exists: something of everything."""
    made = read(campaign_file(tmp_path))
    made.work.mkdir()
    with Ledger.open(made.work) as ledger:
        names = ["saved", "repaired", "left", "clean", "refused", "failed", "waiting", EVIL]
        ledger.register(((f"{n}", name, f"https://host/{name}", "") for n, name in enumerate(names)), slug_of)
        rewritten = {"head": "a", "files": 2, "lines": 50, "changed": 1, "commits": 1, "seconds": 1.0}
        kept = {"verification": "kept", "why": "every promise held"}
        verdict = {"path": "train.py", "line": 3, "promise": "exact", "why": "the same"}
        ledger.change(
            1, "verified", stage="verify",
            facts={
                **rewritten, **kept, "findings": [finding("a-rule"), finding("b-rule", "left")],
                "verdicts": [{"rule": "a-rule", "verdict": "kept", **verdict}],
                "runs": [run("original", 480, step=3e4), run("rewritten", 8, step=0.0)],
            },
        )  # fmt: skip
        ledger.change(
            2, "verified", stage="verify",
            facts={
                **rewritten, **kept, "findings": [finding("a-rule")],
                "verdicts": [{"rule": "a-rule", "verdict": "kept", **verdict}],
                "runs": [run("original", None, "RuntimeError", "raised"), run("rewritten", 8)],
            },
        )  # fmt: skip
        why = {"verification": "not judged", "why": "the original stops: No such file '/data/1'"}
        ledger.change(3, "rewritten", stage="verify", facts={**rewritten, **why, "findings": [finding("a-rule")]})
        ledger.change(4, "rewritten", stage="rewrite", facts={**rewritten, "changed": 0, "findings": []})
        ledger.change(5, "refused", stage="clone", reason="30000 files; the limit of this campaign is 20000")
        ledger.change(6, "failed", stage="clone", reason=f"git clone: {EVIL}")
        ledger.change(8, "rewritten", stage="rewrite", facts={**rewritten, "findings": [finding("b-rule", path=EVIL)]})
    return made


def test_numbers(campaign: Campaign) -> None:
    fleet = data.read(campaign)
    assert fleet.states == {"planned": 1, "rewritten": 3, "verified": 2, "failed": 1, "refused": 1}
    assert (fleet.findings, fleet.fixed, fleet.changed, fleet.verified) == (5, 4, 4, 2)
    assert (fleet.files, fleet.lines) == (10, 250)
    rules = {row["rule"]: (row["findings"], row["fixed"], row["kept"], row["repositories"]) for row in fleet.rules}
    assert rules == {"a-rule": (3, 3, 2, 3), "b-rule": (2, 1, 0, 2)}
    assert {saving.slug: saving.factor for saving in fleet.savings} == {"saved": 60.0, "repaired": 1.0}
    assert [saving.slug for saving in fleet.repaired] == ["repaired"]
    assert fleet.median_factor == 60.0
    assert ("refused", "clone", "N files; the limit of this campaign is N", 1) in fleet.reasons
    assert any(reason[:2] == ("not verified", "verify") for reason in fleet.reasons)


class Elements(html.parser.HTMLParser):
    """Every element that was opened."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_the_page_stands_alone_and_executes_nothing(campaign: Campaign, tmp_path: Path) -> None:
    shown = page(data.read(campaign), tmp_path)
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
    assert page(data.read(campaign), tmp_path) == shown


def test_the_text_is_a_text(campaign: Campaign) -> None:
    shown = text(data.read(campaign))
    assert "\x1b" not in shown
    assert "<script>" not in shown
    assert "| a-rule | 3 | 3 | 3 | 2 | 0 | 0 | 0 |" in shown
    assert "| saved | `python train.py` | 480 → 8 | 29.3 KiB → 0 B |" in shown
    for line in shown.splitlines():
        if line.startswith("| ") and "---" not in line:
            assert line.endswith(" |")


def test_tables(campaign: Campaign, tmp_path: Path) -> None:
    import pyarrow.parquet

    folder = tmp_path / "out"
    names = [path.name for path in write_reports(campaign, folder)]
    assert names[:2] == ["report.html", "report.md"]
    assert len(names) == 12
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
    with pytest.raises(CampaignError, match=r"pip install 'torch-codemod\[parquet\]'"):
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
    ("count", "shown"), [(None, "–"), (0, "0 B"), (1536, "1.5 KiB"), (-2048, "−2.0 KiB"), (5 << 30, "5.0 GiB")]
)
def test_sizes(count: float | None, shown: str) -> None:
    assert size(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(None, "–"), (0.00082, "820 µs"), (0.0012, "1.2 ms"), (3.4, "3.4 s"), (600, "10 min")]
)
def test_times(seconds: float | None, shown: str) -> None:
    assert span(seconds) == shown
