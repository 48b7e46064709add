"""What two runs left beside losses and parameters, held side by side: each comparison becomes a :class:`Gap`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePosixPath

from verify.comparing.distances import Training, apart, distance, length
from verify.comparing.numbers import TOTALS, read, unlike
from verify.measured.records import Output, Rates, Record, Step, Variables, Waiting, Written
from verify.measured.steered import Observed
from verify.measured.values import Values

#: What an ``exact`` promise allows of totals and of outputs computed without gradients, where other kernels sum up.
LAST_DIGITS = 1e-5
#: The digits of a day and a time, or of seconds since 1970.
_DIGITS_OF_A_TIME = 8


@dataclass(frozen=True)
class Gap:
    """Something that was compared; ``where`` is empty where both are the same.

    ``what`` is what people call it, ``key`` tells it from others when the same program is run twice. ``relative`` says
    how far apart they are in proportion; ``digits``: only in the last digits. ``undecided``: they differ, but whether
    anything follows from it this run does not show. ``missing`` says why it could not be compared. ``before``: it was
    there before the parameters changed; ``random``: it is a generator's state; ``distance``: how far apart tensors are
    that follow parameters.
    """

    what: str
    key: str
    where: str = ""
    relative: float = 0.0
    digits: bool = False
    undecided: bool = False
    missing: str = ""
    before: bool = False
    random: bool = False
    distance: float = math.inf


def of_step(
    mine: Step, theirs: Step, training: Training, trained: Collection[int] = (), number: int = 0
) -> Iterator[Gap]:
    """What a step tells: gradients, learning rates, buffers, generators.

    Gradients that wait for one of ``trained``, which steps later, may be cleared before that: its own steps tell.
    """
    yield from _gradients(mine, theirs, training, number)
    yield from _waiting(mine.waiting, theirs.waiting, f"at step {number}", trained)
    at = f"after step {number}"
    if mine.rates or theirs.rates:
        yield _rates(mine.rates, theirs.rates, f"{at} of {mine.name}")
    if mine.buffers is not None and theirs.buffers is not None:
        yield _values("buffers", mine.buffers, theirs.buffers, mine.buffer_names, theirs.buffer_names, at)
    if mine.rng and theirs.rng:
        yield _generators(mine.rng, theirs.rng, at)


def outputs(one: Record, other: Record) -> Iterator[Gap]:
    """What modules returned where no backward used it."""
    theirs = {(output.line, output.call): output for output in other.outputs}
    for mine in one.outputs:
        match = theirs.get((mine.line, mine.call))
        alone = mine.form is not None and mine.site is not None
        where = f"output of call {mine.call} of the module at {mine.site or '?'}"
        if alone:
            where = f"what call {mine.call} of {mine.site.function} returned or left behind"  # type: ignore[union-attr]
        if match is None:
            continue
        yield _given("outputs of modules", "outputs", where, mine, match)


def observed(one: Record, other: Record) -> Iterator[Gap]:
    """What went into calls that were left out, and into modules that are not there: nobody else would tell."""
    theirs = {(each.place, each.call): each for each in other.observed}
    for mine in one.observed:
        what = f"what is given to {mine.called}"
        match = theirs.pop((mine.place, mine.call), None)
        if match is not None:
            yield _given(what, f"given to {mine.place}", f"{what}, call {mine.call}", mine, match)
        elif _alike(one, other):
            yield Gap(what, f"given to {mine.place}", f"{what} is given less often", math.inf)
    for place, _ in theirs if _alike(one, other) else ():
        yield Gap(f"what is given to {place}", f"given to {place}", f"{place} is given more, or more often", math.inf)


def _given(what: str, key: str, where: str, mine: Output | Observed, match: Output | Observed) -> Gap:
    unlike = _unlike(mine.form or (), match.form or ())
    if unlike:
        return Gap(what, key, f"{where}: {unlike}", math.inf)
    if mine.graphs != match.graphs:
        text = f"{where}: one carries a graph, the other does not; whether that is needed no run shows"
        return Gap(what, key, text, math.inf, undecided=True)
    if not (mine.values.digest and match.values.digest):
        return Gap(what, key, missing="too large")
    if mine.values.digest == match.values.digest:
        return Gap(what, key)
    relative = apart(mine.values, match.values).relative
    return Gap(what, key, f"{where}: {_share(relative)}", relative, digits=relative <= LAST_DIGITS)


def _unlike(one: tuple[str, ...], other: tuple[str, ...]) -> str:
    """What two values are made of where that differs; a tensor of one number may become a number, as totals do."""
    for mine, theirs in zip_longest(one, other, fillvalue="nothing"):
        short, long = sorted((mine, theirs), key=len)
        if mine != theirs and not (short == "a number" and long.startswith("a number (")):
            return f"{mine} and {theirs}"
    return ""


def at_the_end(one: Record, other: Record) -> Iterator[Gap]:
    """What was alive when the processes ended, where they ended at the same place."""
    mine, theirs = one.state, other.state
    if mine is None or theirs is None or not _alike(one, other):
        return
    at = "at the end"
    yield from _waiting(mine.waiting, theirs.waiting, at, one.trained | other.trained)
    if mine.names and theirs.names:
        yield _values("parameters at the end", mine.parameters, theirs.parameters, mine.names, theirs.names, at)
    if mine.buffers is not None and theirs.buffers is not None:
        yield _values("buffers", mine.buffers, theirs.buffers, (), (), at)
    for left, right in zip(mine.rates, theirs.rates, strict=False):
        yield _rates(left, right, at)
    yield _generators(mine.rng, theirs.rng, at)


def variables(one: Record, other: Record) -> Iterator[Gap]:
    """What the variables hold that both have at the end. Nothing tells what a difference would come to."""
    mine, theirs = one.variables, other.variables
    if mine is None or theirs is None or not _alike(one, other):
        return
    yield Gap("variables", "variables")
    for name, number in mine.numbers.items():
        value = theirs.numbers.get(name)
        if value is not None and value != number and not (math.isnan(value) and math.isnan(number)):
            gap = abs(number - value)
            relative = gap / max(abs(number), abs(value)) if math.isfinite(gap) else math.inf
            yield _variable(name, f"{number:.9g} and {value:.9g}", relative)
    yield from _variable_texts(mine, theirs)
    places = {name: place for place, name in enumerate(theirs.names)}
    ours, others = mine.tensors.rows(), theirs.tensors.rows()
    for row, name in zip(ours, mine.names, strict=True):
        if name in places:
            match = others[places[name]]
            gap, size = distance(row, match), max(length(row), length(match))
            if gap or math.isnan(gap):
                relative = gap / size if math.isfinite(gap) and size else math.inf
                yield _variable(name, _share(relative), relative)


def _variable_texts(mine: Variables, theirs: Variables) -> Iterator[Gap]:
    """Texts that differ, and what is a text in one program and something else in the other."""
    for name, text in mine.texts.items():
        match = theirs.texts.get(name)
        if match is None:
            if name in theirs.numbers or name in theirs.names:
                yield _variable(name, f"{_quoted(text)} and something else", math.inf)
        elif text != match:
            found = max((part.relative for part in unlike([text], [match])), default=0.0)
            if found > TOTALS or read(text)[:2] == read(match)[:2]:
                yield _variable(name, f"{_quoted(text)} and {_quoted(match)}", found)
    for name in theirs.texts.keys() - mine.texts.keys():
        if name in mine.numbers or name in mine.names:
            yield _variable(name, f"something else and {_quoted(theirs.texts[name])}", math.inf)


def _quoted(text: str) -> str:
    return repr(text[:60])


def _variable(name: str, told: str, relative: float) -> Gap:
    kind = re.sub(r"\[\d+\]", "[*]", name)
    digits = relative <= LAST_DIGITS
    where = f"`{name}` differs at the end: {told}"
    return Gap(f"variable {kind}", f"variable {kind}", where, relative, digits=digits, undecided=not digits)


def afterwards(one: Record, other: Record) -> Iterator[Gap]:
    """All that is compared when both runs are over."""
    yield from outputs(one, other)
    yield from observed(one, other)
    yield from at_the_end(one, other)
    yield from variables(one, other)
    yield from printed(one, other)
    yield from files(one, other)


def printed(one: Record, other: Record) -> Iterator[Gap]:
    """The numbers that were printed, as far as both runs came."""
    yield from _words(one.printed.get("words", []), other.printed.get("words", []))
    streams = (one.printed.keys() & other.printed.keys()) - {"words"}
    # On the other one stand warnings and bars, which may be gone for good reasons.
    whole = (one.printed.keys() | other.printed.keys()) - {"words"} if _alike(one, other) else streams
    for stream in sorted(streams | (whole & {"stdout"})):
        key = f"printed on {stream}"
        mine, theirs = one.printed.get(stream, []), other.printed.get(stream, [])
        if None in mine or None in theirs:
            yield Gap(f"numbers {key}", key, missing="too many lines; the first ones were compared")
        kept, others = ([line for line in lines if line is not None] for lines in (mine, theirs))
        yield from _lines(f"numbers {key}", key, kept, others, whole=_alike(one, other))


def _words(mine: Sequence[str | None], theirs: Sequence[str | None]) -> Iterator[Gap]:
    """Lines without numbers, as far as both runs came: what it means that they differ nothing tells."""
    key = "words printed"
    for a, b in zip(mine, theirs, strict=False):
        if a != b and a is not None and b is not None and read(a).words != read(b).words:
            yield Gap(key, key, f"{a.strip()[:60]!r} and {b.strip()[:60]!r} are printed", undecided=True)
            return


def files(one: Record, other: Record) -> Iterator[Gap]:
    """The files that were written, by name, each writing of it for itself."""
    alike = _alike(one, other)
    left, theirs = _paired(one.files, other.files, lambda path: path)
    for mine, match in left:
        yield from _file(mine, match, f"file {mine.path}", whole=alike)
    # The time in a name is another one each time.
    mine_left = [each for each in one.files if not any(each is mine for mine, _ in left)]
    timed, theirs = _paired(mine_left, theirs, _without_time)
    for mine, match in timed:
        yield from _file(mine, match, f"file {_without_time(mine.path)}", whole=alike)
    mine_left = [each for each in mine_left if not any(each is mine for mine, _ in timed)]
    if alike:
        yield from _named_otherwise(mine_left, theirs)


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
    """``path`` with its numbers left out if it has as many digits as a day and a time."""
    return re.sub(r"\d+", "#", path) if sum(letter.isdigit() for letter in path) >= _DIGITS_OF_A_TIME else path


def _named_otherwise(mine: Sequence[Written], theirs: Sequence[Written]) -> Iterator[Gap]:
    """Files of names that only one program writes. Where the original, run twice, has other names each time, they are
    held side by side in the order of writing."""
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
    """What names that are made up each time have in common: how deep they lie, and the suffix."""
    return f"{path.count('/')} {PurePosixPath(path).suffix}"


def _file(mine: Written, theirs: Written, key: str, *, whole: bool) -> Iterator[Gap]:
    if mine.kind != theirs.kind:
        yield Gap("files", key, f"{mine.path} holds something else", math.inf)
    elif mine.kind == "text":
        # Where the runs ended at different places, the last line may be cut off.
        kept = slice(None) if whole else slice(-1)
        yield from _lines("files", key, mine.lines[kept], theirs.lines[kept], whole=whole, path=mine.path)
    elif mine.kind == "bytes":
        if mine.tensors.digest == theirs.tensors.digest:
            yield Gap("files", key)
        else:
            where = f"{mine.path} differs, and what such a file holds is not known here"
            ended = "" if whole else "the runs ended at different places"
            yield Gap(f"file {mine.path}", key, where, undecided=True, missing=ended)
    elif _names(mine) != _names(theirs):
        names = {*mine.names, *mine.numbers, *mine.texts} ^ {*theirs.names, *theirs.numbers, *theirs.texts}
        yield Gap("files", key, f"{mine.path} holds other things: {', '.join(sorted(names)[:3])}", math.inf)
    else:
        yield _values("files", mine.tensors, theirs.tensors, mine.names, theirs.names, f"in {mine.path}", key)
        for name, number in mine.numbers.items():
            other = theirs.numbers[name]
            if number != other and not (math.isnan(number) and math.isnan(other)):
                gap = abs(number - other)
                relative = gap / max(abs(number), abs(other)) if math.isfinite(gap) else math.inf
                where = f"{name} in {mine.path}: {number:.9g} and {other:.9g}"
                whole = number.is_integer() and other.is_integer()
                yield _number("files", f"{key}: {name}", where, relative, whole=whole)
        for name, text in mine.texts.items():
            if text != theirs.texts[name]:
                where = f"{name} in {mine.path}: {_quoted(text)} and {_quoted(theirs.texts[name])}"
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
    if whole and len(mine) != len(theirs):
        yield Gap(what, key, f"{at}{len(mine)} lines with numbers and {len(theirs)}", math.inf)


def _number(what: str, key: str, where: str, relative: float, *, whole: bool) -> Gap:
    """A number that differs: of a whole one the last digit may count something, or be what a total was rounded to."""
    last = relative <= TOTALS
    return Gap(what, key, where, relative, digits=last and not whole, undecided=last and whole)


def _alike(one: Record, other: Record) -> bool:
    """Whether both ended at the same place."""
    mine, theirs = ((each.end, len(each.steps), len(each.backwards)) for each in (one, other))
    return mine == theirs and one.end not in (None, "watchdog", "raised")


def _gradients(mine: Step, theirs: Step, training: Training, number: int) -> Iterator[Gap]:
    if mine.grads is None or theirs.grads is None:
        return
    if mine.grads.digest == theirs.grads.digest:
        yield Gap("gradients", "gradients", before=True)
        return
    found = training.gradients(mine.grads, theirs.grads)
    if found.place < 0 and not found.relative:
        # A zero where the other has nothing or a negative zero: what the step makes of it is told by the parameters.
        yield Gap("gradients", "gradients", before=True)
        return
    name = training.name(found.place)
    which = f"{name} differs by " if name else ""
    where = f"gradients before step {number} of {mine.name}: {which}{_share(found.relative)}"
    yield Gap("gradients", "gradients", where, found.relative, before=True)


def _waiting(mine: Sequence[Waiting], theirs: Sequence[Waiting], at: str, trained: Collection[int]) -> Iterator[Gap]:
    others = {entry.made: entry for entry in theirs}
    for entry in mine:
        match = others.get(entry.made)
        if match is None or match.name != entry.name or entry.made in trained:
            continue
        what = f"gradients of {entry.name}, which has made no step"
        if entry.values.digest == match.values.digest:
            yield Gap(what, "waiting gradients", before=True)
            continue
        found = apart(entry.values, match.values)
        if found.place < 0 and found.relative == 0.0:
            yield Gap(what, "waiting gradients", before=True)
            continue
        alone = any(values.count == 0 for values in (entry.values, match.values))
        where = f"{what}, {at}: {'only one of the programs has any' if alone else _share(found.relative)}"
        yield Gap(what, "waiting gradients", where, found.relative, undecided=alone, before=True)


def _rates(mine: Rates, theirs: Rates, at: str) -> Gap:
    for group, (left, right) in enumerate(zip(mine, theirs, strict=False)):
        for name in left.keys() & right.keys():
            if left[name] != right[name] and not (math.isnan(left[name]) and math.isnan(right[name])):
                where = f"{name} of group {group} {at}: {left[name]:.9g} and {right[name]:.9g}"
                relative = abs(left[name] - right[name]) / max(abs(left[name]), abs(right[name]))
                # No tensor's rounding is in them, unless a loss decides.
                return Gap("learning rates", "learning rates", where, relative if relative <= TOTALS else math.inf)
    return Gap("learning rates", "learning rates")


def _values(
    what: str, mine: Values, theirs: Values, names: Sequence[str], others: Sequence[str], at: str, key: str = ""
) -> Gap:
    key = key or what
    if mine.digest == theirs.digest:
        return Gap(what, key)
    if mine.count != theirs.count or tuple(names) != tuple(others):
        return Gap(what, key, f"{what} {at}: {mine.count} values and {theirs.count}", math.inf)
    found = apart(mine, theirs)
    name = f" {names[found.place]}" if 0 <= found.place < len(names) else ""
    where = f"{what} {at}:{name} {_share(found.relative)}"
    return Gap(what, key, where, found.relative, distance=math.inf if math.isnan(found.distance) else found.distance)


def _generators(mine: str, theirs: str, at: str) -> Gap:
    where = "" if mine == theirs else f"the random generators are in another state {at}"
    return Gap("random generators", "random generators", where, math.inf if where else 0.0, random=True)


def _share(relative: float) -> str:
    return f"{relative:.2g} of its size" if math.isfinite(relative) else "more than its size"
