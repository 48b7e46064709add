"""Generators that go on: what they hand out is read when they are asked for it, not where they were made."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from codemods.graph.model.cells import Key
from codemods.graph.model.nodes import Frame, Value
from codemods.graph.model.values import Instance, Sequence, Tuple, Unknown
from codemods.graph.run.run import Run


class Deferred(NamedTuple):
    """What a generator can read when it goes on: the cells that its body read, and the functions that this called;
    what its own variables ``held`` where it was left."""

    cells: tuple[Key, ...]
    held: tuple[Value, ...]


@contextmanager
def noting(run: Run) -> Iterator[dict[Key, Any]]:
    """The cells that are read meanwhile, with what they held."""
    outer = run.s.reads
    reads: dict[Key, Any] = {}
    run.s.reads = reads
    try:
        yield reads
    finally:
        run.s.reads = outer
        if outer is not None:
            for cell, value in reads.items():
                outer.setdefault(cell, value)


def defer(run: Run, made: Sequence, frame: Frame, cells: Collection[Key]) -> Sequence:
    """Note that the generator ``made``, whose body ran in ``frame`` and read ``cells``, can read these later; return
    ``made``."""
    own = {cell: run.s.peek(cell) for cell in cells if cell[0] == frame.fid}
    run.deferred[made.oid] = Deferred(tuple(cells), tuple(v for v in own.values() if isinstance(v, Value)))
    return made


def hand_on(run: Run, made: Sequence, given: Iterable[Value]) -> Sequence:
    """Note that ``made`` gets its elements from the generators among the ``given`` when it is asked; return it."""
    known = [run.deferred[one.oid] for one in given if isinstance(one, Sequence) and one.oid in run.deferred]
    if known:
        cells, held = (tuple(itertools.chain.from_iterable(each)) for each in zip(*known, strict=True))
        run.deferred[made.oid] = Deferred(cells, held)
    return made


def later(run: Run, generator: Value, at: ast.AST) -> list[Value]:
    """What ``generator`` may hand out beside its known elements: graphs that have come, since it was made, into what it
    reads; nothing of other values."""
    if not isinstance(generator, Sequence) or generator.oid not in run.deferred:
        return []
    deferred: Deferred = run.deferred[generator.oid]
    since = run.born[generator.oid]
    if not run.trace.nodes or run.trace.nodes[-1].birth <= since:
        return []
    read = dict.fromkeys([*deferred.held, *_values(run, deferred.cells)])
    value = Tuple(tuple(read))
    # which attributes of an object it reads is known by their cells
    holders = [one for one in read if not isinstance(one, Instance)]
    if not any(node.birth > since and not node.leaf for node in (*run.nodes_of(value), *run.held_in(holders))):
        return []
    made: Unknown = run.taken(at, value, "next")
    return [made]


def _values(run: Run, cells: Iterable[Key]) -> Iterator[Value]:
    for cell in cells:
        content = run.s.get(cell)
        yield from (v for v in (content if isinstance(content, tuple) else (content,)) if isinstance(v, Value))
