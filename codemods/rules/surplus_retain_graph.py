"""The rule ``surplus-retain-graph``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.graph.model.facts.saved import SAVES_NOTHING, SUMS
from codemods.graph.model.kinds import Escape, Marked, NodeKind, UnseenKind, UseKind, WalkKind
from codemods.graph.model.nodes import Node, Unseen, Walk, all_ancestors, all_descendants
from codemods.graph.model.trace import Trace
from codemods.graph.model.values import Instance
from codemods.proofs.early_changes import changes_of, refused
from codemods.proofs.handed_flags import Flag, flag_of
from codemods.proofs.observations import Decision, Observation, Shows, Site
from codemods.proofs.reach import library_model
from codemods.proofs.syntax import method
from codemods.proofs.unseen import Outside, Way, WayOut, computes, ways_out
from codemods.rules.base import Rule
from codemods.terms.edits import DropArgument, Edit, ReplaceExpression
from codemods.terms.findings import Finding, Promise, TrailStep

_KINDS = (NodeKind.LEAF, NodeKind.PHI)
"""What no walk can find freed: leaves gather gradients, and a join of paths is no operation."""

_SHUFFLING = (
    "random.",
    "copy.",
    "queue.",
    "heapq.",
    "multiprocessing.",
    "threading.",
    "operator.",
    "collections.",
    "functools.",
    "types.",
)
"""Uses that hand a tensor of a container out again where the simulation loses its track."""

_WRAPPERS = ("backward", "manual_backward")


class SurplusRetainGraph(Rule):
    """``retain_graph=True`` on a ``backward`` whose graph no later backward uses.

    Why it hurts: A forward saves tensors for the backward: inputs, outputs, weights. ``backward`` walks the graph and
    frees them. With the flag it keeps them: all these activations of the forward stay in memory until the last name
    that reaches them is bound again, most often until after the next forward, so that two graphs are alive at once.
    Often the flag was added to silence ``Trying to backward through the graph a second time`` and stayed when the cause
    was gone.

    The rewrite: The argument goes: ``retain_graph=True``, its old name ``retain_variables=True``, or the positional
    form, on ``loss.backward``, ``torch.autograd.backward`` and ``torch.autograd.grad``, or on the call of a function
    that only hands it on (``def backward(loss, **kw)``). Of several backwards over one shared graph only the last loses
    it.

    Left alone: a later backward or ``autograd.grad`` over any part of the graph, also under a condition, in the next
    iteration of a loop, in a helper, or in a closure that an optimizer calls several times, unless that part saves
    nothing (a parameter that is only moved, added or reshaped); ``create_graph=True``; a flag whose value cannot be
    seen; a loss or an intermediate that reaches code that cannot be seen (returned to an unseen caller, read
    through ``grad_fn``), or may lie under any key of a container; the backward of an ``autograd.Function``.

    Advice: a caller that cannot be seen gets part of the graph, or may call again over it, but only after a step that
    changes what a backward would need; the loss comes from code that cannot be seen, and no other backward does; the
    class of a model cannot be seen and might carry the graph itself; an argument that nobody in the tree passes, or
    something unseen that two losses share, might bring a graph; the graph stays on an object whose method nobody in the
    tree calls; a later backward uses what cannot be seen; part of the graph lies where it is not known; hooks of
    modules may keep activations; the flag comes out of a dictionary, a partial function or a parameter; the run was too
    long to be looked at to its end.

    Promise: exact. The graph is only freed earlier. Repair where the argument is ``retain_variables=``, which is
    refused today.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
    """

    name = "surplus-retain-graph"
    promise = Promise.EXACT
    summary = "retain_graph=True keeps a graph that no later backward uses"
    gate = (b".backward(", b"autograd.backward(", b"autograd.grad(", b"manual_backward(")

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        asked = [(i, walk, flag) for i, walk in enumerate(trace.walks) if (flag := flag_of(walk)) is not None]
        if not asked:
            return
        partly = not trace.complete or any("not entered" in note for note in trace.notes)
        judge = _Judge(trace)
        for i, walk, flag in asked:
            shows, why = judge.judge(i, walk)
            if partly and shows is Shows.FAULT:
                shows, why = Shows.ADVICE, "part of the program was not analysed"
            if flag.doubt and shows is Shows.FAULT:
                shows, why = Shows.ADVICE, flag.doubt
            yield self._note(walk, flag, shows, why)

    def _note(self, walk: Walk, flag: Flag, shows: Shows, why: str) -> Observation:
        made = max((r for r in walk.roots if r.parents), key=lambda r: r.birth, default=None)
        trail = [] if made is None else [(made.place.path, made.place.line)]
        return self.seen(
            flag.file, flag.call, shows, why=why, argument=flag.argument, made=trail, walker=walk.kind.value,
        )  # fmt: skip

    # deciding

    def decide_site(self, site: Site, decision: Decision) -> Iterator[Finding]:
        if site.faulty:
            yield from self._finding(site, decision, advice="")
        elif site.shows <= {Shows.FAULT, Shows.ADVICE}:
            why = next(o.facts["why"] for o in site.observations if o.shows is Shows.ADVICE)
            yield from self._finding(site, decision, advice=why)

    def _finding(self, site: Site, decision: Decision, *, advice: str) -> Iterator[Finding]:
        file = decision.files(site.path)
        call = file.find(site.span, ast.Call) if file is not None else None
        if file is None or not isinstance(call, ast.Call):
            return
        argument = site.facts["argument"]
        edits: tuple[tuple[str, Edit], ...] = ()
        name = "retain_graph" if argument is None or isinstance(argument, int) else argument
        if isinstance(argument, int) and argument + 1 < len(call.args):
            # create_graph follows by position and must keep its place
            edits = ((site.path, ReplaceExpression(file.span(call.args[argument]), "False")),)
        elif argument is not None:
            edits = ((site.path, DropArgument(site.span, argument)),)
        trail = [TrailStep(path, line, "graph produced here") for path, line in site.facts["made"]]
        trail.append(TrailStep(site.path, site.span.line, "kept here, and nothing uses it again"))
        walker = "backward" if site.facts["walker"] == "backward" else "autograd.grad"
        message = f"{name}=True keeps the graph of this {walker} in memory, but no later backward uses it"
        promise = Promise.REPAIR if name == "retain_variables" else Promise.EXACT
        if advice:
            message = (
                f"{name}=True keeps the graph of this {walker}, and no later backward in the tree uses it; {advice}"
            )
        yield self.finding(
            site,
            message,
            f"drop `{name}=True`" if edits else f"call it without `{name}=True`",
            edits,
            promise=Promise.ADVICE if advice else promise,
            trail=trail,
            likely=promise if advice and edits else None,
        )


class _Judge:
    """Says of each walk whether its graph is needed afterwards."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.order = {id(walk): i for i, walk in enumerate(trace.walks)}
        self.sources = [_sources(walk) for walk in trace.walks]
        # a backward over something unknown may walk any graph
        self.blind = [
            i
            for i, walk in enumerate(trace.walks)
            if not walk.roots
            or any(_orphan(n) for n in walk.seen)
            or any(u.kind is UnseenKind.LOST for u in self.sources[i].values())
        ]
        self.exposed, self.left = _exposed(trace)
        self.changes = trace.once(changes_of)
        self.hooked = any(mark.kind is Marked.MODULE_HOOK for mark in trace.marks)

    def judge(self, index: int, walk: Walk) -> tuple[Shows, str]:
        """``fault`` (surplus), ``needed``, ``advice`` or ``unsure``; what an advice says of it."""
        graph = [n for n in walk.seen if n.kind not in _KINDS]
        orphans = [n for n in graph if _orphan(n)]
        if not graph or (orphans and not self._made_for_it(index, walk, orphans)):
            return Shows.UNSURE, ""
        if walk.kind is WalkKind.BACKWARD and method(walk.call) not in ("", *_WRAPPERS):
            # what an unseen wrapper does with the flag nobody knows
            return Shows.UNSURE, ""
        kept = [node for node in walk.seen if not (node.leaf or _frees_nothing(node))]
        # a graph of the module's top level may have been walked in another run
        if any(self.order.get(id(other), -1) > index for node in kept for other in node.walks):
            return Shows.NEEDED, ""
        exposed, again = any(id(node) in self.exposed for node in kept), self._called_again(walk, graph)
        if again is None or (exposed and not self._returned_too_late(walk, kept)):
            return Shows.UNSURE, ""
        # forwards share what parametrizations compute
        shared = any(first < n.birth < last for n in graph for first, last in self.trace.shared_weights)
        if shared or self._shares_unseen(index):
            return Shows.UNSURE, ""
        if orphans:
            return Shows.ADVICE, "the loss comes from code that cannot be seen"
        if any(later > index for later in self.blind):
            return Shows.ADVICE, "a later backward uses a graph that cannot be seen"
        if self.hooked:
            return Shows.ADVICE, "hooks of modules may keep activations"
        shows, doubt = self._doubts(walk, graph, index)
        if shows is Shows.FAULT and (exposed or again):
            return Shows.ADVICE, "callers that cannot be seen may come to its graph, after the step"
        return shows, doubt

    def _returned_too_late(self, walk: Walk, graph: list[Node]) -> bool:
        """Whether code that cannot be seen gets parts of the graph only as what a call returns, and has most likely no
        use for them: the call also changes the parameters that a backward through any of them needs."""
        leaking = [node for node in all_descendants(graph) if _leaks(node)]
        return not any(map(_shuffled, leaking)) and all(
            all(out.way is Way.ESCAPED and out.name == Escape.RETURNED_TO_CALLER.value for out in _ways(node))
            and refused(node.ancestors(), walk.place, self.changes)
            for node in leaking
        )

    def _made_for_it(self, index: int, walk: Walk, orphans: list[Node]) -> bool:
        """Whether calls that cannot be seen made the loss, and no other backward goes through anything unseen."""
        made = all(any(o.kind is UnseenKind.CALL for o in _unseen(n)) for n in orphans)
        later = [self.trace.walks[i] for i in self.blind if i > index]
        return made and all(other.place.node is walk.place.node for other in later)

    def _shares_unseen(self, index: int) -> bool:
        """Whether a later walk takes gradients of what an unseen call made, of which this loss is computed too."""
        made = {key for key, unseen in self.sources[index].items() if unseen.kind is UnseenKind.CALL}
        later = enumerate(self.trace.walks[index + 1 :], index + 1)
        return any(_comes_from_unseen(walk) and not made.isdisjoint(self.sources[i]) for i, walk in later if made)

    def _called_again(self, walk: Walk, graph: list[Node]) -> bool | None:
        """Whether callers that cannot be seen may call the code around the walk again without building the whole graph
        anew, but most likely do not, because the code also changes what a second backward needs; None if they may."""
        kept = [n for n in graph if not _frees_nothing(n)]
        oldest = min((n.birth for n in kept), default=walk.place.clock)
        late = False
        for frame in walk.place.frame.outward():
            owner = frame.function.cls if frame.function is not None else None
            if owner is not None and owner.family == "function":
                # torch calls the backward of an autograd.Function
                return None
            if (frame.root or frame.handed) and oldest < frame.birth:
                late = refused([n for n in kept if n.birth < frame.birth], walk.place, self.changes)
                if not late:
                    return None
        return late

    def _doubts(self, walk: Walk, graph: list[Node], index: int) -> tuple[Shows, str]:
        for node in graph:
            unseen = node.kind is NodeKind.MODULE and node.label == "module"
            if unseen and not library_model(node) and not self._saved_here(node):
                return Shows.ADVICE, "the class of the model is not in the tree and may keep a graph between its calls"
            if node.kind is NodeKind.CALL and "." not in node.label:
                return Shows.ADVICE, f"what {node.label or 'an unseen call'}() keeps of the graph cannot be seen"
        for later in all_descendants(graph):
            if later.kind is NodeKind.CALL and later.birth > walk.place.clock and not computes(later.label):
                return Shows.ADVICE, f"what {later.label or 'an unseen call'}() does with the graph cannot be seen"
        for node in graph:
            if id(node) in self.left:
                return Shows.ADVICE, "code that cannot be seen may use the graph through its object"
        mine = self.sources[index]
        argument = next((u for u in mine.values() if u.kind is UnseenKind.ARGUMENT), None)
        if argument is not None and walk.with_gradient:
            return Shows.UNSURE, "it is part of a hand-written backward, which continues where this one ends"
        if argument is not None:
            return Shows.ADVICE, f"the argument `{argument.name}` may bring a graph that the caller uses too"
        shared = next((mine[key] for other in self.sources[index + 1 :] for key in mine if key in other), None)
        if shared is not None:
            return Shows.ADVICE, f"two losses share the result of `{shared.name}`, which may be part of the graph"
        if mine:
            name = next(iter(mine.values())).name
            return Shows.ADVICE, f"what {name or 'an unseen call'}() returns may be part of the graph"
        return Shows.FAULT, ""

    def _saved_here(self, node: Node) -> bool:
        """Whether the model comes whole out of a file, where otherwise one of the tree is called whose class the
        program saves whole: in a file stands the name of a class, and not its code (docs: torch.save, pickle)."""
        loaded = any(p.leaf and p.label == "torch.load" for p in node.parents)
        return loaded and any(
            forward.place.node is node.place.node
            and isinstance(forward.module, Instance)
            and forward.module.cls in self.trace.saved
            for forward in self.trace.forwards
        )


