"""From decisions to files: the accepted changes made anew without the declined ones, own texts and comments put in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from codemods.analysis.analyse import analyse
from codemods.checking.check import Analyser, Progress
from codemods.checking.groups import judge
from codemods.checking.selecting import visible
from codemods.interactive.dialogue import Answer, Decisions
from codemods.interactive.items import Item, Texts, replaced
from codemods.rewriting.apply import apply
from codemods.rewriting.changes import Hunk, Key, review
from codemods.rewriting.continuations import continuations
from codemods.rewriting.result import ApplyResult, Rewrite
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile
from codemods.source.line_map import LineMap
from codemods.source.options import Options
from codemods.source.suppressing import ToSuppress, with_comments
from codemods.source.syntax import parse
from codemods.terms.findings import Finding
from codemods.terms.spans import Span


class Remark(NamedTuple):
    """Something that came out other than it was answered: the place, the rule, and what happened."""

    place: str
    rule: str
    text: str


@dataclass(frozen=True)
class Outcome:
    """What there is to write, as a dry run's result; what was not as answered; and the changes in the user's words."""

    result: ApplyResult
    remarks: tuple[Remark, ...]
    own: frozenset[Key]


def finish(
    decisions: Decisions,
    texts: Texts,
    targets: Sequence[SourceFile],
    *,
    options: Options,
    jobs: int | None = None,
    progress: Progress | None = None,
    analyse: Analyser = analyse,
    before: ApplyResult,
) -> Outcome:
    """Make what was accepted of ``before``, a dry run over ``targets`` that the user was asked about.

    The accepted changes are made as ``apply`` makes them, proofs included, without those that were declined. Nothing is
    written: see :func:`codemods.rewriting.apply.write`.
    """

    def make(wanted: frozenset[tuple[str, str, int]]) -> ApplyResult:
        return apply(
            targets,
            options=options,
            dry_run=True,
            jobs=jobs,
            progress=progress,
            analyse=analyse,
            wanted=lambda findings: all(finding.key in wanted for finding in findings),
        )

    decisions = decisions if decisions.write else Decisions(decisions.items)
    made = make(decisions.wanted)
    lost = _misplaced(decisions, made, texts)
    if lost:
        # What was proposed must not stand where the user wanted something else.
        decisions = replace(decisions, made={i: d for i, d in decisions.made.items() if i not in lost})
        made = make(decisions.wanted)
    work = _Finishing(decisions, texts)
    for index in lost:
        work.remark(decisions.items[index], "not made: your own text does not fit without those that were declined")
    work.compare(made)
    new = work.composed(made)
    kept = {path for path, text in new.items() if path in work.touched or text != texts.old[path]}
    rewrites = tuple(Rewrite(texts.sources[path], new[path]) for path in sorted(kept))
    overlay = {rewrite.source.path: rewrite.new for rewrite in rewrites}
    analysis = analyse(targets, options=options, jobs=jobs, overlay=overlay or None, progress=progress)
    known = {source.path: source.text for source in targets}
    after = visible(analysis.findings, known | overlay, options)
    result = replace(
        made,
        files=before.files,
        rewrites=rewrites,
        translations=tuple(one for one in made.translations if one.source.path in kept),
        remaining=tuple(
            judge([_originally(f, texts, overlay) for f in after], options, {source.path: source for source in targets})
        ),
        fixed=tuple(f for f in work.still(made, after, known, overlay) if f.path in kept),
        skipped=before.skipped,
        failures=tuple(dict.fromkeys((*before.failures, *made.failures))),
        dropped=before.dropped,
    )
    return Outcome(result, tuple(work.remarks), frozenset(decisions.items[i].key for i in decisions.of(Answer.OWN)))


class _Finishing:
    """What the decisions come to, file by file."""

    def __init__(self, decisions: Decisions, texts: Texts) -> None:
        self.remarks: list[Remark] = []
        self.touched: set[str] = set()
        self._decisions = decisions
        self._texts = texts

    def compare(self, made: ApplyResult) -> None:
        """Remark on accepted changes that could not be made without declined ones, or were made in another form."""
        found = review(made)
        hunks: dict[Key, set[Hunk]] = defaultdict(set)
        for hunk in found.hunks:
            for index in hunk.changes:
                hunks[found.changes[index].key].add(_text_of(hunk))
        done = {change.key for change in found.changes}
        for index in self._decisions.of(Answer.YES, Answer.OWN):
            item = self._decisions.items[index]
            if item.key not in done:
                self.remark(item, f"accepted, but not made: it depends on {self._declined()}")
                continue
            self.touched |= {path for finding in item.findings for path, _ in finding.edits}
            shown = {_text_of(hunk) for hunk in item.hunks if len(hunk.changes) == 1}
            if not shown <= hunks[item.key] and not item.shares:
                self.remark(item, f"made in another form than was shown, because of {self._declined()}")

    def composed(self, made: ApplyResult) -> dict[str, str]:
        """Return the new texts by path, with the user's own texts and comments in them."""
        new = {rewrite.source.path: rewrite.new for rewrite in made.rewrites}
        hunks = {_text_of(hunk): hunk for hunk in review(made).hunks}
        for path, own in _by_path(self._decisions.own).items():
            new[path] = replaced(new[path], {hunks[_text_of(hunk)]: mine for hunk, mine in own.items()})
        for finding, reason in self._decisions.ignored:
            path = finding.path
            text = new.get(path, self._texts.old[path])
            line = LineMap(text, self._texts.sources[path].text).origin(finding.span.line)
            last = line + finding.span.end_line - finding.span.line
            commented, unplaced = with_comments(text, [ToSuppress(finding.rule, line, last)], reason)
            if not unplaced and _holds(self._texts.sources[path], commented):
                new[path] = commented
                self.touched.add(path)
            else:
                place = self._texts.place(path, finding.span.line)
                self.remarks.append(Remark(place, finding.rule, "no comment could be written there"))
        return new

    def still(
        self, made: ApplyResult, after: Sequence[Finding], known: Mapping[str, str], overlay: Mapping[str, str]
    ) -> list[Finding]:
        """Return what was fixed of ``made``; remark on what the user's own text leaves as a finding, or makes one."""
        own = self._decisions.of(Answer.OWN)
        if not own:
            return list(made.fixed)
        mine = {finding.key for index in own for finding in self._decisions.items[index].findings}
        paths = {hunk.path for hunk in self._decisions.own}
        here = [finding for finding in after if finding.path in paths]
        before = [finding for finding in made.fixed if finding.path in paths]
        origins = continuations(before, here, old=known, new={**known, **overlay}, mended=())
        left = {before[index].key for index in origins if index is not None}
        for index in own:
            item = self._decisions.items[index]
            if any(finding.key in left for finding in item.findings):
                self.remark(item, "your own text leaves it as it was")
        return [finding for finding in made.fixed if not (finding.key in mine and finding.key in left)]

    def _declined(self) -> str:
        items = self._decisions.items
        others = [items[i] for i in range(len(items)) if i not in self._decisions.made] + [
            items[i] for i in self._decisions.of(Answer.NO, Answer.IGNORED)
        ]
        if len(others) == 1:
            return f"{others[0].change.rule} at {others[0].place}, which was declined"
        return "one of those that were declined"

    def remark(self, item: Item, text: str) -> None:
        """Note that ``item`` came out other than it was answered."""
        self.remarks.append(Remark(item.place, item.change.rule, text))


