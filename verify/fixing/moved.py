"""Changes that move whole statements: into the loop that needs their graph anew, or after a backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from verify.diagnosis.model import Fault
from verify.fixing.clues import Candidate, at, named, place_of
from verify.fixing.states import EACH_STEP, is_target
from verify.fixing.texts import Text, Texts
from verify.syntax import bound, covers, names, read, targets

_SIMPLE = (ast.Assign, ast.AnnAssign)


@at("freed by")
def rebuilt_in_loop(fault: Fault, texts: Texts, file: Text, backward: ast.stmt) -> Iterator[Candidate]:
    """Move the statement that made the graph to the start of the loop whose backwards walk it, with those that
    depend on it."""
    for statement in _made(fault, texts, file, backward):
        behind = [each for each in file.block(statement) if each.lineno > statement.lineno]
        loop = next((each for each in behind if covers(each, backward.lineno)), None)
        if not isinstance(loop, (ast.For, ast.While)) or loop.body[0].lineno == loop.lineno:
            continue
        moved = _with_dependents(statement, behind[: behind.index(loop)])
        if moved is not None and not _summed(moved, loop, file):
            title = f"build {file.segment(targets(statement)[0])} in each turn of the loop at {file.at(loop.lineno)}"
            files = file.moved(moved, loop.body[0], before=True)
            yield Candidate(title, EACH_STEP, files, "rebuild", fresh=True)


@at("freed by")
def begun_in_loop(fault: Fault, texts: Texts, file: Text, backward: ast.stmt) -> Iterator[Candidate]:
    """Begin in each turn what a loop takes over from the turn before, by the statement that begins it before the
    loop."""
    made = place_of(fault.clue("cause"), texts)
    if made is None or made[0].path != file.path:
        return
    loops, own = file.loops(backward), set(named(made[1]))
    loop = next((each for each in reversed(loops) if covers(each, made[1].lineno)), None)
    if loop is None or loop.body[0].lineno == loop.lineno or not isinstance(made[1], _SIMPLE):
        return
    if own & _read_behind(loops[0], file):
        # What all turns come to is wanted.
        return
    for outer in loops[: loops.index(loop) + 1]:
        for each in (each for each in file.block(outer) if each.lineno < outer.lineno):
            if not isinstance(each, _SIMPLE) or set(named(each)) != own or not file.alone(each):
                continue
            title = f"begin {', '.join(sorted(own))} in each turn of the loop at {file.at(loop.lineno)}"
            meaning = f"each turn begins as {file.at(each.lineno)} does; nothing is taken over from the turn before"
            files = file.moved([each], loop.body[0], before=True)
            yield Candidate(title, meaning, files, "afresh", fresh=True)


def _made(fault: Fault, texts: Texts, file: Text, backward: ast.stmt) -> Iterator[ast.stmt]:
    """The assignments that may have made the graph: at the cause, or of the carrier before a loop, where a call of it
    ends in a function of its own."""
    cause, carrier = place_of(fault.clue("cause"), texts), fault.clue("carrier")
    if cause is not None and cause[0].path == file.path:
        here = file.statement(cause[1].lineno)
        if isinstance(here, _SIMPLE):
            yield here
            return
    if carrier is None:
        return
    carriers = [replace(carrier, name=name) for name in (carrier.name, *carrier.also)]
    for loop in file.loops(backward):
        for each in file.block(loop):
            found = isinstance(each, _SIMPLE) and each.lineno < loop.lineno
            if found and any(is_target(target, one, file) for target in targets(each) for one in carriers):
                yield each


def _with_dependents(statement: ast.stmt, behind: list[ast.stmt]) -> list[ast.stmt] | None:
    """``statement`` and the later ones that depend on it; None where these are more than assignments."""
    moved, given = [statement], _given(statement)
    if not given:
        return None
    for each in behind:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            # It reads names when it is called.
            continue
        if names(each) & given:
            if not isinstance(each, _SIMPLE) or not (fresh := _given(each)):
                return None
            moved.append(each)
            given |= fresh
    return moved


def _summed(moved: list[ast.stmt], loop: ast.For | ast.While, file: Text) -> bool:
    """Whether the loop adds to what ``moved`` begin, and something behind it reads the sum."""
    begun = set().union(*map(_given, moved))
    added = {
        node.target.id
        for node in ast.walk(loop)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }
    return bool(begun & added & _read_behind(loop, file))


def _read_behind(loop: ast.stmt, file: Text) -> set[str]:
    """The names that the function of ``loop`` reads after it."""
    end = loop.end_lineno or loop.lineno
    behind = [node for node in ast.walk(file.scope(loop)) if isinstance(node, ast.Name) and node.lineno > end]
    return set().union(*map(read, behind))


def _given(statement: ast.stmt) -> set[str]:
    """The names that an assignment binds; none where it also assigns anything else."""
    found = targets(statement)
    given = {target.id for target in found if isinstance(target, ast.Name)}
    return given if len(given) == len(found) else set()


@at("site")
def changed_later(fault: Fault, texts: Texts, file: Text, backward: ast.stmt) -> Iterator[Candidate]:
    """Move what changes a tensor after the backward that needs it: an optimizer's step, or an update by hand."""
    saved = place_of(fault.clue("saved by"), texts)
    block = file.block(backward)
    for clue in (clue for clue in fault.clues if clue.role in ("cause", "called from")):
        if clue.site is None or clue.site.path != file.path:
            continue
        line = file.line(clue.site)
        changing = next((each for each in block if covers(each, line)), None)
        if changing is None or changing.lineno >= backward.lineno or not file.alone(changing):
            continue
        if saved is not None and saved[0].path == file.path and covers(changing, saved[1].lineno):
            continue
        between = block[block.index(changing) + 1 : block.index(backward) + 1]
        if any(_stored(changing) & names(each) for each in between):
            # What stands between would see other values.
            continue
        title = f"make the change of {file.at(changing.lineno)} after the backward at {file.at(backward.lineno)}"
        meaning = "the backward sees the values that the forward saw; nothing else is changed"
        yield Candidate(title, meaning, file.moved([changing], backward), "later")
        return


def _stored(statement: ast.stmt) -> set[str]:
    """The names that ``statement`` binds, except those of its own loops."""
    loops = [each.target for each in ast.walk(statement) if isinstance(each, (ast.For, ast.comprehension))]
    return bound(statement).difference(*map(names, loops))
