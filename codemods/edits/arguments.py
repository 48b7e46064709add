"""Drop arguments of a call, and nothing of the layout of the others."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from codemods.edits.gaps import gap_in_nothing, gap_to_end, gap_to_next, has_comments
from codemods.terms.edits import EditError


def argument_index(call: cst.Call, argument: str | int) -> int:
    """Where ``argument``, a keyword or the index of a positional one, stands among all arguments of ``call``.

    Raises EditError if the call has no such argument.
    """
    if isinstance(argument, str):
        for index, candidate in enumerate(call.args):
            if candidate.keyword is not None and candidate.keyword.value == argument:
                return index
        raise EditError(f"the call has no argument {argument}=")
    positional = [index for index, arg in enumerate(call.args) if arg.keyword is None and arg.star != "**"]
    if not 0 <= argument < len(positional):
        raise EditError(f"the call has no positional argument {argument}")
    return positional[argument]


def drop_arguments(call: cst.Call, indexes: Iterable[int]) -> cst.Call:
    """``call`` without the arguments at ``indexes`` of its ``args``."""
    for index in sorted(indexes, reverse=True):
        call = _drop_argument(call, index)
    return call


def _drop_argument(call: cst.Call, index: int) -> cst.Call:
    args = list(call.args)
    dropped = args.pop(index)
    after = dropped.comma.whitespace_after if isinstance(dropped.comma, cst.Comma) else dropped.whitespace_after_arg
    if index == 0:
        before = call.whitespace_before_args
        gap = gap_to_next(before, after, first=True) if args else gap_in_nothing(before, after)
        return call.with_changes(args=args, whitespace_before_args=gap)
    previous = args[index - 1]
    if not isinstance(previous.comma, cst.Comma):
        raise EditError("an argument without a comma stands before another one")
    before = previous.comma.whitespace_after
    if index < len(args):
        comma = previous.comma.with_changes(whitespace_after=gap_to_next(before, after, first=False))
        args[index - 1] = previous.with_changes(comma=comma)
    elif isinstance(dropped.comma, cst.Comma):
        comma = previous.comma.with_changes(whitespace_after=gap_to_end(before, after))
        args[index - 1] = previous.with_changes(comma=comma)
    else:
        gap = gap_to_end(before, after)
        if has_comments(previous.comma.whitespace_before):
            gap = gap_to_end(previous.comma.whitespace_before, gap)
        args[index - 1] = previous.with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=gap)
    return call.with_changes(args=args)


def rename_argument(call: cst.Call, argument: str | int, name: str) -> cst.Call:
    """``call`` with the keyword ``name`` for an argument; raises EditError if that may not stand there."""
    index = argument_index(call, argument)
    arg = call.args[index]
    if any(other.keyword is not None and other.keyword.value == name for other in call.args):
        raise EditError(f"the call has an argument {name}= already")
    if arg.keyword is not None:
        return _with_argument(call, index, arg.with_changes(keyword=arg.keyword.with_changes(value=name)))
    if arg.star or any(other.keyword is None and other.star != "**" for other in call.args[index + 1 :]):
        raise EditError("a positional argument with others after it cannot get a keyword")
    bare = cst.SimpleWhitespace("")
    equal = cst.AssignEqual(whitespace_before=bare, whitespace_after=bare)
    return _with_argument(call, index, arg.with_changes(keyword=cst.Name(name), equal=equal))


def _with_argument(call: cst.Call, index: int, arg: cst.Arg) -> cst.Call:
    return call.with_changes(args=[*call.args[:index], arg, *call.args[index + 1 :]])
