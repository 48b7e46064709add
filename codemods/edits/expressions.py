"""Wrap and replace expressions, with parentheses only where the grammar asks for them."""

from __future__ import annotations

import ast

import libcst as cst

from codemods.edits.whitespace import comments
from codemods.terms.edits import EditError

_PLACEHOLDER = "codemods_wrapped_expression_"

# What binds tighter than every operator, so that it may stand anywhere in an expression.
_ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.SimpleString,
    cst.FormattedString,
    cst.List,
    cst.Set,
    cst.Dict,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.Ellipsis,
)
# Where any expression may stand, apart from those below.
_OPEN_PLACES = (
    cst.Arg,
    cst.Element,
    cst.Assign,
    cst.AnnAssign,
    cst.AugAssign,
    cst.Return,
    cst.Expr,
    cst.If,
    cst.While,
    cst.For,
    cst.Assert,
    cst.Index,
)
_NEVER_BARE = (cst.Tuple, cst.GeneratorExp, cst.Yield, cst.NamedExpr)


def wrap_expression(node: cst.BaseExpression, prefix: str, suffix: str) -> cst.BaseExpression:
    """``node`` between ``prefix`` and ``suffix``.

    Parentheses around ``node`` are put to use where some are needed, and stay around the whole where not.
    Raises EditError if that is no expression.
    """
    template = parse_expression(f"{prefix}{_PLACEHOLDER}{suffix}")
    outer = len(node.lpar) - _own_parentheses(node)
    inner = node.with_changes(lpar=node.lpar[outer:], rpar=node.rpar[: len(node.rpar) - outer])
    code = cst.Module([]).code_for_node(inner)
    if _same(f"{prefix}{code}{suffix}", f"{prefix}({code}\n){suffix}"):
        wrapped = _filled(template, inner)
        return wrapped.with_changes(
            lpar=(*node.lpar[:outer], *wrapped.lpar), rpar=(*wrapped.rpar, *node.rpar[len(node.rpar) - outer :])
        )
    return _filled(template, node if outer else in_parentheses(inner))


def replace_expression(node: cst.BaseExpression, code: str) -> cst.BaseExpression:
    """``code`` as an expression, in the parentheses that stand around ``node``.

    Raises EditError if ``code`` is no expression.
    """
    new = parse_expression(code)
    own = _own_parentheses(node)
    lpar, rpar = node.lpar[: len(node.lpar) - own], node.rpar[own:]
    return new.with_changes(lpar=(*lpar, *new.lpar), rpar=(*new.rpar, *rpar))


def keep_part(target: cst.BaseExpression, kept: cst.BaseExpression, suffix: str) -> cst.BaseExpression:
    """``kept``, which stands in ``target``, with ``suffix`` after it, in the parentheses that stand around ``target``.

    Raises EditError if comments that are no part of ``kept`` would be lost.
    """
    if len(comments(target)) > len(comments(kept)):
        raise EditError("comments would be lost with the expression around them")
    inner = wrap_expression(kept, "", suffix) if suffix else kept
    if isinstance(target, cst.Attribute) and target.value is kept:
        # What holds its lines together stands around it; the new attribute stands on the line of the old one.
        inner = _with_dot(inner, kept, target.dot)
    elif not _parses(cst.Module([]).code_for_node(inner)):
        # it runs over several lines, which what goes held together
        inner = in_parentheses(inner)
    own = _own_parentheses(target)
    lpar, rpar = target.lpar[: len(target.lpar) - own], target.rpar[own:]
    return inner.with_changes(lpar=(*lpar, *inner.lpar), rpar=(*inner.rpar, *rpar))


def _with_dot(node: cst.BaseExpression, kept: cst.BaseExpression, dot: cst.Dot) -> cst.BaseExpression:
    """``node`` with ``dot``, its blanks and line breaks, right after ``kept``, which stands in it."""
    if isinstance(node, cst.Call):
        return node.with_changes(func=_with_dot(node.func, kept, dot))
    if not isinstance(node, cst.Attribute):
        return node
    if node.value.deep_equals(kept):
        return node.with_changes(dot=dot)
    return node.with_changes(value=_with_dot(node.value, kept, dot))


def _parses(code: str) -> bool:
    try:
        return len(ast.parse(code).body) == 1
    except SyntaxError:
        return False


def fit_expression(new: cst.BaseExpression, old: cst.BaseExpression, parent: cst.CSTNode) -> cst.BaseExpression:
    """``new`` so that it may take the place that ``old`` has in ``parent``: in parentheses if it needs them there."""
    if new.lpar or isinstance(new, _ATOMS):
        return new
    if isinstance(new, cst.BaseNumber) and not isinstance(parent, cst.Attribute):
        return new
    starred = isinstance(parent, cst.Arg) and parent.star
    if isinstance(parent, _OPEN_PLACES) and not starred and not isinstance(new, _NEVER_BARE):
        return new
    if type(new) is type(old) and isinstance(new, _NEVER_BARE) and not old.lpar:
        return new
    return in_parentheses(new)


def in_parentheses(node: cst.BaseExpression) -> cst.BaseExpression:
    """``node`` in one pair of parentheses more."""
    return node.with_changes(lpar=(cst.LeftParen(), *node.lpar), rpar=(*node.rpar, cst.RightParen()))


def parse_expression(code: str) -> cst.BaseExpression:
    """The expression that ``code`` is; raises EditError if it is none."""
    try:
        return cst.parse_expression(code)
    except (cst.ParserSyntaxError, cst.CSTValidationError) as error:
        raise EditError(f"{code!r} is not an expression") from error


def _own_parentheses(node: cst.BaseExpression) -> int:
    """How many of the parentheses around ``node`` are a part of it to Python."""
    return 1 if node.lpar and isinstance(node, (cst.Tuple, cst.GeneratorExp)) else 0


class _Fill(cst.CSTTransformer):
    def __init__(self, node: cst.BaseExpression) -> None:
        super().__init__()
        self.node = node

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        return self.node if original_node.value == _PLACEHOLDER else updated_node


def _filled(template: cst.BaseExpression, node: cst.BaseExpression) -> cst.BaseExpression:
    filled = template.visit(_Fill(node))
    assert isinstance(filled, cst.BaseExpression)
    return filled


def _same(code: str, other: str) -> bool:
    """Whether two expressions are the same to Python; both may run over several lines, as within parentheses."""
    try:
        first, second = (ast.parse(f"({text}\n)", mode="eval") for text in (code, other))
    except SyntaxError:
        return False
    return ast.dump(first) == ast.dump(second)
