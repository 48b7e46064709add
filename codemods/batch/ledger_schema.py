"""The tables and views of a ledger; docs/batch-schema.md says what they mean, and that they only grow."""

from __future__ import annotations

VERSION = 1

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

CREATE VIEW judged AS
  SELECT v.* FROM verdicts v JOIN repositories r ON r.id = v.repository WHERE r.listed;
CREATE VIEW by_rule AS
  SELECT f.rule AS rule, count(*) AS findings, sum(f.fate = 'fixed') AS fixed,
    count(DISTINCT f.repository) AS repositories,
    (SELECT count(*) FROM judged v WHERE v.rule = f.rule AND v.verdict = 'kept') AS kept,
    (SELECT count(*) FROM judged v WHERE v.rule = f.rule AND v.verdict = 'broken') AS broken,
    (SELECT count(*) FROM judged v WHERE v.rule = f.rule AND v.verdict = 'partly reached') AS partly_reached,
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
