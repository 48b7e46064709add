"""Builtins that ask what an object is, and that make classes and objects."""

from __future__ import annotations

import ast
import keyword
import sys
from collections.abc import Iterable
from dataclasses import replace

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.families import family_of
from codemods.graph.model.kinds import Escape, FunctionKind, SequenceKind
from codemods.graph.model.nodes import Value
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.values import (
    NUMBER,
    Class,
    Const,
    EnumMember,
    Function,
    Instance,
    Join,
    Library,
    Mapping,
    Module,
    Plain,
    Sequence,
    Super,
    Tensor,
    TreeModule,
    Tuple,
)
from codemods.graph.python.builtins.table import BUILTINS
from codemods.graph.python.containers import Containers

_TENSORS = frozenset({"torch.Tensor", "torch.autograd.Variable", "torch.FloatTensor", "torch.cuda.FloatTensor"})


@BUILTINS.of("isinstance")
def _isinstance(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    return NUMBER if len(args.positional) < 2 else is_instance(engine, args.positional[0], args.positional[1])


def is_instance(engine: Containers, value: Value, kinds: Value) -> Value:
    """``isinstance(value, kinds)``: a constant where that is known."""
    if isinstance(value, Join):
        each = {engine.run.truth(is_instance(engine, option, kinds)) for option in value.options}
        return Const(each.pop()) if len(each) == 1 and None not in each else NUMBER
    wanted = [kinds] if not isinstance(kinds, Tuple) else list(kinds.items)
    if any(isinstance(kind, Class) and _asks_metaclass(kind.info) for kind in wanted):
        # what a metaclass does with it is not followed
        engine.run.escape_all([value], Escape.STORED_ANYWHERE)
    answer: bool | None = None
    if isinstance(value, Const) and isinstance(value.value, EnumMember):
        classes = {kind.info in value.value.cls.mro() for kind in wanted if isinstance(kind, Class)}
        answer = True if True in classes else None
    elif isinstance(value, (Instance, Module)):
        answers = {_is_of(value, kind) for kind in wanted}
        answer = True if True in answers else (False if answers == {False} else None)
    else:
        paths = {kind.path for kind in wanted if isinstance(kind, Library)}
        answer = _is_one_of(value, paths, all_seen=len(paths) == len(wanted))
    return NUMBER if answer is None else Const(answer)


def _asks_metaclass(info: ClassInfo) -> bool:
    """Whether code of a metaclass may get what is asked whether it is an object of a class."""
    return info.calls_differently or info.of_metaclass("__instancecheck__") is not None


def _is_one_of(value: Value, paths: set[str], *, all_seen: bool) -> bool | None:
    """Whether a tensor or a container is of one of the types with these paths; None where that cannot be seen."""
    if isinstance(value, Tensor):
        if paths & _TENSORS:
            return True
        return False if paths and all_seen and all(p.startswith("builtins.") for p in paths) else None
    if isinstance(value, (Tuple, Sequence)):
        if ("builtins.tuple" if isinstance(value, Tuple) else f"builtins.{value.kind.value}") in paths:
            return True
        return False if all_seen and all(p.startswith(("builtins.", "torch.")) for p in paths) else None
    return True if isinstance(value, Mapping) and "builtins.dict" in paths else None


def _is_of(value: Instance | Module, kind: Value) -> bool | None:
    """Whether an object is of a class, None where that cannot be seen."""
    if isinstance(value, Module):
        if isinstance(kind, Class):
            return False if value.name else None
        if isinstance(kind, Library) and value.name:
            return True if kind.path == "torch.nn.Module" else kind.path == f"torch.nn.{value.name}" or None
        return None
    if isinstance(kind, Class):
        if kind.info in value.cls.mro():
            return True
        return None if value.cls.family.startswith("external") else False
    return None


def is_of_type(value: Value, kinds: Iterable[Value]) -> bool | None:
    """Whether ``type(value)`` is one of ``kinds``; None where that cannot be seen."""
    wanted = list(kinds)
    mine = _type_of(value)
    if isinstance(mine, Class):
        classes = [kind for kind in wanted if isinstance(kind, Class)]
        if any(kind.info is mine.info for kind in classes):
            return True
        return False if len(classes) == len(wanted) else None
    paths = {kind.path for kind in wanted if isinstance(kind, Library)}
    if isinstance(mine, Library) and mine.path in paths:
        return True
    if wanted and len(paths) == len(wanted) and all(path.startswith("builtins.") for path in paths):
        return False if isinstance(mine, Library) or isinstance(value, Tensor) else None
    return None


def may_be_subclass(engine: Containers, value: Value, kinds: Value) -> bool:
    """Whether ``issubclass(value, kinds)`` may hold: it raises for what is no class."""
    if isinstance(value, (Const, Plain, Function, TreeModule)):
        return False
    if isinstance(value, Library) and "." not in value.path:
        # what an import binds under a name without dots is a module
        return False
    wanted = list(kinds.items) if isinstance(kinds, Tuple) else [kinds]
    return any(_may_derive(value, kind) for kind in wanted)


def _may_derive(value: Value, kind: Value) -> bool:
    if isinstance(kind, Class):
        info = kind.info
        if info.calls_differently or info.of_metaclass("__subclasscheck__") or info.find("__subclasshook__"):
            return True
        if isinstance(value, Class):
            return info in value.info.mro() or "" in value.info.outside()
        # no library knows the classes of the tree
        return not isinstance(value, Library)
    if isinstance(kind, Library) and kind.path == "torch.nn.Module":
        if isinstance(value, Class):
            return value.info.is_module or not all(map(_is_of_python, value.info.outside()))
        return not (isinstance(value, Library) and _is_of_python(value.path))
    return True


def _is_of_python(path: str) -> bool:
    """Whether something of that full name comes with Python itself."""
    return path.partition(".")[0] in sys.stdlib_module_names


@BUILTINS.of("super")
def _super(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    given = args.positional
    if len(given) == 2 and isinstance(given[0], Class):
        return Super(given[0].info, given[1])
    for frame in engine.run.frame.outward():
        if frame.function is not None and frame.function.cls is not None:
            if frame.receiver is None:
                break
            return Super(frame.function.cls, frame.receiver)
    return engine.run.unknown("super")


@BUILTINS.of("type")
def _type(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value:
    given = args.positional
    if len(given) > 1:
        engine.run.escape_all(args.all(), Escape.METACLASS)
    found: Value | None = None
    if len(given) == 1:
        found = _type_of(given[0])
    elif len(given) == 3:
        found = _new_type(engine, given[0], given[1], given[2])
    return found or engine.run.unknown("builtins.type", public=True)


def _type_of(value: Value) -> Value | None:
    """``type(value)``; None where it cannot be seen."""
    if isinstance(value, Instance):
        return Class(value.cls)
    if isinstance(value, (Tuple, Mapping)) and not getattr(value, "names", ()):
        return Library("builtins.tuple" if isinstance(value, Tuple) else "builtins.dict")
    if isinstance(value, Sequence) and value.kind in (SequenceKind.LIST, SequenceKind.SET, SequenceKind.TUPLE):
        return Library(f"builtins.{value.kind.value}")
    return None


def _new_type(engine: Containers, name: Value, bases: Value, members: Value) -> Value | None:
    """``type(name, bases, members)``; None where the name or the members cannot be seen."""
    if not isinstance(name, Const) or not isinstance(members, Mapping):
        return None
    info = made_class(engine, str(name.value), tuple(bases.items) if isinstance(bases, Tuple) else (), [])
    for key in engine.run.mapping_keys(members):
        value = engine.run.s.get((members.oid, key))
        if isinstance(key, tuple) and isinstance(value, Value):
            info.members[str(key[1])] = replace(value, cls=info) if isinstance(value, Function) else value
    info.family = family_of(info.bases, info.members)
    return Class(info)


def made_class(engine: Containers, name: str, bases: tuple[Value, ...], fields: list[str]) -> ClassInfo:
    """A class that a call makes, as if it stood there as a statement."""
    body = [f"{field}: object" for field in fields if is_name(field)] or ["pass"]
    text = f"class {name if is_name(name) else 'Made'}:\n    " + "\n    ".join(body)
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.ClassDef)
    return ClassInfo(name, statement, engine.run.frame.file, bases, oid=engine.run.new_oid())


def is_name(text: str) -> bool:
    """Whether a text can stand as a name in a program."""
    return text.isidentifier() and not keyword.iskeyword(text)


@BUILTINS.of("property")
def _property(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value | None:
    first = args.positional[0] if args.positional else None
    return replace(first, kind=FunctionKind.PROPERTY) if isinstance(first, Function) else None


@BUILTINS.of("type.__call__")
def _plain_call(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value | None:
    first, rest = args.positional[:1], Arguments(args.call, args.positional[1:], args.keywords, args.more)
    made = first[0] if first else None
    return engine.instantiate(made.info, rest, at, plainly=True) if isinstance(made, Class) else None


@BUILTINS.of("object.__new__")
def _new_object(engine: Containers, name: str, args: Arguments, at: ast.AST) -> Value | None:
    first = args.positional[0] if args.positional else None
    return engine.new_object(first.info) if isinstance(first, Class) else None
