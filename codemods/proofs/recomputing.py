"""Branches that only choose whether a part of a forward is computed once more in the backward."""

from __future__ import annotations

import ast
from typing import Any

from codemods.graph.model.facts.gradients import CHECKPOINT, OF_CHECKPOINTS
from codemods.graph.model.kinds import Marked
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.proofs.blocks import behind
from codemods.source.walking import walk

_QUESTIONS = frozenset((Marked.REQUIRES_GRAD_READ, Marked.GRAD_MODE_READ))


def recomputing(trace: Trace) -> frozenset[ast.AST]:
    """Where code asks for ``requires_grad`` or for the mode, and either way computes the same.

    ``x = checkpoint(block, x) if x.requires_grad else block(x)``: a checkpoint calls its function, and returns
    what that returns (docs: torch.utils.checkpoint).
    """
    asked = {mark.place.node: mark.place.frame.file for mark in trace.marks if mark.kind in _QUESTIONS}
    return frozenset(node for node, file in asked.items() if _only_recomputes(node, file, trace))


def _only_recomputes(question: ast.AST, file: ParsedFile, trace: Trace) -> bool:
    choice = _choice(file, question)
    if choice is None or any(isinstance(n, ast.NamedExpr) for n in walk(choice.test)):
        return False
    one, other = choice.body, choice.orelse
    if isinstance(choice, ast.If) and not choice.orelse:
        if not isinstance(choice.body[-1], ast.Return):
            return False
        other = behind(file, choice)
    same: bool = _spelled(one, trace) == _spelled(other, trace)
    return same


def _choice(file: ParsedFile, node: ast.AST) -> ast.If | ast.IfExp | None:
    """The condition that an expression is part of."""
    inner, outer = node, file.parent(node)
    while outer is not None and not isinstance(outer, (ast.If, ast.IfExp)):
        if isinstance(inner, ast.stmt):
            return None
        inner, outer = outer, file.parent(outer)
    return outer if outer is not None and inner is outer.test else None


def _spelled(node: Any, trace: Trace) -> Any:
    """What tells syntax apart, as if the functions of checkpoints were called as they are."""
    if isinstance(node, list):
        return tuple(_spelled(n, trace) for n in node)
    if not isinstance(node, ast.AST):
        return node
    fields = dict(ast.iter_fields(node))
    if isinstance(node, ast.Call) and node.args and trace.called.get(node) == CHECKPOINT:
        named = [k for k in node.keywords if k.arg not in OF_CHECKPOINTS]
        fields = {"func": node.args[0], "args": node.args[1:], "keywords": named}
    return type(node), *((name, _spelled(value, trace)) for name, value in fields.items())
