"""The rule ``loss-rewrapped``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.kinds import Marked, NodeKind, WalkKind
from codemods.graph.model.nodes import Node, Walk
from codemods.graph.model.trace import Step, Trace
from codemods.proofs.gradients import MAY_WALK, IdleStep, idle_steps
from codemods.proofs.marks import concerns
from codemods.proofs.observations import Observation
from codemods.proofs.syntax import bindings, cut_of, scope
from codemods.proofs.turns import crossed
from codemods.proofs.unseen import Way, leaves_sight
from codemods.rules._sites import SiteRule
from codemods.source import walking
from codemods.terms.edits import Edit, KeepPart, RemoveIdentity
from codemods.terms.findings import Promise


class LossRewrapped(SiteRule):
    """A loss that lost its graph and is made to ask for gradients, so that ``backward`` runs.

    Why it hurts: ``torch.tensor(loss, requires_grad=True)``, ``Variable(loss.data, requires_grad=True)`` and
    ``loss.requires_grad_()`` of a loss without a graph make a leaf. It silences "element 0 of tensors does not require
    grad", and the backward runs; but it ends at the leaf, no parameter gets a gradient, and the step trains nothing.

    Left alone: leaves whose gradient somebody reads, which an optimizer updates, or from which a backward reaches
    parameters as well (inputs, latent codes, checkpoints by hand); steps that find gradients of another backward, or
    such as are assigned; graphs that code gets that cannot be seen.

    The rewrite: where the loss has its graph until it is wrapped, the wrapping goes: ``loss``.

    Advice: of any other loss the cause stands where it is computed: ``no_grad``, ``detach``, ``item``, ``argmax``,
    NumPy.

    Promise: behaviour. The program runs and learns nothing; mended it is another one.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.tensor.html
    """

    name = "loss-rewrapped"
    promise = Promise.BEHAVIOUR
    uncovers = (
        *("attached-bootstrap-target", "attached-loss-history", "attached-loss-total", "carried-hidden-state"),
        *("loop-invariant-graph", "missing-zero-grad", "repeated-backward", "step-between-backwards", "stored-graph"),
        *("surplus-retain-graph", "unreset-loss", "untrained-parameters", "zero-grad-misplaced"),
    )
    summary = "a loss without its graph is made to ask for gradients; its backward reaches no parameter"
    gate = (b".backward(", b"autograd.backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        made = [n for n in trace.nodes if n.leaf and n.label == "input"]
        idle = list(idle_steps(trace)) if made and trace.complete else []
        for leaf in made:
            file, at = leaf.place.frame.file, leaf.place.node
            if isinstance(leaf.place.statement, ast.Assign) and not isinstance(at, ast.Call):
                at = leaf.place.statement  # x.requires_grad = True
            found = _proof(trace, idle, leaf)
            if found is None:
                yield self.fine(file, at)
                continue
            walk, step, lost = found
            yield self.fault(
                file, at,
                f"`{ast.unparse(at)}` makes a leaf without the graph of the loss: its backward reaches no parameter, "
                "and the step trains nothing",
                "call backward on the loss itself, computed without `item`, `detach`, `argmax` and NumPy on its way",
                (lost.place, "a graph that no backward reaches"),
                (walk.place, "this backward ends at the new leaf"),
                (step.place, "this step finds no gradients"),
                edits=_taken_back(leaf, lost),
            )  # fmt: skip


def _proof(trace: Trace, idle: list[IdleStep], leaf: Node) -> tuple[Walk, Step, Node] | None:
    """The one backward, which ends at the leaf, the idle step behind it, and the last graph that was lost before it."""
    if len(leaf.walks) != 1 or (walk := leaf.walks[0]).kind is not WalkKind.BACKWARD or not walk.roots:
        return None
    looks = (Marked.GRADIENT_READ, Marked.HOOK, Marked.HANDED_OUT)
    elsewhere = any(n is not leaf and n.kind not in (NodeKind.OP, NodeKind.MODULE) for n in walk.seen)
    looked_at = any(m.kind in looks and concerns(m, {leaf}) for m in trace.marks)
    trained = any(s.owned is None or s.owned.more or leaf in s.owned.leaves for s in trace.steps)
    if elsewhere or looked_at or trained or leaves_sight(leaf.descendants(), (Way.ESCAPED,)):
        return None
    for one in idle:
        at = one.step.place
        if one.since < leaf.birth < walk.place.clock < at.clock and crossed(walk.place, at) is None:
            lost = [node for node in one.meant(leaf.birth) if node.certain]
            if lost and not leaves_sight(lost, MAY_WALK):
                return walk, one.step, max(lost, key=lambda node: node.birth)
    return None


def _taken_back(leaf: Node, lost: Node) -> list[Edit]:
    """The edits that leave a loss as it is, where what is wrapped is the expression that computes it, or its name."""
    file, made, statement = leaf.place.frame.file, leaf.place.node, leaf.place.statement
    if not isinstance(made, ast.Call) or not made.args or lost.place.frame is not leaf.place.frame:
        return []
    inner = made.args[0]
    while (cut := cut_of(inner, "clone")) is not None:
        inner = cut[0]
    edits: list[Edit] = [KeepPart(file.span(made), file.span(inner))]
    if inner is lost.place.node:
        return edits
    given = lost.place.statement
    if not isinstance(inner, ast.Name) or not isinstance(given, ast.Assign) or given.value is not lost.place.node:
        return []
    own = {*walking.walk(given), *([] if statement is None else walking.walk(statement))}
    alone = [ast.unparse(target) for target in given.targets] == [inner.id]
    if not alone or not own.issuperset(bindings(scope(file, made), inner.id)):
        return []
    if isinstance(statement, ast.Assign) and ast.unparse(statement) == f"{inner.id} = {ast.unparse(made)}":
        edits.append(RemoveIdentity(file.span(statement)))
    return edits


RULE = LossRewrapped
