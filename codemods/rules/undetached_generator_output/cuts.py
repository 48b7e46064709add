"""Where the graph of one network may end before the loss of another one.

An :class:`Attempt` looks at one backward whose gradients are wasted on some leaves, and proves on the simulated graph
that its cuts take these leaves away and nothing that anybody uses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from codemods.graph.model.facts.gradients import DETACHING
from codemods.graph.model.facts.operations import SCALAR_FUNCTIONS
from codemods.graph.model.kinds import CarrierKind, Marked, NodeKind, UseKind, WalkKind
from codemods.graph.model.nodes import Node, Place, Value, Walk
from codemods.graph.model.trace import Forward, Trace
from codemods.graph.model.values import Join, Tensor, Unknown
from codemods.proofs.gradients import Fate, Lives, holds, inside, leaf_masks
from codemods.proofs.reach import spread, told_apart
from codemods.proofs.syntax import names
from codemods.source import walking
from codemods.terms.edits import Edit, InsertStatements, WrapExpression

_ASKING = (UseKind.HISTORY_READ, UseKind.REFUSED, UseKind.IDENTITY)
"""What tells apart what has a graph, or which object it is."""

_OF_TENSORS = SCALAR_FUNCTIONS | {"L1Loss", "MSELoss", "SmoothL1Loss", "BCELoss", "Sub", "Div", "Pow"}


@dataclass(frozen=True, eq=False)
class Cut:
    """An expression that a call takes, and what it has given in one run: there the generator's graph ends."""

    call: Place
    expression: ast.expr
    nodes: tuple[Node, ...]
    penalty: ast.stmt | None = None
    """The statement after which the value has to ask for gradients again."""

    def edits(self) -> list[tuple[str, Edit]]:
        """The cut, and what a gradient penalty needs besides."""
        file = self.call.frame.file
        made: list[tuple[str, Edit]] = [(file.path, WrapExpression(file.span(self.expression), "", ".detach()"))]
        if self.penalty is not None:
            assert isinstance(self.penalty, ast.Assign)
            code = f"{ast.unparse(self.penalty.targets[0])}.requires_grad_()"
            made.append((file.path, InsertStatements(file.span(self.penalty), "after", code)))
        return made

    def through(self, node: Node) -> list[Node]:
        """What a node takes in by the expression, in whatever turn."""
        frame = next((p.frame for p in node.place.chain() if p.node is self.call.node), None)
        if frame is None:
            return []
        return [p for p in node.parents if holds(self.expression, frame, p) and not _made_at(p, self.call.node)]


