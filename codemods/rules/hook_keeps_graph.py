"""The rule ``hook-keeps-graph``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.nodes import Place
from codemods.graph.model.trace import Storing, Trace
from codemods.graph.model.values import Sequence, Tensor
from codemods.proofs.carried import Ledger
from codemods.proofs.containers import emptied, filled, piles
from codemods.proofs.observations import Observation
from codemods.proofs.syntax import bare_method, everywhere, method
from codemods.proofs.turns import limited, named
from codemods.proofs.unseen import leaves_sight
from codemods.rules._sites import SiteRule, detached
from codemods.rules.stored_graph.rule import StoredGraph
from codemods.source.walking import walk
from codemods.terms.findings import Promise
from codemods.terms.spans import Span

_REGISTERING = frozenset(("register_forward_hook", "register_forward_pre_hook", "register_module_forward_hook"))


class HookKeepsGraph(SiteRule):
    """A forward hook that puts what a layer takes or gives into a list, with its graph, and nobody empties the list.

    Why it hurts: the hook runs in every forward, in training as in evaluation. What it keeps holds the graph of its
    step, with the activations that the graph still needs, so memory grows with every forward although one look at the
    values was all that was meant.

    Left alone: lists that are emptied or made anew while training goes on, and a ``deque`` with a ``maxlen``; hooks
    that are taken away by their handles, or that look at how much they have kept (``if len(kept) < 3``), at a count or
    at a flag; entries that are replaced; what the hook detaches; hooks that run without gradients; what a later
    backward uses (distillation, penalties on activations) or code gets that cannot be seen; lists of which the program
    reads values (``stored-graph`` detaches these).

    Advice: store ``output.detach()`` in the hook. This is likely: the edit is made where a run shows that it holds.
    Take the hook away when it has done its work, by the handle that ``register_forward_hook`` returns.

    Promise: advice, as it cannot be seen where the list is read; exact where a run shows that nobody needs the graphs.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook
    """

    name = "hook-keeps-graph"
    likely = Promise.EXACT
    summary = "a forward hook piles up activations with their graphs"
    gate = (b"register_forward_hook", b"register_forward_pre_hook", b"register_module_forward_hook")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete or not trace.hooks or not trace.walks:
            return
        by_site: dict[int, list[Storing]] = {}
        for storing in trace.storings:
            if storing.place.frame.definition in trace.hooks and isinstance(storing.container, Sequence):
                by_site.setdefault(id(storing.place.node), []).append(storing)
        if not by_site:
            return
        ledger = trace.once(Ledger)
        mended: set[tuple[str, Span]] = {(o.path, o.span) for o in StoredGraph().observe(trace)}
        for storings in by_site.values():
            place = storings[0].place
            file, node = place.frame.file, place.statement or place.node
            if (file.path, file.span(node)) in mended:
                continue
            found = next(piles(ledger, storings), None)
            if found is None or any(_used(ledger, s) or emptied(trace, s) for s in storings) or _ends(trace, place):
                yield self.fine(file, node)
                continue
            old, ending = found
            what = ast.unparse(storings[0].value_expr)
            yield self.fault(
                file, node,
                f"this hook keeps `{what}` of every forward with its graph: memory grows",
                f"store `{what}.detach()`" if isinstance(found[0].value, Tensor) else "detach what is stored",
                (old.place, "kept here in every forward"),
                (ending.place, "the step ends here, and nothing empties the list"),
                edits=detached(file, old),
            )  # fmt: skip


def _ends(trace: Trace, place: Place) -> bool:
    """Whether a hook stops keeping what it gets: it is taken away by its handle, or has a limit of its own."""
    if limited(place, ast.unparse(filled(place))):
        return True
    nodes = list(everywhere(trace))
    removed = any(bare_method(node) == "remove" for _, node in nodes)
    registered = [(file, node) for file, node in nodes if method(node) in _REGISTERING]
    mine = [each for each in registered if _about(each[1], place.frame.definition)]
    for file, call in mine or registered:
        parent = file.parent(call)
        entered = isinstance(parent, ast.Call) and named(parent.func) == ".enter_context"
        if isinstance(parent, ast.withitem) or entered or (removed and not isinstance(parent, ast.Expr)):
            return True
    return False


def _about(call: ast.AST, hook: ast.AST | None) -> bool:
    """Whether a call registers a hook, by its name or as it stands there."""
    name = getattr(hook, "name", "")
    return any(node is hook or (name and named(node).lstrip(".") == name) for node in walk(call))


def _used(ledger: Ledger, storing: Storing) -> bool:
    """Whether the stored graph may be used by way of the list: by its own step, or out of sight."""
    if leaves_sight(n for node in storing.nodes for n in node.descendants()):
        return True
    container = getattr(storing.container, "oid", 0)
    for node in storing.nodes:
        walked = max((w.place.clock for w in node.walks), default=0)
        for reading in ledger.readings_of.get(node, ()):
            hooked = reading.place.frame.definition in ledger.trace.hooks
            if not hooked and container in reading.containers and storing.place.clock < reading.place.clock < walked:
                return True
    return False


RULE = HookKeepsGraph
