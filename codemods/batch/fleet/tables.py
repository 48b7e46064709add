"""The ledger's tables for other programs: CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codemods.batch.errors import CampaignError
from codemods.batch.ledger import Ledger

#: Each file's name and what stands in it; docs/batch-schema.md says what the columns mean.
QUERIES = {
    "repositories": "SELECT * FROM by_repository ORDER BY slug",
    "rules": "SELECT * FROM by_rule ORDER BY rule",
    "findings": "SELECT r.slug, f.rule, f.path, f.line, f.promise, f.fate, f.obstacle, f.message, f.cell "
    "FROM findings f JOIN repositories r ON r.id = f.repository WHERE r.listed ORDER BY r.slug, f.path, f.cell, f.line",
    "verdicts": "SELECT r.slug, v.rule, v.path, v.line, v.promise, v.verdict, v.why, v.cell "
    "FROM verdicts v JOIN repositories r ON r.id = v.repository WHERE r.listed ORDER BY r.slug, v.path, v.cell, v.line",
    "runs": "SELECT * FROM saved ORDER BY slug, command",
}
_ROWS = 10_000


def has_parquet() -> bool:
    """Whether Parquet can be written."""
    return importlib.util.find_spec("pyarrow") is not None


def write_csv(work: Path, folder: Path) -> list[Path]:
    """Write the tables as CSV (UTF-8, a header, RFC 4180); return the paths."""
    written = []
    with _ledger(work) as ledger:
        for name, query in QUERIES.items():
            path = folder / f"{name}.csv"
            temporary = path.with_name(f".{path.name}.tmp")
            with open(temporary, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(ledger.columns(query))
                for row in ledger.each(query):
                    writer.writerow(row.values())
            os.replace(temporary, path)
            written.append(path)
    return written


def write_parquet(work: Path, folder: Path) -> list[Path]:
    """Write the tables as Parquet, some thousand rows at a time; return the paths."""
    import pyarrow
    import pyarrow.parquet

    written = []
    with _ledger(work) as ledger:
        for name, query in QUERIES.items():
            path = folder / f"{name}.parquet"
            temporary = path.with_name(f".{path.name}.tmp")
            schema = pyarrow.schema([(column, _type(pyarrow, column)) for column in ledger.columns(query)])
            with pyarrow.parquet.ParquetWriter(temporary, schema) as writer:
                for rows in _in_pieces(ledger.each(query)):
                    writer.write_table(pyarrow.Table.from_pylist(rows, schema))
            os.replace(temporary, path)
            written.append(path)
    return written


_COUNTS = frozenset(
    {
        "findings",
        "fixed",
        "repositories",
        "kept",
        "broken",
        "partly_reached",
        "not_reached",
        "not_judged",
        "proven",
        "files",
        "lines",
        "line",
        "cell",
    }
    | {"changed", "commits", "nodes_before", "nodes_after", "bytes_before", "bytes_after", "leak_before", "leak_after"}
)
_NUMBERS = ("_seconds", "growth_before", "growth_after", "seconds_before", "seconds_after")


def _type(pyarrow: Any, column: str) -> Any:
    if column in _COUNTS:
        return pyarrow.int64()
    return pyarrow.float64() if column.endswith(_NUMBERS) else pyarrow.string()


def _in_pieces(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    piece: list[dict[str, Any]] = []
    for row in rows:
        piece.append(row)
        if len(piece) == _ROWS:
            yield piece
            piece = []
    if piece:
        yield piece


@contextlib.contextmanager
def _ledger(work: Path) -> Iterator[Ledger]:
    ledger = Ledger.read(work)
    if ledger is None:
        raise CampaignError(f"{work}: nothing was done yet")
    with ledger:
        yield ledger
