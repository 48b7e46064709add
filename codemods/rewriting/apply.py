"""From findings to rewritten files: make the edits, look again, take back what does not hold.

An edit is believed only after the analysis has run again on the text that it made: the finding must be gone and nothing
new may stand there. One that fails is taken back and named as a failure of ours; the others go on. Rounds follow each
other until nothing changes, because one edit may wait for another that touches the same code. Files are written at the
very end, so that whatever goes wrong before leaves the tree as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from codemods.analysis.analyse import Analysis, analyse
from codemods.checking.check import Analyser, Progress
from codemods.checking.groups import Group, group_findings, judge
from codemods.checking.reported import placed
from codemods.checking.selecting import broken_cells, counted, translations, visible, without_ignored
from codemods.rewriting.continuations import continuations
from codemods.rewriting.names_taken import Exports
from codemods.rewriting.overlaps import compatible
from codemods.rewriting.result import ApplyResult, Failure, Mended, Rewrite
from codemods.rewriting.saving import is_lost, with_lost, write_linked
from codemods.rewriting.touched import Touched, touched_by
from codemods.rewriting.trials import Attempt, Editor, Trial
from codemods.source.files import SourceFile
from codemods.source.line_map import LineMap
from codemods.source.options import Options
from codemods.terms.edits import Edit
from codemods.terms.findings import Finding, Promise, Skipped, in_order
from codemods.terms.spans import Span

MAX_ROUNDS = 10

Key = frozenset[tuple[str, str, int]]
Wanted = Callable[[tuple[Finding, ...]], bool]


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
    given = (targets, options, jobs, progress, analyse, editor or _apply_edits, wanted)
    distrusted: frozenset[Key] = frozenset()
    while True:
        work = Work(*given, distrusted=distrusted)
        work.run()
        owing = work.owing - distrusted
        if not owing:
            break
        distrusted |= owing
    return work.finish(tuple(skipped), dry_run)


def write(result: ApplyResult) -> ApplyResult:
    """Write what a dry run left unwritten; the result is then that of an ``apply`` which was none.

    For those who look at what would be done before it is done. Raises nothing for a file of the user.
    """
    linked = [frozenset(path for f in one.findings for path, _ in f.edits) for one in result.mended]
    unwritten = write_linked(result.rewrites, linked)
    lost = {entry.path for entry in unwritten}
    done = written(replace(result, rewrites=tuple(one for one in result.rewrites if one.source.path not in lost)))
    return replace(
        done,
        fixed=tuple(finding for finding in result.fixed if not is_lost(finding, lost)),
        mended=tuple(one for one in result.mended if not any(is_lost(f, lost) for f in one.findings)),
        remaining=with_lost(done.remaining, result.fixed, unwritten),
        unwritten=tuple(unwritten),
    )


def written(result: ApplyResult) -> ApplyResult:
    """Return what ``apply`` would have said had it written all of ``result``, a dry run, itself."""
    lines = {source.path: LineMap(new, source.text) for source, new in result.rewrites}
    remaining = (one._replace(finding=_at_line(one.finding, lines)) for one in result.remaining)
    return replace(result, dry_run=False, remaining=tuple(remaining))


def _at_line(finding: Finding, lines: Mapping[str, LineMap]) -> Finding:
    if finding.path not in lines:
        return finding
    line, column, end_line, end_column = finding.span
    moved = lines[finding.path].origin(line)
    return replace(finding, span=Span(moved, column, moved + end_line - line, end_column))


def _apply_edits(text: str, edits: Sequence[Edit], *, exported: Collection[str] = ()) -> str:
    # libcst takes a moment to load, and most trees have nothing to edit.
    from codemods.edits.apply import apply_edits

    return apply_edits(text, edits, exported=exported)


class Work:
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
        *,
        distrusted: frozenset[Key] = frozenset(),
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
        self._distrusted = distrusted
        self._fresh: set[int] = set()
        self._needs: dict[int, frozenset[Key]] = {}
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

    @property
    def owing(self) -> frozenset[Key]:
        """What was made and brought something to light that is left although it is wanted, and no advice."""
        wanted = {index for group in self._groups() for index in group.indices}
        left = (index for index in self._fresh & wanted if self.findings[index].promise is not Promise.ADVICE)
        return frozenset(key for index in left for key in self._needs[index])

    def trusts(self, group: Group) -> bool:
        """Whether findings that the edits of ``group`` uncover may be fixed in a later round."""
        return frozenset(finding.key for finding in map(self._originally, group.findings)) not in self._distrusted

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
                self._notes.append(f"stopped after {MAX_ROUNDS} rounds of edits; run apply again to go on")
        for group, reason in refused.items():
            for finding in group.findings:
                line = self._original_line(finding.path, finding.span.line)
                self._failures.append(Failure(finding.rule, finding.path, line, reason))

    def _round(self, refused: dict[Group, str]) -> bool:
        """Make the edits that hold together on the present texts; fill ``refused`` with those that do not and why."""
        groups = [group for group in self._groups() if group.obstacle is None]
        while True:
            chosen = compatible(group for group in groups if group not in refused)
            if not chosen:
                return False
            trial = Trial(self, chosen)
            accepted = trial.solve(tuple(range(len(chosen))), ())
            refused.update({chosen[index]: reason for index, reason in trial.refused.items()})
            if accepted:
                self._accept([chosen[index] for index in accepted], trial.attempt(accepted), refused)
                return True

    def _groups(self) -> list[Group]:
        groups = group_findings(self.findings, self.options, self.present())
        if self._wanted is None:
            return groups
        return [group for group in groups if self._wanted(tuple(map(self._originally, group.findings)))]

    def _accept(self, groups: Sequence[Group], attempt: Attempt, refused: Collection[Group]) -> None:
        assert attempt.analysis is not None
        made: list[Mended] = []
        for group in groups:
            findings = tuple(map(self._originally, group.findings))
            needs = frozenset(key for index in group.indices for key in self._needs.get(index, ()))
            self._fixed.extend(findings)
            made.append(Mended(findings, self._touched(group), needs))
            if len(group.edits) > 1:
                self._linked.append(frozenset(group.edits))
        self._mended += made
        self._follow(groups, made, attempt, refused)
        self.texts.update(attempt.texts)
        self.analysis = attempt.analysis
        self.findings = attempt.findings

    def _follow(
        self, groups: Sequence[Group], made: Sequence[Mended], attempt: Attempt, refused: Collection[Group]
    ) -> None:
        """Note which findings came to light by edits, and which of these others cannot do without."""
        new = {**self.texts, **attempt.texts}
        mended = {index for group in groups for index in group.indices}
        known = continuations(self.findings, attempt.findings, old=self.texts, new=new, mended=mended)
        failed = {index for group in refused for index in group.indices}
        keys = {path: {m.key for g, m in zip(groups, made, strict=True) if path in g.edits} for path in attempt.texts}
        everything = {one.key for one in made}
        needs: dict[int, frozenset[Key]] = {}
        fresh: set[int] = set()
        for index, (finding, before) in enumerate(zip(attempt.findings, known, strict=True)):
            if before is None or before in self._fresh:
                fresh.add(index)
            needed = self._needs.get(before, frozenset()) if before is not None else frozenset()
            advised = before is not None and self.findings[before].promise is Promise.ADVICE
            if before is None or before in failed or (advised and finding.promise is not Promise.ADVICE):
                needed |= keys.get(finding.path) or everything
            needs[index] = needed
        self._fresh, self._needs = fresh, needs

    def finish(self, skipped: tuple[Skipped, ...], dry_run: bool) -> ApplyResult:
        """Write the files, unless ``dry_run``, and sum up."""
        changed = [path for path, text in self.texts.items() if text != self.sources[path].text]
        rewrites = [Rewrite(self.sources[path], self.texts[path]) for path in changed]
        unwritten: list[Skipped] = [] if dry_run else write_linked(rewrites, self._linked)
        lost = {entry.path for entry in unwritten}
        remaining = judge(self.findings, self.options, self.present())
        # What stands in a file that was not written stands there as it did before.
        remaining = [
            one._replace(finding=self._originally(one.finding)) if dry_run or one.finding.path in lost else one
            for one in remaining
        ]
        texts = self.sources if dry_run else self.present() | {path: self.sources[path] for path in lost}
        fixed = [*(one.finding for one in self.translations), *(placed(one, self.sources) for one in self._fixed)]
        return ApplyResult(
            files=counted(self.targets, skipped),
            rewrites=tuple(rewrite for rewrite in rewrites if rewrite.source.path not in lost),
            translations=tuple(Rewrite(one.source, one.text) for one in self.translations),
            fixed=tuple(sorted((f for f in fixed if not is_lost(f, lost)), key=in_order)),
            remaining=with_lost((one.placed(texts) for one in remaining), fixed, unwritten),
            skipped=(*skipped, *self._unparsable()),
            failures=tuple(self._failures),
            unwritten=tuple(unwritten),
            notes=tuple(dict.fromkeys((*self.analysis.notes, *self._notes))),
            dry_run=dry_run,
            sources=tuple(self.targets),
            mended=tuple(group for group in self._mended if not any(is_lost(f, lost) for f in group.findings)),
        )

    def _unparsable(self) -> list[Skipped]:
        texts = {source.path: source.text for source in self.targets}
        return without_ignored([*broken_cells(self.targets), *self.analysis.skipped], texts)

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
