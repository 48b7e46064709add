"""What operations have saved for their backward, and whether that is still to come when it is changed in place."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from codemods.graph.model.facts.layers import MODULES_WITH_PARAMETERS
from codemods.graph.model.facts.libraries import MODEL_LIBRARIES
from codemods.graph.model.facts.saved import (
    SAVES_BOTH,
    SAVES_INPUT,
    SAVES_OTHER,
    SAVES_OUTPUT,
    SAVES_SELF,
    WEIGHT_FOR_INPUT,
    WEIGHT_WITHIN,
)
from codemods.graph.model.kinds import NodeKind
from codemods.graph.model.nodes import Node, Place, Walk
from codemods.graph.model.program import ParsedFile
from codemods.proofs.reach import spread
from codemods.proofs.turns import in_one_turn
from codemods.source import walking
from codemods.terms.words import words

_VIEWS = words("view squeeze unsqueeze transpose permute t narrow select unfold diagonal movedim swapaxes mT T")
"""Operations that give a view, whatever they are given (docs: Tensor Views)."""


def reads_value(node: Node, leaf: Node) -> bool:
    """Whether the backward of an operation surely reads the value that a parameter had."""
    if not node.certain or not leaf.certain:
        return False
    attached = any(p.certain and p is not leaf and (not p.leaf or p.label == "input") for p in node.parents)
    if node.kind is NodeKind.MODULE:
        if node.label in WEIGHT_WITHIN:
            return True
        if node.label in WEIGHT_FOR_INPUT:
            return attached
        if node.label in MODULES_WITH_PARAMETERS or leaf.label in ("Embedding", "EmbeddingBag"):
            return False
        # a class that cannot be seen, or a forward that was remembered: what comes in goes through its weights
        return attached or leaf.label.startswith(tuple(MODEL_LIBRARIES))
    if node.kind is NodeKind.OP:
        other = attached or any(p.leaf and p is not leaf for p in node.parents)
        return (node.label in SAVES_OTHER and other) or node.label in SAVES_SELF
    return False


def reads_one_of(node: Node, leaves: Container[Node]) -> bool:
    """The same of one of several parameters."""
    return any(p.leaf and p in leaves and reads_value(node, p) for p in node.parents)


def saves_parameter(node: Node) -> bool:
    """Whether it keeps a parameter for its backward: only then does a changed parameter raise."""
    if not node.saves or not any(p.leaf for p in node.parents):
        return False
    if any(not p.leaf for p in node.parents):
        return True
    # from the second time step on the state needs the weights; over one step only the fused LSTM keeps them
    # (ran on torch 2.13)
    return node.label == "LSTM" or (node.label in ("GRU", "RNN") and not _one_step(node.place.node))


def _one_step(forward: ast.AST) -> bool:
    """Whether a layer may be given a sequence of one time step: its input was given a dimension of length one."""
    if not isinstance(forward, ast.Call) or not forward.args:
        return False
    given = forward.args[0]
    if isinstance(given, ast.Subscript):
        return any(isinstance(n, ast.Constant) and n.value is None for n in walking.walk(given.slice))
    if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute):
        return False
    shaping = given.func.attr in ("view", "reshape", "expand")
    return given.func.attr == "unsqueeze" or (
        shaping and any(isinstance(n, ast.Constant) and n.value == 1 for n in given.args)
    )


def savers(original: Node) -> Iterator[Node]:
    """The nodes that keep the very memory of a tensor for their backward."""
    if original.kind is not NodeKind.LEAF and _label(original) in SAVES_OUTPUT:
        yield original
    for child in original.children:
        label = _label(child)
        if (label in SAVES_INPUT and child.parents[0] is original) or (
            label in SAVES_BOTH and child.kind is NodeKind.OP and len(child.parents) == 2
        ):
            yield child


def _label(node: Node) -> str:
    return node.label if node.kind in (NodeKind.OP, NodeKind.MODULE) else ""


def needed(original: Node, change: Place) -> Iterator[tuple[Node, Walk]]:
    """What surely kept the memory of a tensor when it is changed in place, and had not been walked, each with the
    walks that come to it later in the same turn."""
    at = change.clock
    for node in savers(original):
        if node.birth <= at and node.certain and all(walk.place.clock > at for walk in node.walks):
            yield from ((node, walk) for walk in node.walks if in_one_turn(change, walk.place))


def memory(node: Node, at: int) -> Iterator[Node]:
    """A tensor and its views up to a moment: a change of one is a change of all."""

    def views(one: Node) -> Iterator[Node]:
        for child in one.children:
            view = child.label in _VIEWS or (child.label == "getitem" and _makes_view(child))
            if view and child.kind is NodeKind.OP and child.birth <= at and child.parents[0] is one:
                yield child

    return spread([node], views)


def _makes_view(element: Node) -> bool:
    """Whether an index makes a view and no copy: numbers and slices (docs: Tensor Views)."""
    at = element.place.node
    if not isinstance(at, ast.Subscript):
        return False
    parts = at.slice.elts if isinstance(at.slice, ast.Tuple) else [at.slice]
    return all(isinstance(part, ast.Slice) or _number(element.place.frame.file, part) for part in parts)


def _number(file: ParsedFile, index: ast.expr) -> bool:
    """Whether an index is a number, ``...`` or None, as written or as ``range`` counts it."""
    if isinstance(index, ast.Constant):
        return not isinstance(index.value, bool)
    if isinstance(index, ast.UnaryOp):
        return _number(file, index.operand)
    if isinstance(index, ast.BinOp):
        return _number(file, index.left) and _number(file, index.right)
    if not isinstance(index, ast.Name):
        return False
    outer = file.parent(index)
    while outer is not None:
        if isinstance(outer, ast.For) and isinstance(outer.target, ast.Name) and outer.target.id == index.id:
            return isinstance(outer.iter, ast.Call) and ast.unparse(outer.iter.func) == "range"
        outer = file.parent(outer)
    return False
