"""Values that one step may leave to the next: what a module that cannot be seen gives and gets again, and what a step
stores under a condition. A guard that only the first turn of a loop passes by leaves nothing: that turn begins with a
state that nothing has to cut."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import NamedTuple

from codemods.graph.model.facts.libraries import BAR_LIBRARIES
from codemods.graph.model.kinds import CarrierKind, NodeKind
from codemods.graph.model.nodes import Node
from codemods.graph.model.opacity import opaque
from codemods.graph.model.program import ParsedFile
from codemods.proofs.carried import Carry, Ledger, as_one
from codemods.proofs.reach import reach
from codemods.proofs.syntax import FUNCTIONS, LOOPS, argument, bindings, scope
from codemods.proofs.turns import crossed, every_turn, named
from codemods.source.walking import walk


def presumed(ledger: Ledger) -> list[Carry]:
    """What is walked again in a later turn if the module keeps the graph of what it gets, by what carried it."""
    known = {carry.key for carry in ledger.carries}
    return as_one(
        carry
        for walk in ledger.trace.walks
        for child, old, loop in ledger.crossings(walk)
        if child.kind is NodeKind.MODULE and opaque(child) and _gave(child, old)
        for carry in ledger.carry(walk, child, old, loop)
        if carry.key not in known and not carry.walked_in_some_turns and not carry.read_in_some_turns
    )


def carried_at_times(ledger: Ledger) -> list[Carry]:
    """States that every turn of a loop back-propagates, and that only some turns cut or make anew: others than those
    that have nothing to cut."""
    perhaps = [carry for carry in ledger.perhaps if ledger.recurrent(carry)]
    # the first turn of an inner loop may get what the last turn of the outer one left
    open_to = {id(carry.store.statement) for carry in perhaps if not _passed_by_at_first(carry)}
    return [
        carry for carry in perhaps if id(carry.store.statement) in open_to and every_turn(carry.walk.place, carry.loop)
    ]


def stored_at_times(ledger: Ledger) -> list[Carry]:
    """What some turns store behind their backward, or take away again, and all turns read and back-propagate: else a
    number, or nothing, is there.

    A turn that finds it walks the freed graph, whatever the condition says.
    """

    def at_times(child: Node) -> bool:
        one_of_several = child.kind is NodeKind.PHI and not child.certain
        return one_of_several and not isinstance(child.place.statement, ast.If)

    return as_one(
        carry
        for walk in ledger.trace.walks
        for child, old, loop in ledger.crossings(walk)
        if at_times(child) and all(not p.leaf and crossed(p.place, child.place) for p in child.parents)
        for carry in ledger.carry(walk, child, old, loop)
        # what is stored before its step's backward may be meant to learn in it
        if carry.store.clock > carry.freed_by.place.clock
        if all(every_turn(place, loop) for place in (walk.place, carry.freed_by.place, carry.reading.place))
    )


def _gave(child: Node, old: Node) -> bool:
    """Whether ``old`` comes out of a module with weights that ``child`` is computed with."""
    weights = {parent for parent in child.parents if parent.leaf}
    return any(n.kind is NodeKind.MODULE and not weights.isdisjoint(n.parents) for n in reach([old]))


_Comparison = Callable[[int, int], bool]


def _passed_by_at_first(carry: Carry) -> bool:
    """Whether the ``if`` that chooses between a carried value and its cut takes the cut in all turns but the first."""
    branch, file = carry.child.place.statement, carry.child.place.frame.file
    if not isinstance(branch, ast.If):
        return False
    name = f".{carry.carrier.name}" if carry.carrier.kind is CarrierKind.ATTRIBUTE else carry.carrier.name
    cuts = [_cuts(suite, name) for suite in (branch.body, branch.orelse)]
    return cuts[0] is not cuts[1] and _Guard(file, branch, carry.loop, name).lasts(branch.test, holds=cuts[0])


def _cuts(suite: list[ast.stmt], name: str) -> bool:
    """Whether statements bind the state, or cut it where it is."""
    for node in (n for statement in suite for n in walk(statement)):
        if named(node) == name and isinstance(getattr(node, "ctx", None), ast.Store):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach_":
            return named(node.func.value) == name
    return False


class _Numbers(NamedTuple):
    """The values of what counts turns: ``first``, ``first + step`` ..."""

    first: int
    step: int

    def later(self, compare: _Comparison, bound: int) -> bool:
        """Whether a comparison holds from the second one on."""
        if compare is operator.ne:
            turns, rest = divmod(bound - self.first, self.step)
            return rest != 0 or turns < 1
        return _GROWS.get(compare) is (self.step > 0) and compare(self.first + self.step, bound)


class _Guard(NamedTuple):
    file: ParsedFile
    branch: ast.If
    loop: ast.AST
    """The loop whose turns hand the state on."""
    state: str

    def lasts(self, test: ast.expr, *, holds: bool) -> bool:
        """Whether a condition is what ``holds`` says in all turns that get a state with a graph."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.lasts(test.operand, holds=not holds)
        if isinstance(test, ast.BoolOp):
            each = [self.lasts(part, holds=holds) for part in test.values]
            return any(each) if isinstance(test.op, ast.Or) is holds else all(each)
        if isinstance(test, (ast.Attribute, ast.Name)):
            attached = isinstance(test, ast.Attribute) and test.attr == "requires_grad" and self._is_state(test.value)
            return holds and (attached or self._compared(test, operator.ne, 0))
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return False
        left, right, sign = test.left, test.comparators[0], type(test.ops[0])
        if isinstance(right, ast.Constant) and right.value is None:
            made = left.value if isinstance(left, ast.Attribute) and left.attr == "grad_fn" else left
            return self._is_state(made) and sign is (ast.IsNot if holds else ast.Is)
        compare = (_HOLDS if holds else _FAILS).get(sign)
        bound, turned = _whole(right), _whole(left)
        if compare is None or (bound is None) is (turned is None):
            return False
        if turned is not None:
            return self._compared(right, _TURNED.get(compare, compare), turned)
        assert bound is not None
        return self._compared(left, compare, bound)

    def _is_state(self, node: ast.AST) -> bool:
        return named(node) == self.state != ""

    def _compared(self, count: ast.expr, compare: _Comparison, bound: int) -> bool:
        numbers = self._counted(count) if isinstance(count, ast.Name) else None
        return numbers is not None and numbers.later(compare, bound)

    def _counted(self, count: ast.Name) -> _Numbers | None:
        """The values that a variable has at the guard; None unless it counts the turns that hand the state on."""
        inner = self.file.enclosing(self.branch, *LOOPS, *FUNCTIONS)
        stores = bindings(scope(self.file, self.branch), count.id)
        made = [self.file.parent(n) for n in stores]
        shared = any(isinstance(n, (ast.Global, ast.Nonlocal)) and count.id in n.names for n in walk(self.file.tree))
        if not isinstance(inner, LOOPS) or shared:
            return None
        if len(stores) == 1 and isinstance(self.loop, ast.For) and any(stores[0] is n for n in walk(self.loop.target)):
            return _numbers(self.file, self.loop.iter, self.loop.target, stores[0])
        within = {id(n) for n in walk(self.loop)}
        starts = [m for m in made if id(m) not in within]
        steps = [m for m in made if id(m) in within]
        if len(starts) != 1 or len(steps) != 1 or not any(steps[0] is each for each in inner.body):
            return None
        if any(isinstance(n, ast.Continue) for n in walk(inner)):
            return None
        start, step = starts[0], steps[0]
        first = _whole(start.value) if isinstance(start, ast.Assign) else None
        more = _added(step, count.id)
        if first is None or not more or not isinstance(step, ast.stmt):
            return None
        return _Numbers(first + more if step.lineno < self.branch.lineno else first, more)


