"""Generators that go on: what they hand out is read when they are asked for it, not where they were made."""

from __future__ import annotations

import ast
from typing import NamedTuple

from codemods.graph.model.nodes import Frame, Value
from codemods.graph.model.values import Function, Sequence, Tuple, Unknown
from codemods.graph.run.run import Run


class Deferred(NamedTuple):
    """What the body of a generator can read: variables of ``owners`` (frames, the globals last), and what its own
    variables ``held`` where it was left."""

    names: frozenset[str]
    owners: tuple[int, ...]
    held: tuple[Value, ...]


def defer(run: Run, made: Sequence, body: ast.AST, frame: Frame) -> Sequence:
    """Note what the generator ``made`` by ``body``, which ran in ``frame``, can read later; return ``made``."""
    names = frame.file.once(_names_read, body)
    found = (run.s.get((frame.fid, name)) for name in sorted(names & frame.names))
    held = tuple(value for value in found if isinstance(value, Value))
    closure = frame.function.closure if frame.function is not None else 0
    run.deferred[made.oid] = Deferred(names, (frame.fid, *_around(run, closure), frame.module_globals), held)
    return made


def later(run: Run, generator: Sequence, at: ast.AST) -> list[Value]:
    """What ``generator`` may hand out beside its known elements: graphs that have come, since it was made, into what it
    and the functions that it names read."""
    deferred = run.deferred.get(generator.oid)
    if deferred is None:
        return []
    read = dict.fromkeys([*deferred.held, *_values(run, deferred.names, deferred.owners)])
    waiting = list(read)
    while waiting:
        function = waiting.pop()
        if isinstance(function, Function):
            names = function.file.once(_names_read, function.definition)
            owners = (*_around(run, function.closure), function.module_globals)
            new = [value for value in _values(run, names, owners) if value not in read]
            read.update(dict.fromkeys(new))
            waiting += new
    value = Tuple(tuple(read))
    since = run.born[generator.oid]
    if not any(node.birth > since and not node.leaf for node in (*run.nodes_of(value), *run.held_in([value]))):
        return []
    made: Unknown = run.taken(at, value, "next")
    return [made]


def _values(run: Run, names: frozenset[str], owners: tuple[int, ...]) -> list[Value]:
    found = (run.s.get((owner, name)) for owner in owners for name in sorted(names))
    return [value for value in found if isinstance(value, Value)]


def _around(run: Run, closure: int) -> tuple[int, ...]:
    """The frames that a function closes over, from the inside out."""
    found = []
    while closure:
        found.append(closure)
        closure = run.closures.get(closure, 0)
    return tuple(found)


def _names_read(body: ast.AST) -> frozenset[str]:
    names = (node for node in ast.walk(body) if isinstance(node, ast.Name))
    return frozenset(node.id for node in names if isinstance(node.ctx, ast.Load))
