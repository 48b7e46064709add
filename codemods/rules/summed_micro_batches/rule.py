"""The rule ``summed-micro-batches``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.graph.model.kinds import WalkKind
from codemods.graph.model.nodes import Walk
from codemods.graph.model.trace import Trace
from codemods.proofs.observations import Decision, Observation, Shows, Site, station
from codemods.proofs.reach import maybe_frozen
from codemods.proofs.sums import Sum, sums_of, sums_through_calls
from codemods.rules.base import Rule
from codemods.rules.summed_micro_batches.remedy import Plan
from codemods.terms.findings import Finding, Promise, TrailStep


class SummedMicroBatches(Rule):
    """The losses of several micro-batches, each with a forward of its own, are summed and back-propagated once.

    Why it hurts: Many graphs, many backwards. A sum keeps the graph of every term alive until its one ``backward``:
    with *k* micro-batches all activations of *k* forwards are in memory at once, where one after the other would do.

    The rewrite: Gradients add up by themselves, so each micro-batch is back-propagated on the spot and its graph is
    free again: ``(loss / k).backward()`` in the loop, the total kept without its graph. The optimizer steps where it
    did. ``zero_grad`` goes exactly where the sum is reset, so that the gradients of a window are never cleared between
    its backwards and the step. It divides only if the original does. A remainder that was dropped is dropped still.

    Left alone: terms that share one graph (heads, steps of a rollout, a state that is carried from iteration to
    iteration); anything that reads, clears, clips or changes gradients while the sum grows; a divisor that is only
    known at the end; a model whose class cannot be seen (it may keep a state); a sum that enters anything but a
    division or a product, or a test that may skip the window; code that a backward runs (hooks, checkpoints, functions
    of their own); a loop that may be left by ``return``, or whose errors are caught within a loop; gradients that are
    used behind the loop, or not cleared where the sum begins: the last iterations may fill no window.

    Advice: a sum that goes through the argument or the result of a function.

    Promise: equivalent. The order in which gradients are added up differs, and with it their rounding.

    Source: https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation
    """

    name = "summed-micro-batches"
    promise = Promise.EQUIVALENT
    summary = "the losses of micro-batches are summed: all their graphs stay alive until one backward"
    gate = (b".backward(",)

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete or not trace.walks:
            return
        sums = sums_of(trace)
        for walk in trace.walks:
            plain = walk.kind is WalkKind.BACKWARD and not walk.with_gradient and walk.creates is False
            # frozen parameters: one of the losses may have no graph of its own
            if not plain or walk.retains is None or walk.inputs != () or maybe_frozen(walk):
                continue
            statement = walk.place.statement
            if not isinstance(statement, ast.Expr) or statement.value is not walk.call:
                continue
            seen = {id(n) for n in walk.seen}
            mine = [s for s in sums if id(s.second) in seen and s.frame is walk.place.frame]
            if mine:
                yield self._judge(trace, walk, statement, mine)
            elif sums_through_calls(trace, walk):
                yield self.seen(walk.place.frame.file, statement, Shows.ADVICE)

    def _judge(self, trace: Trace, walk: Walk, statement: ast.Expr, sums: list[Sum]) -> Observation:
        file = walk.place.frame.file
        edits = Plan(trace, walk, statement, sums[0]).edits() if len(sums) == 1 else None
        produced = sums[0].term.place
        return self.seen(
            file,
            statement,
            Shows.NEEDED if edits is None else Shows.FAULT,
            edits=edits,
            produced=(produced.path, produced.line),
            summed=(file.path, sums[0].statement.lineno),
        )

    # deciding

    def decide_site(self, site: Site, decision: Decision) -> Iterator[Finding]:
        if site.shows == {Shows.ADVICE}:
            yield self.finding(
                site,
                "a function sums the losses of several forwards before this backward: all their graphs stay alive "
                "until then",
                "back-propagate the loss of each forward on its own and return it without its graph",
            )
        elif site.faulty and all(o.facts["edits"] == site.facts["edits"] for o in site.observations):
            yield self._finding(site)

    def _finding(self, site: Site) -> Finding:
        facts = site.facts
        trail = (
            station(facts["produced"], "one graph per iteration produced here"),
            station(facts["summed"], "carried on in a sum here"),
            TrailStep(site.path, site.span.line, "freed here, all at once"),
        )
        return self.finding(
            site,
            "each summed loss has its own forward, and all their graphs stay alive until this backward",
            "back-propagate each loss in the loop, keep the total without its graph",
            ((site.path, edit) for edit in facts["edits"]),
            promise=Promise.EQUIVALENT,
            trail=trail,
        )


RULE = SummedMicroBatches
