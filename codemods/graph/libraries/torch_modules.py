"""``torch.nn`` and ``torch.optim``, and what wraps modules."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.graph.libraries.table import CALLS
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.layers import LEAVING_WEIGHTS, TRANSPARENT_WRAPPERS
from codemods.graph.model.facts.libraries import SOME
from codemods.graph.model.kinds import Altered, Marked
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import NONE, NUMBER, WRAPPED, Instance, Module, Tensor, Tuple
from codemods.graph.torch.model import Torch


@CALLS.of("torch.nn.*")
def _module(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    head, _, last = path.rpartition(".")
    if path == f"torch.nn.{SOME}" or last == "from_pretrained":
        return engine.blob(at, path)
    return engine.make_module(last, args, at) if head == "torch.nn" else None


@CALLS.of("torch.nn.functional.*")
def _functional(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    return engine.functional(path.rpartition(".")[2], args, at)


@CALLS.of("torch.nn.utils.rnn.*")
def _packing(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    return engine.opaque_tensor(at, path, args)


@CALLS.of("torch.nn.utils.*")
def _utility(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    last = path.rpartition(".")[2]
    if last.startswith("clip_grad"):
        engine.run.mark_owned(Marked.GRADIENTS_CHANGED, at, args.get(0, "parameters"))
        return NUMBER
    if last == "parameters_to_vector":
        return engine.run.tensor_op(at, last, args.all())
    return args.all()[0] if args.all() else NONE


@CALLS.of("torch.nn.init.*")
def _init(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    filled = args.get(0, "tensor")
    if filled is not None:
        engine.run.alter(filled, Altered.VALUES, at)
    return args.all()[0] if args.all() else NONE


@CALLS.of(*(TRANSPARENT_WRAPPERS - {"copy.copy", "copy.deepcopy"}))
def _wrapper(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    if not args.all():
        return None
    module = args.all()[0]
    for each in engine.run.options(module) if path.endswith("DataParallel") else ():
        if isinstance(each, (Module, Instance)):
            engine.run.s.set((each.oid, WRAPPED), NONE)
    if path in LEAVING_WEIGHTS and isinstance(module, Module) and module.leaf is not None:
        engine.run.renewed.add(module.leaf)
    return module


@CALLS.of("torch.nn.parallel.data_parallel", "torch.nn.parallel.parallel_apply")
def _parallel(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    if not args.positional:
        return None
    inputs = engine.run.flat(args.positional[1]) if len(args.positional) > 1 else []
    return engine.run.interpreter.call_value(args.positional[0], Arguments(args.call, inputs), at)


@CALLS.of("torch.optim.*")
def _optimizer(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    head, _, last = path.rpartition(".")
    return replace(engine.make_optimizer(args, at), once=last != "LBFGS") if head == "torch.optim" else None


@CALLS.of("torch.optim.lr_scheduler.*", "torch.optim.swa_utils.*", "torch.optim.swa_utils", "torch.utils.tensorboard.*")
def _unseen(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.may_call(args.all())
    engine.run.run_walking(args, at)
    return engine.run.unknown(path, public=True)


def _collated(engine: Torch, collate: Value, at: ast.AST) -> Value:
    batch = engine.run.unknown("batch", data=True)
    return engine.run.interpreter.call_value(collate, Arguments(None, [batch]), at)


@CALLS.of("torch.nn.utils.parametrize.register_parametrization")
def _parametrized(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    module, name = args.get(0, "module"), args.get(1, "tensor_name")
    if module is not None and name is not None:
        # what stands there is computed from here on, of all that the parametrization holds
        held = Tuple((*args.all(), *(Tensor(node) for node in engine.run.reach(args.all()))))
        made = engine.run.unseen_call(engine.run.opaque(at, path, [held]), path)
        engine.run.interpreter.set_named(module, name, made, at)
    return module or engine.run.unknown(path, public=True)


@CALLS.of("torch.utils.data.*", "torchvision.datasets.*", "torchvision.transforms.*", "torchtext.*")
def _data(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    run = engine.run
    run.may_call(args.all())
    run.run_walking(args, at)
    # what a dataset holds, and what a function makes that puts batches together
    collate = args.keywords.get("collate_fn")
    batch = [] if collate is None or run.is_none(collate) else [_collated(engine, collate, at)]
    given = Tuple((*args.all(), *batch, *(Tensor(node) for node in run.reach(args.all()))))
    if run.nodes_of(given) or run.held_in([given]):
        return run.taken(at, given, path)
    return run.unknown(path, data=True, public=True)
