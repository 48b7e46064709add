"""Which lines that call modules are the same in a rewritten program and in the original."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from verify.measured.records import Record
from verify.measured.results import Run

Line = tuple[str, int]
Origins = Callable[[str, int], Collection[Line]]


class _Place(NamedTuple):
    """Where a module is called, None where no line of the tree does, and its class."""

    line: Line | None
    module: str


def renumbered(run: Run, original: Run, origins: Origins) -> Run:
    """Return ``run`` with the lines that call modules counted as in ``original``.

    The probe counts them as they come, so that a call more, of a loss that became a module, moves all behind it.
    ``origins`` are the lines of the original to which a line of the rewritten program corresponds.
    """
    known = {record.process: _places(record) for record in reversed(original.records)}
    records = tuple(_renumbered(record, known.get(record.process, {}), origins) for record in run.records)
    return replace(run, records=records)


def _renumbered(record: Record, known: Mapping[int, _Place], origins: Origins) -> Record:
    left = sorted(known)
    numbers: dict[int, int] = {}
    places = _places(record)
    for same in (True, False):
        for number in sorted(places.keys() - numbers.keys()):
            line, module = places[number]
            wanted = () if line is None else origins(*line)
            fits = [n for n in left if known[n].line in wanted and (known[n].module == module or not same)]
            if fits:
                numbers[number] = fits[0]
                left.remove(fits[0])
    alone = sorted(places.keys() - numbers.keys())
    if len(alone) != len(left):
        # Which of them took the place of which is unknown.
        first = max(known, default=-1) + 1
        left = list(range(first, first + len(alone)))
    numbers.update(zip(alone, left, strict=True))
    outputs = [each if each.form is not None else each._replace(line=numbers[each.line]) for each in record.outputs]
    return replace(record, outputs=outputs)


def _places(record: Record) -> dict[int, _Place]:
    """The lines of ``record`` that call modules, by their number."""
    return {
        output.line: _Place(None if output.site is None else (output.site.path, output.site.line), output.module)
        for output in record.outputs
        if output.form is None
    }
