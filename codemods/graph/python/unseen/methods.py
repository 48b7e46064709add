"""Methods of things that cannot be seen: what a name and its arguments say of them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.gradients import BACKWARD_METHODS, DETACHING, HOOKING_METHODS
from codemods.graph.model.facts.python import EXIT_STACKS, PUTTING_METHODS, is_queue
from codemods.graph.model.handlers import Handlers
from codemods.graph.model.kinds import Escape, Marked, ModuleMode, SequenceKind, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import (
    ARRAY,
    NONE,
    NUMBER,
    Const,
    Function,
    GradMode,
    Instance,
    Method,
    Module,
    Plain,
    Sequence,
    Tensor,
    Unknown,
)
from codemods.graph.python.builtin_calls import BuiltinCalls
from codemods.graph.python.evidence import is_named_module
from codemods.graph.torch.module_methods import ONLY_OF_MODULES, shows_module

OF_UNSEEN: Handlers[Callable[[BuiltinCalls, Unknown, str, Arguments, ast.AST], Value | None]] = Handlers()
"""What a method does of something that cannot be seen, by its name; None where the name does not say."""

OF_GRAPHLESS: Handlers[Callable[[BuiltinCalls, Unknown, str, Arguments, ast.AST], Value | None]] = Handlers()
"""The same where it carries no graph: methods of tensors, arrays and containers by their public names. Of an object of
the tree its own are entered."""


# whatever it is


@OF_UNSEEN.of("backward")
def _backward(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value | None:
    given = args.positional
    if (
        given
        and receiver.node is None
        and not isinstance(engine.run.frame.file.parent(at), (ast.Expr, ast.Return, ast.Lambda))
    ):
        # what walks a graph gives nothing that anyone wants: this may be a derivative
        engine.run.escape_all(args.all(), Escape.UNSEEN_BACKWARD)
        return None
    if (
        given
        and receiver.node is None
        and (engine.run.nodes_of(given[0]) or (len(given) == 1 and not _is_gradient(engine, args)))
    ):
        # engine.backward(loss), and not loss.backward(gradient)
        walks = len(engine.run.trace.walks)
        engine.torch.wrapped_backward(args, at)
        for walk in engine.run.trace.walks[walks:]:
            walk.handed = True
        return NONE
    return engine.torch.backward_method(receiver, args, at)


def _is_gradient(engine: BuiltinCalls, args: Arguments) -> bool:
    """Whether the argument of ``x.backward(...)`` on something unseen is proven to be no loss: it has no graph."""
    return all(
        isinstance(o, (Plain, Const)) or (isinstance(o, Tensor) and not o.shadow) or (isinstance(o, Unknown) and o.data)
        for value in args.positional
        for o in engine.run.options(value)
    )


@OF_UNSEEN.of(*(BACKWARD_METHODS - {"backward"}))
def _wrapped_backward(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
    return engine.torch.wrapped_backward(args, at)


@OF_UNSEEN.of(*HOOKING_METHODS)
def _hook(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> None:
    # of a node of the graph, perhaps
    engine.run.mark(Marked.HOOK, at)
    engine.run.run_callbacks(args, at)


@OF_UNSEEN.of("register_forward_hook", "register_forward_pre_hook")
def _forward_hook(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> None:
    if args.all():
        # a part of some module that cannot be seen
        engine.run.add_hook(receiver.oid, None, args, before=name == "register_forward_pre_hook")


@OF_UNSEEN.of("eval", "train")
def _mode(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value | None:
    return _of_module(engine, receiver, name, args, at) if shows_module(engine.torch, name, args) else None


@OF_UNSEEN.of(*ONLY_OF_MODULES)
def _as_module(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value | None:
    return _of_module(engine, receiver, name, args, at)


def _of_module(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value | None:
    """The method of a module, which ``receiver`` is from here on; None where it may be something else."""
    if receiver.node is not None or (receiver.data and name not in ("parameters", "named_parameters")):
        return None
    module = engine.run.show_module(receiver, at, receiver.path or "module")
    return method_of_module(engine, receiver, module, name, args, at)


def method_of_module(
    engine: BuiltinCalls, receiver: Unknown, module: Module, name: str, args: Arguments, at: ast.AST
) -> Value:
    """A method of something that behaves like a module: itself where a module would return itself."""
    if name == "module":
        return engine.call_value(receiver, args, at)
    receiver.as_module |= shows_module(engine.torch, name, args)
    result = engine.torch.module_method(module, name, args, at)
    if receiver.path == "torch.load" and engine.run.s.get((module.oid, "mode")) is None:
        engine.run.s.set((module.oid, "mode"), ModuleMode.LOADED)
    return receiver if result is module else result


@OF_UNSEEN.of("step")
def _step(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value | None:
    if receiver.path.startswith("torch.optim.lr_scheduler"):
        for value in args.all():
            # ReduceLROnPlateau compares it with earlier ones
            engine.run.use(value, UseKind.SCHEDULER, at)
        return NONE
    if args.empty or any(isinstance(v, (Function, Method)) for v in args.all()):
        return engine.torch.optimizer_method(receiver, "step", args, at)
    return None


@OF_UNSEEN.of("zero_grad")
def _zero_grad(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.mark(Marked.CLEARED, at, by=receiver)
    return NONE


@OF_UNSEEN.of("items", "keys", "values")
def _view(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value | None:
    if not args.empty or receiver.node is None:
        return None
    return engine.run.unknown(name, engine.run.part(at, receiver, name))


@OF_UNSEEN.of("put", "put_nowait")
def _put_in_queue(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> None:
    if receiver.public and is_queue(receiver.path):
        engine.run.escape_all(args.all(), Escape.STORED_ANYWHERE)


@OF_UNSEEN.of("get", "get_nowait")
def _get_of_queue(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value | None:
    if not (receiver.public and is_queue(receiver.path)):
        return None
    # what others put there, before or after this call is seen
    held = engine.run.held_in([receiver])
    return (
        engine.run.join(engine.run.lost(name), engine.run.taken(at, receiver, name)) if held else engine.run.lost(name)
    )


# contexts


def enter_context(engine: BuiltinCalls, stack: Unknown, context: Value, at: ast.AST) -> Value:
    """``stack.enter_context(context)``: it hands on what it enters."""
    if stack.path in EXIT_STACKS:
        modes = {option.enabled for option in engine.run.options(context) if isinstance(option, GradMode)}
        if modes:
            engine.run.s.grad = modes.pop() if len(modes) == 1 and isinstance(context, GradMode) else None
    elif any(isinstance(o, GradMode) for o in engine.run.options(context)):
        engine.run.s.grad = None
    leave = _leaving(engine, context, at)
    if leave is not None:
        engine.run.to_leave.setdefault(stack.oid, []).append(leave)
    return _entered(engine, context, at)


def _leaving(engine: BuiltinCalls, context: Value, at: ast.AST) -> Callable[[], object] | None:
    """What happens where a context ends that the call ``at`` entered; None if nothing is known of that."""
    entered = at.args[0] if isinstance(at, ast.Call) and at.args else at
    closes = engine.run.closing.get(entered)
    if closes is not None:
        return lambda: engine.call_value(Method(context, None, closes), Arguments(), at)
    if isinstance(context, Instance):
        leave = context.cls.find("__exit__") or context.cls.find("__aexit__")
        if isinstance(leave, Function):
            return lambda: engine.call_function(leave, Arguments(None, [NONE] * 3), at, receiver=context)
    return None


def _entered(engine: BuiltinCalls, context: Value, at: ast.AST) -> Value:
    """What ``with context as name`` binds."""
    if isinstance(context, Sequence) and context.kind is SequenceKind.GENERATOR:
        return engine.run.one_of(engine.run.elements(context)) or engine.run.unknown("entered")
    if isinstance(context, Instance):
        enter = context.cls.find("__enter__") or context.cls.find("__aenter__")
        if isinstance(enter, Function):
            return engine.call_function(enter, Arguments(), at, receiver=context)
    return context


# without a graph


@OF_GRAPHLESS.of("numpy", "tolist")
def _array(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
    return ARRAY


@OF_GRAPHLESS.of("data_ptr", "item", "size", "dim", "numel")
def _number(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
    return NUMBER


@OF_GRAPHLESS.of(*DETACHING)
def _detach(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
    return Tensor(None)


@OF_GRAPHLESS.of("requires_grad_")
def _requires_grad(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
    return engine.torch.tensor_method(Tensor(None), name, args, at)


@OF_GRAPHLESS.of("cuda", "to", "cpu")
def _move(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
    return receiver


@OF_GRAPHLESS.of("float", "double", "half", "bfloat16", "type")
def _cast(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
    # tensors and modules have these
    assert engine.run.frame is not None
    named = is_named_module(engine.run.frame, at)
    return receiver if named else Tensor(None, shadow=receiver.shadow)


@OF_GRAPHLESS.of("long", "contiguous", "clone", "int", "byte", "bool")
def _copy(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
    return Tensor(None, shadow=receiver.shadow)


@OF_GRAPHLESS.of("get", "pop", "setdefault")
def _item(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value:
    given = args.positional
    if name == "setdefault" and len(given) > 1:
        engine.set_item(receiver, given[0], given[1], at, None)
    key = f"[{given[0].value!r}]" if given and isinstance(given[0], Const) else ""
    stored = engine.run.s.get((receiver.oid, key)) if key else None
    if isinstance(stored, Value):
        found: Value = engine.unknown_attribute(receiver, key, at)
    elif engine.run.held_in([receiver]):
        found = engine.run.taken(at, receiver, name)
    else:
        found = engine.unknown_attribute(receiver, f"[{name}]", at)
    return engine.run.join(found, given[1]) if len(given) > 1 else found


@OF_GRAPHLESS.of(*PUTTING_METHODS)
def _put(engine: BuiltinCalls, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> None:
    engine.torch.store_in_unknown(receiver, name, args, at)
