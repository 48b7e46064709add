"""Expressions that are left out: in the place of what a program lacks (a file, a module, an environment) it gets a
made-up value, in the original and in the rewritten program alike.

Of a call only the calling is left out: what stands in its parentheses is computed and looked at. :mod:`verify.probe.
leaving` is what stands there instead.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from codemods.rewriting.touched import standing
from verify.measured.steered import Stopped
from verify.probe.calls.leaving import LEFT
from verify.probe.calls.recipes import Is
from verify.reaching.texts import Edit, Text
from verify.reaching.values import wanted, without_hollow
from verify.syntax import FUNCTIONS, Function, covers, last_name, method_call, paths

Line = tuple[str, int]
Span = tuple[int, int, int, int]
_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
#: Names that mean another thing in another place.
_BOUND = frozenset({"super", "locals", "vars", "eval", "exec", "globals"})

#: What code asks for that makes models and optimizers, or trains them.
_TRAINING = frozenset({"nn", "optim", "backward", "zero_grad", "parameters", "state_dict"})


class Unfound(Exception):
    """What is left out has no one place in a text."""


@dataclass(frozen=True)
class Left:
    """The expression at ``span`` (line, column in bytes, and the same of its end) of ``path``, as it was read.

    ``form`` is what its value could be, ``recipe`` what was found by trial, ``search`` how: it may go on. ``deep``: it
    calls a function of the tree, which may read whatever it likes. ``why`` is what the program stopped for.
    """

    path: str
    span: Span
    form: dict[str, Any] = field(default_factory=dict)
    deep: bool = False
    why: str = ""
    recipe: Any = None
    search: Any = None

    @property
    def place(self) -> str:
        """The line for people."""
        return f"{self.path}:{self.span[0]}"

    def configuration(self) -> dict[str, Any]:
        """As the probe takes it."""
        return {
            "place": self.place, "span": [self.path, *self.span], "form": self.form, "deep": self.deep,
            "why": self.why, "recipe": self.recipe, **(self.search or {}),
        }  # fmt: skip


def edits(number: int, left: Left, old: str, new: str) -> Iterator[Edit]:
    """The edits that leave out ``left``, number ``number`` of its run, in ``new``, a version of the text ``old``.

    Raises :class:`Unfound` where the expression, of a call what is called, is not there as it was.
    """
    before = _at(ast.parse(old), left.span)
    if before is None:
        raise Unfound(left.place)
    after = before if old == new else _same(before, ast.parse(old), ast.parse(new), old, new)
    text = Text(new)
    gone = after.func if isinstance(after, ast.Call) else after
    kept = _receiver(gone)
    if kept is None:
        yield Edit(*text.span(gone), f"{LEFT}({number}, None)".encode() + text.lines(gone))
    else:
        start, stop = text.span(kept)
        yield Edit(start, start, f"{LEFT}({number}, (".encode(), start - text.span(gone)[1])
        yield Edit(stop, text.span(gone)[1], b"))" + text.lines(gone, kept))
    if not isinstance(after, ast.Call):
        end = text.span(after)[1]
        yield Edit(end, end, b"()")


def next_one(
    stopped: Stopped, trees: Mapping[str, ast.AST], open_lines: Iterable[Line], known: Iterable[Left]
) -> tuple[Left, tuple[Left, ...]] | None:
    """What to leave out where a program ``stopped``, and those of ``known`` that stay; None where nothing may be.

    ``open_lines`` are those that a run is to reach: what they stand in is not left out.
    """
    known = tuple(known)
    if not stopped.frames:
        return None
    inner = stopped.frames[0]
    tree = trees.get(inner.path)
    statement = _statement(tree, inner.span[0])
    named = set() if statement is None else paths(statement)
    absent = {name: origin for name, origin in inner.hollow if name in named}
    lines = set(open_lines)
    made = [left for left in known if left.path == inner.path and _within(tree, left.span[0], inner.span[0])]
    whole = _whole(stopped, trees, lines) if (absent or stopped.missing) and not stopped.graph else None
    if whole is not None:
        found = _left(*whole, trees, stopped.why, known, deep=True)
        if found is not None:
            return found[0], tuple(left for left in found[1] if left not in made)
    for path, node in _absent(inner.path, statement, absent, trees):
        found = _left(path, node, trees, stopped.why, known)
        if found is not None:
            return found
    if stopped.graph:
        walk = _at(tree, inner.span) if stopped.walk and (inner.path, inner.span[0]) not in lines else None
        alone = isinstance(statement, ast.Expr) and statement.value is walk
        if not alone or walk is None or not method_call(walk, "backward"):
            return None
        # No rule mends it, so that it stands in both programs: what follows is compared without it.
        return Left(inner.path, _span(walk), {}, why=stopped.why, recipe={"is": Is.VALUE, "value": None}), known
    for place, frame in enumerate(stopped.frames if stopped.missing or made else ()):
        below = stopped.frames[:place]
        if not below and not stopped.missing:
            # What was made up is of no use to the function: the call of that goes.
            continue
        called = _at(trees.get(frame.path), frame.span)
        kinds = ast.Call if below else (ast.Call, ast.Attribute, ast.Subscript, ast.Name)
        if isinstance(called, kinds) and not any(_holds(trees, each, lines, calls=True) for each in below):
            found = _left(frame.path, called, trees, stopped.why, known, deep=bool(below))
            if found is not None:
                new, rest = found
                return new, tuple(left for left in rest if not below or left not in made)
    return None


def twins(left: Left, stopped: Stopped, trees: Mapping[str, ast.AST], known: Iterable[Left]) -> Iterator[Left]:
    """The other calls in the same function that lack the same as ``left``, where the program ``stopped``: those of its
    callee where that is a function of the tree, else those of all that does nothing there, like layers of a library
    that nobody has."""
    tree = trees[left.path]
    node = _at(tree, left.span)
    if not isinstance(node, ast.Call):
        return
    absent = {name for name, _ in stopped.frames[0].hollow} if stopped.frames[0].path == left.path else set()
    if not left.deep and ast.unparse(node.func) not in absent:
        return
    taken = {each.span for each in known if each.path == left.path} | {left.span}
    for each in ast.walk(_function(tree, left.span[0]) or tree):
        if not isinstance(each, ast.Call) or _span(each) in taken or _turned(tree, each):
            continue
        same = ast.dump(each.func) == ast.dump(node.func) if left.deep else ast.unparse(each.func) in absent
        # What nobody asks for its value is no matter.
        if same and not (not left.deep and _alone(tree, each)):
            yield replace(left, span=_span(each), form=wanted(each, tree, trees))


def _alone(tree: ast.AST, node: ast.expr) -> bool:
    """Whether ``node`` is a statement of its own."""
    return any(isinstance(each, ast.Expr) and each.value is node for each in ast.walk(tree))


def _whole(stopped: Stopped, trees: Mapping[str, ast.AST], lines: set[Line]) -> tuple[str, ast.expr] | None:
    """The outermost call around the stop that gets data and nothing else: its functions make no model, hold nothing
    that is to be reached, and are called once; None where there is no such call."""
    found = None
    for place, frame in enumerate(stopped.frames):
        below = stopped.frames[place - 1] if place else None
        if below is not None:
            function = _function(trees.get(below.path), below.span[0])
            if function is None or _holds(trees, below, lines) or _comes_to(function, trees, lines, models=True):
                break
            called = _at(trees.get(frame.path), frame.span)
            if isinstance(called, ast.Call) and not _turned(trees[frame.path], called):
                found = frame.path, called
    return found


def _comes_to(function: ast.AST, trees: Mapping[str, ast.AST], lines: set[Line], *, models: bool) -> bool:
    """Whether ``function`` calls what holds ``lines`` in the tree; with ``models`` whether it, or what it calls there,
    makes a model or an optimizer, or trains one."""
    waiting, seen = [function], {""}
    while waiting:
        for node in ast.walk(waiting.pop()):
            if models and last_name(node) in _TRAINING:
                return True
            last = last_name(node.func) if isinstance(node, ast.Call) else ""
            for path, tree in trees.items() if last not in seen else ():
                for each in _defined(tree).get(last, ()):
                    holds = any(at == path and covers(each, line) for at, line in lines)
                    if holds or (models and _is_module(each)):
                        return True
                    waiting.append(each)
            seen.add(last)
    return False


def _is_module(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(getattr(each, "name", "") == "forward" for each in node.body)


@functools.lru_cache(maxsize=4096)
def _defined(tree: ast.AST) -> dict[str, list[ast.stmt]]:
    """The functions and classes at the top of ``tree``, by name."""
    found: dict[str, list[ast.stmt]] = {}
    for node in getattr(tree, "body", ()):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            found.setdefault(node.name, []).append(node)
    return found


def _turned(tree: ast.AST, called: ast.AST) -> bool:
    """Whether ``called`` stands in a loop of its function."""
    loops = [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While))]
    return any(called is each for loop in loops for part in loop.body for each in ast.walk(part))


def _left(
    path: str, node: ast.expr, trees: Mapping[str, ast.AST], why: str, known: tuple[Left, ...], *, deep: bool = False
) -> tuple[Left, tuple[Left, ...]] | None:
    """``node`` as something to leave out, and those of ``known`` that stay; None where it may not be."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _BOUND:
        return None
    form = wanted(node, trees[path], trees)
    same = next((left for left in known if left.path == path and left.span == _span(node)), None)
    if same is not None:
        # What does nothing was enough so far, and is no more.
        if Is.HOLLOW.value not in repr(same.recipe):
            return None
        form = without_hollow(form)
    return Left(path, _span(node), form, deep, why), tuple(left for left in known if left is not same)


