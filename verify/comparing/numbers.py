"""Numbers in texts of two runs: what is printed, and what is written to text files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from verify.comparing.distances import ratio

#: What an ``exact`` promise allows of totals: a sum of rounded numbers is rounded elsewhere when it is made of others.
TOTALS = 1e-5
#: The places of a number in a tensor's text.
_PLACES = 4
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)(?![\w.]*\w)")
#: Times and sizes: what follows such a number, and forms that only clocks and calendars have.
_UNIT = re.compile(
    r"\s?(?:[numµ]?s|secs?|seconds?|mins?|minutes?|m|h|hours?|it/s|s/it|fps|/s|\w+/s|\w+/sec|[KMGT]i?B|bytes|B)\b"
)
#: tqdm tells a rate below one a second the other way round: https://tqdm.github.io/docs/tqdm/ (``rate_inv_fmt``).
_SLOW = re.compile(r"(?<=\d)s/([A-Za-z]+)\b")
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}(?::\d\d){1,2}(?:[.,]\d+)?|\d+%\|")
#: What a tensor's text has around its numbers; without a graph it has not.
_TENSOR = re.compile(
    r",?\s*(?:grad_fn=<[^>]*>|requires_grad=True|dtype=[\w.]+|device='[^']*')"
    r"|\btensor\b|\b0x[0-9a-fA-F]+\b|\bParameter containing:?"
)
#: How far a progress bar of tqdm is, and of how much: ``3/10 [00:01<00:02, 3.10it/s, loss=0.2]``, ``3it [00:01, ...]``.
_BAR = re.compile(r"\b(\d+)(?:/(\d+)|\w+) \[\d+:\d\d")
_WORD = re.compile(r"[^\W\d_]+")
#: Names that contain digits; some are a time or a size.
_NAME = re.compile(r"\w*\d[\w.]*")
_MEASURED = re.compile(rf"[\d.]+(?:{_UNIT.pattern})")
#: What is no mark: a tensor has brackets around its number, what item() gives has none.
_UNMARKED = re.compile(r"[\w\s().+-]+")


class Number(NamedTuple):
    """A number in a text: ``unit`` is one in its last place."""

    value: float
    unit: float
    text: str

    @property
    def form(self) -> str:
        """How a whole number is written, with its zeros; empty for others, of which a tensor shows other digits."""
        return self.text if self.text.lstrip("+-").isdigit() else ""


class Line(NamedTuple):
    """The words of a line, its numbers except times and sizes, and the ``marks`` between them with the names that
    contain digits; None where a time or a size stood among them."""

    words: str
    numbers: tuple[Number, ...]
    marks: str | None


class Unlike(NamedTuple):
    """Where two texts differ: at the ``place``-th number of a line with these words, or (-1) in what is said at all.

    ``whole``: both are whole numbers, which may be counts or may have been rounded. ``marks``: the marks between the
    numbers differ, or the form of a number (``5`` and ``5.0``, ``05``), or one may be the other with fewer places.
    """

    words: str
    place: int
    told: str
    relative: float
    whole: bool = False
    marks: bool = False

    @property
    def digits(self) -> bool:
        """Whether only the last digits differ."""
        return self.relative <= TOTALS


def read(text: str) -> Line:
    """Split a line into words, numbers and marks."""
    plain = _SLOW.sub(r"\1/s", _CLOCK.sub(" ", _TENSOR.sub(" ", text)))
    found = list(_NUMBER.finditer(plain))
    numbers = [_number(match.group()) for match in found if not _UNIT.match(plain, match.end())]
    rest = _NUMBER.sub(" ", plain)
    names = _NAME.findall(rest)
    measured = len(numbers) < len(found) or any(_MEASURED.fullmatch(name) for name in names)
    marks = None if measured or _CLOCK.search(text) else " ".join((_UNMARKED.sub("", rest), *names))
    return Line(" ".join(_WORD.findall(rest)), tuple(numbers), marks)


def unlike(mine: Sequence[str], theirs: Sequence[str]) -> Iterator[Unlike]:
    """Where two texts differ, as far as both go; after lines that say something else nothing is compared.

    A progress bar is shown when the clock says so. It is compared where both texts show it at the same place, as it was
    shown there last; which bar is which may be a mistake, so that such a difference is one of marks.
    """
    (left, shown), (right, others) = _apart(mine), _apart(theirs)
    yield from _unlike_lines(left, right)
    for words, end in _ends(shown).items():
        if _ends(others).get(words, end) != end:
            yield Unlike(words, -1, f"progress bars that end at {end} and {_ends(others)[words]}", math.inf, marks=True)
    for place in sorted(shown.keys() & others.keys()):
        for found in _unlike_lines([shown[place]], [others[place]]):
            yield found._replace(marks=True)


def lasting(lines: Sequence[str]) -> int:
    """How many lines show no progress bar."""
    return sum(_BAR.search(line) is None for line in lines)


def _apart(lines: Sequence[str]) -> tuple[list[str], dict[tuple[str, str, int, int], str]]:
    """The lines that show no progress bar, and those that show one: by its words, its end, how many such there were
    before it, and how far it is."""
    rest: list[str] = []
    shown: dict[tuple[str, str, int, int], str] = {}
    at: dict[tuple[str, str], tuple[int, int]] = {}
    for line in lines:
        bar = _BAR.search(line)
        if bar is None:
            rest.append(line)
            continue
        which = read(line).words, bar[2] or ""
        number, far = at.get(which, (0, 0))
        now = int(bar[1])
        number += now < far
        at[which] = number, now
        shown[which[0], which[1], number, now] = line
    return rest, shown


def _ends(shown: Iterable[tuple[str, str, int, int]]) -> dict[str, str]:
    """Where the bars with these words end, of words with one end."""
    ends: dict[str, set[str]] = {}
    for words, end, *_ in shown:
        ends.setdefault(words, set()).add(end)
    return {words: next(iter(found)) for words, found in ends.items() if len(found) == 1}


def _unlike_lines(mine: Sequence[str], theirs: Sequence[str]) -> Iterator[Unlike]:
    for one, other in zip(mine, theirs, strict=False):
        if one == other:
            continue
        left, right = read(one), read(other)
        if left.words != right.words or len(left.numbers) != len(right.numbers):
            yield Unlike(left.words, -1, f"{one.strip()[:60]!r} and {other.strip()[:60]!r}", math.inf)
            return
        if left.marks != right.marks and None not in (left.marks, right.marks):
            yield Unlike(left.words, -1, f"{one.strip()[:60]!r} and {other.strip()[:60]!r}", math.inf, marks=True)
        for place, (a, b) in enumerate(zip(left.numbers, right.numbers, strict=True)):
            relative, told = ratio(a.value, b.value), f"{a.text} and {b.text} in {one.strip()[:60]!r}"
            rounded = _rounded(a, b)
            if rounded and _as_tensors_are(a, b):
                continue
            if (rounded and relative > TOTALS) or (a.value == b.value and a.form != b.form):
                yield Unlike(left.words, place, told, math.inf, marks=True)
            elif relative:
                yield Unlike(left.words, place, told, relative, not (a.unit or b.unit))


def _number(text: str) -> Number:
    value = float(text)
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2]) if "." in mantissa else 0
    power = (int(exponent) if exponent else 0) - decimals
    whole = "." not in text and not exponent
    return Number(value, 0.0 if whole or not math.isfinite(value) else 10.0**power, text)


def _rounded(one: Number, other: Number) -> bool:
    """Whether one may be the other printed with fewer places; 0.6 may also be another number than 0.5625."""
    gap = abs(one.value - other.value)
    return one.unit != other.unit and min(one.unit, other.unit) > 0 and gap <= 0.501 * max(one.unit, other.unit)


def _as_tensors_are(one: Number, other: Number) -> bool:
    """Whether the shorter has the four places that a tensor is printed with; what ``item`` gives has all."""
    shorter = max(one, other, key=lambda number: number.unit)
    return len(shorter.text.lower().partition("e")[0].partition(".")[2]) >= _PLACES
