"""The rule ``empty-cache``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.nodes import Place
from codemods.graph.model.trace import Forward, Ran, Trace
from codemods.proofs.blocks import suite_of
from codemods.proofs.observations import Observation
from codemods.proofs.syntax import LOOPS
from codemods.rules._sites import SiteRule
from codemods.source import walking
from codemods.terms.edits import InsertStatements
from codemods.terms.findings import Promise

_PASSES = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.With, *LOOPS)
"""What can be an evaluation pass that something may follow."""


class EmptyCache(SiteRule):
    """The allocator's cache after an evaluation pass (opt-in).

    Why it hurts: PyTorch keeps the GPU memory that tensors have freed, to hand it out again without asking the driver.
    Evaluation often runs with other batch sizes or longer inputs than training, so that blocks are left which training
    cannot use: ``nvidia-smi`` shows them as taken, and a training step that needs one large block may fail beside
    enough free memory in small ones. ``torch.cuda.empty_cache()`` gives unused blocks back to the driver.

    It helps against fragmentation of that kind, and where several processes share one card. It does not make more
    memory available to the process itself otherwise, and it is not free: it waits for the device, and the steps that
    follow have to ask the driver for their blocks again, with a ``cudaMalloc`` each. That is why the rule has to be
    asked for by name, and why the call stands once after a pass and never within one. Without CUDA it does nothing.

    The rewrite: ``torch.cuda.empty_cache()`` goes right after an evaluation pass. That is a call, loop or ``with``
    block in a program that trains, which runs forwards in a loop and neither a backward nor a step, and whose results
    nobody back-propagates.

    Left alone: programs that never mention CUDA; passes within the loop over training batches (acting, sampling,
    targets); functions and blocks that call ``empty_cache`` already; what is evaluated in a ``return``.

    Promise: behaviour. What is learned stays the same, time and memory do not; it needs ``--select`` and ``--unsafe``.

    Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
    """

    name = "empty-cache"
    promise = Promise.BEHAVIOUR
    summary = "the allocator's cache is kept after an evaluation pass"
    opt_in = True
    gate = (b".backward(", b"autograd.backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete or not trace.steps or not any("cuda" in f.file.text for f in trace.frames):
            return
        candidates = ((ran, _evaluates(trace, ran)) for ran in trace.ran if isinstance(ran.statement, _PASSES))
        passes = [(ran, forwards) for ran, forwards in candidates if forwards]
        for ran, forwards in passes:
            whole = ran.place
            if any(_within(whole, other) for other, _ in passes if other is not ran) or _within_steps(trace, ran):
                continue
            file, statement = ran.frame.file, ran.statement
            if _empties(trace, ran):
                yield self.fine(file, statement)
                continue
            yield self.fault(
                file, statement,
                "the allocator keeps the memory of this evaluation pass in blocks that training may be unable to use",
                "release them with torch.cuda.empty_cache()",
                (forwards[0].place, "evaluated here"),
                (whole, "the pass ends here"),
                edits=[InsertStatements(file.span(statement), "after", "{torch}.cuda.empty_cache()")],
            )  # fmt: skip


def _within(place: Place, ran: Ran) -> bool:
    """Whether a place of the run lies in that one execution of a statement."""
    at = place.seen_from(ran.frame)
    if at is None or at.statement is None or at.loops[: len(ran.loops)] != ran.loops:
        return False
    return at.statement is ran.statement or ran.statement in at.frame.file.outward(at.statement)


def _evaluates(trace: Trace, ran: Ran) -> list[Forward]:
    """The forwards of a statement that runs several in a loop of its own and nothing that learns."""
    if ran.frame.inside_module:
        return []
    depth = len(_loops(ran.place))
    forwards = [f for f in trace.forwards if len(_loops(f.place)) > depth and _within(f.place, ran)]
    places = [*(w.place for w in trace.walks), *(s.place for s in trace.steps)]
    if not forwards or any(_within(place, ran) for place in places):
        return []
    made = (n for n in trace.nodes if ran.first <= n.birth < ran.last)
    return [] if any(n.walks and not n.leaf for n in made) else forwards


def _loops(place: Place) -> list[ast.AST]:
    return [loop for loop, _ in place.turns() if isinstance(loop, LOOPS)]


def _within_steps(trace: Trace, ran: Ran) -> bool:
    """Whether it stands in the loop over training batches: beside a backward, not beside a loop of them."""
    return any(_loops(walk.place) == _loops(ran.place) for walk in trace.walks)


def _empties(trace: Trace, ran: Ran) -> bool:
    """Whether the pass, a function that it calls or what directly follows empties the cache already."""
    suite = suite_of(ran.frame.file, ran.statement)
    position = next((i for i, s in enumerate(suite) if s is ran.statement), 0)
    looked: list[ast.AST] = [ran.statement, *suite[position + 1 : position + 2]]
    called = (f for f in trace.frames if f.definition is not None and f.call is not None and _within(f.call, ran))
    looked += [f.definition for f in called if f.definition is not None]
    return any(isinstance(n, ast.Attribute) and n.attr == "empty_cache" for one in looked for n in walking.walk(one))


RULE = EmptyCache