@dataclass(eq=False)
class Attempt:
    """One backward whose gradients are wasted on some of its leaves, and the places where its graph may end."""

    trace: Trace
    lives: Lives
    walk: Walk
    fate: Fate
    cuts: list[Cut] = field(default_factory=list)
    shared: list[Place] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    """The nodes that the backward no longer comes to."""
    everything: list[Node] = field(default_factory=list)
    """The nodes of all walks, in order."""
    lenient: bool = False
    """Whether what cannot be seen counts as a tensor, which can be detached."""
    aside: bool = False
    """Whether it may also be what nothing that learns from this loss acts on: a factor, what an output is compared
    with."""

    raising: frozenset[int] = frozenset()
    """Walks that surely raise, by identity: nobody uses what they would give."""

    def run(self) -> bool:
        """Find the cuts; whether they leave nothing of the wasted part and touch nothing else."""
        walk, fate = self.walk, self.fate
        doubtful = self.lives.doubtful(walk)
        bits = {leaf: 1 if leaf in fate.wasted else 0 for leaf in walk.seen if leaf.leaf}
        bits |= dict.fromkeys(fate.used | doubtful, 2)
        self.masks = leaf_masks(walk.seen, bits)
        self.seen = {id(n) for n in walk.seen}
        self.dirty = {id(n): bool(self.masks[id(n)] & 1) for n in walk.seen}
        self.inputs = {n for w in self.trace.walks if w.kind is WalkKind.GRAD for n in w.inputs or ()}
        for node in walk.seen:
            if node.leaf or self._pure(node):
                continue
            entering = [p for p in node.parents if self._pure(p)]
            entering = [p for p in entering if not self._cut_off(node, p)]
            if not entering:
                continue
            cut = self._place(node, entering)
            if cut is None:
                return False
            self.cuts.append(cut)
            self._spread()
        return bool(self.cuts) and (self.aside or self._primary()) and self._covered()

    def _pure(self, node: Node) -> bool:
        return self.masks.get(id(node)) == 1

    def _cut_off(self, node: Node, parent: Node) -> bool:
        """Whether the cuts so far leave nothing of the generator behind ``parent``, as ``node`` takes it."""
        return not self.dirty[id(parent)] or any(parent in cut.through(node) for cut in self.cuts)

    def _kept(self, node: Node) -> Iterator[Node]:
        """The parents of a node that the cuts leave to it."""
        removed = [p for cut in self.cuts for p in cut.through(node)] if self.masks[id(node)] & 1 else []
        return (p for p in node.parents if id(p) in self.seen and p not in removed)

    def _spread(self) -> None:
        """Find anew which nodes still depend on a wasted leaf."""
        for node in sorted(self.walk.seen, key=lambda n: n.birth):
            if not node.leaf and self.dirty[id(node)]:
                self.dirty[id(node)] = any(self.dirty[id(p)] for p in self._kept(node))

    # where a cut may stand

    def _place(self, node: Node, entering: list[Node]) -> Cut | None:
        if any(p.leaf or not p.certain for p in entering):
            return None
        levels = _levels(node.place)
        for i, call in enumerate(levels):
            cut = self._at(call, entering)
            if cut is None or (i == 0 and not self._given(cut)):
                continue
            if i > 0 and not self._handed_on(levels[: i + 1], cut):
                return None
            verdict = self._conflict(cut)
            if verdict == "shared":
                if self._acts(cut):
                    self.shared.append(call)
                return None
            if verdict == "":
                return cut
        return None

    def _at(self, call: Place, entering: list[Node]) -> Cut | None:
        """The one expression at a call by which all of ``entering`` comes in."""
        outside: list[Node] = []
        stack = list(entering)
        while stack:
            node = stack.pop()
            if node.leaf:
                return None
            if inside(node, call):
                stack.extend(p for p in node.parents if id(p) in self.seen and self.masks[id(p)] & 1)
            elif node not in outside:
                outside.append(node)
        if len(outside) != 1 or not outside[0].certain:
            return None
        node = outside[0]
        if node in self.inputs:
            return self._penalty(node)
        expression = _expression(call, node)
        if expression is None or not self._detaches(node) or self._missed(node, call):
            return None
        return Cut(call, expression, (node,))

    @staticmethod
    def _missed(node: Node, call: Place) -> bool:
        """Whether code in a call asks for the graph of what it is given or computes of that, or which object it is, or
        keeps it."""

        def here(place: Place) -> bool:
            outer = (p for p in place.chain() if p.node is call.node and p.frame is call.frame)
            return any(at is not place and at.loops == call.loops for at in outer)

        made = spread([node], lambda one: [child for child in one.children if here(child.place)])
        return told_apart(node) or any(
            any(use.kind in _ASKING and not use.detached and here(use.place) for use in one.uses)
            or any(carrier.kind is not CarrierKind.LOCAL and here(place) for carrier, place in one.stores)
            for one in made
        )

    def _penalty(self, node: Node) -> Cut | None:
        """A gradient is taken of ``node`` itself: it is cut where it is computed from the fake."""
        statement, frame = node.place.statement, node.place.frame
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        if not isinstance(statement.targets[0], (ast.Name, ast.Attribute)) or not holds(
            statement.targets[0], frame, node
        ):
            return None
        outside: list[tuple[Node, Node]] = []
        stack = [(node, node)]
        while stack:
            one, taker = stack.pop()
            if one.leaf:
                return None
            if one.place.statement is statement and one.place.frame is frame and one.place.loops == node.place.loops:
                stack.extend((p, one) for p in one.parents if self._pure(p))
            else:
                outside.append((one, taker))
        if len(outside) != 1 or not self._detaches(outside[0][0]) or any(use.kind in _ASKING for use in node.uses):
            return None
        fake, taker = outside[0]
        expression = _expression(taker.place, fake)
        if expression is None:
            return None
        asked = any(m.kind is Marked.REQUIRES_GRAD and m.place.frame is frame and m.place.clock > node.birth
                    and _asks(m.place.node, statement) for m in self.trace.marks)  # fmt: skip
        return Cut(taker.place, expression, (fake,), None if asked else statement)

    def _detaches(self, node: Node) -> bool:
        return self.lenient or self._tensor(node)

    @staticmethod
    def _tensor(node: Node) -> bool:
        """Whether a node is known to be that of a tensor: by what made it, or because something takes it that takes
        nothing else."""
        found = spread([node], lambda n: n.parents if n.kind is NodeKind.PHI and not _taken_as_tensor(n) else ())
        return all(
            n.kind is NodeKind.PHI
            or (n.kind in (NodeKind.OP, NodeKind.MODULE) and n.label not in ("module", "forward"))
            or _taken_as_tensor(n)
            for n in found
        )

    def _given(self, cut: Cut) -> bool:
        """Whether a forward got the tensor itself there, not a list of such; operations take nothing else."""
        mine = [f for f in self.trace.forwards if f.place.node is cut.call.node and f.place.frame is cut.call.frame]
        if not mine:
            return not any(cut.call.node is p.node for n in cut.nodes for c in n.children for p in c.place.chain()[1:])
        values = [v for f in mine for e, v in arguments(f) if e is cut.expression]
        if any(node_of(v) in cut.nodes for v in values):
            return True
        unseen = all(isinstance(o, Unknown) for v in values for o in (v.options if isinstance(v, Join) else (v,)))
        return unseen and (self.lenient or all(map(_taken_as_tensor, cut.nodes)))

    def _handed_on(self, levels: list[Place], cut: Cut) -> bool:
        """Whether the functions between only hand their argument on, under its name."""
        for inner in levels[:-1]:
            mine = self._at(inner, list(cut.nodes))
            if mine is None or not isinstance(mine.expression, ast.Name):
                return False
            if inner is levels[0] and not self._given(mine):
                return False
            definition = inner.frame.definition
            if not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return False
            name, spec = mine.expression.id, definition.args
            if name not in {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}:
                return False
            if name in names(definition, ast.Store):
                return False
        return True

    def _conflict(self, cut: Cut) -> str:
        """Why a cut would take something away that is needed: ``shared`` if this very value is, else ``other``."""
        entering = [(n, taken) for n in self.everything if (taken := cut.through(n))]
        mine = {id(n) for n, taken in entering if cut.nodes[0] in taken and any(w is self.walk for w in n.walks)}
        for other in self.trace.walks:
            if other is self.walk or other.kind is not WalkKind.BACKWARD or id(other) in self.raising:
                continue
            used = self.lives.fate(other).used | self.lives.doubtful(other)
            if not used:
                continue
            masks: dict[int, int] | None = None
            for node, taken in entering:
                if not any(w is other for w in node.walks):
                    continue
                if masks is None:
                    masks = leaf_masks(other.seen, dict.fromkeys(used, 1))
                if any(masks.get(id(p)) for p in taken):
                    return "shared" if id(node) in mine else "other"
        return ""

    # what the cuts do

    def _primary(self) -> bool:
        """Whether the fake goes through the layers that learn from this loss: no mere comparison with an output."""
        return any(self._acts(cut) for cut in self.cuts)

    def _acts(self, cut: Cut) -> bool:
        """Whether parameters that learn from this loss act on what the cut gives, in the call that it stands in."""
        leaves = self.fate.used
        for node in self.walk.seen:
            if not any(p in leaves for p in node.parents):
                continue
            here = cut.penalty is not None or _made_at(node, cut.call.node)
            if here and cut.nodes[0] in node.ancestors():
                return True
        return False

    def _covered(self) -> bool:
        """Whether the backward no longer comes to any wasted leaf."""
        reached = {id(node) for node in spread(self.walk.roots, self._kept)}
        self.gone = self.seen - reached
        return not any(id(leaf) in reached for leaf in self.fate.wasted) and any(
            id(leaf) in reached for leaf in self.fate.used
        )

    def overwritten(self) -> bool:
        """Whether what is cut is changed in place by the call that takes it: with the cut, behind the graph's back."""
        calls = {id(cut.call.node) for cut in self.cuts}
        return any(
            change.value.node is not None
            and id(change.value.node) in self.gone
            and any(id(place.node) in calls for place in change.place.chain())
            for change in self.trace.alterations
        )

    def lost(self) -> list[tuple[tuple[str, int], tuple[str, int]]]:
        """The leaves that the backward no longer comes to, each with the place of that backward."""
        at = (self.walk.place.path, self.walk.place.line)
        gone = [n.place for n in self.walk.seen if n.leaf and id(n) in self.gone]
        return [(at, (place.path, place.line)) for place in gone]

    def trail(self, call: Place, later: Walk | None = None) -> list[tuple[str, int, str]]:
        """Where the generator's graph was produced, enters this loss, is walked and its gradients are cleared."""
        made = self.cuts[0].nodes[0].place if self.cuts else None
        steps = [(made.path, made.line, "graph produced here")] if made is not None else []
        steps.append((call.path, call.line, "taken into this loss here"))
        steps.append((self.walk.place.path, self.walk.place.line, "walked here, down to what made it"))
        if later is not None:
            steps.append((later.place.path, later.place.line, "used again here"))
        steps += [(c.place.path, c.place.line, "the gradients are cleared here") for c in self.fate.clears[:1]]
        return steps


