"""What two runs left besides losses and parameters: each comparison becomes a :class:`Gap`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest

from verify.comparing.distances import Training, apart, distance, length, ratio, same
from verify.comparing.gaps import LAST_DIGITS, Gap, alike, quoted, share, values_gap
from verify.comparing.numbers import TOTALS, read, unlike
from verify.comparing.written import changed, files, printed
from verify.measured.records import Output, Rates, Record, Step, Variables, Waiting
from verify.measured.steered import Observed


def of_step(
    mine: Step, theirs: Step, training: Training, trained: Collection[int] = (), number: int = 0
) -> Iterator[Gap]:
    """Compare gradients, learning rates, buffers and generators of a step.

    Gradients of one of ``trained``, which steps later, may be cleared before that: they are compared at its own steps.
    """
    yield from _gradients(mine, theirs, training, number)
    yield from _waiting(mine.waiting, theirs.waiting, f"at step {number}", trained)
    at = f"after step {number}"
    if mine.rates or theirs.rates:
        yield _rates(mine.rates, theirs.rates, f"{at} of {mine.name}")
    if mine.buffers is not None and theirs.buffers is not None:
        yield values_gap("buffers", mine.buffers, theirs.buffers, mine.buffer_names, theirs.buffer_names, at)
    if mine.rng and theirs.rng:
        yield _generators(mine.rng, theirs.rng, at)


def outputs(one: Record, other: Record) -> Iterator[Gap]:
    """What modules returned where no backward used it."""
    yield from _of_threads(one, other)
    theirs = {(output.line, output.call): output for output in other.outputs if not output.thread}
    for mine in one.outputs:
        match = theirs.get((mine.line, mine.call))
        alone = mine.form is not None and mine.site is not None
        where = f"output of call {mine.call} of the module at {mine.site or '?'}"
        if alone:
            where = f"what call {mine.call} of {mine.site.function} returned or left behind"  # type: ignore[union-attr]
        if match is None:
            continue
        yield _given("outputs of modules", "outputs", where, mine, match)


def _of_threads(one: Record, other: Record) -> Iterator[Gap]:
    """What modules returned to other threads than the main one, whose order is another one each time."""
    mine, theirs = (
        Counter((each.module, each.values.digest) for each in record.outputs if each.thread) for record in (one, other)
    )
    what, key = "outputs of modules in threads", "outputs in threads"
    if mine == theirs:
        yield from (Gap(what, key) for _ in mine)
    elif alike(one, other):
        where = f"what {next(iter(mine - theirs or theirs - mine))[0]} returns to other threads differs"
        yield Gap(what, key, where, math.inf, undecided=True)
    else:
        yield Gap(what, key, f"{what} differ", missing="the runs ended at different places")


def returned(one: Record, other: Record) -> Iterator[Gap]:
    """What functions returned that hold changes, call by call; what comes of a difference in it is unknown."""
    theirs = {(each.path, each.name, each.call): each for each in other.returned}
    for mine in one.returned:
        match = theirs.get((mine.path, mine.name, mine.call))
        if match is None:
            continue
        key, where = f"returned by {mine.name} of {mine.path}", f"what call {mine.call} of {mine.name} returns differs"
        unlike = _unlike(mine.form, match.form)
        if unlike:
            yield Gap("returned values", key, f"{where}: {unlike}", math.inf, undecided=True)
        elif mine.values.digest == match.values.digest:
            yield Gap("returned values", key)
        else:
            relative = apart(mine.values, match.values).relative
            digits, where = relative <= LAST_DIGITS, f"{where}: {share(relative)}"
            yield Gap("returned values", key, where, relative, digits=digits, undecided=not digits)


def observed(one: Record, other: Record) -> Iterator[Gap]:
    """The inputs of calls that were left out, and of modules that are missing: nothing else shows them."""
    theirs = {(each.place, each.call): each for each in other.observed}
    for mine in one.observed:
        what = f"what is given to {mine.called}"
        match = theirs.pop((mine.place, mine.call), None)
        if match is not None:
            yield _given(what, f"given to {mine.place}", f"{what}, call {mine.call}", mine, match)
        elif alike(one, other):
            yield Gap(what, f"given to {mine.place}", f"{what} is given less often", math.inf)
    for place, _ in theirs if alike(one, other) else ():
        yield Gap(f"what is given to {place}", f"given to {place}", f"{place} is given more, or more often", math.inf)


def _given(what: str, key: str, where: str, mine: Output | Observed, match: Output | Observed) -> Gap:
    unlike = _unlike(mine.form or (), match.form or ())
    if unlike:
        return Gap(what, key, f"{where}: {unlike}", math.inf)
    (carried, _, made), (others, _, instead) = mine.graphs.partition("|"), match.graphs.partition("|")
    if carried != others:
        text = f"{where}: one carries a graph, the other does not; whether that is needed no run shows"
        return Gap(what, key, text, math.inf, undecided=True)
    if not (mine.values.digest and match.values.digest):
        return Gap(what, key, missing="too large")
    if mine.values.digest != match.values.digest:
        relative = apart(mine.values, match.values).relative
        return Gap(what, key, f"{where}: {share(relative)}", relative, digits=relative <= LAST_DIGITS)
    if made != instead:
        text = f"{where}: what goes back into a made-up argument differs; whether it ever has a graph no run shows"
        return Gap(what, key, text, math.inf, undecided=True)
    return Gap(what, key)


def _unlike(one: tuple[str, ...], other: tuple[str, ...]) -> str:
    """The types of two values where they differ; a tensor of one number may become a number, as totals do."""
    for mine, theirs in zip_longest(one, other, fillvalue="nothing"):
        short, long = sorted((mine, theirs), key=len)
        if mine != theirs and not (short == "a number" and long.startswith("a number (")):
            return f"{mine} and {theirs}"
    return ""


def seeds(one: Record, other: Record) -> Iterator[Gap]:
    """What both would have seeded with by themselves.

    Values of an earlier run were replayed, so that nothing else shows a change; that may also be a slow clock's.
    """
    for place, (mine, theirs) in enumerate(zip(one.own_seeds, other.own_seeds, strict=False)):
        (generator, value), (match, instead) = mine, theirs
        if generator == match:
            where = f"it seeds {generator} with {value} and {instead}" if value != instead else ""
            yield Gap("seeds", f"seed {place} of {generator}", where, math.inf, undecided=True)


def at_the_end(one: Record, other: Record) -> Iterator[Gap]:
    """What was alive when the processes ended, where they ended at the same place."""
    mine, theirs = one.state, other.state
    if mine is None or theirs is None or not alike(one, other):
        return
    at = "at the end"
    yield from _waiting(mine.waiting, theirs.waiting, at, one.trained | other.trained)
    if mine.names and theirs.names:
        yield values_gap("parameters at the end", mine.parameters, theirs.parameters, mine.names, theirs.names, at)
    if mine.buffers is not None and theirs.buffers is not None:
        yield values_gap("buffers", mine.buffers, theirs.buffers, (), (), at)
    for left, right in zip(mine.rates, theirs.rates, strict=False):
        yield _rates(left, right, at)
    yield _generators(mine.rng, theirs.rng, at)


def variables(one: Record, other: Record) -> Iterator[Gap]:
    """The variables that both have at the end, and when functions return: what a difference leads to is unknown."""
    mine, theirs = one.variables, other.variables
    if mine is not None and theirs is not None and alike(one, other):
        yield Gap("variables", "variables")
        yield from _held(mine, theirs, "at the end")
    for (path, name, call), held in one.carried.items():
        match = other.carried.get((path, name, call))
        if match is not None:
            yield from _held(held, match, f"when call {call} of {name} returns")


def _held(mine: Variables, theirs: Variables, at: str) -> Iterator[Gap]:
    for name, number in mine.numbers.items():
        value = theirs.numbers.get(name)
        if value is not None and not same(number, value):
            yield _variable(at, name, f"{number:.9g} and {value:.9g}", ratio(number, value))
    yield from _variable_texts(mine, theirs, at)
    places = {name: place for place, name in enumerate(theirs.names)}
    ours, others = mine.tensors.rows(), theirs.tensors.rows()
    for row, name in zip(ours, mine.names, strict=True):
        if name in places:
            match = others[places[name]]
            gap, size = distance(row, match), max(length(row), length(match))
            if gap or math.isnan(gap):
                relative = gap / size if math.isfinite(gap) and size else math.inf
                yield _variable(at, name, share(relative), relative)


def _variable_texts(mine: Variables, theirs: Variables, at: str) -> Iterator[Gap]:
    """Texts that differ, and what is a text in only one of the programs."""
    for name, text in mine.texts.items():
        match = theirs.texts.get(name)
        if match is None:
            if name in theirs.numbers or name in theirs.names:
                yield _variable(at, name, f"{quoted(text)} and something else", math.inf)
        elif text != match:
            found = max((part.relative for part in unlike([text], [match])), default=0.0)
            if found > TOTALS or read(text)[:2] == read(match)[:2]:
                yield _variable(at, name, f"{quoted(text)} and {quoted(match)}", found)
    for name in theirs.texts.keys() - mine.texts.keys():
        if name in mine.numbers or name in mine.names:
            yield _variable(at, name, f"something else and {quoted(theirs.texts[name])}", math.inf)


def _variable(at: str, name: str, told: str, relative: float) -> Gap:
    kind = re.sub(r"\[\d+\]", "[*]", name)
    digits = relative <= LAST_DIGITS
    where = f"`{name}` differs {at}: {told}"
    return Gap(f"variable {kind}", f"variable {kind}", where, relative, digits=digits, undecided=not digits)


def afterwards(one: Record, other: Record) -> Iterator[Gap]:
    """Compare what can be compared only when both runs are over."""
    yield from outputs(one, other)
    yield from returned(one, other)
    yield from observed(one, other)
    yield from seeds(one, other)
    yield from at_the_end(one, other)
    yield from variables(one, other)
    yield from printed(one, other)
    yield from files(one, other)
    yield from changed(one, other)


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
    where = f"gradients before step {number} of {mine.name}: {which}{share(found.relative)}"
    yield Gap("gradients", "gradients", where, found.relative, before=True)


def _waiting(mine: Sequence[Waiting], theirs: Sequence[Waiting], at: str, trained: Collection[int]) -> Iterator[Gap]:
    others = {entry.made: entry for entry in theirs}
    for entry in mine:
        match = others.get(entry.made)
        if match is None or match.name != entry.name or entry.made in trained:
            continue
        what = f"gradients of {entry.name}, which has made no step"
        found = apart(entry.values, match.values)
        if entry.values.digest == match.values.digest or (found.place < 0 and found.relative == 0.0):
            yield Gap(what, "waiting gradients", before=True)
            continue
        alone = any(values.count == 0 for values in (entry.values, match.values))
        where = f"{what}, {at}: {'only one of the programs has any' if alone else share(found.relative)}"
        yield Gap(what, "waiting gradients", where, found.relative, undecided=alone, before=True)


def _rates(mine: Rates, theirs: Rates, at: str) -> Gap:
    for group, (left, right) in enumerate(zip(mine, theirs, strict=False)):
        for name in left.keys() & right.keys():
            if not same(left[name], right[name]):
                where = f"{name} of group {group} {at}: {left[name]:.9g} and {right[name]:.9g}"
                relative = ratio(left[name], right[name])
                # No tensor's rounding is in them, unless a loss decides.
                return Gap("learning rates", "learning rates", where, relative if relative <= TOTALS else math.inf)
    return Gap("learning rates", "learning rates")


def _generators(mine: str, theirs: str, at: str) -> Gap:
    where = "" if mine == theirs else f"the random generators are in another state {at}"
    return Gap("random generators", "random generators", where, math.inf if where else 0.0, random=True)
