"""What two runs printed and wrote to files."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from verify.comparing.distances import ratio, same
from verify.comparing.gaps import Gap, alike, quoted, values_gap
from verify.comparing.numbers import TOTALS, lasting, read, unlike
from verify.measured.records import FileKind, Record, Written

_ENDED = "the runs ended at different places"
#: What stands among the lines that are printed, and is compared in other ways.
_NO_STREAMS = frozenset(("words", "commands"))
#: The digits of a day and a time, or of seconds since 1970.
_DIGITS_OF_A_TIME = 8


def printed(one: Record, other: Record) -> Iterator[Gap]:
    """The numbers that were printed, as far as both runs got."""
    yield from _words(one.printed.get("words", []), other.printed.get("words", []))
    yield from _commands(one.printed.get("commands", []), other.printed.get("commands", []), whole=alike(one, other))
    streams = (one.printed.keys() & other.printed.keys()) - _NO_STREAMS
    # On the other one stand warnings and bars, which may be gone for good reasons.
    whole = (one.printed.keys() | other.printed.keys()) - _NO_STREAMS if alike(one, other) else streams
    for stream in sorted(streams | (whole & {"stdout"})):
        key = f"printed on {stream}"
        mine, theirs = one.printed.get(stream, []), other.printed.get(stream, [])
        if None in mine or None in theirs:
            yield Gap(f"numbers {key}", key, missing="too many lines; the first ones were compared")
        kept, others = ([line for line in lines if line is not None] for lines in (mine, theirs))
        yield from _lines(f"numbers {key}", key, kept, others, whole=alike(one, other))


def _words(mine: Sequence[str | None], theirs: Sequence[str | None]) -> Iterator[Gap]:
    """Lines without numbers, as far as both runs got: what a difference in them means is unknown."""
    key = "words printed"
    for a, b in zip(mine, theirs, strict=False):
        if a != b and a is not None and b is not None and read(a).words != read(b).words:
            yield Gap(key, key, f"{a.strip()[:60]!r} and {b.strip()[:60]!r} are printed", undecided=True)
            return


def _commands(mine: Sequence[str | None], theirs: Sequence[str | None], *, whole: bool) -> Iterator[Gap]:
    """Programs that were started, as far as both runs got; what they print or do nobody sees."""
    what = "programs that are started"
    for place, (a, b) in enumerate(zip(mine, theirs, strict=False)):
        where = "" if a == b else f"{quoted(a or '')} and {quoted(b or '')} are started"
        yield Gap(what, f"{what} {place}", where, math.inf if where else 0.0, undecided=bool(where))
    if whole and len(mine) != len(theirs):
        yield Gap(what, what, f"{len(mine)} and {len(theirs)} programs are started", math.inf, undecided=True)


def files(one: Record, other: Record) -> Iterator[Gap]:
    """The files that were written, by name, each writing separately."""
    whole = alike(one, other)
    left, theirs = _paired(one.files, other.files, lambda path: path)
    for mine, match in left:
        yield from _file(mine, match, f"file {mine.path}", whole=whole)
    # The time in a name is another one each time.
    mine_left = [each for each in one.files if not any(each is mine for mine, _ in left)]
    timed, theirs = _paired(mine_left, theirs, _without_time)
    for mine, match in timed:
        yield from _file(mine, match, f"file {_without_time(mine.path)}", whole=whole)
    mine_left = [each for each in mine_left if not any(each is mine for mine, _ in timed)]
    if whole:
        yield from _named_otherwise(mine_left, theirs)
        return
    # What the shorter run wrote, the longer one would have written, too.
    shorter = len(one.steps) <= len(other.steps)
    for each in mine_left if shorter else theirs:
        where = f"{each.path} is written by one of the programs alone"
        yield Gap("names of files", f"names of files {_kind(each.path)}", where, missing=_ENDED)


def changed(one: Record, other: Record) -> Iterator[Gap]:
    """Modes of files, and folders that exist or not, as far as both runs got."""
    what, missing = "modes and folders", "" if alike(one, other) else _ENDED
    written = {_without_time(each.path) for record in (one, other) for each in record.files}
    mine, theirs = _states(one), _states(other)
    for path in sorted(mine.keys() | theirs.keys()):
        left, right = mine.get(path), theirs.get(path)
        if left == right:
            yield Gap(what, f"mode of {path}")
        elif left is not None and right is not None:
            where = f"{path} is {', '.join(left)} and {', '.join(right)}"
            yield Gap(what, f"mode of {path}", where, math.inf, missing=missing)
        elif path not in written:
            # A file that only one of them wrote is told by its name.
            where = (
                f"{path} is {', '.join(left or right or ())} after one of the programs, and after the other as before"
            )
            yield Gap(what, f"folders {_kind(path)}", where, math.inf, missing=missing)


def _states(record: Record) -> dict[str, list[str]]:
    """What exists, by name; names with a time differ from run to run."""
    found: dict[str, list[str]] = {}
    for path, state in sorted(record.changed.items()):
        found.setdefault(_without_time(path), []).append(state)
    return found


def _paired(
    mine: Sequence[Written], theirs: Sequence[Written], named: Callable[[str], str]
) -> tuple[list[tuple[Written, Written]], list[Written]]:
    """Those of ``mine`` and ``theirs`` of one name, in order, and what is left of ``theirs``."""
    waiting: dict[str, list[Written]] = {}
    for each in theirs:
        waiting.setdefault(named(each.path), []).append(each)
    pairs = [(each, waiting[named(each.path)].pop(0)) for each in mine if waiting.get(named(each.path))]
    return pairs, [each for rest in waiting.values() for each in rest]


def _without_time(path: str) -> str:
    """``path`` without its numbers if it has as many digits as a date and a time."""
    return re.sub(r"\d+", "#", path) if sum(letter.isdigit() for letter in path) >= _DIGITS_OF_A_TIME else path


def _named_otherwise(mine: Sequence[Written], theirs: Sequence[Written]) -> Iterator[Gap]:
    """Files with names that only one program writes.

    Where two runs of the original use different names, they are compared in the order of writing.
    """
    kinds = dict.fromkeys(_kind(each.path) for each in (*mine, *theirs))
    for kind in kinds:
        ours, others = ([each for each in written if _kind(each.path) == kind] for written in (mine, theirs))
        key = f"names of files {kind}"
        for each in ours:
            yield Gap("files", key, f"{each.path} is not written, or less often", math.inf)
        for each in others:
            yield Gap("files", key, f"{each.path} is written, or more often", math.inf)
        if len(ours) != len(others):
            where = f"{len(ours)} files of other names, such as {(*ours, *others)[0].path}, and {len(others)}"
            yield Gap("files", f"number of files {kind}", where, math.inf)
        for left, right in zip(ours, others, strict=False):
            yield from _file(left, right, f"file of another name {kind}", whole=True)


def _kind(path: str) -> str:
    """What generated names have in common: their depth and the suffix."""
    return f"{path.count('/')} {PurePosixPath(path).suffix}"


def _file(mine: Written, theirs: Written, key: str, *, whole: bool) -> Iterator[Gap]:
    if mine.kind != theirs.kind:
        # Bytes that the program made itself may be what a library would have written.
        unknown = FileKind.BYTES in (mine.kind, theirs.kind)
        where = f"{mine.path} {'is written in another way' if unknown else 'holds something else'}"
        yield Gap("files", key, where, math.inf, undecided=unknown)
    elif mine.kind is FileKind.TEXT:
        # Where the runs ended at different places, the last line may be cut off.
        kept = slice(None) if whole else slice(-1)
        yield from _lines("files", key, mine.lines[kept], theirs.lines[kept], whole=whole, path=mine.path)
    elif mine.kind is FileKind.BYTES:
        if mine.tensors.digest == theirs.tensors.digest:
            yield Gap("files", key)
        else:
            where = f"{mine.path} differs, and what such a file holds is not known here"
            yield Gap(f"file {mine.path}", key, where, undecided=True, missing="" if whole else _ENDED)
    elif _names(mine) != _names(theirs):
        names = {*mine.names, *mine.numbers, *mine.texts} ^ {*theirs.names, *theirs.numbers, *theirs.texts}
        yield Gap("files", key, f"{mine.path} holds other things: {', '.join(sorted(names)[:3])}", math.inf)
    else:
        yield values_gap("files", mine.tensors, theirs.tensors, mine.names, theirs.names, f"in {mine.path}", key)
        for name, number in mine.numbers.items():
            other = theirs.numbers[name]
            if not same(number, other):
                where = f"{name} in {mine.path}: {number:.9g} and {other:.9g}"
                whole = number.is_integer() and other.is_integer()
                yield _number("files", f"{key}: {name}", where, ratio(number, other), whole=whole)
        for name in sorted(mine.kinds.keys() | theirs.kinds.keys()):
            kind, others = mine.kinds.get(name, "none"), theirs.kinds.get(name, "none")
            if kind != others:
                # Who reads it may count with it, use it as an index, or know one of two forms.
                where = f"{name} in {mine.path} is of type {kind} and {others}"
                yield Gap("files", f"{key}: {name}", where, math.inf, undecided=True)
        for name, text in mine.texts.items():
            if text != theirs.texts[name]:
                where = f"{name} in {mine.path}: {quoted(text)} and {quoted(theirs.texts[name])}"
                yield Gap("files", f"{key}: {name}", where, math.inf)


def _names(written: Written) -> tuple[object, ...]:
    return written.names, set(written.numbers), set(written.texts)


def _lines(
    what: str, key: str, mine: Sequence[str], theirs: Sequence[str], *, whole: bool, path: str = ""
) -> Iterator[Gap]:
    at = f"{path}: " if path else "printed: "
    yield Gap(what, key)
    for found in unlike(mine, theirs):
        own = key if found.place < 0 else f"{key}: {found.words} {found.place}"
        if found.marks:
            yield Gap(what, f"{key}: {found.words} marks", at + found.told, undecided=True)
        else:
            yield _number(what, own, at + found.told, found.relative, whole=found.whole)
    one, other = lasting(mine), lasting(theirs)
    if whole and one != other:
        yield Gap(what, key, f"{at}{one} lines with numbers and {other}", math.inf)


def _number(what: str, key: str, where: str, relative: float, *, whole: bool) -> Gap:
    """A number that differs: in a whole number the last digit may be a count, or a rounded total."""
    last = relative <= TOTALS
    return Gap(what, key, where, relative, digits=last and not whole, undecided=last and whole)
