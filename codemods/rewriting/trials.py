"""The search for edits that hold together: make them, look again, and say which of them fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from codemods.analysis.analyse import Analysis
from codemods.checking.groups import Group
from codemods.checking.selecting import visible
from codemods.proofs.soundness import breaches
from codemods.rewriting.continuations import continuations
from codemods.rewriting.overlaps import text_of_group
from codemods.source.errors import SourceError
from codemods.source.files import digest_of
from codemods.source.line_map import LineMap
from codemods.source.syntax import parse
from codemods.terms.edits import Edit, EditError
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Position

if TYPE_CHECKING:
    from codemods.rewriting.apply import Work

# An attempt is an analysis of everything; this many corner a few bad edits among thousands.
MAX_ATTEMPTS = 40

# Of more than these, each with its finding still there, nobody need ask whether they only failed together.
FEW = 8

_WASTEFUL = (Promise.EXACT, Promise.EQUIVALENT)


class Editor(Protocol):
    """The call of :func:`codemods.edits.apply_edits`, for which tests put a fake."""

    def __call__(self, text: str, edits: Sequence[Edit], *, exported: Collection[str] = ()) -> str: ...


class Attempt(NamedTuple):
    """Some groups' edits made together. It holds if no group is to ``blame``; only the ``proven`` are so surely."""

    texts: Mapping[str, str]
    analysis: Analysis | None
    findings: Sequence[Finding]
    blame: Mapping[int, str]
    proven: frozenset[int]


