"""The vocabulary of changes: what a rule may ask for, by position and without any text surgery.

Every edit names its target by the :class:`~codemods.terms.spans.Span` that :mod:`ast` gave it, in characters;
so a span is the inner node without parentheses around it, and a decorated function starts at its ``def``. Code in an
edit may write ``{torch}`` for the torch module: it becomes whatever the file calls it, and the import is added if there
is none.

What an edit may change is said in its docstring; :mod:`codemods.edits.contracts` checks it on the syntax tree of the
result. For all of them: what they do not name stays, every comment too, but for those within what goes. Imports that
nothing uses any more go, and ``import torch`` comes where code asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from codemods.terms.spans import Span


class EditError(Exception):
    """An edit whose target is not where it should be, or that cannot be made there: a failure of ours."""


@dataclass(frozen=True)
class DropArgument:
    """Remove one argument of the call at ``call``: a keyword by its name, or a positional one by its index from 0.

    The same call without that argument; the comment on its line goes with it.
    """

    call: Span
    argument: str | int


@dataclass(frozen=True)
class RenameArgument:
    """Give an argument of the call at ``call`` the keyword ``name``: one with another keyword, or a positional one.

    A positional argument must be the last one: what follows it could not stay without a name of its own. The same call,
    and nothing but the name of that argument.
    """

    call: Span
    argument: str | int
    name: str


@dataclass(frozen=True)
class KeepPart:
    """Put the expression at ``kept``, which is part of the one at ``target``, in its place, with ``suffix`` after it.

    All else of ``target`` goes, but no comment of it. What is kept is the same expression, and the suffix is applied to
    the whole of it. Edits within what is kept can be made together with this one.
    """

    target: Span
    kept: Span
    suffix: str = ""


@dataclass(frozen=True)
class WrapExpression:
    """Put ``prefix`` and ``suffix`` around the expression at ``target``, in parentheses only where they are needed.

    The same expression within the new one.
    """

    target: Span
    prefix: str
    suffix: str


@dataclass(frozen=True)
class ReplaceExpression:
    """Replace the expression at ``target`` by ``code``; the code around keeps its meaning."""

    target: Span
    code: str


@dataclass(frozen=True)
class InsertStatements:
    """Put the lines of ``code`` before or after the statement at ``anchor``, at its indentation.

    ``first-in`` puts them at the top of the body of the function, loop or block at ``anchor`` (after a docstring),
    ``last-in`` at its bottom. All statements that were there stay, in their order.
    """

    anchor: Span
    where: Literal["before", "after", "first-in", "last-in"]
    code: str


@dataclass(frozen=True)
class RemoveStatement:
    """Take the statement at ``target`` away, and nothing else of its suite; a comment after it stays.

    An ``else`` that becomes empty goes. An ``if`` goes if its test does nothing, or is turned round where only its
    ``else`` is left. Any other suite that becomes empty gets ``pass``.
    """

    target: Span


@dataclass(frozen=True)
class RemoveIdentity:
    """Take the assignment at ``target`` away because it does nothing, as :class:`RemoveStatement` would.

    With the other edits within it made, it must only assign plain names to themselves, and not in a class: ``x = x``,
    also ``x, y = x, y``, but not ``x = x,``; ``self.x = self.x`` only where a statement above it in its suite assigns
    it.
    """

    target: Span


@dataclass(frozen=True)
class MoveStatement:
    """Take the statement at ``target``, with its comments, and put it where :class:`InsertStatements` would.

    ``blank_below`` is the least number of blank lines between it and what follows it there. The same statement, once;
    it stands in front of what other edits insert at that place.
    """

    target: Span
    anchor: Span
    where: Literal["before", "after", "first-in", "last-in"]
    blank_below: int = 0


@dataclass(frozen=True)
class WrapBlock:
    """Put the statements from ``first`` to ``last`` (siblings of one suite) under ``header``.

    A header is, for example, ``with {torch}.no_grad():``. The same statements, one level deeper.
    """

    first: Span
    last: Span
    header: str


@dataclass(frozen=True)
class AddDecorator:
    """Decorate the function at ``function`` with ``code`` (no ``@``), right above ``def``, below other decorators.

    The same function with one decorator more.
    """

    function: Span
    code: str


@dataclass(frozen=True)
class AddHelper:
    """Put a helper function ``code`` named ``name`` at module level, after the imports, once.

    The file must not use the name for anything else.
    """

    name: str
    code: str


Edit = (
    DropArgument
    | RenameArgument
    | KeepPart
    | WrapExpression
    | ReplaceExpression
    | InsertStatements
    | RemoveStatement
    | RemoveIdentity
    | MoveStatement
    | WrapBlock
    | AddDecorator
    | AddHelper
)
