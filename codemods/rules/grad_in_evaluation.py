"""The rule ``grad-in-evaluation``."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from codemods.edits.model import AddDecorator, DropArgument, Edit, WrapBlock
from codemods.findings import Finding, Promise, Span, TrailStep
from codemods.gates import form
from codemods.graph import facts
from codemods.graph.facts import WITH_INDICES
from codemods.graph.program import ParsedFile
from codemods.graph.trace import Forward, Frame, Place, Ran, Trace
from codemods.graph.values import Instance, Node, all_ancestors, all_descendants
from codemods.rules.base import Decision, Observation, Rule, Site, sites

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)

_NEED_GRADIENTS = {
    "requires_grad": "an input asks for gradients",
    "grad-read": ".grad is read",
    "hook": "a gradient hook is registered",
    "module-hook": "a hook is registered",
    "enable_grad": "gradients are switched on inside",
    "set_grad_enabled": "gradients are switched on inside",
    "functional-gradient": "a functional gradient is taken",
    "graph-read": "the graph itself is read",
    "requires_grad-read": "the code branches on requires_grad",
    "gradients-changed": "gradients are changed",
}

_OTHER_KERNELS = frozenset(
    [
        "LSTM",
        "GRU",
        "MultiheadAttention",
        "TransformerEncoder",
        "TransformerEncoderLayer",
        "Transformer",
        "TransformerDecoder",
    ]
)
"""Modules that choose other kernels without gradients: results differ by 1e-8 to 5e-7 (ran; GRU was seen identical)."""


_LOOK_AT_NOTHING = frozenset(
    [
        "detach",
        "data",
        "method:size",
        "method:dim",
        "method:numel",
        "method:nelement",
        "method:type",
        "method:get_device",
    ]
)
"""Uses of a tensor that do not look at its values."""


_LEARNS = re.compile(r"^call:(.*[._])?(learn|train|fit|optimi[sz]e|minimi[sz]e|backprop)(_|$)")
"""Calls of code that cannot be seen, by whose names it may well walk what it is given."""

_STEPS = re.compile(r"\b\w*optim\w*\b|\bopt\b|\.parameters\(")
"""Arguments beside which a loss is given away to be walked: ``scaler(loss, optimizer)``."""

_LOOKS = re.compile(
    r"^call:([\w.]*[._])?(print|assert\w*|save\w*|show|im(show|write|save)|display|dump|write\w*|plot\w*|draw\w*|log(ged|ging)?"
    r"|report\w*|evaluat\w*|process\w*|visuali[sz]e\w*|record\w*)(_\w*)?$"
)
"""Calls of code that cannot be seen, and of whose results nothing is made, that by their names only look."""


class GradInEvaluation(Rule):
    """Evaluation code that builds autograd graphs which nobody walks.

    Why it hurts: A forward pass records a graph as long as gradients are on, whether or not a ``backward`` ever
    follows. Validation, testing, inference, action selection and sampling pay for it with the memory of all activations
    and with time; ``model.eval()`` changes dropout and batch norm, it does not switch recording off.

    The rewrite: A function that only evaluates gets ``@torch.no_grad()``; inside a function that also trains, and in
    module-level code, the smallest loop or block that only evaluates goes under ``with torch.no_grad():``. A literal
    ``volatile=True``, which means nothing since PyTorch 0.4, goes with it.

    Left alone: whatever reaches ``backward``, ``autograd.grad`` or ``.grad``, also inside a callee (adversarial
    attacks, forces from energies, gradient penalties); functions that training and evaluation share; callers that
    switch gradients off already; models whose parameters are all frozen; results that are handed to code that cannot be
    seen.

    Advice: a forward inside training code whose result is detached at once (a teacher, a target network); evaluation in
    a function that training shares; a model whose class is nowhere in the tree and is called in a way that may take
    gradients.

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
    )

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete:
            yield from self._poison(trace)
            return
        ledger = _Ledger(trace)
        yield from self._functions(trace, ledger)
        yield from self._statements(trace, ledger)
        yield from self._forwards(trace, ledger, training=bool(trace.walks))

    def _poison(self, trace: Trace) -> Iterator[Observation]:
        for frame in trace.frames:
            if isinstance(frame.definition, _FUNCTIONS):
                yield self.seen(frame.file, frame.definition, "function", "needed", why="budget")
        for ran in trace.ran:
            yield self.seen(ran.frame.file, ran.statement, "statement", "needed", why="budget")

    def _functions(self, trace: Trace, ledger: _Ledger) -> Iterator[Observation]:
        seen: dict[int, tuple[Frame, str, dict[str, Any]]] = {}
        for frame in trace.frames:
            if not isinstance(frame.definition, _FUNCTIONS) or frame.end < 0:
                continue
            verdict, facts = ledger.judge(frame.birth, frame.end + 1)
            if verdict == "quiet" and frame.grad is False and not frame.root:
                verdict = "covered"
            key = id(frame.definition)
            known = seen.get(key)
            if known is None or _severity(verdict) > _severity(known[1]):
                seen[key] = (frame, verdict, facts)
        for frame, verdict, facts in seen.values():
            if verdict != "quiet":
                assert frame.definition is not None
                yield self.seen(frame.file, frame.definition, "function", verdict, **facts)

    def _statements(self, trace: Trace, ledger: _Ledger) -> Iterator[Observation]:
        seen: dict[int, tuple[Ran, str, dict[str, Any]]] = {}
        for ran in trace.ran:
            verdict, facts = ledger.judge(ran.first, ran.last)
            known = seen.get(id(ran.statement))
            if known is None or _severity(verdict) > _severity(known[1]):
                seen[id(ran.statement)] = (ran, verdict, facts)
        for ran, verdict, facts in seen.values():
            if verdict != "quiet":
                yield self.seen(ran.frame.file, ran.statement, "statement", verdict, **facts)

    def _forwards(self, trace: Trace, ledger: _Ledger, *, training: bool) -> Iterator[Observation]:
        chains: dict[tuple[int, ...], Observation] = {}
        for forward in trace.forwards:
            if forward.grad is False:
                continue
            if not (training or forward.volatile or forward.mode in ("eval", "loaded")):
                # a self-test at the end of a model's file: nothing says that this is evaluation
                continue
            verdict, facts = ledger.judge(forward.first, forward.last)
            if verdict != "fault":
                continue
            if forward.method != "forward" and not ledger.applies_layers(forward.first, forward.last):
                # a method that looks at its parameters, not a forward
                continue
            places = forward.place.chain()
            key = tuple(id(p.statement) for p in places)
            made = ledger.made_in(forward.first, forward.last)
            reads = _reads(made, forward.last)
            if not (training or reads or forward.volatile or forward.place.turns() or _picks(made, 0)):
                # one forward of which nothing but a shape is looked at: a self-test of a model
                continue
            once = not (forward.volatile or forward.place.loops) and _is_dropped(forward.place)
            if once and not _reads(made, forward.last, since=forward.last):
                # run once for what it does on the way: to calibrate, to warm up, to let a compiler watch
                continue
            observation = self._chain(forward, facts, ledger.taught(made), reads)
            if key not in chains or (observation.facts["teaches"] and not chains[key].facts["teaches"]):
                chains[key] = observation
        yield from chains.values()
        yield from self._own_methods(trace, ledger)

    def _own_methods(self, trace: Trace, ledger: _Ledger) -> Iterator[Observation]:
        """Methods of a module that switch it to evaluation and compute with its parameters themselves."""
        for frame in trace.frames:
            definition = frame.definition
            if not (isinstance(definition, _FUNCTIONS) and isinstance(frame.receiver, Instance)):
                continue
            if frame.call is not None and frame.call.frame.inside_module:
                continue
            if not frame.receiver.cls.is_module or frame.end < 0 or not _calls_own_eval(definition):
                continue
            verdict, facts = ledger.judge(frame.birth, frame.end + 1)
            if verdict == "fault":
                first = definition.body[0]
                chain = ((frame.file.path, frame.file.span(definition), frame.file.span(first)),)
                yield self.seen(
                    frame.file,
                    definition,
                    "forward",
                    "fault",
                    chain=chain,
                    volatile=(),
                    dropped=(),
                    teaches=False,
                    reads="evaluated",
                    kernels=facts["kernels"],
                    padding=False,
                    unseen=False,
                )

    def _chain(self, forward: Forward, facts: dict[str, Any], teaches: bool, reads: str) -> Observation:
        chain = []
        for place in forward.place.chain():
            frame = place.frame
            definition = frame.definition
            if place.statement is None:
                continue
            chain.append(
                (
                    frame.file.path,
                    frame.file.span(definition) if isinstance(definition, _FUNCTIONS) else None,
                    frame.file.span(place.statement),
                )
            )
        volatile = tuple((p.frame.file.path, p.frame.file.span(p.node)) for p in forward.volatile)
        keywords = set(forward.args.keywords)
        return self.seen(
            forward.place.frame.file,
            forward.place.node,
            "forward",
            "fault",
            chain=tuple(chain),
            volatile=volatile,
            dropped=tuple(v for v, p in zip(volatile, forward.volatile, strict=True) if _is_literally_volatile(p.node)),
            teaches=teaches,
            reads="evaluated" if forward.mode == "eval" and reads else reads,
            kernels=facts.get("kernels", False),
            padding="src_key_padding_mask" in keywords,
            unseen=forward.method != "forward" and not isinstance(forward.module, Instance),
        )

    # deciding

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        yield from _Placement(self, observations, decision).findings()


