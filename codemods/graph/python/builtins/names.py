"""Builtins that read and write attributes and variables by their names."""

from __future__ import annotations

import ast

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.facts.layers import MODULE_NAMES
from codemods.graph.model.facts.libraries import OF_CLASSES, SOME
from codemods.graph.model.kinds import FunctionKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.state import MADE, PARTLY
from codemods.graph.model.values import (
    NONE,
    NUMBER,
    TEXT,
    Class,
    Const,
    Function,
    Instance,
    Join,
    Library,
    Module,
    Namespace,
    Plain,
    TreeModule,
    Tuple,
    Unknown,
    options_of,
)
from codemods.graph.python.builtins.table import BUILTINS
from codemods.graph.python.containers import Containers
from codemods.graph.run.contents import ANY
from codemods.graph.run.joins import MAX_MODULES, MAX_OPTIONS
from codemods.source.walking import walk

_PLAIN_BASES = frozenset({"builtins.object", "torch.nn.Module"})
"""Libraries' classes that give their objects no attributes beside those that are listed."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@BUILTINS.of("hasattr")
def _hasattr(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    given = args.positional
    if len(given) != 2 or not isinstance(given[1], Const):
        return NUMBER
    answers = {_has(engine, option, str(given[1].value)) for option in engine.run.options(given[0])}
    answer = answers.pop() if len(answers) == 1 else None
    return NUMBER if answer is None else Const(answer)


def _has(engine: Containers, owner: Value, name: str) -> bool | None:
    """Whether it has an attribute of that name; None where that is not known."""
    if not isinstance(owner, Instance) or engine.run.interpreter.may_write(name):
        return None
    found = owner.cls.find(name)
    if found is not None or isinstance(engine.run.s.get((owner.oid, name)), Value):
        partly = found is None and engine.run.s.get((owner.oid, f"{PARTLY}{name}"))
        # a property is asked, and may say that it has none
        asked = isinstance(found, Function) and found.kind is FunctionKind.PROPERTY
        return None if partly or asked or engine.special_names(owner.cls) else True
    return False if _lacks(engine, owner, name) else None


def _lacks(engine: Containers, owner: Instance, name: str) -> bool:
    """Whether an object surely has no attribute of that name: it was made in sight, out of classes in sight, and no
    code that cannot be seen got it."""
    run, classes = engine.run, owner.cls.mro()
    if name.startswith("_") or name in MODULE_NAMES or name in run.class_attributes or owner.oid in run.trace.handed:
        return False
    if not run.s.get((owner.oid, MADE)) or not run.trace.complete or any("not entered" in n for n in run.trace.notes):
        return False
    if engine.special_names(owner.cls) or owner.cls.find("__getattr__") or owner.cls.calls_differently:
        return False
    if isinstance(run.s.get((owner.oid, ANY)), Value) and engine.may_be_called(owner.oid, name):
        return False
    return not any(_adds_unseen(info) or name in info.file.once(_bound_in, info.node) for info in classes)


def _adds_unseen(info: ClassInfo) -> bool:
    """Whether a base, a metaclass or a decorator that cannot be seen may give the objects of a class attributes."""
    plain = all(isinstance(b, Class) or (isinstance(b, Library) and b.path in _PLAIN_BASES) for b in info.bases)
    return not plain or bool(info.node.decorator_list) or info.metaclass is not None


def _bound_in(definition: ast.ClassDef) -> frozenset[str]:
    """The names that the body of a class binds beside its functions and classes, also under conditions."""
    within = (n for s in definition.body if not isinstance(s, _DEFINITIONS) for n in walk(s))
    return frozenset(n.id for n in within if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


@BUILTINS.of("setattr")
def _setattr(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value | None:
    if len(args.positional) < 3:
        return None
    owner, attribute, value = args.positional[:3]
    engine.set_named(owner, attribute, value, at)
    if isinstance(at, ast.Call) and len(at.args) == 3:
        place: ast.expr = ast.Call(ast.Name("getattr", ast.Load()), at.args[:2], [])
        if isinstance(attribute, Const) and isinstance(attribute.value, str):
            place = ast.Attribute(at.args[0], attribute.value, ast.Load())
        engine.growing.note_rebound(place, at.args[2], value)
    return NONE


@BUILTINS.of("object.__setattr__", "type.__setattr__")
def _set_directly(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value | None:
    if len(args.positional) < 3:
        return None
    engine.set_directly(args.positional[0], args.positional[1], args.positional[2], at)
    return NONE


@BUILTINS.of("delattr", "object.__delattr__", "type.__delattr__")
def _delattr(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value | None:
    if len(args.positional) < 2:
        return None
    for owner in engine.run.options(args.positional[0]):
        engine.delete_named(owner, args.positional[1], at)
    return NONE


@BUILTINS.of("getattr", "object.__getattribute__", "object.__getattr__")
def _getattr(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value | None:
    return read_named(engine, args.positional, at) if len(args.positional) > 1 else None


def read_named(engine: Containers, given: list[Value], at: ast.AST) -> Value:
    """``getattr(obj, name, default)``."""
    run = engine.run
    owner, name = given[0], given[1]
    if isinstance(owner, Unknown) and owner.oid in (run.frame.module_globals, engine.script):
        variables = Namespace(owner.oid)
        whole = isinstance(name, Const) and name.value == "__dict__"
        return variables if whole else engine.named_item(variables, name, at)
    if isinstance(name, Const) and isinstance(name.value, str):
        return _by_known_name(engine, owner, name.value, given[2:], at)
    if isinstance(owner, Library) and owner.path == "torch.optim":
        # what can be called there are optimizers
        some = Library("torch.optim.Optimizer")
        return some if len(given) < 3 else run.join(some, given[2])
    if isinstance(owner, Instance) and isinstance(name, Plain):
        one = _one_named(engine, owner, name, at)
        if one is not None:
            return one
    if isinstance(owner, Library) and owner.path in OF_CLASSES:
        return Library(f"{owner.path}.{SOME}")
    if isinstance(owner, Join) and all(isinstance(o, TreeModule) for o in owner.options):
        return run.one_of([read_named(engine, [o, *given[1:]], at) for o in owner.options]) or run.lost()
    space = engine.get_attribute(owner, "__dict__", at) if isinstance(owner, TreeModule) else None
    chosen = engine.defined_in(space) if isinstance(space, Namespace) else None
    if chosen is not None:
        return chosen
    plain = isinstance(owner, Unknown) and owner.module is None and owner.node is None
    if isinstance(owner, Unknown) and plain and not run.attributes.get(owner.oid) and not run.held_in([owner]):
        # nothing was written to it: what it has under one name, it may have under any
        found = engine.unknown_attribute(owner, "[getattr]", at)
        return found if len(given) < 3 else run.join(found, given[2])
    inside: Value = owner
    if isinstance(owner, Instance):
        held = (run.s.get((owner.oid, key)) for key in run.attributes.get(owner.oid, ()))
        inside = Tuple(tuple(value for value in held if isinstance(value, Value)))
    made = run.taken(at, inside, "getattr")
    made.shadow = (*run.lost("getattr").shadow, *made.shadow)
    return made


def _by_known_name(engine: Containers, owner: Value, name: str, default: list[Value], at: ast.AST) -> Value:
    """``getattr(obj, "name", default)``."""
    found = engine.get_attribute(owner, name, at)
    defined = isinstance(owner, Instance) and owner.cls.find(name) is not None
    # An attribute that was seen to be set may have been set on one path only.
    open_ended = isinstance(owner, (Instance, Unknown, Module)) and not defined
    return engine.run.join(found, default[0]) if default and open_ended else found


def _one_named(engine: Containers, owner: Instance, name: Plain, at: ast.AST) -> Value | None:
    """An attribute of an object of which the begin or end of its name is known: one of those that are called so.

    None where there may be others: where nothing is known of the name, of a base, or of a part, and of what is no
    module, where code that cannot be seen got the object.
    """
    open_ended = not owner.cls.is_module and (owner.cls.family != "plain" or owner.oid in engine.run.trace.handed)
    special = engine.special_names(owner.cls) or owner.cls.find("__getattr__") is not None
    if not (name.begin or name.end) or open_ended or not _known_bases(owner) or special:
        return None
    held = _held_as(engine, owner, name)
    members = {n for info in owner.cls.mro() for n in info.members if name.may_be(n)}
    found = [engine.get_attribute(owner, n, at) for n in (*held, *sorted(members.difference(held)))]
    return engine.run.one_of(found) if len(found) <= MAX_OPTIONS else None


def registered(engine: Containers, owner: Instance, name: Value, at: ast.AST) -> Value | None:
    """``self.__getattr__(name)`` of a module, which finds parameters, buffers and modules of its own and nothing else
    (docs: torch.nn.Module). None where there may be others than those in sight."""
    if isinstance(name, Const) and isinstance(name.value, str):
        return engine.get_attribute(owner, name.value, at)
    if not _known_bases(owner) or engine.special_names(owner.cls):
        return None
    held = _held_as(engine, owner, name if isinstance(name, Plain) else TEXT)
    found = [o for n in held for o in engine.run.options(engine.get_attribute(owner, n, at))]
    parts = [o for o in found if not isinstance(o, (Const, Plain))]
    return engine.run.one_of(parts) if len(parts) <= MAX_MODULES else None


def _known_bases(owner: Instance) -> bool:
    """Whether all is known that the class of an object is derived from."""
    return all(
        isinstance(base, Class) or (isinstance(base, Library) and base.path.startswith(("torch.nn.", "builtins.")))
        for info in owner.cls.mro()
        for base in info.bases
    )


def _held_as(engine: Containers, owner: Instance, name: Plain) -> list[str]:
    """The attributes of an object that may be called so."""
    return [n for n in engine.run.attributes.get(owner.oid, ()) if isinstance(n, str) and (n == ANY or name.may_be(n))]


@BUILTINS.of("vars")
def _vars(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    if not args.positional:
        return _namespace(engine, local=engine.run.frame.function is not None)
    first = args.positional[0]
    oid = getattr(first, "oid", None)
    if all(isinstance(option, (TreeModule, Function, Class)) for option in options_of(first)):
        return engine.get_attribute(first, "__dict__", at)
    return Namespace(oid, first) if isinstance(oid, int) else engine.run.lost(name)


@BUILTINS.of("locals")
def _locals(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    return _namespace(engine, local=engine.run.frame.function is not None)


@BUILTINS.of("globals")
def _globals(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    return _namespace(engine, local=False)


def _namespace(engine: Containers, *, local: bool) -> Namespace:
    return Namespace(engine.run.frame.fid if local else engine.run.frame.module_globals)
