"""Which lines that call modules are the same in a rewritten program and in the original."""

from __future__ import annotations

from collections import Counter
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
    records = []
    for record, other in run.beside(original):
        known = _places(other) if other else {}
        # A call more beside one of the same class is no part of it: as many outputs as can be are to be the same.
        made = [_renumbered(record, known, origins, apart=apart) for apart in (True, False)]
        records.append(max(made, key=lambda each: _alike(each, other) if other else 0))
    return replace(run, records=tuple(records))


def _alike(one: Record, other: Record) -> int:
    digests = {(each.line, each.call): each.values.digest for each in other.outputs}
    return sum(digests.get((each.line, each.call)) == each.values.digest for each in one.outputs)


def _renumbered(record: Record, known: Mapping[int, _Place], origins: Origins, *, apart: bool) -> Record:
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
    parts = {} if apart else _parts(places, numbers, known, origins)
    numbers.update(parts)
    alone = sorted(places.keys() - numbers.keys())
    if len(alone) != len(left):
        # Which of them took the place of which is unknown.
        first = max(known, default=-1) + 1
        left = list(range(first, first + len(alone)))
    numbers.update(zip(alone, left, strict=True))
    shared, calls = {*parts.values()}, Counter[int]()
    outputs = []
    for each in record.outputs:
        if each.form is None:
            number = numbers[each.line]
            calls[number] += 1
            each = each._replace(line=number, call=calls[number] if number in shared else each.call)
        outputs.append(each)
    return replace(record, outputs=outputs)


def _parts(
    places: Mapping[int, _Place], numbers: Mapping[int, int], known: Mapping[int, _Place], origins: Origins
) -> dict[int, int]:
    """Those of ``places`` that are part of a line of the original of which ``numbers`` has another part: the calls of a
    line that became several, of modules of one class, are counted together as before."""
    found: dict[int, int] = {}
    beside = Counter[_Place]()
    for number in sorted(places.keys() - numbers.keys()):
        place = places[number]
        wanted = () if place.line is None else origins(*place.line)
        fits = [n for n in sorted(known) if known[n].line in wanted and known[n].module == place.module]
        # In training and out of it a line counts twice.
        if beside[place] < len(fits):
            found[number] = fits[beside[place]]
        beside[place] += 1
    return found


def _places(record: Record) -> dict[int, _Place]:
    """The lines of ``record`` that call modules, by their number."""
    return {
        output.line: _Place(None if output.site is None else (output.site.path, output.site.line), output.module)
        for output in record.outputs
        if output.form is None
    }
