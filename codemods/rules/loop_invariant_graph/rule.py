"""The rule ``loop-invariant-graph``: what it finds."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator

from codemods.graph.model.facts.memory import SHARING_MEMORY
from codemods.graph.model.facts.saved import SAVES_SELF
from codemods.graph.model.kinds import NodeKind, WalkKind
from codemods.graph.model.nodes import Node, Place, Walk, all_ancestors
from codemods.graph.model.trace import Trace
from codemods.proofs.blocks import Parting, meeting, parting, stepped_between
from codemods.proofs.early_changes import late, stepped
from codemods.proofs.observations import Decision, Observation, Shows, Site, sites, station
from codemods.proofs.paired_flags import advised, mended, paired, superfluous, weakest
from codemods.proofs.reach import reached_by_both, reaches_one_of
from codemods.proofs.turns import crossed, in_some_turns
from codemods.rules.base import Rule
from codemods.rules.loop_invariant_graph.move import Move
from codemods.terms.edits import Edit, MoveStatement, WrapExpression
from codemods.terms.findings import Finding, Promise, TrailStep
from codemods.terms.spans import Span


class _Site(enum.Enum):
    COPY = "copy"
    GRAPH = "graph"


class LoopInvariantGraph(Rule):
    """A graph is built once before the loop, and the loss of every step is back-propagated through it.

    Why it hurts: The first ``backward`` frees the saved tensors of the graph, the part from before the loop with it;
    the second step raises ``Trying to backward through the graph a second time``. A regulariser ``reg = sum(p.norm()
    for p in model.parameters())``, an embedding of fixed inputs, a tensor derived from parameters in ``__init__``: each
    was meant to follow the parameters, and each is computed from what they were at the start.

    The rewrite: The statement moves to the top of the loop body, where every step computes it again from the parameters
    as they are; several statements that build on one another move together. An attribute that ``__init__`` builds moves
    to the top of the one method that reads it; the parameter itself stays. A ``retain_graph=True`` that only kept the
    old graph alive goes with it. A copy of parameters to compare them with (``p.clone()``, the anchor of a penalty) is
    detached: where it is attached, its gradient takes back what the parameter's own brings.

    Left alone: several backwards of one step (that is ``backward-in-loss-loop``); a graph that is computed again in the
    loop; one that is detached, or made of data alone; views of parameters (they follow what the optimizer does in
    place).

    Advice: the statement draws random numbers or keeps statistics (dropout, batch norm, a module that cannot be seen:
    in the loop it would do so in every step); what it reads is bound or changed in place in the loop or on the way to
    it; it stands in another function; something else reads its result; the loop computes the same by itself, as the
    ratio of old and new likelihoods does, where a ``detach`` was meant.

    Promise: repair. Where nothing in the graph is saved for the backward, or ``retain_graph=True`` keeps it alive, the
    original may run, on values that are never brought up to date: there it is behaviour, as it is for a copy.

    Source: https://docs.pytorch.org/docs/stable/notes/autograd.html#saved-tensors
    """

    name = "loop-invariant-graph"
    promise = Promise.REPAIR
    summary = "a graph from before the loop is used by the backward of every step"
    gate = (b".backward(",)

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete:
            return
        told: set[tuple[int, int]] = set()
        for walk in trace.walks:
            if walk.kind is not WalkKind.BACKWARD or walk.call is None:
                continue
            for earlier, old in _from_before(walk).items():
                if (id(earlier.call), id(walk.call)) in told or not stepped_between(trace, earlier, walk):
                    continue
                told.add((id(earlier.call), id(walk.call)))
                yield from self._copies(trace, earlier, walk, old)
                yield from self._judge(trace, earlier, walk, old)

    def _copies(self, trace: Trace, earlier: Walk, walk: Walk, old: list[Node]) -> Iterator[Observation]:
        """Copies of parameters from before the loop; a backward surely goes through one of them."""
        groups: dict[ast.AST, list[Node]] = {}
        for node in old:
            if node.kind is NodeKind.OP and node.label == "clone" and all(p.leaf for p in node.parents):
                groups.setdefault(node.place.node, []).append(node)
        changed = stepped(trace, earlier, walk)
        for call, nodes in groups.items():
            place = nodes[0].place
            sure = all(reaches_one_of(w, [nodes])[0] for w in (earlier, walk))
            if not sure or place.statement is None or not any(p in changed for n in nodes for p in n.parents):
                continue
            yield self.seen(
                place.frame.file,
                place.statement,
                Shows.FAULT,
                _Site.COPY,
                call=(place.path, place.frame.file.span(call)),
                again=(walk.place.path, walk.place.line),
            )

    def _judge(self, trace: Trace, earlier: Walk, walk: Walk, old: list[Node]) -> Iterator[Observation]:
        sure = reached_by_both(walk, earlier, old)
        old = [n for n in old if id(n) in sure]
        promise = _promise(trace, earlier, walk, old)
        if not old or promise is None:
            return
        last = max(old, key=lambda n: n.birth)
        plan = Move(trace, earlier, walk, old)
        anchor, moves = plan.find()
        loop = crossed(earlier.place, walk.place)
        if loop is not None and in_some_turns(walk.place, loop):
            moves, plan.why = [], "unless its condition holds in one iteration only"
        place = plan.at or last.place
        if place.statement is None:
            return
        yield self.seen(
            place.frame.file,
            place.statement,
            Shows.FAULT if moves else Shows.ADVICE,
            _Site.GRAPH,
            promise=promise.value,
            moves=[(tuple(t), tuple(anchor)) for t in moves] if moves and anchor else None,
            why=plan.why,
            remedy=plan.remedy,
            freed=(earlier.place.path, earlier.place.line),
            again=(walk.place.path, walk.place.line),
            retained=earlier.retains is True,
            late=late(trace, earlier, walk),
            flags=superfluous(trace, walk, set(all_ancestors(old))) if moves else [],
        )

    # deciding

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        for site in sites(observations, _Site.GRAPH):
            yield from self._findings(site, decision)
        for site in sites(observations, _Site.COPY):
            copies = dict.fromkeys(o.facts["call"] for o in site.observations)
            edits = [(path, WrapExpression(span, "", ".detach()")) for path, span in copies]
            line = site.facts["again"][1]
            trail = (
                TrailStep(site.path, site.span.line, "parameters are copied here, with a way back to them"),
                station(site.facts["again"], "used here in every iteration"),
            )
            message = (
                f"this copy of parameters is attached: the backward of line {line} goes through it in every iteration, "
                "back into the parameters that it was copied from"
            )
            yield self.finding(site, message, "detach the copy", edits, promise=Promise.BEHAVIOUR, trail=trail)

    def _findings(self, site: Site, decision: Decision) -> Iterator[Finding]:
        facts_ = site.facts
        trail = (
            TrailStep(site.path, site.span.line, "graph produced here, once"),
            station(facts_["freed"], "retained here" if facts_["retained"] else "freed here"),
            station(facts_["again"], "used again here, in the next iteration"),
        )
        line = facts_["again"][1]
        promise = weakest(site)
        if promise is Promise.BEHAVIOUR:
            message = (
                f"this graph is built once, and the backward of line {line} uses it in every iteration: its values "
                "are never updated"
            )
        else:
            message = (
                f"this graph is built once, but the backward of line {line} uses it in every iteration: the second "
                "iteration raises"
            )
        moves = facts_["moves"]
        remedy = "compute it in the loop, or detach it if it should not be trained"
        if advice := advised(self.name, site, "moves", message, remedy, trail):
            yield advice
            return
        edits: list[tuple[str, Edit]] = [
            (site.path, MoveStatement(Span(*target), Span(*anchor), "first-in")) for target, anchor in moves
        ]
        yield from paired(
            self.name,
            site,
            decision,
            promise,
            message,
            facts_["remedy"],
            trail,
            edits,
            facts_["flags"],
            kept="a graph from before the loop",
            together="the move",
            mends=mended(promise, site),
        )


# reading a run


def _from_before(walk: Walk) -> dict[Walk, list[Node]]:
    """What a walk finds that a walk of an earlier turn has been through, and that is older than the loop."""
    found: dict[Walk, list[Node]] = {}
    loops: dict[int, Parting | None] = {}
    for node, earlier in walk.again:
        if (
            node.kind in (NodeKind.PHI, NodeKind.PART)
            or not node.certain
            or earlier.kind is not WalkKind.BACKWARD
            or earlier.call is None
        ):
            continue
        if id(earlier) not in loops:
            loops[id(earlier)] = parting(earlier.place, walk.place)
        parted = loops[id(earlier)]
        if parted is not None and _older(node.place, parted) and walk.follows(earlier):
            found.setdefault(earlier, []).append(node)
    return found


def _older(made: Place, parted: Parting) -> bool:
    first, second, depth = parted
    met = meeting(made, second)
    if met is None or made.clock > first.clock:
        return False
    mine = met[0]
    if mine.frame is not second.frame:
        # in an earlier call of a frame around: older than the call that holds the loop
        return mine.loops == met[1].loops[: len(mine.loops)]
    for (own, turn), (other, now) in zip(mine.loops, second.loops[: depth + 1], strict=False):
        if own is not other:
            # in a loop that was over before
            return True
        if turn != now:
            return False
    return len(mine.loops) <= depth


def _saves(node: Node) -> bool:
    # a number beside a parameter is kept as well (ran)
    return node.saves or (node.kind is NodeKind.OP and node.operation in ("Mult", "Div", "mul", "div"))


def _promise(trace: Trace, earlier: Walk, walk: Walk, old: list[Node]) -> Promise | None:
    if earlier.retains is None or earlier.creates is not False:
        return None
    if earlier.retains is False and any(_saves(n) for n in old):
        return Promise.REPAIR
    changed = stepped(trace, earlier, walk)
    for node in old if earlier.retains else ():
        if node.kind is NodeKind.OP and node.label in SAVES_SELF and not changed.isdisjoint(node.parents):
            return Promise.REPAIR
    stale = (n for n in old if n.label not in SHARING_MEMORY and not changed.isdisjoint(n.ancestors()))
    return Promise.BEHAVIOUR if any(stale) else None


RULE = LoopInvariantGraph