def _added(statement: ast.AST | None, name: str) -> int | None:
    """What ``n += 1`` or ``n = n + 1`` adds."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        return _whole(statement.value)
    match statement:
        case ast.Assign(value=ast.BinOp(left=ast.Name(id=own), op=ast.Add(), right=more)) if own == name:
            return _whole(more)
    return None


def _numbers(file: ParsedFile, given: ast.expr, target: ast.expr, wanted: ast.AST) -> _Numbers | None:
    """The numbers that a loop over ``given`` binds ``wanted`` to, which is its target or a part of it."""
    if not isinstance(given, ast.Call) or any(isinstance(arg, ast.Starred) for arg in given.args):
        return None
    public, args = file.named(given.func), given.args
    parts = target.elts if isinstance(target, ast.Tuple) else []
    start: ast.expr | None = None
    step: ast.expr | None = None
    if public == "builtins.range" and wanted is target:
        start, step = args[0] if len(args) > 1 else None, args[2] if len(args) > 2 else None
    elif public == "itertools.count" and wanted is target and not given.keywords:
        start, step = (*args, None, None)[:2]
    elif public == "builtins.enumerate" and parts and wanted is parts[0]:
        start = argument(given, 1, "start")
    elif public == "builtins.zip" and len(parts) == len(args):
        pairs = zip(args, parts, strict=True)
        return next((_numbers(file, a, p, wanted) for a, p in pairs if any(wanted is n for n in walk(p))), None)
    else:
        bar = args and public.partition(".")[0] in BAR_LIBRARIES
        return _numbers(file, args[0], target, wanted) if bar else None
    first, more = 0 if start is None else _whole(start), 1 if step is None else _whole(step)
    return None if first is None or not more else _Numbers(first, more)


def _whole(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _whole(node.operand)
        return None if number is None else -number
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


_HOLDS: dict[type[ast.cmpop], _Comparison] = {
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Lt: operator.lt, ast.LtE: operator.le, ast.NotEq: operator.ne,
}  # fmt: skip
_FAILS: dict[type[ast.cmpop], _Comparison] = {
    ast.Gt: operator.le, ast.GtE: operator.lt, ast.Lt: operator.ge, ast.LtE: operator.gt, ast.Eq: operator.ne,
}  # fmt: skip
_TURNED: dict[_Comparison, _Comparison] = {
    operator.gt: operator.lt, operator.ge: operator.le, operator.lt: operator.gt, operator.le: operator.ge,
}  # fmt: skip
_GROWS: dict[_Comparison, bool] = {operator.gt: True, operator.ge: True, operator.lt: False, operator.le: False}
"""Whether what is compared so has to grow, that it stays so."""
