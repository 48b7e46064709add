"""The verdict on a rewrite whose check is known: whether all that it changes ran, while there was something to
compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from codemods.rewriting.result import Mended
from codemods.terms.findings import Promise
from verify.judging.judge import Check
from verify.judging.programs import Tried, promise_of, steps_of
from verify.measured.results import Difference, Verdict

Place = TypeVar("Place")


def verdict_of(
    group: Mended,
    before: Tried | None,
    tried: Tried,
    result: Check,
    compared: int | None,
    unproved: str,
    place: Callable[[str, int], str],
) -> tuple[Verdict, str]:
    """The verdict on ``group`` and why; its lines must have run in ``tried``, and in ``before`` if there is one.

    ``compared``: after so many steps there was nothing to compare with. ``unproved`` says what it does of which no
    difference is no proof, ``place`` tells people a line.
    """
    if group.key not in tried.made:
        return Verdict.NOT_JUDGED, "the rewrite could not be made together with the others"
    if group.key not in tried.reached or (before is not None and group.key not in before.reached):
        return Verdict.NOT_REACHED, _idle(group, tried, place)
    if not result.held:
        return Verdict.NOT_JUDGED if result.held is None else Verdict.BROKEN, result.why
    missed = _missed(group, before, tried, compared) or result.unseen
    if missed:
        return Verdict.PARTLY_REACHED, f"{missed}; else {result.why}"
    if unproved and before is not None and promise_of(group) in (Promise.EXACT, Promise.EQUIVALENT):
        same = result.comparison.difference is Difference.IDENTICAL
        how = "here that made no difference" if same else "that is no rounding"
        return Verdict.NOT_JUDGED, f"{result.why}, but what is changed is {unproved}, and {how}"
    return Verdict.KEPT, result.why


def _missed(group: Mended, before: Tried | None, tried: Tried, compared: int | None) -> str:
    """Say which statements that ``group`` changes did not run during the comparison.

    Of a rule's rewrite, and of one that has a known form, it is known what it means: behind the end of the original it
    is enough that it ran.
    """
    if not group.touched.whole or group.touched.meant:
        compared = None
    steps = min((steps_of(each.run) for each in (before, tried) if each is not None), default=0)
    # What runs after the last step belongs to it, unless the program went on to steps without a counterpart.
    last = steps - (steps_of(tried.run) > steps) if compared is None else compared
    path = next(iter(group.touched.before()), ("", 0))[0]
    told = ""
    for each, title in ((tried, ""), (before, "as it was, ")):
        if each is not None and not told:
            lines = [f"line {line}" for _, line in sorted(_late(each.statements.get(group.key, {}), steps, last))]
            parts = sorted(_late(each.parts.get(group.key, {}), steps, last))
            missed = [*lines, *(str(part) for part in parts if f"line {part.line}" not in lines)]
            told = f"{title}{', '.join(missed)} of {path}" if missed else ""
    if not told:
        return ""
    if compared is not None:
        return f"{told} did not run before the end of the original, so nothing is known of it"
    return f"not all that it changes ran within the steps that were compared: {told}"


def _idle(group: Mended, tried: Tried, place: Callable[[str, int], str]) -> str:
    lines = sorted(group.touched.before())
    where = place(*lines[0]) if lines else "its lines"
    if group.key in tried.reached:
        return f"the program without it did not come to {where}, so there is nothing to compare with"
    return f"{where} never ran within these steps; more --steps or other arguments may reach it"


def _late(places: Mapping[Place, int | None], steps: int, last: int) -> list[Place]:
    """Return those of ``places`` that did not run, or only after ``last`` of ``steps``."""
    return [place for place, after in places.items() if after is None or (steps and after > last)]
