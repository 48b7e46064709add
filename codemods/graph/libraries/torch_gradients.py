"""``torch`` itself: what switches gradients, walks graphs and makes leaves."""

from __future__ import annotations

import ast
from dataclasses import replace

from codemods.graph.libraries.table import CALLS
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.gradients import (
    BACKWARD_FUNCTIONS,
    CHECKPOINT,
    FUNCTIONAL_GRADIENTS,
    GRAD_FUNCTIONS,
    GRAD_MODE_QUESTIONS,
    GRAD_OFF,
    GRAD_ON,
    GRAD_SWITCH,
    OF_CHECKPOINTS,
    WEIGHT_CACHES,
)
from codemods.graph.model.kinds import AliasForm, Escape, GradSetting, Marked, UseKind, WalkKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import NONE, NUMBER, Function, GradMode, Library, Method, Tensor
from codemods.graph.torch.model import Torch

# modes


@CALLS.of(*GRAD_OFF)
def _no_grad(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    if args.positional and isinstance(args.positional[0], (Function, Method)):
        return decorated(args.positional[0], False)
    mode = args.get(0, "mode")
    if path.endswith("inference_mode") and mode is not None:
        truth = engine.run.truth(mode)
        return GradMode(None if truth is None else not truth)
    return GradMode(False)


@CALLS.of(*GRAD_ON)
def _enable_grad(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    if args.positional and isinstance(args.positional[0], (Function, Method)):
        return decorated(args.positional[0], True)
    engine.run.mark(Marked.ENABLE_GRAD, at)
    return GradMode(True)


@CALLS.of(*GRAD_SWITCH)
def _set_grad_enabled(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    mode = args.get(0, "mode")
    truth = engine.run.truth(mode) if mode is not None else None
    if truth is not False:
        engine.run.mark(Marked.SET_GRAD_ENABLED, at)
    previous = engine.run.s.grad
    engine.run.s.grad = truth
    return GradMode(truth, previous, switched=True)


def decorated(function: Value, mode: bool | None) -> Value:
    """A function that sets the mode while it runs."""
    if isinstance(function, Function):
        return replace(function, grad_mode=GradSetting(mode))
    if isinstance(function, Method) and function.function is not None:
        return replace(function, function=replace(function.function, grad_mode=GradSetting(mode)))
    return function


@CALLS.of(*GRAD_MODE_QUESTIONS)
def _is_grad_enabled(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.mark(Marked.GRAD_MODE_READ, at)
    return NUMBER


# walks


@CALLS.of(*BACKWARD_FUNCTIONS)
def _backward(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    if not isinstance(at, ast.Call):
        return None
    gradients = args.get(1, "grad_tensors")
    engine.walk_with(
        at,
        engine.run.flat(args.get(0, "tensors")),
        args,
        WalkKind.BACKWARD,
        retain_at=2,
        create_at=3,
        with_gradient=gradients is not None and not engine.run.is_none(gradients),
    )
    return NONE


@CALLS.of(*GRAD_FUNCTIONS)
def _grad(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    if not isinstance(at, ast.Call):
        return None
    made = engine.autograd_grad(args, at)
    if path == "torch.autograd.grad" or made is None:
        return made
    # what a function computes with need not be given to it
    computed = engine.run.run_callbacks(args, at)
    engine.run.escape_all(computed, Escape.FUNCTIONAL_GRADIENT)
    return engine.run.join(made, engine.run.opaque(at, path, computed)) if computed else made


@CALLS.of("torch.func.functional_call", "torch.nn.utils.stateless.functional_call", "torch.nn.utils.functional_call")
def _functional_call(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    if not args.positional:
        return None
    # the parameters that it is given may be anything
    inputs = engine.run.flat(args.get(2, "args"))
    made = engine.run.interpreter.call_value(args.positional[0], Arguments(args.call, inputs), at)
    return engine.run.unseen_call(engine.run.opaque(at, path, [made, *args.all()], public=True), path)


@CALLS.of("torch.vmap", "torch.func.vmap", "functorch.vmap")
def _vmap(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    # what it makes of a function does the same to more of it
    return args.positional[0] if args.positional else None


@CALLS.of(*(f"{name.rstrip('.')}.*" for name in FUNCTIONAL_GRADIENTS), "torch.autograd.gradcheck")
def _functional_gradient(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    run = engine.run
    run.mark(Marked.FUNCTIONAL_GRADIENT, at)
    for value in args.all():
        run.escape(value, Escape.FUNCTIONAL_GRADIENT)
    # what a function computes with need not be given to it
    results = run.run_callbacks(args, at)
    run.escape_all(results, Escape.FUNCTIONAL_GRADIENT)
    return run.unseen_call(run.opaque(at, path, [*args.all(), *results], public=True), path)


@CALLS.of(CHECKPOINT)
def _checkpoint(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    _recomputed(engine, args, at)
    if not args.positional:
        return engine.run.unknown(path, public=True)
    named = {name: value for name, value in args.keywords.items() if name not in OF_CHECKPOINTS}
    return engine.run.interpreter.call_value(
        args.positional[0], Arguments(args.call, args.positional[1:], named, args.more), at
    )


@CALLS.of("torch.utils.checkpoint.checkpoint_sequential")
def _checkpoint_sequential(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    _recomputed(engine, args, at)
    given = args.get(2, "input")
    for function in engine.run.flat(args.get(0, "functions")):
        given = engine.run.interpreter.call_value(
            function, Arguments(args.call, [given] if given is not None else []), at
        )
    return given if given is not None else engine.run.unknown(path, public=True)


def _recomputed(engine: Torch, args: Arguments, at: ast.AST) -> None:
    engine.run.mark(Marked.RECOMPUTED, at)
    reentrant = args.keywords.get("use_reentrant")
    if reentrant is None or engine.run.truth(reentrant) is not False:
        engine.run.mark(Marked.REENTRANT_CHECKPOINT, at, [n for v in args.all() for n in engine.run.nodes_of(v)])


@CALLS.of("torch.cuda.amp.GradScaler", "torch.amp.GradScaler")
def _grad_scaler(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    return Library("torch.amp.GradScaler()")


@CALLS.of("torch.amp.GradScaler().*")
def _method_of_scaler(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    return engine.scaler_method(path.rpartition(".")[2], args, at)


# leaves


@CALLS.of("torch.autograd.Variable", "torch.Variable")
def _variable(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    run = engine.run
    given = args.get(0, "data")
    asks = args.get(1, "requires_grad")
    volatile = args.get(2, "volatile")
    if asks is not None and run.truth(asks) is not False:
        run.mark(Marked.REQUIRES_GRAD, at)
        leaf = Tensor(run.leaf(at, "input"))
        return run.alias(AliasForm.VARIABLE, given if given is not None else NONE, leaf, at)
    run.use(given, UseKind.DETACH, at)
    given = given if given is not None else NONE
    made = run.detached(given, scalar=isinstance(given, Tensor) and given.scalar)
    made = run.alias(AliasForm.VARIABLE, given, made, at)
    if volatile is not None and run.truth(volatile) is True and isinstance(at, ast.Call):
        made = replace(made, shadow=(*made.shadow, run.place(at)))
    return made


@CALLS.of("torch.nn.Parameter")
def _parameter(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    asks = args.get(1, "requires_grad")
    if asks is not None and engine.run.truth(asks) is False:
        return Tensor(None)
    return Tensor(engine.run.leaf(at, "parameter"))


@CALLS.of("torch.nn.Buffer", "torch.nn.UninitializedBuffer")
def _buffer(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    """A tensor of its own, without the graph of what it is made of, that asks for gradients where that does (ran: torch
    2.13)."""
    run = engine.run
    given = args.all()
    for value in given:
        run.use(value, UseKind.HISTORY_READ, at)
    nodes = [node for value in given for node in run.nodes_of(value)]
    asks = any(node.certain for node in nodes)
    made = Tensor(run.leaf(at, "input") if asks else None)
    if not asks and (nodes or run.shadow_of(given)):
        made = replace(made, shadow=run.lost("buffer").shadow)
    run.buffers[id(made)] = made
    return made


# the rest of ``torch``

_HEADS = frozenset(
    {"torch", "torch.linalg", "torch.fft", "torch.special", "torch.cuda", "torch.sparse", "torch.nested"}
)
"""Where functions of tensors stand."""


@CALLS.of("torch.*")
def _function(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    head, _, last = path.rpartition(".")
    return engine.torch_function(head, last, args, at) if head in _HEADS else None


@CALLS.of(*WEIGHT_CACHES)
def _autocast(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    return engine.run.unknown(path, public=True)


@CALLS.of("torch.distributions.*")
def _distribution(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value | None:
    made = path.rpartition(".")[2][:1].isupper() and not engine.run.parents_of(args.all())
    return engine.opaque_tensor(at, path, args) if made else None
