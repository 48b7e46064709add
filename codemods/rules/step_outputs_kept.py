"""The rule ``step-outputs-kept``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.graph.model.facts.libraries import SELDOM_CALLED
from codemods.graph.model.nodes import Frame, Place
from codemods.graph.model.program import ClassInfo, receiver_name
from codemods.graph.model.trace import Storing, Trace
from codemods.graph.model.values import Function, Sequence, Tensor
from codemods.proofs.containers import filled
from codemods.proofs.observations import Observation
from codemods.proofs.reach import surely_attached
from codemods.proofs.syntax import bindings, is_own, own_nodes
from codemods.rules._sites import SiteRule
from codemods.source.walking import walk
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
            step, name = _step_around(storing.place), _collected(storing)
            if step is None or not name:
                continue
            file, place = storing.place.frame.file, storing.place
            node = place.statement or place.node
            if not _outlives(trace, storing, step, name):
                yield self.fine(file, node)
                continue
            what = ast.unparse(storing.value_expr)
            tensor = isinstance(storing.value, Tensor) or _is_the_loss(storing, step)
            made = [(n.place, "graph produced here") for n in storing.nodes if n.certain and not n.leaf][:1]
            yield self.fault(
                file, node,
                f"`self.{name}` keeps `{what}` of every batch with its graph until the epoch ends: memory grows",
                f"append `{what}.detach()`" if tensor else "detach what is stored",
                *made,
                (place, "kept from here"),
                edits=[WrapExpression(file.span(storing.value_expr), "", ".detach()")] if tensor else [],
            )  # fmt: skip


def _outlives(trace: Trace, storing: Storing, step: Frame, name: str) -> bool:
    """Whether what a step stores surely has a graph, and nobody looks at the list before the epoch is over."""
    attached = any(map(surely_attached, storing.nodes)) or _is_the_loss(storing, step)
    if storing.grad is not True or not attached or storing.born >= step.birth:
        return False
    kept = {d for n in storing.nodes for d in n.descendants()}
    walked = any(_step_around(w.place) is None and not kept.isdisjoint(w.seen) for w in trace.walks)
    cls = step.function.cls if step.function is not None else None
    return not walked and cls is not None and all(m is storing.place.node for m in _mentions(cls, name))


def _is_the_loss(storing: Storing, step: Frame) -> bool:
    """Whether a step stores what it returns, which Lightning back-propagates, so that it surely has a graph."""
    kept, definition = storing.value_expr, step.definition
    cls = step.function.cls if step.function is not None else None
    if cls is None or storing.place.frame is not step or not isinstance(kept, ast.Name):
        return False
    own = list(own_nodes(getattr(definition, "body", ())))
    returned = [_loss_of(node.value) for node in own if isinstance(node, ast.Return)]
    given = bindings(definition, kept.id) if definition is not None else []
    again = any(node.lineno >= kept.lineno and node in own for node in given)
    by_hand = any(
        isinstance(node, ast.Attribute) and node.attr in ("automatic_optimization", "manual_backward")
        for info in cls.mro()
        for node in walk(info.file.tree)
    )
    return not again and not by_hand and bool(returned) and set(returned) == {kept.id}


def _loss_of(returned: ast.expr | None) -> str:
    """The variable that a training step returns as its loss, or under that name in a dict; empty for anything else."""
    if isinstance(returned, ast.Dict):
        entries = zip(returned.keys, returned.values, strict=True)
        returned = next((v for k, v in entries if isinstance(k, ast.Constant) and k.value == "loss"), None)
    return returned.id if isinstance(returned, ast.Name) else ""


def _step_around(place: Place) -> Frame | None:
    """The call of a ``training_step`` of Lightning in which a place is reached."""
    return next((at.frame for at in place.chain() if _is_step(at.frame)), None)


def _is_step(frame: Frame) -> bool:
    cls = frame.function.cls if frame.function is not None else None
    return cls is not None and cls.family == "lightning" and getattr(frame.definition, "name", "") == "training_step"


def _collected(storing: Storing) -> str:
    """The attribute of the module whose list gets something, empty if it is none."""
    if storing.method not in ("append", "appendleft", "extend") or not isinstance(storing.container, Sequence):
        return ""
    inner = filled(storing.place) if isinstance(storing.place.node, ast.Call) else None
    while isinstance(inner, ast.Subscript):
        inner = inner.value
    own = receiver_name(storing.place.frame.definition)
    return inner.attr if isinstance(inner, ast.Attribute) and is_own(inner, own) else ""


def _mentions(cls: ClassInfo, name: str) -> Iterator[ast.AST]:
    """The calls and other places at which code that runs for each batch may look at an attribute."""
    for info in cls.mro():
        for member in info.members.values():
            if isinstance(member, Function) and getattr(member.definition, "name", "") not in SELDOM_CALLED:
                found = (n for n in walk(member.definition) if isinstance(n, ast.Attribute) and n.attr == name)
                yield from (_call_around(info, node) for node in found)


def _call_around(info: ClassInfo, node: ast.AST) -> ast.AST:
    """The call of a method of the attribute, or the attribute itself."""
    outer = next((outer for outer in info.file.outward(node) if not isinstance(outer, ast.Subscript)), None)
    call = info.file.parent(outer) if isinstance(outer, ast.Attribute) else None
    return call if isinstance(call, ast.Call) and call.func is outer else node


RULE = StepOutputsKept
