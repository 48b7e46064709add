"""Names that a program gave to things while it ran: a module, a variable, a parameter, a file.

It can call them by what it has read, as a module whose name stands in a variable of the environment.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from codemods.terms.words import words
from verify.measured.records import Record, Variables, Written
from verify.measured.results import Entry, Rewrite, Verification

_WORD = re.compile(r"\w+")
#: What is shorter tells nothing, and stands in any text.
_SHORTEST = 6
#: In names that torch gives to parameters and buffers, and in our own of what took the place of something missing.
_OURS = words(
    "batches embedding listcomp original parametrizations running tracked weight argument classes lambda module "
    "random transforms"
)


def without_foreign_names(verification: Verification) -> Verification:
    """Return ``verification`` without the words of names that stand in none of the sources that ran."""
    records = [record for entry in verification.entries for run in entry.runs for record in run.records]
    named = set(_pieces(text for record in records for text in set(_names(record))))
    foreign = named - _known(verification, records) if named else named
    if not foreign:
        return verification

    def change(text: str) -> str:
        return _WORD.sub(lambda word: word[0] if foreign.isdisjoint(_pieces([word[0]])) else "…", text)

    def changed(rewrite: Rewrite) -> Rewrite:
        # What a finding says was read in the sources.
        return replace(
            rewrite,
            why=change(rewrite.why),
            without=change(rewrite.without),
            made=tuple(map(change, rewrite.made)),
        )

    def of_entry(entry: Entry) -> Entry:
        told: Entry = _mapped(replace(entry, rewrites=(), command=()), change)
        return replace(told, rewrites=tuple(map(changed, entry.rewrites)), command=entry.command)

    return replace(
        verification,
        entries=tuple(map(of_entry, verification.entries)),
        rewrites=tuple(map(changed, verification.rewrites)),
        reason=change(verification.reason),
    )


def _pieces(texts: Iterable[str]) -> Iterator[str]:
    """The words of ``texts``, between underscores and without a number behind, as far as they are long enough."""
    for text in texts:
        for word in _WORD.findall(text):
            for part in word.split("_"):
                piece = part.rstrip("0123456789") or part
                if len(piece) >= _SHORTEST:
                    yield piece


def _names(record: Record) -> Iterator[str]:
    yield from (str(one.get("what") or "") for one in record.standins)
    for step in record.steps:
        yield from (step.name, *step.buffer_names, *(step.tensors.names if step.tensors is not None else ()))
    for holder in record.census.holders if record.census is not None else ():
        yield from (holder.name, holder.function)
    yield from record.state.names if record.state is not None else ()
    held: list[Variables | Written] = [*record.files]
    for one in [*held, record.variables] if record.variables is not None else held:
        yield from (*one.names, *one.numbers, *one.texts)
    yield from (*(file.path for file in record.files), *record.changed, *(one.name for one in record.driven))
    sites = (one.site for many in (record.backwards, record.steps, record.forwards, record.outputs) for one in many)
    for site in (*sites, record.error_site, *record.stack):
        yield from (site.path, site.function) if site is not None else ()


def _known(verification: Verification, records: Iterable[Record]) -> set[str]:
    """What stands in the sources that ran, in the diff, and in what was asked for."""
    root = Path(verification.root)
    texts = [verification.diff, *(word for entry in verification.entries for word in entry.command)]
    for path in sorted({path for record in records for path in record.loaded}):
        try:
            texts += [path, (root / path).read_text(encoding="utf-8", errors="replace")]
        except OSError:
            continue
    texts += [finding.message for rewrite in verification.rewrites for finding in rewrite.findings]
    return {*_OURS, *_pieces(texts)}


def _mapped(value: Any, change: Any) -> Any:
    """``value``, a result of ours, with each text in it changed."""
    if isinstance(value, str):
        return value if isinstance(value, enum.Enum) else change(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _mapped(getattr(value, one.name), change) for one in fields(value)})
    if isinstance(value, Mapping):
        return {_mapped(key, change): _mapped(one, change) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(one, change) for one in value))
    if isinstance(value, (tuple, list, set, frozenset)):
        return type(value)(_mapped(one, change) for one in value)
    return value
