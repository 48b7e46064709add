"""The ledger: what stands in it after whatever happened."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from codemods.batch.errors import CampaignError, Exhausted
from codemods.batch.ledger.ledger import FILE, Ledger
from codemods.batch.ledger.lock import owned
from codemods.batch.ledger.schema import ADDED, VIEWS
from codemods.batch.places import Places, slug_of

FACTS = {
    "head": "abc", "files": 3, "changed": 1, "commits": 1, "seconds": 1.5, "entries": [["train.py", ".", "trains"]],
    "findings": [
        {"rule": "r", "path": "a.py", "line": 3, "promise": "exact", "fate": "fixed", "obstacle": "", "message": "m"}
    ],
    "skipped": [["b.py", 2, "broken"]],
}  # fmt: skip


def planned(tmp_path: Path, count: int = 1) -> Ledger:
    ledger = Ledger.open(tmp_path)
    ledger.register(((f"key{n}", f"name{n}", f"url{n}", "") for n in range(count)), slug_of)
    return ledger


def test_a_state_and_its_facts_come_together(tmp_path: Path) -> None:
    with planned(tmp_path) as ledger:
        ledger.change(1, "rewritten", stage="rewrite", facts=FACTS)
        row = ledger.repository(1)
        assert (row["state"], row["head"], row["rewrite_seconds"]) == ("rewritten", "abc", 1.5)
        assert [r["rule"] for r in ledger.query("SELECT * FROM findings")] == ["r"]
        assert ledger.query("SELECT before, after FROM events") == [{"before": "planned", "after": "rewritten"}]
        ledger.change(1, "rewritten", stage="rewrite", facts=FACTS)
        assert len(ledger.query("SELECT * FROM findings")) == len(ledger.query("SELECT * FROM problems")) == 1


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with planned(tmp_path) as ledger:
        broken = {**FACTS, "findings": [{**FACTS["findings"][0], "no_such_column": 1}]}  # type: ignore[index]
        with pytest.raises(CampaignError):
            ledger.change(1, "rewritten", stage="rewrite", facts=broken)
        assert ledger.repository(1)["state"] == "planned"
        assert not ledger.query("SELECT * FROM events")


def test_planned_again_it_is_as_new_but_for_its_history(tmp_path: Path) -> None:
    with planned(tmp_path) as ledger:
        new = ledger.repository(1)
        ledger.change(1, "rewritten", stage="rewrite", facts=FACTS)
        ledger.plan_again(1, "moved")
        row = ledger.repository(1)
        kept = ("changed_at", "rewrite_seconds", "files", "fingerprint")
        assert {k: v for k, v in row.items() if k not in kept} == {k: v for k, v in new.items() if k not in kept}
        assert len(ledger.query("SELECT * FROM events")) == 2


def test_the_list_follows_the_campaign(tmp_path: Path) -> None:
    with planned(tmp_path, 3) as ledger:
        ledger.register(
            [("key2", "name2", "url2", ""), ("key9", "name2", "url9", ""), ("key0", "n", "u", "no")], slug_of
        )
        rows = ledger.repositories()
        assert [(row["key"], row["state"]) for row in rows] == [
            ("key0", "skipped"),
            ("key2", "planned"),
            ("key9", "planned"),
        ]
        # A folder's name is given once, and to one only.
        assert rows[2]["slug"] == "name2-key9"
        ledger.register([("key1", "name1", "url1", ""), ("key0", "n", "u", "")], slug_of)
        assert [row["state"] for row in ledger.repositories()] == ["planned", "planned"]


def test_it_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    with planned(tmp_path) as ledger, ledger.transaction() as db:
        db.execute("UPDATE repositories SET state='cloned'")
        reader = Ledger.read(tmp_path)
        assert reader is not None
        with reader:
            assert reader.repository(1)["state"] == "planned"


def test_no_ledger_and_one_without_anything(tmp_path: Path) -> None:
    assert Ledger.read(tmp_path) is None
    (tmp_path / FILE).touch()
    assert Ledger.read(tmp_path) is None
    with Ledger.open(tmp_path) as ledger:
        assert ledger.repositories() == []


def test_a_ledger_that_is_none(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("hello, this is no database, and long enough to be read as one" * 20)
    with pytest.raises(CampaignError, match="cannot be used"):
        Ledger.open(tmp_path)
    with pytest.raises(CampaignError, match="cannot be used"):
        Ledger.read(tmp_path)


def test_a_ledger_of_another_version(tmp_path: Path) -> None:
    planned(tmp_path).__exit__()
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("PRAGMA user_version=99")
    with pytest.raises(CampaignError, match="has version 99; this codemod writes version 1"):
        Ledger.open(tmp_path)


def test_a_full_database(tmp_path: Path) -> None:
    with planned(tmp_path) as ledger:
        pages = ledger.query("PRAGMA page_count")[0]["page_count"]
        ledger.query(f"PRAGMA max_page_count={pages}")
        many = {**FACTS, "findings": FACTS["findings"] * 5000}  # type: ignore[operator]
        with pytest.raises(Exhausted, match="disk is full"):
            ledger.change(1, "rewritten", stage="rewrite", facts=many)
        assert ledger.repository(1)["state"] == "planned"
        ledger.query("PRAGMA max_page_count=1000000")
        ledger.change(1, "rewritten", stage="rewrite", facts=many)
        assert len(ledger.query("SELECT * FROM findings")) == 5000


def test_one_owner_at_a_time_and_it_is_named(tmp_path: Path) -> None:
    import os

    with owned(tmp_path / "work"):
        said: list[str] = []

        def other() -> None:
            try:
                with owned(tmp_path / "work"):
                    said.append("owned")
            except CampaignError as error:
                said.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert f"at work already: process {os.getpid()} on " in said[0]
    with owned(tmp_path / "work"):
        pass


def test_a_result_takes_its_place_whole(tmp_path: Path) -> None:
    places = Places(tmp_path)
    places.sweep()
    for text in ("one", "two"):
        attempt = places.scratch / text
        (attempt / "result").mkdir(parents=True)
        (attempt / "result" / "x").write_text(text)
        (attempt / "log.txt").write_text(text)
        assert places.keep_log("a", "clone", attempt) == "repositories/a/logs/clone.log"
        assert (places.take("a", "clone", attempt) / "x").read_text() == text
    places.forget("a")
    assert not places.of("a", "clone").exists()
    assert places.log("a", "clone").read_text() == "two"
    assert places.keep_log("a", "verify", places.scratch / "nothing") == ""


@pytest.mark.parametrize(
    ("name", "taken", "slug"),
    [
        ("a+b", set(), "a+b"),
        ("A+B", {"a+b"}, "A+B-012345"),
        ("con", set(), "con-012345"),
        ("a", {"a", "a-012345"}, "a-01234567"),
    ],
)
def test_names_of_folders(name: str, taken: set[str], slug: str) -> None:
    assert slug_of(name, "0123456789", taken.__contains__) == slug


def test_a_broken_page_is_a_sentence(tmp_path: Path) -> None:
    with planned(tmp_path) as ledger:
        ledger.change(1, "rewritten", stage="rewrite", facts={**FACTS, "findings": FACTS["findings"] * 500})  # type: ignore[operator]
        ledger.query("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray((tmp_path / FILE).read_bytes())
    page = int.from_bytes(data[16:18], "big")
    # The header and the list of tables are left alone.
    data[8 * page :] = b"\xff" * (len(data) - 8 * page)
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(CampaignError, match=r"ledger\.sqlite (cannot be read|could not be|cannot be used).*"):  # noqa: SIM117
        with Ledger.open(tmp_path) as ledger:
            ledger.query("SELECT * FROM findings")
    with pytest.raises(CampaignError, match=r"ledger\.sqlite cannot be (read|used)"):  # noqa: SIM117
        with Ledger.read(tmp_path) as ledger:  # type: ignore[union-attr]
            ledger.query("SELECT * FROM findings")


def test_a_ledger_of_an_earlier_release_is_brought_up_to_date(tmp_path: Path) -> None:
    with planned(tmp_path) as ledger:
        ledger.change(1, "rewritten", stage="rewrite", facts={**FACTS, "changed": 0})
    with sqlite3.connect(tmp_path / FILE) as connection:
        for name in VIEWS:
            connection.execute(f"DROP VIEW {name}")
        for table, name, _ in ADDED:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
        connection.execute("DELETE FROM campaign WHERE name = 'views'")
    ledger_read = Ledger.read(tmp_path)
    assert ledger_read is not None
    with ledger_read as ledger:
        assert [(row["state"], row["tool"]) for row in ledger.repositories()] == [("unchanged", "")]
        assert ledger.query("SELECT proven FROM by_rule")


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE repositories SET state = 'rewrxtten' WHERE id = 1", "there is no state 'rewrxtten'"),
        ("DELETE FROM campaign WHERE name = 'created'", "it does not tell when the campaign began"),
    ],
)
def test_what_sqlite_reads_and_nobody_wrote_is_a_sentence(tmp_path: Path, statement: str, told: str) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.register([("a", "a", "https://host/a", "")], slug_of)
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute(statement)
    for opened in (Ledger.read, Ledger.open):
        with pytest.raises(CampaignError, match=rf"ledger.sqlite cannot be read: {told}; put a copy of it back"):
            opened(tmp_path)
