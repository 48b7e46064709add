"""What became of every repository: SQLite, one writer, every change of state a transaction.

The shape is a promise, kept in docs/batch-schema.md. ``synchronous=FULL``: a state that was told survives a power cut;
at a few transactions a repository that costs nothing one would notice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from codemods.batch.carrying import carried
from codemods.batch.errors import CampaignError, Exhausted, is_full
from codemods.batch.ledger.rows import columns_of, insert_event, insert_facts, update
from codemods.batch.ledger.schema import ADDED, SCHEMA, TABLES, VERSION, VIEWS

FILE = "ledger.sqlite"
STATES = ("planned", "cloned", "unchanged", "rewritten", "verified", "published", "failed", "refused", "skipped")
#: What a ledger of an earlier release tells otherwise: the state of a repository with nothing to change, and which
#: findings of a branch a run has kept.
_REMADE = (
    "UPDATE repositories SET state = 'unchanged' WHERE state = 'rewritten' AND changed = 0",
    "UPDATE findings SET proof = 'kept' WHERE fate = 'fixed' AND proof = '' AND EXISTS (SELECT 1 FROM verdicts v "
    "WHERE v.repository = findings.repository AND v.rule = findings.rule AND v.path = findings.path "
    "AND v.line = findings.line AND v.cell IS findings.cell AND v.verdict = 'kept')",
)

Row = dict[str, Any]


class _Connection(sqlite3.Connection):
    """A connection that takes any text. git's names are bytes: one that is no UTF-8 has ``\\xff`` for a byte."""

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        return super().execute(statement, [_carried(value) for value in values])

    def executemany(self, statement: str, rows: Any) -> sqlite3.Cursor:
        return super().executemany(statement, ([_carried(value) for value in row] for row in rows))


def _carried(value: object) -> object:
    return carried(value) if isinstance(value, str) else value


