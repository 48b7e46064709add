"""The rule ``undetached-generator-output``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from codemods.edits.model import Edit, InsertStatements, WrapExpression
from codemods.findings import Finding, Promise, Span, TrailStep
from codemods.graph.trace import Forward, Place, Trace, Walk
from codemods.graph.values import Node, Tensor, Value
from codemods.rules._carried import SURPLUS, crossed, paired
from codemods.rules._gradients import Fate, Lives, holds, inside, leaf_masks
from codemods.rules.base import Decision, Observation, Rule, Site, sites

_HOOKS = frozenset({"hook"})


class UndetachedGeneratorOutput(Rule):
    """A discriminator's loss that back-propagates through the generator, for gradients that are thrown away.

    In the discriminator's step of a GAN only the discriminator learns. If its loss sees ``D(fake)`` with ``fake`` still
    attached, ``backward`` goes on through the whole generator: it computes gradients that ``zero_grad`` clears before
    the generator's own step, and it keeps the generator's activations until then. Where ``fake`` is used again for the
    generator's loss, ``retain_graph=True`` has to keep both graphs alive; without it the second ``backward`` raises
    ``Trying to backward through the graph a second time``. For a DCGAN of 64 x 64 pixels (8 images, one CPU core) the
    discriminator's backward takes 1.8 times as long as it has to.

    ``D(fake)`` becomes ``D(fake.detach())``, and so does every other place in that loss that uses the attached fake (an
    autoencoding discriminator has two). A gradient penalty that interpolates with the fake gets the detached fake and
    ``requires_grad_()`` on the interpolation. A ``retain_graph=True`` that only kept the generator's graph goes too.

    Left alone: generators whose gradients are not cleared between this backward and their step, because there the
    gradient is used; gradients that are clipped, read or hooked before they are cleared; parameters behind the fake
    that the discriminator's optimizer owns; a generator that is frozen for this step; losses that are meant to reach
    the features; a fake that is a list or comes from a model that cannot be seen. Where one ``D(fake)`` serves both
    losses, a second forward is needed: that is advice.

    Promise: exact, since the same forward runs and the gradients that are missing afterwards were cleared unread (both
    networks bit for bit the same, also with batch norm, spectral norm and dropout in the discriminator); repair where
    the original raises.

    Source: https://docs.pytorch.org/tutorials/beginner/dcgan_faces_tutorial.html
    """

    name = "undetached-generator-output"
    promise = Promise.EXACT
    summary = "the discriminator's loss back-propagates through the generator"
    gate = (b".backward(", b"autograd.backward(")

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.steps:
            return
        lives = Lives(trace)
        yield from self._needed(trace, lives)
        if not trace.complete or len({id(s.optimizer) for s in trace.steps}) < 2:
            return
        if any(m.kind in _HOOKS or (m.kind == "module-hook" and _backward_hook(m.place.node)) for m in trace.marks):
            return
        attempts: list[_Attempt] = []
        everything: list[Node] = []
        for walk in trace.walks:
            if walk.kind == "backward":
                fate = lives.fate(walk)
                if fate.wasted and fate.used:
                    everything = everything or list(dict.fromkeys(n for w in trace.walks for n in w.seen))
                    attempts.append(_Attempt(trace, lives, walk, fate, everything=everything))
        mended = [attempt for attempt in attempts if attempt.run()]
        for attempt in attempts:
            for call in attempt.shared:
                assert call.statement is not None
                yield self.seen(call.frame.file, call.statement, "shared", "fault", trail=attempt.trail(call))
        gone = {id(a.walk): a.gone for a in mended}
        for attempt in mended:
            first = min(attempt.cuts, key=lambda cut: (cut.call.path, cut.call.line))
            assert first.call.statement is not None
            flags, later = _flags(trace, gone)
            yield self.seen(
                first.call.frame.file, first.call.statement, "cut", "fault",
                edits=[edit for cut in attempt.cuts for edit in cut.edits()],
                sites=[(cut.call.path, cut.call.frame.file.span(cut.expression)) for cut in attempt.cuts],
                name=ast.unparse(first.expression), raises=_raises(trace, attempt, gone),
                flags=flags, trail=attempt.trail(first.call, later),
            )  # fmt: skip

    def _needed(self, trace: Trace, lives: Lives) -> Iterator[Observation]:
        """The arguments of forwards whose gradients are used in this run, so that no other run cuts them."""
        for walk in trace.walks:
            used = lives.fate(walk).used if walk.kind == "backward" else None
            if not used:
                continue
            masks = leaf_masks(walk.seen, dict.fromkeys(used, 1))
            for forward in trace.forwards:
                for expression, value in _arguments(forward):
                    node = _node(value)
                    if node is None or not masks.get(id(node)) or not _reaches(walk, forward, node):
                        continue
                    yield self.seen(forward.place.frame.file, expression, "argument", "needed")

    # deciding

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        needed = {(site.path, site.span) for site in sites(observations, "argument")}
        done: set[tuple[str, Span]] = set()
        for site in sites(observations, "cut"):
            if any(place in needed for o in site.observations for place in o.facts["sites"]):
                continue
            done.add((site.path, site.span))
            yield from self._finding(site, decision)
        for site in sites(observations, "shared"):
            if (site.path, site.span) not in done:
                yield Finding(
                    self.name, site.path, site.span, Promise.ADVICE,
                    "one output of the discriminator serves both losses, so that its own loss back-propagates through "
                    "the generator as well; it needs a second forward over the detached input",
                    "", tuple(dict.fromkeys(TrailStep(*step) for step in site.facts["trail"])),
                )  # fmt: skip

    def _finding(self, site: Site, decision: Decision) -> Iterator[Finding]:
        found = [o.facts for o in site.observations]
        edits = list(dict.fromkeys(edit for facts in found for edit in facts["edits"]))
        flags = list(dict.fromkeys(flag for facts in found for flag in facts["flags"]))
        raises = any(facts["raises"] for facts in found)
        steps = tuple(dict.fromkeys(TrailStep(*step) for step in max(found, key=lambda f: len(f["trail"]))["trail"]))
        name = found[0]["name"]
        if raises:
            message = (
                f"the discriminator's loss takes `{name}` with the generator's graph, which is walked twice and freed "
                "the first time"
            )
        elif flags:
            message = (
                f"the discriminator's loss takes `{name}` with the generator's graph, which retain_graph=True keeps "
                "alive for gradients that are cleared unread"
            )
        else:
            message = (
                f"the discriminator's loss back-propagates through `{name}` into the generator, whose gradients are "
                "cleared unread"
            )
        promise = Promise.REPAIR if raises else Promise.EXACT
        remedy = f"detach `{name}` for this loss"
        alone = SURPLUS in decision.options.ignore
        yield from paired(self.name, (site.path, site.span), promise, message, remedy, steps, edits, flags, alone=alone)


@dataclass(frozen=True, eq=False)
class _Cut:
    """An expression that a call takes, and what it has given in one run: there the generator's graph ends."""

    call: Place
    expression: ast.expr
    nodes: tuple[Node, ...]
    penalty: ast.stmt | None = None
    """The statement behind which the value has to ask for gradients again."""

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
class _Attempt:
    """One backward whose gradients are wasted on some of its leaves, and the places where its graph may end."""

    trace: Trace
    lives: Lives
    walk: Walk
    fate: Fate
    cuts: list[_Cut] = field(default_factory=list)
    shared: list[Place] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    """The nodes that the backward no longer comes to."""
    everything: list[Node] = field(default_factory=list)
    """The nodes of all walks, in order."""

    def run(self) -> bool:
        """Find the cuts; whether they leave nothing of the wasted part and touch nothing else."""
        walk, fate = self.walk, self.fate
        doubtful = self.lives.doubtful(walk)
        bits = {leaf: 1 if leaf in fate.wasted else 0 for leaf in walk.seen if leaf.leaf}
        bits |= dict.fromkeys(fate.used | doubtful, 2)
        self.masks = leaf_masks(walk.seen, bits)
        self.seen = {id(n) for n in walk.seen}
        self.dirty = {id(n): bool(self.masks[id(n)] & 1) for n in walk.seen}
        self.inputs = {n for w in self.trace.walks if w.kind == "grad" for n in w.inputs or ()}
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
        return bool(self.cuts) and self._primary() and self._covered()

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
        """Find anew which nodes a wasted leaf is still behind."""
        for node in sorted(self.walk.seen, key=lambda n: n.birth):
            if not node.leaf and self.dirty[id(node)]:
                self.dirty[id(node)] = any(self.dirty[id(p)] for p in self._kept(node))

    # where a cut may stand

    def _place(self, node: Node, entering: list[Node]) -> _Cut | None:
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

    def _at(self, call: Place, entering: list[Node]) -> _Cut | None:
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
        if expression is None or not self._tensor(node):
            return None
        return _Cut(call, expression, (node,))

    def _penalty(self, node: Node) -> _Cut | None:
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
        if len(outside) != 1 or not self._tensor(outside[0][0]):
            return None
        fake, taker = outside[0]
        expression = _expression(taker.place, fake)
        if expression is None:
            return None
        asked = any(m.kind == "requires_grad" and m.place.frame is frame and m.place.clock > node.birth
                    and _asks(m.place.node, statement.targets[0]) for m in self.trace.marks)  # fmt: skip
        return _Cut(taker.place, expression, (fake,), None if asked else statement)

    @staticmethod
    def _tensor(node: Node) -> bool:
        """Whether a node is known to be that of a tensor, not of something that cannot be seen."""
        stack = [node]
        while stack:
            one = stack.pop()
            if one.kind == "phi":
                stack.extend(one.parents)
            elif one.kind not in ("op", "module") or one.label in ("module", "forward"):
                return False
        return True

    def _given(self, cut: _Cut) -> bool:
        """Whether a forward got the tensor itself there, not a list of such; operations take nothing else."""
        mine = [f for f in self.trace.forwards if f.place.node is cut.call.node and f.place.frame is cut.call.frame]
        if not mine:
            return not any(cut.call.node is p.node for n in cut.nodes for c in n.children for p in c.place.chain()[1:])
        values = [v for f in mine for e, v in _arguments(f) if e is cut.expression]
        return any(_node(v) in cut.nodes for v in values)

    def _handed_on(self, levels: list[Place], cut: _Cut) -> bool:
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
            if any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
                   for n in ast.walk(definition)):  # fmt: skip
                return False
        return True

    def _conflict(self, cut: _Cut) -> str:
        """Why a cut would take something away that is needed: ``shared`` if this very value is, else ``other``."""
        entering = [(n, taken) for n in self.everything if (taken := cut.through(n))]
        mine = {id(n) for n, taken in entering if cut.nodes[0] in taken and any(w is self.walk for w in n.walks)}
        for other in self.trace.walks:
            if other is self.walk or other.kind != "backward":
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

    def _acts(self, cut: _Cut) -> bool:
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
        reached: set[int] = set()
        stack = list(self.walk.roots)
        while stack:
            node = stack.pop()
            if id(node) not in reached:
                reached.add(id(node))
                stack.extend(self._kept(node))
        self.gone = self.seen - reached
        return not any(id(leaf) in reached for leaf in self.fate.wasted) and any(
            id(leaf) in reached for leaf in self.fate.used
        )

    def trail(self, call: Place, later: Walk | None = None) -> list[tuple[str, int, str]]:
        """Where the generator's graph was produced, enters this loss, is walked and its gradients are cleared."""
        made = self.cuts[0].nodes[0].place if self.cuts else None
        steps = [(made.path, made.line, "graph produced here")] if made is not None else []
        steps.append((call.path, call.line, "taken into the discriminator's loss here"))
        steps.append((self.walk.place.path, self.walk.place.line, "walked here, down into the generator"))
        if later is not None:
            steps.append((later.place.path, later.place.line, "walked again here"))
        steps += [(c.place.path, c.place.line, "the gradients are cleared here") for c in self.fate.clears[:1]]
        return steps


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
        stack.extend(ast.iter_child_nodes(one))
    return found[0] if len(found) == 1 else None


