"""From findings to rewritten files: make the edits, look again, take back what does not hold.

An edit is believed only after the analysis has run again on the text that it made: the finding must be gone and nothing
new may stand there. One that fails is taken back and named as a failure of ours; the others go on. Rounds follow each
other until nothing changes, because one edit may wait for another that touches the same code. Files are written at the
very end, so that whatever goes wrong before leaves the tree as it was.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from codemods.analysis import Analysis, analyse
from codemods.check import (
    Analyser,
    Group,
    Progress,
    Reported,
    broken_cells,
    counted,
    group_findings,
    judge,
    placed,
    translations,
    visible,
)
from codemods.diffs import coloured, unified
from codemods.edits.model import (
    AddDecorator,
    AddHelper,
    DropArgument,
    Edit,
    EditError,
    InsertStatements,
    KeepPart,
    MoveStatement,
    RemoveStatement,
    RenameArgument,
    ReplaceExpression,
    WrapBlock,
    WrapExpression,
)
from codemods.exports import Exports
from codemods.findings import Finding, Promise, Skipped, Span
from codemods.options import Options
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, digest_of, read_source
from codemods.source.syntax import parse
from codemods.source.writing import write_atomically
from codemods.touched import Touched, touched_by
from codemods.tracking import LineMap, continuations

MAX_ROUNDS = 10
# An attempt is an analysis of everything; this many corner a few bad edits among thousands.
MAX_ATTEMPTS = 40
# Of more than these, each with its finding still there, nobody need ask whether they only failed together.
FEW = 8

Position = tuple[int, int]
Wanted = Callable[[tuple[Finding, ...]], bool]


class Editor(Protocol):
    """The call of :func:`codemods.edits.apply_edits`, for which tests put a fake."""

    def __call__(self, text: str, edits: Sequence[Edit], *, exported: Collection[str] = ()) -> str: ...


class Failure(NamedTuple):
    """An edit of ours that had to be taken back: the finding it should have mended, and why it did not."""

    rule: str
    path: str
    line: int
    reason: str


class Dropped(NamedTuple):
    """A rewrite that was not made because ``verify`` did not see its promise kept: the verdict, and why."""

    rule: str
    path: str
    line: int
    verdict: str
    why: str


class Rewrite(NamedTuple):
    """One file, as it was read, and its new text."""

    source: SourceFile
    new: str

    @property
    def encoded(self) -> bytes:
        """The new text as the bytes that the file will hold."""
        return self.source.encode(self.new)


class Mended(NamedTuple):
    """Findings that were mended together, and the lines that this touches, both in the files as they were read."""

    findings: tuple[Finding, ...]
    touched: Touched

    @property
    def key(self) -> frozenset[tuple[str, str, int]]:
        """What tells it from the others, in this call of ``apply`` and in one that makes fewer rewrites."""
        return frozenset(finding.key for finding in self.findings)


@dataclass(frozen=True)
class ApplyResult:
    """What ``apply`` did, or with ``dry_run`` would do.

    ``fixed`` and ``failures`` stand at their lines in the files as they were read; ``remaining`` at those of the files
    as they are afterwards, which for a dry run are the same. ``translations`` are files of Python 2 as they were
    translated before anything else; they are among the ``rewrites`` too. ``unwritten`` are files whose rewrite could
    not be saved.
    ``mended`` are those ``fixed`` that were not ``unwritten``, in the groups that were made together or not at all;
    ``dropped`` those that were left because ``verify`` did not see them kept.
    """

    files: int
    rewrites: tuple[Rewrite, ...]
    fixed: tuple[Finding, ...]
    remaining: tuple[Reported, ...]
    skipped: tuple[Skipped, ...]
    failures: tuple[Failure, ...]
    unwritten: tuple[Skipped, ...]
    notes: tuple[str, ...]
    dry_run: bool
    mended: tuple[Mended, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    translations: tuple[Rewrite, ...] = ()
    sources: tuple[SourceFile, ...] = ()
    """The files looked at, as they were read."""
    postponed: tuple[Finding, ...] = ()
    """What a limit on the size of this run left for the next; see :func:`codemods.portions.apply_some`."""

    def diff(self) -> bytes:
        """Return what was changed as ``git apply`` and ``patch -p1`` take it, in the encodings of the files."""
        return b"".join(
            unified(source.path, source.encode(old), source.encode(new)) for source, old, new in self._stages()
        )

    def coloured_diff(self) -> str:
        """Return what was changed for a terminal: of notebooks the Python of each cell, not the JSON of the file."""
        return "".join(coloured(*shown) for source, old, new in self._stages() for shown in source.shown(old, new))

    def _stages(self) -> Iterator[tuple[SourceFile, str, str]]:
        """Each change with the text before and after it: translations come first, each as a change of its own."""
        translated = {source.path: new for source, new in self.translations}
        for source, new in self.translations:
            yield source, source.text, new
        for source, new in self.rewrites:
            old = translated.get(source.path, source.text)
            if new != old:
                yield source, old, new


def apply(
    targets: Sequence[SourceFile],
    *,
    options: Options,
    dry_run: bool = False,
    jobs: int | None = None,
    skipped: Sequence[Skipped] = (),
    progress: Progress | None = None,
    analyse: Analyser = analyse,
    editor: Editor | None = None,
    wanted: Wanted | None = None,
) -> ApplyResult:
    """Mend what can be mended in ``targets`` and write the files, unless ``dry_run``.

    ``skipped`` are files that could not even be read; they are passed on. ``wanted`` is asked about findings that are
    mended together, at their lines in the files as they were read; those for which it says False stay as they are.
    Raises nothing for a file of the user: what cannot be parsed, edited or written is in the result.
    """
    work = _Work(targets, options, jobs, progress, analyse, editor or _apply_edits, wanted)
    work.run()
    return work.finish(tuple(skipped), dry_run)


def write(result: ApplyResult) -> ApplyResult:
    """Write what a dry run left unwritten; the result is then that of an ``apply`` which was none.

    For those who look at what would be done before it is done. Raises nothing for a file of the user.
    """
    linked = [frozenset(path for f in one.findings for path, _ in f.edits) for one in result.mended]
    unwritten = write_linked(result.rewrites, linked)
    lost = {entry.path for entry in unwritten}
    rewrites = tuple(rewrite for rewrite in result.rewrites if rewrite.source.path not in lost)
    lines = {source.path: LineMap(new, source.text) for source, new in rewrites}
    remaining = (one._replace(finding=at_line(one.finding, lines)) for one in result.remaining)
    return replace(
        result,
        rewrites=rewrites,
        fixed=tuple(finding for finding in result.fixed if finding.path not in lost),
        mended=tuple(one for one in result.mended if lost.isdisjoint(f.path for f in one.findings)),
        remaining=tuple(remaining),
        unwritten=tuple(unwritten),
        dry_run=False,
    )


def at_line(finding: Finding, lines: Mapping[str, LineMap]) -> Finding:
    """Return ``finding`` at the line that the map of its file gives for it."""
    if finding.path not in lines:
        return finding
    line, column, end_line, end_column = finding.span
    moved = lines[finding.path].origin(line)
    return replace(finding, span=Span(moved, column, moved + end_line - line, end_column))


def _apply_edits(text: str, edits: Sequence[Edit], *, exported: Collection[str] = ()) -> str:
    # libcst takes a moment to load, and most trees have nothing to edit.
    from codemods.edits import apply_edits

    return apply_edits(text, edits, exported=exported)


class _Attempt(NamedTuple):
    """Some groups' edits made together. It holds if no group is to ``blame``; only the ``proven`` are so surely."""

    texts: Mapping[str, str]
    analysis: Analysis | None
    findings: Sequence[Finding]
    blame: Mapping[int, str]
    proven: frozenset[int]