class _Ledger:
    """What was recorded, needed and tampered with, as sorted clocks, so that any stretch of a run is judged at once."""

    def __init__(self, trace: Trace) -> None:
        needed = {id(n) for n in all_ancestors([n for n in trace.nodes if n.walks or n.escapes or _is_kept_unseen(n)])}
        real = [n for n in trace.nodes if n.kind not in ("leaf", "phi", "argument")]
        self._made = [n for n in real if n.certain]
        self._made.sort(key=lambda n: n.birth)
        self._births = [n.birth for n in self._made]
        self._kernels = sorted(n.birth for n in real if n.label in _OTHER_KERNELS)
        self._needed = sorted(n.birth for n in real if id(n) in needed)
        self._walks = sorted(w.place.clock for w in trace.walks)
        self._marks = sorted((m.place.clock, m.kind) for m in trace.marks if m.kind in _NEED_GRADIENTS)
        origins = [
            origin
            for walk in trace.walks
            if walk.kind == "backward"
            for node in walk.seen
            for origin in node.shadow
            if isinstance(origin, Node)
        ]
        self._taught = {id(node) for node in all_ancestors(origins)}

    def made_in(self, first: int, last: int) -> list[Any]:
        """The certain nodes made in a stretch."""
        return self._made[bisect_left(self._births, first) : bisect_left(self._births, last)]

    def applies_layers(self, first: int, last: int) -> bool:
        """Whether a module was applied in a stretch."""
        return any(n.kind == "module" for n in self.made_in(first, last))

    def taught(self, nodes: list[Any]) -> bool:
        """Whether something detached from one of the nodes (or computed of it) takes part in a loss."""
        return any(id(n) in self._taught for n in nodes)

    def judge(self, first: int, last: int) -> tuple[str, dict[str, Any]]:
        """``fault`` (graphs recorded for nothing), ``needed``, or ``quiet`` where nothing was recorded."""
        low = bisect_left(self._marks, (first, ""))
        marked = low < len(self._marks) and self._marks[low][0] < last
        if _count(self._walks, first, last):
            return "needed", {"walks": True, "marked": marked}
        if marked:
            return "needed", {"why": _NEED_GRADIENTS[self._marks[low][1]], "marked": True}
        if _count(self._needed, first, last):
            return "needed", {"flows": True}
        if not self.made_in(first, last):
            return "quiet", {}
        return "fault", {"kernels": _count(self._kernels, first, last) > 0}


