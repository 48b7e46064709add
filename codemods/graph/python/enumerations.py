"""Classes derived from ``enum.Enum``: each member is itself alone, whatever value it has."""

from __future__ import annotations

import ast

from codemods.graph.model.nodes import Value
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.values import Class, Const, EnumMember, Library, Tuple, Unknown
from codemods.terms.words import words

_OWN_WAYS = words("__init__ __eq__ __hash__ __new__ __bool__ __getattribute__ _generate_next_value_ _ignore_")
"""What makes members of a class something else than each one itself."""


def set_members(info: ClassInfo) -> None:
    """Make members of the values in the body of a class, if it is an enumeration whose members are all known.

    Two names of one value are one member. What is also a number or a text (``IntEnum``) stays that.
    """
    if not info.bases or not all(map(_enumerates, info.bases)) or any(info.find(name) for name in _OWN_WAYS):
        return
    names = [target.id for s in info.node.body for target in _targets(s) if not target.id.startswith("_")]
    values = {name: info.members[name] for name in names if name in info.members}
    known = {name: _known(value) for name, value in values.items()}
    if not all(known.values()) or len({_is_auto(value) for value in values.values()}) > 1:
        return
    first: dict[object, Value] = {}
    for name, value in values.items():
        alone = name if _is_auto(value) else known[name]
        key = (info.file.path, info.node.lineno, name)
        info.members[name] = first.setdefault(alone, Const(EnumMember(key, value, info)))


def members_of(value: Value) -> list[Value]:
    """The members of an enumeration, each once, in order; none of another class."""
    if not isinstance(value, Class):
        return []
    found = [m for m in value.info.members.values() if isinstance(m, Const) and isinstance(m.value, EnumMember)]
    return list({member.value: member for member in found}.values())


def _targets(statement: ast.stmt) -> list[ast.Name]:
    named = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        named = [statement.target]
    return [target for target in named if isinstance(target, ast.Name)]


def _enumerates(base: Value) -> bool:
    if isinstance(base, Library):
        return base.path == "enum.Enum"
    return isinstance(base, Class) and bool(base.info.bases) and all(map(_enumerates, base.info.bases))


def _known(value: Value) -> tuple[object, ...]:
    """What tells values apart; empty where that cannot be seen."""
    if isinstance(value, Const):
        return ("one", value.value)
    if isinstance(value, Tuple) and all(isinstance(item, Const) for item in value.items):
        return ("several", *(item.value for item in value.items if isinstance(item, Const)))
    return ("auto",) if _is_auto(value) else ()


def _is_auto(value: Value) -> bool:
    return isinstance(value, Unknown) and value.path == "enum.auto"
