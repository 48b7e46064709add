"""The table of library calls, by public name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache

from codemods.graph.model.arguments import Arguments
from codemods.graph.model.handlers import Handlers
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import Tuple, Unknown
from codemods.graph.torch.model import Torch

Handler = Callable[[Torch, str, Arguments, ast.AST], Value | None]

CALLS: Handlers[Handler] = Handlers()
"""What a call gives, by its full public name, or by ``name.*`` for all that stands below ``name``; None where nothing
is known of a call with such arguments. The most special entry is asked first, then those above it."""

METHODS: Handlers[Callable[[Torch, Unknown, str, Arguments, ast.AST], Value | None]] = Handlers()
"""What a method gives of something that a library made, by the full public name of the method; None where nothing is
known of such a call."""


@cache
def handlers_of(path: str) -> tuple[Handler, ...]:
    """The entries for a public name, the most special one first."""
    names = [path]
    above = path
    while "." in above:
        above = above.rpartition(".")[0]
        names.append(f"{above}.*")
    return tuple(CALLS[name] for name in names if name in CALLS)


def whole(*libraries: str) -> list[str]:
    """The entries for libraries and all that stands below them."""
    return [name for library in libraries for name in (library, f"{library}.*")]


def handed_back(receiver: Unknown, args: Arguments) -> Value | None:
    """The result of a method that returns its argument; None where ``receiver`` may be a tensor."""
    if receiver.node is not None or not args.positional:
        return None
    return args.positional[0] if len(args.positional) == 1 else Tuple(tuple(args.positional))