def _is_kept_unseen(node: Node) -> bool:
    """Whether it was handed, with its graph, to a container that cannot be followed or to code that may walk it."""
    return any(kind.startswith("stored-unseen") or _may_walk(kind, place) for kind, place in node.uses)


def _is_dropped(place: Place) -> bool:
    """Whether nothing is made of what a call returns."""
    return isinstance(place.frame.file.parent(place.node), ast.Expr)


def _may_walk(kind: str, place: Place) -> bool:
    """Whether code that cannot be seen may well walk what it is given: by its name, because it gets an optimizer or
    parameters as well, or because nothing is made of what it returns, so that it must have done something."""
    if not kind.startswith("call:"):
        return False
    if _LEARNS.search(kind):
        return True
    call = place.node
    if not isinstance(call, ast.Call) or _is_onlooker(kind[5:]):
        return False
    if any(_STEPS.search(ast.unparse(a)) for a in (*call.args, *(k.value for k in call.keywords))):
        return True
    return _is_dropped(place) and not _LOOKS.search(kind)


def _is_onlooker(name: str) -> bool:
    return name.partition(".")[0] in facts.NUMERIC_LIBRARIES or name.rpartition(".")[2] in facts.LOGGING_METHODS


def _picks(made: list[Any], after: int) -> bool:
    """Whether indices are taken of a forward's results, from a moment on: a class, a token, an action."""
    return any(
        node.label in WITH_INDICES and not node.scalar and node.birth >= after
        for node in itertools.islice(all_descendants(made), 2000)
    )


