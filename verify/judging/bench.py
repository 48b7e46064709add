"""One command on the tree: the original twice, then the rewritten program as often as it takes to judge all of it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from codemods.rewriting.parts import Part
from verify.comparing.compare import compare, unsteady
from verify.comparing.gaps import alike
from verify.judging.counterparts import renumbered
from verify.judging.programs import Groups, Programs, Tried
from verify.judging.stages import Outcome, Stages
from verify.measured.records import BY_SHAPES
from verify.measured.results import STOPPED, Comparison, Difference, Entry, Rewrite, Run, Verdict
from verify.measured.values import Site
from verify.probe.process.identity import seeded_as
from verify.reaching.knobs import NONE, Knobs
from verify.running import missing
from verify.running.rewriting import Key, Lines, Rewriter, RuleRewriter, Version
from verify.running.runner import Runner
from verify.running.settings import Command

Line = tuple[str, int]
#: Steps before functions are called by themselves: enough that models and optimizers are in use.
_FEW = 4
#: Some kernels of CUDA add in any order, so two runs may be the same by chance: the original has to be the same so
#: often more before a difference speaks against a rewrite. (torch.use_deterministic_algorithms lists them.)
MORE_ON_A_CARD = 2
#: A run that waited so many seconds for lines, in vain, is made again without waiting, and so are those that follow.
_WAITED = 10.0
#: Told what is being done, for a person who waits.
Telling = Callable[[str], None]


def judge(
    runner: Runner,
    rewriter: Rewriter,
    version: Version,
    command: Command,
    original: Run,
    tell: Telling,
    *,
    knobs: Knobs = NONE,
    plan: str = "",
    also: Iterable[Line] = (),
) -> Entry:
    """Judge the rewrites of ``version`` by ``command``, of which ``original`` is a run on the tree as it is.

    All programs are driven with ``knobs``, as ``original`` was; ``plan`` says so to people. ``also`` are lines of the
    original that are told of when they run. Raises :class:`verify.reaching.knobs.Unfit` where a rewritten program has
    no place for a knob.
    """
    groups = version.groups
    if not groups:
        return Entry(original.command, original, plan=plan)
    lacking = None if plan else missing.ended_by(original)
    if lacking is not None and isinstance(rewriter, RuleRewriter):
        died_at = _died_at(rewriter, version, None, original)
        if not any(group.touched.before() & died_at for group in groups):
            # No rewrite brings it, so another run would come as far as this one.
            why = f"the original stops before it, for lack of {lacking.name}"
            rewrites = tuple(Rewrite(group.findings, Verdict.NOT_REACHED, why) for group in groups)
            return Entry(original.command, original, rewrites=rewrites)
    tolerance = runner.settings.tolerance
    seeds = [
        (*seed, seeded_as(record.process, record.about.get("argv")))
        for record in original.records
        for seed in record.seeds
    ]
    before = {group.key: group.touched.before() for group in groups}
    replaced = {group.key: group.touched.replaced({}, {}, version.old) for group in groups}

    gone = _gone(version)
    hurry = False

    def run(
        name: str,
        made: Version | None,
        lines: list[list[Line]],
        parts: dict[Key, list[Part]],
        also: Iterable[Line] = (),
        *,
        anew: bool = False,
    ) -> Run:
        return driven(
            runner, rewriter, command, name, made, lines, knobs,
            replay=seeds, also=also, parts=_parts_below(rewriter, parts), hurry=hurry, anew=anew,
        )  # fmt: skip

    tell(f"original again: {command.text}")
    # The second run is the one to show: it was watched as the rewritten one will be, which costs memory and time.
    again = dataclasses.replace(original, name="original again")
    # One of the two begins from nothing: if both do the same, so do others that begin with what is there already.
    watched = functools.partial(run, "original", None, _watch(rewriter, before, replaced), gone, also)
    plain = functools.partial(run, "original", None, [], {})
    anew = original.warm
    original = watched(anew=anew)
    if original.wall > _WAITED and waited_in_vain(original, runner.settings.steps):
        hurry = True
        original = watched(anew=anew)
        if not alike(again.record, original.record):
            # What differs by itself is seen only in runs that end at the same place.
            again = dataclasses.replace(plain(anew=not anew), name="original again")
    repeatable = compare(original, again, tolerance=tolerance)
    if repeatable.difference is not Difference.IDENTICAL and original.warm != again.warm:
        # It may be for what was there already.
        runner.warm = False
        original, again = (watched(), again) if original.warm else (original, plain())
        again = dataclasses.replace(again, name="original again")
        repeatable = compare(original, again, tolerance=tolerance)
    original = dataclasses.replace(original, unsteady=unsteady(original, again))

    def execute(some: Groups, asked: frozenset[tuple[str, int]]) -> Tried:
        made = version if len(some) == len(groups) else rewriter.some(group.key for group in some)
        tell(f"rewritten ({len(some)} of {len(groups)} rewrites): {command.text}")
        watched = made.watch(groups)
        places = {line: made.standing(*line) for line in asked}
        changed = made.statements(groups, version.old)
        lines = [*_watch(rewriter, watched, changed), *lines_below(rewriter, places.values())]
        parts = made.parts(groups, version)
        rewritten = dataclasses.replace(run("rewritten", made, lines, parts), unsteady=original.unsteady)
        rewritten = renumbered(rewritten, original, functools.partial(_origins, rewriter, made))
        touched = {key: frozenset(lines_below(rewriter, [watched[key]])[0]) for key in made.made & watched.keys()}
        seen = rewritten.reached
        ran = frozenset(line for line in asked if seen.intersection(*lines_below(rewriter, [places[line]])))
        late = _late(rewriter, changed, rewritten), _late_parts(rewriter, parts, rewritten)
        return _tried(made, rewritten, reached(rewriter, watched, rewritten), touched, ran, late)

    def _tried(
        made: Version | None,
        run: Run,
        reached: frozenset[Key],
        touched: dict[Key, frozenset[tuple[str, int]]],
        ran: frozenset[tuple[str, int]],
        late: tuple[dict[Key, dict[Line, int | None]], dict[Key, dict[Part, int | None]]],
    ) -> Tried:
        died_at = _died_at(rewriter, version, made, run)
        near = frozenset(group.key for group in groups if group.touched.before() & died_at)
        return Tried(run, reached, frozenset() if made is None else made.made, touched, died_at, near, ran, *late)

    def solved() -> Outcome:
        programs = Programs(
            execute,
            _tried(
                None,
                original,
                reached(rewriter, before, original),
                {},
                frozenset(),
                (_late(rewriter, replaced, original), _late_parts(rewriter, gone, original)),
            ),
            deterministic=repeatable.difference is Difference.IDENTICAL and not original.unrepeatable,
            tolerance=tolerance,
            place=version.place,
        )
        unproved = {group.key: group.touched.unproved(version.old, version.new) for group in groups}
        return Stages(programs, unproved).solve(groups)

    outcome = solved()
    # The first run ends with its last step. The second one waits for lines and may go on: whether what comes there is
    # repeatable, these two do not show.
    doubts = MORE_ON_A_CARD if _on_a_card(original) else int(not alike(again.record, original.record))
    if any(rewrite.verdict is Verdict.BROKEN for rewrite in outcome.rewrites):
        for _ in range(doubts if repeatable.difference is Difference.IDENTICAL else 0):
            tell(f"original once more: {command.text}")
            more = watched()
            other = compare(original, more, tolerance=tolerance)
            if other.difference is not Difference.IDENTICAL:
                again, repeatable = dataclasses.replace(more, name="original again"), other
                original = dataclasses.replace(
                    original, unsteady=(original.unsteady or frozenset()) | unsteady(original, more)
                )
                outcome = solved()
                break
    final = outcome.final or (outcome.runs[-1][1] if outcome.runs else None)
    comparison: Comparison | None = None
    if final is not None:
        comparison = compare(original, final, tolerance=tolerance)
    staged = tuple((name, run) for name, run in outcome.runs if run is not final)
    rewrites = _believed(outcome.rewrites, [original, again, *(run for _, run in outcome.runs)])
    return Entry(original.command, original, again, final, repeatable, comparison, rewrites, staged, plan=plan)


def _believed(rewrites: Iterable[Rewrite], runs: Iterable[Run]) -> tuple[Rewrite, ...]:
    """``rewrites``; none is judged where a program meddled with the records of the probe."""
    tampered = next((record.tampered for run in runs for record in run.records if record.tampered), "")
    if not tampered:
        return tuple(rewrites)
    why = f"a program changes what is recorded of it ({tampered})"
    return tuple(
        each
        if each.verdict is Verdict.NOT_REACHED
        else dataclasses.replace(each, verdict=Verdict.NOT_JUDGED, why=why, without="")
        for each in rewrites
    )


def asked(rewriter: Rewriter, version: Version) -> tuple[list[list[Line]], list[tuple[Any, ...]]]:
    """The groups of lines and the parts of lines that a run of the original must report before ``version`` can be
    judged."""
    before = {group.key: group.touched.before() for group in version.groups}
    replaced = {group.key: group.touched.replaced({}, {}, version.old) for group in version.groups}
    return _watch(rewriter, before, replaced), _parts_below(rewriter, _gone(version))


def driven(
    runner: Runner,
    rewriter: Rewriter,
    command: Command,
    name: str,
    made: Version | None,
    watch: list[list[Line]],
    knobs: Knobs,
    *,
    replay: Iterable[tuple[Any, ...]] | None = None,
    also: Iterable[Line] = (),
    parts: Iterable[Sequence[Any]] = (),
    strict: bool = True,
    hurry: bool = False,
    anew: bool = False,
) -> Run:
    """Run ``command`` on ``made`` (None: on the tree as it is) with ``knobs``; see :meth:`Runner.run`.

    ``parts`` of lines are watched too (paths below the root), but for those that a knob moves. With ``strict`` an
    error in a function that is called at the end ends the run. With ``hurry`` it does not go on for lines that have not
    run after its steps.
    """
    files = knobs.over(rewriter, runner.root, made)
    moved = _turned(knobs, rewriter, made)
    seen = {"parts": [list(part) for part in parts if not moved.intersection((part[0], n) for n in _lines_in(part))]}
    if not knobs.drives:
        more = {**knobs.configuration(), **seen, "hurry": hurry}
        return runner.run(name, command, files=files, watch=watch, replay=replay, also=also, more=more, anew=anew)
    # What is called at the end is what there is to see: nothing before it is waited for.
    lines = {line for group in watch for line in group}.union(also)
    more = {
        **knobs.configuration(),
        **seen,
        "strict": strict,
        "make_up": True,
        "steps": min(_FEW, runner.settings.steps),
    }
    return runner.run(name, command, files=files, replay=replay, also=lines, more=more, anew=anew)


def as_read(run: Run, made: Version, rewriter: Rewriter) -> Run:
    """Return ``run``, a run of ``made``, with all its lines numbered as in the original."""

    def origin(path: str, line: int) -> Line | None:
        return next(iter(_origins(rewriter, made, path, line)), None)

    def site(known: Site | None) -> Site | None:
        place = None if known is None else origin(known.path, known.line)
        return None if known is None or place is None else known._replace(line=place[1])

    records = []
    for record in run.records:
        reached, alone = (
            {found for line in lines if (found := origin(*line)) is not None}
            for lines in (record.reached, record.alone)
        )
        stack = tuple(known for each in record.stack if (known := site(each)) is not None)
        driven = [each._replace(site=site(each.site)) for each in record.driven]
        records.append(
            dataclasses.replace(
                record, reached=reached, alone=alone, stack=stack, driven=driven, error_site=site(record.error_site)
            )
        )
    return dataclasses.replace(run, records=tuple(records))


def waited_in_vain(run: Run, steps: int) -> bool:
    """Whether ``run`` went on after ``steps``, and nothing that is watched came of it."""
    made = max((len(record.steps) or len(record.backwards) for record in run.records), default=0)
    came = [
        after
        for record in run.records
        for each in (record.reached_after, record.parts_after)
        for after in each.values()
    ]
    return run.record.end in STOPPED and made > steps and max(came, default=0) < steps


def _origins(rewriter: Rewriter, made: Version, path: str, line: int) -> list[Line]:
    """The lines as first read to which a line of ``made`` corresponds; paths below the root."""
    shown = next((each for each in made.new if rewriter.relative(each) == path), None)
    return [(path, line)] if shown is None else [(path, origin) for _, origin in sorted(made.origins(shown, line))]


def _gone(version: Version) -> dict[Key, list[Part]]:
    """The parts of the original tree that ``version`` removes."""
    plain = dataclasses.replace(version, files={}, groups=(), old={}, new={})
    return plain.parts(version.groups, version)


def _on_a_card(run: Run) -> bool:
    return any(record.about.get("device") not in (None, "cpu", BY_SHAPES) for record in run.records)


def lines_below(rewriter: Rewriter, watched: Iterable[Lines]) -> list[list[tuple[str, int]]]:
    """The lines to watch, with their paths below the root."""
    return [[(rewriter.relative(path) or path, line) for path, line in lines] for lines in watched]


def _watch(rewriter: Rewriter, watched: dict[Key, Lines], changed: dict[Key, list[Lines]]) -> list[list[Line]]:
    """The lines of each rewrite, one of which has to run, and those of each statement that it changes."""
    return [
        *lines_below(rewriter, watched.values()),
        *lines_below(rewriter, (each for lines in changed.values() for each in lines)),
    ]


def _late(rewriter: Rewriter, changed: dict[Key, list[Lines]], run: Run) -> dict[Key, dict[Line, int | None]]:
    """Return the first line of each statement with the number of steps that were complete when it first ran, or
    None."""
    seen = _earliest(record.reached_after for record in run.records)
    found: dict[Key, dict[Line, int | None]] = {}
    for key, statements in changed.items():
        for lines in statements:
            ran = [seen[place] for place in lines_below(rewriter, [lines])[0] if place in seen]
            found.setdefault(key, {})[min(lines)] = min(ran, default=None)
    return found


def _late_parts(rewriter: Rewriter, parts: dict[Key, list[Part]], run: Run) -> dict[Key, dict[Part, int | None]]:
    """The same for parts of lines."""
    seen = _earliest(record.parts_after for record in run.records)
    return {
        key: {part: seen.get((rewriter.relative(part.path) or part.path, *part.place[1:])) for part in mine}
        for key, mine in parts.items()
    }


def _earliest(processes: Iterable[dict[Any, int]]) -> dict[Any, int]:
    """After how many steps each place first ran in any of the processes."""
    found: dict[Any, int] = {}
    for seen in processes:
        for place, steps in seen.items():
            found[place] = min(steps, found.get(place, steps))
    return found


def _parts_below(rewriter: Rewriter, parts: dict[Key, list[Part]]) -> list[tuple[Any, ...]]:
    every = dict.fromkeys(part.place for mine in parts.values() for part in mine)
    return [(rewriter.relative(place[0]) or place[0], *place[1:]) for place in every]


def _lines_in(part: Sequence[Any]) -> range:
    return range(part[1], part[3] + 1)


def _turned(knobs: Knobs, rewriter: Rewriter, made: Version | None) -> frozenset[Line]:
    """The lines of ``made`` that hold a knob, which moves their columns; paths below the root."""
    lines = [(cap.path, cap.line) for cap in knobs.caps] + [(bound.path, bound.line) for bound in knobs.bounds]
    lines += [(left.path, line) for left in knobs.left for line in range(left.span[0], left.span[2] + 1)]
    if made is None:
        return frozenset(lines)
    shown = {rewriter.relative(path): path for path in made.new}
    standing = [made.standing(shown.get(path, path), line) for path, line in lines]
    return frozenset(line for each in lines_below(rewriter, standing) for line in each)


def reached(rewriter: Rewriter, watched: dict[Key, Lines], run: Run) -> frozenset[Key]:
    """Return the rewrites with a line in ``watched`` that ran in ``run``."""
    seen = run.reached
    return frozenset(
        key for key, lines in watched.items() if any((rewriter.relative(path), line) in seen for path, line in lines)
    )


def _died_at(rewriter: Rewriter, version: Version, made: Version | None, run: Run) -> frozenset[tuple[str, int]]:
    """Return the original lines that correspond to the place of the error which ended ``run``, a run of ``made``.

    Paths are as they are shown. Empty where the place is unknown, or the line was added.
    """
    at = run.failed.error_line
    if at is None:
        return frozenset()
    path = next((shown for shown in version.sources if rewriter.relative(shown) == at[0]), at[0])
    return frozenset([(path, at[1])]) if made is None else made.origins(path, at[1])
