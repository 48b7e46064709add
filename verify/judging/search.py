"""Looks for runs that reach what the commands did not, within a budget of time.

In turn: the same commands with loops cut short and bounds taken as met, other scripts and tests of the tree, and at
last the functions by themselves. Each way is tried on the original first; only where it comes to new lines are both
programs driven that way, and only what had not been reached is judged by it.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from codemods.rewriting.result import Mended
from codemods.source.entries import find_entries, read_readme
from codemods.source.files import SourceFile
from codemods.source.syntax import FAILURES
from verify.errors import VerifyError
from verify.judging.bench import Telling, as_read, driven, judge, lines_below, reached
from verify.judging.faults import died
from verify.measured.records import Driven, Record
from verify.measured.results import Entry, Outcome, Rewrite, Run, Verdict, join
from verify.reaching.causes import OUTER, Cause, Causes, heads
from verify.reaching.drives import calls, drive, enclosing, imports, training
from verify.reaching.knobs import Cap, Knobs, Unfit
from verify.running.missing import ended_by
from verify.running.rewriting import Rewriter, Version, below
from verify.running.runner import Runner
from verify.running.settings import Command, entry_command, is_notebook

Line = tuple[str, int]
#: Other scripts and tests that are tried.
_MOST_ENTRIES = 4
#: A way is judged in about so many runs; it is not begun where there is no time for them.
_RUNS = 4
_OPEN = (Verdict.NOT_REACHED, Verdict.PARTLY_REACHED)


#: Commands with other arguments that are tried.
_MOST_OPTIONS = 4


@dataclass(frozen=True)
class _Way:
    """A command, the version of the tree that goes on where the original dies (None: the original does), and its run,
    with its lines as they are in the original."""

    command: Command
    base: Version | None = None
    run: Run | None = None


class Search:
    """The search for one verification. ``sources`` are the Python files of the tree."""

    def __init__(
        self,
        runner: Runner,
        rewriter: Rewriter,
        version: Version,
        sources: Iterable[SourceFile],
        tell: Telling,
    ) -> None:
        self._runner = runner
        self._rewriter = rewriter
        self._version = version
        self._tell = tell
        self._texts = {path: each.text for each in sources if (path := below(each.absolute, runner.root)) is not None}
        self._trees = dict(_parsed(self._texts))
        self._until = 0.0
        self._groups = {group.key: group for group in version.groups}
        self._entries: list[Entry] = []
        self._unmade: dict[tuple[str, str], str] = {}
        #: By the original of an entry, the run that tells why lines did not run.
        self._shown: dict[int, Run] = {}
        self._tried = 0

    def also(self) -> frozenset[Line]:
        """The lines to watch so that it is known why rewritten ones did not run."""
        paths: set[str] = set()
        found: set[Line] = set()
        for group in self._groups.values():
            for path, line in self._lines(group):
                found.add((path, line))
                paths |= {path, *self._callers(path, line)}
        return frozenset(found | {(path, line) for path in paths for line in heads(self._trees.get(path, _EMPTY))})

    def run(self, commands: Sequence[Command], entries: Sequence[Entry]) -> list[Entry]:
        """Return ``entries`` of ``commands`` and those of the ways that reached more; reasons for what stays open."""
        self._entries = list(entries)
        self._until = time.monotonic() + self._runner.settings.reach_seconds
        ways = []
        for command, entry in zip(commands, entries, strict=True):
            if self._open() and not _is_notebook(command):
                ways.append(self._way(command, entry))
                self._knobs(ways[-1])
        for command in self._others(commands):
            if not self._open() or not self._time(1.0):
                break
            found = self._try(_Way(command), Knobs(), "found in the tree")
            if found is not None:
                ways.append(self._way(command, found))
                self._knobs(ways[-1])
        for way in ways:
            if self._open() and way.run is not None and not died(way.run):
                self._drives(way, way.run)
        if self._open() and commands and self._runner.settings.data:
            self._bare(commands[0])
        return [self._explained(entry) for entry in self._entries]

    def _way(self, command: Command, entry: Entry) -> _Way:
        """How to go on from ``entry``: where its original dies, with what gets past that."""
        final = entry.rewritten
        kept = {rewrite.key for rewrite in self._joined() if rewrite.verdict is Verdict.KEPT}
        if not died(entry.original) or final is None or died(final) or not kept or not self._time(final.wall):
            return self._known(entry, _Way(command, None, entry.original))
        base = self._rewriter.some(kept)
        self._tell(f"with what gets past the error: {command.text}")
        run = self._run(_Way(command, base), Knobs(), self._open())
        return self._known(entry, _Way(command, base, run))

    def _known(self, entry: Entry, way: _Way) -> _Way:
        if way.run is not None:
            self._shown[id(entry.original)] = way.run
        return way

    # The ways.

    def _knobs(self, way: _Way) -> None:
        """The command again, so that it comes past what stood in front of the lines."""
        if way.run is None or ended_by(way.run) is not None or not self._time(way.run.wall):
            return
        causes = [cause for group in self._open() for cause in self._causes(group, way.run)]
        knobs = _knobs_of(cause for cause in causes if not cause.arguments)
        if knobs:
            self._try(way, knobs, "loops cut short, bounds taken as met")
        if way.command.script is None:
            return
        for words in dict.fromkeys(cause.arguments for cause in causes if cause.arguments):
            mine = [cause for cause in causes if cause.arguments == words]
            if not self._time(way.run.wall) or words[0] in way.command.argv or self._tried >= _MOST_OPTIONS:
                continue
            self._tried += 1
            command = replace(
                way.command, argv=(*way.command.argv, *words), text=f"{way.command.text} {' '.join(words)}"
            )
            self._try(replace(way, command=command), _knobs_of(mine), "with other arguments")

    def _drives(self, way: _Way, plain: Run) -> None:
        """The functions by themselves, at the end of the command."""
        if plain.record.process != "main" or sum(bool(record.backwards) for record in plain.records) > 1:
            # Processes that train together wait for each other.
            return
        groups = self._open()
        wanted: dict[tuple[str, str], set[int]] = {}
        for group in groups:
            for place in self._functions(group):
                wanted.setdefault(place, set()).update(line for path, line in self._lines(group) if path == place[0])
        drives = tuple(drive(*place, self._trees, lines) for place, lines in sorted(wanted.items()))
        if not drives or not self._time(plain.wall):
            return
        self._tell(f"functions by themselves: {way.command.text}")
        loops = [(one.path, line) for one in drives for line in training(self._trees[one.path], one.name)]
        caps = tuple(Cap(path, line, OUTER) for path, line in dict.fromkeys(loops))
        trial = self._run(way, Knobs(caps, drives=drives), groups, strict=False)
        if trial is None:
            return
        shown = [driven for record in trial.records for driven in record.driven]
        fine = {each.place for each in shown} - {each.place for each in shown if each.error or each.reason}
        fine -= {each.place for each in shown if not each.told}
        self._unmade.update((each.place, _unmade(each)) for each in shown if each.place not in fine)
        made = {each.place: each.recipe for each in shown}
        drives = tuple(replace(each, recipe=made.get((each.path, each.name))) for each in drives)
        good = tuple(each for each in drives if (each.path, each.name) in fine)
        if good:
            self._try(way, Knobs(caps, drives=good), "functions called by themselves at the end")
        for each in shown:
            # An error in a rewritten line may be what the rewrite repairs.
            concerned = [group for group in groups if each.error is not None and each.line in self._lines(group)]
            if concerned and self._time(plain.wall):
                one = tuple(drive for drive in drives if (drive.path, drive.name) == each.place)
                self._try(
                    way, Knobs(caps, drives=one), "a function called by itself at the end", concerned, mended=True
                )

    def _bare(self, command: Command) -> None:
        """The functions without the program, with what can be made up for them."""
        argv = (self._runner.settings.python, "-c", "import torch")
        alone = Command(argv, command.cwd, "its functions, without the program")
        names = imports(self._trees.values()) - {PurePath(path).parts[0].partition(".")[0] for path in self._trees}
        known = self._runner.modules, self._runner.folders
        self._runner.modules += tuple(sorted(set(self._runner.lacks(names)) - set(self._runner.modules)))
        self._runner.folders += (".",)
        self._drives(_Way(alone), Run("", argv, Outcome.OK, 0, 0.0, 0, (Record(process="main"),), ""))
        self._runner.modules, self._runner.folders = known

    def _try(
        self, way: _Way, knobs: Knobs, plan: str, groups: Sequence[Mended] | None = None, *, mended: bool = False
    ) -> Entry | None:
        """Run the original in this way, and judge by it what it reaches of what is open.

        Return the entry; one of a run of the original alone where that reaches nothing more. With ``mended`` the
        original raises, and that counts only where the rewritten program does not: else the call was none to make.
        """
        groups = self._open() if groups is None else groups
        self._tell(f"{plan}: {way.command.text}")
        trial = self._run(way, knobs, groups)
        original = trial if way.base is None or trial is None else self._run(_Way(way.command), knobs, groups)
        if trial is None or original is None:
            return None
        plain = Entry(original.command, original, None, None, None, None, (), plan=plan)
        came = reached(self._rewriter, {group.key: group.touched.before() for group in groups}, trial)
        if not came or not self._time(trial.wall * _RUNS):
            return plain
        broken = {rewrite.key for rewrite in self._joined() if rewrite.verdict is Verdict.BROKEN}
        version = self._rewriter.some(self._groups.keys() - broken)
        try:
            entry = judge(
                self._runner, self._rewriter, version, way.command, original, self._tell,
                knobs=knobs, plan=plan, also=self.also(),
            )  # fmt: skip
        except Unfit:
            return plain
        if mended and (entry.rewritten is None or died(entry.rewritten)):
            return plain
        wanted = {group.key for group in groups}
        told = [self._marked(rewrite, trial) for rewrite in entry.rewrites if rewrite.key in wanted]
        entry = replace(entry, rewrites=tuple(told))
        self._entries.append(entry)
        return entry

    def _run(self, way: _Way, knobs: Knobs, groups: Sequence[Mended], strict: bool = True) -> Run | None:
        """A run of the way's program, its lines told as those of the original; None where a knob has no place."""
        base, also = way.base, self.also()
        lines = {group.key: group.touched.before() for group in groups}
        if base is not None:
            lines = base.watch(groups)
            shown = {self._rewriter.relative(path): path for path in base.new}
            standing = [base.standing(shown.get(path, path), line) for path, line in also]
            also = frozenset(line for each in lines_below(self._rewriter, standing) for line in each)
        watch = [sorted(each) for each in lines_below(self._rewriter, lines.values())]
        try:
            run = driven(
                self._runner, self._rewriter, way.command, "original", base, watch, knobs, also=also, strict=strict
            )
        except Unfit:
            return None
        return run if base is None else as_read(run, base, self._rewriter)

    def _others(self, commands: Sequence[Command]) -> Iterator[Command]:
        """Scripts and tests that lead to the files of what is open, as ``batch`` finds them."""
        concerned = {path for group in self._open() for path, _ in self._lines(group)}
        known = {command.argv for command in commands}
        settings = self._runner.settings
        for entry in find_entries(self._texts, read_readme(self._runner.root), concerned, most=_MOST_ENTRIES):
            folder = self._runner.root / entry.folder
            try:
                command = entry_command(entry.command, settings.python, folder)
            except VerifyError:
                continue
            if command.argv not in known and command.script not in {each.script for each in commands if each.script}:
                yield command

    # What is open, and why.

    def _joined(self) -> tuple[Rewrite, ...]:
        return join([entry.rewrites for entry in self._entries])

    def _open(self) -> list[Mended]:
        """The rewrites that no run has reached in full."""
        known = {rewrite.key: rewrite.verdict for rewrite in self._joined()}
        return [group for key, group in self._groups.items() if known.get(key, Verdict.NOT_REACHED) in _OPEN]

    def _lines(self, group: Mended) -> list[Line]:
        return sorted(line for lines in lines_below(self._rewriter, [group.touched.before()]) for line in lines)

    def _causes(self, group: Mended, run: Run) -> list[Cause]:
        """Why each block of the lines of ``group`` did not run in ``run``."""
        causes = Causes(run, self._trees, self._place)
        seen = {line for record in run.records for line in record.reached}
        missed = [line for line in self._lines(group) if line not in seen and line[0] in self._trees]
        starts = [line for line in missed if line[1] in heads(self._trees[line[0]])]
        return [causes.of(*line) for line in dict.fromkeys([*missed[:1], *starts])]

    def _functions(self, group: Mended) -> set[tuple[str, str]]:
        found = set()
        for path, line in self._lines(group):
            function = enclosing(self._trees.get(path, _EMPTY), line)
            if function is not None:
                found.add((path, function[0]))
        return found

    def _callers(self, path: str, line: int) -> set[str]:
        """The files that call the function around ``line``, and those that call these."""
        found: set[str] = set()
        ways = [(path, line)]
        for _ in range(2):
            following: list[Line] = []
            for at, number in ways:
                function = enclosing(self._trees.get(at, _EMPTY), number)
                if function is not None:
                    following += [(where, call.lineno) for where, _, call in calls(function[0], self._trees, at)][:8]
            found |= {where for where, _ in following}
            ways = following
        return found

    def _explained(self, entry: Entry) -> Entry:
        """``entry`` with the reason for what it did not reach."""
        groups = self._groups
        rewrites = tuple(
            replace(rewrite, why=self._reason(groups[rewrite.key], entry, rewrite.why))
            if rewrite.verdict is Verdict.NOT_REACHED and rewrite.key in groups
            else rewrite
            for rewrite in entry.rewrites
        )
        return replace(entry, rewrites=rewrites)

    def _reason(self, group: Mended, entry: Entry, plain: str) -> str:
        causes = self._causes(group, self._shown.get(id(entry.original), entry.original))
        if not causes:
            return plain
        cause = causes[0]
        parts = [cause.text, cause.advice]
        parts += [
            f"by itself {name} could not be judged: {self._unmade[path, name]}"
            for path, name in sorted(self._functions(group))
            if (path, name) in self._unmade
        ][:1]
        return "; ".join(part for part in parts if part)

    def _marked(self, rewrite: Rewrite, trial: Run) -> Rewrite:
        """``rewrite`` with whether only calls at the end of ``trial`` came to its lines."""
        if rewrite.verdict is Verdict.NOT_REACHED:
            return rewrite
        lines = set(self._lines(self._groups[rewrite.key]))
        seen = {line for record in trial.records for line in record.reached} & lines
        alone = {line for record in trial.records for line in record.alone} & lines
        if not alone or seen != alone:
            return rewrite
        functions = self._functions(self._groups[rewrite.key])
        how = next((each.how for record in trial.records for each in record.driven if each.place in functions), "")
        return replace(rewrite, alone=True, why=f"called {how}: {rewrite.why}" if how else rewrite.why)

    def _place(self, path: str, line: int) -> str:
        return f"{path}:{line}"

    def _time(self, seconds: float) -> bool:
        return time.monotonic() + seconds < self._until


_EMPTY = ast.Module([], [])


def _parsed(texts: Mapping[str, str]) -> Iterator[tuple[str, ast.AST]]:
    for path, text in texts.items():
        try:
            yield path, ast.parse(text)
        except FAILURES:
            continue


def _knobs_of(causes: Iterable[Cause]) -> Knobs:
    known = list(causes)
    return Knobs(
        tuple(dict.fromkeys(cap for cause in known for cap in cause.caps)),
        tuple(dict.fromkeys(bound for cause in known for bound in cause.bounds)),
    )


def _is_notebook(command: Command) -> bool:
    return command.script is not None and is_notebook(command.script.name)


def _unmade(driven: Driven) -> str:
    if driven.error is None:
        return driven.reason or "it shows nothing that could be compared"
    where = f" at {driven.site}" if driven.site is not None else ""
    return f"called {driven.how}, the original raises {driven.error.type}{where}"
