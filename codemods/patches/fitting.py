"""A patch fitted to a tree: each hunk gets its place, changes are tried together and held to the checks."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from codemods.analysis.analyse import analyse
from codemods.checking.check import Analyser, Progress
from codemods.patches.bundle import Bundle, blob_of
from codemods.patches.checking import Checks, Unit
from codemods.patches.files import Renames, require_inside, selected, try_read
from codemods.patches.notebooks import is_notebook, of_program
from codemods.patches.parsing import FileDiff
from codemods.patches.pieces import Piece
from codemods.patches.placing import Base, Fitted, Lost, Made, composed, place
from codemods.patches.reading import pieces_of
from codemods.patches.results import FittedHunk, PatchResult, State
from codemods.rewriting.result import Rewrite
from codemods.rewriting.saving import write_linked
from codemods.rules import all_rules
from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.source.targets import read_targets
from codemods.terms.clusters import connected_groups
from codemods.terms.findings import Promise, ShownLine, Skipped


def fit(
    bundle: Bundle,
    *,
    root: str | os.PathLike[str] = ".",
    paths: Sequence[str] = (),
    dry_run: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
    analyse: Analyser = analyse,
) -> PatchResult:
    """Make the changes of ``bundle`` in the tree below ``root`` as it is now, and write the files unless ``dry_run``.

    ``paths`` are files or folders to which this is limited. A change is made wholly or not at all, and written files
    that belong to one change all or none. Raises :class:`~codemods.patches.parsing.PatchError` for a patch that names
    files outside ``root``; whatever does not fit is in the result.
    """
    work = _Fitting(bundle, Path(os.path.abspath(root)), paths)
    work.locate()
    work.check(jobs, progress, analyse)
    return work.finish(dry_run)


class _Fitting:
    def __init__(self, bundle: Bundle, root: Path, paths: Sequence[str]) -> None:
        self.bundle = bundle
        self.root = root
        self.renames = Renames(root)
        for file in bundle.diff:
            require_inside(file.path)
        for change in bundle.changes:
            for finding in change.findings:
                require_inside(finding.path)
        self.files = [file for file in bundle.diff if selected(file.path, root, paths)]
        self.sources: dict[str, SourceFile] = {}
        self.bases: dict[str, Base] = {}
        self.befores: dict[str, SourceFile] = {}
        self.now: dict[str, str] = {}
        self.pieces: dict[int, Piece] = {}
        self.places: dict[int, Fitted | Made | Lost] = {}
        self.grouping = Grouping()
        self.refused: dict[int, str] = {}
        self.impossible: list[FittedHunk] = []
        self.notes: list[str] = []

    def locate(self) -> None:
        """Find the place of each hunk."""
        left_out: set[int] = set()
        for file in self.files:
            reading = self._file(file)
            left_out |= reading
        self.grouping = grouped(list(self.pieces.values()))
        for index in sorted(left_out):
            change = self.bundle.changes[index]
            place_of = self._place(change.findings[0].path, change.findings[0].line) if change.findings else ""
            if any(index in piece.changes for piece in self.pieces.values()):
                reason = f"a hunk of {change.rule} at {place_of} was taken out of the patch, and half of it is not made"
                for number, piece in self.pieces.items():
                    if index in piece.changes:
                        self.places[number] = Lost(reason)
            else:
                self.notes.append(f"{change.rule} at {place_of} was taken out of the patch")
        self._refuse_overlaps()

    def _file(self, file: FileDiff) -> set[int]:
        source, path, trouble = try_read(file.path, self.root, self.renames)
        if file.obstacle:
            trouble = f"it {file.obstacle}, and only changes of lines are made"
        encoding = source.encoding if source else "utf-8"
        if source is not None and source.notebook is not None and not trouble:
            found = of_program(file, source, self.root)
            if isinstance(found, str):
                trouble = found
            else:
                file, self.befores[file.path] = found
        if trouble and is_notebook(file.path):
            self.impossible.append(FittedHunk(0, file.path, 0, State.REFUSED, (file.path, 0), trouble))
            return set()
        pieces, left_out = pieces_of(file, self.bundle, len(self.pieces) + 1, encoding)
        if file.obstacle and not pieces:
            self.impossible.append(FittedHunk(0, file.path, 0, State.REFUSED, (file.path, 0), trouble))
        for piece in pieces:
            self.pieces[piece.number] = piece
        if source is None or trouble:
            self.places |= {piece.number: Lost(trouble) for piece in pieces}
            return left_out
        recorded = (self.bundle.files or {}).get(file.path)
        blob = recorded.blob if recorded else file.blob
        unchanged = bool(blob) and blob_of(source.encode(source.text)).startswith(blob)
        base = self.bases.setdefault(source.path, Base(source.text, source.place))
        self.sources[source.path] = source
        self.now[file.path] = source.path
        if path != file.path:
            self.notes.append(f"{file.path} is called {path} now")
        for piece in pieces:
            proven = any(not self.bundle.changes[index].own for index in piece.changes)
            self.places[piece.number] = place(piece, base, unchanged=unchanged, proven=proven)
        return left_out

    def _place(self, path: str, line: int) -> str:
        """Where a line was, for people."""
        return f"{path}:{self.befores[path].place(line) if path in self.befores else line}"

    def _refuse_overlaps(self) -> None:
        taken: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for number, found in sorted(self.places.items()):
            if not isinstance(found, Fitted):
                continue
            path = self.now[self.pieces[number].path]
            for start, end, other in taken[path]:
                if found.start < end and start < found.end:
                    self.places[number] = Lost(f"it would change the same lines as hunk {other}")
                    break
            else:
                taken[path].append((found.start, found.end, number))

    def check(self, jobs: int | None, progress: Progress | None, analyser: Analyser) -> None:
        """Find which units hold together, and refuse the others with the reason."""
        units, lost = [], []
        for unit, numbers in self.grouping.units.items():
            if any(isinstance(self.places[number], Lost) for number in numbers):
                lost.append(self._unit(unit, numbers))
            elif any(isinstance(self.places[number], Fitted) for number in numbers):
                units.append(self._unit(unit, numbers))
        if not units and not any(unit.gone for unit in lost):
            self._refuse(lost, None)
            return
        for change in self.bundle.changes:
            for finding in change.findings:
                self._also(finding.path)
        known = {source.absolute for source in self.sources.values()}
        around = [one for one in read_targets([str(self.root)]).sources if one.absolute not in known]
        checks = Checks(
            self.sources, options=self._options(), analyse=analyser, jobs=jobs, progress=progress, around=around
        )
        self._refuse(lost, checks)
        trial = _Trial(checks, self)
        trial.solve(units, [])
        for unit_number, reason in trial.refused.items():
            for number in self.grouping.units[unit_number]:
                self.refused[number] = reason

    def _refuse(self, units: Sequence[Unit], checks: Checks | None) -> None:
        """Refuse units with a hunk that fits nowhere, with the reason, and with what the analysis adds to it."""
        for unit in units:
            numbers = self.grouping.units[unit.number]
            lost = {number: found.reason for number in numbers if isinstance(found := self.places[number], Lost)}
            more = checks.absent(unit) if checks and unit.paths <= self.bases.keys() else ""
            for number in numbers:
                other = f"it belongs together with hunk {min(lost)}, which is refused"
                self.refused[number] = "; ".join(filter(None, (lost.get(number, other), more)))

    def _unit(self, number: int, pieces: Sequence[int]) -> Unit:
        changes = {index for piece in pieces for index in self.pieces[piece].changes}
        gone = tuple(
            (finding.rule, self.now.get(finding.path, finding.path))
            for index in sorted(changes)
            if not self.bundle.changes[index].own
            for finding in self.bundle.changes[index].findings
        )
        promises = [self.bundle.changes[index].promise for index in changes] or [Promise.EXACT]
        weakest = max(promises, key=lambda promise: promise.rank)
        return Unit(number, frozenset(self.now.get(self.pieces[piece].path, "") for piece in pieces), gone, weakest)

    def _also(self, path: str) -> None:
        """Have a file looked at in which a finding stands, though nothing changes in it."""
        if path in self.now:
            return
        source, _, _ = try_read(path, self.root, self.renames)
        if source is not None:
            self.now[path] = source.path
            self.sources.setdefault(source.path, source)

    def _options(self) -> Options:
        wanted = {finding.rule for change in self.bundle.changes for finding in change.findings}
        known = all_rules()
        opted = {name for name in wanted if name in known and known[name].opt_in}
        if not opted:
            return self.bundle.options
        every = {name for name, rule in known.items() if not rule.opt_in}
        return replace(self.bundle.options, select=tuple(sorted(every | opted)))

    def texts(self, units: Sequence[int]) -> dict[str, str]:
        """Return the new texts by path with these units made."""
        made: dict[str, list[Fitted]] = defaultdict(list)
        numbers = {number for unit in units for number in self.grouping.units[unit]}
        numbers |= {number for number, users in self.grouping.helpers.items() if not numbers.isdisjoint(users)}
        for number in sorted(numbers):
            found = self.places[number]
            if isinstance(found, Fitted):
                made[self.now[self.pieces[number].path]].append(found)
        return {path: composed(self.bases[path], places) for path, places in made.items()}

    def finish(self, dry_run: bool) -> PatchResult:
        """Write what holds, and sum up."""
        held = [unit for unit, numbers in self.grouping.units.items() if not self.refused.keys() & set(numbers)]
        texts = self.texts(held)
        rewrites = [Rewrite(self.sources[path], text) for path, text in texts.items()]
        rewrites = [rewrite for rewrite in rewrites if rewrite.new != rewrite.source.text]
        linked = [
            frozenset(self.now[self.pieces[n].path] for n in numbers if self.pieces[n].path in self.now)
            for numbers in self.grouping.units.values()
        ]
        unwritten: list[Skipped] = [] if dry_run else write_linked(rewrites, linked)
        lost = {entry.path: entry.reason for entry in unwritten}
        hunks = [self._told(number, lost) for number in sorted(self.pieces)]
        return PatchResult(
            hunks=(*hunks, *self.impossible),
            rewrites=tuple(rewrite for rewrite in rewrites if rewrite.source.path not in lost),
            unwritten=tuple(unwritten),
            notes=tuple(self.notes),
            dry_run=dry_run,
        )

    def _told(self, number: int, lost: Mapping[str, str]) -> FittedHunk:
        piece, found = self.pieces[number], self.places[number]
        path = self.now.get(piece.path, piece.path)
        rules = tuple(dict.fromkeys(self.bundle.changes[index].rule for index in piece.changes))

        def told(state: State, line: int, reason: str = "") -> FittedHunk:
            was = (
                self.befores[piece.path].place(piece.line)
                if piece.path in self.befores
                else ShownLine(None, piece.line)
            )
            source = self.sources.get(path)
            at = source.place(line) if source is not None and line else ShownLine(None, line)
            if state is State.APPLIED and at != was:
                state = State.MOVED
            return FittedHunk(number, piece.path, was.line, state, (path, at.line), reason, rules, was.cell, at.cell)

        reason = self.refused.get(number) or self._needless(number)
        if isinstance(found, Lost) or reason:
            return told(State.REFUSED, 0, reason or (found.reason if isinstance(found, Lost) else ""))
        if isinstance(found, Made):
            return told(State.ALREADY, found.line)
        if path in lost:
            return told(State.REFUSED, 0, f"not written: {lost[path]}")
        line = found.start + 1
        if not found.exact:
            return told(State.FUZZY, line)
        return told(State.APPLIED, line)

    def _needless(self, number: int) -> str:
        """Why an import is not made: nothing that needs it is."""
        users = self.grouping.helpers.get(number)
        return "what needs it is refused" if users is not None and users <= self.refused.keys() else ""


class _Trial:
    """The search for units that hold together: all at once, and if that fails in ever smaller parts."""

    def __init__(self, checks: Checks, work: _Fitting) -> None:
        self.refused: dict[int, str] = {}
        self._checks = checks
        self._work = work

    def solve(self, units: Sequence[Unit], context: Sequence[Unit]) -> list[Unit]:
        """Return those of ``units`` that hold on top of ``context``."""
        if not units:
            return []
        together = [*context, *units]
        texts = self._work.texts([unit.number for unit in together])
        blame = self._checks.blame(together, texts, self._work.sources)
        if not blame:
            return list(units)
        if len(units) == 1:
            reason = blame.get(units[0].number) or next(iter(blame.values()))
            absent = self._checks.absent(units[0])
            self.refused[units[0].number] = reason if not absent or absent == reason else f"{reason}; {absent}"
            return []
        good = [unit for unit in units if unit.number not in blame]
        bad = [unit for unit in units if unit.number in blame]
        if not good or not bad:
            middle = len(units) // 2
            good, bad = list(units[:middle]), list(units[middle:])
        held = self.solve(good, context)
        return held + self.solve(bad, [*context, *held])


@dataclass
class Grouping:
    """The hunks, by number, in units.

    ``helpers`` are the imports, each with the hunks that need it: it is made where one of them is.
    """

    units: dict[int, list[int]] = field(default_factory=dict)
    helpers: dict[int, frozenset[int]] = field(default_factory=dict)


def grouped(pieces: Sequence[Piece]) -> Grouping:
    """Put ``pieces`` in units: those of one change, and of changes that share a hunk; without one, those of a file.

    An import that several changes need joins none of them: it is made where one of them is.
    """
    known: dict[object, int] = {}
    helpers: dict[int, frozenset[int]] = {}
    members: dict[int, list[int]] = {}
    for piece in pieces:
        users = frozenset(
            other.number
            for other in pieces
            if other is not piece and not other.needs_import_only and not set(piece.changes).isdisjoint(other.changes)
        )
        if piece.needs_import_only and len(piece.changes) > 1 and users:
            helpers[piece.number] = users
            continue
        # A comment that our own bundle records stands for itself; of a diff nobody knows what belongs together.
        alone = ("comment", piece.number) if piece.function is not None else ("file", piece.path)
        keys: list[object] = list(piece.changes) or [alone]
        members[piece.number] = [known.setdefault(key, len(known)) for key in keys]
    groups = connected_groups(len(known), members.values())
    unit = {key: index for index, group in enumerate(groups) for key in group}
    units: dict[int, list[int]] = {index: [] for index in range(len(groups))}
    for number, (first, *_) in sorted(members.items()):
        units[unit[first]].append(number)
    return Grouping(units, helpers)
