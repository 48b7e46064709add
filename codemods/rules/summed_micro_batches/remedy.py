"""The edits that back-propagate each term of a sum on the spot, and the proof that they are sound."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.kinds import Marked, NodeKind
from codemods.graph.model.nodes import Place, Walk, all_descendants
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.proofs.blocks import read, suites_around, within
from codemods.proofs.marks import backward_runs_code, clearings, clears, tells_backwards_apart
from codemods.proofs.paths import half_done
from codemods.proofs.reach import asks_for_history
from codemods.proofs.sums import Sum, may_remember, own_forward, share
from codemods.proofs.syntax import RETURNING, free_name, scope
from codemods.proofs.unseen import Way, leaves_sight
from codemods.rules.summed_micro_batches.scaling import Scaling
from codemods.source import walking
from codemods.terms.edits import (
    Edit,
    InsertStatements,
    MoveStatement,
    RemoveStatement,
    ReplaceExpression,
    WrapExpression,
)

_NAMES = ("micro_loss", "part_loss", "micro_batch_loss", "loss_part")


class Plan:
    """The edits that back-propagate each term of a sum on the spot, if that is sound."""

    def __init__(self, trace: Trace, walk: Walk, statement: ast.Expr, sum_: Sum) -> None:
        self.trace = trace
        self.walk = walk
        self.statement = statement
        self.sum = sum_
        self.file: ParsedFile = walk.place.frame.file

    def edits(self) -> tuple[Edit, ...] | None:
        """The edits, or None where they would not be sound."""
        loop = self.sum.loop
        if not isinstance(loop, (ast.For, ast.While)) or not self._own_graphs() or self._grows_elsewhere(loop):
            return None
        if loop.orelse or any(map(asks_for_history, all_descendants([self.sum.term, self.sum.second]))):
            return None
        suite, index = next(suites_around(self.file, loop))
        inner, at = next(suites_around(self.file, self.statement))
        turns, outer = self.sum.place.loops[:-1], self.file.parent(self.statement)
        if inner is suite and self.walk.place.loops == turns:
            return self._after(loop, suite, index, at) if at > index else None
        inside = self.walk.place.loops[:-1] == turns and outer in loop.body
        if inside and isinstance(outer, ast.If) and inner is outer.body and not outer.orelse:
            return self._every(loop, suite, index, outer, at)
        return None

    def _own_graphs(self) -> bool:
        """Whether each turn has a forward of its own and shares nothing, and nobody else needs what it made."""
        first, second = list(self.sum.term.ancestors()), list(self.sum.other.ancestors())
        turns = self.sum.place.loops[:-1]
        loop, frame = self.sum.loop, self.sum.frame
        mine = [n for n in first if within(n.place, (*turns, (loop, 0)), frame)]
        others = [n for n in second if within(n.place, (*turns, (loop, 1)), frame)]
        made = (*mine, *others)
        if not own_forward(mine) or not own_forward(others) or share(first, second):
            return False
        if any(w.call is not self.walk.call for n in made if not n.leaf for w in n.walks):
            return False
        if self.walk.retains and leaves_sight(made, (Way.ESCAPED,)):
            return False
        # what cannot be seen may carry a state from iteration to iteration, or be more than one graph
        vague = any(n.kind in (NodeKind.CALL, NodeKind.ARGUMENT, NodeKind.PHI) for n in (self.sum.term, self.sum.other))
        if vague or any(map(may_remember, made)):
            return False
        return not backward_runs_code(self.trace) and not half_done(self.trace, self.sum.place)

    def _grows_elsewhere(self, loop: ast.AST) -> bool:
        """Whether another statement of the loop, or one that it calls, changes the sum; beside the backward it may be
        reset."""
        mine, target = self.sum.statement, self.sum.target
        for node in walking.walk(loop):
            if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)) and ast.unparse(node) == target:
                statement = self.file.enclosing(node, ast.stmt)
                resets = isinstance(statement, ast.stmt) and self._resets(statement)
                beside = statement is not None and self.file.parent(statement) is self.file.parent(self.statement)
                if statement is not mine and not (resets and beside):
                    return True
        places = [a.place for a in self.trace.accumulations if ast.unparse(a.target) == target]
        places += [s.place for s in self.trace.storings if self.sum.term in s.held]
        return any(place.statement is not mine and self.sum.in_the_loop(place) for place in places)

    # one backward after the loop

    def _after(self, loop: ast.For | ast.While, suite: list[ast.stmt], index: int, at: int) -> tuple[Edit, ...] | None:
        if not self._undisturbed(()) or _may_return(loop):
            return None
        between = suite[index + 1 : at]
        clearings = [s for s in between if self._clears(s)]
        factor = self._factor(loop, [s for s in between if s not in clearings])
        if factor is None:
            return None
        span = self.file.span(loop)
        moves = [MoveStatement(self.file.span(s), span, "before") for s in clearings]
        return (*self._in_loop(factor), RemoveStatement(self.file.span(self.statement)), *moves)

    # one backward in some of the turns

    def _every(
        self, loop: ast.For | ast.While, suite: list[ast.stmt], index: int, block: ast.If, at: int
    ) -> tuple[Edit, ...] | None:
        if self.sum.statement not in loop.body or not self._undisturbed(block.body):
            return None
        if _may_return(loop) or self.sum.target in read([ast.Expr(block.test)]):
            # the window may be skipped
            return None
        before, behind = block.body[:at], block.body[at + 1 :]
        resets = [s for s in behind if self._resets(s)]
        steps = [s for s in behind if any(_inside(x.place, s) for x in self.trace.steps)]
        clearings = [s for s in block.body if self._clears(s)]
        factor = self._factor(loop, [s for s in before if s not in clearings])
        if factor is None or not resets or not steps or self._used_behind(loop):
            return None
        edits = [*self._in_loop(factor), RemoveStatement(self.file.span(self.statement))]
        if clearings:
            last = max(steps, key=block.body.index)
            early = [s for s in clearings if block.body.index(s) < block.body.index(last)]
            edits += [MoveStatement(self.file.span(s), self.file.span(last), "after") for s in early]
        # the last turns may fill no window: where the sum forgets them, their gradients have to go as well
        initial = [s for s in suite[:index] if self._resets(s)]
        if not initial:
            return None
        if any(self._clears(s) for s in suite[suite.index(initial[-1]) - 1 : index] if s is not initial[-1]):
            return tuple(edits)
        code = "\n".join(ast.unparse(s) for s in clearings)
        return (*edits, InsertStatements(self.file.span(loop), "before", code)) if code else None

    def _used_behind(self, loop: ast.AST) -> bool:
        """Whether something outside the loop finds gradients of the last turns, which may fill no window."""

        def outside(place: Place) -> bool:
            return not any(each is loop for at in place.chain() for each, _ in at.loops)

        ends = [w.place.clock for w in self.trace.walks if w.call is self.walk.call]
        cleared = [m.place.clock for m in clearings(self.trace) if outside(m.place)]
        used = [m.place for m in self.trace.marks if tells_backwards_apart(m) and not clears(m)]
        used += [s.place for s in self.trace.steps] + [w.place for w in self.trace.walks]
        for place in filter(outside, used):
            last = max((end for end in ends if end < place.clock), default=None)
            if last is not None and not any(last < clock < place.clock for clock in cleared):
                return True
        return False

    # parts of both

    def _undisturbed(self, block: Iterable[ast.stmt]) -> bool:
        """Whether nothing in the loop reads or changes gradients or parameters, but for the block of the backward."""
        allowed = {id(n) for s in block for n in walking.walk(s)}
        head = {id(n) for n in walking.walk(getattr(self.sum.loop, "iter", self.sum.loop))} | {id(self.sum.loop)}

        def disturbs(place: Place) -> bool:
            # what gives a loop its values may do something between its turns
            inside = self.sum.in_the_loop(place) or any(p.frame.yields or id(p.node) in head for p in place.chain())
            return inside and not any(id(p.node) in allowed for p in place.chain())

        places = [m.place for m in self.trace.marks if tells_backwards_apart(m)]
        places += [s.place for s in self.trace.steps]
        places += [w.place for w in self.trace.walks if w.call is not self.walk.call]
        reads = (m for m in self.trace.marks if m.kind is Marked.GRADIENT_READ and id(m.place.node) in allowed)
        return not any(map(disturbs, places)) and not any(reads)

    def _clears(self, statement: ast.stmt) -> bool:
        """``optimizer.zero_grad()`` and no more."""
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return False
        call = statement.value
        return not call.args and any(m.place.node is call for m in clearings(self.trace))

    def _resets(self, statement: ast.stmt) -> bool:
        """``total = 0``, ``losses = []`` and ``losses.clear()``."""
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            fresh = isinstance(statement.value, ast.Constant) or (
                isinstance(statement.value, ast.List) and not statement.value.elts
            )
            return fresh and ast.unparse(statement.targets[0]) == self.sum.target
        return isinstance(statement, ast.Expr) and ast.unparse(statement) == f"{self.sum.target}.clear()"

    def _factor(self, loop: ast.For | ast.While, between: list[ast.stmt]) -> str | None:
        """What is between the loop and the backward, as a factor for each term; None if it is more than that."""
        return Scaling(self.trace, self.walk, self.sum).factor(loop, between)

    def _in_loop(self, factor: str) -> list[Edit]:
        added, begin = self.sum.added, ""
        name = added.id if isinstance(added, ast.Name) else free_name(scope(self.file, self.statement), _NAMES)
        edit: Edit = WrapExpression(self.file.span(added), "", ".detach()")
        if not isinstance(added, ast.Name):
            source = self._source(added)
            begin = (
                f"{name} = ({source})\n"
                if "\n" in source and not isinstance(added, ast.Call)
                else f"{name} = {source}\n"
            )
            edit = ReplaceExpression(self.file.span(added), f"{name}.detach()")
        term = f"({name}{factor})" if factor else name
        return [InsertStatements(self.file.span(self.sum.statement), "before", f"{begin}{term}.backward()"), edit]

    def _source(self, added: ast.expr) -> str:
        """The text of the term, its later lines as far to the right of its statement as they were."""
        source = ast.get_source_segment(self.file.text, added) or ast.unparse(added)
        line = self.file.text.splitlines()[self.sum.statement.lineno - 1]
        indent = line[: len(line) - len(line.lstrip())]
        first, *others = source.splitlines()
        return "\n".join([first, *(other.removeprefix(indent) for other in others)])


def _may_return(loop: ast.AST) -> bool:
    return any(isinstance(n, RETURNING) for n in walking.walk(loop))


def _inside(place: Place, statement: ast.stmt) -> bool:
    """Whether something happened in a statement, also in a function called from it."""
    nodes = {id(n) for n in walking.walk(statement)}
    return any(id(p.node) in nodes for p in place.chain())