class _Work:
    """One call of ``apply``: the texts as they are by now, and what has been found in them."""

    def __init__(
        self,
        targets: Sequence[SourceFile],
        options: Options,
        jobs: int | None,
        progress: Progress | None,
        analyser: Analyser,
        editor: Editor,
        wanted: Wanted | None,
    ) -> None:
        self.targets = list(targets)
        self.sources = {source.path: source for source in targets}
        self.options = options
        self.edit = editor
        self.exports = Exports(targets)
        self.texts = {path: source.text for path, source in self.sources.items()}
        self.translations = translations(targets, options)
        self.texts.update({one.source.path: one.text for one in self.translations})
        self._analyser = analyser
        self._jobs = jobs
        self._progress = progress
        self._wanted = wanted
        self._mended: list[Mended] = []
        self._fixed: list[Finding] = []
        self._failures: list[Failure] = []
        self._linked: list[frozenset[str]] = []
        self._notes: list[str] = []
        self._maps: dict[str, tuple[str, LineMap]] = {}
        self.analysis = self.analyse({})
        self.findings: Sequence[Finding] = visible(self.analysis.findings, self.texts, options)

    def analyse(self, changed: Mapping[str, str]) -> Analysis:
        """Analyse all targets, with the texts of ``changed`` in place of the present ones."""
        texts = {**self.texts, **changed}
        overlay = {path: text for path, text in texts.items() if text != self.sources[path].text}
        return self._analyser(
            self.targets, options=self.options, jobs=self._jobs, overlay=overlay or None, progress=self._progress
        )

    def present(self) -> dict[str, SourceFile]:
        """The files by path, with the texts that they have by now."""
        return {path: source.rewritten(self.texts[path]) for path, source in self.sources.items()}

    def run(self) -> None:
        """Make edits, round by round, until none is left that holds."""
        refused: dict[Group, str] = {}
        for _ in range(MAX_ROUNDS):
            # Refusals are not remembered: what failed beside other edits may hold after them, and if it does only a
            # second run would show it.
            refused = {}
            if not self._round(refused):
                break
        else:
            if any(group.obstacle is None for group in self._groups()):
                self._notes.append(f"stopped after {MAX_ROUNDS} rounds of edits; another apply would go on")
        for group, reason in refused.items():
            for finding in group.findings:
                line = self._original_line(finding.path, finding.span.line)
                self._failures.append(Failure(finding.rule, finding.path, line, reason))

    def _round(self, refused: dict[Group, str]) -> bool:
        """Make the edits that hold together on the present texts; fill ``refused`` with those that do not and why."""
        groups = [group for group in self._groups() if group.obstacle is None]
        while True:
            chosen = _compatible(group for group in groups if group not in refused)
            if not chosen:
                return False
            trial = _Trial(self, chosen)
            accepted = trial.solve(tuple(range(len(chosen))), ())
            refused.update({chosen[index]: reason for index, reason in trial.refused.items()})
            if accepted:
                self._accept([chosen[index] for index in accepted], trial.attempt(accepted))
                return True

    def _groups(self) -> list[Group]:
        groups = group_findings(self.findings, self.options, self.present())
        if self._wanted is None:
            return groups
        return [group for group in groups if self._wanted(tuple(map(self._originally, group.findings)))]

    def _accept(self, groups: Sequence[Group], attempt: _Attempt) -> None:
        assert attempt.analysis is not None
        for group in groups:
            findings = tuple(map(self._originally, group.findings))
            self._fixed.extend(findings)
            self._mended.append(Mended(findings, self._touched(group)))
            if len(group.edits) > 1:
                self._linked.append(frozenset(group.edits))
        self.texts.update(attempt.texts)
        self.analysis = attempt.analysis
        self.findings = attempt.findings

    def finish(self, skipped: tuple[Skipped, ...], dry_run: bool) -> ApplyResult:
        """Write the files, unless ``dry_run``, and sum up."""
        changed = [path for path, text in self.texts.items() if text != self.sources[path].text]
        rewrites = [Rewrite(self.sources[path], self.texts[path]) for path in changed]
        unwritten: list[Skipped] = [] if dry_run else write_linked(rewrites, self._linked)
        lost = {entry.path for entry in unwritten}
        remaining = judge(self.findings, self.options, self.present())
        if dry_run:
            remaining = [one._replace(finding=self._originally(one.finding)) for one in remaining]
        texts = self.sources if dry_run else self.present()
        fixed = [*(one.finding for one in self.translations), *(placed(one, self.sources) for one in self._fixed)]
        return ApplyResult(
            files=counted(self.targets, skipped),
            rewrites=tuple(rewrite for rewrite in rewrites if rewrite.source.path not in lost),
            translations=tuple(Rewrite(one.source, one.text) for one in self.translations),
            fixed=tuple(sorted((f for f in fixed if f.path not in lost), key=lambda f: (f.path, f.span, f.rule))),
            remaining=tuple(one.placed(texts) for one in remaining),
            skipped=(*skipped, *broken_cells(self.targets), *self.analysis.skipped),
            failures=tuple(self._failures),
            unwritten=tuple(unwritten),
            notes=tuple(dict.fromkeys((*self.analysis.notes, *self._notes))),
            dry_run=dry_run,
            sources=tuple(self.targets),
            mended=tuple(group for group in self._mended if lost.isdisjoint(f.path for f in group.findings)),
        )

    def _touched(self, group: Group) -> Touched:
        now = touched_by(group.edits, self.texts)
        changed = frozenset((path, self._original_line(path, line)) for path, line in now.changed)
        beside = frozenset((path, self._original_line(path, line)) for path, line in now.beside)
        return Touched(changed, beside)

    def _originally(self, finding: Finding) -> Finding:
        """Return ``finding`` at its line in the file as it was read."""
        line, column, end_line, end_column = finding.span
        original = self._original_line(finding.path, line)
        partners = tuple((rule, path, self._original_line(path, at)) for rule, path, at in finding.partners)
        span = Span(original, column, original + end_line - line, end_column)
        trail = tuple(step._replace(line=self._original_line(step.path, step.line)) for step in finding.trail)
        return replace(finding, span=span, partners=partners, trail=trail)

    def _original_line(self, path: str, line: int) -> int:
        if path not in self.sources or self.texts[path] == self.sources[path].text:
            return line
        text, lines = self._maps.get(path, (None, None))
        if lines is None or text != self.texts[path]:
            lines = LineMap(self.sources[path].text, self.texts[path])
            self._maps[path] = (self.texts[path], lines)
        return lines.origin(line)