def _absent(
    path: str, statement: ast.AST | None, names: Mapping[str, Sequence[Any] | None], trees: Mapping[str, ast.AST]
) -> Iterator[tuple[str, ast.expr]]:
    """What gives nothing to count with, of all that a statement asks of ``names`` which stand for something absent: of
    a chain the last call, or all of it; of a bare name what it came from."""
    parents = {} if statement is None else {c: up for up in ast.walk(statement) for c in ast.iter_child_nodes(up)}
    bare: list[tuple[str, ast.expr]] = []
    for node in parents if names else ():
        if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in names:
            chain: list[ast.expr] = []
            at: ast.AST = node
            while (up := parents.get(at)) is not None and _goes_on(up, at):
                chain.append(up)  # type: ignore[arg-type]
                at = up
            calls = [each for each in chain if isinstance(each, ast.Call)]
            origin = names[ast.unparse(node)]
            if chain:
                yield path, calls[-1] if calls else chain[-1]
            elif origin and (made := _at(trees.get(origin[0]), origin[1:])) is not None:
                # To hand it on does no harm yet, to ask it for something does.
                bare.append((origin[0], made))
    yield from bare


def _goes_on(up: ast.AST, node: ast.AST) -> bool:
    return (isinstance(up, (ast.Attribute, ast.Subscript)) and up.value is node) or (
        isinstance(up, ast.Call) and up.func is node
    )


