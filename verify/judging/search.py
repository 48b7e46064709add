"""Looks for runs that reach what the commands missed, within a time budget.

In turn: the same commands with shorter loops and bounds taken as met, other scripts and tests of the tree, and finally
the functions on their own. Each way is tried on the original first; only where it reaches new lines do both programs
run that way, and only what was unreached before is judged by it.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

from codemods.rewriting.result import Mended
from codemods.source.files import SourceFile
from verify.errors import OutOfTime
from verify.judging.bench import Telling, as_read, driven, judge, lines_below, reached
from verify.judging.faults import died
from verify.judging.leaving import cautious, found, without_modules
from verify.judging.places import EMPTY, Places
from verify.judging.programs import promise_of
from verify.judging.ways import SMALL, Way, commands_leading_to, parsed, unmade
from verify.measured.records import Record
from verify.measured.results import Entry, Outcome, Rewrite, Run, Verdict, join
from verify.reaching.causes import OUTER, Cause, asked, knobs_of
from verify.reaching.drives import drive, imports, training
from verify.reaching.knobs import Cap, Knobs, Unfit
from verify.reaching.options import smaller, together
from verify.running.asking import wants_of
from verify.running.missing import Instead, ended_by
from verify.running.rewriting import Key, Rewriter, Version, below
from verify.running.runner import Runner
from verify.running.settings import Command

Line = tuple[str, int]
#: Other scripts and tests that are tried.
_MOST_ENTRIES = 12
#: A way is judged in a run of the original and one for each promise, and in so many more where it dies; it is not begun
#: where there is no time for them.
_SPARE = 2
_OPEN = (Verdict.NOT_REACHED, Verdict.PARTLY_REACHED)
#: What is left of the time when other scripts are no longer tried: functions by themselves come after them.
_OTHERS = 0.5
#: What of the time is kept for functions by themselves: nothing reaches as many lines in one run.
_ALONE = 0.3
_MADE, _WITHOUT = "with made-up values for what it lacks", "without the modules that it lacks"
#: Commands with other arguments that are tried.
_MOST_OPTIONS = 24


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
        self._trees = dict(parsed(self._texts))
        self._places = Places(rewriter, self._trees)
        self._until = 0.0
        #: Seconds that are kept for what comes last.
        self._kept = 0.0
        self._groups = {group.key: group for group in version.groups}
        self._entries: list[Entry] = []
        self._unmade: dict[tuple[str, str], str] = {}
        #: By the original of an entry, the run that tells why lines did not run.
        self._shown: dict[int, Run] = {}
        self._tried = 0
        #: Why something was not tried for want of time; empty while all was.
        self._late = ""

    @functools.cached_property
    def also(self) -> frozenset[Line]:
        """The lines to watch to learn why rewritten ones did not run."""
        paths: set[str] = set()
        found: set[Line] = set()
        for group in self._groups.values():
            for path, line in self._places.lines(group):
                found.add((path, line))
                paths |= {path, *self._places.callers(path, line)}
        return frozenset(found | {(path, line) for path in paths for line in asked(self._trees.get(path, EMPTY))})

    def run(self, commands: Sequence[tuple[Command, Instead]], entries: Sequence[Entry]) -> list[Entry]:
        """Return ``entries`` of ``commands``, each with what stands in for what it lacks, and those of the ways that
        reached more, with reasons for what stays unreached."""
        self._entries = list(entries)
        try:
            self._look(commands, entries)
        except OutOfTime as error:
            self._late = str(error)
        return [self._explained(entry) for entry in self._entries]

    def _look(self, commands: Sequence[tuple[Command, Instead]], entries: Sequence[Entry]) -> None:
        self._until = time.monotonic() + self._runner.settings.reach_seconds
        self._kept = _ALONE * self._runner.settings.reach_seconds if self._runner.settings.data else 0.0
        ways = []
        for (command, instead), known in zip(commands, entries, strict=True):
            if self._open() and not command.notebook:
                self._runner.instead = instead
                ways.append(self._lighter(self._way(Way(command, instead=instead), known)))
                self._knobs(ways[-1])
        # Of what other scripts lack no run has told but that it is not installed.
        others = Instead()
        for _, instead in commands:
            others = others.beside(*instead.modules, folders=instead.folders)
        self._runner.instead = others
        for command in self._others([command for command, _ in commands]):
            if not self._open() or not self._time(_OTHERS * self._runner.settings.reach_seconds):
                break
            if self._lacks(command):
                # It would stop at its imports: it has a run when they are stood in for.
                ways.append(Way(command, lacks=True, instead=others))
                continue
            way = Way(command, instead=others)
            entry = self._try(way, Knobs(), "found in the tree")
            if entry is not None:
                ways.append(self._lighter(self._way(way, entry)))
                self._knobs(ways[-1])
        for way in ways if self._runner.settings.data else ():
            self._runner.instead = way.instead
            if self._open() and (way.lacks or (way.run is not None and died(way.run))):
                with without_modules(self._runner, self._trees):
                    self._leave(way)
        for way in ways:
            self._runner.instead = way.instead
            if self._open() and way.run is not None and not died(way.run):
                self._drives(way, way.run)
        if self._open() and commands and self._runner.settings.data:
            command, self._runner.instead = commands[0]
            self._bare(command)

    def _way(self, way: Way, entry: Entry) -> Way:
        """How to continue from ``entry`` of ``way``: where its original crashes, with the rewrites that get past the
        crash."""
        final = entry.rewritten
        passed = {rewrite.key for rewrite in self._joined() if rewrite.verdict is Verdict.KEPT}
        if way.left:
            # With made-up values nothing is kept where the original stops, and yet the program goes on.
            passed |= {rewrite.key for rewrite in entry.rewrites if rewrite.verdict is Verdict.NOT_JUDGED}
        if not died(entry.original) or final is None or died(final) or not passed or not self._time(final.wall):
            return self._known(entry, replace(way, run=entry.original))
        way = replace(way, base=self._rewriter.some(passed))
        self._tell(f"with what gets past the error: {way.command.text}")
        return self._known(entry, replace(way, run=self._run(way, Knobs(), self._open())))

    def _lighter(self, way: Way) -> Way:
        """``way`` with smaller batches, where its program had no time for those that it takes."""
        if way.run is None or way.run.record.end != "watchdog":
            return way
        words = smaller(self._trees, way.command.argv, SMALL) if way.command.script is not None else ()
        # An option first: the program may count with the size.
        for each in ([way.told(words)] if words else []) + [replace(way, batch=SMALL)]:
            entry = self._try(each, Knobs(), "with smaller batches") if self._open() else None
            if entry is not None and died(entry.original) == (way.base is not None):
                return self._known(entry, self._way(each, entry))
        return way

    def _known(self, entry: Entry, way: Way) -> Way:
        if way.run is not None:
            self._shown[id(entry.original)] = way.run
        return way

    # The ways.

    def _knobs(self, way: Way, known: Set[tuple[str, ...]] = frozenset()) -> None:
        """Run the command again, past what blocked the lines; where ``known`` arguments were of no use, with others."""
        if way.run is None or ended_by(way.run) is not None or not self._time(way.run.wall):
            return
        causes = self._causes(way.run)
        wanted = {cause.arguments: None for cause in causes if cause.arguments and cause.arguments not in known}
        if known and not wanted:
            return
        knobs = knobs_of(cause for cause in causes if not cause.arguments)
        sets = list(wanted) if way.command.script is not None else []
        further: list[tuple[Way, Set[tuple[str, ...]]]] = []

        def ask(words: tuple[str, ...], turned: Knobs) -> None:
            if not words or not self._time(wall) or self._tried >= _MOST_OPTIONS:
                return
            self._tried += 1
            other = replace(way.told(words), turned=turned.beside(way.turned))
            entry = self._try(other, short, "with other arguments")
            if entry is not None and (entry.rewrites or not died(entry.original)):
                further.append((self._way(other, entry), frozenset() if entry.rewrites else wanted.keys() | known))

        wall, short = way.run.wall, Knobs().shorter(way.run)
        if sets and len(sets) + bool(knobs) > 1:
            # All at once saves a run for each.
            ask(together(sets, way.command.argv), knobs_of(causes))
        if knobs and self._open():
            self._try(way, knobs.shorter(way.run), "loops cut short, bounds taken as met")
        for words in sets:
            mine = [cause for cause in self._causes(way.run) if cause.arguments == words]
            if mine and words[0] not in way.command.argv:
                ask(words, knobs_of(mine))
        for other, useless in further:
            # It may have come to a condition that reads another option.
            self._knobs(other, useless)

    def _causes(self, run: Run) -> list[Cause]:
        return [cause for group in self._open() for cause in self._places.causes(group, run)]

    def _leave(self, way: Way) -> None:
        """Run the command without the calls it stops at, with made-up values in their place."""
        without = Way(way.command, instead=way.instead)
        entry = self._try(without, Knobs(), _WITHOUT) if way.lacks else None
        if entry is None or died(entry.original):
            lines = {line for group in self._open() for line in self._places.lines(group)}
            left, goes_on = found(self._runner, way.command, self._trees, lines, self._time, self._tell)
            if not left and (way.lacks or not goes_on):
                return
            without = replace(without, left=left)
            entry = self._try(without, Knobs(), _MADE if left else _WITHOUT)
        if entry is None:
            return
        self._shown.update({key: entry.original for key, run in self._shown.items() if run is way.run})
        without = self._lighter(self._way(without, entry))
        self._knobs(without)
        if self._open() and without.run is not None and not died(without.run):
            self._drives(without, without.run)

    def _drives(self, way: Way, plain: Run) -> None:
        """Call the functions on their own at the end of the command."""
        if plain.record.process != "main" or sum(bool(record.backwards) for record in plain.records) > 1:
            # Processes that train together wait for each other.
            return
        groups = self._open()
        wanted: dict[tuple[str, str], set[int]] = {}
        for group in groups:
            for place in self._places.functions(group):
                wanted.setdefault(place, set()).update(
                    line for path, line in self._places.lines(group) if path == place[0]
                )
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
        self._unmade.update((each.place, unmade(each)) for each in shown if each.place not in fine)
        made = {each.place: each.recipe for each in shown}
        drives = tuple(replace(each, recipe=made.get((each.path, each.name))) for each in drives)
        good = tuple(each for each in drives if (each.path, each.name) in fine)
        if good:
            self._try(way, Knobs(caps, drives=good), "functions called by themselves at the end")
        for each in shown:
            # An error in a rewritten line may be what the rewrite repairs.
            concerned = [group for group in groups if each.error is not None and each.line in self._places.lines(group)]
            if concerned and self._time(plain.wall):
                one = tuple(drive for drive in drives if (drive.path, drive.name) == each.place)
                self._try(
                    way, Knobs(caps, drives=one), "a function called by itself at the end", concerned, mended=True
                )

    def _bare(self, command: Command) -> None:
        """Call the functions without the program, with arguments made up where possible."""
        self._kept = 0.0
        argv = (self._runner.settings.python, "-c", "import torch")
        alone = Command(argv, command.cwd, "its functions, without the program")
        with without_modules(self._runner, self._trees):
            self._drives(Way(alone), Run("", argv, Outcome.OK, 0, 0.0, 0, (Record(process="main"),), ""))

    def _try(
        self, way: Way, knobs: Knobs, plan: str, groups: Sequence[Mended] | None = None, *, mended: bool = False
    ) -> Entry | None:
        """Run the original in this way, and judge the open rewrites that it reaches.

        Return the entry; one of a run of the original alone where that reaches nothing more. With ``mended`` the
        original raises, and that counts only where the rewritten program does not: else the call was none to make.
        """
        groups = self._open() if groups is None else groups
        knobs = way.knobs(knobs)
        self._tell(f"{plan}: {way.command.text}")
        trial = self._run(way, knobs, groups)
        bare = replace(way, base=None)
        original = trial if way.base is None or trial is None else self._run(bare, knobs, groups)
        if trial is None or original is None:
            return None
        plain = Entry(original.command, original, plan=plan)
        came = reached(self._rewriter, {group.key: group.touched.before() for group in groups}, trial)
        judged = {promise_of(group) for group in groups if group.key in came}
        if not came or not self._time(trial.wall * (1 + len(judged) + _SPARE * died(trial)), kept=0.0):
            # What the program comes to goes before functions by themselves.
            return plain
        broken = {rewrite.key for rewrite in self._joined() if rewrite.verdict is Verdict.BROKEN}
        # What changes the very thing that is left out has no place in such a run.
        taken = {(left.path, line) for left in way.left for line in range(left.span[0], left.span[2] + 1)}
        inside = {key for key, group in self._groups.items() if taken.intersection(self._places.lines(group))}
        try:
            # Where the program goes on without them, what this way does not come to only takes time.
            keys = self._groups.keys() if died(trial) or way.base is not None else came
            version = self._fitting(knobs, keys - broken, inside)
            entry = judge(
                self._runner, self._rewriter, version, way.command, original, self._tell,
                knobs=knobs, plan=plan, also=self.also,
            )  # fmt: skip
        except Unfit:
            return plain
        if mended and (entry.rewritten is None or died(entry.rewritten)):
            return plain
        wanted = {group.key for group in groups}
        told = [
            self._places.marked(rewrite, self._groups[rewrite.key], trial)
            for rewrite in entry.rewrites
            if rewrite.key in wanted
        ]
        entry = cautious(replace(entry, rewrites=tuple(told)))
        self._entries.append(entry)
        return entry

    def _fitting(self, knobs: Knobs, keys: Set[Key], inside: Set[Key]) -> Version:
        """The version with ``keys``, without those of ``inside`` that leave no place for ``knobs``."""
        version = self._rewriter.some(keys)
        try:
            knobs.over(self._rewriter, self._runner.root, version)
        except Unfit:
            if not keys & inside:
                raise
            return self._rewriter.some(keys - inside)
        return version

    def _run(self, way: Way, knobs: Knobs, groups: Sequence[Mended], strict: bool = True) -> Run | None:
        """Run the way's program and return the run, its lines numbered as in the original; None where a knob has no
        place."""
        base, also, knobs = way.base, self.also, way.knobs(knobs)
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

    @functools.cached_property
    def _absent(self) -> frozenset[str]:
        """The modules that the tree imports and that are neither installed nor replaced by a stand-in."""
        return frozenset(self._runner.lacks(imports(self._trees.values()))) - {*self._runner.instead.modules}

    def _lacks(self, command: Command) -> bool:
        """Whether ``command`` stops for a missing module before it does anything."""
        script = command.script
        if script is None or command.notebook or not self._runner.settings.data or not self._absent:
            return False
        return bool(wants_of(script, self._runner.root, command.cwd).modules & self._absent)

    def _others(self, commands: Sequence[Command]) -> Iterator[Command]:
        """Scripts and tests that lead to the files of open rewrites, as ``batch`` finds them."""
        concerned = {path for group in self._open() for path, _ in self._places.lines(group)}
        known, python = {command.argv for command in commands}, self._runner.settings.python
        found = commands_leading_to(concerned, self._texts, self._runner.root, python, most=_MOST_ENTRIES)
        for command in found:
            if command.argv not in known and command.script not in {each.script for each in commands if each.script}:
                yield command

    # What is open, and why.

    def _joined(self) -> tuple[Rewrite, ...]:
        return join([entry.rewrites for entry in self._entries])

    def _open(self) -> list[Mended]:
        """The rewrites that no run has fully reached."""
        closed = {rewrite.key for rewrite in self._joined() if rewrite.verdict not in _OPEN}
        return [group for key, group in self._groups.items() if key not in closed]

    def _explained(self, entry: Entry) -> Entry:
        """Return ``entry`` with the reason why it did not reach some rewrites."""
        groups = self._groups
        rewrites = tuple(
            replace(rewrite, why=self._reason(groups[rewrite.key], entry, rewrite.why))
            if rewrite.verdict is Verdict.NOT_REACHED and rewrite.key in groups
            else rewrite
            for rewrite in entry.rewrites
        )
        return replace(entry, rewrites=rewrites)

    def _reason(self, group: Mended, entry: Entry, plain: str) -> str:
        runs = [self._shown.get(id(each.original), each.original) for each in (entry, *self._entries)]
        parts = self._places.reasons(group, runs, self._unmade)
        return "; ".join([*parts, *filter(None, [self._late])]) if parts else plain

    def _time(self, seconds: float, kept: float | None = None) -> bool:
        left = time.monotonic() + seconds < self._until - (self._kept if kept is None else kept)
        given = self._runner.settings.reach_seconds
        if not left and not self._late and given:
            self._late = f"not all ways were tried in {given:g} s; --reach gives more time"
        return left
