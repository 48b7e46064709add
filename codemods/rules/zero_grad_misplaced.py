"""The rule ``zero-grad-misplaced``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.kinds import Marked, WalkKind
from codemods.graph.model.trace import Mark, Step, Trace
from codemods.graph.model.values import Optimizer
from codemods.proofs.marks import clears, concerns, may_touch_gradients
from codemods.proofs.observations import Observation
from codemods.proofs.turns import crossed, loops_around
from codemods.rules._advice import AdvisingRule, always

"""What may keep gradients elsewhere, or put others in their place."""


class ZeroGradMisplaced(AdvisingRule):
    """Gradients that are cleared between the ``backward`` that fills them and the ``step`` that should use them.

    Why it hurts: ``zero_grad`` drops what ``backward`` has just computed. The step that follows finds no gradient:
    plain SGD and Adam leave all parameters as they are, and the loss stays where it began. Nothing raises.

    Left alone: any order in which one ``backward`` lies between the clearing and the step; gradients that something
    reads, clips, changes or keeps on the way; parameters that the clearing does not reach wholly; optimizers of classes
    of the tree, closures, and whatever cannot be seen.

    Advice: clear the gradients before the ``backward``, or after the ``step``.

    Promise: advice. A program that learns is another program than one that does not.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    """

    name = "zero-grad-misplaced"
    summary = "gradients are cleared between the backward and its step"
    gate = (b".backward(", b"autograd.backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        for step in trace.steps:
            if not isinstance(step.place.node, ast.Call) or not loops_around(step.place):
                continue
            clearing = self._clearing(trace, step)
            file = step.place.frame.file
            if clearing is None:
                yield self.fine(file, step.place.node)
                continue
            walk = next(w for w in reversed(trace.walks) if w.place.clock < clearing.place.clock)
            yield self.fault(
                file,
                step.place.node,
                "this step finds no gradients: they are cleared between the backward that computes them and the step",
                "clear them before that backward",
                (walk.place, "the gradients are computed here"),
                (clearing.place, "cleared here"),
                (step.place, "the step finds none here"),
            )

    @staticmethod
    def _clearing(trace: Trace, step: Step) -> Mark | None:
        """What cleared all gradients of a step since the last backward, if nothing else came near them."""
        optimizer, owned = step.optimizer, step.owned
        if not trace.complete or not isinstance(optimizer, Optimizer) or optimizer.cls is not None:
            return None
        if owned is None or owned.more or not owned.leaves or step.place.node not in trace.called:
            return None
        leaves, now = set(owned.leaves), step.place.clock
        before = [w for w in trace.walks if w.kind is WalkKind.BACKWARD and w.place.clock < now]
        if not before or leaves.isdisjoint(before[-1].seen) or crossed(before[-1].place, step.place) is not None:
            return None
        last = before[-1]
        between = [m for m in trace.marks if last.place.clock < m.place.clock < now]
        if any(may_touch_gradients(m) and concerns(m, leaves) for m in between):
            return None
        if any(m.kind is Marked.HOOK and concerns(m, leaves) for m in trace.marks):
            # it may have used or kept them when they came
            return None
        if any(last.place.clock < s.place.clock < now for s in trace.steps):
            # it may have been taken with them already
            return None
        return next(
            (
                m
                for m in between
                if clears(m)
                and (m.by is optimizer or (m.exact and m.of is not None and leaves <= set(m.of)))
                and loops_around(m.place) == loops_around(step.place)
                and always(m.place, step.place)
            ),
            None,
        )


RULE = ZeroGradMisplaced
