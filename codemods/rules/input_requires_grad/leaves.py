"""Tensors that ask for gradients, and whether anything would miss these."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator
from functools import cached_property

from codemods.graph.model.facts.libraries import LOSS_LIBRARIES
from codemods.graph.model.facts.operations import FACTORIES
from codemods.graph.model.kinds import WRITTEN, Altered, CarrierKind, Escape, Marked, NodeKind, UnseenKind
from codemods.graph.model.nodes import Carrier, Node, Place, Unseen, all_ancestors
from codemods.graph.model.opacity import opaque
from codemods.graph.model.program import ParsedFile, receiver_name
from codemods.graph.model.trace import Mark, Trace
from codemods.graph.model.values import Instance, Unknown, options_of
from codemods.proofs.observations import Shows
from codemods.proofs.reach import library_model, maybe_frozen, spread
from codemods.proofs.syntax import is_own
from codemods.proofs.unseen import Outside, Way, ways_out
from codemods.source import walking
from codemods.source.walking import called

_READS = frozenset({Marked.GRADIENT_READ, Marked.GRADIENTS_CHANGED, Marked.HOOK, Marked.OPTIMIZED})
"""Marks about the gradient of a tensor; where it cannot be seen which one, it may be any."""

_ASKS = frozenset({*_READS, Marked.REQUIRES_GRAD_READ, Marked.IS_LEAF_READ, Marked.ERROR_CAUGHT})
"""Marks about a tensor that has a history, and about one that is no leaf."""

_PASSES = frozenset({Marked.REENTRANT_CHECKPOINT, Marked.CUSTOM_FUNCTION})
_CONSTANT = frozenset({"zeros", "ones", "full", "eye", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones"})
_FILLED = FACTORIES - {"tensor", "from_numpy", "as_tensor", "Tensor", "FloatTensor", "load", "new_tensor"}


class Leaves:
    """Says of each tensor that asks for gradients whether anything would miss them."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        found = [n for n in trace.nodes if n.leaf]
        # a module's top level has run before this run began
        found += [n for walk in trace.walks for n in walk.seen if n.leaf]
        found += [n for mark in trace.marks for n in mark.of or () if n.leaf]
        self.leaves = [n for n in dict.fromkeys(found) if n.label == "input"]
        self.known = {carrier: leaf for leaf in self.leaves for carrier, _ in leaf.stores}
        self.outside = Outside(trace)

    @cached_property
    def read(self) -> set[Node]:
        """The leaves whose gradients something takes, or may take."""
        found: set[Node] = set()
        for mark in self.trace.marks:
            if mark.kind in _READS:
                found.update(self._before(mark) if mark.of is None else self._behind(mark))
            elif mark.kind is Marked.MODULE_HOOK and "backward" in ast.unparse(
                getattr(mark.place.node, "func", mark.place.node)
            ):
                found.update(self.leaves)
        # what a reentrant checkpoint or an autograd.Function gets decides whether their parameters learn
        passing = [n for mark in self.trace.marks if mark.kind in _PASSES for n in mark.of or ()]
        for walk in self.trace.walks:
            if walk.inputs is None:
                # what gradients are taken of, and cannot be seen, may be any of them
                found.update(self.leaves)
            unseen = walk.inputs is None or maybe_frozen(walk)
            found.update(n for n in walk.seen if n.leaf and unseen)
            passing += walk.inputs or () if not unseen else ()
        found.update(n for n in all_ancestors(passing) if n.leaf)
        found.update(n for n in self.leaves if any(Escape.GRAPH_READ in one.escapes for one in n.descendants()))
        return found

    @cached_property
    def used_again(self) -> set[Node]:
        """What a backward finds that an earlier one has been through."""
        return {node for walk in self.trace.walks for node, _ in walk.again}

    def _before(self, mark: Mark) -> Iterator[Node]:
        """The leaves that a mark of something unseen may be about: an optimizer takes none that is made later."""
        return (leaf for leaf in self.leaves if mark.kind is not Marked.OPTIMIZED or leaf.birth < mark.place.clock)

    @staticmethod
    def _behind(mark: Mark) -> Iterator[Node]:
        return spread(mark.of or (), lambda n: n.parents if n.kind in (NodeKind.PHI, NodeKind.PART) else ())

    @cached_property
    def candidates(self) -> dict[Node, None]:
        """The leaves whose gradients nothing takes, and whose variables hold none whose gradients are."""
        held = {carrier for leaf in self.read for carrier, _ in leaf.stores}
        return {
            leaf: None
            for leaf in self.leaves
            if leaf not in self.read and not any(carrier in held for carrier, _ in leaf.stores)
        }

    @cached_property
    def affected(self) -> dict[Node, bool]:
        """What is computed from a candidate, and whether it is attached without the candidates on every path."""
        nodes = {n for leaf in self.candidates for n in leaf.descendants()}
        known: dict[Node, bool] = {}
        loose: dict[Carrier, None] = {}
        for node in sorted(nodes, key=lambda n: n.birth):
            if node.leaf:
                sure = False
            else:
                attached = [p for p in node.parents if self._attached(p, known)]
                carriers = dict(loose)
                if len(attached) < len(node.parents):
                    # a list of terms that begins with a candidate: a loop that runs no turn adds none
                    carriers.update((c, None) for p in attached for c, _ in p.stores if c.kind is CarrierKind.ELEMENT)
                parents = [p in attached and not self._skipped(p, node.place, carriers) for p in node.parents]
                either = node.kind is NodeKind.PHI or (node.kind is NodeKind.CALL and not _loss_class(node))
                sure = all(parents) if either else any(parents)
                sure = sure and (node.kind is not NodeKind.PHI or node.certain)
            known[node] = sure
            if not sure:
                loose.update((carrier, None) for carrier, _ in node.stores)
        self.loose = loose
        return known

    def _attached(self, node: Node, known: dict[Node, bool]) -> bool:
        if node in known:
            return known[node]
        if node.certain or node.kind in (NodeKind.PHI, NodeKind.ARGUMENT):
            return node.certain
        parents = (self._attached(p, known) for p in node.parents)
        return bool(node.parents) and (any(parents) if node.kind in (NodeKind.OP, NodeKind.MODULE) else all(parents))

    @staticmethod
    def _skipped(node: Node, taker: Place, loose: Iterable[Carrier]) -> bool:
        """Whether a loop that makes ``node`` may run no turn, so that its variable holds what it held before."""
        around = [loop for loop, _ in taker.turns()]
        if all(loop in around for loop, _ in node.place.turns()):
            return False
        carriers = set(loose)
        return any(carrier in carriers for carrier, _ in node.stores)

    @cached_property
    def borrowed(self) -> dict[ast.AST, UnseenKind | None]:
        """Where gradients are asked for of a tensor that was there before: whose it may be."""
        found: dict[ast.AST, UnseenKind | None] = {}
        for change in self.trace.alterations:
            if change.how is Altered.REQUIRES_GRAD and isinstance(change.value, Unknown):
                owners = [
                    o.kind for o in change.value.shadow if isinstance(o, Unseen) and o.kind is not UnseenKind.CALL
                ]
                if owners or change.place.node not in found:
                    found[change.place.node] = owners[0] if owners else None
        return found

    def _of_others(self, leaf: Node) -> bool:
        """Whether it may be a tensor of code that cannot be seen, a parameter perhaps, which was only asked here: it
        is theirs, or was made elsewhere and no code in sight computes its gradient."""
        at = leaf.place.node
        asked = at.func if isinstance(at, ast.Call) else at
        return asked in self.borrowed and (self.borrowed[asked] is not None or not leaf.walks)

    def judge(self, leaf: Node) -> Shows:
        """``fault`` (nobody would miss it), ``needed`` or ``unsure``."""
        if leaf in self.read or leaf not in self.candidates:
            return Shows.NEEDED
        if any(c.kind is CarrierKind.ELEMENT for c, _ in leaf.stores):
            return Shows.UNSURE
        if self._of_others(leaf) or _by_a_setting(leaf.place):
            return Shows.UNSURE
        affected = self.affected
        loose = {n for n in leaf.descendants() if not affected.get(n, True)}
        for walk in self.trace.walks:
            # the only leaf of a loss, perhaps
            if leaf in walk.seen and any(
                not affected.get(root, True) or self._skipped(root, walk.place, self.loose) for root in walk.roots
            ):
                return Shows.NEEDED
        asked = any(mark.kind in _ASKS and not loose.isdisjoint(mark.of or ()) for mark in self.trace.marks)
        if asked or self._may_raise(leaf, loose) or any(self._exposed(leaf, node) for node in loose):
            return Shows.UNSURE
        return Shows.FAULT

    def _may_raise(self, leaf: Node, loose: set[Node]) -> bool:
        """Whether a backward may raise for its sake, and be caught: the second that comes to its graph, or one behind
        a step of its optimizer or a write in place."""
        again = any(node.saves and not node.leaf and node in self.used_again for node in loose)
        return again or self._raises_by_a_step(leaf)

    def _raises_by_a_step(self, leaf: Node) -> bool:
        """Whether a caught backward walks what weights that have changed since were saved for, or data: only its
        gradient asks for them."""
        changes = [step.place.clock for step in self.trace.steps]
        changes += [mark.place.clock for mark in self.trace.marks if mark.kind is Marked.PARAMETERS_CHANGED]
        changes += [change.place.clock for change in self.trace.alterations if change.how in WRITTEN]
        mine = set(leaf.descendants())
        for walk in self.trace.walks:
            if walk.caught and any(n is leaf for n in walk.seen):
                before = [clock for clock in changes if clock < walk.place.clock]
                if before and any(n in mine and n.birth < max(before) for n in walk.seen):
                    return True
        return False

    def _exposed(self, leaf: Node, node: Node) -> bool:
        """Whether code that cannot be seen may come to a tensor that only has a history by ``leaf``."""
        losses = [c for c in node.children if _own_loss(c, leaf)]
        if any(opaque(child) and child not in losses and not library_model(child) for child in node.children):
            return True
        by_losses = {c.place.node for c in losses}
        for out in ways_out(node):
            by_loss = out.place is not None and out.place.node in by_losses
            if out.way is Way.ESCAPED or (out.way in (Way.STORED, Way.CALL) and not by_loss):
                return True
        return self.outside.keeps_node(node) or (
            self.outside.any and any(carrier.kind is CarrierKind.HELD for carrier, _ in node.stores)
        )

    @cached_property
    def inputs(self) -> set[Node]:
        """What goes into the forwards of models, itself or detached."""
        found: set[Node] = set()
        for value in (value for forward in self.trace.forwards for value in forward.args.all()):
            for option in options_of(value):
                found.update(n for n in (option.node, *getattr(option, "shadow", ())) if isinstance(n, Node))
        return found

    def taken(self, leaf: Node) -> bool:
        """Whether a backward or a model in sight gets it: else it may have been made for others to learn."""
        return bool(leaf.walks) or any(n.kind is NodeKind.MODULE or n in self.inputs for n in leaf.descendants())

    def lasting(self, leaf: Node) -> bool:
        """Whether it outlives the step and is made up rather than data: it looks like a parameter."""
        made = _maker(leaf.place.frame.file, leaf.place.node)
        if made is None:
            return False
        on_module = any(c.kind is CarrierKind.ATTRIBUTE for c, _ in leaf.stores) and _in_constructor(leaf.place)
        if on_module:
            return True
        if made in _CONSTANT:
            return False
        around = {id(loop) for loop, _ in leaf.place.turns()}
        walked = {tuple((id(o), turn) for o, turn in w.place.turns() if id(o) not in around) for w in leaf.walks}
        return len(walked) > 1


