"""What the rules know of a fault: the fewest of their rewrites that remove it, as a candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from codemods.rewriting.result import Mended
from codemods.source.files import SourceFile
from codemods.source.options import Options
from verify.diagnosis.model import Fault, Kind
from verify.fixing.clues import Candidate
from verify.fixing.repairs import Files
from verify.measured.results import Rewrite
from verify.measured.values import Site
from verify.running.rewriting import RuleRewriter

_SECOND, _CHANGED, _GROWING = Kind.SECOND_BACKWARD, Kind.CHANGED_IN_PLACE, Kind.GROWING_GRAPH
#: Rewrites that are tried one by one before all together, and those that are left out again one by one.
_ALONE = 2
_SPARED = 6
#: Ways that compute again what was stale.
_FRESH = frozenset({"rebuild", "afresh"})


class _Known(NamedTuple):
    """The faults that a rule's rewrites remove, and what they come to, of the ways of
    :class:`verify.fixing.clues.Candidate`."""

    kinds: tuple[Kind, ...]
    ways: tuple[str, ...] = ()


_RULES = {
    "carried-hidden-state": _Known((_SECOND, _CHANGED, _GROWING), ("cut",)),
    "stored-graph": _Known((_SECOND, _CHANGED, _GROWING), ("cut", "values")),
    "unreset-loss": _Known((_SECOND, _CHANGED, _GROWING), ("afresh",)),
    "attached-loss-history": _Known((_GROWING,), ("values",)),
    "attached-loss-total": _Known((_GROWING,), ("values",)),
    "hook-keeps-graph": _Known((_GROWING,), ("values",)),
    "step-outputs-kept": _Known((_GROWING,), ("values",)),
    "loop-invariant-graph": _Known((_SECOND, _CHANGED), ("rebuild",)),
    "repeated-backward": _Known((_SECOND,), ("sum",)),
    "backward-in-loss-loop": _Known((_SECOND,), ("sum",)),
    "step-between-backwards": _Known((_CHANGED,), ("later",)),
    "grad-in-evaluation": _Known((Kind.UNUSED_FORWARDS,), ("spare",)),
}


class Chosen(NamedTuple):
    """Some rewrites of the rules: a candidate without texts, its ways, and the files with them."""

    groups: tuple[Mended, ...]
    candidate: Candidate
    ways: frozenset[str]
    files: Files


class Ruled:
    """The rewrites that the rules would make in ``sources``, files of the tree at ``root``, likely ones included.

    ``made`` are the files that were changed before, as ``sources`` has them.
    """

    def __init__(self, sources: Sequence[SourceFile], options: Options, root: Path, made: Files) -> None:
        self.rewriter = RuleRewriter(sources, options, root=root, jobs=1)
        self._made = made

    def trials(self, fault: Fault) -> Iterator[Chosen]:
        """The sets of rewrites to try for ``fault``: of rules that mend such a fault the nearest to its lines, the next
        and all, then with those of all other rules, at last with what brings old code up to date."""
        lines = {(clue.site.path, clue.site.line) for clue in fault.clues if clue.site is not None}
        everything = sorted(self.rewriter.all().groups, key=lambda group: self._distance(group, lines))
        mending = [group for group in everything if any(fault.kind in _known(one.rule).kinds for one in group.findings)]
        telling = [group for group in everything if not is_style(group)]
        singles = [[group] for group in mending[:_ALONE]]
        for groups in dict.fromkeys(map(tuple, [*singles, mending, telling, everything])):
            chosen = self._chosen(groups) if groups else None
            if chosen is not None and chosen.files:
                # Some are made with others only.
                yield chosen

    def fewest(self, chosen: Chosen, helps: Callable[[Files], bool]) -> Chosen:
        """``chosen``, of which ``helps`` holds, without what it holds without."""
        groups = list(chosen.groups)
        for group in list(reversed(groups))[:_SPARED]:
            less = [each for each in groups if each is not group]
            if less and helps(self._files(less)):
                groups = less
        return self._chosen(groups)

    def at(self, stop: Site) -> Chosen | None:
        """What the rules mend at the line ``stop``, and what is wrong in the same words elsewhere; None for nothing."""
        everything = self.rewriter.all().groups
        there = {
            (one.rule, one.message)
            for group in everything
            if stop.line in {line for path, line in group.touched.before() if self.rewriter.relative(path) == stop.path}
            for one in group.findings
        }
        groups = [group for group in everything if any((one.rule, one.message) in there for one in group.findings)]
        chosen = self._chosen(groups) if groups else None
        return chosen if chosen is not None and chosen.files else None

    def besides(self) -> tuple[str, ...]:
        """All that is found, apart from what brings old code up to date: (rule at line)."""
        return tuple(self._title([group]) for group in self.rewriter.all().groups if not is_style(group))

    def _distance(self, group: Mended, lines: Iterable[tuple[str, int]]) -> int:
        """The lines between a finding and the next clue of its file."""
        found = [
            abs(line - one.span.line)
            for one in group.findings
            for path, line in lines
            if self.rewriter.relative(one.path) == path
        ]
        return min(found, default=1 << 30)

    def _chosen(self, groups: Sequence[Mended]) -> Chosen:
        findings = [one for group in groups for one in group.findings]
        meaning = "; ".join(dict.fromkeys(one.message for one in findings))
        ways = frozenset(way for one in findings for way in _known(one.rule).ways)
        known = all(finding.likely is None for finding in findings)
        candidate = Candidate(self._title(groups), meaning, {}, fresh=bool(ways & _FRESH), known=known)
        return Chosen(tuple(groups), candidate, ways, self._files(groups))

    def _files(self, groups: Iterable[Mended]) -> Files:
        """All that is changed with ``groups``; nothing where they cannot be made."""
        files = self.rewriter.some(group.key for group in groups).files
        return {**self._made, **files} if files else {}

    def _title(self, groups: Sequence[Mended]) -> str:
        places = [
            f"{one.rule} at {self.rewriter.all().place(one.path, one.span.line)}"
            for group in groups
            for one in group.findings
        ]
        return ", ".join(dict.fromkeys(places))


def _known(rule: str) -> _Known:
    return _RULES.get(rule, _Known(()))


def is_style(group: Mended | Rewrite) -> bool:
    """Whether all that a rewrite does is to bring old code up to date."""
    return all(one.rule.startswith("legacy-") for one in group.findings)
