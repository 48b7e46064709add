"""What the ledger is told of pull requests: where they stand, what was said of them, and what we did to them."""

from __future__ import annotations

import time

from codemods.batch.ledger.ledger import Ledger, Row
from codemods.batch.ledger.rows import insert_event, update
from codemods.batch.requests.standing import Answer, Comment, standing_of

#: What people say is kept so far; the rest stands at the forge.
_KEPT, _LONGEST = 50, 2000


def tell_standing(ledger: Ledger, row: Row, answer: Answer) -> None:
    """Write down where a request stands, in one transaction."""
    before, now = standing_of(row), answer.standing
    columns = {"request": now.json(), "followed_at": time.time(), "ended_at": answer.ended_at}
    if answer.opened_at is not None:
        columns["opened_at"] = answer.opened_at
    latest = sorted(answer.comments, key=lambda one: one.at or 0.0)[-_KEPT:]
    with ledger.transaction() as db:
        update(db, row["id"], columns)
        if now != before:
            insert_event(db, row["id"], before.text() if before is not None else "", now.text(), "follow")
        db.execute("DELETE FROM comments WHERE repository=?", (row["id"],))
        db.executemany(
            "INSERT INTO comments (repository, at, author, path, line, text) VALUES (?, ?, ?, ?, ?, ?)",
            [(row["id"], *one._replace(text=one.text[:_LONGEST])) for one in latest],
        )


def tell_deed(ledger: Ledger, row: Row, stage: str, what: str, reason: str = "") -> None:
    """Write down among the events what we did to a request: ``stage`` is close, merge or update."""
    standing = standing_of(row)
    with ledger.transaction() as db:
        insert_event(db, row["id"], standing.text() if standing is not None else "", what, stage, reason)


def published_since(ledger: Ledger, since: float) -> int:
    """How often something was published since a time, in seconds since 1970."""
    rows = ledger.query("SELECT count(*) AS n FROM events WHERE stage='publish' AND after='published' AND at>=?", since)
    return int(rows[0]["n"])


def said_of(ledger: Ledger, number: int) -> list[Comment]:
    """What people said of the request of a repository, when it was asked last; the oldest first."""
    rows = ledger.query("SELECT at, author, path, line, text FROM comments WHERE repository=? ORDER BY at", number)
    return [Comment(**row) for row in rows]
