"""The rule ``inplace-on-detached``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.facts.memory import SHARING_MEMORY
from codemods.graph.model.kinds import WRITTEN, NodeKind, UseKind
from codemods.graph.model.nodes import Alias, Node, Walk
from codemods.graph.model.trace import Alteration, Trace
from codemods.graph.model.values import Tensor
from codemods.proofs.observations import Observation
from codemods.proofs.reach import spread
from codemods.proofs.saving import needed
from codemods.rules._sites import SiteRule
from codemods.terms.edits import Edit, KeepPart, WrapExpression
from codemods.terms.findings import Promise


class InplaceOnDetached(SiteRule):
    """A detached tensor that is changed in place while its original is still needed by a backward.

    Why it hurts: ``y = x.detach()`` copies nothing: ``y`` and ``x`` are one memory. An operation that saved ``x`` for
    its backward (a layer its input, ``sigmoid`` its output) finds other numbers there after ``y.clamp_(min=0)`` or
    ``y[mask] = 0``, and autograd refuses: ``one of the variables needed for gradient computation has been modified by
    an inplace operation``. Through ``x.data`` it cannot notice, and the gradients are silently wrong.

    The rewrite: The copy is made where the tensor is detached: ``x.detach().clone()``. It costs the memory of ``x``
    once.

    Left alone: whatever is not proven, by the operation that saved ``x``, the change after it and the backward after
    that, all in one run; a change after the backward; ``x``, or a view of it, that is read again after the change,
    because writing through may be the point (projections of parameters, clamped adversarial inputs); copies and what
    may be one (``.clone()``, ``.cpu()``, ``.contiguous()``); operations that save nothing of ``x`` (sums, additions, a
    factor that is data); whatever runs under ``no_grad``.

    Promise: repair, because the original raises at the backward. Through ``.data`` the original runs, so there it is
    ``behaviour``.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
    """

    name = "inplace-on-detached"
    promise = Promise.REPAIR
    summary = "a detached tensor is changed in place while a backward still needs its original"
    gate = (b".backward(", b"autograd.backward(", b"autograd.grad(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.walks or not trace.alterations:
            return
        for change in trace.alterations:
            if change.how not in WRITTEN or not isinstance(change.value, Tensor):
                continue
            for alias in change.value.aliases:
                found = _damage(alias, change)
                if found is not None:
                    yield self._note(alias, change, *found)

    def _note(self, alias: Alias, change: Alteration, saved: Node, walk: Walk) -> Observation:
        file, node = alias.place.frame.file, alias.place.node
        said = "what is detached here is changed in place, and with it the original, which a backward still needs"
        edit: Edit = WrapExpression(file.span(node), "", ".clone()")
        told, written, promise = f"{said}: that backward raises", f"{ast.unparse(node)}.clone()", Promise.REPAIR
        if isinstance(node, ast.Attribute):
            edit = KeepPart(file.span(node), file.span(node.value), ".detach().clone()")
            told = f"{said}; through .data autograd does not notice, and the gradients are wrong"
            written, promise = f"{ast.unparse(node.value)}.detach().clone()", Promise.BEHAVIOUR
        return self.fault(
            file, node, told, f"write `{written}`",
            (saved.place, "saves the tensor for its backward"),
            (change.place, "changed in place here, and the original with it"),
            (walk.place, "the backward that needs it as it was"),
            edits=[edit],
            promise=promise,
            late=[((walk.place.path, walk.place.line), (change.place.path, change.place.line))],
        )  # fmt: skip


def _damage(alias: Alias, change: Alteration) -> tuple[Node, Walk] | None:
    """What saved the memory that ``change`` writes to, and the walk that needs it, if a run shows both."""
    given = alias.given
    if alias.source is not None or not isinstance(given, Tensor) or given.node is None:
        return None
    original = given.node
    known = original.certain and original.kind in (NodeKind.OP, NodeKind.MODULE, NodeKind.LEAF)
    if not known or _read_after(original, change.place.clock):
        return None
    return next(needed(original, change.place), None)


def _read_after(original: Node, at: int) -> bool:
    """Whether the tensor itself, or a view of it, is read after the change: the author may want to find the change
    there."""
    views = spread([original], lambda n: [c for c in n.children if c.kind is NodeKind.OP and c.label in SHARING_MEMORY])
    return any(
        any(child.birth > at for child in node.children)
        or any(use.place.clock > at and not use.detached and use.kind is not UseKind.ATTRIBUTE for use in node.uses)
        for node in views
    )


RULE = InplaceOnDetached
