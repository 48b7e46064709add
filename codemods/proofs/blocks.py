"""How events relate in the code: in which suite their paths part, whether in the same turn, and what siblings did."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from codemods.graph.model.facts.gradients import DETACHING
from codemods.graph.model.facts.libraries import is_logging
from codemods.graph.model.facts.operations import LOOKING_CALLS, PLAIN_METHODS
from codemods.graph.model.kinds import Marked, NodeKind
from codemods.graph.model.nodes import Frame, Node, Place, Walk
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Accumulation, Forward, Mark, Ran, Step, Trace
from codemods.proofs.effects import CHANGING, TAKING, all_entered, entered_by, writes_elsewhere, written_by_name
from codemods.proofs.marks import writes_parameters
from codemods.proofs.syntax import COMPREHENSIONS, FUNCTIONS, LEAVING, LOOPS, method
from codemods.source.walking import walk

_Node = TypeVar("_Node", bound=ast.AST)
Turns = tuple[tuple[ast.AST, int], ...]


def meeting(a: Place, b: Place) -> tuple[Place, Place] | None:
    """Two events as seen from the innermost frame that they share; None where nothing that can be seen orders them."""
    mine: dict[int, Place] = {}
    for place in a.chain():
        mine[id(place.frame)] = place
        if place.frame.root:
            # roots are run one after the other, in an order of ours
            break
    for place in b.chain():
        found = mine.get(id(place.frame))
        if found is not None:
            return found, place
        if place.frame.root:
            break
    return None


class Parting(NamedTuple):
    """Two places of one frame in two turns of a loop, and how many loops are around that one."""

    first: Place
    second: Place
    depth: int

    @property
    def loop(self) -> ast.stmt:
        """The loop."""
        loop = self.first.loops[self.depth][0]
        assert isinstance(loop, LOOPS)
        return loop


def parting(first: Place, second: Place) -> Parting | None:
    """Where two places, or the calls that lead to them, are two turns of one loop; None where they are not."""
    met = meeting(first, second)
    if met is None:
        return None
    for depth, ((mine, turn), (theirs, other)) in enumerate(zip(met[0].loops, met[1].loops, strict=False)):
        if mine is not theirs:
            return None
        if turn != other:
            return Parting(*met, depth) if isinstance(mine, LOOPS) else None
    return None


def common_turns(a: Place, b: Place) -> Turns | None:
    """The loops, with their turns, that two places of one frame share; None for two turns of one loop."""
    count = 0
    for (mine, turn), (theirs, other) in zip(a.loops, b.loops, strict=False):
        if mine is not theirs:
            break
        if turn != other:
            return None
        count += 1
    return a.loops[:count]


def within(place: Place, turns: Turns, frame: Frame) -> bool:
    """Whether something happened in a frame during these turns of its loops, also in a function called from it."""
    at = place.seen_from(frame)
    return at is not None and at.loops[: len(turns)] == turns


def suites_around(file: ParsedFile, statement: ast.stmt) -> Iterator[tuple[list[ast.stmt], int]]:
    """The suites around a statement, innermost first, each with the index of what holds the statement."""
    inner: ast.AST = statement
    while (outer := file.parent(inner)) is not None:
        for name in ("body", "orelse", "finalbody"):
            suite = getattr(outer, name, None)
            if isinstance(suite, list):
                for index, candidate in enumerate(suite):
                    if candidate is inner:
                        yield suite, index
        if isinstance(outer, FUNCTIONS):
            return
        inner = outer


def suite_of(file: ParsedFile, statement: _Node) -> list[_Node]:
    """The list of statements that ``statement`` stands in."""
    parent = file.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        suite = getattr(parent, name, None)
        if isinstance(suite, list) and any(s is statement for s in suite):
            return suite
    return [statement]


def behind(file: ParsedFile, statement: _Node) -> list[_Node]:
    """The statements behind one in its suite."""
    suite = suite_of(file, statement)
    return suite[suite.index(statement) + 1 :]


def common_suite(file: ParsedFile, a: ast.stmt, b: ast.stmt) -> tuple[list[ast.stmt], int, int] | None:
    """The innermost suite that holds two statements, with both indexes; None where one excludes the other."""
    mine = {id(suite): index for suite, index in suites_around(file, a)}
    for suite, index in suites_around(file, b):
        if id(suite) in mine:
            if mine[id(suite)] == index and a is not b:
                return None
            return suite, mine[id(suite)], index
    return None


@dataclass(eq=False)
class Deeds:
    """What one statement of a suite did in one turn."""

    walks: list[Walk] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    forwards: list[Forward] = field(default_factory=list)
    accumulations: list[Accumulation] = field(default_factory=list)

    @property
    def quiet(self) -> bool:
        """Whether nothing happened that concerns the graph."""
        return not (self.walks or self.steps or self.marks or self.nodes or self.forwards)

    @property
    def runs_modules(self) -> bool:
        """Whether a module ran that may draw random numbers or keep statistics: any but a loss."""
        return any(node.kind in (NodeKind.MODULE, NodeKind.CALL) and not node.scalar for node in self.nodes)


def deeds(trace: Trace, suite: list[ast.stmt], frame: Frame, turns: Turns) -> list[Deeds] | None:
    """What each statement of a suite did while ``turns`` ran; None where that was not recorded."""
    spans: dict[int, Ran] = {}
    wanted = {id(s) for s in suite}
    for ran in trace.ran:
        if ran.frame is frame and id(ran.statement) in wanted and ran.loops == turns:
            spans.setdefault(id(ran.statement), ran)
    if not spans:
        return None
    found = []
    for statement in suite:
        ran_here = spans.get(id(statement))
        mine = Deeds()
        found.append(mine)
        if ran_here is None:
            continue
        first, last = ran_here.first, ran_here.last
        mine.walks = [w for w in trace.walks if first <= w.place.clock < last]
        mine.steps = [s for s in trace.steps if first <= s.place.clock < last]
        mine.marks = [m for m in trace.marks if first <= m.place.clock < last]
        # a run makes thousands, in the order of their births
        begin, end = (bisect_left(trace.nodes, moment, key=lambda n: n.birth) for moment in (first, last))
        mine.nodes = trace.nodes[begin:end]
        mine.forwards = [f for f in trace.forwards if first <= f.first < last]
        mine.accumulations = [a for a in trace.accumulations if first <= a.place.clock < last]
    return found


def looks_only(trace: Trace, statement: ast.stmt, also: frozenset[str] = frozenset()) -> bool:
    """Whether a statement only looks at existing values: prints them, logs them, converts them to numbers.

    ``also`` names further functions of libraries, and methods, that do no harm.
    """
    for node in walk(statement):
        if isinstance(node, LEAVING):
            return False
        if isinstance(node, ast.Call):
            path = trace.called.get(node, "")
            name = path.rpartition(".")[2]
            # of an unseen object only the methods of tensors are known
            known = PLAIN_METHODS | DETACHING if path.startswith("?.") else LOOKING_CALLS
            if not (name in known or name in also or is_logging(path)):
                return False
    return isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Pass, ast.If))


def leaves_suite(statement: ast.stmt) -> bool:
    """Whether a statement may leave the suite: ``return``, ``break``, ``continue``, ``raise``, or a ``yield``."""
    return any(isinstance(node, LEAVING) for node in walk(statement))


def bound(statements: Iterable[ast.stmt]) -> set[str]:
    """The names and attributes that statements bind or change, as text, but for variables of comprehensions."""
    found: set[str] = set()
    for statement in statements:
        inner = _of_comprehensions(statement)
        for node in walk(statement):
            if id(node) in inner:
                continue
            if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                target: ast.expr = node
                while isinstance(target, ast.Subscript):
                    target = target.value
                found.add(ast.unparse(target))
    return found


def altered(trace: Trace, file: ParsedFile, statements: Iterable[ast.stmt]) -> set[str]:
    """What is changed where it is, as text: by methods as ``names.append(x)``, ``x.mul_(2)``, ``last = names.pop()``,
    by ``setattr``, and by the functions of the tree that the statements enter: of these the attributes that they write,
    as ``.name`` of whatever object, and the variables of functions around them."""
    entered = trace.once(entered_by)
    found = {text for definition in all_entered(trace, statements) for text in writes_elsewhere(definition)}
    for call in (node for statement in statements for node in walk(statement) if isinstance(node, ast.Call)):
        name = method(call)
        found |= written_by_name(call)
        alone = isinstance(file.parent(call), ast.Expr) and (name in CHANGING or name[-1:] == "_")
        if (alone or name in TAKING) and not file.named(call.func) and call not in entered:
            assert isinstance(call.func, ast.Attribute)
            found.add(ast.unparse(call.func.value))
    return found


def apart(trace: Trace, file: ParsedFile, first: list[ast.stmt], second: list[ast.stmt]) -> bool:
    """Whether neither of two blocks reads or binds what the other one binds, itself or in functions that it enters, or
    hands on or calls the object of which the other binds something."""
    for one, other in ((first, second), (second, first)):
        own = bound(one)
        deep = altered(trace, file, one)
        entered = [s for d in all_entered(trace, other) for s in getattr(d, "body", ())]
        there, inside = bound(other) | read(other), read(s for s in entered if isinstance(s, ast.stmt))
        of_attributes = {f".{text.rpartition('.')[2]}" for text in own if "." in text}
        if (own | deep) & there or deep & inside or of_attributes & {t for t in inside if t[0] == "."}:
            return False
        owners = {text.rpartition(".")[0] for text in own} - {""}
        calls = [node for statement in other for node in walk(statement) if isinstance(node, ast.Call)]
        handed = [a for c in calls for a in (*c.args, *(k.value for k in c.keywords), getattr(c.func, "value", c.func))]
        if not owners.isdisjoint(map(ast.unparse, handed)):
            return False
    return True


def read(statements: Iterable[ast.stmt]) -> set[str]:
    """The names and attributes that statements read, as text; of ``a.b.c`` also ``a`` and ``a.b``, and the attributes
    that are no methods as ``.b`` and ``.c``.

    Variables of comprehensions end with these, and do not count.
    """
    found: set[str] = set()
    for statement in statements:
        inner = _of_comprehensions(statement)
        called = {id(node.func) for node in walk(statement) if isinstance(node, ast.Call)}
        for node in walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and id(node) not in called:
                found.add(f".{node.attr}")
            if id(node) in inner:
                continue
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                found.add(ast.unparse(node))
            elif isinstance(node, ast.AugAssign):
                found.add(ast.unparse(node.target))
    return found


def _of_comprehensions(statement: ast.AST) -> set[int]:
    """The identities of the nodes that name variables of comprehensions, and attributes of these."""
    found: set[int] = set()
    for whole in walk(statement):
        if not isinstance(whole, COMPREHENSIONS):
            continue
        targets = [node for each in whole.generators for node in walk(each.target)]
        own = {node.id for node in targets if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        # the first iterable is evaluated outside
        outside = {id(node) for node in walk(whole.generators[0].iter)}
        for node in walk(whole):
            base: ast.AST = node
            while isinstance(base, ast.Attribute):
                base = base.value
            if isinstance(base, ast.Name) and base.id in own and id(base) not in outside:
                found.add(id(node))
    return found


def leaves_of(steps: Iterable[Step]) -> set[int] | None:
    """The identities of the leaves that steps change; None where what an optimizer owns cannot be seen."""
    found: set[int] = set()
    for step in steps:
        if step.leaves is None:
            return None
        found |= {id(leaf) for leaf in step.leaves}
    return found


def stepped_between(trace: Trace, first: Walk, second: Walk) -> bool:
    """Whether parameters were updated between two walks: they belong to two steps, not to two losses of one."""
    begin, end = first.place.clock, second.place.clock
    return any(begin < s.place.clock < end for s in trace.steps) or any(
        writes_parameters(m) or m.kind is Marked.DATA_WRITTEN for m in trace.marks if begin < m.place.clock < end
    )
