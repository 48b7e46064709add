"""Builtins that make numbers and texts of what they are given, or only look at it."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.kinds import Escape, PlainKind, UseKind
from codemods.graph.model.nodes import Unseen, Value
from codemods.graph.model.values import (
    DATA,
    NONE,
    NUMBER,
    TEXT,
    Const,
    Function,
    Instance,
    Namespace,
    Plain,
    Tensor,
    Tuple,
    written_plainly,
)
from codemods.graph.python.builtins.table import BUILTINS
from codemods.graph.python.containers import Containers
from codemods.graph.python.texts import written_by_text


@BUILTINS.of("float", "int", "bool", "complex")
def _number(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    first = args.positional[0] if args.positional else None
    engine.run.use(first, UseKind.CALL, at, name)
    if isinstance(first, Const) and isinstance(first.value, (int, float)):
        return first
    return NUMBER


@BUILTINS.of("str", "repr", "format", "ascii", "chr", "hex")
def _text(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    for value in args.positional:
        engine.run.use(value, UseKind.FORMAT, at)
    counts = len(args.positional) == 1 and name in ("str", "repr") and written_plainly(args.positional[0])
    made = Plain(PlainKind.TEXT, number=True) if counts else TEXT
    # a tensor of one element is formatted as its number
    first = args.positional[0] if args.positional else None
    return (
        made
        if name in ("chr", "hex") or (name == "format" and isinstance(first, Tensor))
        else _telling_of(engine, made, args)
    )


def _telling_of(engine: Containers, made: Value, args: Arguments) -> Value:
    """A text that is made of arguments and their elements."""
    return engine.run.text_of(made, *args.all(), *(e for v in args.all() for e in engine.run.elements(v)))


@BUILTINS.of("print")
def _print(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    for value in args.all():
        engine.run.use(value, UseKind.FORMAT, at)
    return NONE


@BUILTINS.of("len")
def _length(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    for value in args.positional:
        for option in engine.run.options(value):
            engine.run.looked_into(option, at)
    return NUMBER


@BUILTINS.of("ord", "input", "open", "callable", "issubclass", "time", "slice")
def _plain(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    return NUMBER


@BUILTINS.of("id", "hash")
def _identity(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.use(args.positional[0] if args.positional else None, UseKind.IDENTITY, at, name)
    return NUMBER


@BUILTINS.of("any", "all")
def _truth(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.use(args.positional[0] if args.positional else None, UseKind.TRUTH, at)
    return NUMBER


@BUILTINS.of("range")
def _range(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    if not args.positional:
        return engine.run.unknown("range", data=True)
    start = args.positional[0] if len(args.positional) > 1 else Const(0)
    counts = len(args.positional) < 3 and isinstance(start, Const) and start.value == 0 and not args.more
    return Plain(PlainKind.RANGE, turn=0 if counts else None)


@BUILTINS.of("abs", "pow", "round", "divmod")
def _arithmetic(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    given = args.positional
    first = given[0] if given else None
    if isinstance(first, Instance):
        member = first.cls.find(f"__{name}__")
        if isinstance(member, Function):
            return engine.call_function(member, Arguments(None, given[1:]), at, receiver=first)
        return engine.run.taken(at, first)
    if first is not None and any(engine.run.nodes_of(v) for v in given):
        made = engine.run.tensor_op(at, name, given, scalar=engine.run.is_scalar(first))
        return Tuple((made, made)) if name == "divmod" else made
    if any(isinstance(v, Tensor) for v in given):
        return Tuple((DATA, DATA)) if name == "divmod" else DATA
    shadow = engine.run.shadow_of(given)
    return Tensor(None, shadow=shadow) if any(isinstance(o, Unseen) for o in shadow) else NUMBER


@BUILTINS.of("eval", "exec")
def _code(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    run = engine.run
    named = [v for space in {run.frame.fid, run.frame.module_globals} for v in run.elements(Namespace(space))]
    run.escape_all([*named, *args.all()], Escape.EVALUATED_TEXT)
    run.hand_over(Arguments(None, named), at)
    written_by_text(engine, args.positional[0] if args.positional else None, named)
    made = run.opaque(at, name, args.all())
    run.may_be_put(args, made, at)
    return run.unseen_call(made, name)


@BUILTINS.of("__import__")
def _import(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    named, wanted, level = args.get(0, "name"), args.get(3, "fromlist"), args.get(4, "level")
    absolute = level is None or (isinstance(level, Const) and level.value == 0)
    if absolute and wanted is not None and engine.run.elements(wanted):
        # something of the module is wanted, and so it is given itself (docs: __import__)
        found = engine.import_named(Arguments(args.call, [named] if named is not None else []))
    else:
        top = isinstance(named, Const) and "." not in str(named.value)
        found = engine.import_named(Arguments(args.call, [named])) if absolute and named is not None and top else None
    return engine.run.unknown(name) if found is None else found


@BUILTINS.of("compile", "dir")
def _unseen(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    return engine.run.unknown(name)
