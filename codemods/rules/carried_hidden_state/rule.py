"""The rule ``carried-hidden-state``."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator

from codemods.graph.model.nodes import Walk
from codemods.graph.model.trace import Trace
from codemods.proofs.carried import Carry, Ledger
from codemods.proofs.carried_perhaps import carried_at_times, presumed
from codemods.proofs.carried_told import by_statement, too_late, trail
from codemods.proofs.detaching import detaching, stands_behind, united
from codemods.proofs.observations import Decision, Observation, Shows, Site, sites
from codemods.proofs.paired_flags import Flag, flags, once, paired
from codemods.proofs.repackaging import broken_helpers
from codemods.rules.base import Rule
from codemods.rules.carried_hidden_state.fresh_state import fresh_state
from codemods.rules.carried_hidden_state.one_sequence import continues_sequence
from codemods.terms.edits import DropArgument
from codemods.terms.findings import Finding, Promise, TrailStep
from codemods.terms.spans import Span

_Place = tuple[str, Span]


class _Site(enum.Enum):
    HELPER = "helper"
    STATE = "state"
    SOMETIMES = "sometimes"
    """A state that only some paths carry on."""
    PRESUMED = "presumed"
    """A state that a module which cannot be seen may have cut."""


class CarriedHiddenState(Rule):
    """Recurrent state that enters a step with the graph of the step before.

    Why it hurts: The state that a recurrent network leaves behind is attached to the graph that made it. Read by the
    next forward, it makes the next ``backward`` reach into the step before, whose graph is freed: "Trying to backward
    through the graph a second time". ``retain_graph=True`` only exchanges that error for another, because the optimizer
    has changed the weights that the old graph saved, or for memory and time that grow with every step.

    The rewrite: Where batches have nothing to do with each other and the class can make a fresh state, it is made at
    the top of ``forward``; where they continue one sequence, or there is no such constructor, the state is detached
    once, where the step ends. A ``retain_graph=True`` that only kept the old state alive goes with it. A repackaging
    helper that asks for ``type(h) == Variable``, which no tensor is since PyTorch 0.4, is mended.

    Left alone: state that is made fresh, reset or cut anywhere in the tree before it is read again; time steps inside
    one sequence, windows, several trials before one backward; one optimizer step per sequence with a backward for every
    time step; state under ``no_grad``; state that is cut in all turns but the first (``if step > 0: h = h.detach()``);
    whatever is carried without a graph (masks, indices).

    Advice: state that the iterations of a loop begin in two ways, as a condition says that changes with them, and that
    only one of the two makes again or cuts; state that a model whose code cannot be seen gave and gets again, which it
    may cut itself.

    Promise: repair, the original raises in its second step; ``behaviour`` where weights are updated through ``.data``
    and the retained graphs are really used again. Where the state was carried attached, what is learned from the first
    carried step on is truncated back-propagation.

    Options: ``--hidden-state auto|reinit|detach``. With ``auto`` the state is made again only where nothing says that
    batches continue one sequence, and ``detach`` wins where both fit.

    Source: https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
    """

    name = "carried-hidden-state"
    promise = Promise.REPAIR
    summary = "recurrent state is carried into the next step with its graph"
    gate = (
        b".backward(",
        b"manual_backward(",
        b"== Variable",
        b"==Variable",
        b"is Variable",
        b"autograd.Variable:",
        b"Variable == type(",
        b"Variable==type(",
    )

    def observe(self, trace: Trace) -> Iterable[Observation]:
        for path, span, name, edits in broken_helpers(trace):
            facts = {"name": name, "edits": edits}
            yield Observation(self.name, path, span, Shows.FAULT, _Site.HELPER, facts)
        if not trace.complete:
            return
        ledger = trace.once(Ledger)
        states = list(by_statement(c for c in ledger.carries if ledger.recurrent(c)))
        together = ledger.surplus(c for carries in states for c in carries) if len(states) > 1 else []
        places = tuple(_place(carries[0]) for carries in states)
        for carries in states:
            yield from self._observe(ledger, carries, together, places)
        for carries in by_statement(carried_at_times(ledger)):
            yield from self._sometimes(ledger, carries)
        for carries in by_statement(presumed(ledger)):
            yield from self._presumed(ledger, carries)

    def _presumed(self, ledger: Ledger, carries: list[Carry]) -> Iterator[Observation]:
        cut, first = detaching(ledger.trace, carries, "any"), carries[0]
        promises = [ledger.promise(carry) for carry in carries]
        statement = first.store.statement
        if cut and statement is not None and None not in promises:
            drops = [(p, DropArgument(call, argument)) for p, _, call, argument in flags(ledger.surplus(carries))]
            yield self.seen(
                first.store.frame.file, statement, Shows.FAULT, _Site.PRESUMED, name=_spoken(carries),
                goes="go" if len({c.carrier.name for c in carries}) > 1 else "goes",
                promise=max((p for p in promises if p is not None), key=lambda p: p.rank),
                cut=(*cut, *drops), retained=first.freed_by.retains is True, trail=trail(first),
            )  # fmt: skip

    def _sometimes(self, ledger: Ledger, carries: list[Carry]) -> Iterator[Observation]:
        carries = [carry for carry in carries if ledger.promise(carry) is not None]
        statement = carries[0].store.statement if carries else None
        if statement is None:
            return
        first = carries[0]
        yield self.seen(
            first.store.frame.file, statement, Shows.ADVICE, _Site.SOMETIMES, name=_spoken(carries),
            goes="go" if len({c.carrier.name for c in carries}) > 1 else "goes",
            way=first.child.place.line, window=_window(first), retained=first.freed_by.retains is True,
            trail=trail(first),
        )  # fmt: skip

    def _observe(
        self, ledger: Ledger, carries: list[Carry], together: list[Walk], places: tuple[_Place | None, ...]
    ) -> Iterator[Observation]:
        promises = [ledger.promise(carry) for carry in carries]
        first = carries[0]
        if None in promises:
            return
        promise = max((p for p in promises if p is not None), key=lambda p: p.rank)
        store = first.store
        cut = detaching(ledger.trace, carries)
        walks = ledger.surplus(carries)
        joint = [w for w in together if w not in walks and any(w.call is c.freed_by.call for c in carries)]
        if store.statement is None:
            return
        window = any(carry.walked_in_some_turns for carry in carries)
        if (window and not stands_behind(cut, carries)) or any(carry.read_in_some_turns for carry in carries):
            yield from self._sometimes(ledger, carries)
            return
        yield self.seen(
            store.frame.file,
            store.statement,
            Shows.FAULT,
            _Site.STATE,
            promise=promise,
            name=_spoken(carries),
            goes="go" if len({c.carrier.name for c in carries}) > 1 else "goes",
            cut=cut,
            fresh=None if window else fresh_state(ledger, carries),
            continues=continues_sequence(first),
            flags=flags(walks),
            joint=flags(joint),
            states=places if joint else (),
            retained=first.freed_by.retains is True,
            changed=ledger.changed(first),
            trail=trail(first),
            late=too_late(ledger.trace, carries),
        )

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        for site in sites(observations, _Site.HELPER):
            yield self._mended(site)
        states = sites(observations, _Site.STATE)
        found = {(site.path, site.span): list(self._cut(site, decision)) for site in states}
        cut = {place for place, mended in found.items() if mended[0].promise is not Promise.ADVICE}
        for site in states:
            if all(place in cut for o in site.observations for place in o.facts["states"]):
                # a flag that keeps several states alive goes with all of them
                found[(site.path, site.span)] = list(self._cut(site, decision, site.all("joint")))
        for site in sites(observations, _Site.SOMETIMES):
            if (site.path, site.span) not in found:
                found[(site.path, site.span)] = [self._sometimes_cut(site)]
        for site in sites(observations, _Site.PRESUMED):
            if (site.path, site.span) not in found and site.faulty:
                found[(site.path, site.span)] = [self._presumed_cut(site)]
        yield from once(finding for mended in found.values() for finding in mended)

    def _sometimes_cut(self, site: Site) -> Finding:
        name, goes, way, window = (site.facts[fact] for fact in ("name", "goes", "way", "window"))
        freed = "" if site.facts["retained"] else ", which backward() has freed,"
        where = f"wherever the condition in line {way} neither makes a fresh state nor cuts it"
        remedy = "detach it on that path, too"
        if window:
            where = f"until the backward of line {window}, which runs in some iterations only, reaches both"
            remedy = "detach it after that backward"
        message = f"{name} {goes} into the next step with the graph of this one{freed} {where}"
        return self.finding(site, message, remedy)

    def _presumed_cut(self, site: Site) -> Finding:
        facts = site.facts
        freed = "" if facts["retained"] else ", which backward() has freed,"
        message = (
            f"{facts['name']} {facts['goes']} into the next step with the graph of this one{freed} unless the model, "
            "whose code cannot be seen, cuts it"
        )
        edits = united(o.facts["cut"] for o in site.observations) or ()
        return self.finding(site, message, "detach it where the step ends", edits, likely=facts["promise"])

    def _mended(self, site: Site) -> Finding:
        name = site.facts["name"]
        return self.finding(
            site,
            f"since PyTorch 0.4 type({name}) is never Variable: this helper unpacks the state to "
            "numbers and raises instead of detaching it",
            f"ask isinstance({name}, torch.Tensor) and detach",
            ((site.path, edit) for edit in site.facts["edits"]),
            promise=Promise.REPAIR,
            trail=[TrailStep(site.path, site.span.line, "the state should be cut here")],
        )

    def _cut(self, site: Site, decision: Decision, joint: Iterable[Flag] = ()) -> Iterator[Finding]:
        found = [o.facts for o in site.observations]
        style = decision.options.hidden_state
        again = any(f["continues"] for f in found)
        fresh = [f["fresh"] for f in found]
        reinit = all(fresh) and (style == "reinit" or (style == "auto" and not again))
        cuts = (f["cut"] or () for f in found)
        edits = site.all("fresh") if reinit else united(cuts) or []
        promise = max((f["promise"] for f in found), key=lambda p: p.rank)
        facts = found[0]
        dropped = list(dict.fromkeys([*site.all("flags"), *joint]))
        name, goes = facts["name"], facts["goes"]
        if facts["retained"]:
            message = (
                f"{name} {goes} into the next step with the graph of this one: retain_graph=True keeps it alive, but "
                "the weights that it saved change"
            )
            if promise is Promise.BEHAVIOUR and not facts["changed"]:
                message = (
                    f"{name} {goes} into the next step with the retained graphs of all the steps before: "
                    "each step is slower"
                )
        else:
            message = f"{name} {goes} into the next step with the graph of this one, which backward() has freed"
        remedy = "make a fresh state at the top of forward" if reinit else "detach it where the step ends"
        if not edits or any(not reinit and f["cut"] is None for f in found):
            yield self.finding(site, f"{message}; where the step ends it has no name that could be detached")
            return
        yield from paired(
            self.name, site, decision, promise, message, remedy, site.trail, edits, dropped,
            mends=tuple(site.all("late")),
        )  # fmt: skip


def _place(carry: Carry) -> _Place | None:
    statement = carry.store.statement
    return None if statement is None else (carry.store.path, carry.store.frame.file.span(statement))


def _spoken(carries: list[Carry]) -> str:
    names = list(dict.fromkeys(f"`{_name(carry)}`" for carry in carries if carry.carrier.name))
    if not names:
        return "the stored state"
    return f"the state {names[0]}" if len(names) == 1 else f"the states {', '.join(names[:-1])} and {names[-1]}"


def _name(carry: Carry) -> str:
    """The carrier as one types it: ``h``, or ``state["h"]`` where that is assigned."""
    target = carry.store.node
    return ast.unparse(target) if isinstance(target, ast.Subscript) else carry.carrier.name


RULE = CarriedHiddenState


def _window(carry: Carry) -> int:
    """The line of the backward that comes to a carried graph in some turns only; 0 where it does in all."""
    return carry.walk.place.line if carry.walked_in_some_turns else 0
