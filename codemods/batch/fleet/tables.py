"""The ledger's tables for other programs: CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import operator
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codemods.batch.ledger.ledger import Ledger, Row
from codemods.terms.words import words

#: Each file's name and what stands in it; docs/batch-schema.md says what the columns mean.
QUERIES = {
    "repositories": "SELECT * FROM by_repository ORDER BY slug",
    "rules": "SELECT * FROM by_rule ORDER BY rule",
    "findings": "SELECT r.slug, f.rule, f.path, f.line, f.promise, f.fate, f.obstacle, f.message, f.cell "
    "FROM findings f JOIN repositories r ON r.id = f.repository WHERE r.listed ORDER BY r.slug, f.path, f.cell, f.line",
    "verdicts": "SELECT r.slug, v.rule, v.path, v.line, v.promise, v.verdict, v.why, v.cell "
    "FROM verdicts v JOIN repositories r ON r.id = v.repository WHERE r.listed ORDER BY r.slug, v.path, v.cell, v.line",
    "requests": "SELECT * FROM requests ORDER BY slug",
    "runs": "SELECT * FROM saved ORDER BY slug, command",
}
_ROWS = 10_000


def has_parquet() -> bool:
    """Whether Parquet can be written."""
    return importlib.util.find_spec("pyarrow") is not None


def write(
    ledger: Ledger, folder: Path, forms: Collection[str], known: Mapping[str, Sequence[Row]] | None = None
) -> list[Path]:
    """Write the tables as ``csv`` (UTF-8, a header, RFC 4180) and ``parquet``, in one pass; return the paths.

    ``known`` are rows of some tables that were read already, in their order.
    """
    written = []
    wanted = [form for form in _SINKS if form in forms]
    for name, query in QUERIES.items():
        columns = ledger.columns(query)
        places = {form: folder / f"{name}.{form}" for form in wanted}
        with contextlib.ExitStack() as stack:
            sinks = [stack.enter_context(_SINKS[form](_temporary(places[form]), columns)) for form in wanted]
            for piece in _pieces(ledger, name, columns, known or {}) if sinks else ():
                for sink in sinks:
                    sink(piece)
        for path in places.values():
            os.replace(_temporary(path), path)
            written.append(path)
    return written


def _pieces(
    ledger: Ledger, name: str, columns: list[str], known: Mapping[str, Sequence[Row]]
) -> Iterable[list[tuple[Any, ...]]]:
    if name not in known:
        return ledger.pieces(QUERIES[name], _ROWS)
    return [list(map(operator.itemgetter(*columns), known[name]))]


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")


#: Takes rows, some thousand at a time.
_Sink = Callable[[list[tuple[Any, ...]]], None]


@contextlib.contextmanager
def _csv(path: Path, names: list[str]) -> Iterator[_Sink]:
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        yield writer.writerows


@contextlib.contextmanager
def _parquet(path: Path, names: list[str]) -> Iterator[_Sink]:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, _type(pyarrow, name)) for name in names])

    with pyarrow.parquet.ParquetWriter(path, schema) as writer:

        def take(piece: list[tuple[Any, ...]]) -> None:
            arrays = [
                pyarrow.array(values, field.type)
                for values, field in zip(zip(*piece, strict=True), schema, strict=True)
            ]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))

        yield take


_SINKS = {"csv": _csv, "parquet": _parquet}
_COUNTS = words(
    "findings fixed repositories kept broken partly_reached not_reached not_judged proven files lines line cell "
    "changed commits comments draft conflict nodes_before nodes_after bytes_before bytes_after leak_before leak_after"
)
_NUMBERS = ("_seconds", "_at", "growth_before", "growth_after", "seconds_before", "seconds_after")


def _type(pyarrow: Any, column: str) -> Any:
    if column in _COUNTS:
        return pyarrow.int64()
    return pyarrow.float64() if column.endswith(_NUMBERS) else pyarrow.string()