class Trial:
    """The search for those of some groups, made on the texts of ``work``, whose edits hold together."""

    def __init__(self, work: Work, groups: Sequence[Group]) -> None:
        self.refused: dict[int, str] = {}
        self._work = work
        self._groups = groups
        self._memory: dict[frozenset[int], Attempt] = {}
        self._rewritten: dict[tuple[str, tuple[int, ...]], str | _Refusal] = {}
        self._maps: dict[tuple[str, str], LineMap] = {}
        self._zones: dict[int, list[tuple[str, Position, Position]]] = {}
        self._analyses = 0

    def solve(self, candidates: tuple[int, ...], context: tuple[int, ...]) -> tuple[int, ...]:
        """Return those of ``candidates`` that hold on top of ``context``, which holds; the others are refused."""
        if not candidates:
            return ()
        attempt = self.attempt(context + candidates)
        if not attempt.blame:
            return candidates
        if len(candidates) == 1:
            reason = attempt.blame.get(candidates[0]) or next(iter(attempt.blame.values()))
            self.refused[candidates[0]] = reason
            return ()
        suspects = tuple(index for index in candidates if index in attempt.blame)
        if 0 < len(suspects) < len(candidates):
            good = self.solve(tuple(index for index in candidates if index not in attempt.blame), context)
            if good:
                # No retry: with the others made there is another round, which tries these again.
                self.refused.update({index: attempt.blame[index] for index in suspects})
                return good
            return good + self.solve(suspects, context + good)
        if len(candidates) > FEW and attempt.proven.issuperset(candidates):
            self.refused.update({index: attempt.blame[index] for index in candidates})
            return ()
        middle = len(candidates) // 2
        good = self.solve(candidates[:middle], context)
        return good + self.solve(candidates[middle:], context + good)

    def attempt(self, indices: tuple[int, ...]) -> Attempt:
        """Make the edits of the groups ``indices`` together and judge the result."""
        key = frozenset(indices)
        if key not in self._memory:
            self._memory[key] = self._attempt(indices)
        return self._memory[key]

    def _attempt(self, indices: tuple[int, ...]) -> Attempt:
        texts, blame = self._edit(indices)
        if not blame and self._analyses >= MAX_ATTEMPTS:
            blame = dict.fromkeys(indices, "not proven: too many other edits had to be taken back")
        if blame:
            return Attempt(texts, None, (), blame, frozenset(blame) if len(blame) < len(indices) else frozenset())
        self._analyses += 1
        analysis = self._work.analyse(texts)
        findings = visible(analysis.findings, {**self._work.texts, **texts}, self._work.options)
        blame, proven = self._judge(indices, texts, analysis, findings)
        return Attempt(texts, analysis, findings, blame, proven)

    def _edit(self, indices: tuple[int, ...]) -> tuple[dict[str, str], dict[int, str]]:
        members: dict[str, list[int]] = defaultdict(list)
        for index in indices:
            for path in self._groups[index].edits:
                members[path].append(index)
        texts: dict[str, str] = {}
        blame: dict[int, str] = {}
        for path, group in members.items():
            outcome = self._rewrite(path, group)
            if isinstance(outcome, str):
                texts[path] = outcome
                continue
            alone = {index: self._rewrite(path, [index]) for index in group}
            bad = {index: result for index, result in alone.items() if not isinstance(result, str)}
            blame.update(
                {index: result.reason for index, result in bad.items()} or dict.fromkeys(group, outcome.reason)
            )
        return texts, blame

    def _rewrite(self, path: str, group: Sequence[int]) -> str | _Refusal:
        key = (path, tuple(group))
        if key not in self._rewritten:
            self._rewritten[key] = self._rewrite_anew(path, group)
        return self._rewritten[key]

    def _rewrite_anew(self, path: str, group: Sequence[int]) -> str | _Refusal:
        """Return the text of ``path`` with the edits of ``group``, or why there is none."""
        edits = list(dict.fromkeys(edit for index in group for edit in self._groups[index].edits[path]))
        source, text = self._work.sources[path], self._work.texts[path]
        try:
            new = self._work.edit(text, edits, exported=self._work.exports.of(source))
            parse(new, path)
            if digest_of(source.encode(source.text)) != source.digest:
                return _Refusal(f"{source.encoding} does not give back the bytes that were read")
            source.encode(new)
        except EditError as error:
            return _Refusal(f"the edit could not be made: {error}")
        except SourceError as error:
            return _Refusal(f"line {error.line} after the edit: {error.reason}")
        except Exception as error:  # an edit must not cost the other edits their chance, whatever is wrong with it
            return _Refusal(f"the edit failed: {type(error).__name__}: {error}")
        return new

    def _judge(
        self, indices: tuple[int, ...], texts: Mapping[str, str], analysis: Analysis, findings: Sequence[Finding]
    ) -> tuple[dict[int, str], frozenset[int]]:
        work = self._work
        owner = {place: index for index in indices for place in self._groups[index].indices}
        known = continuations(work.findings, findings, old=work.texts, new={**work.texts, **texts}, mended=owner.keys())
        blame: dict[int, str] = {}
        proven: set[int] = set()
        for finding, before in zip(findings, known, strict=True):
            if before is None and finding.rule in self._uncovered(finding.path, indices):
                continue
            if before is None and finding.promise is not Promise.ADVICE:
                culprits = self._touching(finding.path, indices)
                if finding.edits and finding.promise in _WASTEFUL:
                    culprits = tuple(index for index in culprits if not work.trusts(self._groups[index]))
                    if not culprits:
                        continue
                where = self._place(finding.path, finding.span.line, texts)
                reason = f"it causes a new finding, {finding.rule} in {where}"
            elif before in owner:
                culprits = (owner[before],)
                reason = "the finding is still there after the edit"
            else:
                continue
            blame.update(dict.fromkeys(culprits, reason))
            proven.update(culprits if len(culprits) == 1 else ())
        made = [work.findings[place] for place in owner]
        after = {**work.texts, **texts}
        for path, line, what in breaches(work.analysis.conduct, analysis.conduct, made, before=work.texts, after=after):
            where = self._place(path, line, texts)
            blame.update(dict.fromkeys(self._at(path, line, texts, indices), f"it would break {where}: {what}"))
            touching = self._touching(path, indices)
            proven.update(touching if len(touching) == 1 else ())
        unread = {entry.path for entry in work.analysis.skipped}
        for entry in analysis.skipped:
            if entry.path not in unread:
                reason = f"{entry.path} cannot be read any more: {entry.reason}"
                blame.update(dict.fromkeys(self._touching(entry.path, indices), reason))
        return blame, frozenset(proven)

    def _place(self, path: str, line: int, texts: Mapping[str, str]) -> str:
        if path not in self._work.sources:
            return f"line {line} of {path}"
        source = self._work.sources[path].rewritten({**self._work.texts, **texts}[path])
        place = source.place(line)
        return f"line {place.line} of {path if place.cell is None else f'cell {place.cell}'}"

    def _uncovered(self, path: str, indices: tuple[int, ...]) -> set[str]:
        """The rules whose findings in a file may come to light by the edits of these groups."""
        places = [place for index in self._touching(path, indices) for place in self._groups[index].indices]
        return {rule for place in places for rule in self._work.findings[place].uncovers}

    def _at(self, path: str, line: int, texts: Mapping[str, str], indices: tuple[int, ...]) -> tuple[int, ...]:
        """The groups whose edits changed a line of the new text; all that touch the file if none did."""
        touching = self._touching(path, indices)
        if path not in texts:
            return touching
        key = (path, texts[path])
        if key not in self._maps:
            self._maps[key] = LineMap(self._work.texts[path], texts[path])
        old = set(self._maps[key].origins(line))
        there = (
            index
            for index in touching
            if any(
                at == path and old.intersection(range(start[0], end[0] + 1)) for at, start, end in self._needs(index)
            )
        )
        return tuple(there) or touching

    def _needs(self, index: int) -> list[tuple[str, Position, Position]]:
        if index not in self._zones:
            self._zones[index] = text_of_group(self._groups[index])
        return self._zones[index]

    def _touching(self, path: str, indices: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(index for index in indices if path in self._groups[index].edits) or indices


class _Refusal(NamedTuple):
    reason: str
