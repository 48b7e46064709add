"""The rule ``attached-bootstrap-target``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codemods.graph.model.facts.layers import TUPLE_OUTPUT
from codemods.graph.model.facts.operations import KEEPS_SHAPE
from codemods.graph.model.facts.saved import SAVES_NOTHING
from codemods.graph.model.kinds import Marked, NodeKind, WalkKind
from codemods.graph.model.nodes import Node, Place, Walk
from codemods.graph.model.opacity import opaque
from codemods.graph.model.trace import Mark, Trace
from codemods.proofs.blocks import meeting
from codemods.proofs.marks import concerns, hooked, may_touch_gradients
from codemods.proofs.observations import Observation
from codemods.proofs.reach import spread
from codemods.rules._sites import SiteRule
from codemods.source import walking
from codemods.terms.edits import Edit, WrapExpression
from codemods.terms.findings import Promise
from codemods.terms.words import words

_COMPARES = words("mse_loss smooth_l1_loss huber_loss l1_loss Sub sub MSELoss SmoothL1Loss HuberLoss L1Loss")
"""Operations that say how far two tensors are from each other."""

_DISTANCES = frozenset(("Pow", "pow", "square", "abs", "smooth_l1_loss", "huber_loss", "mse_loss", "norm"))
"""What makes a distance of a difference."""

_JOINING = words("add sub rsub neg sum mean cat concat concatenate stack hstack vstack add_ sub_ type_as")
_SHAPES = (SAVES_NOTHING | KEEPS_SHAPE) - _JOINING
"""Operations that give one tensor another shape, type or place."""

_ELEMENTS = frozenset(("setitem", "getitem", ""))
"""Elements are written and read; without a name: what shares memory with a tensor that was written to."""

_OF_ACTIONS = frozenset(("max", "amax", "min", "amin", "gather", "minimum", "maximum", "logsumexp"))
"""What picks or joins the values of actions."""

_ENVIRONMENTS = ("gym.", "gymnasium.", "pettingzoo.", "dm_control.", "ale_py.")
"""Libraries whose programs act and get rewards (their docs)."""

_COPIES = frozenset((Marked.PARAMETERS_LOADED, Marked.PARAMETERS_CHANGED, Marked.DATA_WRITTEN))


class AttachedBootstrapTarget(SiteRule):
    """A loss that compares a prediction with a target that a network computed, graph and all.

    Why it hurts: ``y = r + gamma * net(s2).max(1)[0]`` is attached to the network that is being trained. The loss then
    moves the target towards the prediction as well as the prediction towards the target, which is not the update of
    Q-learning or TD(0): it learns slower, or another thing. Where a copy computes the target, ``target_net(s2)``, what
    is learned is right, but each step keeps the copy's activations and computes gradients for weights that no optimizer
    updates; they add up in ``.grad``, and nobody looks at them.

    Left alone: targets that are detached or computed under ``no_grad``; sums that are not a reward and a discounted
    value (a module's output times a number and added to its input); networks that an optimizer may train, whose
    gradients somebody reads, or which code gets that cannot be seen; parameters that are frozen.

    The rewrite: ``y = (r + gamma * net(s2).max(1)[0]).detach()``, where the function that compares computes the target.

    Advice: compute any other target under ``torch.no_grad()``, or compare with ``y.detach()``. Where the copy was meant
    to learn, give its parameters to an optimizer; where the gradient through the target is meant (residual gradients),
    say so with ``# codemod: ignore``.

    Promise: behaviour. Of a network that trains, another thing is learned without that gradient.

    Source: https://docs.pytorch.org/tutorials/intermediate/reinforcement_q_learning.html
    """

    name = "attached-bootstrap-target"
    promise = Promise.BEHAVIOUR
    summary = "a loss back-propagates into the target that it compares with"
    gate = (b".backward(", b"autograd.backward(", b"manual_backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete or not trace.steps:
            return
        told: set[int] = set()
        acting = any(path.startswith(_ENVIRONMENTS) for path in trace.called.values())
        for walk in trace.walks:
            if walk.kind is not WalkKind.BACKWARD or walk.creates is not False:
                continue
            for found in _comparisons(walk, acting):
                place = _stands(found)
                if place is None or id(place.node) in told:
                    continue
                wrong = self._own(trace, walk, found) or self._copy(trace, walk, found)
                if wrong:
                    told.add(id(place.node))
                    message, remedy = wrong
                    yield self.fault(
                        place.frame.file, place.node, message, remedy,
                        (found.source.place, "a network computes it here, with its graph"),
                        (found.node.place, "compared with the prediction here"),
                        (walk.place, "this backward goes on into the target"),
                        edits=_cut(trace, found),
                    )  # fmt: skip

    def _own(self, trace: Trace, walk: Walk, found: _Comparison) -> tuple[str, str] | None:
        """The network that this loss trains computes the target."""
        if found.discounted is None:
            return None
        shared = _weights(found.target) & _weights(found.prediction)
        trained = any(
            step.place.clock > walk.place.clock and step.owned is not None and not shared.isdisjoint(step.owned.leaves)
            for step in trace.steps
        )
        if not trained:
            return None
        return (
            "this target is attached to the network that its loss trains: the step moves it towards the prediction as "
            "well",
            "compute it under torch.no_grad(), or detach it",
        )

    def _copy(self, trace: Trace, walk: Walk, found: _Comparison) -> tuple[str, str] | None:
        """A copy that no optimizer updates computes the target."""
        weights = _weights(found.target)
        if any(n.leaf and n not in weights for n in found.target.ancestors()):
            return None
        if hooked(trace) or any(step.owned is None or step.owned.more for step in trace.steps):
            return None
        owned = {leaf for step in trace.steps if step.owned is not None for leaf in step.owned.leaves}
        if not weights.isdisjoint(owned) or _weights(found.prediction).isdisjoint(owned):
            return None
        if any(_speaks_against(mark, weights) for mark in trace.marks):
            return None
        written = [m for m in trace.marks if m.kind in _COPIES and m.of is not None and not weights.isdisjoint(m.of)]
        if found.discounted is None and not written:
            return None
        return (
            "this target is attached to a network that no optimizer updates: backward computes gradients for it that "
            "nobody uses",
            "compute it under torch.no_grad(), or detach it",
        )


@dataclass(frozen=True, eq=False, slots=True)
class _Comparison:
    """A ``node`` that compares ``prediction`` with ``target``; ``source`` is the network's output in the target, and
    ``discounted`` the sum of a discounted value of it and something more, None where the target is none."""

    node: Node
    prediction: Node
    target: Node
    source: Node
    discounted: Node | None


def _comparisons(walk: Walk, acting: bool) -> Iterator[_Comparison]:
    for node in walk.seen:
        label = node.operation
        if label not in _COMPARES or node.kind not in (NodeKind.OP, NodeKind.MODULE) or not node.certain:
            continue
        sides = [p for p in node.parents if not p.leaf]
        if len(sides) != 2 or (label in ("Sub", "sub") and not _measured(node, walk)):
            continue
        for target, prediction in (sides, sides[::-1]):
            # nor is it how far something is from its own mean
            own = _computed_of(target, prediction) or _computed_of(prediction, target)
            if own or any(opaque(n) for n in target.ancestors()):
                continue
            bootstrap = _bootstrap(target, prediction, acting)
            if bootstrap is not None:
                yield _Comparison(node, prediction, target, *bootstrap)
            elif (source := _output(target)) is not None and label not in ("Sub", "sub"):
                yield _Comparison(node, prediction, target, source, None)


def _computed_of(target: Node, prediction: Node) -> bool:
    """Whether a target is computed of the prediction; elements that are copied from it, and so differ by nothing, do
    not count."""
    return any(prediction in set(one.ancestors()) for one in _options(target) if one is not prediction)


def _measured(difference: Node, walk: Walk) -> bool:
    """Whether the backward sees of a difference only how large it is."""
    taken = [c for c in difference.children if walk in c.walks]
    return bool(taken) and all(
        _measured(child, walk) if child.label in _SHAPES | {"mean"} else _distance(child) for child in taken
    )


def _distance(node: Node) -> bool:
    """Whether an operation makes a distance of a difference; of two, only their product."""
    return node.operation in _DISTANCES and len({*node.parents}) == 1


def _bootstrap(target: Node, prediction: Node, acting: bool) -> tuple[Node, Node] | None:
    """The value that is discounted in ``reward + gamma * value`` and that sum, where an environment, actions or the end
    of episodes show that it is one."""
    for node in _options(target):
        if node.operation not in ("Add", "add", "Sub") or len(node.parents) != 1:
            continue
        inner = node.parents[0]
        factors, picked = 0, acting or "gather" in _labels(prediction)
        while inner.kind is NodeKind.OP and not inner.leaf and inner.parents:
            label = inner.operation
            if label in ("Mult", "mul") and len(inner.parents) == 1:
                factors += 1
                picked = picked or _ends(inner)
            elif label in _OF_ACTIONS:
                picked = True
            elif label not in _SHAPES:
                break
            inner = _first(inner)
        if factors and picked and _weights(inner):
            return inner, node
    return None


def _first(node: Node) -> Node:
    """The first parent of a node; at joins of paths the one that has a graph."""
    return next((p for p in node.parents if not p.leaf), node.parents[0])


def _options(node: Node) -> Iterator[Node]:
    """What a node or an element of it may be, without what only gives it another shape."""

    def only_shapes(one: Node) -> bool:
        return one.kind is NodeKind.PHI or bool(
            one.kind is NodeKind.OP and one.label in _SHAPES | _ELEMENTS and one.parents
        )

    found = spread([node], lambda one: [p for p in one.parents if not p.leaf] if only_shapes(one) else ())
    return (one for one in found if not only_shapes(one))


def _labels(node: Node) -> set[str]:
    """The operations between a node and the layer that gave it."""
    found: set[str] = set()
    while node.kind is NodeKind.OP and node.parents and not node.leaf:
        found.add(node.operation)
        node = _first(node)
    return found


def _ends(product: Node) -> bool:
    """Whether a factor is ``1 - x``, as of the steps after which an episode goes on."""
    at = product.place.node
    return isinstance(at, ast.BinOp) and any(
        isinstance(n, ast.BinOp)
        and isinstance(n.op, ast.Sub)
        and isinstance(n.left, ast.Constant)
        and n.left.value in (1, 1.0)
        for side in (at.left, at.right)
        for n in walking.walk(side)
    )


def _output(node: Node) -> Node | None:
    """What a layer gave, where nothing but its shape has changed since."""
    for one in _options(node):
        if one.kind is NodeKind.MODULE and _weights(one):
            return one
    return None


def _weights(node: Node) -> set[Node]:
    """The parameters behind a node."""
    return {n for n in node.ancestors() if n.leaf and n.label != "input"}


def _speaks_against(mark: Mark, weights: set[Node]) -> bool:
    """Whether somebody may train with these gradients, or looks at them."""
    if mark.kind is Marked.OPTIMIZED or may_touch_gradients(mark):
        return concerns(mark, weights)
    return False


def _stands(found: _Comparison) -> Place | None:
    """Where the target is made, as the function sees it that compares."""
    met = meeting(found.target.place, found.node.place)
    return met[0] if met is not None and met[0].statement is not None else None


def _cut(trace: Trace, found: _Comparison) -> list[Edit]:
    """The edit that detaches a target where torch computes it, in the function that compares; of one whose elements are
    written one by one, the value that is written."""
    cut = found.target
    if cut.operation in _ELEMENTS and found.discounted is not None:
        cut = found.discounted
        others = [one for one in _options(found.target) if one is not found.prediction]
        if any(one.place.node is not cut.place.node for one in others):
            return []
    place, file = cut.place, cut.place.frame.file
    made = place.node
    if place.frame is not found.node.place.frame or not isinstance(made, ast.expr):
        return []
    layer = cut.kind is NodeKind.MODULE and cut.operation not in TUPLE_OUTPUT
    if not (isinstance(made, ast.BinOp) or layer or trace.called.get(made, "").startswith("torch.")):
        return []
    return [WrapExpression(file.span(made), "", ".detach()")]


RULE = AttachedBootstrapTarget
