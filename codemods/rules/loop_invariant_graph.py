"""The rule ``loop-invariant-graph``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from codemods.graph.model.facts.layers import REPEATABLE_MODULES
from codemods.graph.model.facts.memory import SHARING_MEMORY
from codemods.graph.model.facts.operations import RANDOM_CALLS
from codemods.graph.model.facts.saved import SAVES_SELF
from codemods.graph.model.nodes import Node, Place, Walk
from codemods.graph.model.program import ParsedFile, receiver_name
from codemods.graph.model.trace import Trace
from codemods.proofs.blocks import bound, crossed, in_some_turns, meeting, read, stepped_between, suites_around
from codemods.proofs.early_changes import late
from codemods.proofs.observations import Decision, Observation, Site, sites, station
from codemods.proofs.paired_flags import SURPLUS, flags, mended, paired
from codemods.proofs.reach import reached_surely
from codemods.proofs.syntax import FUNCTIONS, called
from codemods.rules.base import Rule
from codemods.terms.edits import Edit, MoveStatement
from codemods.terms.findings import Finding, Promise, TrailStep
from codemods.terms.spans import Span


class LoopInvariantGraph(Rule):
    """A graph is built once before the loop, and the loss of every step is back-propagated through it.

    Why it hurts: The first ``backward`` frees the saved tensors of the graph, the part from before the loop with it;
    the second step raises ``Trying to backward through the graph a second time``. A regulariser ``reg = sum(p.norm()
    for p in model.parameters())``, an embedding of fixed inputs, a tensor derived from parameters in ``__init__``: each
    was meant to follow the parameters, and each is computed from what they were at the start.

    The rewrite: The statement moves to the top of the loop body, where every step computes it anew from the parameters
    as they are; several statements that build on one another move together. An attribute that ``__init__`` builds moves
    to the top of the one method that reads it; the parameter itself stays. A ``retain_graph=True`` that only kept the
    old graph alive goes with it.

    Left alone: several backwards of one step (that is ``backward-in-loss-loop``); a graph that is computed anew in the
    loop; one that is detached, or made of data alone; views of parameters (they follow what the optimizer does in
    place).

    Advice: the statement draws random numbers or keeps statistics (dropout, batch norm, a module that cannot be seen:
    in the loop it would do so in every step); a name that it reads is bound in the loop; it stands in another function;
    something else reads its result.

    Promise: repair. Where nothing in the graph is saved for the backward, or ``retain_graph=True`` keeps it alive, the
    original may run, on values that are never brought up to date: there it is behaviour.

    Source: https://docs.pytorch.org/docs/stable/notes/autograd.html#saved-tensors
    """

    name = "loop-invariant-graph"
    promise = Promise.REPAIR
    summary = "a graph from before the loop is walked in every step"
    gate = (b".backward(",)

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not trace.complete:
            return
        told: set[tuple[int, int]] = set()
        for walk in trace.walks:
            if walk.kind != "backward" or walk.call is None:
                continue
            for earlier, old in _from_before(walk).items():
                if (id(earlier.call), id(walk.call)) in told or not stepped_between(trace, earlier, walk):
                    continue
                told.add((id(earlier.call), id(walk.call)))
                yield from self._judge(trace, earlier, walk, old)

    def _judge(self, trace: Trace, earlier: Walk, walk: Walk, old: list[Node]) -> Iterator[Observation]:
        sure = reached_surely(walk, old) & reached_surely(earlier, old)
        old = [n for n in old if id(n) in sure]
        if not old:
            return
        promise = _promise(trace, earlier, walk, old)
        if promise is None:
            return
        last = max(old, key=lambda n: n.birth)
        plan = _Move(trace, walk, old)
        anchor, moves = plan.find()
        loop = crossed(earlier.place, walk.place)
        if loop is not None and in_some_turns(walk.place, loop):
            moves, plan.why = [], "unless its condition holds in one turn only"
        place = plan.at or last.place
        if place.statement is None:
            return
        yield self.seen(
            place.frame.file,
            place.statement,
            "graph",
            "fault" if moves else "advice",
            promise=promise.value,
            moves=[(tuple(t), tuple(anchor)) for t in moves] if moves and anchor else None,
            why=plan.why,
            remedy=plan.remedy,
            freed=(earlier.place.path, earlier.place.line),
            again=(walk.place.path, walk.place.line),
            retained=earlier.retains is True,
            late=late(trace, earlier, walk),
            flags=flags([walk]) if walk.retains is True and moves and _only_for(trace, walk, old) else [],
        )

    # deciding

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        alone = SURPLUS in decision.options.ignore
        for site in sites(observations, "graph"):
            yield from self._findings(site, alone=alone)

    def _findings(self, site: Site, *, alone: bool) -> Iterator[Finding]:
        facts_ = site.facts
        trail = (
            TrailStep(site.path, site.span.line, "graph produced here, once"),
            station(facts_["freed"], "retained here" if facts_["retained"] else "freed here"),
            station(facts_["again"], "walked again here, by the next turn"),
        )
        line = facts_["again"][1]
        promise = max((Promise(o.facts["promise"]) for o in site.observations), key=lambda p: p.rank)
        if promise is Promise.BEHAVIOUR:
            message = (
                f"this graph is built once, and the backward of line {line} walks it in every turn: its values "
                "are never updated"
            )
        else:
            message = (
                f"this graph is built once, but the backward of line {line} walks it in every turn: the second turn "
                "raises"
            )
        moves = facts_["moves"]
        if not site.faulty or any(o.facts["moves"] != moves for o in site.observations):
            why = next((o.facts["why"] for o in site.observations if o.facts["why"]), "")
            yield Finding(
                self.name,
                site.path,
                site.span,
                Promise.ADVICE,
                f"{message}; {why}" if why else message,
                "compute it in the loop, or detach it if it should not be trained",
                trail,
            )
            return
        edits: list[tuple[str, Edit]] = [
            (site.path, MoveStatement(Span(*target), Span(*anchor), "first-in")) for target, anchor in moves
        ]
        yield from paired(
            self.name,
            (site.path, site.span),
            promise,
            message,
            facts_["remedy"],
            trail,
            edits,
            facts_["flags"],
            alone=alone,
            kept="a graph from before the loop",
            together="the move",
            mends=mended(promise, site),
        )


# reading a run


def _from_before(walk: Walk) -> dict[Walk, list[Node]]:
    """What a walk finds that a walk of an earlier turn has been through, and that is older than the loop."""
    found: dict[Walk, list[Node]] = {}
    loops: dict[int, tuple[Place, Place, int] | None] = {}
    for node, earlier in walk.again:
        if node.kind in ("phi", "part") or not node.certain or earlier.kind != "backward" or earlier.call is None:
            continue
        if id(earlier) not in loops:
            loops[id(earlier)] = _parting(earlier.place, walk.place)
        parting = loops[id(earlier)]
        if parting is not None and _older(node.place, *parting) and walk.follows(earlier):
            found.setdefault(earlier, []).append(node)
    return found


def _parting(first: Place, second: Place) -> tuple[Place, Place, int] | None:
    """The frame in which two walks are two turns of one loop, and how deep that loop is."""
    met = meeting(first, second)
    if met is None:
        return None
    for depth, ((a, i), (b, j)) in enumerate(zip(met[0].loops, met[1].loops, strict=False)):
        if a is not b:
            return None
        if i != j:
            return (*met, depth) if isinstance(a, (ast.For, ast.While, ast.AsyncFor)) else None
    return None


def _older(made: Place, first: Place, second: Place, depth: int) -> bool:
    met = meeting(made, second)
    if met is None or made.clock > first.clock:
        return False
    mine = met[0]
    if mine.frame is not second.frame:
        # in an earlier call of a frame around: older than the call that holds the loop
        return mine.loops == met[1].loops[: len(mine.loops)]
    if len(mine.loops) <= depth:
        return mine.loops == second.loops[: len(mine.loops)]
    return mine.loops[:depth] == second.loops[:depth] and mine.loops[depth][0] is not second.loops[depth][0]


def _saves(node: Node) -> bool:
    # a number beside a parameter is kept as well (ran)
    return node.saves or (node.kind == "op" and node.label.partition(":")[0] in ("Mult", "Div", "mul", "div"))


def _promise(trace: Trace, earlier: Walk, walk: Walk, old: list[Node]) -> Promise | None:
    if earlier.retains is None or earlier.creates is not False:
        return None
    changed = [
        s for s in trace.steps if earlier.place.clock < s.place.clock < walk.place.clock and s.leaves is not None
    ]
    stepped = {id(leaf) for s in changed if not s.unnoticed for leaf in s.leaves or ()}
    if earlier.retains is False and any(_saves(n) for n in old):
        return Promise.REPAIR
    if not changed:
        return None
    for node in old if earlier.retains else ():
        if node.kind == "op" and node.label in SAVES_SELF and any(id(p) in stepped for p in node.parents):
            return Promise.REPAIR
    stale = [n for n in old if n.label not in SHARING_MEMORY and any(id(p) in stepped for p in n.ancestors() if p.leaf)]
    return Promise.BEHAVIOUR if stale else None


def _only_for(trace: Trace, walk: Walk, old: list[Node]) -> bool:
    """Whether nothing but the old graph is walked more than once after walks at this call."""
    mine = {id(n) for n in old} | {id(n) for node in old for n in node.ancestors()}
    return not any(
        id(node) not in mine
        for later in trace.walks
        for node, before in later.again
        if before.call is walk.call and node.kind not in ("phi", "part")
    )


# the move


class _Move:
    """Looks for the statements that build the old graph, and whether they may move to the top of the loop."""

    def __init__(self, trace: Trace, walk: Walk, old: list[Node]) -> None:
        self.trace = trace
        self.walk = walk
        self.old = old
        self.why = ""
        self.remedy = "move it to the top of the loop body"
        self.at: Place | None = None
        """The statement that builds the last of the graph."""

    def find(self) -> tuple[Span | None, list[Span]]:
        """The loop or function, and the statements that move to its top; none where that is not sound."""
        frame, file = self.walk.place.frame, self.walk.place.frame.file
        loops = self.walk.place.loops
        known = {id(n) for n in self.old}
        everything = {n for node in self.old for n in node.ancestors() if not n.leaf}
        if (made := self._constructor(everything)) is not None:
            return self._to_the_reader(made, everything)
        places = []
        for node in everything:
            place = next((p for p in node.place.chain() if p.frame is frame), None)
            if place is None or place.statement is None:
                self.why = "it is built in another function"
                return None, []
            places.append((place, node))
            if id(node) in known and (self.at is None or place.clock > self.at.clock):
                self.at = place
        if not loops or not isinstance(loops[-1][0], (ast.For, ast.While)):
            self.why = "the loop is in another function"
            return None, []
        loop = loops[-1][0]
        assert isinstance(loop, (ast.For, ast.While))
        statements = sorted({p.statement for p, _ in places if p.statement is not None}, key=lambda s: s.lineno)
        if not self._movable(file, loop, statements) or self._draws(places) or not self._used_in(loop, everything):
            return None, []
        return file.span(loop), [file.span(s) for s in statements]

    def _constructor(self, everything: set[Node]) -> Place | None:
        """The statement of an ``__init__`` that builds all of the graph, if there is one."""
        found: list[Place] = []
        for node in everything:
            place = next((p for p in node.place.chain() if getattr(p.frame.definition, "name", "") == "__init__"), None)
            if place is None or (found and found[0].statement is not place.statement):
                return None
            found.append(place)
        return found[0] if found and found[0].statement is not None else None

    def _to_the_reader(self, made: Place, everything: set[Node]) -> tuple[Span | None, list[Span]]:
        """The one method that reads the attribute computes it anew, where that needs nothing of ``__init__``."""
        self.at = made
        file, statement, definition = made.frame.file, made.statement, made.frame.definition
        owner = file.enclosing(definition, ast.ClassDef) if definition is not None else None
        self.why = "it is built in `__init__`, from what the method that reads it may not see"
        if not isinstance(statement, ast.Assign) or not isinstance(owner, ast.ClassDef) or definition is None:
            return None, []
        target = statement.targets[0]
        direct = any(s is statement for s in getattr(definition, "body", ()))
        if len(statement.targets) > 1 or not isinstance(target, ast.Attribute) or not direct:
            return None, []
        inside = {n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        own = receiver_name(definition)
        inside |= {a.arg for a in ast.walk(definition) if isinstance(a, ast.arg)} - {own}
        if ast.unparse(target.value) != own or read([statement]) & inside:
            return None, []
        places = [(next(p for p in n.place.chain() if p.frame is made.frame), n) for n in everything]
        if self._draws(places):
            return None, []
        readers = [
            (f, n)
            for f in {frame.file for frame in self.trace.frames}
            for n in ast.walk(f.tree)
            if isinstance(n, ast.Attribute) and n.attr == target.attr and n is not target
        ]
        methods = {file.enclosing(n, *FUNCTIONS) for f, n in readers if f is file}
        method = methods.pop() if len(methods) == 1 else None
        if any(f is not file for f, _ in readers) or method not in owner.body or method is definition:
            self.why = "it is built in `__init__` and read in several places"
            return None, []
        if any(not isinstance(n.ctx, ast.Load) for _, n in readers) or not isinstance(method, ast.FunctionDef):
            return None, []
        if method.decorator_list or not method.args.args or receiver_name(method) != own:
            return None, []
        self.remedy = f"compute it in `{method.name}`, where it is used"
        return file.span(method), [file.span(statement)]

    def _movable(self, file: ParsedFile, loop: ast.For | ast.While, statements: list[ast.stmt]) -> bool:
        around = list(suites_around(file, loop))
        home = next(suites_around(file, statements[0]))[0]
        match = next(((suite, index) for suite, index in around if suite is home), None)
        if match is None:
            self.why = "it does not stand before the loop"
            return False
        suite, index = match
        if any(next(suites_around(file, s))[0] is not suite or suite.index(s) > index for s in statements):
            self.why = "its parts stand in several places"
            return False
        if any(not isinstance(s, (ast.Assign, ast.AnnAssign)) for s in statements):
            self.why = "it is more than an assignment"
            return False
        made, needed = bound(statements), read(statements)
        outer = suite[index]
        assert isinstance(outer, (ast.For, ast.While, ast.With, ast.If, ast.Try)) or outer is loop
        changed = bound([outer])
        if made & changed or needed & changed:
            self.why = f"{', '.join(sorted((made | needed) & changed))} is bound in the loop"
            return False
        first = suite.index(statements[0])
        others = [s for s in suite[first:index] if s not in statements]
        if made & read(others) or needed & bound(others) or made & bound(others):
            self.why = "something else between uses it"
            return False
        scope = file.enclosing(loop, *FUNCTIONS) or file.tree
        inside = {id(n) for s in (*statements, outer) for n in ast.walk(s)}
        for node in ast.walk(scope):
            if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in inside and ast.unparse(node) in made:
                self.why = "its result is used outside of the loop too"
                return False
        return True

    def _draws(self, places: list[tuple[Place, Node]]) -> bool:
        """Whether random numbers are drawn or statistics kept where the graph is built."""
        for place, node in places:
            if node.kind == "call" or (node.kind == "module" and node.label not in REPEATABLE_MODULES):
                self.why = "what runs there may draw random numbers or keep statistics, which a move would change"
                return True
            bodies: list[ast.AST] = [place.statement] if place.statement is not None else []
            # the functions entered on the way from the statement to the operation
            for inner_place in node.place.chain():
                if inner_place.frame is place.frame:
                    break
                if inner_place.frame.definition is not None:
                    bodies.append(inner_place.frame.definition)
            for body in bodies:
                if self._draws_in(body, set()):
                    self.why = "it draws random numbers: moving it would change their order"
                    return True
        return False

    def _draws_in(self, body: ast.AST, seen: set[ast.AST]) -> bool:
        """Whether a call in a body, or in the functions of the tree that it enters, may draw random numbers."""
        seen.add(body)
        for call in (n for n in ast.walk(body) if isinstance(n, ast.Call)):
            path = self.trace.called.get(call)
            if path is None:
                # it did not run
                name = called(call)
            elif path:
                name = path.rpartition(".")[2]
            else:
                inner = [d for d in self._entered.get(call, ()) if d not in seen]
                if any(self._draws_in(definition, seen) for definition in inner):
                    return True
                continue
            if name in RANDOM_CALLS:
                return True
        return False

    @cached_property
    def _entered(self) -> dict[ast.AST, list[ast.AST]]:
        """The functions of the tree that each call entered."""
        found: dict[ast.AST, list[ast.AST]] = {}
        for frame in self.trace.frames:
            if frame.call is not None and frame.definition is not None:
                found.setdefault(frame.call.node, []).append(frame.definition)
        return found

    def _used_in(self, loop: ast.AST, everything: set[Node]) -> bool:
        """Whether all that is computed from the graph is computed in the loop itself."""
        walked = {id(n) for n in self.walk.seen}
        frame = self.walk.place.frame
        for node in everything:
            for child in node.children:
                if child in everything or id(child) not in walked or child.kind in ("phi", "part"):
                    continue
                place = next((p for p in child.place.chain() if p.frame is frame), None)
                if place is None or not any(around is loop for around, _ in place.loops):
                    self.why = "what is computed from it stands outside of the loop"
                    return False
        return True


RULE = LoopInvariantGraph
