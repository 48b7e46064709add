"""What a stage found out of a repository, as columns and rows of the ledger."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from typing import Any

_TAKEN = ("base", "base_branch", "head", "files", "lines", "tree_files", "tree_bytes", "changed", "commits")


def columns_of(stage: str, facts: Mapping[str, Any], now: float) -> dict[str, Any]:
    """The columns of the repository that a stage found out; ``now`` in seconds since the epoch."""
    columns = {name: facts[name] for name in (*_TAKEN, "verification", "why", "fingerprint") if name in facts}
    if "entries" in facts:
        columns["entries"] = json.dumps(facts["entries"])
    if stage and "seconds" in facts:
        columns[f"{stage}_seconds"] = facts["seconds"]
    if stage == "rewrite" and facts:
        columns |= {"tool": facts.get("tool", ""), "tree": facts.get("tree", ""), "before": ""}
    if stage == "clone" and facts:
        columns |= {"cloned_at": now, "upstream": facts["base"]}
    return columns


def update(db: sqlite3.Connection, number: int, columns: Mapping[str, Any]) -> None:
    """Write ``columns`` of a repository."""
    assignments = ", ".join(f"{name}=?" for name in columns)
    db.execute(f"UPDATE repositories SET {assignments} WHERE id=?", (*columns.values(), number))


def insert_event(
    db: sqlite3.Connection, number: int, before: str, after: str, stage: str = "", reason: str = ""
) -> None:
    """Write down that a repository, or its request, went from one state to another just now."""
    columns = "at, repository, before, after, stage, reason"
    values = (time.time(), number, before, after, stage, reason)
    db.execute(f"INSERT INTO events ({columns}) VALUES (?, ?, ?, ?, ?, ?)", values)


def insert_facts(db: sqlite3.Connection, number: int, stage: str, facts: Mapping[str, Any]) -> None:
    """Write the rows of a stage, over those of an earlier attempt."""
    for table in ("findings", "verdicts", "runs"):
        if table not in facts:
            continue
        db.execute(f"DELETE FROM {table} WHERE repository=?", (number,))
        for row in facts[table]:
            names = ", ".join(row)
            marks = ", ".join("?" * (len(row) + 1))
            db.execute(f"INSERT INTO {table} (repository, {names}) VALUES ({marks})", (number, *row.values()))
    if stage in ("rewrite", "verify"):
        db.execute("DELETE FROM problems WHERE repository=?", (number,))
    problems = [("unread", path, line, reason) for path, line, reason in facts.get("skipped", ())]
    problems += [
        ("failure of ours", path, line, f"{rule}: {why}") for rule, path, line, why in facts.get("failures", ())
    ]
    problems += [
        ("dropped", path, line, f"{rule}: {verdict}: {why}")
        for rule, path, line, verdict, why in facts.get("dropped", ())
    ]
    problems += [("note", "", 0, text) for text in facts.get("notes", ())]
    db.executemany("INSERT INTO problems VALUES (?, ?, ?, ?, ?)", [(number, *problem) for problem in problems])