def _by_a_setting(place: Place) -> bool:
    """Whether a forward asks for it only where a setting of the module says so: a reentrant checkpoint wants that."""
    file, definition = place.frame.file, place.frame.definition
    if definition is None or not isinstance(place.frame.receiver, Instance) or not place.frame.receiver.cls.is_module:
        return False
    own = receiver_name(definition)
    around = itertools.takewhile(lambda outer: outer is not definition, file.outward(place.node))
    tests = (outer.test for outer in around if isinstance(outer, (ast.If, ast.IfExp)))
    return any(isinstance(n, ast.expr) and is_own(n, own) for test in tests for n in walking.walk(test))


def _loss_class(node: Node) -> bool:
    known = any(node.label.startswith(f"{path}.") for path in LOSS_LIBRARIES)
    return node.kind is NodeKind.CALL and known and "Loss" in node.label.rpartition(".")[2]


def _own_loss(node: Node, leaf: Node) -> bool:
    """Whether a node is what a loss class of a library makes of tensors, none of which was computed from ``leaf``
    before: such a loss has nothing to take the gradient of."""
    if not _loss_class(node):
        return False
    return not any(
        p is not leaf and not p.leaf and p.kind is not NodeKind.OP and leaf in p.ancestors() for p in node.parents
    )


def _maker(file: ParsedFile, node: ast.AST) -> str | None:
    """The name of the factory that made the tensor at ``node`` up, None for data."""
    if isinstance(node, ast.Attribute):
        return None
    while isinstance(node, ast.Call):
        path = file.named(node.func)
        name = called(node) if path.startswith("torch.") or (isinstance(node.func, ast.Attribute) and not path) else ""
        if name in _FILLED:
            return name
        if name in ("tensor", "Tensor", "FloatTensor") and node.args and all(_literal(a) for a in node.args):
            return name
        if name == "Variable" and node.args:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute):
            # torch.randn(3).to(device).requires_grad_()
            node = node.func.value
        else:
            return None
    return None


def _literal(node: ast.expr) -> bool:
    return all(
        isinstance(n, (ast.Constant, ast.List, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)) for n in ast.walk(node)
    )


def _in_constructor(place: Place) -> bool:
    return any(getattr(p.frame.definition, "name", "") == "__init__" for p in place.chain())
