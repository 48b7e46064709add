"""What is left of an ``if`` or an assignment when edits took away what it was for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_WITHOUT_EFFECT = frozenset({"torch.cuda.is_available"})


def is_identity(statement: ast.stmt, above: Sequence[ast.stmt] = ()) -> bool:
    """Whether a statement only assigns plain names to themselves: ``x = x``, ``x, y = x, y``, ``x = x if y else x``.

    So does ``x = x if x is not None else None``.

    So does ``self.x = self.x`` where one of the statements ``above``, in the same suite, assigns it: it lies on the
    object, not on its class.
    """
    if not isinstance(statement, ast.Assign):
        return False
    if all(_is_itself(target, statement.value) for target in statement.targets):
        return True
    target, value = statement.targets[0], statement.value
    if len(statement.targets) > 1 or not (_is_field(target) and _is_field(value)):
        return False
    field = ast.unparse(target)
    return ast.unparse(value) == field and any(
        isinstance(one, ast.Assign) and any(_is_field(t) and ast.unparse(t) == field for t in one.targets)
        for one in above
    )


def _is_field(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)


def _is_itself(target: ast.expr, value: ast.expr) -> bool:
    if isinstance(target, ast.Name):
        return _is_name(value, target.id) or (isinstance(value, ast.IfExp) and _chooses(value, target.id))
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, (ast.Tuple, ast.List)):
        return False
    parts = [*target.elts, *value.elts]
    return (
        len(target.elts) == len(value.elts)
        and all(isinstance(part, ast.Name) for part in parts)
        and all(map(_is_itself, target.elts, value.elts))
    )


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _chooses(choice: ast.IfExp, name: str) -> bool:
    """Whether a conditional expression is the variable ``name``, whichever way the condition goes."""
    test, ways = choice.test, (choice.body, choice.orelse)
    if isinstance(test, ast.Compare) and _is_name(test.left, name) and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        there, none = ways if isinstance(test.ops[0], ast.IsNot) else ways[::-1]
        nothing = all(isinstance(one, ast.Constant) and one.value is None for one in (*test.comparators, none))
        if nothing and len(test.ops) == 1 and _is_name(there, name):
            return True
    return is_harmless(test) and all(_is_name(one, name) for one in ways)


def is_harmless(test: ast.expr) -> bool:
    """Whether nothing happens when an expression is evaluated: names, attributes, constants and their comparison."""
    if isinstance(test, (ast.Name, ast.Constant)):
        return True
    if isinstance(test, ast.Attribute):
        return is_harmless(test.value)
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Not) and is_harmless(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(map(is_harmless, test.values))
    if isinstance(test, ast.Compare):
        return all(map(is_harmless, (test.left, *test.comparators)))
    return isinstance(test, ast.Call) and not (test.args or test.keywords) and ast.unparse(test.func) in _WITHOUT_EFFECT


def negated(test: ast.expr) -> ast.expr:
    """The opposite of a condition, as people write it."""
    return next(negations(test))


def negations(test: ast.expr) -> Iterator[ast.expr]:
    """Expressions that are true where ``test`` is false, the shortest first."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield test.operand
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITES:
        # == and the like may be defined in any way
        yield ast.Compare(test.left, [_OPPOSITES[type(test.ops[0])]()], test.comparators)
    yield ast.UnaryOp(ast.Not(), test)
