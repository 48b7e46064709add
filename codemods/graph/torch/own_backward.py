"""Whether the ``backward`` of an ``autograd.Function`` is seen to do more than a derivative does.

It has to return the product of a vector and a Jacobian (torch.autograd.Function, docs): twice the gradient gives twice
the result, and two walks give the sum of both. One that clips, normalizes, draws or keeps count breaks that rule.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.graph.model.facts.operations import NOT_LINEAR, RANDOM_FACTORIES
from codemods.source.walking import walk

_OF_TWO = (ast.Mult, ast.MatMult)
_OF_THE_LEFT = (ast.Pow, ast.FloorDiv, ast.Mod)


def is_linear(backward: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether nothing is seen in the body that tells two walks from one walk of the sum."""
    names = [a.arg for a in (*backward.args.posonlyargs, *backward.args.args)]
    gradients = set(names[1:])
    if backward.args.vararg:
        gradients.add(backward.args.vararg.arg)
    body = [node for statement in backward.body for node in walk(statement)]
    while True:
        before = len(gradients)
        for node in body:
            if _takes_up(node, gradients):
                gradients |= set(_stored(node))
        if len(gradients) == before:
            break
    local = {n.id for n in body if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} | gradients
    return not any(_breaks(node, gradients) or _outlives(node, local) for node in body)


def _takes_up(node: ast.AST, gradients: set[str]) -> bool:
    source = node.iter if isinstance(node, (ast.For, ast.comprehension)) else getattr(node, "value", None)
    return isinstance(source, ast.expr) and _mentions(source, gradients)


def _stored(node: ast.AST) -> Iterator[str]:
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    for target in targets:
        if target is not None:
            yield from (n.id for n in walk(target) if isinstance(n, ast.Name))


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in walk(node))


def _outlives(node: ast.AST, local: set[str]) -> bool:
    """Whether something is written that the next walk may read."""
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
        holder = node.value
        while isinstance(holder, (ast.Attribute, ast.Subscript)):
            holder = holder.value
        return not isinstance(holder, ast.Name) or holder.id not in local
    return isinstance(node, (ast.Global, ast.Nonlocal))


def _breaks(node: ast.AST, gradients: set[str]) -> bool:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        name = name.rstrip("_")
        return name in RANDOM_FACTORIES or "dropout" in name or (name in NOT_LINEAR and _mentions(node, gradients))
    if isinstance(node, ast.BinOp):
        left, right = _mentions(node.left, gradients), _mentions(node.right, gradients)
        if isinstance(node.op, _OF_TWO):
            return left and right
        return right if isinstance(node.op, ast.Div) else left and isinstance(node.op, _OF_THE_LEFT)
    if isinstance(node, ast.Compare):
        by_identity = all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        return not by_identity and _mentions(node, gradients)
    return False
