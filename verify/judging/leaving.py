"""Gets programs past what they lack: the failing call is left out, and a made-up value takes the place of its result.

Nothing is left out for an error that the complete program would have too (:func:`verify.reaching.leaving.next_one`),
and a verdict based on such runs claims no more than they show: :func:`cautious`.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import PurePath

from codemods.terms.counting import listed
from codemods.terms.findings import Promise
from verify.judging.faults import died, symptoms
from verify.judging.ways import parsed
from verify.measured.records import Record
from verify.measured.results import Entry, Rewrite, Run, Verdict
from verify.reaching.drives import imports
from verify.reaching.knobs import Knobs, Leaving, Unfit
from verify.reaching.leaving import Left, next_one, twins
from verify.reaching.options import batch_sizes
from verify.running.asking import compared_texts
from verify.running.missing import NEVER_MADE_UP, Instead, made_in
from verify.running.rewriting import below
from verify.running.runner import Runner
from verify.running.settings import Command
from verify.syntax import last_name

Line = tuple[str, int]
#: So many places are left out of one command at most.
_MOST = 16
#: Places that are named in a verdict.
_TOLD = 4


#: Calls in which a training trains.
_WALKS = frozenset({"backward", "manual_backward", "fit", "train"})


@contextmanager
def without_modules(runner: Runner, trees: Mapping[str, ast.AST]) -> Iterator[None]:
    """Have ``runner`` stand in for all modules that the tree imports and the interpreter lacks, and for what else was
    found."""
    own = {PurePath(path).parts[0].partition(".")[0] for path in trees}
    names = imports(trees.values()) - own - NEVER_MADE_UP
    known = runner.instead
    lacking = (known.more or known).beside(*sorted(runner.lacks(names)), folders=(".",))
    # What the script itself is seen to compare goes before what others do.
    compared = {**compared_texts(tree for _, tree in sorted(trees.items())), **dict(lacking.compared)}
    runner.instead = replace(lacking, compared=tuple(compared.items()))
    try:
        yield
    finally:
        runner.instead = known


def found(
    runner: Runner,
    command: Command,
    trees: Mapping[str, ast.AST],
    lines: Iterable[Line],
    in_time: Callable[[float], bool],
    tell: Callable[[str], None],
) -> tuple[tuple[Left, ...], bool]:
    """What to leave out of ``command`` so that the original gets further, each with the value made up for it; and
    whether the program then finishes, or makes all its steps.

    ``lines`` are those to reach; ``in_time`` tells whether that many seconds are left.
    """
    look = partial(_found, runner, command, trees, sorted(set(lines)), in_time, tell)
    left, goes_on, backwards = look(files=True)
    known = runner.instead
    if known.files and not backwards:
        # It may be what was made up that ends it: what reads the files is left out then.
        runner.instead = replace(known, files=())
        others, finishes, backwards = look(files=False)
        if backwards:
            return others, finishes
        runner.instead = known
    return left, goes_on


def _found(
    runner: Runner,
    command: Command,
    trees: Mapping[str, ast.AST],
    watch: list[Line],
    in_time: Callable[[float], bool],
    tell: Callable[[str], None],
    *,
    files: bool,
) -> tuple[tuple[Left, ...], bool, int]:
    """The same with or without made-up ``files``, and how many backwards the last run made."""
    also = [
        (path, node.lineno) for path, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.stmt)
    ]
    batch = next(iter(batch_sizes(trees, command.argv)), None)
    left: tuple[Left, ...] = ()
    seconds, added = 0.0, 1
    tried: set[tuple[object, ...]] = set()
    again = goes_on = False
    backwards = 0
    for _ in range(_MOST):
        if not in_time(2 * seconds):
            break
        knobs = Knobs(left=left)
        try:
            over = knobs.over_tree(runner.root)
        except Unfit:
            break
        tell(f"the original without {left[-1].place if left else 'what it lacks'}: {command.text}")
        more = {**knobs.configuration(), "explore": True, "again": again, "arguments": True, "try_files": files}
        run = runner.run("original", command, files=over, watch=[[line] for line in watch], also=also, more=more)
        seconds, backwards = max(seconds, run.wall), len(run.record.backwards)
        before_files = runner.instead.files
        runner.instead = runner.instead.with_files(made_in(run))
        fresh_files = runner.instead.files != before_files
        absent = _absent(run)
        if absent and absent not in (*runner.instead.modules, *NEVER_MADE_UP):
            # A library asks for it, which the tree imports.
            runner.instead = runner.instead.beside(absent)
            continue
        before, left = left, _settled(left, run)
        stopped = next((record.stopped for record in run.records if record.stopped is not None), None)
        if stopped is None and run.record.end == "watchdog" and not run.record.backwards and fresh_files:
            # Looking for what is in them took the time.
            continue
        if stopped is None and run.record.end == "watchdog" and _missing(left) < _missing(before) and _missing(left):
            # There was no time to find all; what was found is given now.
            continue
        if stopped is None:
            goes_on = not died(run)
            break
        places = tuple((each.path, each.span) for each in left)
        fresh = bool(left) and all(each.recipe is None for each in left[-added:])
        following = next_one(stopped, trees, watch, left)
        if following is None and stopped.frames and (stopped.frames[0].path, stopped.frames[0].span[0]) in watch:
            # A mistake that is to be mended: no value helps there.
            break
        # No value is to blame for what is not there.
        deep = following is not None and following[0].deep and not stopped.absent
        again = (fresh or following is None or deep) and bool(places) and places not in tried
        if again:
            # What fits one may not fit another.
            tried.add(places)
            continue
        if following is None:
            break
        new, left = following
        others = tuple(twins(new, stopped, trees, left))
        added = 1 + len(others)
        step = (*places, new.path, new.span, repr(new.form))
        if step in tried:
            break
        tried.add(step)
        left = (*left, *(replace(each, form={**each.form, "batch": batch}) for each in (new, *others)))
    # What no run came to, or what there was no time to find, is none.
    return tuple(each for each in left if each.recipe is not None), goes_on, backwards


def made_up(
    runner: Runner, command: Command, seconds: float, tell: Callable[[str], None]
) -> tuple[Instead, Leaving | None]:
    """What stands in for all that ``command`` lacks to come to its backwards: stand-ins, and what is left out; looked
    for within that many ``seconds``."""
    until = time.monotonic() + seconds
    places = [(below(each.absolute, runner.root), each) for each in runner.sources() if each.notebook is None]
    trees = dict(parsed({path: each.text for path, each in places if path is not None}))
    lines = [
        (path, node.lineno)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and last_name(node.func) in _WALKS
    ]
    with without_modules(runner, trees):
        left, _ = found(runner, command, trees, lines, lambda more: time.monotonic() + more < until, tell)
        return runner.instead, Leaving(runner.root, left) if left else None


def _absent(run: Run) -> str:
    """The module for want of which ``run`` ended; empty for none."""
    error = run.record.error
    name = run.record.missing if error is not None and error.type == "ModuleNotFoundError" else None
    return (name or "").partition(".")[0]


def _missing(left: tuple[Left, ...]) -> int:
    """For how many places nothing has been found."""
    return sum(each.recipe is None for each in left)


def _settled(left: tuple[Left, ...], run: Run) -> tuple[Left, ...]:
    """``left`` with what ``run`` learned about each."""
    told = {tuple(each["span"]): each for record in run.records for each in record.left}

    def settled(each: Left) -> Left:
        event = told.get((each.path, *each.span))
        if event is None:
            return each
        search = {key: event[key] for key in ("skeleton", "picks")} if event.get("skeleton") else each.search
        return replace(each, recipe=event["recipe"], search=search)

    return tuple(map(settled, left))


def told(record: Record) -> list[str]:
    """The values made up in the run of ``record``, by place."""
    # A folder to write into holds nothing that anybody reads.
    files = [f"{each['path']}: {each['told']}" for each in record.made if each["kind"] != "write"]
    return [*files, *(f"{each['place']}: {each['told']}" for each in record.left)]


def cautious(entry: Entry) -> Entry:
    """Return ``entry``, whose runs had made-up values, with verdicts that claim no more than such runs can show."""
    made = tuple(dict.fromkeys(line for record in entry.original.records for line in told(record)))
    if not made:
        return entry
    blind = _blind(entry)
    rewrites = []
    for rewrite in entry.rewrites:
        if rewrite.verdict is Verdict.NOT_REACHED:
            rewrites.append(rewrite)
            continue
        why = _doubt(rewrite, entry, blind)
        if why:
            rewrite = replace(rewrite, verdict=Verdict.NOT_JUDGED, why=f"{rewrite.why}; but {why}", without="")
        rewrites.append(replace(rewrite, made=made))
    return replace(entry, rewrites=tuple(rewrites))


def _doubt(rewrite: Rewrite, entry: Entry, blind: str) -> str:
    """Why a verdict from runs with made-up values does not count; empty where it does."""
    seen = symptoms(entry.original)
    promise = rewrite.finding.promise
    if rewrite.verdict is Verdict.BROKEN:
        if promise in (Promise.REPAIR, Promise.BEHAVIOUR) and not seen.faulty:
            return "made-up values do not show the fault"
        if died(entry.original) and not seen.faulty:
            return "the original stops, perhaps because of made-up values"
        return ""
    if rewrite.verdict is not Verdict.KEPT:
        return ""
    if died(entry.original) and not seen.faulty:
        return "the original stops, perhaps because of made-up values"
    if entry.rewritten is not None and died(entry.rewritten):
        return "the rewritten program stops, perhaps because of made-up values"
    if promise is Promise.REPAIR and not seen.faulty:
        return "made-up values do not show the fault"
    return blind


def _blind(entry: Entry) -> str:
    """What went into a left-out call after rewritten lines had run and could not be compared; empty for nothing."""
    runs = [run for run in (entry.original, entry.rewritten) if run is not None]
    unsteady = entry.original.unsteady or frozenset()
    for run in runs:
        for record in run.records:
            for each in record.observed:
                # Of what has a stand-in nobody asks what else it would have read.
                if not each.left_out or not each.begun:
                    continue
                if not each.whole or f"given to {each.place}" in unsteady:
                    return f"what is left out at {each.called} reads more than could be compared"
    return ""


def shown(made: Sequence[str]) -> str:
    """What was made up, in a verdict."""
    return listed(made, _TOLD, between="; ")