def _taken_as_tensor(node: Node) -> bool:
    """Whether the program detaches it, computes a loss of it, or does arithmetic with it that no list knows."""
    return any(use.kind is UseKind.DETACH and not use.detached for use in node.uses) or any(
        child.kind in (NodeKind.OP, NodeKind.MODULE) and child.operation in _OF_TENSORS for child in node.children
    )


def _levels(place: Place) -> list[Place]:
    """The calls around an operation, innermost first, that are not part of a forward."""
    chain = place.chain()
    inner = 0
    for i, at in enumerate(chain):
        if at.frame.inside_module and getattr(at.frame.definition, "name", "") in ("forward", "__call__"):
            inner = i + 1
    return chain[inner:]


def _expression(call: Place, node: Node) -> ast.expr | None:
    """The expression at a call, or in an operation, that gives ``node``: the outermost, if there is only one."""
    root = call.node
    found: list[ast.expr] = []
    stack: list[ast.AST] = [root]
    if isinstance(root, ast.Call):
        stack = [*root.args, *(k.value for k in root.keywords)]
        if isinstance(root.func, ast.Attribute):
            stack.append(root.func.value)
    while stack:
        one = stack.pop()
        if isinstance(one, ast.expr) and one is not root and holds(one, call.frame, node):
            found.append(one)
            continue
        if isinstance(one, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp, ast.Starred)):
            continue
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in DETACHING:
            # what it is called on comes in without its graph
            continue
        stack.extend(walking.children(one))
    return found[0] if len(found) == 1 else None


def arguments(forward: Forward) -> Iterator[tuple[ast.expr, Value]]:
    """The expressions that a forward was given, with their values."""
    call = forward.args.call
    if call is None or call is not forward.place.node or forward.args.more:
        return
    if len(call.args) == len(forward.args.positional):
        yield from zip(call.args, forward.args.positional, strict=True)
    for keyword in call.keywords:
        if keyword.arg in forward.args.keywords:
            yield keyword.value, forward.args.keywords[keyword.arg]


def _made_at(node: Node, call: ast.AST) -> bool:
    return any(place.node is call for place in node.place.chain())


def node_of(value: Value) -> Node | None:
    return value.node if isinstance(value, Tensor) else None


def _asks(node: ast.AST, made: ast.Assign) -> bool:
    """Whether ``x.requires_grad_()`` or ``x.requires_grad = True`` is about what a statement makes, there or later."""
    if node is made.value:
        return True
    if isinstance(node, ast.Call):
        node = node.func
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == ast.unparse(made.targets[0])
