"""Methods that every ``nn.Module`` has, and those of the containers of modules: a function each."""

from __future__ import annotations

import ast
from collections.abc import Callable

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.layers import CHECKS_OF_LAYERS, MODULE_CONTAINERS, TRANSPARENT_MODULE_METHODS
from codemods.graph.model.handlers import Handlers
from codemods.graph.model.kinds import Marked, ModuleMode, PlainKind, SequenceKind, UseKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.state import BUFFER
from codemods.graph.model.values import (
    NONE,
    Const,
    Instance,
    Module,
    Parameters,
    Plain,
    Tensor,
    Tuple,
    Unknown,
)
from codemods.graph.run.contents import ITEMS, REST
from codemods.graph.torch.layers import Layers

OF_MODULES: Handlers[Callable[[Layers, Value, str, Arguments, ast.AST], Value | None]] = Handlers()
"""What a method of a module does, by its name; None where it is a method of the module's own."""

ONLY_OF_MODULES = frozenset({"parameters", "named_parameters", "load_state_dict", "named_modules", "requires_grad_"})
"""Only a module has such a method (docs: torch.nn.Module)."""

_TURNS = 32
"""So many parts of a module are gone through one by one."""


def shows_module(engine: Layers, name: str, args: Arguments) -> bool:
    """Whether only a module has such a method with such arguments (docs: torch.nn.Module)."""
    if name not in ("eval", "train"):
        return name in ONLY_OF_MODULES
    mode = [o for v in args.all() for o in engine.run.options(v)]
    plain = all(isinstance(o, Plain) or (isinstance(o, Const) and isinstance(o.value, bool)) for o in mode)
    return plain and len(args.all()) <= (name == "train") and not args.more


