"""Functions of ``torch`` and of the modules below it."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.operations import DRAWN_OF, FACTORIES, WITH_INDICES
from codemods.graph.model.kinds import PlainKind, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import INDEX, NUMBER, Const, Plain, Tensor, Tuple
from codemods.graph.torch.operations.table import OF_SEVERAL, OF_TORCH
from codemods.graph.torch.results import Results

_OF_INTEGERS = frozenset({"LongTensor", "IntTensor", "ByteTensor", "BoolTensor", "randint", "randperm"})
"""Factories whose tensors hold integers."""


# fresh tensors


@OF_TORCH.of("as_tensor", "asarray")
def _as_tensor(engine: Results, head: str, name: str, args: Arguments, at: ast.AST) -> Value:
    given = args.get(0, "data" if name == "as_tensor" else "obj")
    if isinstance(given, Tensor) and len(args.all()) == 1:
        # of a tensor nothing is made
        return given
    made = engine.run.tensor_op(at, name, args.all(), saves=False)
    _shared(engine, made, given, args)
    return made


@OF_TORCH.of("from_numpy")
def _from_array(engine: Results, head: str, name: str, args: Arguments, at: ast.AST) -> Value:
    made = engine.fresh_tensor(args, at)
    _shared(engine, made, args.get(0, "ndarray"), args)
    return made


def _shared(engine: Results, made: Value, given: Value | None, args: Arguments) -> None:
    """Have the array in a variable share its memory with the tensor that is made of it."""
    call, run = args.call, engine.run
    if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Name) and isinstance(made, Tensor):
        cell = (run.frame.fid, call.args[0].id)
        if isinstance(given, Plain) and given.kind is PlainKind.ARRAY and run.s.get(cell) is given:
            run.s.set(cell, Plain(PlainKind.ARRAY, shares=made))


@OF_TORCH.of("tensor")
def _tensor(engine: Results, head: str, name: str, args: Arguments, at: ast.AST) -> Value:
    for value in args.all():
        engine.run.use(value, UseKind.DETACH, at)
    number = bool(args.positional) and isinstance(args.positional[0], (Const, Plain))
    return engine.fresh_tensor(args, at, scalar=number)


@OF_TORCH.of("load")
def _load(engine: Results, head: str, name: str, args: Arguments, at: ast.AST) -> Value:
    return engine.run.unknown("torch.load", public=True)


@OF_TORCH.of(*DRAWN_OF)
def _drawn(engine: Results, head: str, name: str, args: Arguments, at: ast.AST) -> Value:
    if any(engine.run.nodes_of(value) for value in args.all()):
        return engine.run.tensor_op(at, name, args.all(), saves=False)
    return _made(engine, name, args, at)


@OF_TORCH.of(*(FACTORIES - DRAWN_OF - {"tensor", "load", "from_numpy"}))
def _factory(engine: Results, head: str, name: str, args: Arguments, at: ast.AST) -> Value:
    return _made(engine, name, args, at)


def _made(engine: Results, name: str, args: Arguments, at: ast.AST) -> Value:
    return engine.handed_on(name, args, at) or engine.fresh_tensor(args, at, index=name in _OF_INTEGERS)


# numbers and settings


@OF_TORCH.of("is_tensor", "equal", "numel", "save")
def _looks(engine: Results, head: str, name: str, args: Arguments, at: ast.AST) -> Value:
    for value in args.all():
        engine.run.use(value, UseKind.TORCH, at, name)
    return NUMBER


@OF_TORCH.of(
    *("is_floating_point", "manual_seed", "device", "set_default_dtype", "get_rng_state", "set_rng_state"),
    *("typename", "set_printoptions", "set_num_threads", "is_available", "synchronize", "empty_cache", "set_device"),
    *("device_count", "memory_allocated", "current_device", "set_default_tensor_type", "finfo", "iinfo", "Generator"),
    *("Size", "max_memory_allocated"),
)
def _number(engine: Results, head: str, name: str, args: Arguments, at: ast.AST) -> Value:
    return NUMBER


# several tensors


@OF_SEVERAL.of(*WITH_INDICES)
def _with_indices(engine: Results, head: str, name: str, args: Arguments, at: ast.AST) -> Value | None:
    # with a dimension it gives several: those are told by the tables
    if head != "torch":
        return None
    single = not args.positional[1:] and "other" not in args.keywords and not args.more
    dimensionless = single and engine.drops_all(name, args)
    return engine.run.tensor_op(at, name, args.all(), scalar=single, dimensionless=dimensionless)


@OF_SEVERAL.of("split", "chunk", "unbind", "tensor_split", "meshgrid", "broadcast_tensors")
def _pieces(engine: Results, head: str, name: str, args: Arguments, at: ast.AST) -> Value:
    inputs = args.all()
    piece = engine.run.tensor_op(at, name, inputs, saves=False)
    return engine.run.new_sequence([], rest=engine.run.sharing(inputs[0], piece) if inputs else piece)


@OF_SEVERAL.of(
    *("svd", "qr", "eig", "eigh", "symeig", "lstsq", "slogdet", "lu", "std_mean", "var_mean", "triangular_solve")
)
def _parts(engine: Results, head: str, name: str, args: Arguments, at: ast.AST) -> Value:
    return engine.opaque_tensor(at, name, args)


@OF_SEVERAL.of("where")
def _where(engine: Results, head: str, name: str, args: Arguments, at: ast.AST) -> Value | None:
    return Tuple((INDEX, INDEX)) if len(args.positional) == 1 and not args.keywords else None