def _orphan(node: Node) -> bool:
    """Whether all that is known of the node is that a backward proved it attached."""
    return not node.parents and not node.leaf


def _frees_nothing(node: Node) -> bool:
    """Whether a backward leaves the node as it was; what it is computed from is asked for itself."""
    if node.kind is not NodeKind.OP:
        return node.kind is NodeKind.PHI
    return node.label in SAVES_NOTHING or node.label.removesuffix(":number") in SUMS


def _sources(walk: Walk) -> dict[int, Unseen]:
    """What may be graphs that cannot be seen, among all that the walked graph was computed from."""
    return {id(o): o for node in walk.seen for o in _unseen(node)}


def _unseen(node: Node) -> list[Unseen]:
    return [o for o in node.shadow if isinstance(o, Unseen)]


def _comes_from_unseen(walk: Walk) -> bool:
    """Whether the graph of an ``autograd.grad`` must be one that cannot be seen: what is in sight does not come from
    its inputs, and of an input that is not part of the graph there is no gradient (docs: torch.autograd.grad)."""
    if walk.kind is not WalkKind.GRAD or walk.call is None:
        return False
    if any(keyword.arg in (None, "allow_unused", "materialize_grads") for keyword in walk.call.keywords):
        return False
    seen = {id(node) for node in walk.seen}
    return walk.inputs is None or not any(id(node) in seen for node in walk.inputs)


def _exposed(trace: Trace) -> tuple[set[int], set[int]]:
    """The nodes that something computed from, or themselves, reached code that cannot be seen; and those that only
    stay on an object or in a global variable."""
    # what a method that nobody in sight calls leaves on its object, or in a global variable, others may find
    outside = Outside(trace)
    leaking = [n for n in trace.nodes if not n.leaf and _leaks(n)]
    staying = [n for n in trace.nodes if not n.leaf and outside.keeps_node(n, elements=False)]
    return (
        {id(node) for node in all_ancestors(leaking) if not node.leaf},
        {id(node) for node in all_ancestors(staying) if not node.leaf},
    )


def _ways(node: Node) -> list[WayOut]:
    return [out for out in ways_out(node) if out.way in (Way.ESCAPED, Way.STORED)]


def _leaks(node: Node) -> bool:
    return bool(_ways(node)) or _shuffled(node)


def _shuffled(node: Node) -> bool:
    return any(u.kind is UseKind.CALL and not u.detached and u.name.startswith(_SHUFFLING) for u in node.uses)


RULE = SurplusRetainGraph
