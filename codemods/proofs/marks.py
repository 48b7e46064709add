"""The marks of a run about gradients, as the questions that rules ask."""

from __future__ import annotations

from codemods.graph.model.kinds import Marked
from codemods.graph.model.nodes import Node
from codemods.graph.model.trace import Mark, Trace

_RUN_BY_BACKWARD = frozenset({Marked.HOOK, Marked.MODULE_HOOK, Marked.OWN_BACKWARD, Marked.RECOMPUTED})
_OUT_OF_SIGHT = frozenset({Marked.HANDED_OUT, Marked.UNSEEN_MODULE_METHOD, Marked.FUNCTIONAL_GRADIENT})
_OF_GRADIENTS = frozenset({Marked.GRADIENT_READ, Marked.GRADIENTS_CHANGED})
_TAMPERING = _OUT_OF_SIGHT | _OF_GRADIENTS
_ONCE_PER_BACKWARD = frozenset(
    {Marked.GRADIENT_READ, Marked.GRAPH_READ, Marked.FUNCTIONAL_GRADIENT, Marked.HOOK, Marked.MODULE_HOOK}
)
_WRITES = frozenset({Marked.PARAMETERS_CHANGED, Marked.PARAMETERS_LOADED})
_BETWEEN_BACKWARDS = _TAMPERING | _WRITES | {Marked.CLEARED, Marked.GRAPH_READ, Marked.DATA_WRITTEN}


def clearings(trace: Trace) -> list[Mark]:
    """All marks that clear gradients, in order."""
    return [mark for mark in trace.marks if clears(mark)]


def clears(mark: Mark) -> bool:
    """Whether it clears gradients."""
    return mark.kind is Marked.CLEARED


def touches_gradients(mark: Mark) -> bool:
    """Whether gradients are read or changed."""
    return mark.kind in _OF_GRADIENTS


def changes_gradients(mark: Mark) -> bool:
    """Whether gradients are changed and not only cleared, as by clipping."""
    return mark.kind is Marked.GRADIENTS_CHANGED


def out_of_sight(mark: Mark) -> bool:
    """Whether gradients may be used or changed by code that cannot be seen, or by functional gradients."""
    return mark.kind in _OUT_OF_SIGHT


def may_touch_gradients(mark: Mark) -> bool:
    """Whether gradients are read or changed, or may be out of sight."""
    return mark.kind in _TAMPERING


def sees_each_backward(mark: Mark) -> bool:
    """Whether something looks at gradients, or runs once per backward: it would notice two backwards joined into
    one, or one split into two."""
    return mark.kind in _ONCE_PER_BACKWARD


def tells_backwards_apart(mark: Mark) -> bool:
    """Whether something reads, clears or changes gradients or parameters between backwards, or may."""
    return mark.kind in _BETWEEN_BACKWARDS


def writes_parameters(mark: Mark) -> bool:
    """Whether parameters are written in place by something other than an optimizer, so that a backward notices."""
    return mark.kind in _WRITES


def backward_runs_code(trace: Trace) -> bool:
    """Whether a backward runs code of the program.

    It may do with a sum of gradients something else than with each of them, and what it draws or counts comes at the
    time of the backward.
    """
    return any(mark.kind in _RUN_BY_BACKWARD for mark in trace.marks)


def hooked(trace: Trace) -> bool:
    """Whether hooks wait for tensors or modules."""
    return any(mark.kind in (Marked.HOOK, Marked.MODULE_HOOK) for mark in trace.marks)


def concerns(mark: Mark, leaves: set[Node]) -> bool:
    """Whether a mark is about any of these leaves, or about what cannot be seen."""
    return mark.of is None or not leaves.isdisjoint(mark.of)
