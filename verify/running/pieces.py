"""Runs a program with stand-ins for what it lacks to come to its first backward: texts that it reads, folders that it
writes into, modules, arguments, names that newer releases of libraries have no more, states that it loads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

from verify.errors import OutOfTime
from verify.measured.results import Outcome, Run
from verify.running import missing
from verify.running.asking import Wants, wants_of
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
    with contextlib.suppress(OutOfTime):
        run = _with_pieces(runner, command, run, again, mended)
        run = missing.without_state(runner, command, run, lambda lacking: again(f"without {lacking}"))
    return run


def _with_pieces(
    runner: Runner, command: Command, run: Run, again: Callable[[str], Run], mended: Callable[[Run], bool]
) -> Run:
    first, known = run, runner.instead
    for _ in range(_MOST_PIECES):
        if not runner.settings.data:
            break
        lacking = missing.ended_by(run) or _late(run)
        if not runner.instead.former and missing.outdated(run):
            runner.instead = replace(runner.instead, former=True)
            how = "with names that newer releases lack"
        elif lacking is None and not runner.instead.transforms and missing.unfit(run):
            runner.instead = replace(runner.instead, transforms=True)
            how = "without transforms that fit no made-up image"
        elif lacking is not None and _made_up(runner, command, lacking):
            how = f"with a stand-in for {lacking.name}"
        else:
            break
        run = again(how)
    same = run is not first and first.error is not None and run.error == first.error
    if not same and (run.record.backwards or run.outcome is Outcome.OK or (run is not first and mended(run))):
        return run
    # It may be no text, or more than a logger: what the program says of a made-up one is of no use to anybody.
    runner.instead = known
    return first


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
        # With all others that are seen to be lacking: each of them would end a run of its own.
        runner.instead = known.beside(top, *_lacking_beside(runner, command))
    elif folder in known.folders:
        return False
    else:
        runner.instead = known.beside(folders=(folder,))
    return True


def _lacking_beside(runner: Runner, command: Command) -> list[str]:
    """Modules that the script of ``command`` imports whenever it runs, and nobody has installed."""
    if command.script is None:
        return []
    wanted = wants_of(command.script, runner.root, command.cwd).modules
    return sorted(set(runner.lacks(wanted)) - {*missing.NEVER_MADE_UP})