class _Trial:
    """The search for those of some groups, made on the texts of ``work``, whose edits hold together."""

    def __init__(self, work: _Work, groups: Sequence[Group]) -> None:
        self.refused: dict[int, str] = {}
        self._work = work
        self._groups = groups
        self._memory: dict[frozenset[int], _Attempt] = {}
        self._rewritten: dict[tuple[str, tuple[int, ...]], str | _Refusal] = {}
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
            if good and attempt.proven.issuperset(suspects):
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

    def attempt(self, indices: tuple[int, ...]) -> _Attempt:
        """Make the edits of the groups ``indices`` together and judge the result."""
        key = frozenset(indices)
        if key not in self._memory:
            self._memory[key] = self._attempt(indices)
        return self._memory[key]

    def _attempt(self, indices: tuple[int, ...]) -> _Attempt:
        texts, blame = self._edit(indices)
        if not blame and self._analyses >= MAX_ATTEMPTS:
            blame = dict.fromkeys(indices, "not proven: too many other edits had to be taken back")
        if blame:
            return _Attempt(texts, None, (), blame, frozenset(blame) if len(blame) < len(indices) else frozenset())
        self._analyses += 1
        analysis = self._work.analyse(texts)
        findings = visible(analysis.findings, {**self._work.texts, **texts}, self._work.options)
        blame, proven = self._judge(indices, texts, analysis, findings)
        return _Attempt(texts, analysis, findings, blame, proven)

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
            return _Refusal(f"the edit broke off: {type(error).__name__}: {error}")
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
                reason = f"it makes a new finding, {finding.rule} in {self._line(finding, texts)}"
            elif before in owner:
                culprits = (owner[before],)
                reason = "the finding is still there after the edit"
            else:
                continue
            blame.update(dict.fromkeys(culprits, reason))
            proven.update(culprits if len(culprits) == 1 else ())
        unread = {entry.path for entry in work.analysis.skipped}
        for entry in analysis.skipped:
            if entry.path not in unread:
                reason = f"{entry.path} cannot be read any more: {entry.reason}"
                blame.update(dict.fromkeys(self._touching(entry.path, indices), reason))
        return blame, frozenset(proven)

    def _line(self, finding: Finding, texts: Mapping[str, str]) -> str:
        path = finding.path
        source = self._work.sources[path].rewritten({**self._work.texts, **texts}[path])
        place = source.place(finding.span.line)
        return f"line {place.line} of {path if place.cell is None else f'cell {place.cell}'}"

    def _uncovered(self, path: str, indices: tuple[int, ...]) -> set[str]:
        """The rules whose findings in a file may come to light by the edits of these groups."""
        places = [place for index in self._touching(path, indices) for place in self._groups[index].indices]
        return {rule for place in places for rule in self._work.findings[place].uncovers}

    def _touching(self, path: str, indices: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(index for index in indices if path in self._groups[index].edits) or indices


class _Refusal(NamedTuple):
    reason: str


def _compatible(groups: Iterable[Group]) -> list[Group]:
    """Return those of ``groups`` that touch no code of one before them; of two that begin alike the larger goes first.

    The larger one often makes the smaller one needless; if not, the smaller one gets its turn in the next round, as
    does one that yields to all others.
    """
    zones = {group: _claims(group) for group in groups}

    def order(group: Group) -> tuple[bool, str, Position, Position]:
        path, start, end = zones[group][0] if zones[group] else ("", (0, 0), (0, 0))
        return all(finding.yields for finding in group.findings), path, start, (-end[0], -end[1])

    taken: dict[str, list[tuple[Position, Position]]] = defaultdict(list)
    chosen = []
    for group in sorted(zones, key=order):
        if any(_overlaps(taken[path], start, end) for path, start, end in zones[group]):
            continue
        chosen.append(group)
        for path, start, end in zones[group]:
            bisect.insort(taken[path], (start, end))
    return chosen


def _claims(group: Group) -> list[tuple[str, Position, Position]]:
    """Return the stretches of text that the edits of ``group`` claim, in order, those that overlap as one."""
    claims: list[tuple[str, Position, Position]] = []
    for path, start, end in sorted(
        (path, *zone) for path, edits in group.edits.items() for e in edits for zone in _zones(e)
    ):
        if claims and claims[-1][0] == path and start < claims[-1][2]:
            claims[-1] = (path, claims[-1][1], max(end, claims[-1][2]))
        else:
            claims.append((path, start, end))
    return claims


def _overlaps(taken: Sequence[tuple[Position, Position]], start: Position, end: Position) -> bool:
    """Tell whether a stretch overlaps one of ``taken``, which are in order and apart from each other."""
    place = bisect.bisect_left(taken, (end, end))
    return place > 0 and taken[place - 1][1] > start


def _zones(edit: Edit) -> list[tuple[Position, Position]]:
    """Return the stretches of text that ``edit`` claims, ends exclusive."""
    match edit:
        case KeepPart(target=target, kept=kept):
            (start, end), (first, last) = _whole(target), _whole(kept)
            return [(start, first), (last, end)]
        case (
            DropArgument(call=span)
            | RenameArgument(call=span)
            | WrapExpression(target=span)
            | ReplaceExpression(target=span)
        ):
            return [_whole(span)]
        case RemoveStatement(target=span):
            return [_whole(span)]
        case InsertStatements(anchor=anchor, where=where):
            return [_beside(anchor, where)]
        case MoveStatement(target=span, anchor=anchor, where=where):
            return [_whole(span), _beside(anchor, where)]
        case WrapBlock(first=first, last=last):
            return [((first.line, first.column), (last.end_line, last.end_column))]
        case AddDecorator(function=span):
            return [_whole(span)]
        case AddHelper():
            # Helpers stand beside all else, and one of a name is added once however many ask for it.
            return []


def _whole(span: Span) -> tuple[Position, Position]:
    return (span.line, span.column), (span.end_line, span.end_column)


def _beside(anchor: Span, where: str) -> tuple[Position, Position]:
    # One character of the anchor stands for the gap beside it: whoever removes or moves the anchor claims it too.
    if where in ("before", "first-in"):
        return (anchor.line, anchor.column), (anchor.line, anchor.column + 1)
    return (anchor.end_line, max(0, anchor.end_column - 1)), (anchor.end_line, anchor.end_column)


def write_linked(rewrites: Sequence[Rewrite], linked: Iterable[frozenset[str]]) -> list[Skipped]:
    """Write the files, those ``linked`` by an edit all or none; return what could not be written, with reasons."""
    cluster = {rewrite.source.path: {rewrite.source.path} for rewrite in rewrites}
    for paths in linked:
        merged = set().union(*(cluster[path] for path in paths if path in cluster))
        for path in merged:
            cluster[path] = merged
    by_path = {rewrite.source.path: rewrite for rewrite in rewrites}
    unwritten: list[Skipped] = []
    done: set[str] = set()
    for path, together in cluster.items():
        if path not in done:
            done |= together
            unwritten.extend(_write_together([by_path[other] for other in sorted(together)]))
    return unwritten


def _write_together(rewrites: Sequence[Rewrite]) -> list[Skipped]:
    written: list[Rewrite] = []
    for rewrite in rewrites:
        try:
            write_atomically(rewrite.source, rewrite.new)
        except SourceError as error:
            lost = [error.skipped]
            break
        written.append(rewrite)
    else:
        return []
    for rewrite in rewrites:
        path = rewrite.source.path
        if path == lost[0].path:
            continue
        try:
            if rewrite in written:
                now = read_source(rewrite.source.absolute, path)
                if now.text == rewrite.new:
                    write_atomically(now, rewrite.source.text)
            lost.append(Skipped(path, 0, f"not written, because {lost[0].path} could not be"))
        except SourceError as error:
            lost.append(
                Skipped(path, 0, f"written, though {lost[0].path} could not be, and not taken back: {error.reason}")
            )
    return lost
