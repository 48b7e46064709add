"""An ``apply`` as a row of commits: which changes go into one, in which order, and that each can be reverted alone.

Two changes go together, whatever style was asked for, where one cannot be undone without the other: they share a hunk,
or git would meet a conflict because nothing stands between them. That is tried, with git's own merge, on every file
that several commits change.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from codemods.checking.check import Analyser
from codemods.checking.selecting import translations, visible
from codemods.proofs.soundness import Conduct, breaches
from codemods.rewriting.changes import Change, Hunk, Key, Proof, Review, needed, patched, review
from codemods.rewriting.continuations import continuations
from codemods.rewriting.result import ApplyResult
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.source.syntax import parse
from codemods.terms.clusters import connected_groups
from codemods.terms.findings import Finding, Promise

#: Returns how git merges (ours, base, theirs), None for a conflict.
Merge = Callable[[bytes, bytes, bytes], bytes | None]


class Part(NamedTuple):
    """One commit to be: its changes, the files that it translates from Python 2, and all files as they are after it."""

    changes: tuple[Change, ...]
    translated: tuple[str, ...]
    texts: Mapping[str, str]
    tied: bool
    """Whether it holds changes of several rules or files because they cannot be told apart."""

    @property
    def promise(self) -> Promise:
        """The weakest promise of its changes."""
        return max((change.promise for change in self.changes), key=lambda each: each.rank, default=Promise.EXACT)


class Looking(NamedTuple):
    """What an analysis of the stages in between needs: all files, as for ``apply``."""

    targets: Sequence[SourceFile]
    options: Options
    analyse: Analyser
    jobs: int | None = None


def partition(
    result: ApplyResult,
    style: str,
    *,
    merge: Merge,
    looking: Looking | None = None,
    proofs: Mapping[Key, Proof] | None = None,
) -> tuple[Part, ...]:
    """Return ``result`` as commits in a ``style`` of :data:`codemods.source.options.STYLES`, strongest promises first.

    After each of them every file parses that did before, and (with ``looking``) its findings are gone and none is new;
    each of them can be reverted while the others stay. What does not hold that is joined until it does.
    """
    work = _Work(result, review(result, proofs), style)
    while (tie := work.problem(merge) or (work.unsound(looking) if looking else None)) is not None:
        work.tie(tie)
    return tuple(work.parts())


class _Work:
    """The numbers of changes, and behind them those of translated files, in groups that stay together."""

    def __init__(self, result: ApplyResult, found: Review, style: str) -> None:
        self._result = result
        self._found = found
        self._style = style
        self._sources = {rewrite.source.path: rewrite.source for rewrite in result.rewrites}
        self._final = {rewrite.source.path: rewrite.new for rewrite in result.rewrites}
        self._translated = {rewrite.source.path: rewrite.new for rewrite in result.translations}
        self._paths = [path for path in self._translated if path in self._final]
        self._ties: list[Sequence[int]] = [hunk.changes for hunk in found.hunks]
        self._ties += needed(found.changes)
        self._ties += [(*one.changes[:1], *other.changes[:1]) for one, other in self._neighbours()]
        self._proven: set[tuple[int, ...]] = set()
        self._before: tuple[list[Finding], Conduct] | None = None
        self._of_path: dict[str, list[Hunk]] = defaultdict(list)
        self._paths_by_number: dict[int, list[str]] = defaultdict(list)
        for hunk in found.hunks:
            self._of_path[hunk.path].append(hunk)
            for number in hunk.changes:
                if hunk.path not in self._paths_by_number[number]:
                    self._paths_by_number[number].append(hunk.path)
        self._merged: set[tuple[str, frozenset[int], frozenset[int]]] = set()
        self._numbers = self._arranged()

    def _neighbours(self) -> list[tuple[Hunk, Hunk]]:
        """Pairs of hunks without an unchanged line between them: to git that is one change."""
        hunks = self._found.hunks
        return [
            (one, other)
            for one, other in itertools.pairwise(hunks)
            if one.path == other.path and other.old_start <= one.old_start + len(one.removed)
        ]

    def tie(self, numbers: Sequence[int]) -> None:
        """Keep ``numbers`` together from now on."""
        self._ties.append(numbers)
        self._numbers = self._arranged()

    def _arranged(self) -> list[tuple[int, ...]]:
        count = len(self._found.changes) + len(self._paths)
        if not count:
            return []
        groups = connected_groups(count, self._ties)
        if self._style == "one":
            return [tuple(range(count))]
        if self._style == "per-file":
            owners: dict[str, int] = {}
            ties = list(self._ties)
            for number in range(count):
                ties += [(owners.setdefault(path, number), number) for path in self._paths_of(number)]
            groups = connected_groups(count, ties)
        else:
            by_rules: dict[frozenset[str], list[int]] = {}
            for group in groups:
                by_rules.setdefault(frozenset(map(self._rule_of, group)), []).extend(group)
            groups = [tuple(sorted(group)) for group in by_rules.values()]
        return sorted(groups, key=self._order)

    def _order(self, group: tuple[int, ...]) -> tuple[int, int, str]:
        # A translation makes the text that all other hunks of its file count in.
        changes = [self._found.changes[number] for number in group if number < len(self._found.changes)]
        weakest = max((change.promise.rank for change in changes), default=0)
        named = self._rule_of(group[0]) if self._style == "per-rule" else self._paths_of(group[0])[0]
        return (0 if len(changes) < len(group) else 1), weakest, named

    def _rule_of(self, number: int) -> str:
        changes = self._found.changes
        return changes[number].rule if number < len(changes) else "python2"

    def _paths_of(self, number: int) -> list[str]:
        if number >= len(self._found.changes):
            return [self._paths[number - len(self._found.changes)]]
        return self._paths_by_number.get(number) or [self._found.changes[number].finding.path]

    # ------------------------------------------------------------------------------------------------------------------
    # the stages

    def _text(self, path: str, made: set[int]) -> str:
        """The text of ``path`` with what is ``made``, and nothing else."""
        source = self._sources[path]
        if path in self._translated and len(self._found.changes) + self._paths.index(path) not in made:
            return source.text
        hunks = [hunk for hunk in self._of_path[path] if made.issuperset(hunk.changes)]
        return patched(self._translated.get(path, source.text), hunks)

    def _stages(self) -> list[tuple[tuple[int, ...], list[str], set[int], set[int]]]:
        """For each part: its numbers, its files, what is made before it and after it."""
        stages, made = [], set[int]()
        for group in self._numbers:
            before, made = made, made | set(group)
            paths = list(dict.fromkeys(path for number in group for path in self._paths_of(number)))
            stages.append((group, paths, before, made))
        return stages

    def parts(self) -> list[Part]:
        """Return the parts as they are arranged by now."""
        count = len(self._found.changes)
        parts = []
        for group, paths, _, after in self._stages():
            changes = tuple(self._found.changes[number] for number in group if number < count)
            translated = tuple(self._paths[number - count] for number in group if number >= count)
            texts = {path: self._text(path, after) for path in sorted(paths)}
            kinds = {self._rule_of(number) for number in group} if self._style == "per-rule" else set(paths)
            parts.append(Part(changes, translated, texts, len(kinds) > 1 and self._style != "one"))
        return parts

    # ------------------------------------------------------------------------------------------------------------------
    # what must hold

    def problem(self, merge: Merge) -> tuple[int, ...] | None:
        """Return numbers that have to be tied together because a part cannot stand, or go, alone."""
        stages = self._stages()
        everything = set().union(*(group for group, *_ in stages)) if stages else set()
        for group, paths, before, after in stages:
            for path in paths:
                own = frozenset(number for number in group if path in self._paths_of(number))
                others = [number for number in sorted(everything.difference(group)) if path in self._paths_of(number)]
                known = (path, own, frozenset(before.intersection(others)))
                if not others or known in self._merged:
                    continue
                now = self._text(path, after)
                without = self._text(path, everything - set(group))
                if not self._parses(path, now) or not self._parses(path, without):
                    return self._nearest(path, group, others)
                encode = self._sources[path].encode
                final, then = encode(self._final[path]), encode(self._text(path, before))
                undone = merge(final, encode(now), then)
                # Without its translation a file is Python 2, whatever else was changed in it; only a conflict counts.
                translation = any(number >= len(self._found.changes) for number in own)
                if undone is None or (not translation and undone != encode(without)):
                    return self._nearest(path, group, others)
                self._merged.add(known)
        return None

    def _parses(self, path: str, text: str) -> bool:
        """Whether ``text`` parses, or the file did not as it was read."""
        try:
            parse(text, path)
        except SourceError:
            try:
                parse(self._sources[path].text, path)
            except SourceError:
                return True
            return False
        return True

    def _nearest(self, path: str, group: Sequence[int], others: Sequence[int]) -> tuple[int, ...]:
        """Return a number of ``group`` and one of ``others`` whose hunks in ``path`` lie nearest to each other."""
        mine = [hunk for hunk in self._of_path[path] if set(group) & set(hunk.changes)]
        theirs = [hunk for hunk in self._of_path[path] if set(others) & set(hunk.changes)]
        pairs = [
            (abs(one.old_start - other.old_start), one.changes[0], other.changes[0]) for one in mine for other in theirs
        ]
        if pairs:
            return min(pairs)[1:]
        # One of the two is the translation, which touches everything.
        return (next(n for n in group if path in self._paths_of(n)), others[0])

    def unsound(self, looking: Looking) -> tuple[int, ...] | None:
        """Return numbers to tie because after a part its findings are still there, or there are new ones."""
        base = {one.source.path: one.text for one in translations(looking.targets, looking.options)}
        old = {source.path: source.text for source in looking.targets} | base
        if self._before is None and len(self._numbers) > 1:
            self._before = self._seen(looking, old)
        stages = self._stages()
        for place, (group, _, _, after) in enumerate(stages[:-1]):
            known = tuple(sorted(after))
            if known in self._proven:
                continue
            if not self._sound(looking, old, after):
                return (*group, *stages[place + 1][0])
            self._proven.add(known)
        return None

    def _sound(self, looking: Looking, old: Mapping[str, str], made: set[int]) -> bool:
        new = {**old, **{path: self._text(path, made) for path in self._final if path in old}}
        if any(path in self._translated and text == self._sources[path].text for path, text in new.items()):
            # A file that is still Python 2 is translated before it is looked at.
            new = {path: old[path] if path in self._translated else text for path, text in new.items()}
        assert self._before is not None
        known, conduct = self._before
        changes = self._found.changes
        gone = {f.key for number in made if number < len(changes) for f in changes[number].findings}
        fixed = {(finding.rule, finding.path) for finding in self._result.fixed}
        mended = [place for place, finding in enumerate(known) if finding.key in gone]
        findings, then = self._seen(looking, new)
        # what is not made yet mends nothing yet
        fixes = [one if one.key in gone else replace(one, mends=()) for one in self._result.fixed]
        if breaches(conduct, then, fixes, before=old, after=new):
            return False
        origins = continuations(known, findings, old=old, new=new, mended=mended)
        uncovered = {(rule, one.path) for change in changes for one in change.findings for rule in one.uncovers}
        for finding, origin in zip(findings, origins, strict=True):
            if origin in mended:
                return False
            fresh = origin is None and finding.promise is not Promise.ADVICE
            if fresh and (finding.rule, finding.path) not in fixed | uncovered:
                return False
        return True

    @staticmethod
    def _seen(looking: Looking, texts: Mapping[str, str]) -> tuple[list[Finding], Conduct]:
        overlay = {source.path: texts[source.path] for source in looking.targets}
        changed: dict[str, Any] = {
            source.path: overlay[source.path] for source in looking.targets if overlay[source.path] != source.text
        }
        analysis = looking.analyse(looking.targets, options=looking.options, jobs=looking.jobs, overlay=changed or None)
        return visible(analysis.findings, texts, looking.options), analysis.conduct
