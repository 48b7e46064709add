"""Methods of tensors."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.cutting import FRESH
from codemods.graph.model.facts.gradients import DETACHING, HOOKING_METHODS
from codemods.graph.model.facts.operations import FACTORIES, PLAIN_METHODS, WITHOUT_GRADIENT
from codemods.graph.model.facts.python import OF_COROUTINES
from codemods.graph.model.kinds import AliasForm, Escape, Marked, PlainKind, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import ARRAY, NUMBER, SHAPE, Class, Plain, Tensor
from codemods.graph.torch.operations.table import OF_TENSORS
from codemods.graph.torch.results import Results


def is_one(tensor: Value) -> bool:
    """Whether a tensor is proven to have one element."""
    return isinstance(tensor, Tensor) and (tensor.scalar or bool(tensor.node and tensor.node.scalar))


@OF_TENSORS.of("backward")
def _backward(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    return engine.backward_method(tensor, args, at)


@OF_TENSORS.of("as_subclass")
def _as_subclass(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    for value in args.all():
        answer = value.info.find("__torch_function__") if isinstance(value, Class) else None
        if answer is not None and engine.run.walking(answer):
            # it gets all that is computed with the tensor
            engine.run.trace.complete = False
    return engine.run.tensor_op(at, name, [tensor], saves=False, scalar=engine.run.is_scalar(tensor))


@OF_TENSORS.of("grad_fn")
def _walk_by_hand(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.mark(Marked.GRAPH_READ, at)
    engine.run.use(tensor, UseKind.HISTORY_READ, at)
    engine.run.escape(tensor, Escape.GRAPH_READ)
    # what was put into its metadata, too
    return engine.run.lost("grad_fn")


@OF_TENSORS.of(*DETACHING)
def _detach(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.use(tensor, UseKind.DETACH, at)
    return engine.run.alias(AliasForm.DETACH, tensor, engine.run.detached(tensor, scalar=is_one(tensor)), at)


@OF_TENSORS.of(*(PLAIN_METHODS - {"numpy", "tolist"}))
def _number(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.use(tensor, UseKind.METHOD, at, name)
    return SHAPE if name == "size" and not args.all() else NUMBER


@OF_TENSORS.of("numpy", "tolist")
def _array(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    if name == "numpy":
        engine.run.refused(tensor, at)
    engine.run.use(tensor, UseKind.METHOD, at, name)
    return Plain(PlainKind.ARRAY, shares=tensor) if name == "numpy" and isinstance(tensor, Tensor) else ARRAY


@OF_TENSORS.of(*(n for n in FRESH["Tensor"] if not n.startswith("new") and n not in DETACHING))
def _fresh(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.use(tensor, UseKind.METHOD, at, name)
    return Tensor(None)


@OF_TENSORS.of(*WITHOUT_GRADIENT)
def _index(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.use(tensor, UseKind.METHOD, at, name)
    return engine.run.index_of([tensor, *args.all()])


@OF_TENSORS.of("requires_grad_")
def _requires_grad(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    run = engine.run
    on = args.get(0, "requires_grad")
    leaf = isinstance(tensor, Tensor) and tensor.node is not None and tensor.node.leaf
    if on is not None and run.truth(on) is False:
        if leaf:
            run.freeze(tensor, True)
        return tensor
    run.mark(Marked.REQUIRES_GRAD, at)
    if not run.nodes_of(tensor):
        if isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) and run.thawed(at.func.value):
            return tensor
        return Tensor(run.leaf(at, "input"), is_one(tensor))
    if leaf:
        run.freeze(tensor, False)
    return tensor


@OF_TENSORS.of(*HOOKING_METHODS)
def _hook(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    run = engine.run
    run.use(tensor, UseKind.METHOD, at, name)
    run.mark(Marked.HOOK, at, run.nodes_of(tensor) or None)
    run.run_callbacks(args, at)
    run.wants_gradient(tensor, at)
    return run.opaque(at, name, [])


@OF_TENSORS.of(*OF_COROUTINES)
def _coroutine(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    # what a function that is ``async`` returns, handed on by an exception
    engine.run.escape(tensor, Escape.COROUTINE)
    return tensor


@OF_TENSORS.of("split", "chunk", "unbind", "tensor_split")
def _pieces(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    piece = engine.run.tensor_op(at, name, [tensor], saves=False)
    return engine.run.new_sequence([], rest=engine.run.sharing(tensor, piece))


@OF_TENSORS.of(*(name for name in FACTORIES if name.startswith("new")))
def _new(engine: Results, tensor: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.use(tensor, UseKind.METHOD, at, name)
    return engine.handed_on(name, args, at) or engine.fresh_tensor(args, at)
