"""Runs a program with stand-ins for what it lacks to come to its first backward: files that it reads, folders that it
writes into, modules, arguments, names that newer releases of libraries have no more, states that it loads."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable
from dataclasses import replace

from codemods.source.syntax import FAILURES
from verify.errors import OutOfTime
from verify.measured.results import Outcome, Run
from verify.running import missing
from verify.running.asking import Wants, wants_of
from verify.running.rewriting import below
from verify.running.runner import Runner
from verify.running.settings import Command

#: Pieces that one command may lack.
_MOST_PIECES = 8


def brought_past(
    runner: Runner, command: Command, run: Run, again: Callable[[str], Run], mended: Callable[[Run], bool]
) -> Run:
    """Return a run of the program with stand-ins for what ended ``run``, the first one; ``run`` itself where it lacked
    nothing, or where stand-ins do not help: then ``runner`` has none for it.

    ``again`` runs the program once more, and is told how it does that. ``mended``: whether a run ends where a change
    mends it, so that no more is to be asked of the stand-ins.
    """
    known = runner.instead
    first = run
    try:
        with contextlib.suppress(OutOfTime):
            run = _with_pieces(runner, command, run, again)
            if _helps(runner, run, first, mended):
                return run
    finally:
        runner.trying = None
    # It may be more than a logger: what the program says of a made-up one is of no use to anybody.
    runner.instead = replace(known, more=runner.instead)
    return first


def _helps(runner: Runner, run: Run, first: Run, mended: Callable[[Run], bool]) -> bool:
    """Whether ``run`` is one to go on with."""
    if run is first or run.outcome is Outcome.OK:
        return True
    if first.error is not None and run.error == first.error:
        return False
    if run.record.end == "watchdog":
        # What it lacked it has; what it has not is time, for which there are other ways.
        return True
    # Where made-up data ends it, leaving out what reads them may bring it further.
    spoiled = run.outcome is Outcome.RAISED and bool(runner.instead.files)
    return bool(run.record.backwards and not spoiled) or mended(run)


def _with_pieces(runner: Runner, command: Command, run: Run, again: Callable[[str], Run]) -> Run:
    """Run the program with stand-ins for what ``run`` lacked, as long as it lacks something; return the last run."""
    more_files = False
    for _ in range(_MOST_PIECES):
        if not runner.settings.data:
            break
        lacking = missing.ended_by(run) or _late(run)
        before = runner.instead
        if lacking is not None or missing.outdated(run):
            _foreseen(runner, command)
        ended = missing.stuck(run) and (lacking is None or lacking.kind is missing.FILE)
        if not runner.instead.former and missing.outdated(run):
            runner.instead = replace(runner.instead, former=True)
            how = "with names that newer releases lack"
        elif lacking is None and not runner.instead.transforms and missing.unfit(run):
            runner.instead = replace(runner.instead, transforms=True)
            how = "without transforms that fit no made-up image"
        elif lacking is not None and not runner.instead.states and missing.may_be_state(lacking, run):
            runner.instead = replace(runner.instead, states=True)
            how = f"without {lacking.name}"
        elif ended and runner.tries_files and runner.trying is None:
            runner.trying = _lines(runner)
            how = "with made-up files"
        elif lacking is not None and (_made_up(runner, command, lacking) or runner.instead != before):
            how = f"with a stand-in for {lacking.name}"
            if runner.tries_files and runner.trying is None:
                # What else is not there comes by the way.
                runner.trying = _lines(runner)
        elif more_files and run.record.end == "watchdog" and not run.record.backwards:
            how = "with more made-up files"
        else:
            break
        run = again(how)
        files = runner.instead.files
        runner.instead = runner.instead.with_files(missing.made_in(run))
        more_files = runner.instead.files != files
    if runner.trying is not None and runner.instead.files:
        # Looking for what is in them took its time.
        runner.trying = None
        run = again("with what was found for its files")
    return run


def _foreseen(runner: Runner, command: Command) -> None:
    """Have ``runner`` stand in for what the script of ``command`` is seen to lack as well: each piece would end a run
    of its own."""
    if command.script is None:
        return
    wants = wants_of(command.script, runner.root, command.cwd)
    given = {word.partition("=")[0] for word in command.argv}
    if any(name not in given for name in wants.required) and not runner.instead.arguments:
        runner.instead = replace(runner.instead, arguments=True, compared=tuple(wants.compared.items()))
    lacking = set(runner.lacks(wants.modules)) - missing.NEVER_MADE_UP
    folders = {top: folder for top in lacking if (folder := missing.folder_of(top, runner.root)) is not None}
    more = tuple(dict.fromkeys(each for each in folders.values() if each not in runner.instead.folders))
    runner.instead = runner.instead.beside(*sorted(lacking - folders.keys()), folders=more)


def _lines(runner: Runner) -> list[tuple[str, int]]:
    """All statements of the tree: by those that it runs a program tells how far it comes."""
    lines = []
    for source in runner.sources():
        path = below(source.absolute, runner.root)
        if path is None or source.notebook is not None:
            continue
        with contextlib.suppress(*FAILURES):
            lines += [(path, node.lineno) for node in ast.walk(ast.parse(source.text)) if isinstance(node, ast.stmt)]
    return lines


def _late(run: Run) -> missing.Piece | None:
    """What ended ``run`` after its first backward, if it is what programs report with: a folder for what they write, a
    module."""
    lacking = missing.ended_by(run, late=True)
    if lacking is None or lacking.kind not in (missing.FILE, missing.MODULE) or lacking.name.endswith(".txt"):
        return None
    return lacking


def _made_up(runner: Runner, command: Command, lacking: missing.Piece) -> bool:
    """Have ``runner`` stand in for what is ``lacking``; whether it can."""
    known = runner.instead
    text = missing.as_text(lacking, command, runner.root)
    place = missing.place_of(lacking, command, runner.root)
    top = lacking.name.partition(".")[0]
    if text is not None:
        runner.instead = replace(known, texts=(*known.texts, text))
    elif place is not None and place not in known.places:
        # A log, say, in a folder that users make by hand. What is to be read stays missing.
        runner.instead = replace(known, places=(*known.places, place))
    elif lacking.kind == missing.ARGUMENT and not known.arguments:
        wants = wants_of(command.script, runner.root, command.cwd) if command.script is not None else Wants()
        runner.instead = replace(known, arguments=True, compared=tuple(wants.compared.items()))
    elif lacking.kind != missing.MODULE or top in (*known.modules, *missing.NEVER_MADE_UP):
        return False
    elif (folder := missing.folder_of(top, runner.root)) is None:
        runner.instead = known.beside(top)
    elif folder in known.folders:
        return False
    else:
        runner.instead = known.beside(folders=(folder,))
    return True
