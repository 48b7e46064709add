"""What a rule says about code: findings, their promises and the trail of the graph behind them.

Positions are those of the text, not of its bytes: lines count from 1, columns from 0 and in characters, ends are
exclusive. Reports add one to columns, as editors and compilers do.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from codemods.terms.spans import Span

if TYPE_CHECKING:
    from codemods.terms.edits import Edit


class ShownLine(NamedTuple):
    """Where a line of a text stands in its file, as people find it.

    Of a notebook ``cell`` counts all its cells from 1, code or not, and ``line`` counts from 1 in that cell; of any
    other file ``cell`` is None and ``line`` the line.
    """

    cell: int | None
    line: int

    def __str__(self) -> str:
        return f"{self.line}" if self.cell is None else f"cell {self.cell}:{self.line}"


class Promise(enum.Enum):
    """What a rewritten program does compared with the original, strongest first.

    ``exact`` makes the same parameter updates bit for bit; ``equivalent`` does the same mathematics with other
    rounding; ``repair`` does what was meant where the original raises or grows without bound; ``behaviour`` learns
    something else than an original that runs; ``advice`` is never applied.
    """

    EXACT = "exact"
    EQUIVALENT = "equivalent"
    REPAIR = "repair"
    BEHAVIOUR = "behaviour"
    ADVICE = "advice"

    @property
    def rank(self) -> int:
        """0 for the strongest promise; a pair of findings has the larger rank of the two."""
        return list(Promise).index(self)


class TrailStep(NamedTuple):
    """One station of a graph's life: where it was produced, carried, freed or used again."""

    path: str
    line: int
    note: str


@dataclass(frozen=True)
class Finding:
    """One mistake, at the statement that changes.

    ``edits`` are the changes that mend it, each with the path of the file that it changes (most often ``path`` itself);
    they are made together or not at all, and together with those of ``partners``, the findings (rule, path, line)
    that make sense only in company of this one. An ``advice`` has edits only where it is `likely`.
    """

    rule: str
    path: str
    span: Span
    promise: Promise
    message: str
    remedy: str = ""
    trail: tuple[TrailStep, ...] = ()
    edits: tuple[tuple[str, Edit], ...] = ()
    partners: tuple[tuple[str, str, int], ...] = ()
    opt_in: bool = field(default=False)
    uncovers: tuple[str, ...] = ()
    """Rules that may find something in the file once this is mended: what raised hid what is merely wasteful."""
    since: str = ""
    """The first PyTorch that understands the rewrite, where that is not any."""
    yields: bool = field(default=False)
    """Whether its edits wait where other findings change the same code: these may need what it takes away."""

    mends: tuple[tuple[tuple[str, int], tuple[str, int]], ...] = ()
    """The backwards, by path and line, that come too late now and must not any more, each with the line of the backward
    that freed what it needs, or of what changed it."""
    cuts: tuple[tuple[tuple[str, int] | None, tuple[str, int]], ...] = ()
    """The parameters, by path and line of where they were made, that a backward shall no longer come to, each with the
    path and line of that backward; None for all of them."""
    likely: Promise | None = None
    """Of an advice whose edits are right unless code that cannot be seen does something unusual: what they promise
    once a run has shown that it does not."""

    @property
    def key(self) -> tuple[str, str, int]:
        """What partners name: rule, path, line."""
        return (self.rule, self.path, self.span.line)

    def fixable(self, *, unsafe: bool) -> bool:
        """Whether ``apply`` would change it: never an advice, a ``behaviour`` only where ``unsafe`` is given."""
        if self.promise is Promise.ADVICE or not self.edits:
            return False
        return unsafe or self.promise is not Promise.BEHAVIOUR


def promoted(findings: Sequence[Finding]) -> list[Finding]:
    """Return ``findings``; those that are likely make their promise now, for whoever lets a run decide."""
    return [f if f.likely is None else replace(f, promise=f.likely) for f in findings]


def as_advice(findings: Sequence[Finding], why: Mapping[tuple[str, str, int], str]) -> list[Finding]:
    """Return ``findings``; those whose keys ``why`` has, and their partners, are never applied and say why, if that is
    given."""
    lost = dict(why)
    while True:
        more = {f.key: "" for f in findings if f.key not in lost and any(partner in lost for partner in f.partners)}
        if not more:
            break
        lost |= more
    return [
        replace(
            f,
            promise=Promise.ADVICE,
            message="; ".join(filter(None, (f.message, lost[f.key]))),
            edits=(),
            partners=(),
            mends=(),
            cuts=(),
            likely=None,
        )
        if f.key in lost and f.edits
        else f
        for f in findings
    ]


class Skipped(NamedTuple):
    """A file that could not be read or understood, or one ``cell`` of a notebook, in which ``line`` counts then;
    ``line`` is 0 where no line is to blame."""

    path: str
    line: int
    reason: str
    cell: int | None = None

    @property
    def place(self) -> str:
        """The path, with the cell and the line where there are any."""
        parts = [self.path, f"cell {self.cell}" if self.cell else "", str(self.line or "")]
        return ":".join(part for part in parts if part)


def in_order(finding: Finding) -> tuple[str, Span, str]:
    """By what findings are sorted where people read them."""
    return finding.path, finding.span, finding.rule


def capitalised(text: str) -> str:
    """``text`` with a capital first, unless it begins with code, which is never written otherwise than it is."""
    first = (text.split(maxsplit=1) or [""])[0].rstrip(".,:;)")
    return text if any(mark in first for mark in "_=.(`") else text[:1].upper() + text[1:]