def _reads(made: list[Any], after: int, since: int = 0) -> str:
    """What reads the results of a forward from the moment ``since`` on: ``data`` where tensors are taken out,
    ``number`` for losses only, or empty."""
    found = ""
    for node in itertools.islice(all_descendants(made), 2000):
        kinds = (kind.removeprefix("detached:") for kind, place in node.uses if place.clock >= since)
        if node.escapes or any(kind not in _LOOK_AT_NOTHING for kind in kinds):
            if not node.scalar:
                return "data"
            found = "number"
    return "data" if _picks(made, after) else found


def _count(clocks: list[int], first: int, last: int) -> int:
    return bisect_left(clocks, last) - bisect_left(clocks, first)


def _severity(verdict: str) -> int:
    return ("quiet", "fault", "covered", "needed").index(verdict)


_Chain = tuple[tuple[str, Span | None, Span], ...]


class _Placement:
    """Where ``no_grad`` goes: the function that only evaluates for all its callers, else the smallest block."""

    def __init__(self, rule: GradInEvaluation, observations: list[Observation], decision: Decision) -> None:
        self.rule = rule
        self.decision = decision
        self.functions = {(s.path, s.span): s for s in sites(observations, "function")}
        self.statements = {(s.path, s.span): s for s in sites(observations, "statement")}
        self.forwards = [o for o in observations if o.kind == "forward"]
        self.style = decision.options.no_grad_style

    def findings(self) -> Iterator[Finding]:
        """All findings."""
        decorated: dict[tuple[str, Span], list[Observation]] = defaultdict(list)
        blocks: dict[tuple[str, Span], list[Observation]] = defaultdict(list)
        advice: dict[tuple[str, Span], list[Observation]] = defaultdict(list)
        for forward in self.forwards:
            if _is_test(forward.facts["chain"][0][0]):
                continue
            self._own(forward, decorated, blocks, advice)
        for (path, span), forwards in sorted(decorated.items()):
            finding = self._decorate(path, span, forwards)
            if finding is not None:
                yield finding
        yield from self._wrap_all(blocks)
        for (path, span), forwards in sorted(advice.items()):
            yield self._advise(path, span, forwards)

    def _own(
        self,
        forward: Observation,
        decorated: dict[tuple[str, Span], list[Observation]],
        blocks: dict[tuple[str, Span], list[Observation]],
        advice: dict[tuple[str, Span], list[Observation]],
    ) -> None:
        chain: _Chain = forward.facts["chain"]
        for path, function, statement in chain:
            site = self.functions.get((path, function)) if function is not None else None
            if site is not None and site.faulty and self._may_decorate(path, site):
                decorated[(path, site.span)].append(forward)
                return
            if site is not None and any(o.verdict == "covered" for o in site.observations):
                # the callers switch gradients off: that is where the author does it
                return
            here = self.statements.get((path, statement))
            if here is not None and not here.faulty:
                # the statement serves training as well: what calls this function may know better
                if site is not None and (site.any("walks") or site.any("marked")) and function is not None:
                    self._advise_call(chain, function, forward, advice)
                    return
                if site is None or function is None:
                    return
                continue
            if here is not None:
                blocks[(path, statement)].append(forward)
            return

    def _advise_call(
        self,
        chain: _Chain,
        function: Span,
        forward: Observation,
        advice: dict[tuple[str, Span], list[Observation]],
    ) -> None:
        """A function that both trains and evaluates: the call that only evaluates is worth a look."""
        position = next(i for i, link in enumerate(chain) if link[1] == function)
        if position + 1 < len(chain):
            path, _, statement = chain[position + 1]
            here = self.statements.get((path, statement))
            if here is not None and here.faulty:
                advice[(path, statement)].append(forward)

    def _may_decorate(self, path: str, site: Site) -> bool:
        file = self.decision.files(path)
        node = file.find(site.span, *_FUNCTIONS) if file is not None else None
        if file is None or not isinstance(node, _FUNCTIONS):
            return False
        return node.name not in ("forward", "__init__", "__call__", "setup", "__getitem__", "__iter__", "__next__")

    # decorators

    def _decorate(self, path: str, span: Span, forwards: list[Observation]) -> Finding | None:
        file = self.decision.files(path)
        node = file.find(span, *_FUNCTIONS) if file is not None else None
        if file is None or not isinstance(node, _FUNCTIONS):
            return None
        site = self.functions[(path, span)]
        promise = self._promise(forwards, node, kernels=site.any("kernels"))
        message = f"{node.name}() only evaluates, but gradients are recorded in it and nothing ever walks them"
        edits: list[tuple[str, Edit]]
        if self.style == "with" and not _suspends(node):
            first = node.body[1] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body[0]
            edits = [(path, WrapBlock(file.span(first), file.span(node.body[-1]), "with {torch}.no_grad():"))]
            remedy = "wrap its body in `with torch.no_grad():`"
        else:
            edits = [(path, AddDecorator(span, "{torch}.no_grad()"))]
            remedy = "add `@torch.no_grad()`"
        edits += _drop_volatile(forwards)
        if _unseen(forwards):
            promise = Promise.ADVICE
            message += "; the class of the model is not in the tree and might take gradients inside"
        return self._finding(path, span, promise, message, remedy, edits, forwards)

    # blocks

    def _wrap_all(self, blocks: dict[tuple[str, Span], list[Observation]]) -> Iterator[Finding]:
        by_file: dict[str, dict[Span, list[Observation]]] = defaultdict(dict)
        for (path, span), forwards in blocks.items():
            by_file[path][span] = forwards
        for path, spans in sorted(by_file.items()):
            file = self.decision.files(path)
            if file is None:
                continue
            wraps: dict[tuple[Span, Span], list[Observation]] = defaultdict(list)
            for span, forwards in sorted(spans.items()):
                block = self._block(file, span, set(spans))
                if block is not None:
                    wraps[block] += forwards
            done: list[tuple[Span, Span]] = []
            for (first, last), forwards in sorted(wraps.items()):
                if any(_inside((first, last), other) for other in done):
                    continue
                done.append((first, last))
                yield self._wrap(file, first, last, forwards)

    def _block(self, file: ParsedFile, span: Span, evaluating: set[Span]) -> tuple[Span, Span] | None:
        """The first and last statement of the smallest block around an evaluating statement."""
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
            return file.span(loop), file.span(loop)
        function = file.enclosing(node, *_FUNCTIONS)
        around = self.functions.get((file.path, file.span(function))) if function is not None else None
        if around is not None and around.any("marked"):
            # an attack, a saliency map: its own forwards belong to it
            return None
        siblings = _suite(file, node)
        at = siblings.index(node)
        first = last = at
        while last + 1 < len(siblings) and self._wasted(file, siblings[last + 1]):
            last += 1
        while first > 0 and self._wasted(file, siblings[first - 1]) and file.span(siblings[first - 1]) in evaluating:
            first -= 1
        return file.span(siblings[first]), file.span(siblings[last])

    def _evaluating_loop(self, file: ParsedFile, node: ast.AST) -> ast.AST | None:
        outer = file.parent(node)
        while outer is not None and not isinstance(outer, (*_FUNCTIONS, ast.Lambda, ast.ClassDef, ast.Module)):
            if isinstance(outer, _LOOPS):
                return outer if self._wasted(file, outer) and not _switches_off(outer) else None
            outer = file.parent(outer)
        return None

    def _adds(self, file: ParsedFile, outer: ast.AST, inner: ast.AST, evaluating: set[Span]) -> bool:
        inside = file.span(inner)
        around = file.span(outer)
        return any(_inside((s, s), (around, around)) and not _inside((s, s), (inside, inside)) for s in evaluating)

    def _wasted(self, file: ParsedFile, node: ast.AST) -> bool:
        site = self.statements.get((file.path, file.span(node)))
        return site is not None and site.faulty and not _suspends(node)

    def _wrap(self, file: ParsedFile, first: Span, last: Span, forwards: list[Observation]) -> Finding:
        promise = self._promise(forwards, None)
        message = "this only evaluates, but gradients are recorded in it and nothing ever walks them"
        edits: list[tuple[str, Edit]] = [(file.path, WrapBlock(first, last, "with {torch}.no_grad():"))]
        edits += _drop_volatile(forwards)
        node = file.find(first, ast.stmt)
        teaches = any(f.facts["teaches"] and not f.facts["volatile"] for f in forwards)
        if teaches and not isinstance(node, _LOOPS):
            promise = Promise.ADVICE
            message = "the result of this forward enters a loss detached: it could run under no_grad"
        elif not isinstance(node, _LOOPS) and not any(
            f.facts["volatile"] or f.facts["reads"] in ("evaluated", "data") for f in forwards
        ):
            # nothing reads it, or only its loss is printed, of a model that trains: more likely a step that was
            # forgotten
            promise = Promise.ADVICE
            message = "no backward ever reaches this forward: either it belongs under no_grad, or a step was forgotten"
        elif self._shares_autocast(file, node):
            promise = Promise.ADVICE
            message += "; it stands in one autocast block with a training forward"
        if _unseen(forwards):
            promise = Promise.ADVICE
            message += "; the class of the model is not in the tree and might take gradients inside"
        return self._finding(file.path, first, promise, message, "wrap it in `with torch.no_grad():`", edits, forwards)

    def _shares_autocast(self, file: ParsedFile, node: ast.AST | None) -> bool:
        outer = file.parent(node) if node is not None else None
        while outer is not None and not isinstance(outer, _FUNCTIONS):
            if isinstance(outer, ast.With) and any("autocast" in ast.unparse(i.context_expr) for i in outer.items):
                return not self._wasted(file, outer)
            outer = file.parent(outer)
        return False

    # findings

    def _promise(self, forwards: list[Observation], node: ast.AST | None, *, kernels: bool = False) -> Promise:
        if any(f.facts["padding"] for f in forwards):
            return Promise.ADVICE
        if (kernels or any(f.facts["kernels"] for f in forwards)) and (node is None or _returns_value(node)):
            return Promise.EQUIVALENT
        return Promise.EXACT

    def _advise(self, path: str, span: Span, forwards: list[Observation]) -> Finding:
        message = (
            "this call only evaluates, but the function that it calls also trains: "
            "`with torch.no_grad():` around the call would save the graphs"
        )
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
    ) -> Finding:
        trail = tuple(
            dict.fromkeys(TrailStep(f.path, f.span.line, "graph produced here, and dropped unused") for f in forwards)
        )
        if promise is Promise.ADVICE:
            edits = []
        return Finding(self.rule.name, path, span, promise, message, remedy, trail[:4], tuple(edits))


