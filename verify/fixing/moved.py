"""Changes that move whole statements: into the loop that needs their graph anew, or after a backward."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace

from verify.diagnosis.model import Fault
from verify.fixing.clues import Candidate, apart_in_a_step, at, named, place_of
from verify.fixing.states import EACH_STEP, is_target
from verify.fixing.texts import Text, Texts
from verify.syntax import bound, covers, last_name, names, pairs, paths, read, targets

_SIMPLE = (ast.Assign, ast.AnnAssign)


@at("freed by")
def rebuilt_in_loop(fault: Fault, texts: Texts, file: Text, backward: ast.stmt) -> Iterator[Candidate]:
    """Move the statement that made the graph to the start of the loop whose backwards walk it, with those before it
    that the same graph was made in, and those that depend on it; copy them where something else reads them too."""
    for statement in _made(fault, texts, file, backward):
        block = file.block(statement)
        loop = next((e for e in block if e.lineno > statement.lineno and covers(e, backward.lineno)), None)
        if not isinstance(loop, (ast.For, ast.While)) or loop.body[0].lineno == loop.lineno:
            continue
        chain = _chain(statement, block, fault, file)
        behind = block[block.index(chain[0]) : block.index(loop)]
        moved = _with_dependents(chain, behind)
        if moved and not _summed(moved, loop, file):
            title = f"build {file.segment(targets(statement)[0])} in each turn of the loop at {file.at(loop.lineno)}"
            given = set().union(*map(_given, moved))
            shown = any(names(each) & given for each in behind if isinstance(each, ast.Expr))
            files = file.moved(moved, loop.body[0], before=True, keep=shown)
            same = len(moved) == 1 and _is_carried_on(moved[0], loop)
            yield Candidate(title, EACH_STEP, files, "rebuild", fresh=True, same=same)


def _is_carried_on(begun: ast.stmt, loop: ast.For | ast.While) -> bool:
    """Whether a turn of ``loop`` makes what the next one takes over just as ``begun`` made the first, from what it
    hands on as well: ``v = f(s)`` before the loop, ``w = f(t)`` and ``s, v = t, w`` in it."""
    assigned = [pair for each in ast.walk(loop) for pair in pairs(each)]
    handed = {a.id: b for a, b in assigned if isinstance(a, ast.Name) and isinstance(b, ast.Name)}
    name = next(iter(_given(begun)), "")
    made = [ast.unparse(b) for a, b in assigned if ast.unparse(a) == ast.unparse(handed.get(name, ast.Name(name)))]
    value = getattr(begun, "value", None)
    return value is not None and name in handed and [ast.unparse(_Renamed(handed).visit(copy.deepcopy(value)))] == made


class _Renamed(ast.NodeTransformer):
    """Puts other variables for some."""

    def __init__(self, others: Mapping[str, ast.Name]) -> None:
        self._others = others

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return self._others.get(node.id, node)


def _chain(statement: ast.stmt, block: list[ast.stmt], fault: Fault, file: Text) -> list[ast.stmt]:
    """``statement`` after the assignments of ``block`` that made what it is computed from in the graph of the fault."""
    boxes = fault.graph.boxes if fault.graph is not None else ()
    lines = {file.line(box.site) for box in boxes if box.site is not None and box.site.path == file.path}
    chain, wanted = [statement], names(statement)
    for each in reversed(block[: block.index(statement)]):
        in_graph = any(covers(each, line) for line in lines)
        if in_graph and isinstance(each, _SIMPLE) and file.alone(each) and _given(each) & wanted:
            chain.insert(0, each)
            wanted |= names(each)
    return chain


@at("freed by")
def built_twice(fault: Fault, texts: Texts, file: Text, backward: ast.stmt) -> Iterator[Candidate]:
    """Make what two losses of one step are built on once more for the second, where parameters step between them."""
    made, block = place_of(fault.clue("cause"), texts), file.block(backward)
    if not apart_in_a_step(fault) or made is None or made[0].path != file.path:
        return
    here = next((each for each in block if each.lineno == made[1].lineno < backward.lineno), None)
    # The line that walks it again may be one of a function that is given it.
    behind = block[block.index(backward) + 1 :]
    used = next((each for each in behind if here is not None and names(each) & _given(here)), None)
    if isinstance(here, _SIMPLE) and used is not None:
        title = f"build {file.segment(targets(here)[0])} once more before {file.at(used.lineno)}"
        meaning = "both losses are learned from, the second by the parameters as the step left them"
        files = file.moved(_chain(here, block, fault, file), used, before=True, keep=True)
        yield Candidate(title, meaning, files, "rebuild", fresh=True)


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
    ends in a function of its own, or where a turn makes in the same way what the next one takes over."""
    cause, carrier = place_of(fault.clue("cause"), texts), fault.clue("carrier")
    known = False
    if cause is not None and cause[0].path == file.path:
        here = file.statement(cause[1].lineno)
        if known := isinstance(here, _SIMPLE):
            yield here
    if carrier is None:
        return
    carriers = [replace(carrier, name=name) for name in (carrier.name, *carrier.also)]
    for loop in file.loops(backward):
        for each in file.block(loop):
            found = isinstance(each, _SIMPLE) and each.lineno < loop.lineno
            found = found and any(is_target(target, one, file) for target in targets(each) for one in carriers)
            if found and (not known or _is_carried_on(each, loop)):
                yield each


def _with_dependents(chain: list[ast.stmt], behind: list[ast.stmt]) -> list[ast.stmt]:
    """``chain`` and what of ``behind`` depends on it; nothing where that is more than assignments, and calls that are
    only given it."""
    moved: list[ast.stmt] = []
    given: set[str] = set()
    for each in behind:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            # It reads names when it is called.
            continue
        told = each.value.func if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) else each
        if each not in chain and not names(told) & given:
            continue
        if not isinstance(each, (*_SIMPLE, ast.AugAssign)) or not (fresh := _given(each)):
            return []
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
        stored, written = _stored(changing), _written(changing, file)
        if any(stored & names(each) or written & paths(each) for each in between):
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


def _written(statement: ast.stmt, file: Text) -> set[str]:
    """The paths whose tensors ``statement`` writes to: ``x[mask] = 0``, ``self.x.data += 1``, ``x.mul_(2)``,
    ``torch.relu_(x)``, ``torch.exp(y, out=x)``."""
    places = [target for each in ast.walk(statement) for target in targets(each)]
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(file.tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    for call in (each for each in ast.walk(statement) if isinstance(each, ast.Call)):
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        places += [named["out"]] if "out" in named else []
        if not last_name(call.func).endswith("_") and "inplace" not in named:
            continue
        # A module's function writes to what it is given, a tensor's method to the tensor.
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if receiver is None or names(receiver) & imported:
            places += call.args[:1]
        if receiver is not None and not (isinstance(receiver, ast.Name) and receiver.id in imported):
            places.append(receiver)
    found = set()
    for place in places:
        while isinstance(place, ast.Subscript) or (isinstance(place, ast.Attribute) and place.attr == "data"):
            place = place.value
        found.add(ast.unparse(place))
    return found
