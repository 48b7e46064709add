"""Where ``no_grad`` goes: on a function or around a block, what that promises, and how it is put."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from codemods.graph.model.program import ParsedFile
from codemods.proofs.blocks import suite_of
from codemods.proofs.observations import Decision, Link, Observation, Site, sites, trail_of
from codemods.proofs.syntax import DEFINITIONS, FUNCTIONS, LOOPS, suspends
from codemods.rules.base import Rule
from codemods.rules.grad_in_evaluation.blocks import (
    is_forward,
    is_inside,
    is_test,
    recording,
    returns_value,
    switches_off,
    takes_decorator,
    trains,
)
from codemods.rules.grad_in_evaluation.doubts import (
    LEFT_BEHIND,
    MAY_BE_WALKED,
    OTHER_PHASES,
    TRAINS_TOO,
    doubts_of,
    drop_volatile,
)
from codemods.rules.grad_in_evaluation.phases import Phase
from codemods.rules.grad_in_evaluation.recordings import SiteOf
from codemods.terms.edits import AddDecorator, Edit, WrapBlock
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Span

_Chain = tuple[Link, ...]
Region = tuple[str, Span, Span]
"""A file, and the first and the last statement in it of what a finding is about."""

_Forwards = dict[tuple[str, Span], list[Observation]]
"""Forwards, by what is done about them at a place."""


class _Placed(NamedTuple):
    """Forwards by what is done about them: a decorated function, a block, a block that records where it trains, advice
    at a call, advice on what is left."""

    decorated: _Forwards
    blocks: _Forwards
    phases: dict[Phase, list[Observation]]
    advice: _Forwards
    left: _Forwards


class Placement:
    """Where ``no_grad`` goes: the function that only evaluates for all its callers, else the smallest block."""

    def __init__(
        self,
        rule: Rule,
        observations: list[Observation],
        decision: Decision,
        forwards: list[Observation] | None = None,
        mended: Iterable[Region] = (),
    ) -> None:
        """Place all forwards among ``observations``, or these ``forwards`` but for those that ``mended`` regions
        hold."""
        self.rule = rule
        self.decision = decision
        self.functions = {(s.path, s.span): s for s in sites(observations, SiteOf.FUNCTION)}
        self.statements = {(s.path, s.span): s for s in sites(observations, SiteOf.STATEMENT)}
        self.partial: set[tuple[str, Span | None]] = {
            *((s.path, s.span) for s in sites(observations, SiteOf.PARTIAL)),
            *((s.path, None) for s in sites(observations, SiteOf.PARTIAL_SCRIPT)),
        }
        """Functions, and scripts (None), that were followed in part: a block in them would cover a part of what they
        evaluate."""
        self.open = {(s.path, s.span) for s in sites(observations, SiteOf.OPEN)}
        """Functions that hand out graphs: who may call them, and back-propagate these, is not known."""
        self.covered = {(s.path, s.span) for s in sites(observations, SiteOf.COVERED)}
        """Functions that somebody calls with gradients switched off."""
        self.leaving = {(s.path, s.span) for s in sites(observations, SiteOf.LEAVING)}
        """Statements that make graphs which outlive the call of the function that they stand in."""
        self.forwards = [o for o in observations if o.kind is SiteOf.FORWARD] if forwards is None else forwards
        self.mended = list(mended)
        """What the findings so far are about."""
        self.style = decision.options.no_grad_style
        if self.style == "auto" and sites(observations, SiteOf.TELLS_WRAPPERS):
            # What stands below a decorator would not be taken for what it is.
            self.style = "with"

    def findings(self) -> Iterator[Finding]:
        """All findings."""
        placed = _Placed(defaultdict(list), defaultdict(list), defaultdict(list), defaultdict(list), defaultdict(list))
        decorated = placed.decorated
        for forward in self.forwards:
            path, *_ = forward.facts["chain"][0]
            script = forward.facts["chain"][-1][1] is None
            if is_test(path, self.decision.files(path), script=script) or self._is_mended(forward):
                continue
            if not any(is_forward(self.decision.files(path), function) for path, function, _ in forward.facts["chain"]):
                self._own(forward, placed)
        for key in [key for key, forwards in decorated.items() if self._covered(key, forwards, decorated)]:
            # what calls the method evaluates as a whole: one decorator is enough
            del decorated[key]
        for (path, span), forwards in sorted(decorated.items()):
            finding = self._decorate(path, span, forwards)
            if finding is not None:
                yield finding
            if finding is None or finding.promise is Promise.ADVICE:
                del decorated[path, span]
        for statement in [*placed.blocks]:
            if all(_runs_in(forward, decorated) for forward in placed.blocks[statement]):
                # what leads to it is decorated
                del placed.blocks[statement]
        yield from self._wrap_all(placed.blocks)
        for phase, forwards in sorted(placed.phases.items()):
            yield self._switch(phase, forwards)
        for (path, span), forwards in sorted(placed.advice.items()):
            yield self._advise(path, span, forwards, TRAINS_TOO)
        yield from self._left_behind(placed.left)

    def _is_mended(self, forward: Observation) -> bool:
        return any(
            path == of and is_inside((statement, statement), (first, last))
            for path, _, statement in forward.facts["chain"]
            for of, first, last in self.mended
        )

    def _own(self, forward: Observation, placed: _Placed) -> None:
        chain: _Chain = forward.facts["chain"]
        known = any((path, function) in self.covered for path, function, _ in chain)
        if forward.facts["root"] in self.covered or (known and forward.facts["once"]):
            # the callers switch gradients off: that is where the author does it, and where it matters
            return
        if forward.facts["fed"]:
            # it belongs to a training step, whichever functions lead to it
            found = [(path, statement) for path, _, statement in chain if self._is_faulty(path, statement)]
            if found:
                placed.blocks[found[-1]].append(forward)
            return
        closed = self.functions.get(forward.facts["closed"])
        if closed is not None and closed.faulty and self._may_decorate(closed.path, closed):
            # whoever calls this method gets nothing that could be walked
            placed.decorated[(closed.path, closed.span)].append(forward)
            return
        outermost: tuple[str, Span] | None = None
        for path, function, statement in chain:
            site = self.functions.get((path, function)) if function is not None else None
            if site is not None and site.faulty and self._may_decorate(path, site):
                placed.decorated[(path, site.span)].append(forward)
                return
            here = self.statements.get((path, statement))
            if here is not None and not here.faulty and forward.facts["phase"] is not None:
                placed.phases[forward.facts["phase"]].append(forward)
                return
            if here is not None and not here.faulty:
                # the statement serves training as well: what calls this function may know better
                if site is not None and (site.any("walks") or site.any("marked")) and function is not None:
                    self._advise_call(chain, function, forward, placed.advice)
                    return
                if site is None or function is None:
                    return
                continue
            if (
                site is not None
                and function is not None
                and site.faulty
                and trains(self.decision.files(path), function)
            ):
                # for the callers in sight it does not
                self._advise_call(chain, function, forward, placed.advice)
                return
            if (path, statement) in self.leaving:
                # whoever calls the function gets its graphs: what becomes of them shows where it is called
                outermost = (path, statement)
                continue
            if here is not None and (path, function) not in self.partial:
                placed.blocks[(path, statement)].append(forward)
            return
        if outermost is not None:
            placed.left[outermost].append(forward)

    @staticmethod
    def _covered(key: tuple[str, Span], forwards: list[Observation], decorated: _Forwards) -> bool:
        """Whether all forwards of a method that gives no graph out run in other functions that are decorated."""
        return all(forward.facts["closed"] == key and _runs_in(forward, decorated, besides=key) for forward in forwards)

    def _advise_call(self, chain: _Chain, function: Span, forward: Observation, advice: _Forwards) -> None:
        """A function that both trains and evaluates: the call that only evaluates is worth a look."""
        position = next(i for i, link in enumerate(chain) if link[1] == function)
        if position + 1 < len(chain):
            path, _, statement = chain[position + 1]
            here = self.statements.get((path, statement))
            if here is not None and here.faulty:
                advice[(path, statement)].append(forward)

    def _is_faulty(self, path: str, statement: Span) -> bool:
        site = self.statements.get((path, statement))
        return site is not None and site.faulty

    def _may_decorate(self, path: str, site: Site) -> bool:
        return (path, site.span) not in self.open and takes_decorator(self.decision.files(path), site.span)

    # decorators

    def _left_behind(self, left: _Forwards) -> Iterator[Finding]:
        """Advice on what functions leave behind; on what evaluates it keeps its edit."""
        evaluating: _Forwards = defaultdict(list)
        for (path, span), forwards in sorted(left.items()):
            function = next(f for p, f, s in forwards[0].facts["chain"] if (p, s) == (path, span))
            site = self.functions.get((path, function))
            evaluates = all(f.facts["reads"] == "evaluated" for f in forwards)
            if evaluates and site is not None and site.faulty and takes_decorator(self.decision.files(path), site.span):
                evaluating[(path, site.span)] += forwards
            else:
                yield self._advise(path, span, forwards, LEFT_BEHIND)
        for (path, span), forwards in evaluating.items():
            finding = self._decorate(path, span, forwards, MAY_BE_WALKED)
            if finding is not None:
                yield finding

    def _decorate(self, path: str, span: Span, forwards: list[Observation], doubts: str = "") -> Finding | None:
        file = self.decision.files(path)
        node = file.find(span, *DEFINITIONS) if file is not None else None
        if file is None or not isinstance(node, DEFINITIONS):
            return None
        site = self.functions[(path, span)]
        promise = self._promise(forwards, node, kernels=site.any("kernels"))
        message = f"{node.name}() only evaluates but records a graph that is never used"
        edits: list[tuple[str, Edit]]
        if self.style == "with" and not suspends(node):
            block = recording(file, node, [at for of, at in self.statements if of == path])
            edits = [(path, WrapBlock(*block, "with {torch}.no_grad():"))]
            remedy = "wrap what records it in `with torch.no_grad():`"
        else:
            edits = [(path, AddDecorator(span, "{torch}.no_grad()"))]
            remedy = "add `@torch.no_grad()`"
        edits += drop_volatile(forwards)
        doubts += doubts_of(forwards, **{fact: site.any(fact) for fact in ("doubted", "handed", "caught")})
        return self._finding(path, span, promise, message, remedy, edits, forwards, doubts)

    # blocks

    def _wrap_all(self, blocks: _Forwards) -> Iterator[Finding]:
        by_file: dict[str, dict[Span, list[Observation]]] = defaultdict(dict)
        for (path, span), forwards in blocks.items():
            by_file[path][span] = forwards
        for path, spans in sorted(by_file.items()):
            file = self.decision.files(path)
            if file is None:
                continue
            wraps: dict[tuple[Span, Span, bool], list[Observation]] = defaultdict(list)
            for span, forwards in sorted(spans.items()):
                block = self._block(file, span, set(spans))
                if block is not None:
                    wraps[block] += forwards
            done: list[tuple[Span, Span]] = []
            for (first, last, looped), forwards in sorted(wraps.items()):
                if any(is_inside((first, last), other) for other in done):
                    continue
                done.append((first, last))
                yield self._wrap(file, first, last, forwards, looped=looped)

    def _block(self, file: ParsedFile, span: Span, evaluating: set[Span]) -> tuple[Span, Span, bool] | None:
        """The first and last statement of the smallest block around an evaluating statement; whether that is a loop
        which only evaluates, or stands in one."""
        node = file.find(span, ast.stmt)
        if node is None:
            return None
        loop = self._evaluating_loop(file, node)
        while loop is not None:
            outer = self._evaluating_loop(file, loop)
            if outer is None or not self._adds(file, outer, loop, evaluating):
                break
            loop = outer
        if loop is not None:
            only = self._only(file, loop, evaluating)
            return only, only, True
        function = file.enclosing(node, *DEFINITIONS)
        around = self.functions.get((file.path, file.span(function))) if function is not None else None
        if around is not None and around.any("marked") and not around.any("steps"):
            # an attack, a saliency map: its own forwards belong to it
            return None
        siblings = suite_of(file, node)
        at = siblings.index(node)
        first = last = at
        while last + 1 < len(siblings) and self._wasted(file, siblings[last + 1]):
            last += 1
        while first > 0 and self._wasted(file, siblings[first - 1]) and file.span(siblings[first - 1]) in evaluating:
            first -= 1
        return file.span(siblings[first]), file.span(siblings[last]), False

    def _only(self, file: ParsedFile, loop: ast.AST, evaluating: set[Span]) -> Span:
        """The one statement of a loop that records something, where others stand beside it; else the loop."""
        around = file.span(loop)
        inside = [
            span
            for path, span in self.statements
            if path == file.path and span != around and is_inside((span, span), (around, around))
        ]
        smallest = [s for s in inside if not any(t != s and is_inside((t, t), (s, s)) for t in inside)]
        recording = {*smallest, *(s for s in evaluating if is_inside((s, s), (around, around)))}
        alone = [file.span(statement) for statement in getattr(loop, "body", ())]
        return smallest[0] if len(recording) == 1 and recording != set(alone) else around

    def _evaluating_loop(self, file: ParsedFile, node: ast.AST) -> ast.AST | None:
        around = file.outward(node, *FUNCTIONS, ast.ClassDef, ast.Module)
        loop = next((outer for outer in around if isinstance(outer, LOOPS)), None)
        return loop if loop is not None and self._wasted(file, loop) and not switches_off(file, loop) else None

    def _adds(self, file: ParsedFile, outer: ast.AST, inner: ast.AST, evaluating: set[Span]) -> bool:
        inside = file.span(inner)
        around = file.span(outer)
        return any(is_inside((s, s), (around, around)) and not is_inside((s, s), (inside, inside)) for s in evaluating)

    def _wasted(self, file: ParsedFile, node: ast.AST) -> bool:
        site = self.statements.get((file.path, file.span(node)))
        return (
            site is not None and site.faulty and not suspends(node) and (file.path, file.span(node)) not in self.leaving
        )

    def _wrap(self, file: ParsedFile, first: Span, last: Span, forwards: list[Observation], *, looped: bool) -> Finding:
        promise = self._promise(forwards, None)
        message = "evaluation code records a graph that is never used"
        edits: list[tuple[str, Edit]] = [(file.path, WrapBlock(first, last, "with {torch}.no_grad():"))]
        edits += drop_volatile(forwards)
        teaches = any(f.facts["teaches"] and not f.facts["volatile"] for f in forwards)
        if teaches and not looped:
            promise = Promise.ADVICE
            message = "the result of this forward enters a loss detached: it could run under no_grad"
        elif any(f.facts["fed"] and not f.facts["volatile"] for f in forwards):
            promise = Promise.ADVICE
            message = (
                "this forward takes a training output, but no backward comes back through it: run it under no_grad, "
                "or add the missing loss"
            )
        elif not looped and all(f.facts["bare"] and not f.facts["volatile"] for f in forwards):
            # what the loss is made of would keep its graph
            promise = Promise.ADVICE
            message = "no backward reaches this loss: run what it is made of under no_grad as well"
        elif (
            not looped
            and any(f.facts["named"] or not f.facts["reads"] for f in forwards)
            and not any(f.facts["volatile"] or f.facts["reads"] in ("evaluated", "data") for f in forwards)
        ):
            # nothing reads it, or only its loss is printed, of a model that trains: more likely a step that was
            # forgotten; of what becomes a number at once none was meant
            promise = Promise.ADVICE
            message = "no backward reaches this forward: run it under no_grad, or add the missing step"
        remedy = "wrap it in `with torch.no_grad():`"
        here = self.statements.get((file.path, first))
        inside = (
            self.statements[k] for k in self.statements if k[0] == file.path and is_inside((k[1],) * 2, (first, last))
        )
        caught = any(site.any("caught") for site in inside)
        doubts = doubts_of(forwards, handed=here is not None and here.any("handed"), caught=caught)
        return self._finding(file.path, first, promise, message, remedy, edits, forwards, doubts)

    def _switch(self, phase: Phase, forwards: list[Observation]) -> Finding:
        """A block that trains in some turns only: it records a graph where it does."""
        header = f"with {{torch}}.set_grad_enabled({phase.condition}):"
        return self._finding(
            phase.path,
            phase.first,
            self._promise(forwards, None),
            f"where `{phase.test}` is false this records a graph that is never used",
            f"wrap it in `{header.format(torch='torch')}`",
            [(phase.path, WrapBlock(phase.first, phase.last, header))],
            forwards,
            OTHER_PHASES + doubts_of(forwards),
        )

    def _promise(self, forwards: list[Observation], node: ast.AST | None, *, kernels: bool = False) -> Promise:
        if any(f.facts["padding"] for f in forwards):
            return Promise.ADVICE
        if (kernels or any(f.facts["kernels"] for f in forwards)) and (node is None or returns_value(node)):
            return Promise.EQUIVALENT
        return Promise.EXACT

    def _advise(self, path: str, span: Span, forwards: list[Observation], message: str) -> Finding:
        return self._finding(path, span, Promise.ADVICE, message, "", [], forwards)

    def _finding(
        self,
        path: str,
        span: Span,
        promise: Promise,
        message: str,
        remedy: str,
        edits: list[tuple[str, Edit]],
        forwards: list[Observation],
        doubts: str = "",
    ) -> Finding:
        trail = trail_of((f.path, f.span.line, "graph produced here, and dropped unused") for f in forwards)
        likely = promise if doubts and promise is not Promise.ADVICE else None
        if doubts:
            promise = Promise.ADVICE
        if promise is Promise.ADVICE and likely is None:
            edits = []
        self.mended.append((path, span, next((e.last for _, e in edits if isinstance(e, WrapBlock)), span)))
        return Finding(
            self.rule.name, path, span, promise, message + doubts, remedy, trail[:4], tuple(edits), likely=likely
        )


def _runs_in(forward: Observation, functions: _Forwards, besides: tuple[str, Span] | None = None) -> bool:
    """Whether a forward runs in one of some ``functions``, and not only in the one ``besides``."""
    return any(
        function is not None and (path, function) != besides and (path, function) in functions
        for path, function, _ in forward.facts["chain"]
    )
