"""Arguments of a call."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from codemods.graph.values import Value


@dataclass(eq=False, slots=True)
class Arguments:
    """Evaluated arguments of the call ``call``; ``more`` are values of ``*args`` and ``**kwargs`` of unknown length."""

    call: ast.Call | None = None
    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    more: list[Value] = field(default_factory=list)

    def get(self, index: int, name: str) -> Value | None:
        """The argument at ``index``, or that of ``name``; None if it is not given."""
        if name in self.keywords:
            return self.keywords[name]
        return self.positional[index] if 0 <= index < len(self.positional) else None

    def all(self) -> list[Value]:
        """All values, in order."""
        return [*self.positional, *self.keywords.values(), *self.more]

    @property
    def empty(self) -> bool:
        """Whether nothing at all is given."""
        return not (self.positional or self.keywords or self.more)
