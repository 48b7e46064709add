"""Builtins that hand on the turns of what they go through: ``enumerate``, ``zip``, ``map``, ``filter``, ``next``."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import SequenceKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import NUMBER, TEXT, Library, Parameters, Plain, Sequence, Tuple
from codemods.graph.python.builtins.table import BUILTINS
from codemods.graph.python.containers import Containers
from codemods.graph.python.deferred import hand_on
from codemods.graph.run.contents import RETURNED

_TURNS = 2
"""What a loop sees: the first element, and one of the others."""


def _nth(turns: list[Value], i: int) -> Value:
    """What a turn gets, where others are run more often."""
    value = turns[min(i, len(turns) - 1)]
    counted = isinstance(value, Plain) and value.turn is not None
    return NUMBER if counted and i >= len(turns) else value


def _each(
    engine: Containers, function: Value, rows: list[list[Value]], call: ast.Call | None, at: ast.AST, *, counted: bool
) -> list[Value]:
    """What ``function`` makes of each of the ``rows`` of arguments, in turns."""
    found: list[Value] = []

    def turn(row: Value) -> None:
        assert isinstance(row, Tuple)
        found.append(engine.call_value(function, Arguments(call, list(row.items)), at))

    engine.turns.run_all(at, [Tuple(tuple(row)) for row in rows], lambda _: None, turn, counted=counted)
    return found


@BUILTINS.of("enumerate")
def _enumerate(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    if not args.positional:
        return engine.run.unknown(name)
    turns = engine.iterate(args.positional[0], at)
    plain = len(args.all()) == 1 and not args.more
    pairs: list[Value] = [Tuple((engine.count(i, at) if plain else NUMBER, value)) for i, value in enumerate(turns)]
    made = hand_on(engine.run, engine.run.new_sequence(pairs, kind=SequenceKind.TURNS), args.positional[:1])
    return engine.counted_as(made, args.positional[0])


@BUILTINS.of("zip")
def _zip(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    columns = [engine.iterate(value, at) for value in args.positional]
    if args.more or not columns:
        mixed = engine.run.taken(at, Tuple((*args.positional, *args.more)), "zip")
        if mixed.node is None and not mixed.shadow:
            return engine.run.unknown("zip", data=True)
        return engine.run.new_sequence([mixed], rest=mixed)
    counts = [len(turns) for value, turns in zip(args.positional, columns, strict=True) if engine.is_counted(value)]
    rows: list[Value] = []
    # where none is counted, as many as a loop over one of them sees: pairs of a list with itself meet later
    for i in range(min(counts, default=max(_TURNS, min(map(len, columns))))):
        row = [_nth(column, i) if column else engine.run.unknown("item") for column in columns]
        rows.append(Tuple(tuple(row)))
    made = hand_on(engine.run, engine.run.new_sequence(rows, kind=SequenceKind.TURNS), args.positional)
    return made if counts else engine.counted_as(made, args.positional[0])


@BUILTINS.of("map")
def _map(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    given = args.positional
    if len(given) < 2:
        return engine.run.unknown(name)
    turns = engine.iterate(given[1], at)
    if isinstance(given[0], Library) and given[0].path in ("builtins.float", "builtins.int", "builtins.str"):
        text = given[0].path == "builtins.str"
        return engine.run.new_sequence([], rest=engine.run.text_of(TEXT, *turns) if text else NUMBER)
    others = [t for v in given[2:] if (t := engine.iterate(v, at))]
    rows = [[v, *(_nth(t, i) for t in others)] for i, v in enumerate(turns)]
    with engine.run.at_another_time():
        found = _each(engine, given[0], rows, args.call, at, counted=engine.is_counted(given[1]))
    return engine.counted_as(engine.run.new_sequence(found), given[1])


@BUILTINS.of("filter")
def _filter(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    given = args.positional
    if len(given) < 2:
        return engine.run.unknown(name)
    turns = engine.iterate(given[1], at)
    with engine.run.at_another_time():
        _each(engine, given[0], [[turn] for turn in turns], args.call, at, counted=engine.is_counted(given[1]))
    if isinstance(given[1], Parameters):
        return given[1]
    return engine.counted_as(engine.run.new_sequence(list(turns)), given[1])


@BUILTINS.of("next")
def _next(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    run = engine.run
    if not args.positional:
        return run.unknown(name)
    first = args.positional[0]
    turns = [*engine.iterate(first, at), *args.positional[1:2]]
    ended = run.s.get((first.oid, RETURNED)) if isinstance(first, Sequence) else None
    if isinstance(ended, Value) and run.nodes_of(ended):
        run.stops_with(ended)
    return run.one_of(turns) or run.unknown("next", data=True)
