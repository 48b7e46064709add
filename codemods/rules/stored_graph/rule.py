"""The rule ``stored-graph``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.graph.model.kinds import CarrierKind, NodeKind
from codemods.graph.model.nodes import Carrier, Frame, Node, Place, Walk
from codemods.graph.model.trace import GROWN, Accumulation, Reading, Storing, Trace
from codemods.graph.model.values import Sequence, Tensor, nodes_of
from codemods.proofs.carried import Carry, Ledger
from codemods.proofs.carried_perhaps import stored_at_times
from codemods.proofs.carried_told import by_statement, too_late, trail
from codemods.proofs.containers import ADDING, harmless, in_container, training_walk, turn_walks, unwalked
from codemods.proofs.detaching import cut_of, detaching, stands_behind, united
from codemods.proofs.observations import Decision, Observation, Shows, Site, trail_of
from codemods.proofs.paired_flags import flags, paired
from codemods.proofs.reach import reach, surely_attached
from codemods.proofs.sums import Means
from codemods.proofs.turns import crossed
from codemods.rules.base import Rule
from codemods.rules.stored_graph.uses import (
    appended_once,
    goes_on_in_its_step,
    is_handed_on,
    is_loss,
    kept_apart,
    kept_for_good,
    used_through,
)
from codemods.rules.stored_graph.values import (
    always_tensors,
    new_part,
    reads_in,
    running_sum,
    simple_sum,
    stored_expression,
)
from codemods.terms.edits import Edit, WrapExpression
from codemods.terms.findings import Finding, Promise

_UNCERTAIN = "detach the old value, where it may also be a plain number"
_OF_A_CACHE = "compute it in every step, or detach it if it should not be trained"


class StoredGraph(Rule):
    """An intermediate result that is kept, with its graph, beyond the step that made it.

    Why it hurts: A list, queue, dict, attribute, global or default argument holds a tensor of an earlier step, and a
    later step computes with it: its ``backward`` reaches a graph that is freed and raises "Trying to backward through
    the graph a second time". Where no backward uses the kept graph again, it only stays in memory, and memory grows
    with every step.

    The rewrite: What is kept is detached where it is stored. If the new value is used in its own step too, the old one
    is detached where it is read (running means), or where the step ends (a queue that holds the current batch). A
    ``retain_graph=True`` that only kept the old graphs alive goes with it.

    Left alone: what is stored and used within one step before its backward (saved log probabilities, skip connections,
    outputs of time steps); stores that are emptied every step; what is stored under ``no_grad`` or already detached;
    what goes to code that cannot be seen; state that is computed from itself through weights
    (``carried-hidden-state``); losses that are summed up, or listed and only looked at (``attached-loss-total``,
    ``attached-loss-history``); a kept graph that a later step takes gradients of and of nothing else; sums with
    parameters that save nothing (dual variables of ADMM).

    Advice: what one step stores and no later one stores again (a cache): it may have to be computed in every step, so
    that it learns.

    Promise: repair where the later backward raises; exact where the kept graph is never used again; ``behaviour`` where
    it is used again without an error, because its operations save no tensors.

    Source: https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
    """

    name = "stored-graph"
    promise = Promise.REPAIR
    summary = "an attached tensor is kept beyond its step"
    gate = (b".backward(", b"manual_backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete:
            return
        ledger = trace.once(Ledger)
        taken: set[int] = set()
        others = [c for c in (*ledger.carries, *stored_at_times(ledger)) if not ledger.recurrent(c)]
        for carries in by_statement(others):
            for observation, statement in self._walked_again(ledger, carries):
                taken.add(id(statement))
                yield observation
        taken |= {id(c.store.statement) for c in ledger.carries}
        for observation, statement in (*self._running(ledger), *self._kept(ledger)):
            if id(statement) not in taken:
                taken.add(id(statement))
                yield observation

    # graphs that a later backward walks again

    def _walked_again(self, ledger: Ledger, carries: list[Carry]) -> Iterator[tuple[Observation, ast.stmt]]:
        carry = carries[0]
        if is_loss(ledger, carry.old) and not is_handed_on(carry) and not kept_apart(ledger, carries):
            return
        store = carry.store
        promise = ledger.promise(carry)
        if promise is None or store.statement is None or any(map(ledger.is_all, carries)):
            return
        if any(kept_for_good(ledger, c) for c in carries):
            # a cut would stop its parents from learning, and nothing says that this was meant
            if not any(c.read_in_some_turns for c in carries):
                cached = self._noted(ledger, carries, store, promise, None, "", "walked", advice=_OF_A_CACHE)
                yield cached, store.statement
            return
        # what grows behind its step, or is read elsewhere, is cut where it is stored
        apart = carry.child.place.statement is not carry.store.statement
        apart = apart or carry.store.clock > carry.freed_by.place.clock
        apart = apart and not any(used_through(ledger, c) for c in carries)
        if ledger.grows(carry) and not is_handed_on(carry) and not apart:
            yield from self._mean_walked_again(ledger, carries)
            return
        edits: list[tuple[str, Edit]] | None = []
        where = "where it is stored"
        if any(carry.read_in_some_turns for carry in carries):
            return
        if any(carry.walked_in_some_turns for carry in carries):
            edits, where = detaching(ledger.trace, carries), "after that backward"
            if not stands_behind(edits, carries):
                return
        elif not always_tensors(ledger.trace, store.statement):
            # sometimes it is given something that has no ``detach``
            edits = None
        elif any(used_through(ledger, c) for c in carries):
            style = "last" if appended_once(ledger, carry) else "state"
            edits = detaching(ledger.trace, carries, style)
            where = "where the step ends, because this step uses it too"
        else:
            expressions = [stored_expression(ledger, c) for c in carries]
            if None in expressions:
                edits = detaching(ledger.trace, carries)
                where = "where the step ends"
            else:
                file = store.frame.file
                cuts = {e: cut_of(ledger.trace, c) for e, c in zip(expressions, carries, strict=True) if e is not None}
                edits = [(file.path, WrapExpression(file.span(e), "", cut)) for e, cut in cuts.items()]
        yield self._noted(ledger, carries, store, promise, edits, where, "walked"), store.statement

    def _mean_walked_again(self, ledger: Ledger, carries: list[Carry]) -> Iterator[tuple[Observation, ast.stmt]]:
        """``self.mean = m * self.mean + (1 - m) * x`` where the new mean is used in this step."""
        carry = carries[0]
        promise = ledger.promise(carry)
        statement = carry.child.place.statement
        if carry.walked_in_some_turns or carry.read_in_some_turns:
            return
        if promise is None or promise is Promise.BEHAVIOUR or not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            return
        if not simple_sum(statement):
            return
        file = carry.child.place.frame.file
        reads = reads_in(ledger, carry.old, statement)
        edits: list[tuple[str, Edit]] | None
        noted = [carry]
        if goes_on_in_its_step(ledger, carries, statement):
            # A membrane over several time steps: its own step learns through what is read there.
            edits, where = detaching(ledger.trace, carries), "where the step ends, because this step goes on with it"
            noted = carries
        elif reads and not any(node in ledger.trace.plain for node in reads):
            edits = [(file.path, WrapExpression(file.span(node), "", ".detach()")) for node in reads]
            where = "where the old value is read"
        else:
            edits, where = None, ""
        yield self._noted(ledger, noted, carry.child.place, promise, edits, where, "walked"), statement

    def _noted(
        self,
        ledger: Ledger,
        carries: list[Carry],
        place: Place,
        promise: Promise,
        edits: list[tuple[str, Edit]] | None,
        where: str,
        kind: str,
        advice: str = _UNCERTAIN,
    ) -> Observation:
        assert place.statement is not None
        carry = carries[0]
        return self.seen(
            place.frame.file,
            place.statement,
            Shows.FAULT,
            promise=promise,
            edits=edits,
            where=where,
            advice=advice,
            name=_spoken(carry.carrier, place.statement),
            how=kind,
            retained=carry.freed_by.retains is True,
            flags=flags(ledger.surplus(carries)),
            trail=trail(carry),
            late=too_late(ledger.trace, carries),
        )

    # graphs that only pile up

    def _running(self, ledger: Ledger) -> Iterator[tuple[Observation, ast.stmt]]:
        """A running mean that nothing ever back-propagates: each step hangs its graph on that of the one before."""
        trace = ledger.trace
        sums = (*trace.accumulations, *trace.growths)
        means = Means(trace)
        summed = {a.place.statement for a in sums if not means.averages(a) and not _of_weights(a)}
        done: set[int] = set()
        for reading in trace.readings:
            statement = reading.place.statement
            if not isinstance(statement, ast.Assign) or id(statement) in done or statement in summed:
                continue
            if not running_sum(statement) or not isinstance(reading.value, Tensor):
                continue
            for old in reading.nodes:
                loop = crossed(old.place, reading.place) if surely_attached(old) else None
                if loop is None or old.place.statement is not statement or not unwalked(old):
                    continue
                later = (n for n in ledger.made_by.get(statement, ()) if n.birth > reading.place.clock and n.stores)
                mine = [n for n in later if n.place.frame is reading.place.frame and old in reach([n])]
                # any other call may give what holds the tensor, and has no `detach`
                if not any(n.place.node is statement.value for n in mine) or not unwalked(mine[0]):
                    continue
                walk = training_walk(ledger, old, loop) or _trained(ledger, old, loop)
                if walk is None:
                    continue
                done.add(id(statement))
                file = reading.place.frame.file
                target = new_part(ledger, statement.value, reading.place.node)
                if isinstance(statement.targets[0], ast.Subscript):
                    # what it began with may have a graph
                    target = statement.value
                edits: list[tuple[str, Edit]] = [(file.path, WrapExpression(file.span(target), "", ".detach()"))]
                yield (
                    self.seen(
                        file, statement, Shows.FAULT,
                        promise=Promise.EXACT, edits=edits, where="what is added to it",
                        name=_spoken(reading.carrier, statement), how="running", retained=False, flags=[],
                        trail=_short_trail(old, old.place, reading, walk),
                    ),
                    statement,
                )  # fmt: skip
                break

    def _kept(self, ledger: Ledger) -> Iterator[tuple[Observation, ast.stmt]]:
        """Outputs of training steps that pile up in a list although only their values are read."""
        by_site: dict[int, list[Storing]] = {}
        for storing in ledger.trace.storings:
            listed = storing.method == GROWN or isinstance(storing.container, Sequence)
            if storing.method in ADDING and storing.grad is True and listed:
                by_site.setdefault(id(storing.place.node), []).append(storing)
        for storings in by_site.values():
            statement = storings[0].place.statement
            if len(storings) < 2 or statement is None:
                continue
            found = [self._piled(ledger, storing, storings) for storing in storings]
            shown = next((f for f in found if f is not None), None)
            if shown is None or any(not harmless(ledger, s) for s in storings):
                continue
            old, reading, walk = shown
            file = storings[0].place.frame.file
            expression = storings[0].value_expr
            if storings[0].method == GROWN and expression is getattr(statement, "value", None):
                # it is what holds the value, as `row = row._replace(loss=loss)` is
                continue
            edits: list[tuple[str, Edit]] = [(file.path, WrapExpression(file.span(expression), "", ".detach()"))]
            yield (
                self.seen(
                    file, statement, Shows.FAULT,
                    promise=Promise.EXACT, edits=edits, where="where it is stored",
                    name=f"`{ast.unparse(expression)}`", how="kept", retained=False, flags=[],
                    trail=_short_trail(old, storings[0].place, reading, walk),
                ),
                statement,
            )  # fmt: skip

    @staticmethod
    def _piled(ledger: Ledger, storing: Storing, all_here: list[Storing]) -> tuple[Node, Reading, Walk] | None:
        """Proof that a stored value outlives its step beside those of other steps."""
        old = storing.value.node if isinstance(storing.value, Tensor) else None
        if old is None or not surely_attached(old) or old.scalar or is_loss(ledger, old):
            return None
        readings = [r for r in ledger.readings_of.get(old, ()) if in_container(storing, r)]
        beside = {node for reading in readings for node in reading.nodes}
        walks: dict[ast.AST, Walk | None] = {}
        turned: dict[tuple[Frame, tuple[tuple[ast.AST, int], ...]], ast.AST | None] = {}
        for other in all_here:
            node = other.value.node
            if node not in beside or node is old or other.place.clock < storing.place.clock:
                continue
            turn = (other.place.frame, other.place.loops)
            if turn not in turned:
                turned[turn] = crossed(storing.place, other.place)
            loop = turned[turn]
            if loop is None:
                continue
            if loop not in walks:
                walks[loop] = training_walk(ledger, old, loop)
            walk = walks[loop]
            if walk is None:
                continue
            for reading in readings:
                if node in reading.nodes and reading.place.clock >= other.place.clock:
                    return old, reading, walk
        return None

    # findings

    def decide_site(self, site: Site, decision: Decision) -> Iterator[Finding]:
        found = [o.facts for o in site.observations]
        facts = max(found, key=lambda f: f["promise"].rank if f["how"] == "walked" else -1)
        promise: Promise = facts["promise"]
        name = facts["name"]
        if facts["how"] == "kept":
            message = f"{name} is kept with the graph of its step, although only its value is read later: memory grows"
        elif facts["how"] == "running":
            message = (
                f"{name} links each step's graph to that of the step before, and no backward ever uses it: memory grows"
            )
        elif facts["retained"]:
            message = f"{name} carries the graph of its step into the next one, where its retained graph is used again"
        elif promise is Promise.BEHAVIOUR:
            message = (
                f"{name} takes the graph of its step into the next one, which back-propagates through it once more"
            )
        else:
            message = f"{name} carries the graph of its step into the next one, after backward() has freed it"
        steps = trail_of(facts["trail"])
        alike = [f for f in found if f["how"] == facts["how"]]
        edits = united(f["edits"] or () for f in alike)
        doubtful = next((f for f in alike if f["edits"] is None), None)
        if not edits or doubtful is not None:
            advice = (doubtful or facts).get("advice", _UNCERTAIN)
            yield self.finding(site, f"{message}; {advice}", trail=steps)
            return
        remedy = f"detach {facts['where']}" if facts["how"] == "running" else f"detach it {facts['where']}"
        yield from paired(
            self.name, site, decision, promise, message, remedy, steps, edits, site.all("flags"),
            mends=tuple(site.all("late")),
        )  # fmt: skip


def _spoken(carrier: Carrier, statement: ast.stmt) -> str:
    if carrier.name and carrier.kind is not CarrierKind.ELEMENT:
        return f"`{carrier.name}`"
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and statement.value.args:
        return f"`{ast.unparse(statement.value.args[-1])}`"
    if isinstance(statement, ast.Assign):
        return f"`{ast.unparse(statement.targets[0])}`"
    return "what is stored here"


def _of_weights(event: Accumulation) -> bool:
    """Whether a mean is one of parameters, which no rule for losses looks at."""
    added = nodes_of(event.added)
    return bool(added) and all(not n.leaf and n.parents and all(p.leaf for p in n.parents) for n in added)


def _trained(ledger: Ledger, node: Node, loop: ast.AST) -> Walk | None:
    """The backward that trains the parameters that ``made`` is computed from, in the turn that computed it."""
    graph = reach([node])
    if any(n.kind is not NodeKind.PHI and not n.leaf and not n.parents for n in graph):
        return None
    leaves = {n for n in graph if n.leaf}
    return next((w for w in turn_walks(ledger, node, loop) if not leaves.isdisjoint(w.seen)), None)


def _short_trail(old: Node, stored: Place, reading: Reading, walk: Walk) -> list[tuple[str, int, str]]:
    return [
        (old.place.path, old.place.line, "graph produced here"),
        (stored.path, stored.line, "carried from here"),
        (walk.place.path, walk.place.line, "its step ends here"),
        (reading.place.path, reading.place.line, "only its value is read here"),
    ]


RULE = StoredGraph
