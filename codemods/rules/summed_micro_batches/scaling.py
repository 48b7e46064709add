"""What a sum is multiplied and divided by on its way to its backward, as text that fits after each of its terms."""

from __future__ import annotations

import ast

from codemods.graph.model.kinds import NodeKind
from codemods.graph.model.nodes import Walk
from codemods.graph.model.trace import Trace
from codemods.graph.model.values import Function, Instance, Mapping, Sequence, Tensor, options_of
from codemods.proofs.bindings import held
from codemods.proofs.blocks import altered, bound, looks_only, read
from codemods.proofs.sums import Sum
from codemods.source import walking


class Scaling:
    """How ``sum_`` enters the backward of ``walk``."""

    def __init__(self, trace: Trace, walk: Walk, sum_: Sum) -> None:
        self.trace = trace
        self.walk = walk
        self.sum = sum_

    def factor(self, loop: ast.For | ast.While, between: list[ast.stmt]) -> str | None:
        """What the sum is multiplied and divided by before its backward, as text after a term; None if it is more."""
        current, factor = self.sum.target, ""
        listed = isinstance(self.sum.statement, ast.Expr)
        for statement in between:
            scaled = None
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                scaled = self._scaled(statement.value, current, listed, loop)
                if scaled is not None:
                    current, listed = ast.unparse(statement.targets[0]), False
            elif isinstance(statement, ast.AugAssign) and ast.unparse(statement.target) == current and not listed:
                scaled = self._scale(statement.op, statement.value, loop)
            if scaled is not None:
                factor += scaled
            elif (
                isinstance(statement, ast.If) or not looks_only(self.trace, statement) or current in bound([statement])
            ):
                return None
        match self.walk.call:
            case ast.Call(func=ast.Attribute(value=value, attr="backward")):
                scaled = self._scaled(value, current, listed, loop)
                return factor + scaled if scaled is not None and self._linear() else None
        return None

    def _scaled(self, value: ast.expr, current: str, listed: bool, loop: ast.For | ast.While) -> str | None:
        """The factor that ``value`` puts to ``current``, None if it is anything else."""
        if not listed and ast.unparse(value) == current:
            return ""
        if isinstance(value, ast.BinOp):
            inner, by = self._scaled(value.left, current, listed, loop), value.right
            if inner is not None and listed and ast.unparse(by) == f"len({current})":
                return self._count(loop)
            if inner is None and isinstance(value.op, ast.Mult):
                inner, by = self._scaled(value.right, current, listed, loop), value.left
            scale = self._scale(value.op, by, loop) if inner is not None else None
            return None if inner is None or scale is None else inner + scale
        if listed:
            text = ast.unparse(value)
            for stacked in (f"torch.stack({current})", f"torch.stack({current}, dim=0)", f"torch.stack({current}, 0)"):
                if text in (f"sum({current})", f"{stacked}.sum()", f"torch.sum({stacked})"):
                    return ""
                if text in (f"{stacked}.mean()", f"torch.mean({stacked})"):
                    return self._count(loop)
        return None

    def _count(self, loop: ast.For | ast.While) -> str | None:
        """A division by the number of turns, where each turn adds one."""
        direct = any(s is self.sum.statement for s in loop.body)
        skips = any(isinstance(n, (ast.Continue, ast.Break)) for s in loop.body for n in walking.walk(s))
        if not direct or skips or not isinstance(loop, ast.For) or not isinstance(loop.iter, (ast.Name, ast.Attribute)):
            return None
        return self._scale(ast.Div(), ast.parse(f"len({ast.unparse(loop.iter)})", mode="eval").body, loop)

    def _scale(self, op: ast.operator, by: ast.expr, loop: ast.For | ast.While) -> str | None:
        if not isinstance(op, (ast.Mult, ast.Div)) or not _settled(by):
            return None
        frame = self.walk.place.frame
        changed = bound(loop.body) | (_bound_names(loop.target) if isinstance(loop, ast.For) else set())
        changed |= altered(self.trace, frame.file, [loop])
        if read([ast.Expr(by)]) & changed or self.sum.target in read([ast.Expr(by)]):
            return None
        if not all(self._stays(node, loop) for node in walking.walk(by) if isinstance(node, (ast.Name, ast.Attribute))):
            return None
        text = ast.unparse(by)
        if isinstance(by, ast.BinOp):
            text = f"({text})"
        return f" {'/' if isinstance(op, ast.Div) else '*'} {text}"

    def _stays(self, part: ast.expr, loop: ast.For | ast.While) -> bool:
        """Whether nothing that the loop calls another name can change what a factor reads: a tensor may be written in
        place and a list filled, and to read a property runs code."""
        if isinstance(loop, ast.For) and ast.unparse(part) in read([ast.Expr(loop.iter)]):
            return True
        values = held(ast.unparse(part), self.walk.place.frame, self.walk.cells)
        kinds = {type(option) for value in values or () for option in options_of(value)}
        computed = values is None and isinstance(part, ast.Attribute) and self._of_the_tree(part)
        return not computed and kinds.isdisjoint((Tensor, Sequence, Mapping, Function))

    def _of_the_tree(self, attribute: ast.Attribute) -> bool:
        """Whether it is read of an object whose class stands in the tree, which may compute it."""
        owners = held(ast.unparse(attribute.value), self.walk.place.frame, self.walk.cells)
        return any(isinstance(option, Instance) for owner in owners or () for option in options_of(owner))

    def _linear(self) -> bool:
        """Whether nothing that has a graph comes to the sum on its way to the backward."""
        sums = (self.sum.term, self.sum.other, self.sum.second)
        seen = {id(n) for node in sums for n in node.ancestors()}
        for node in self.walk.seen:
            if id(node) in seen or self.sum.in_the_loop(node.place):
                continue
            if any(p.leaf for p in node.parents) or node.kind is NodeKind.MODULE:
                return False
        return True


def _bound_names(target: ast.expr) -> set[str]:
    """The names that a loop binds."""
    return {ast.unparse(n) for n in walking.walk(target) if isinstance(n, (ast.Name, ast.Attribute))}


def _settled(expression: ast.expr) -> bool:
    """Whether an expression of numbers gives the same at all times while no name in it is bound."""
    if isinstance(expression, ast.Call):
        inner = expression.args
        return ast.unparse(expression.func) in ("len", "float", "int") and len(inner) == 1 and _settled(inner[0])
    if isinstance(expression, ast.BinOp):
        return _settled(expression.left) and _settled(expression.right)
    if isinstance(expression, ast.Attribute):
        return _settled(expression.value)
    return isinstance(expression, ast.Name) or (
        isinstance(expression, ast.Constant) and isinstance(expression.value, (int, float))
    )
