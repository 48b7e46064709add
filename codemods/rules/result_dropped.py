"""The rule ``result-dropped``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.graph.model.facts.gradients import GRAD_OFF, GRAD_SWITCH
from codemods.graph.model.facts.layers import LOSS_MODULES
from codemods.graph.model.kinds import NodeKind
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Ran, Trace
from codemods.proofs.bindings import bound_around
from codemods.proofs.observations import Observation
from codemods.proofs.reach import through_phi
from codemods.proofs.syntax import COMPREHENSIONS, FUNCTIONS, LOOPS, bindings, method, reads, scope
from codemods.rules._sites import SiteRule, under, written
from codemods.source.walking import walk
from codemods.terms.edits import Edit, InsertStatements, RemoveStatement
from codemods.terms.findings import Promise
from codemods.terms.words import words

_PURE = words(
    "to cuda cpu detach float half double bfloat16 long int contiguous unsqueeze squeeze permute transpose flatten "
    "clamp"
)
"""Methods that leave a tensor as it is and have no other use than their result (docs: Tensor)."""

_MOVING = ("to", "cuda")

_LOSSES = words(
    "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy "
    "binary_cross_entropy_with_logits"
)
"""Functions that compare two tensors (docs: torch.nn.functional)."""


class ResultDropped(SiteRule):
    """A tensor's method that returns a new tensor, called as a statement: what it returns is dropped.

    Why it hurts: ``x.to(device)`` and ``loss.detach()`` change nothing where they stand. The tensor stays on its
    device, in its type and in its graph, and the code below goes on with it as it was: with an error for two devices,
    or, for ``detach``, with the graph still held and gradients still flowing.

    Left alone: modules, whose ``to``, ``cuda`` and ``float`` work in place; whatever is not proven to be a tensor at
    every run of the line (batches of a loader may be objects that move themselves, but not what a loss of torch takes);
    tensors that were made in the statement itself, as to wake a device up; names that nobody reads afterwards;
    statements that try something (``try``) or repeat it to be timed; the last line of a notebook's cell, which shows
    it.

    The rewrite: ``x = x.to(device)``, for the methods that move (``to``, ``cuda``) and variables of the function around
    the statement.

    Advice: make a parameter, or another leaf that asks for gradients, on its device and in its type from the start:
    what ``to`` returns of it is no leaf, so that its ``.grad`` stays None and no optimizer takes it. Keep the result of
    any other method, ``x = x.float()``, or call the one that works in place (``detach_``, ``clamp_``): which of the two
    was meant is not written there. Where only a later loss shows that it is a tensor, move what it is compared with as
    well.

    Promise: behaviour. What runs on one device does so as before; what was meant to move does.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html
    """

    name = "result-dropped"
    promise = Promise.BEHAVIOUR
    summary = "a method that changes nothing in place is called as a statement"
    gate = (b".backward(", b"autograd.backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        seen: set[ast.Call] = set()
        for ran in trace.ran:
            call = ran.statement.value if isinstance(ran.statement, ast.Expr) else None
            if method(call) not in _PURE or call in seen:
                continue
            assert isinstance(call, ast.Call)
            assert isinstance(call.func, ast.Attribute)
            seen.add(call)
            file, seen_to_be = ran.frame.file, trace.called.get(call) == f"torch.Tensor.{call.func.attr}"
            if (
                not trace.complete
                or not (seen_to_be or _compared(trace, ran, call))
                or file.path.endswith(".ipynb")
                or under(file, ran.statement, ast.Try)
                or not _read_later(file, ran.statement, call.func.value)
            ):
                yield self.fine(file, call)
                continue
            name = ast.unparse(call.func.value)
            leaf, cuts = _of_a_leaf(trace, file, call), _cuts(trace, file, ran.statement, name)
            why = "; once kept, it is no leaf: its `.grad` stays None, and no optimizer accepts it" if leaf else ""
            where = ", where gradients are on" if cuts else ""
            yield self.fault(
                file, call,
                f"`{ast.unparse(call)}` returns a new tensor, which is dropped here; `{name}` stays as it is{why}",
                f"make `{name}` so from the start" if leaf else f"write `{name} = {ast.unparse(call)}`{where}",
                edits=[] if leaf or cuts or not seen_to_be else _kept(file, ran.statement, call),
            )  # fmt: skip


def _compared(trace: Trace, ran: Ran, call: ast.Call) -> bool:
    """Whether a loss of torch takes the variable later, as it takes nothing but tensors."""
    assert isinstance(call.func, ast.Attribute)
    tensor, file = call.func.value, ran.frame.file
    if not isinstance(tensor, ast.Name):
        return False
    losses = {NodeKind.MODULE: LOSS_MODULES, NodeKind.OP: _LOSSES}
    made = [n for n in trace.nodes if n.place.frame is ran.frame and n.operation in losses.get(n.kind, ())]
    lines = [
        use.lineno
        for use in (node.place.node for node in made)
        if isinstance(use, ast.Call) and any(isinstance(arg, ast.Name) and arg.id == tensor.id for arg in use.args)
    ]
    last = min((line for line in lines if line > call.lineno), default=0)
    given = bindings(scope(file, call), tensor.id)
    return last > 0 and not any(call.lineno <= node.lineno <= last for node in given)


def _of_a_leaf(trace: Trace, file: ParsedFile, call: ast.Call) -> bool:
    """Whether the tensor may be a leaf that asks for gradients when the call runs."""
    assert isinstance(call.func, ast.Attribute)
    name = ast.unparse(call.func.value)
    return any(
        (node.place.node is call and any(one.leaf for one in through_phi(*node.parents)))
        # what runs without gradients leaves no node
        or (node.leaf and node.place.frame.file is file and _gives(node.place.statement, name))
        for node in trace.nodes
    )


def _cuts(trace: Trace, file: ParsedFile, statement: ast.stmt, name: str) -> bool:
    """Whether a statement runs without gradients, and ``name`` is read where they may be on: what is made without them
    has no graph."""
    for block in file.outward(statement, *FUNCTIONS):
        if not isinstance(block, (ast.With, ast.AsyncWith)):
            continue
        if not any(trace.called.get(item.context_expr) in GRAD_OFF | GRAD_SWITCH for item in block.items):
            continue
        return not set(walk(block)).issuperset(reads(scope(file, statement), name))
    return False


def _gives(statement: ast.stmt | None, name: str) -> bool:
    """Whether a statement assigns to ``name``."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return any(isinstance(target, ast.expr) and ast.unparse(target) == name for target in targets)