def _misplaced(decisions: Decisions, made: ApplyResult, texts: Texts) -> list[int]:
    """The items whose own text cannot be put in: their hunks are not there any more, or the file would not parse."""
    hunks = {_text_of(hunk): hunk for hunk in review(made).hunks}
    new = {rewrite.source.path: rewrite.new for rewrite in made.rewrites}
    bad: set[str] = set()
    for path, own in _by_path(decisions.own).items():
        fitting = {hunks[_text_of(hunk)]: mine for hunk, mine in own.items() if _text_of(hunk) in hunks}
        if len(fitting) < len(own) or not _holds(texts.sources[path], replaced(new[path], fitting)):
            bad.add(path)
    return [i for i in decisions.of(Answer.OWN) if not bad.isdisjoint(h.path for h in decisions.made[i].own)]


def _holds(source: SourceFile, text: str) -> bool:
    try:
        parse(text, source.path)
        source.encode(text)
    except SourceError:
        return False
    return True


def _by_path(own: Mapping[Hunk, str]) -> dict[str, dict[Hunk, str]]:
    found: dict[str, dict[Hunk, str]] = defaultdict(dict)
    for hunk, text in own.items():
        found[hunk.path][hunk] = text
    return found


def _text_of(hunk: Hunk) -> Hunk:
    """The hunk by its place in the original and its texts, whoever owns it and whatever stands above."""
    return hunk._replace(changes=(), new_start=0)


def _originally(finding: Finding, texts: Texts, new: Mapping[str, str]) -> Finding:
    path, (line, column, end_line, end_column) = finding.path, finding.span
    if path not in new:
        return finding
    original = LineMap(texts.sources[path].text, new[path]).origin(line)
    return replace(finding, span=Span(original, column, original + end_line - line, end_column))
