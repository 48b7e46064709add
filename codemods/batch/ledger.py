"""What became of every repository: SQLite, one writer, every change of state a transaction.

The shape is a promise, kept in docs/batch-schema.md. ``synchronous=FULL``: a state that was told survives a power cut;
at a few transactions a repository that costs nothing one would notice.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from codemods.batch.errors import CampaignError, Exhausted, is_full

VERSION = 1
FILE = "ledger.sqlite"
STATES = ("planned", "cloned", "rewritten", "verified", "published", "failed", "refused", "skipped")

_SCHEMA = """
CREATE TABLE campaign (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE repositories (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  slug TEXT NOT NULL UNIQUE COLLATE NOCASE,
  url TEXT NOT NULL,
  listed INTEGER NOT NULL DEFAULT 1,
  state TEXT NOT NULL DEFAULT 'planned',
  stage TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '',
  log TEXT NOT NULL DEFAULT '',
  fingerprint TEXT NOT NULL DEFAULT '',
  attempt TEXT NOT NULL DEFAULT '',
  deaths INTEGER NOT NULL DEFAULT 0,
  base TEXT NOT NULL DEFAULT '',
  base_branch TEXT NOT NULL DEFAULT '',
  head TEXT NOT NULL DEFAULT '',
  upstream TEXT NOT NULL DEFAULT '',
  cloned_at REAL,
  changed_at REAL NOT NULL,
  files INTEGER, lines INTEGER, tree_files INTEGER, tree_bytes INTEGER, changed INTEGER, commits INTEGER,
  verification TEXT NOT NULL DEFAULT '',
  why TEXT NOT NULL DEFAULT '',
  entries TEXT NOT NULL DEFAULT '',
  clone_seconds REAL, rewrite_seconds REAL, verify_seconds REAL,
  remote TEXT NOT NULL DEFAULT '',
  pushed TEXT NOT NULL DEFAULT '',
  pull_request TEXT NOT NULL DEFAULT ''
);
CREATE INDEX repositories_state ON repositories (state);
CREATE TABLE findings (
  repository INTEGER NOT NULL REFERENCES repositories (id),
  rule TEXT NOT NULL, path TEXT NOT NULL, line INTEGER NOT NULL, promise TEXT NOT NULL,
  fate TEXT NOT NULL, obstacle TEXT NOT NULL, message TEXT NOT NULL
);
CREATE INDEX findings_repository ON findings (repository);
CREATE TABLE verdicts (
  repository INTEGER NOT NULL REFERENCES repositories (id),
  rule TEXT NOT NULL, path TEXT NOT NULL, line INTEGER NOT NULL, promise TEXT NOT NULL,
  verdict TEXT NOT NULL, why TEXT NOT NULL
);
CREATE INDEX verdicts_repository ON verdicts (repository);
CREATE TABLE runs (
  repository INTEGER NOT NULL REFERENCES repositories (id),
  command TEXT NOT NULL, version TEXT NOT NULL, outcome TEXT NOT NULL, error TEXT NOT NULL,
  steps INTEGER, backwards INTEGER, nodes INTEGER, nodes_last INTEGER, nodes_per_step REAL, leak INTEGER,
  bytes INTEGER, bytes_per_step REAL, resident INTEGER, seconds_per_step REAL, wall REAL
);
CREATE INDEX runs_repository ON runs (repository);
CREATE TABLE problems (
  repository INTEGER NOT NULL REFERENCES repositories (id),
  kind TEXT NOT NULL, path TEXT NOT NULL, line INTEGER NOT NULL, text TEXT NOT NULL
);
CREATE INDEX problems_repository ON problems (repository);
CREATE TABLE events (
  id INTEGER PRIMARY KEY, at REAL NOT NULL, repository INTEGER NOT NULL REFERENCES repositories (id),
  before TEXT NOT NULL, after TEXT NOT NULL, stage TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE INDEX events_repository ON events (repository);

CREATE VIEW judged AS
  SELECT v.* FROM verdicts v JOIN repositories r ON r.id = v.repository WHERE r.listed;
CREATE VIEW by_rule AS
  SELECT f.rule AS rule, count(*) AS findings, sum(f.fate = 'fixed') AS fixed,
    count(DISTINCT f.repository) AS repositories,
    (SELECT count(*) FROM judged v WHERE v.rule = f.rule AND v.verdict = 'kept') AS kept,
    (SELECT count(*) FROM judged v WHERE v.rule = f.rule AND v.verdict = 'broken') AS broken,
    (SELECT count(*) FROM judged v WHERE v.rule = f.rule AND v.verdict = 'not reached') AS not_reached,
    (SELECT count(*) FROM judged v WHERE v.rule = f.rule AND v.verdict = 'not judged') AS not_judged
  FROM findings f JOIN repositories r ON r.id = f.repository WHERE r.listed GROUP BY f.rule;
CREATE VIEW by_repository AS
  SELECT r.slug, r.url, r.state, r.stage, r.reason, r.verification, r.why, r.files, r.lines, r.changed, r.commits,
    r.base, r.head, r.pull_request,
    (SELECT count(*) FROM findings f WHERE f.repository = r.id) AS findings,
    (SELECT count(*) FROM findings f WHERE f.repository = r.id AND f.fate = 'fixed') AS fixed,
    (SELECT count(*) FROM verdicts v WHERE v.repository = r.id AND v.verdict = 'kept') AS kept,
    (SELECT count(*) FROM verdicts v WHERE v.repository = r.id AND v.verdict = 'broken') AS broken,
    r.clone_seconds, r.rewrite_seconds, r.verify_seconds
  FROM repositories r WHERE r.listed;
CREATE VIEW saved AS
  SELECT r.slug, o.command, o.outcome AS outcome_before, w.outcome AS outcome_after, o.error AS error_before,
    o.nodes AS nodes_before, w.nodes AS nodes_after, o.bytes AS bytes_before, w.bytes AS bytes_after,
    o.bytes_per_step AS growth_before, w.bytes_per_step AS growth_after,
    o.seconds_per_step AS seconds_before, w.seconds_per_step AS seconds_after,
    o.leak AS leak_before, w.leak AS leak_after
  FROM runs o JOIN runs w ON w.repository = o.repository AND w.command = o.command AND w.version = 'rewritten'
    JOIN repositories r ON r.id = o.repository
  WHERE o.version = 'original' AND r.listed;
"""

Row = dict[str, Any]


class Ledger:
    """The ledger of a campaign, open; a context manager. Only who holds the campaign's lock may write."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def open(cls, work: Path) -> Ledger:
        """Open the ledger in ``work`` to write, making one where there is none.

        Raises :class:`CampaignError` for one that is broken or of another version.
        """
        with _told(work / FILE):
            connection = sqlite3.connect(work / FILE, timeout=30, isolation_level=None)
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            ledger = cls(connection)
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                with ledger.transaction():
                    for statement in _SCHEMA.split(";\n"):
                        if statement.strip():
                            connection.execute(statement)
                    connection.execute(f"PRAGMA user_version={VERSION}")
                    connection.execute("INSERT INTO campaign VALUES ('created', ?)", (str(int(time.time())),))
            ledger._require_version(work)
            return ledger

    @classmethod
    def read(cls, work: Path) -> Ledger | None:
        """Open the ledger in ``work`` to read, while somebody else may write; None where there is none yet."""
        file = work / FILE
        if not file.is_file():
            return None
        with _told(file):
            connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=30, isolation_level=None)
            connection.row_factory = sqlite3.Row
            ledger = cls(connection)
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                # Killed before its first transaction: nothing was written.
                connection.close()
                return None
            ledger._require_version(work)
            return ledger

    def _require_version(self, work: Path) -> None:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version != VERSION:
            raise CampaignError(f"{work / FILE} has version {version}; this codemod writes version {VERSION}")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

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
        return [dict(row) for row in self._connection.execute(statement, values)]

    def each(self, statement: str, *values: object) -> Iterator[Row]:
        """The rows that a statement selects, one at a time."""
        for row in self._connection.execute(statement, values):
            yield dict(row)

    def columns(self, statement: str) -> list[str]:
        """The names of the columns that a statement selects."""
        return [column[0] for column in self._connection.execute(f"SELECT * FROM ({statement}) LIMIT 0").description]

    def repository(self, number: int) -> Row:
        """The row of one repository."""
        return self.query("SELECT * FROM repositories WHERE id = ?", number)[0]

    def repositories(self) -> list[Row]:
        """The rows of all that the campaign lists, in its order."""
        return self.query(
            "SELECT *, (SELECT group_concat(DISTINCT rule) FROM findings WHERE repository = id AND fate = 'fixed') "
            "AS fixed_rules FROM repositories WHERE listed ORDER BY id"
        )

    # Changes of state.

    def register(self, found: Iterable[tuple[str, str, str, str]], slug: Callable[[str, str, set[str]], str]) -> None:
        """Bring the list up to date with the campaign's: of each its key, name, address and reason to be skipped.

        ``slug`` makes a folder's name of name and key that is not among those taken.
        """
        now = time.time()
        with self.transaction() as db:
            known = {
                row["key"]: dict(row) for row in db.execute("SELECT id, key, slug, state, listed FROM repositories")
            }
            taken = {row["slug"].lower() for row in known.values()}
            listed = set()
            for key, name, url, skip in found:
                listed.add(key)
                row = known.get(key)
                state = "skipped" if skip else "planned"
                if row is None:
                    chosen = slug(name, key, taken)
                    taken.add(chosen.lower())
                    db.execute(
                        "INSERT INTO repositories (key, slug, url, state, reason, changed_at) "
                        "VALUES (?, ?, ?, ?, ?, ?)",
                        (key, chosen, url, state, skip, now),
                    )
                elif skip and row["state"] != "published":
                    db.execute("UPDATE repositories SET state='skipped', reason=? WHERE id=?", (skip, row["id"]))
                elif not skip and row["state"] == "skipped":
                    db.execute("UPDATE repositories SET state='planned', reason='' WHERE id=?", (row["id"],))
            for key, row in known.items():
                if bool(row["listed"]) != (key in listed):
                    db.execute("UPDATE repositories SET listed=? WHERE id=?", (key in listed, row["id"]))

    def begin(self, number: int, attempt: str) -> None:
        """Note that an attempt at the next stage begins; only its result will be taken."""
        with self.transaction() as db:
            db.execute("UPDATE repositories SET attempt=? WHERE id=?", (attempt, number))

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
            columns |= _columns(stage, facts or {}, now)
            assignments = ", ".join(f"{name}=?" for name in columns)
            db.execute(f"UPDATE repositories SET {assignments} WHERE id=?", (*columns.values(), number))
            db.execute(
                "INSERT INTO events (at, repository, before, after, stage, reason) VALUES (?, ?, ?, ?, ?, ?)",
                (now, number, before, state, stage, reason),
            )
            if facts is not None:
                _insert_facts(db, number, stage, facts)

    def plan_again(self, number: int, reason: str) -> None:
        """Forget what was done with a repository, but for its history and what was published of it."""
        with self.transaction() as db:
            before = db.execute("SELECT state FROM repositories WHERE id=?", (number,)).fetchone()[0]
            db.execute(
                "UPDATE repositories SET state='planned', stage='', reason='', log='', attempt='', deaths=0, base='', "
                "head='', upstream='', changed=NULL, commits=NULL, verification='', why='', entries='', changed_at=? "
                "WHERE id=?",
                (time.time(), number),
            )
            for table in ("findings", "verdicts", "runs", "problems"):
                db.execute(f"DELETE FROM {table} WHERE repository=?", (number,))
            db.execute(
                "INSERT INTO events (at, repository, before, after, stage, reason) VALUES (?, ?, ?, 'planned', '', ?)",
                (time.time(), number, before, reason),
            )

    def note(self, number: int, **columns: Any) -> None:
        """Write down something that changes no state."""
        with self.transaction() as db:
            assignments = ", ".join(f"{name}=?" for name in columns)
            db.execute(f"UPDATE repositories SET {assignments} WHERE id=?", (*columns.values(), number))


_TAKEN = ("base", "base_branch", "head", "files", "lines", "tree_files", "tree_bytes", "changed", "commits")


def _columns(stage: str, facts: Mapping[str, Any], now: float) -> dict[str, Any]:
    columns = {name: facts[name] for name in (*_TAKEN, "verification", "why", "fingerprint") if name in facts}
    if "entries" in facts:
        columns["entries"] = json.dumps(facts["entries"])
    if stage and "seconds" in facts:
        columns[f"{stage}_seconds"] = facts["seconds"]
    if stage == "clone" and facts:
        columns |= {"cloned_at": now, "upstream": facts["base"]}
    return columns


def _insert_facts(db: sqlite3.Connection, number: int, stage: str, facts: Mapping[str, Any]) -> None:
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


@contextlib.contextmanager
def _told(file: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        if is_full(error):
            raise Exhausted(f"{file}: no space left on the device") from None
        raise CampaignError(f"{file} cannot be used: {error}") from None