def _kept(file: ParsedFile, statement: ast.stmt, call: ast.Call) -> list[Edit]:
    """The edits that keep what a tensor moved to, if its name is bound where the statement stands."""
    assert isinstance(call.func, ast.Attribute)
    tensor = call.func.value
    moves = call.func.attr in _MOVING
    if not isinstance(tensor, ast.Name) or not moves or bound_around(file, statement, tensor.id) is not True:
        return []
    at = file.span(statement)
    return [InsertStatements(at, "before", f"{tensor.id} = {written(file, call)}"), RemoveStatement(at)]


def _read_later(file: ParsedFile, statement: ast.stmt, tensor: ast.expr) -> bool:
    """Whether another statement reads the tensor by its name when this one has run."""
    inner = tensor
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    if not isinstance(inner, ast.Name):
        return False
    text, own = ast.unparse(tensor), set(walk(statement))
    read = [
        node
        for node in walk(scope(file, statement))
        if isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Load)
        and ast.unparse(node) == text
        and node not in own
    ]
    if any(node.lineno > (statement.end_lineno or statement.lineno) for node in read):
        return True
    loop = next((outer for outer in file.outward(statement, *FUNCTIONS) if isinstance(outer, LOOPS)), None)
    return loop is not None and _read_next_turn(file, loop, statement, inner.id, read)


def _read_next_turn(
    file: ParsedFile, loop: ast.AST, statement: ast.stmt, name: str, read: list[ast.Name | ast.Attribute]
) -> bool:
    """Whether the next turn of a loop reads what this one leaves: before it is given anything else, if it ever is."""
    again = set(walk(loop)) - ({*walk(loop.iter)} if isinstance(loop, (ast.For, ast.AsyncFor)) else set())
    later = [node for node in read if node in again]
    given = [node for node in bindings(loop, name) if node in again]
    if not given:
        return bool(later)
    around = file.enclosing(loop, *_APART)
    if any(_at(node) > _at(statement) or file.enclosing(node, *_APART) is not around for node in given):
        return False
    return any(
        file.enclosing(one, *_APART) is around
        and all(_at(one) < _at(node) or _of_its_value(file, one, node) for node in given)
        for one in later
    )


_APART = (*FUNCTIONS, ast.ClassDef, *COMPREHENSIONS)
"""What has variables of its own, or runs at another time than its text."""


def _at(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _of_its_value(file: ParsedFile, read: ast.expr, given: ast.expr) -> bool:
    """Whether one assignment reads the one, and then gives to the other."""
    made = file.enclosing(given, ast.stmt)
    return isinstance(made, ast.Assign) and any(node is read for node in walk(made.value))


RULE = ResultDropped
