"""Arguments of a call."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from codemods.graph.model.kinds import FunctionKind
from codemods.graph.model.nodes import Frame, Value


@dataclass(eq=False, slots=True)
class Arguments:
    """Evaluated arguments of the call ``call``; ``more`` are values of ``*args`` and ``**kwargs`` of unknown length."""

    call: ast.Call | None = None
    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    more: list[Value] = field(default_factory=list)
    uncounted: bool = False
    """Whether ``positional`` may have more of its last values: a list of which not each element is known was spread."""

    def get(self, index: int, name: str) -> Value | None:
        """The argument at ``index``, or that of ``name``; None if it is not given."""
        if name in self.keywords:
            return self.keywords[name]
        return self.positional[index] if 0 <= index < len(self.positional) else None

    def all(self) -> list[Value]:
        """All values, in order."""
        return [*self.positional, *self.keywords.values(), *self.more]

    def fit(self, spec: ast.arguments, *, bound: int = 0) -> bool:
        """Whether a function takes them, ``bound`` of whose parameters have their value already: else the call
        raises."""
        if self.more:
            return True
        names = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        asked = names[bound : len(names) - len(spec.defaults)][len(self.positional) :]
        asked += [a.arg for a, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if default is None]
        known = {*names[bound:], *(arg.arg for arg in spec.kwonlyargs)}
        return (
            all(name in self.keywords for name in asked)
            and (spec.vararg is not None or len(self.positional) <= len(names) - bound)
            and (spec.kwarg is not None or self.keywords.keys() <= known)
        )

    @property
    def empty(self) -> bool:
        """Whether nothing at all is given."""
        return not (self.positional or self.keywords or self.more)


def given_for(frame: Frame, name: str) -> ast.expr | None:
    """The expression that the call of ``frame`` gives to the parameter ``name``."""
    call = frame.call.node if frame.call is not None else None
    definition = frame.definition
    if not isinstance(call, ast.Call) or frame.function is None:
        return None
    if not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [a.arg for a in (*definition.args.posonlyargs, *definition.args.args)]
    if name not in names or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    bound = frame.receiver is not None and frame.function.kind is not FunctionKind.STATIC_METHOD
    at = names.index(name) - (1 if bound else 0)
    return call.args[at] if 0 <= at < len(call.args) else None