def _drop_volatile(forwards: list[Observation]) -> list[tuple[str, Edit]]:
    calls = dict.fromkeys(v for f in forwards for v in f.facts["dropped"])
    return [(path, DropArgument(span, "volatile")) for path, span in calls]


def _is_literally_volatile(call: ast.AST) -> bool:
    """Whether a call says ``volatile=True`` itself, and does not hand on a flag of its callers."""
    return isinstance(call, ast.Call) and any(
        k.arg == "volatile" and isinstance(k.value, ast.Constant) for k in call.keywords
    )


def _is_test(path: str) -> bool:
    """Whether a file holds unit tests, which evaluate a little of everything and never run for long."""
    *folders, name = path.split("/")
    return (name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py") and any(
        folder in ("test", "tests", "testing", "unittests") for folder in folders
    )


@functools.lru_cache(maxsize=256)
def _calls_own_eval(definition: ast.AST) -> bool:
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr == "eval"
        and isinstance(n.func.value, ast.Name)
        and n.func.value.id == "self"
        for n in ast.walk(definition)
    )


def _unseen(forwards: list[Observation]) -> bool:
    """Whether all that runs are methods of a model whose class is not in the tree."""
    return all(f.facts["unseen"] for f in forwards)


def _inside(inner: tuple[Span, Span], outer: tuple[Span, Span]) -> bool:
    start, end = (inner[0].line, inner[0].column), (inner[1].end_line, inner[1].end_column)
    return (outer[0].line, outer[0].column) <= start and end <= (outer[1].end_line, outer[1].end_column)


def _suite(file: ParsedFile, node: ast.AST) -> list[ast.AST]:
    outer = file.parent(node)
    for name in ("body", "orelse", "finalbody"):
        suite = getattr(outer, name, None)
        if isinstance(suite, list) and node in suite:
            return suite
    return [node]


def _suspends(node: ast.AST) -> bool:
    """Whether it yields or awaits: a ``with`` around that leaks into the consumer."""
    stack = list(ast.iter_child_nodes(node))
    while stack:
        child = stack.pop()
        if isinstance(child, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            return True
        if not isinstance(child, (*_FUNCTIONS, ast.Lambda)):
            stack.extend(ast.iter_child_nodes(child))
    return False


def _switches_off(loop: ast.AST) -> bool:
    """Whether blocks of a loop are under ``no_grad`` already: its author switches gradients off by the statement."""
    return any(
        isinstance(n, ast.With) and any("no_grad" in ast.unparse(i.context_expr) for i in n.items)
        for n in ast.walk(loop)
    )


def _returns_value(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node))


RULE = GradInEvaluation
