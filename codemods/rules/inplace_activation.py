"""The rule ``inplace-activation``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.facts.layers import MODULES_WITH_PARAMETERS
from codemods.graph.model.kinds import WRITTEN, Marked, WalkKind
from codemods.graph.model.nodes import Node, Place, Walk
from codemods.graph.model.trace import Alteration, Trace
from codemods.graph.model.values import Tensor
from codemods.proofs.observations import Observation
from codemods.proofs.reach import maybe_frozen, reached_surely
from codemods.proofs.saving import memory, needed
from codemods.rules._sites import SiteRule
from codemods.source.walking import called

_OTHER_TERMS = (Marked.SAVED_TENSORS_HOOKS, Marked.RECOMPUTED)
_MUTABLE = ("torch.autograd.graph.allow_mutation_on_saved_tensors", "torch.jit.")


class InplaceActivation(SiteRule):
    """A tensor that an operation has saved for its backward is changed in place before that backward runs.

    Why it hurts: ``sigmoid``, ``exp`` and ``relu`` keep their output for the backward, convolutions, products and
    norms their input. ``h += r``, ``h.clamp_(max=1)``, ``h[:, 0] = 0`` or an activation with ``inplace=True`` writes
    other numbers there. Autograd counts the changes and refuses: ``one of the variables needed for gradient computation
    has been modified by an inplace operation``. The message names the operation that saved, not the line that changed.

    Left alone: whatever is not proven: the operation that saved the tensor, the change after it, and the backward after
    that which needs it, all in one run; operations that save nothing of the tensor (sums, views, additions); flags that
    are no literals; dropout, which writes only while it trains; programs that script, recompute or pack
    what is saved.

    Advice: compute a new tensor: ``h = h + r``, ``h = h.clamp(max=1)``, ``inplace=False``; collect the results of a
    loop in a list and join them with ``torch.stack``.

    Promise: advice. The original raises at its first backward.

    Source: https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd
    """

    name = "inplace-activation"
    summary = "a tensor that a backward needs is changed in place"
    gate = (b".backward(", b"autograd.backward(", b"manual_backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete or not trace.walks or not trace.alterations:
            return
        if any(mark.kind in _OTHER_TERMS for mark in trace.marks):
            return
        if any(path.startswith(_MUTABLE) for path in trace.called.values()):
            return
        for change in trace.alterations:
            how = _written(change)
            found = _damage(change) if how else None
            if found is None:
                continue
            saved, walk = found
            yield self.fault(
                change.place.frame.file, _site(change.place),
                f"this changes in place what `{_spoken(saved)}` has saved for its backward, which then raises",
                how,
                (saved.place, "saves the tensor for its backward"),
                (change.place, "changed in place here"),
                (walk.place, "the backward that needs it as it was"),
            )  # fmt: skip


def _written(change: Alteration) -> str:
    """How to write a change without changing in place; empty where it is not written as one."""
    node = change.place.node
    if not change.sure or change.how not in WRITTEN:
        return ""
    if isinstance(node, ast.AugAssign):
        target, sign = ast.unparse(node.target), ast.unparse(node).removeprefix(ast.unparse(node.target)).split("=")[0]
        return f"write `{target} = {target} {sign.strip()} {ast.unparse(node.value)}`"
    if isinstance(node, ast.Subscript):
        name = ast.unparse(node.value)
        return f"collect the parts in a list and join them, or write into a copy: `{name} = {name}.clone()`"
    if isinstance(node, ast.Attribute):
        return f"call `{node.attr.rstrip('_')}` and keep what it returns"
    if isinstance(node, ast.Call) and not any(k.arg == "out" for k in node.keywords):
        name = called(node)
        return f"call `{name.rstrip('_')}` and keep what it returns" if name.endswith("_") else "drop `inplace=True`"
    return ""


def _site(place: Place) -> ast.AST:
    """What a reader takes for the change: of a method the call, of an element the statement."""
    outer = place.frame.file.parent(place.node)
    if isinstance(place.node, ast.Attribute) and isinstance(outer, ast.Call):
        return outer
    return place.statement if isinstance(place.node, ast.Subscript) and place.statement is not None else place.node


def _damage(change: Alteration) -> tuple[Node, Walk] | None:
    """What has saved the memory that a change writes to, and the backward that surely comes to it and raises."""
    value = change.value
    if not isinstance(value, Tensor) or value.node is None or value.node.leaf or not value.node.certain:
        return None
    for original in memory(value.node, change.place.clock):
        for node, walk in needed(original, change.place):
            # a layer with weights saves its input for their sake
            saved = node is original or node.label not in MODULES_WITH_PARAMETERS or any(p.leaf for p in node.parents)
            raises = walk.kind is WalkKind.BACKWARD and not walk.caught and not maybe_frozen(walk)
            if saved and raises and node.place.node is not change.place.node and reached_surely(walk, [node]):
                return node, walk
    return None


def _spoken(saved: Node) -> str:
    place = saved.place.node
    return ast.unparse(place) if isinstance(place, ast.expr) and len(ast.unparse(place)) < 60 else saved.label


RULE = InplaceActivation
