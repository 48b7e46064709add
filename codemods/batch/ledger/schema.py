"""The tables and views of a ledger; docs/batch-schema.md says what they mean, and that they only grow."""

from __future__ import annotations

VERSION = 1

#: The tables of the first release.
SCHEMA = """
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
  fate TEXT NOT NULL, obstacle TEXT NOT NULL, message TEXT NOT NULL, cell INTEGER
);
CREATE INDEX findings_repository ON findings (repository);
CREATE TABLE verdicts (
  repository INTEGER NOT NULL REFERENCES repositories (id),
  rule TEXT NOT NULL, path TEXT NOT NULL, line INTEGER NOT NULL, promise TEXT NOT NULL,
  verdict TEXT NOT NULL, why TEXT NOT NULL, cell INTEGER
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
"""

#: Columns that came later, which every ledger gets when it is opened: table, name, declaration.
ADDED = (
    ("findings", "proof", "TEXT NOT NULL DEFAULT ''"),
    ("repositories", "tool", "TEXT NOT NULL DEFAULT ''"),
    ("repositories", "tree", "TEXT NOT NULL DEFAULT ''"),
    ("repositories", "before", "TEXT NOT NULL DEFAULT ''"),
    ("repositories", "request", "TEXT NOT NULL DEFAULT ''"),
    ("repositories", "followed_at", "REAL"),
    ("repositories", "opened_at", "REAL"),
    ("repositories", "ended_at", "REAL"),
    ("repositories", "fork", "TEXT NOT NULL DEFAULT ''"),
    ("repositories", "begun_at", "REAL"),
    ("repositories", "interruptions", "INTEGER NOT NULL DEFAULT 0"),
    ("repositories", "pushing", "TEXT NOT NULL DEFAULT ''"),
)

#: Tables that came later, and indices.
TABLES = (
    "CREATE TABLE IF NOT EXISTS comments (repository INTEGER NOT NULL REFERENCES repositories (id), "
    "at REAL, author TEXT NOT NULL, path TEXT NOT NULL, line INTEGER, text TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS comments_repository ON comments (repository)",
    # What was published in a night is counted before each of the next.
    "CREATE INDEX IF NOT EXISTS events_stage ON events (stage, at)",
)

#: Each view by its name. They hold nothing, and are made anew where a ledger has others.
VIEWS = {
    "judged": "SELECT v.* FROM verdicts v JOIN repositories r ON r.id = v.repository WHERE r.listed",
    "by_rule": """
  WITH seen AS (
    SELECT rule, sum(verdict = 'kept') AS kept, sum(verdict = 'broken') AS broken,
      sum(verdict = 'partly reached') AS partly_reached, sum(verdict = 'not reached') AS not_reached,
      sum(verdict = 'not judged') AS not_judged
    FROM judged GROUP BY rule
  ), found AS (
    SELECT f.rule AS rule, count(*) AS findings, sum(f.fate = 'fixed') AS fixed,
      count(DISTINCT f.repository) AS repositories, sum(f.fate = 'fixed' AND f.proof = 'kept') AS proven
    FROM findings f JOIN repositories r ON r.id = f.repository WHERE r.listed GROUP BY f.rule
  )
  SELECT found.rule, findings, fixed, repositories, coalesce(kept, 0) AS kept, coalesce(broken, 0) AS broken,
    coalesce(partly_reached, 0) AS partly_reached, coalesce(not_reached, 0) AS not_reached,
    coalesce(not_judged, 0) AS not_judged, proven
  FROM found LEFT JOIN seen ON seen.rule = found.rule""",
    "by_repository": """
  SELECT r.slug, r.url, r.state, r.stage, r.reason, r.verification, r.why, r.files, r.lines, r.changed, r.commits,
    r.base, r.head, r.pull_request,
    coalesce(f.findings, 0) AS findings, coalesce(f.fixed, 0) AS fixed,
    coalesce(v.kept, 0) AS kept, coalesce(v.broken, 0) AS broken,
    r.clone_seconds, r.rewrite_seconds, r.verify_seconds, coalesce(f.proven, 0) AS proven
  FROM repositories r
    LEFT JOIN (
      SELECT repository, count(*) AS findings, sum(fate = 'fixed') AS fixed,
        sum(fate = 'fixed' AND proof = 'kept') AS proven
      FROM findings GROUP BY repository
    ) f ON f.repository = r.id
    LEFT JOIN (
      SELECT repository, sum(verdict = 'kept') AS kept, sum(verdict = 'broken') AS broken
      FROM verdicts GROUP BY repository
    ) v ON v.repository = r.id
  WHERE r.listed""",
    "saved": """
  SELECT r.slug, o.command, o.outcome AS outcome_before, w.outcome AS outcome_after, o.error AS error_before,
    o.nodes AS nodes_before, w.nodes AS nodes_after, o.bytes AS bytes_before, w.bytes AS bytes_after,
    o.bytes_per_step AS growth_before, w.bytes_per_step AS growth_after,
    o.seconds_per_step AS seconds_before, w.seconds_per_step AS seconds_after,
    o.leak AS leak_before, w.leak AS leak_after
  FROM runs o JOIN runs w ON w.repository = o.repository AND w.command = o.command AND w.version = 'rewritten'
    JOIN repositories r ON r.id = o.repository
  WHERE o.version = 'original' AND r.listed""",
    "requests": """
  SELECT slug, pull_request, coalesce(json_extract(nullif(request, ''), '$.state'), '') AS state,
    json_extract(nullif(request, ''), '$.draft') AS draft,
    coalesce(json_extract(nullif(request, ''), '$.checks'), '') AS checks,
    coalesce(json_extract(nullif(request, ''), '$.review'), '') AS review,
    json_extract(nullif(request, ''), '$.conflict') AS conflict,
    json_extract(nullif(request, ''), '$.comments') AS comments, opened_at, ended_at, followed_at, pushed
  FROM repositories WHERE listed AND pull_request <> ''""",
}
