"""Methods of lists, deques, sets and generators."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import CarrierKind, Escape, SequenceKind, UseKind
from codemods.graph.model.nodes import Carrier, Value
from codemods.graph.model.state import CLEARED
from codemods.graph.model.values import NONE, NUMBER, Const, Sequence, Tuple
from codemods.graph.python.deferred import later
from codemods.graph.python.filling import Filling
from codemods.graph.python.methods.table import OF_LISTS
from codemods.graph.run.contents import ITEMS, REST, SENT

_APART = 12
"""So many elements of a list are told apart; with more in it, each may be any of them."""

_AT_ONCE = 16
"""So many may be put in at once and still be told apart."""


@OF_LISTS.of("send")
def _send(engine: Filling, container: Sequence, name: str, args: Arguments, at: ast.AST) -> Value | None:
    run = engine.run
    if container.kind is not SequenceKind.GENERATOR or not args.positional:
        return None
    # what runs after the ``yield`` gets it, at a time of its own
    run.escape_all(args.positional, Escape.SENT)
    sent = run.taken(at, Tuple(tuple(args.positional)), "sent")
    for received in run.s.get((container.oid, SENT)) or ():
        run.replace_everywhere(received, run.join(received, sent))
    return run.one_of([*run.elements(container), *later(run, container, at), sent]) or NONE


@OF_LISTS.of("append", "add", "appendleft", "insert")
def _put_one(engine: Filling, container: Sequence, name: str, args: Arguments, at: ast.AST) -> Value:
    if args.positional:
        value = args.positional[-1]
        items = engine.run.s.get((container.oid, ITEMS)) or ()
        engine.run.stored(value, Carrier(CarrierKind.ELEMENT, container.oid, ""), at)
        _keep(engine, container, name, items, [value], args.positional)
        _note(engine, container, name, value, at)
    return NONE


@OF_LISTS.of("extend", "extendleft", "update")
def _put_all(engine: Filling, container: Sequence, name: str, args: Arguments, at: ast.AST) -> Value:
    if args.positional:
        value = args.positional[-1]
        items = engine.run.s.get((container.oid, ITEMS)) or ()
        new, several = engine.run.apart(value)
        # any number of them: twice, as a loop over them would put them there
        new += several * 2
        new = new or engine.turns_of(value, at)
        for one in new:
            engine.run.stored(one, Carrier(CarrierKind.ELEMENT, container.oid, ""), at)
        engine.counted_as(container, value)
        _keep(engine, container, name, items, new, args.positional)
        _note(engine, container, name, value, at)
    return NONE


def _keep(
    engine: Filling,
    container: Sequence,
    name: str,
    items: tuple[Value, ...],
    new: list[Value],
    given: list[Value],
) -> None:
    """Put ``new`` beside the ``items`` that the container held when it was called, where ``name`` puts them."""
    run = engine.run
    run.lengths.pop(container.oid, None)
    apart = len(items) < _APART
    if run.open_loops and run.born.get(container.oid, 0) < run.open_loops[-1]:
        # each turn puts something in, also those that are not run
        run.uncounted.add(container.oid)
    place = _inserted(given[0], len(items)) if name == "insert" and len(given) > 1 else None
    if apart and place is not None:
        run.s.set((container.oid, ITEMS), (*items[:place], *new, *items[place:]))
    elif apart and name in ("appendleft", "extendleft"):
        run.s.set((container.oid, ITEMS), (*reversed(new), *items))
    elif apart and name != "insert" and len(new) <= _AT_ONCE:
        run.s.set((container.oid, ITEMS), (*items, *new))
    elif name in ("appendleft", "extendleft", "insert"):
        engine.mix(container, *new)
    else:
        rest = run.s.get((container.oid, REST))
        joined = run.one_of([*([rest] if rest is not None else []), *new])
        if joined is not None:
            run.s.set((container.oid, REST), joined)


def _inserted(index: Value, count: int) -> int | None:
    """Where ``insert`` puts a value among ``count`` others, None if that cannot be seen."""
    if not isinstance(index, Const) or not isinstance(index.value, int):
        return None
    return min(index.value, count) if index.value >= 0 else max(count + index.value, 0)


def _note(engine: Filling, container: Sequence, name: str, value: Value, at: ast.AST) -> None:
    if isinstance(at, ast.Call) and at.args:
        engine.torch.note_storing(container, at.args[-1], value, name, at)
    elif isinstance(at, ast.AugAssign):
        engine.torch.note_storing(container, at.value, value, name, at)


@OF_LISTS.of("clear")
def _clear(engine: Filling, container: Sequence, name: str, args: Arguments, at: ast.AST) -> Value:
    run = engine.run
    run.trace.emptied.append((container.oid, run.clock))
    run.lengths.pop(container.oid, None)
    run.s.set((container.oid, ITEMS), ())
    run.s.delete((container.oid, REST))
    run.s.set((container.oid, CLEARED), run.tick())
    return NONE


@OF_LISTS.of("pop", "popleft", "popitem")
def _pop(engine: Filling, container: Sequence, name: str, args: Arguments, at: ast.AST) -> Value:
    run = engine.run
    if name != "popitem":
        run.trace.emptied.append((container.oid, run.clock))
        run.lengths.pop(container.oid, None)
    items = run.s.get((container.oid, ITEMS)) or ()
    if container.oid in run.repeated and (args.positional or name == "popleft"):
        # [x] * n: what is put in comes out n turns later
        run.displaced.add(container.oid)
    if not items or run.s.get((container.oid, REST)) is not None or container.oid in run.displaced:
        return run.one_of(run.elements(container)) or run.lost()
    place = _popped(name, args.positional, len(items))
    if place is None:
        # one of them goes, and which stay is not followed
        engine.mix(container)
        return run.one_of(list(items)) or run.lost()
    popped: Value = items[place]
    run.s.set((container.oid, ITEMS), (*items[:place], *items[place + 1 :]))
    run.read(popped, Carrier(CarrierKind.ELEMENT, container.oid, ""), at)
    return popped


def _popped(name: str, given: list[Value], count: int) -> int | None:
    """The index that ``pop`` takes of ``count`` elements; None if it cannot be seen."""
    if name == "popleft" or not given:
        return 0 if name == "popleft" else count - 1
    index = given[0].value if isinstance(given[0], Const) else None
    return index % count if isinstance(index, int) and -count <= index < count else None


@OF_LISTS.of("remove")
def _remove(engine: Filling, container: Sequence, name: str, args: Arguments, at: ast.AST) -> Value:
    _asked_for(engine, args, name, at)
    engine.run.trace.emptied.append((container.oid, engine.run.clock))
    engine.run.lengths.pop(container.oid, None)
    items = engine.run.s.get((container.oid, ITEMS)) or ()
    if len(items) > 1:
        engine.mix(container)
    return NONE


def _asked_for(engine: Filling, args: Arguments, name: str, at: ast.AST) -> None:
    """Note that a container is asked for the very objects that a method is given."""
    for value in args.all():
        engine.run.use(value, UseKind.IDENTITY, at, name)


@OF_LISTS.of("sort", "reverse", "rotate")
def _order(engine: Filling, container: Sequence, name: str, args: Arguments, at: ast.AST) -> Value:
    items = engine.run.s.get((container.oid, ITEMS)) or ()
    if name == "sort":
        engine.ordered_by(args, engine.run.elements(container), at)
    if items:
        engine.mix(container)
    return NONE


@OF_LISTS.of("copy")
def _copy(engine: Filling, container: Sequence, name: str, args: Arguments, at: ast.AST) -> Value:
    items = engine.run.s.get((container.oid, ITEMS)) or ()
    return engine.counted_as(engine.run.new_sequence(list(items), engine.run.s.get((container.oid, REST))), container)


@OF_LISTS.of("index", "count")
def _number(engine: Filling, container: Sequence, name: str, args: Arguments, at: ast.AST) -> Value:
    _asked_for(engine, args, name, at)
    return NUMBER


@OF_LISTS.of("union", "difference", "intersection", "symmetric_difference")
def _combine(engine: Filling, container: Sequence, name: str, args: Arguments, at: ast.AST) -> Value:
    others = [v for other in args.positional for v in engine.run.elements(other) or engine.turns_of(other, at)]
    return engine.run.new_sequence(
        [], rest=engine.run.one_of([*engine.run.elements(container), *others]), kind=SequenceKind.SET
    )
