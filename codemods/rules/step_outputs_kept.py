"""The rule ``step-outputs-kept``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.facts.libraries import SELDOM_CALLED
from codemods.graph.model.nodes import Frame, Place
from codemods.graph.model.program import ClassInfo
from codemods.graph.model.trace import Storing, Trace
from codemods.graph.model.values import Function, Sequence, Tensor
from codemods.proofs.containers import filled_attribute
from codemods.proofs.observations import Observation
from codemods.proofs.reach import surely_attached
from codemods.proofs.syntax import bindings, own_nodes
from codemods.rules._sites import SiteRule
from codemods.source.walking import last_name, walk
from codemods.terms.edits import WrapExpression
from codemods.terms.findings import Promise


class StepOutputsKept(SiteRule):
    """Outputs of Lightning's ``training_step`` that are collected on the module with their graphs.

    Why it hurts: Lightning calls ``backward`` on the loss when ``training_step`` has returned, and forgets it. What was
    appended to ``self.outputs`` stays until ``on_train_epoch_end`` clears it, and with it the graph of every batch of
    the epoch: memory grows with each batch and falls when the epoch is over, or the run ends in ``CUDA out of memory``
    first.

    Left alone: what is detached, or a number; lists that a hook of each batch reads, empties or replaces; what the end
    of an epoch back-propagates; validation and tests, which Lightning runs without gradients; outputs that are
    not proven to have a graph, as the loss has that an automatic step returns; modules that are not Lightning's.

    Advice: append ``loss.detach()``, or let ``self.log(..., on_epoch=True)`` or a metric of torchmetrics average over
    the epoch. The first is likely: the edit is made where a run shows that it holds.

    Promise: advice, as the list may be read by code that cannot be seen; exact where a run shows that nobody needs the
    graphs. The example, run with Lightning 2.6 and torch 2.13: 4 graph nodes more with each batch, 81 after 20; with
    the edit 5, and the same parameters bit for bit.

    Source: https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
    https://lightning.ai/docs/pytorch/stable/common/lightning_module.html#train-epoch-level-operations
    """

    name = "step-outputs-kept"
    likely = Promise.EXACT
    summary = "outputs of Lightning's training_step are collected with their graphs"
    gate = (b"training_step",)

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete:
            return
        for storing in trace.storings:
            listed = storing.method in ("append", "appendleft", "extend") and isinstance(storing.container, Sequence)
            found, kept = _step_around(storing.place), filled_attribute(storing.place)
            if not listed or found is None or kept is None:
                continue
            file, node = storing.place.frame.file, storing.place.statement or storing.place.node
            loss = _is_the_loss(storing, *found)
            if not _outlives(trace, storing, *found, kept) or not (loss or any(map(surely_attached, storing.nodes))):
                yield self.fine(file, node)
                continue
            what = ast.unparse(storing.value_expr)
            tensor = loss or isinstance(storing.value, Tensor)
            made = [(n.place, "graph produced here") for n in storing.nodes if n.certain and not n.leaf][:1]
            yield self.fault(
                file, node,
                f"`self.{kept.attr}` keeps `{what}` of every batch with its graph until the epoch ends: memory grows",
                f"append `{what}.detach()`" if tensor else "detach what is stored",
                *made,
                (storing.place, "kept from here"),
                edits=[WrapExpression(file.span(storing.value_expr), "", ".detach()")] if tensor else [],
            )  # fmt: skip


def _outlives(trace: Trace, storing: Storing, step: Frame, cls: ClassInfo, kept: ast.Attribute) -> bool:
    """Whether nobody looks at the list before the epoch is over: no code that runs for each batch mentions it."""
    if storing.grad is not True or storing.born >= step.birth:
        return False
    graph = {d for n in storing.nodes for d in n.descendants()}
    if any(_step_around(walk.place) is None and not graph.isdisjoint(walk.seen) for walk in trace.walks):
        return False
    members = [m for info in cls.mro() for m in info.members.values() if isinstance(m, Function)]
    often = [m.definition for m in members if getattr(m.definition, "name", "") not in SELDOM_CALLED]
    return all(n is kept for code in often for n in walk(code) if isinstance(n, ast.Attribute) and n.attr == kept.attr)


def _is_the_loss(storing: Storing, step: Frame, cls: ClassInfo) -> bool:
    """Whether a step stores what it returns, which Lightning back-propagates, so that it surely has a graph."""
    kept, definition = storing.value_expr, step.definition
    if storing.place.frame is not step or not isinstance(kept, ast.Name) or definition is None:
        return False
    own = list(own_nodes(getattr(definition, "body", ())))
    returned = {_loss_of(node.value) for node in own if isinstance(node, ast.Return)}
    again = any(node.lineno >= kept.lineno and node in own for node in bindings(definition, kept.id))
    by_hand = ("automatic_optimization", "manual_backward")
    manual = any(last_name(node) in by_hand for info in cls.mro() for node in walk(info.file.tree))
    return returned == {kept.id} and not again and not manual


def _loss_of(returned: ast.expr | None) -> str:
    """The variable that a training step returns as its loss, or under that name in a dict; empty for anything else."""
    if isinstance(returned, ast.Dict):
        entries = zip(returned.keys, returned.values, strict=True)
        returned = next((v for k, v in entries if isinstance(k, ast.Constant) and k.value == "loss"), None)
    return returned.id if isinstance(returned, ast.Name) else ""


def _step_around(place: Place) -> tuple[Frame, ClassInfo] | None:
    """The call of a ``training_step`` of Lightning in which a place is reached, and its class."""
    for frame in (at.frame for at in place.chain()):
        cls = frame.function.cls if frame.function is not None else None
        if cls and cls.family == "lightning" and getattr(frame.definition, "name", "") == "training_step":
            return frame, cls
    return None


RULE = StepOutputsKept