@OF_MODULES.of("module")
def _module(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    # net.module(x) of a DataParallel
    return engine.run.interpreter.call_value(module, args, at)


@OF_MODULES.of(*(TRANSPARENT_MODULE_METHODS - {"module", "requires_grad_", "train", "eval"}))
def _itself(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    function = args.get(0, "fn") if name == "apply" else None
    if function is not None and engine.run.walking(function):
        for part in engine.submodules(module, deep=True)[:_TURNS]:
            engine.run.interpreter.call_value(function, Arguments(None, [part]), at)
        engine.run.run_walking(args, at)
    return module


# parameters


def _computed(engine: Layers, module: Value, at: ast.AST, name: str) -> Value | None:
    """What is asked of the buffers of a module, if one of them may hold what was computed."""
    held = [value for part in engine.submodules(module, deep=True) for value in engine.run.children_of(part)]
    kept = [option for value in held for option in engine.run.options(value)]
    graphs = Tuple(tuple(value for value in kept if isinstance(value, (Tensor, Unknown)) and value.node is not None))
    return engine.run.taken(at, graphs, name) if graphs.items else None


@OF_MODULES.of("buffers", "named_buffers")
def _buffers(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    computed = _computed(engine, module, at, name)
    if computed is not None:
        return computed
    held = engine.run.held_in([module])
    return engine.run.taken(at, module, name) if held else Parameters(module, named=name.startswith("named"))


@OF_MODULES.of("parameters", "named_parameters")
def _parameters(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    return Parameters(module, named=name.startswith("named"))


@OF_MODULES.of("requires_grad_")
def _requires_grad(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    on = args.get(0, "requires_grad")
    truth = True if on is None else engine.run.truth(on)
    engine.run.freeze(module, None if truth is None else not truth)
    return module


@OF_MODULES.of("zero_grad")
def _zero_grad(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.mark_owned(Marked.CLEARED, at, module)
    return NONE


@OF_MODULES.of("state_dict")
def _state_dict(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.mark_owned(Marked.STATE_TAKEN, at, module)
    # it gives tensors without their graphs, unless it is told to keep them
    kept = args.get(2, "keep_vars")
    computed = _computed(engine, module, at, name) if kept is not None and engine.run.truth(kept) is not False else None
    return computed if computed is not None else engine.run.unknown(name)


@OF_MODULES.of("get_submodule")
def _submodule(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    return engine.run.one_of(engine.submodules(module, deep=True)) or engine.run.unknown(name)


@OF_MODULES.of("get_parameter", "extra_repr", "_get_name")
def _unseen(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    return engine.run.unknown(name)


@OF_MODULES.of("get_buffer")
def _buffer(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    target = args.get(0, "target")
    held = engine.run.s.get((getattr(module, "oid", 0), target.value)) if isinstance(target, Const) else None
    return held if isinstance(held, Value) else engine.run.lost(name)


@OF_MODULES.of("load_state_dict")
def _load_state_dict(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    engine.run.mark_owned(Marked.PARAMETERS_LOADED, at, module)
    _set_mode(engine, module, ModuleMode.LOADED)
    if not _all_seen(module):
        return engine.run.unknown(name)
    keys = engine.run.unknown("keys", data=True)
    return Tuple((keys, keys), ("missing_keys", "unexpected_keys"), closed=True)


def _all_seen(module: Value) -> bool:
    """Whether all classes are known that a module gets its methods from."""
    return bool(module.name) if isinstance(module, Module) else isinstance(module, Instance) and module.leaf is None


# modes


@OF_MODULES.of("eval")
def _eval(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    _set_mode(engine, module, ModuleMode.EVAL)
    return module


@OF_MODULES.of("train")
def _train(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    on = args.get(0, "mode")
    off = on is not None and engine.run.truth(on) is False
    _set_mode(engine, module, ModuleMode.EVAL if off else ModuleMode.TRAIN)
    return module


def _set_mode(engine: Layers, module: Value, mode: ModuleMode) -> None:
    for part in engine.submodules(module, deep=True):
        oid = getattr(part, "oid", None)
        known = engine.run.s.get((oid, "mode")) if isinstance(oid, int) else None
        if isinstance(oid, int) and not (mode is ModuleMode.LOADED and known is ModuleMode.EVAL):
            engine.run.s.set((oid, "mode"), mode)


# parts


@OF_MODULES.of("children", "modules", "named_children", "named_modules")
def _children(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    children = engine.submodules(module, deep=name.endswith("modules"))
    if isinstance(module, Module) and not module.name and module.leaf is not None and not children[1:]:
        # parts of a module that cannot be seen have parameters among its own
        children = [Module(engine.run.new_oid(), "", module.leaf) for _ in range(2)]
    if name.startswith("named"):
        children = [Tuple((Plain(PlainKind.TEXT), child)) for child in children]
    if not children:
        return engine.run.unknown(name)
    # where there are many, the last turn of a loop stands for all the others
    return engine.run.new_sequence(children[:_TURNS], engine.run.one_of(children[_TURNS:]), kind=SequenceKind.MODULES)


@OF_MODULES.of("register_buffer", "register_parameter", "add_module", "register_module")
def _register(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    if len(args.positional) > 1:
        engine.run.use(args.positional[1], UseKind.METHOD, at, name)
        called, oid = args.positional[0], getattr(module, "oid", None)
        if name == "register_buffer" and isinstance(called, Const) and isinstance(oid, int):
            engine.run.s.set((oid, f"{BUFFER}{called.value}"), NONE)
        if isinstance(module, Module) and module.name in MODULE_CONTAINERS:
            engine.put_named(module, args.positional[0], args.positional[1])
        else:
            engine.run.interpreter.set_named(module, args.positional[0], args.positional[1], at)
    return engine.run.unknown(name)


def _layer(engine: Layers, module: Value) -> Module | None:
    """The module of the library that ``module`` is, or that its class derives from."""
    return module if isinstance(module, Module) else engine.layer_of(module)


@OF_MODULES.of("append", "insert")
def _append(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value | None:
    layer = _layer(engine, module)
    if layer is None:
        return None
    engine.put_part(layer, *args.positional[-1:])
    return module


@OF_MODULES.of("extend")
def _extend(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value | None:
    layer = _layer(engine, module)
    if layer is None:
        return None
    engine.put_part(layer, *engine.run.flat(args.positional[0] if args.positional else None))
    return module


@OF_MODULES.of("update")
def _update(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value | None:
    layer = _layer(engine, module)
    if layer is None or layer.name != "ModuleDict" or not args.positional:
        return None
    given = engine.run.elements(args.positional[0])
    named = engine.run.keywords_in(args.positional[0])
    if len(named) == len(given):
        for key, value in named.items():
            engine.put_named(layer, Const(key), value)
    else:
        engine.put_part(layer, *(v.items[-1] if isinstance(v, Tuple) and v.items else v for v in given))
    return NONE


@OF_MODULES.of("keys", "values", "items")
def _view(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value | None:
    layer = _layer(engine, module)
    if layer is None or layer.name != "ModuleDict":
        return None
    if name == "keys":
        return engine.run.new_sequence([], rest=Plain(PlainKind.TEXT))
    parts = list(engine.run.s.get((layer.oid, ITEMS)) or ())
    rest = engine.run.s.get((layer.oid, REST))
    if name == "items":
        parts = [Tuple((Plain(PlainKind.TEXT), part)) for part in parts]
        rest = None if rest is None else Tuple((Plain(PlainKind.TEXT), rest))
    return engine.run.new_sequence(parts, rest)


@OF_MODULES.of(*CHECKS_OF_LAYERS)
def _check(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value | None:
    of_torch = module.name if isinstance(module, Module) else isinstance(module, Instance) and module.cls.layer
    return NONE if of_torch else None


@OF_MODULES.of("forward")
def _forward(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value | None:
    layer = _layer(engine, module)
    return None if layer is None else engine.call_module(layer, args, at, owner=module)


# hooks


def register_hook(engine: Layers, module: Value, name: str, args: Arguments, at: ast.AST) -> Value:
    """``module.register_..._hook(function)``."""
    engine.run.mark(Marked.MODULE_HOOK, at)
    before = name == "register_forward_pre_hook"
    if not before and name != "register_forward_hook":
        holding = len(engine.run.holders)
        engine.run.run_callbacks(args, at)
        if len(engine.run.holders) > holding:
            # it puts a graph into what it gets, a state dict perhaps: who reads that is not followed
            engine.run.trace.complete = False
    elif args.all():
        engine.run.add_hook(getattr(module, "oid", 0), getattr(module, "leaf", None), args, before=before)
    return engine.run.unknown(name)
