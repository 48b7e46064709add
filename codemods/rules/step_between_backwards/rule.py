"""The rule ``step-between-backwards``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codemods.graph.model.trace import Mark, Trace
from codemods.proofs.early_changes import Group, early_changes
from codemods.proofs.observations import Decision, Observation, Shows, Site, station
from codemods.rules.base import Rule
from codemods.rules.step_between_backwards.remedies import Remedy
from codemods.terms.edits import MoveStatement
from codemods.terms.findings import Finding, Promise, TrailStep
from codemods.terms.spans import Span


class StepBetweenBackwards(Rule):
    """A loss is built through parameters, these are stepped, and only then is the loss back-propagated.

    Why it hurts: An optimizer changes its parameters in place. A graph that was built through them has kept the old
    values for its backward, and autograd notices: ``one of the variables needed for gradient computation has been
    modified by an inplace operation`` since PyTorch 1.5; older versions silently computed a gradient that belongs to no
    parameters that ever were. In a GAN the loss of the generator runs through the discriminator, in actor-critic
    methods the loss of the policy runs through the critics: where these step first, its backward comes too late. No
    intermediate need be shared for that.

    The rewrite: the first of these that is sound:

    1. *Swap the update blocks*: ``zero_grad``, ``backward`` and ``step`` of the later loss go first. Both gradients are
       then taken at the same parameters. Only where the two share neither parameters nor graph, and each clears its
       gradients before its own backward, so that none mix.
    2. *Build the later loss after the step*: the statements that build it move after the step, where nothing between
       reads what they make and no order of random numbers changes.

    Advice: where neither is sound, the finding says what stands in the way. Moving only the ``step`` is almost never
    sound: the second backward adds to the gradients of the first.

    Left alone: a loss that was built after the step; a parameter whose value the later backward does not read (a bias,
    the first layer on plain input, an embedding); a step whose parameters got no gradient; a graph that an earlier
    iteration left behind (that is a carried state, a stored graph or a loss that is never reset).

    Promise: repair. The original raises at the backward that comes too late; the rewritten program takes both gradients
    at the parameters that their losses were computed from, or builds the later loss again from the new ones.

    Source: https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
    """

    name = "step-between-backwards"
    promise = Promise.REPAIR
    summary = "an optimizer steps between the forward of a loss and its backward"
    gate = (b".step(", b".backward(")

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete or not trace.walks:
            return
        for group in early_changes(trace).values():
            yield from self._judge(trace, group)

    def _judge(self, trace: Trace, group: Group) -> Iterator[Observation]:
        fix, why = Remedy(trace, group).find()
        file = group.frame.file
        walk, node = group.first()
        for change, statement in group.changes():
            yield self.seen(
                file,
                statement,
                Shows.FAULT if fix else Shows.ADVICE,
                fix=fix,
                why=why,
                writes=isinstance(change, Mark),
                built=(node.place.path, node.place.line),
                late=(walk.place.path, walk.place.line),
                walks=sorted({(w.place.path, w.place.line) for w, _ in group.late.values()}),
                changed=(change.place.path, change.place.line),
                others=sorted({s.lineno for _, s in group.changes()} - {statement.lineno}),
            )

    # deciding

    def decide_site(self, site: Site, decision: Decision) -> Iterator[Finding]:
        if decision.files(site.path) is not None:
            yield self._finding(site)

    def _finding(self, site: Site) -> Finding:
        first = site.observations[0].facts
        fixes = [o.facts["fix"] for o in site.observations]
        fix = fixes[0] if all(f == fixes[0] for f in fixes) else None
        late_path, late_line = first["late"]
        trail = (
            station(first["built"], "graph produced here, from parameters"),
            TrailStep(site.path, site.span.line, "these parameters are changed in place here"),
            TrailStep(late_path, late_line, "used here, where their old values are needed"),
        )
        doer = "this write changes" if first["writes"] else "this step changes"
        message = (
            f"{doer} parameters in place through which the loss of line {late_line} was built before: its backward "
            "needs their old values and raises"
        )
        if fix is None:
            why = next((o.facts["why"] for o in site.observations if o.facts["why"]), "")
            message += f"; {why}" if why else ""
            remedy = "back-propagate every loss before the first step, or build the later loss after it"
            return self.finding(site, message, remedy, trail=trail)
        edits = tuple((site.path, MoveStatement(Span(*t), Span(*a), w, n)) for t, a, w, n in fix["moves"])
        partners = tuple((self.name, site.path, line) for line in first["others"])
        mends = tuple((late, o.facts["changed"]) for o in site.observations for late in o.facts["walks"])
        return self.finding(
            site, message, fix["remedy"], edits, promise=Promise.REPAIR, trail=trail, partners=partners, mends=mends
        )


RULE = StepBetweenBackwards
