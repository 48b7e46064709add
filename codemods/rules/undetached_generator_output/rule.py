"""The rule ``undetached-generator-output``."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator
from dataclasses import replace

from codemods.graph.model.kinds import Marked, NodeKind, WalkKind
from codemods.graph.model.nodes import Node, Walk
from codemods.graph.model.trace import Forward, Trace
from codemods.proofs.early_changes import late
from codemods.proofs.gradients import Fate, Lives, leaf_masks
from codemods.proofs.observations import Decision, Observation, Shows, Site, sites, trail_of
from codemods.proofs.paired_flags import Late, paired
from codemods.proofs.paths import comes_before
from codemods.proofs.reach import folds
from codemods.proofs.syntax import method
from codemods.proofs.turns import crossed
from codemods.rules.base import Rule
from codemods.rules.undetached_generator_output.cuts import Attempt, arguments, node_of
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Span


class _Site(enum.Enum):
    CUT = "cut"
    """A call at which the graph can be cut."""
    ASIDE = "aside"
    """The same where nothing that learns from the loss acts on what is cut."""
    VAGUE = "vague"
    SHARED = "shared"
    FREED = "freed"
    """A loss that goes once more through what an earlier backward has freed."""
    ARGUMENT = "argument"
    """An argument whose graph another forward needs."""


class UndetachedGeneratorOutput(Rule):
    """A discriminator's loss that back-propagates through the generator, for gradients that are thrown away.

    Why it hurts: In the discriminator's step of a GAN only the discriminator learns. If its loss sees ``D(fake)`` with
    ``fake`` still attached, ``backward`` goes on through the whole generator: it computes gradients that ``zero_grad``
    clears before the generator's own step, and it keeps the generator's activations until then. Where ``fake`` is used
    again for the generator's loss, ``retain_graph=True`` has to keep both graphs alive; without it the second
    ``backward`` raises ``Trying to backward through the graph a second time``. For a DCGAN of 64 x 64 pixels (8 images,
    one CPU core) the discriminator's backward takes 1.8 times as long as it has to. The same holds wherever a loss with
    an optimizer of its own takes what another one trains: a second head over a shared embedding.

    The rewrite: ``D(fake)`` becomes ``D(fake.detach())``, and so does every other place in that loss that uses the
    attached fake (an autoencoding discriminator has two). A gradient penalty that interpolates with the fake gets the
    detached fake and ``requires_grad_()`` on the interpolation. A ``retain_graph=True`` that only kept the generator's
    graph goes too.

    Left alone: generators whose gradients are not cleared between this backward and their step, because there the
    gradient is used; gradients that are clipped, read or hooked before they are cleared; parameters behind the fake
    that the discriminator's optimizer owns; a generator that is frozen for this step; losses that are meant to reach
    the features; a fake that is a list.

    Advice: one ``D(fake)`` that serves both losses, because a second forward is needed; a loss that raises because an
    earlier backward freed what made the fake, where the generator's step comes after both; what another network gives
    and the loss only multiplies by or compares with (an advantage, the values of a critic); a fake of a model that
    cannot be seen, and that nothing shows to be a tensor.

    Promise: exact, since the same forward runs and the gradients that are missing afterwards were cleared unread (both
    networks bit for bit the same, also with batch norm, spectral norm and dropout in the discriminator); repair where
    the original raises.

    Source: https://docs.pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html
    """

    name = "undetached-generator-output"
    promise = Promise.EXACT
    summary = "a loss back-propagates into what another loss trains, as a discriminator's into the generator"
    gate = (b".backward(", b"autograd.backward(")

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.steps:
            return
        lives = Lives(trace)
        yield from self._needed(trace, lives)
        if not trace.complete or len({id(s.optimizer) for s in trace.steps}) < 2:
            return
        backward_hooks = (m for m in trace.marks if m.kind is Marked.MODULE_HOOK and "backward" in method(m.place.node))
        if any(m.kind is Marked.HOOK for m in trace.marks) or any(backward_hooks):
            return
        attempts: list[Attempt] = []
        everything: list[Node] = []
        for walk in trace.walks:
            if walk.kind is WalkKind.BACKWARD:
                fate = lives.fate(walk)
                if fate.wasted and fate.used:
                    everything = everything or list(dict.fromkeys(n for w in trace.walks for n in w.seen))
                    attempts.append(Attempt(trace, lives, walk, fate, everything=everything))
        yield from self._freed(trace, lives, {id(attempt.walk) for attempt in attempts})
        mended = [attempt for attempt in attempts if attempt.run() and not attempt.overwritten()]
        others = [a for a in attempts if a not in mended and not a.shared]
        aside = [
            a for a in (replace(a, cuts=[], gone=set(), aside=True) for a in others) if a.run() and not a.overwritten()
        ]
        known = {id(a.walk) for a in aside}
        yield from self._vague([a for a in others if id(a.walk) not in known])
        for attempt in attempts:
            for call in attempt.shared:
                assert call.statement is not None
                yield self.seen(call.frame.file, call.statement, Shows.FAULT, _Site.SHARED, trail=attempt.trail(call))
        gone = {id(a.walk): a.gone for a in mended}
        for attempt in mended:
            yield self._cut(trace, attempt, gone, _Site.CUT)
        for attempt in aside:
            yield self._cut(trace, attempt, gone | {id(attempt.walk): attempt.gone}, _Site.ASIDE)

    def _cut(self, trace: Trace, attempt: Attempt, gone: dict[int, set[int]], kind: _Site) -> Observation:
        first = min(attempt.cuts, key=lambda cut: (cut.call.path, cut.call.line))
        assert first.call.statement is not None
        flags, later = _flags(trace, gone)
        return self.seen(
            first.call.frame.file, first.call.statement, Shows.FAULT, kind,
            edits=[edit for cut in attempt.cuts for edit in cut.edits()],
            sites=[(cut.call.path, cut.call.frame.file.span(cut.expression)) for cut in attempt.cuts],
            name=ast.unparse(first.expression), late=_too_late(trace, attempt),
            folds=any(folds(n) for n in attempt.walk.seen if id(n) not in attempt.gone),
            flags=flags, trail=attempt.trail(first.call, later), cuts=attempt.lost(),
        )  # fmt: skip

    def _vague(self, attempts: list[Attempt]) -> Iterator[Observation]:
        """The cuts that would stand if what a model gives that cannot be seen were a tensor."""
        for attempt in attempts:
            again = replace(attempt, cuts=[], shared=[], gone=set(), lenient=True)
            if not again.run():
                continue
            first = min(again.cuts, key=lambda cut: (cut.call.path, cut.call.line))
            assert first.call.statement is not None
            yield self.seen(
                first.call.frame.file, first.call.statement, Shows.FAULT, _Site.VAGUE,
                name=ast.unparse(first.expression),
                sites=[(cut.call.path, cut.call.frame.file.span(cut.expression)) for cut in again.cuts],
                trail=again.trail(first.call),
            )  # fmt: skip

    def _freed(self, trace: Trace, lives: Lives, known: set[int]) -> Iterator[Observation]:
        """The losses whose backward raises because an earlier one freed the graph of what another optimizer trains, and
        whose gradients there no optimizer is seen to throw away: whether they were meant is for the reader to say."""
        freed = {id(walk): [(n, w) for n, w in walk.again if _surely_freed(n, w, walk)] for walk in trace.walks}
        raising = frozenset(walk for walk, again in freed.items() if again)
        everything = list(dict.fromkeys(n for w in trace.walks for n in w.seen)) if raising else []
        for walk in trace.walks:
            again = freed[id(walk)]
            told = {id(walk), *(id(earlier) for _, earlier in again)} & known
            if walk.kind is not WalkKind.BACKWARD or told or not again:
                continue
            behind = frozenset(n for node, _ in again for n in node.ancestors() if n.leaf)
            rest = frozenset(n for n in walk.seen if n.leaf) - behind
            if not _trained_apart(trace, behind, rest):
                continue
            attempt = Attempt(trace, lives, walk, Fate(rest, behind, ()), everything=everything, raising=raising)
            if not attempt.run() or attempt.overwritten():
                continue
            first = min(attempt.cuts, key=lambda cut: (cut.call.path, cut.call.line))
            assert first.call.statement is not None
            earlier = again[0][1].place
            yield self.seen(
                first.call.frame.file, first.call.statement, Shows.FAULT, _Site.FREED, sites=[],
                name=ast.unparse(first.expression), freed=(earlier.path, earlier.line),
                trail=[*attempt.trail(first.call), (earlier.path, earlier.line, "freed here")],
            )  # fmt: skip

    def _needed(self, trace: Trace, lives: Lives) -> Iterator[Observation]:
        """The arguments of forwards whose gradients are used in this run, so that no other run cuts them."""
        for walk in trace.walks:
            used = lives.fate(walk).used if walk.kind is WalkKind.BACKWARD else None
            if not used:
                continue
            masks = leaf_masks(walk.seen, dict.fromkeys(used, 1))
            for forward in trace.forwards:
                for expression, value in arguments(forward):
                    node = node_of(value)
                    if node is None or not masks.get(id(node)) or not _reaches(walk, forward, node):
                        continue
                    yield self.seen(forward.place.frame.file, expression, Shows.NEEDED, _Site.ARGUMENT)

    # deciding

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        needed = {(site.path, site.span) for site in sites(observations, _Site.ARGUMENT)}
        told: set[tuple[str, Span]] = set()
        for kind in (_Site.CUT, _Site.ASIDE, _Site.VAGUE, _Site.SHARED, _Site.FREED):
            for site in sites(observations, kind):
                if (site.path, site.span) in told or not needed.isdisjoint(site.all("sites")):
                    continue
                told.add((site.path, site.span))
                if kind is _Site.CUT:
                    yield from self._finding(site, decision)
                elif kind is _Site.ASIDE:
                    first, *_ = self._finding(site, decision)
                    message = f"{first.message}, unless another step was to use them"
                    yield replace(first, promise=Promise.ADVICE, likely=first.promise, message=message, partners=())
                elif kind is _Site.VAGUE:
                    yield self.finding(
                        site,
                        f"this loss computes gradients for what made `{site.facts['name']}`, which are discarded; its "
                        "origin cannot be seen: if it is a tensor, detach it for this loss",
                    )
                elif kind is _Site.FREED:
                    name, (path, line) = site.facts["name"], site.facts["freed"]
                    yield self.finding(
                        site,
                        f"this loss goes through the graph that made `{name}`, which the backward at {path}:{line} has "
                        f"freed: its backward raises; detach `{name}` for this loss, or, if what made it is to learn "
                        "from both losses, back-propagate their sum",
                    )
                else:
                    yield self.finding(
                        site,
                        "one output serves two losses with separate optimizers, so one loss back-propagates into "
                        "parameters that only the other trains; it needs a second forward over the detached input",
                    )

    def _finding(self, site: Site, decision: Decision) -> Iterator[Finding]:
        flags, mends = site.all("flags"), tuple(site.all("late"))
        steps = trail_of(max(site.observations, key=lambda o: len(o.facts["trail"])).facts["trail"])
        name = site.observations[0].facts["name"]
        if mends:
            message = f"this loss and another one use the graph that made `{name}`; the first backward frees it"
        elif flags:
            message = f"retain_graph=True keeps the graph that made `{name}` alive for gradients that are discarded"
        else:
            message = f"this loss computes gradients for what made `{name}`, which are discarded"
        kept = Promise.EQUIVALENT if site.any("folds") else Promise.EXACT
        promise = Promise.REPAIR if mends else kept
        remedy = f"detach `{name}` for this loss"
        yield from paired(
            self.name, site, decision, promise, message, remedy, steps, site.all("edits"), flags,
            kept=f"the graph that `{name}` was made by", mends=mends, cuts=tuple(site.all("cuts")),
        )  # fmt: skip


def _surely_freed(node: Node, earlier: Walk, walk: Walk) -> bool:
    """Whether the second of two walks surely comes to what the first one freed, in the same turns."""
    certain = node.saves and node.certain and node.kind not in (NodeKind.PHI, NodeKind.PART)
    follows = crossed(earlier.place, walk.place) is None and comes_before(earlier.place, walk.place)
    return certain and follows and earlier.retains is False


def _trained_apart(trace: Trace, some: frozenset[Node], others: frozenset[Node]) -> bool:
    """Whether optimizers train both, and none of them, nor one that cannot be seen, trains of both."""
    owned = [step.owned.leaves if step.owned is not None else None for step in trace.steps]
    if any(leaves is None or not (some.isdisjoint(leaves) or others.isdisjoint(leaves)) for leaves in owned):
        return False
    return all(any(not part.isdisjoint(leaves or ()) for leaves in owned) for part in (some, others))


def _reaches(walk: Walk, forward: Forward, node: Node) -> bool:
    """Whether a walk comes to ``node`` through what the forward made."""
    return any(
        forward.first <= n.birth < forward.last and node in n.parents and any(w is walk for w in n.walks)
        for n in node.children
    )


def _flags(trace: Trace, gone: dict[int, set[int]]) -> tuple[list[tuple[str, Span, Span, str | int]], Walk | None]:
    """The flags that only kept what is no longer walked again, and a walk that would have."""
    found = []
    again: Walk | None = None
    for i, walk in enumerate(trace.walks):
        mine = [n for n in walk.seen if not n.leaf and n.kind is not NodeKind.PHI]
        later = trace.walks[i + 1 :]
        through = {id(w) for n in mine for w in n.walks}
        walked = [w for w in later if id(w) in through]
        if not walked:
            continue
        left = [n for n in mine if id(n) not in gone.get(id(walk), ())]
        after = {id(w) for w in walked}
        if any(id(w) in after and id(n) not in gone.get(id(w), ()) for n in left for w in n.walks):
            continue
        if id(walk) in gone or any(id(w) in gone for w in walked):
            again = again or walked[0]
        if walk.retains is True and walk.creates is False and walk.call is not None and _literal(walk):
            assert walk.place.statement is not None
            file = walk.place.frame.file
            assert walk.retain_argument is not None
            found.append((file.path, file.span(walk.place.statement), file.span(walk.call), walk.retain_argument))
    return found, again


def _literal(walk: Walk) -> bool:
    argument = walk.retain_argument
    assert walk.call is not None
    if isinstance(argument, int):
        return argument == len(walk.call.args) - 1 and isinstance(walk.call.args[argument], ast.Constant)
    return argument is not None


def _too_late(trace: Trace, attempt: Attempt) -> list[Late]:
    """Where the original provably walks a graph too late because of this loss, and no longer does with the cut."""
    found: list[Late] = []
    for walk in trace.walks:
        for node, earlier in walk.again:
            certain = node.saves and node.certain and node.kind not in (NodeKind.PHI, NodeKind.PART)
            if not certain or id(node) not in attempt.gone or attempt.walk not in (walk, earlier):
                continue
            # what an earlier turn has left is there on some paths only
            if crossed(earlier.place, walk.place) is not None or not walk.follows(earlier):
                continue
            if earlier.retains is False or _stepped_between(trace, node, earlier, walk):
                found += late(trace, earlier, walk, attempt.gone if attempt.walk is walk else ())
    return list(dict.fromkeys(found))


def _stepped_between(trace: Trace, node: Node, first: Walk, then: Walk) -> bool:
    """Whether a parameter that the node saved has been changed by an optimizer between two walks."""
    saved = {p for p in node.parents if p.leaf} if any(not p.leaf for p in node.parents) else set()
    return any(
        first.place.clock < step.place.clock < then.place.clock
        and step.owned is not None
        and saved.intersection(step.owned.leaves)
        for step in trace.steps
    )


RULE = UndetachedGeneratorOutput