def _arguments(forward: Forward) -> Iterator[tuple[ast.expr, Value]]:
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


def _node(value: Value) -> Node | None:
    return value.node if isinstance(value, Tensor) else None


def _reaches(walk: Walk, forward: Forward, node: Node) -> bool:
    """Whether a walk comes to ``node`` through what the forward made."""
    return any(
        forward.first <= n.birth < forward.last and node in n.parents and any(w is walk for w in n.walks)
        for n in node.children
    )


def _flags(trace: Trace, gone: dict[int, set[int]]) -> tuple[list[tuple[str, Span, Span, str | int]], Walk | None]:
    """The flags that only kept what is no longer walked again, and a walk that would have."""
    found = []
    again: Walk | None = None
    for i, walk in enumerate(trace.walks):
        mine = [n for n in walk.seen if not n.leaf and n.kind != "phi"]
        later = trace.walks[i + 1 :]
        walked = [w for w in later if any(w in n.walks for n in mine)]
        if not walked:
            continue
        left = [n for n in mine if id(n) not in gone.get(id(walk), ())]
        if any(w in n.walks and id(n) not in gone.get(id(w), ()) for n in left for w in walked):
            continue
        if id(walk) in gone or any(id(w) in gone for w in walked):
            again = again or walked[0]
        if walk.retains is True and walk.creates is False and walk.call is not None and _literal(walk):
            assert walk.place.statement is not None
            file = walk.place.frame.file
            assert walk.retain_argument is not None
            found.append((file.path, file.span(walk.place.statement), file.span(walk.call), walk.retain_argument))
    return found, again