class Ledger:
    """The ledger of a campaign, open; a context manager. Only who holds the campaign's lock may write."""

    def __init__(self, connection: sqlite3.Connection, file: Path) -> None:
        self._connection = connection
        self._file = file

    @classmethod
    def open(cls, work: Path) -> Ledger:
        """Open the ledger in ``work`` to write, making one where there is none.

        Raises :class:`CampaignError` for one that is broken or of another version.
        """
        with _told(work / FILE):
            connection = sqlite3.connect(work / FILE, timeout=30, isolation_level=None, factory=_Connection)
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            ledger = cls(connection, work / FILE)
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                with ledger.transaction():
                    for statement in SCHEMA.split(";\n"):
                        if statement.strip():
                            connection.execute(statement)
                    connection.execute(f"PRAGMA user_version={VERSION}")
                    connection.execute("INSERT INTO campaign VALUES ('created', ?)", (str(int(time.time())),))
            ledger._require_version(work)
            if ledger._outdated():
                ledger._bring_up_to_date()
            return ledger

    @classmethod
    def read(cls, work: Path) -> Ledger | None:
        """Open the ledger in ``work`` to read, while somebody else may write; None where there is none yet."""
        file = work / FILE
        if not file.is_file():
            return None
        with _told(file):
            address = f"{file.as_uri()}?mode=ro"
            connection = sqlite3.connect(address, uri=True, timeout=30, isolation_level=None, factory=_Connection)
            connection.row_factory = sqlite3.Row
            ledger = cls(connection, file)
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                # Killed before its first transaction: nothing was written.
                connection.close()
                return None
            ledger._require_version(work)
            if ledger._outdated():
                # Columns and views are added, nothing else: who has it open is not disturbed.
                connection.close()
                cls.open(work)._connection.close()
                return cls.read(work)
            return ledger

    @classmethod
    def begun(cls, work: Path, file: Path) -> Ledger:
        """As :meth:`read`; raises :class:`CampaignError` where nothing was done of the campaign in ``file`` yet."""
        ledger = cls.read(work)
        if ledger is None:
            raise CampaignError(f"{work}: nothing was done yet; codemod batch run {file.name}")
        return ledger

    def _outdated(self) -> bool:
        """Whether the ledger was begun by a release that had other columns or views."""
        made = self._connection.execute("SELECT value FROM campaign WHERE name = 'views'").fetchone()
        return made is None or made[0] != _views()

    def _bring_up_to_date(self) -> None:
        with self.transaction() as db:
            for table, name, declaration in ADDED:
                if name not in {row["name"] for row in db.execute(f"PRAGMA table_info({table})")}:
                    db.execute(f"ALTER TABLE {table} ADD COLUMN {name} {declaration}")
            for statement in TABLES:
                db.execute(statement)
            for name, select in VIEWS.items():
                db.execute(f"DROP VIEW IF EXISTS {name}")
                db.execute(f"CREATE VIEW {name} AS {select}")
            for statement in _REMADE:
                db.execute(statement)
            db.execute("INSERT OR REPLACE INTO campaign VALUES ('views', ?)", (_views(),))

    def _require_version(self, work: Path) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            raise CampaignError(f"{work / FILE} has version {version}; this codemod writes version {VERSION}")
        # Bytes can be changed so that SQLite still reads them.
        marks = ", ".join("?" * len(STATES))
        wrong = self.query(f"SELECT state FROM repositories WHERE state NOT IN ({marks}) LIMIT 1", *STATES)
        if wrong:
            raise _broken(work / FILE, f"there is no state {wrong[0]['state']!r}")
        if not self.query("SELECT 1 FROM campaign WHERE name = 'created'"):
            raise _broken(work / FILE, "it does not tell when the campaign began")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *raised: object) -> None:
        self._connection.close()
        error = next((one for one in raised if isinstance(one, sqlite3.Error)), None)
        if error is not None:
            raise _broken(self._file, str(error)) from None

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of what is written in it, or nothing. Raises :class:`Exhausted` for a full disk."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            if is_full(error) or "disk I/O" in str(error):
                raise Exhausted(f"the ledger could not be written: {error}") from None
            raise CampaignError(f"the ledger could not be written: {error}") from None

    @property
    def created(self) -> int:
        """When the campaign began, in seconds; commits bear this time, so that they can be made again."""
        return int(self.query("SELECT value FROM campaign WHERE name = 'created'")[0]["value"])

    def query(self, statement: str, *values: object) -> list[Row]:
        """The rows that a statement selects."""
        return list(self.each(statement, *values))

    def each(self, statement: str, *values: object) -> Iterator[Row]:
        """The rows that a statement selects, one at a time."""
        cursor = self._connection.execute(statement, values)
        # Of ten thousand rows, sqlite3's own take twice the time that plain ones do.
        cursor.row_factory = None
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row, strict=True))

    def pieces(self, statement: str, size: int) -> Iterator[list[tuple[Any, ...]]]:
        """The rows that a statement selects, ``size`` at a time and without names: tables have many."""
        cursor = self._connection.cursor()
        cursor.row_factory = None
        cursor.execute(statement)
        while piece := cursor.fetchmany(size):
            yield piece

    def columns(self, statement: str) -> list[str]:
        """The names of the columns that a statement selects."""
        return [column[0] for column in self._connection.execute(f"SELECT * FROM ({statement}) LIMIT 0").description]

    def repository(self, number: int) -> Row:
        """The row of one repository."""
        return self.query("SELECT * FROM repositories WHERE id = ?", number)[0]

    def numbers(self) -> list[int]:
        """The numbers of all repositories that the campaign lists, in its order."""
        return [row[0] for row in self._connection.execute("SELECT id FROM repositories WHERE listed ORDER BY id")]

    def numbers_of(self, slugs: Iterable[str]) -> dict[str, int | None]:
        """The numbers of the repositories with these names; None for a name that none has."""
        statement = "SELECT id FROM repositories WHERE listed AND slug=?"
        found = {slug: self._connection.execute(statement, (slug,)).fetchone() for slug in slugs}
        return {slug: None if row is None else int(row[0]) for slug, row in found.items()}

    def repositories(self) -> list[Row]:
        """The rows of all that the campaign lists, in its order."""
        return self.query("SELECT * FROM repositories WHERE listed ORDER BY id")

    def unlisted(self) -> list[str]:
        """The names of the repositories that the campaign listed once and does not list any more."""
        return [row["slug"] for row in self.query("SELECT slug FROM repositories WHERE NOT listed ORDER BY id")]

    def fixed(self, number: int) -> tuple[list[str], int, int]:
        """Which rules' findings the branch of a repository fixes, how many, and how many of these a run has kept."""
        rows = self.query(
            "SELECT rule, count(*) AS fixed, sum(proof = 'kept') AS proven FROM findings "
            "WHERE repository = ? AND fate = 'fixed' GROUP BY rule ORDER BY rule",
            number,
        )
        return [row["rule"] for row in rows], sum(row["fixed"] for row in rows), sum(row["proven"] for row in rows)

    # Changes of state.

    def register(
        self, found: Iterable[tuple[str, str, str, str]], slug: Callable[[str, str, Callable[[str], bool]], str]
    ) -> list[str]:
        """Bring the list up to date with the campaign's: of each its key, name, address and reason to be skipped.

        ``slug`` makes a folder's name of name and key, one that is not taken. Return the names of those that have gone.
        """
        now = time.time()
        with self.transaction() as db:

            def taken(name: str) -> bool:
                return db.execute("SELECT 1 FROM repositories WHERE slug=?", (name,)).fetchone() is not None

            # What is not listed any more is found by the database: a list may be longer than there is memory to spare.
            db.execute("CREATE TEMP TABLE IF NOT EXISTS now_listed (key TEXT PRIMARY KEY) WITHOUT ROWID")
            db.execute("DELETE FROM now_listed")
            for key, name, url, skip in found:
                db.execute("INSERT OR IGNORE INTO now_listed VALUES (?)", (key,))
                row = db.execute("SELECT id, state FROM repositories WHERE key=?", (key,)).fetchone()
                if row is None:
                    db.execute(
                        "INSERT INTO repositories (key, slug, url, state, reason, changed_at) "
                        "VALUES (?, ?, ?, ?, ?, ?)",
                        (key, slug(name, key, taken), url, "skipped" if skip else "planned", skip, now),
                    )
                elif skip and row["state"] != "published":
                    db.execute("UPDATE repositories SET state='skipped', reason=? WHERE id=?", (skip, row["id"]))
                elif not skip and row["state"] == "skipped":
                    db.execute("UPDATE repositories SET state='planned', reason='' WHERE id=?", (row["id"],))
            gone = db.execute(
                "SELECT slug FROM repositories WHERE listed AND key NOT IN (SELECT key FROM now_listed) ORDER BY id"
            ).fetchall()
            db.execute(
                "UPDATE repositories SET listed = key IN (SELECT key FROM now_listed) "
                "WHERE listed <> (key IN (SELECT key FROM now_listed))"
            )
            return [row["slug"] for row in gone]

    def begin(self, number: int, attempt: str) -> None:
        """Note an attempt at the next stage, which may wait for a worker; only its result will be taken."""
        with self.transaction() as db:
            db.execute("UPDATE repositories SET attempt=?, begun_at=NULL WHERE id=?", (attempt, number))

    def work_began(self, numbers: Iterable[int]) -> None:
        """Note that workers work on the attempts at these repositories."""
        with self.transaction() as db:
            db.executemany("UPDATE repositories SET begun_at=? WHERE id=?", [(time.time(), one) for one in numbers])

    def died(self, number: int) -> int:
        """Note that the worker of a repository died; return how often by now, since it was last planned."""
        with self.transaction() as db:
            db.execute("UPDATE repositories SET deaths=deaths+1, attempt='' WHERE id=?", (number,))
            row = db.execute("SELECT deaths FROM repositories WHERE id=?", (number,)).fetchone()
        return int(row[0])

    def change(
        self,
        number: int,
        state: str,
        *,
        stage: str = "",
        reason: str = "",
        facts: Mapping[str, Any] | None = None,
        **columns: Any,
    ) -> None:
        """Bring a repository into ``state``, with the ``facts`` of the stage that did it, in one transaction."""
        now = time.time()
        with self.transaction() as db:
            before = db.execute("SELECT state FROM repositories WHERE id=?", (number,)).fetchone()[0]
            columns = {"state": state, "stage": stage, "reason": reason, "attempt": "", "changed_at": now, **columns}
            columns["interruptions"] = 0
            columns |= columns_of(stage, facts or {}, now)
            if state != "failed":
                # Workers that died over an earlier stage say nothing of the next.
                columns["deaths"] = 0
            update(db, number, columns)
            insert_event(db, number, before, state, stage, reason)
            if facts is not None:
                insert_facts(db, number, stage, facts)

    def plan_again(self, number: int, reason: str) -> None:
        """Forget what was done with a repository, but for its history and what was published of it."""
        with self.transaction() as db:
            before = db.execute("SELECT state FROM repositories WHERE id=?", (number,)).fetchone()[0]
            update(db, number, _AT_FIRST | {"changed_at": time.time()})
            for table in ("findings", "verdicts", "runs", "problems"):
                db.execute(f"DELETE FROM {table} WHERE repository=?", (number,))
            insert_event(db, number, before, "planned", reason=reason)

    def rewrite_again(self, number: int, state: str, reason: str) -> None:
        """Have a repository rewritten anew from ``state`` (planned or cloned); ``before`` keeps what it came to."""
        row = self.repository(number)
        before = json.dumps({name: row[name] for name in _RESTORED})
        columns = dict.fromkeys(("stage", "reason", "attempt", "verification", "why"), "")
        with self.transaction() as db:
            update(db, number, columns | {"state": state, "before": before, "changed_at": time.time()})
            insert_event(db, number, row["state"], state, reason=reason)

    def restore(self, number: int, tool: str) -> None:
        """Put a repository back to what :meth:`rewrite_again` kept: ``tool`` makes the same of it."""
        row = self.repository(number)
        columns = {**json.loads(row["before"]), "tool": tool, "before": "", "attempt": "", "changed_at": time.time()}
        with self.transaction() as db:
            update(db, number, columns)
            insert_event(db, number, row["state"], columns["state"], reason="comes out as before")

    def note(self, number: int, **columns: Any) -> None:
        """Write down something that changes no state."""
        with self.transaction() as db:
            update(db, number, columns)