def _holds(trees: Mapping[str, ast.AST], frame: Any, lines: set[Line], *, calls: bool = False) -> bool:
    """Whether the function of ``frame`` has one of ``lines``; with ``calls`` also whether what it calls has."""
    function = _function(trees.get(frame.path), frame.span[0])
    if function is None:
        return True
    inside = any(path == frame.path and covers(function, line) for path, line in lines)
    return inside or (calls and _comes_to(function, trees, lines, models=False))


def _function(tree: ast.AST | None, line: int) -> Function | None:
    """The innermost function around ``line``."""
    nodes = ast.walk(tree) if tree is not None else ()
    around = [node for node in nodes if isinstance(node, FUNCTIONS) and covers(node, line)]
    # Of two that begin on one line the inner one comes later.
    return max(reversed(around), key=lambda each: each.lineno, default=None)


def _within(tree: ast.AST | None, one: int, other: int) -> bool:
    """Whether two lines stand in the same function."""
    return tree is not None and _function(tree, one) is _function(tree, other)


def _statement(tree: ast.AST | None, line: int) -> ast.stmt | None:
    """The innermost statement around ``line``; of one that has others in it none but its head."""
    found: ast.stmt | None = None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.stmt) and covers(node, line):
            found = node
    if found is None or not hasattr(found, "body"):
        return found
    head = [each for each in ast.iter_child_nodes(found) if isinstance(each, (ast.expr, ast.withitem))]
    return ast.Module(head, [])  # type: ignore[arg-type, return-value]


def _at(tree: ast.AST | None, span: Iterable[int]) -> ast.expr | None:
    wanted_span = tuple(span)
    loops = [node for node in ast.walk(tree) if isinstance(node, _LOOPS)] if tree is not None else []
    for loop in loops:
        # Up to Python 3.11 the next batch is asked for by the whole loop.
        if wanted_span == _span(loop.iter) or (not isinstance(loop, ast.comprehension) and wanted_span == _span(loop)):
            return loop.iter
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.expr) and _span(node) == wanted_span and not isinstance(node, ast.Name):
            return node
    return None


def _same(node: ast.expr, before: ast.AST, after: ast.AST, old: str, new: str) -> ast.expr:
    """The one expression in ``after`` that stands for ``node`` of ``before``."""

    def shown(each: ast.expr) -> str:
        return ast.dump(each.func if isinstance(each, ast.Call) else each)

    lines = {line for _, line in standing([("", node.lineno)], {"": old}, {"": new})}
    mine = [each for each in ast.walk(before) if type(each) is type(node) and each.lineno == node.lineno]
    theirs = [each for each in ast.walk(after) if type(each) is type(node) and each.lineno in lines]
    ours = [each for each in mine if shown(each) == shown(node)]
    found = [each for each in theirs if shown(each) == shown(node)]
    if len(ours) != len(found):
        raise Unfound(f"line {node.lineno}")
    number = next(number for number, each in enumerate(ours) if _span(each) == _span(node))
    return found[number]


def _receiver(gone: ast.expr) -> ast.expr | None:
    """The part of a left-out expression that is still computed, and recorded beside the arguments."""
    if isinstance(gone, (ast.Attribute, ast.Subscript)):
        return gone.value
    return None if isinstance(gone, ast.Name) else gone


def _span(node: ast.expr | ast.stmt) -> Span:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0
