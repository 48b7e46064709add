"""Forwards that nobody can see but that may well be some: methods of models whose class is not in the tree."""

from __future__ import annotations

from codemods.graph.model.facts.libraries import runs_without_grad
from codemods.graph.model.kinds import ModuleMode, NodeKind
from codemods.graph.model.nodes import Node, Value
from codemods.graph.model.trace import Forward, Trace
from codemods.graph.model.values import Mapping, Module, Sequence, Tensor, Tuple, Unknown, options_of


def presumed_forwards(trace: Trace) -> list[Forward]:
    """The calls of such methods on models that evaluate, with what may be a tensor: what they compute is presumed to
    have a graph."""
    return [forward for forward in trace.forwards if is_presumed(forward)]


def is_presumed(forward: Forward) -> bool:
    """Whether a call of a method is one of these."""
    if forward.method == "forward" or forward.grad is False or forward.mode is not ModuleMode.EVAL:
        return False
    leaf = _leaf_of_unseen(forward.module)
    if leaf is None or runs_without_grad(f"{leaf.label}.{forward.method}"):
        return False
    return any(_may_be_tensor(value) for value in forward.args.all())


def made_unseen(forward: Forward, nodes: list[Node]) -> list[Node]:
    """What such a call made, among all ``nodes`` of a run."""
    made = (n for n in nodes if n.kind is NodeKind.CALL and not n.certain)
    return [n for n in made if forward.first <= n.birth < forward.last and n.place.node is forward.place.node]


def _leaf_of_unseen(module: Value) -> Node | None:
    """The leaf that stands for the parameters of a model that cannot be seen; None of any other."""
    if isinstance(module, Unknown):
        module = module.module or module
    return module.leaf if isinstance(module, Module) and not module.name else None


def _may_be_tensor(value: Value) -> bool:
    return any(
        isinstance(o, (Tensor, Tuple, Sequence, Mapping)) or (isinstance(o, Unknown) and o.module is None)
        for o in options_of(value)
    )
