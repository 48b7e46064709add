"""The rule ``loss-rewrapped``."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable

from codemods.graph.model.kinds import Marked, NodeKind, UseKind, WalkKind
from codemods.graph.model.nodes import Node, Place, Walk
from codemods.graph.model.trace import Step, Trace
from codemods.proofs.marks import concerns
from codemods.proofs.observations import Observation
from codemods.proofs.turns import crossed
from codemods.proofs.unseen import Way, leaves_sight
from codemods.rules._advice import AdvisingRule

_WITHOUT_GRAPH = (UseKind.DETACH, UseKind.DATA, UseKind.METHOD)
_SEES_GRADIENT = (Marked.GRADIENT_READ, Marked.HOOK, Marked.HANDED_OUT)


class LossRewrapped(AdvisingRule):
    """A loss that is put into a new tensor with ``requires_grad=True`` before its backward.

    Why it hurts: ``torch.tensor(loss, requires_grad=True)`` and ``Variable(loss.data, requires_grad=True)`` make a leaf
    without the graph of ``loss``. It often silences "element 0 of tensors does not require grad", and the backward
    runs; but it ends at the new tensor, no parameter gets a gradient, and the step trains nothing.

    Left alone: new leaves whose gradient somebody reads, which an optimizer updates, or from which more than their own
    backward is computed (inputs, latent codes, checkpoints by hand); graphs that are used in another way; whatever goes
    to code that cannot be seen; values of which no graph to the parameters of the step is proven.

    Advice: call ``backward`` on the loss itself. If that raises because it has no graph, the cause stands where it was
    computed: ``no_grad``, ``detach``, ``item``, ``argmax``.

    Promise: advice. The program runs and learns nothing; mended it is another one.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.tensor.html
    """

    name = "loss-rewrapped"
    summary = "a loss is put into a new tensor, whose backward reaches no parameter"
    gate = (b".backward(", b"autograd.backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        made = [n for n in trace.nodes if n.leaf and n.label == "input" and isinstance(n.place.node, ast.Call)]
        if not made:
            return
        given = _given(trace, {id(n.place.node) for n in made})
        for leaf in made:
            file, call = leaf.place.frame.file, leaf.place.node
            here = leaf.place.frame, leaf.place.loops
            sources = [n for n, at in given[id(call)] if (at.frame, at.loops) == here]
            walk, step = _in_vain(trace, leaf, sources)
            if walk is None or step is None or not sources:
                yield self.fine(file, call)
                continue
            yield self.fault(
                file,
                call,
                f"`{ast.unparse(call)}` is a new tensor without the graph of the loss: its backward reaches no "
                "parameter, and the step trains nothing",
                "call backward on the loss itself",
                (sources[0].place, "the graph that is left behind"),
                (walk.place, "this backward ends at the new tensor"),
                (step.place, "this step finds no gradients of it"),
            )


def _given(trace: Trace, calls: set[int]) -> dict[int, list[tuple[Node, Place]]]:
    """What with a graph was read within each of these calls, without its graph."""
    found: dict[int, list[tuple[Node, Place]]] = defaultdict(list)
    for node in trace.nodes:
        if node.leaf or not node.certain:
            continue
        for use in node.uses:
            if use.kind not in _WITHOUT_GRAPH:
                continue
            place = use.place
            for at in (place.node, *place.frame.file.outward(place.node, ast.stmt)):
                if id(at) in calls:
                    found[id(at)].append((node, place))
    return found


def _in_vain(trace: Trace, leaf: Node, sources: list[Node]) -> tuple[Walk | None, Step | None]:
    """The backward that ends at a new leaf, and the step behind it that was to use the graph left behind."""
    if not trace.complete or len(leaf.walks) != 1 or leaves_sight(leaf.descendants(), (Way.ESCAPED,)):
        return None, None
    walk = leaf.walks[0]
    if walk.kind is not WalkKind.BACKWARD or not walk.roots or any(n.leaf and n is not leaf for n in walk.seen):
        return None, None
    if any(n.kind not in (NodeKind.OP, NodeKind.LEAF) for n in walk.seen) or any(
        s.walks for n in sources for s in n.descendants()
    ):
        return None, None
    if any(m.kind in _SEES_GRADIENT and concerns(m, {leaf}) for m in trace.marks):
        return None, None
    behind = {a for source in sources for a in source.ancestors() if a.leaf and a.label != "input"}
    for step in trace.steps:
        if step.owned is None or step.owned.more or leaf in step.owned.leaves:
            return None, None
    for step in trace.steps:
        if step.place.clock > walk.place.clock and crossed(walk.place, step.place) is None:
            owned = set(step.owned.leaves) if step.owned is not None else set()
            if owned & behind and not _otherwise(trace, step, owned):
                return walk, step
    return None, None


def _otherwise(trace: Trace, step: Step, owned: set[Node]) -> bool:
    """Whether a backward of the same turn gives the step gradients."""
    return any(
        not owned.isdisjoint(walk.seen)
        for walk in trace.walks
        if walk.place.clock < step.place.clock and crossed(walk.place, step.place) is None
    )


RULE = LossRewrapped