def _literal(walk: Walk) -> bool:
    argument = walk.retain_argument
    assert walk.call is not None
    if isinstance(argument, int):
        return argument == len(walk.call.args) - 1 and isinstance(walk.call.args[argument], ast.Constant)
    return argument is not None


def _raises(trace: Trace, attempt: _Attempt, gone: dict[int, set[int]]) -> bool:
    """Whether the original provably walks a freed graph because of this loss, and no longer does with the cut."""
    for walk in trace.walks:
        for node, earlier in walk.again:
            if crossed(earlier.place, walk.place) is not None:
                # what an earlier turn has left is there on some paths only
                continue
            if not node.saves or not node.certain or node.kind in ("phi", "part"):
                continue
            if attempt.walk not in (walk, earlier):
                continue
            if id(node) not in attempt.gone:
                continue
            if earlier.retains is False or _stepped_between(trace, node, earlier, walk):
                return True
    return False


def _stepped_between(trace: Trace, node: Node, first: Walk, then: Walk) -> bool:
    """Whether a parameter that the node saved has been changed by an optimizer between two walks."""
    saved = {p for p in node.parents if p.leaf} if any(not p.leaf for p in node.parents) else set()
    return any(
        first.place.clock < step.place.clock < then.place.clock
        and step.owned is not None
        and saved.intersection(step.owned.leaves)
        for step in trace.steps
    )


def _asks(node: ast.AST, target: ast.expr) -> bool:
    """Whether ``x.requires_grad_()`` or ``x.requires_grad = True`` is about ``target``."""
    if isinstance(node, ast.Call):
        node = node.func
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == ast.unparse(target)


def _backward_hook(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "backward" in node.func.attr


RULE = UndetachedGeneratorOutput
