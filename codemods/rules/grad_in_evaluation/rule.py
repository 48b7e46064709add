"""The rule ``grad-in-evaluation``."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any

from codemods.graph.model.kinds import ModuleMode
from codemods.graph.model.program import ParsedFile, receiver_name
from codemods.graph.model.trace import Forward, Trace
from codemods.graph.model.values import Instance
from codemods.proofs.observations import Decision, Observation, Shows, link_of
from codemods.proofs.syntax import DEFINITIONS, is_own, method
from codemods.rules.base import Rule
from codemods.rules.grad_in_evaluation.phases import Phases
from codemods.rules.grad_in_evaluation.placement import Placement
from codemods.rules.grad_in_evaluation.recordings import (
    Recordings,
    SiteOf,
    is_dropped,
    is_loss_of_others,
    is_named,
    is_sized,
    picks,
    severity,
    what_reads,
)
from codemods.source.gates import form
from codemods.source.walking import walk
from codemods.terms.findings import Finding, Promise
from codemods.terms.words import words


class GradInEvaluation(Rule):
    """Evaluation code that builds autograd graphs that no backward uses.

    Why it hurts: A forward pass records a graph as long as gradients are on, whether or not a ``backward`` ever
    follows. Validation, testing, inference, action selection and sampling pay for it with the memory of all activations
    and with time; ``model.eval()`` changes dropout and batch norm, it does not switch recording off.

    The rewrite: A function that only evaluates gets ``@torch.no_grad()``; inside a function that also trains, and in
    module-level code, the smallest loop or block that only evaluates goes under ``with torch.no_grad():``; of a loop in
    which one statement among others records something, that statement. A literal ``volatile=True``, which means nothing
    since PyTorch 0.4, goes with it.

    Left alone: whatever reaches ``backward``, ``autograd.grad`` or ``.grad``, also inside a callee (adversarial
    attacks, forces from energies, gradient penalties); functions that training and evaluation share; callers that
    switch gradients off already; models whose parameters are all frozen; results that code which cannot be seen
    keeps, or gets together with an optimizer or parameters.

    Advice: a forward inside training code whose result is detached at once (a teacher, a target network), or gives a
    loss no more than an index (the best action of the next state, a label); one of which only the shape is asked for (a
    check, an example); one that
    takes what a training forward gave, and that no backward comes back through (a loss that was left out); evaluation
    in a function that training shares; a forward that trains in some turns only, as a condition says
    (``if phase == "train": loss.backward()``), which ``set_grad_enabled`` goes around; a model whose class is not in
    the tree and is called by a method that may take gradients, or record none; results that code gets which cannot be
    seen, and that gives nothing back; code that cannot be seen and comes to the model, itself or by what was made of
    it, unless that is proven to be a module; one loss that has a name and is only printed (a step that was left out).

    Promise: exact where the results are only reported. ``LSTM``, ``MultiheadAttention`` and the Transformer layers
    choose other kernels while gradients are off, whose results differ in the last digits (by 1e-8 to 5e-7): where these
    reach a scheduler, a comparison, an action or a stored target, it is equivalent.

    Options: ``--no-grad-style auto|decorator|with``: a decorator on the function or a ``with`` block in it, wherever
    both are sound.

    Source: https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation
    """

    name = "grad-in-evaluation"
    promise = Promise.EXACT
    since = "0.4"
    summary = "evaluation runs with gradient recording on"
    gate = (
        b".backward(",
        b".eval()",
        b".train(False)",
        b"volatile=",
        b"volatile =",
        form(r"(?<!def )\bload_state_dict", word="load_state_dict"),
        b"torch.load(",
    )

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete:
            yield from self._poison(trace)
            return
        ledger = Recordings(trace)
        yield from self._functions(trace, ledger)
        yield from self._statements(trace, ledger)
        yield from self._forwards(trace, ledger, training=bool(trace.walks))

    def _poison(self, trace: Trace) -> Iterator[Observation]:
        for frame in trace.frames:
            if isinstance(frame.definition, DEFINITIONS):
                yield self.seen(frame.file, frame.definition, Shows.NEEDED, SiteOf.FUNCTION)
        for ran in trace.ran:
            yield self.seen(ran.frame.file, ran.statement, Shows.NEEDED, SiteOf.STATEMENT)

    def _functions(self, trace: Trace, ledger: Recordings) -> Iterator[Observation]:
        worst, opened, covered = _Worst(), dict[ast.AST, ParsedFile](), dict[ast.AST, ParsedFile]()
        for frame in trace.frames:
            if not isinstance(frame.definition, DEFINITIONS) or frame.end < 0:
                continue
            shows, facts = ledger.judge(frame.birth, frame.end + 1)
            if frame.left_unseen or ledger.outliving(frame):
                opened[frame.definition] = frame.file
            if shows is Shows.NOTHING and frame.grad is False and not frame.root:
                covered[frame.definition] = frame.file
            worst.add(frame.file, frame.definition, shows, facts)
        yield from self._judged(worst, SiteOf.FUNCTION)
        for file in dict.fromkeys(frame.file for frame in trace.frames):
            # Python takes letters of other alphabets for those of these names
            named = not file.text.isascii() or file.holds(_WRAPPERS_NAMED)
            if named and file.tree.body and file.once(_tells_wrappers, file.tree):
                yield self.seen(file, file.tree.body[0], Shows.NEEDED, SiteOf.TELLS_WRAPPERS)
        for kind, functions in ((SiteOf.OPEN, opened), (SiteOf.COVERED, covered)):
            for definition, file in functions.items():
                yield self.seen(file, definition, Shows.NEEDED, kind)

    def _statements(self, trace: Trace, ledger: Recordings) -> Iterator[Observation]:
        worst, leaving = _Worst(), dict[ast.AST, ParsedFile]()
        for ran in trace.ran:
            if ledger.leaves(ran.frame, ran.first, ran.last):
                leaving[ran.statement] = ran.frame.file
            worst.add(ran.frame.file, ran.statement, *ledger.judge(ran.first, ran.last))
        yield from self._judged(worst, SiteOf.STATEMENT)
        for statement, file in leaving.items():
            yield self.seen(file, statement, Shows.NEEDED, SiteOf.LEAVING)

    def _judged(self, worst: _Worst, kind: SiteOf) -> Iterator[Observation]:
        for node, (file, shows, facts) in worst.found.items():
            if shows is not Shows.NOTHING:
                yield self.seen(file, node, shows, kind, **facts)

    def _forwards(self, trace: Trace, ledger: Recordings, *, training: bool) -> Iterator[Observation]:
        chains: dict[tuple[int | None, ...], Observation] = {}
        phases = Phases(trace)
        for forward in trace.forwards:
            if forward.grad is False:
                continue
            if not (training or forward.volatile or forward.mode in (ModuleMode.EVAL, ModuleMode.LOADED)):
                # a self-test at the end of a model's file: nothing says that this is evaluation
                continue
            shows, facts = ledger.judge(forward.first, forward.last)
            if shows is not Shows.FAULT:
                continue
            if (
                not facts["presumed"]
                and forward.method != "forward"
                and not ledger.applies_layers(forward.first, forward.last)
            ):
                # a method that looks at its parameters, not a forward
                continue
            places = forward.place.chain()
            # two calls of one statement may be mended in different places
            method = None if forward.closed is None else id(forward.closed.definition)
            key = (method, *(id(p.statement) for p in places))
            made = ledger.presumed_in(forward) if facts["presumed"] else ledger.made_in(forward.first, forward.last)
            # of a method that returns no graph, what it reads itself is all that is ever read
            reads = what_reads(made, forward.last if forward.closed is None else forward.first)
            if facts["presumed"] and not reads:
                # it may have been called for what it does
                continue
            if not (training or reads or forward.volatile or forward.place.turns() or picks(made, 0)):
                # one forward, and only its shape is looked at: a self-test of a model
                continue
            once = not (forward.volatile or forward.place.loops) and is_dropped(forward.place)
            if once and not what_reads(made, forward.last, since=forward.last):
                # run once for what it does on the way: to calibrate, to warm up, to let a compiler watch
                continue
            comes_from = ledger.source(made, forward)
            if comes_from == "evaluated":
                # a loss of an evaluating forward: without the graph of that it has none
                continue
            facts["named"] = is_named(made, forward.last)
            facts["sized"] = not (reads or forward.volatile) and is_sized(made, forward.place)
            facts["bare"] = is_loss_of_others(made, forward.first)
            facts["caught"] = facts["caught"] or ledger.caught(made)
            facts["phase"] = phases.of(forward)
            observation = self._chain(forward, facts, ledger.taught(made), reads, fed=comes_from == "trained")
            if key not in chains or (observation.facts["teaches"] and not chains[key].facts["teaches"]):
                chains[key] = observation
        yield from chains.values()
        for frame in trace.cut_short:
            if isinstance(frame.definition, DEFINITIONS):
                yield self.seen(frame.file, frame.definition, Shows.NEEDED, SiteOf.PARTIAL)
            elif frame.definition is None:
                yield self.seen(frame.file, frame.file.tree.body[0], Shows.NEEDED, SiteOf.PARTIAL_SCRIPT)
        yield from self._own_methods(trace, ledger)

    def _own_methods(self, trace: Trace, ledger: Recordings) -> Iterator[Observation]:
        """Methods of a module that switch it to evaluation and compute with its parameters themselves."""
        for frame in trace.frames:
            definition = frame.definition
            if not (isinstance(definition, DEFINITIONS) and isinstance(frame.receiver, Instance)):
                continue
            if frame.call is not None and frame.call.frame.inside_module:
                continue
            if not frame.receiver.cls.is_module or frame.end < 0 or not _calls_own_eval(definition):
                continue
            shows, facts = ledger.judge(frame.birth, frame.end + 1)
            if shows is Shows.FAULT:
                first = definition.body[0]
                chain = ((frame.file.path, frame.file.span(definition), frame.file.span(first)),)
                root = (frame.file.path, frame.file.span(definition)) if frame.root else None
                yield self.seen(
                    frame.file, definition, Shows.FAULT, SiteOf.FORWARD,
                    chain=chain, volatile=(), dropped=(), teaches=False, fed=False, reads="evaluated", named=True,
                    sized=False, bare=False, phase=None, **facts, unseen=False, closed=None, once=True, root=root,
                )  # fmt: skip

    def _chain(self, forward: Forward, facts: dict[str, Any], teaches: bool, reads: str, *, fed: bool) -> Observation:
        chain = [link for place in forward.place.chain() if (link := link_of(place)) is not None]
        volatile = tuple((p.frame.file.path, p.frame.file.span(p.node)) for p in forward.volatile)
        closed = forward.closed
        root = next((p.frame for p in forward.place.chain() if p.frame.root), None)
        return self.seen(
            forward.place.frame.file,
            forward.place.node,
            Shows.FAULT,
            SiteOf.FORWARD,
            chain=tuple(chain),
            volatile=volatile,
            dropped=tuple(v for v, p in zip(volatile, forward.volatile, strict=True) if _is_literally_volatile(p.node)),
            teaches=teaches,
            fed=fed,
            reads="evaluated" if forward.mode is ModuleMode.EVAL and reads else reads,
            **facts,
            unseen=facts["presumed"] or (forward.method != "forward" and not isinstance(forward.module, Instance)),
            closed=None if closed is None else (closed.file.path, closed.file.span(closed.definition)),
            once=all(isinstance(loop, DEFINITIONS) for loop, _ in forward.place.turns()),
            root=None if root is None or root.definition is None else (root.file.path, root.file.span(root.definition)),
        )

    # deciding

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        proven = Placement(self, [o for o in observations if not o.facts.get("presumed")], decision)
        yield from proven.findings()
        presumed = [o for o in observations if o.kind is SiteOf.FORWARD and o.facts["presumed"]]
        if presumed:
            # what is proven is mended as if nothing else were there
            yield from Placement(self, observations, decision, presumed, proven.mended).findings()


class _Worst:
    """The gravest of the judgements of each place."""

    def __init__(self) -> None:
        self.found: dict[ast.AST, tuple[ParsedFile, Shows, dict[str, Any]]] = {}

    def add(self, file: ParsedFile, node: ast.AST, shows: Shows, facts: dict[str, Any]) -> None:
        known = self.found.get(node)
        if known is None or severity(shows, facts) > severity(*known[1:]):
            self.found[node] = (file, shows, facts)


def _is_literally_volatile(call: ast.AST) -> bool:
    """Whether a call says ``volatile=True`` itself, and does not hand on a flag of its callers."""
    return isinstance(call, ast.Call) and any(
        k.arg == "volatile" and isinstance(k.value, ast.Constant) for k in call.keywords
    )


@functools.lru_cache(maxsize=256)
def _calls_own_eval(definition: ast.AST) -> bool:
    own = receiver_name(definition)
    return any(method(n) == "eval" and isinstance(n, ast.Call) and is_own(n.func, own) for n in walk(definition))


_OF_WRAPPERS = words(
    "__code__ __defaults__ __kwdefaults__ getargspec getfullargspec torch.jit.script torch.jit.export "
    "torch.jit.script_method jit.script jit.export"
)
"""What tells a decorated function from its own: unlike ``inspect.signature``, these do not follow ``__wrapped__``, and
TorchScript compiles no wrapper."""

_WRAPPERS_NAMED = re.compile("|".join(sorted({re.escape(path.rpartition(".")[2]) for path in _OF_WRAPPERS})))


def _is_of_wrappers(node: ast.Attribute | ast.Name) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _OF_WRAPPERS
    return node.attr in _OF_WRAPPERS or (
        isinstance(node.value, (ast.Attribute, ast.Name)) and ast.unparse(node) in _OF_WRAPPERS
    )


def _tells_wrappers(tree: ast.AST) -> bool:
    return any(isinstance(n, (ast.Attribute, ast.Name)) and _is_of_wrappers(n) for n in walk(tree))


RULE = GradInEvaluation