#: What a repository is that nothing was done with.
_AT_FIRST: dict[str, Any] = {
    "state": "planned",
    **dict.fromkeys(("stage", "reason", "log", "attempt", "base", "head", "upstream", "verification", "why"), ""),
    **dict.fromkeys(("entries", "tree", "tool", "before"), ""),
    **dict.fromkeys(("deaths", "interruptions"), 0),
    **dict.fromkeys(("changed", "commits")),
}
#: What a repository came to, as far as it is lost when it is rewritten anew.
_RESTORED = (
    *("state", "stage", "reason", "log", "head", "commits", "changed", "verification", "why", "entries", "tree"),
    "fingerprint",
)


def _views() -> str:
    """A digest of the columns, tables and views that an up-to-date ledger has."""
    return hashlib.sha256(json.dumps([ADDED, TABLES, VIEWS]).encode()).hexdigest()[:16]


@contextlib.contextmanager
def _told(file: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        if is_full(error):
            raise Exhausted(f"{file}: no space left on the device") from None
        raise CampaignError(f"{file} cannot be used: {error}") from None


def _broken(file: Path, why: str) -> CampaignError:
    return CampaignError(
        f"{file} cannot be read: {why}; put a copy of it back, or move it away and run again: all is done anew then, "
        "and branches that are pushed are found"
    )
