"""The rule ``best-state-not-copied``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from codemods.graph.model.kinds import Marked
from codemods.graph.model.nodes import Frame, Place
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Mark, Ran, Step, Trace
from codemods.graph.model.values import Instance, Module, Optimizer
from codemods.proofs.bindings import bound_around, bound_at
from codemods.proofs.observations import Observation
from codemods.proofs.paths import comes_after, comes_before
from codemods.proofs.syntax import DEFINITIONS, FUNCTIONS, own_nodes
from codemods.rules._sites import SiteRule, everywhere, scope, under
from codemods.source.walking import walk
from codemods.terms.edits import Edit, InsertStatements, KeepPart, WrapExpression
from codemods.terms.findings import Promise

_MOVING = frozenset(["to", "cuda", "cpu", "half", "float", "double", "bfloat16", "type", "to_empty", "apply"])


class _Taken(NamedTuple):
    """The state ``value`` that a ``statement`` gives to a ``target``, by itself or among others."""

    file: ParsedFile
    statement: ast.Assign
    target: ast.expr
    value: ast.expr


class BestStateNotCopied(SiteRule):
    """A ``state_dict`` that is kept while training goes on and used later: it holds the newest weights, not the best.

    Why it hurts: ``best = model.state_dict()`` copies nothing. The tensors in it are the parameters' own memory, which
    every later step writes to. When ``model.load_state_dict(best)`` comes, it loads the weights into
    themselves: early stopping and "best on validation" keep whatever the last step left. Nothing raises. So it is where
    ``best`` was taken under a condition and is saved when the loop is over.

    Left alone: states that are copied (``copy.deepcopy``, a dict of clones), saved to a file at once, or loaded into
    another model; models that are made again or moved in between; names and attributes that are given anything else on
    the way, and attributes that are read for more than to load, save or test them; a state that is taken anew in every
    turn behind the last step of it, or right before the loop is left; optimizers of classes of the tree; models with a
    ``state_dict`` of their own, and such as cannot be seen.

    The rewrite: ``best = copy.deepcopy(model.state_dict())``, with ``import copy`` where the file has none.

    Promise: behaviour. What is loaded in the end is another model: the one that was best.

    Source: https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    name = "best-state-not-copied"
    promise = Promise.BEHAVIOUR
    summary = "a state dict is kept over steps without a copy and used later"
    gate = (b".backward(", b"autograd.backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        loads = (mark for mark in trace.marks if mark.kind is Marked.PARAMETERS_LOADED)
        for load in (*loads, *_saves(trace)):
            if not isinstance(load.place.node, ast.Call):
                continue
            saved = load.kind is Marked.STATE_TAKEN
            states = list(_kept(trace, load))
            for taken in states:
                ran, step = _trained(trace, load, taken.statement, [other.statement for other in states])
                if ran is None or step is None:
                    yield self.fine(taken.file, taken.statement)
                    continue
                name = ast.unparse(taken.target)
                yield self.fault(
                    taken.file,
                    taken.statement,
                    f"`{name}` is not a copy: each step changes the tensors in it, so that "
                    + ("the newest weights are saved" if saved else "loading it restores the newest weights"),
                    f"write `{name} = copy.deepcopy({ast.unparse(_plain(taken.value))})`",
                    (step.place, "writes to the tensors in it"),
                    (load.place, "saved here, as they are by then" if saved else "loaded here, into themselves"),
                    edits=_copied(taken),
                )


def _plain(value: ast.expr) -> ast.expr:
    """Without a ``.copy()``, which copies the dict and not the tensors."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "copy":
        return value.func.value
    return value


def _copied(taken: _Taken) -> list[Edit]:
    """The edits that copy the state that is taken; none where ``copy`` may be anything but Python's module."""
    file, statement, _, value = taken
    binders = [node for node in own_nodes(file.tree.body) if _binds_copy(node)]
    imported = [n for n in binders if isinstance(n, ast.alias) and n.name == "copy" and _is_whole(file, n)]
    local = scope(file, statement) is not file.tree and bound_around(file, statement, "copy") is True
    if local or len(imported) < len(binders) or (imported and not bound_at(file, statement, "copy", "before")):
        return []
    edits: list[Edit] = []
    if not imported:
        imports = (s for s in file.tree.body if isinstance(s, (ast.Import, ast.ImportFrom)))
        first = next((s for s in imports if getattr(s, "module", "") != "__future__"), None)
        if first is None:
            return []
        edits.append(InsertStatements(file.span(first), "before", "import copy"))
    state = _plain(value)
    if state is not value:
        edits.append(KeepPart(file.span(value), file.span(state)))
    return [*edits, WrapExpression(file.span(state), "copy.deepcopy(", ")")]


def _is_whole(file: ParsedFile, alias: ast.alias) -> bool:
    """Whether an import binds a module, and not something in it."""
    return isinstance(file.parent(alias), ast.Import)


def _binds_copy(node: ast.AST) -> bool:
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) == "copy"
    if isinstance(node, ast.Name):
        return node.id == "copy" and not isinstance(node.ctx, ast.Load)
    return isinstance(node, (*DEFINITIONS, ast.ClassDef)) and node.name == "copy"


def _saves(trace: Trace) -> Iterator[Mark]:
    """Where a state is saved that a variable was given before, told as the mark of its taking with that place: of each
    save the last one that ran, as the first has seen no steps. What every path takes may be meant to be the newest."""
    last: dict[tuple[ast.Call, Frame], Mark] = {}
    for ran in trace.ran:
        call = ran.statement.value if isinstance(ran.statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or trace.called.get(call) != "torch.save":
            continue
        if not call.args or not isinstance(call.args[0], ast.Name):
            continue
        for mark in reversed(trace.marks):
            taken = mark.place.statement
            if (
                mark.kind is Marked.STATE_TAKEN
                and mark.place.frame is ran.frame
                and mark.place.clock < ran.first
                and taken is not None
                and any(ast.unparse(target) == call.args[0].id for target, _ in _assigned(taken))
                and under(ran.frame.file, taken, ast.If)
            ):
                last[call, ran.frame] = replace(mark, place=Place(call, ran.statement, ran.frame, ran.loops, ran.first))
                break
    yield from last.values()


def _kept(trace: Trace, load: Mark) -> Iterator[_Taken]:
    """The statements that took the state which is loaded or saved, if it is never given anything that is a copy."""
    file, call = load.place.frame.file, load.place.node
    given = call.args[0] if isinstance(call, ast.Call) and call.args else None
    if isinstance(given, ast.Name):
        found = _in_variable(file, call, given.id, _model(load, given.id))
    elif isinstance(given, ast.Attribute):
        found = _in_attribute(trace, given.attr)
    else:
        return
    yield from (each for each in found if not _leaves(each.file, each.statement))


def _model(load: Mark, name: str) -> str:
    """What the program calls the model that is loaded, or whose state is saved under ``name``."""
    call = load.place.node
    if load.kind is not Marked.STATE_TAKEN:
        return (
            ast.unparse(call.func.value) if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
        )
    owners = (
        _owner(value)
        for node in walk(scope(load.place.frame.file, call))
        for target, value in _assigned(node)
        if ast.unparse(target) == name
    )
    return next((ast.unparse(owner) for owner in owners if owner is not None), "")


def _in_variable(file: ParsedFile, load: ast.AST, name: str, model: str) -> list[_Taken]:
    """The statements that gave the state of ``model`` to a variable; none if anything else may be in it."""
    found: list[_Taken] = []
    around = scope(file, load)
    bound = 0
    for node in walk(around):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return []
        if isinstance(node, ast.arg) and node.arg == name:
            return []
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            bound += 1
        for target, value in _assigned(node):
            if ast.unparse(target) != name:
                continue
            if _empty(value):
                bound -= 1
            elif (
                isinstance(node, ast.Assign)
                and (owner := _owner(value)) is not None
                and ast.unparse(owner) == model
                and scope(file, node) is around
            ):
                bound -= 1
                found.append(_Taken(file, node, target, value))
    return [] if bound or _changed(file, around, name, model) else found


def _in_attribute(trace: Trace, name: str) -> list[_Taken]:
    """The statements that gave a state to an attribute of this name; none if any program text does more with it than
    to give, load, save and test it."""
    found: list[_Taken] = []
    known: set[ast.AST] = set()
    seen: list[ast.AST] = []
    for file, node in everywhere(trace):
        if isinstance(node, ast.Constant) and node.value == name:
            return []
        if isinstance(node, ast.Attribute) and node.attr == name:
            seen.append(node)
        for target, value in _assigned(node):
            if not isinstance(target, ast.Attribute) or target.attr != name:
                continue
            if isinstance(node, ast.Assign) and _owner(value) is not None:
                found.append(_Taken(file, node, target, value))
            elif not _empty(value):
                return []
            known.add(target)
        if isinstance(node, ast.Compare) and all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            known.add(node.left)
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            known.add(node.test)
        if isinstance(node, ast.Call) and (_loads(node) or trace.called.get(node) == "torch.save"):
            known.update(node.args)
    return found if known.issuperset(seen) else []


def _loads(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "load_state_dict"


def _empty(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and not value.keys)


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment gives to what, those of ``best, lowest = None, inf`` one by one."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def _owner(value: ast.expr) -> ast.expr | None:
    """What the state is of that ``value`` takes, with or without a copy of the dict alone; None if it takes none."""
    match _plain(value):
        case ast.Call(func=ast.Attribute(value=owner, attr="state_dict"), args=[], keywords=[]):
            return owner
        case _:
            return None


def _changed(file: ParsedFile, around: ast.AST, name: str, model: str) -> bool:
    """Whether what is kept is written to, or the model is made anew or moved."""
    made = 0
    for node in walk(around):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and ast.unparse(node.value) == name:
            return True
        if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            made += ast.unparse(node) == model
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            on = ast.unparse(node.func.value)
            if on == name and node.func.attr != "copy":
                return True
            if on == model and node.func.attr in _MOVING and isinstance(file.parent(node), ast.Expr):
                return True
    return made > 1


def _leaves(file: ParsedFile, taken: ast.stmt) -> bool:
    """Whether the loop or the function ends right after it."""
    inner: ast.AST = taken
    while (outer := file.parent(inner)) is not None and not isinstance(outer, FUNCTIONS):
        for suite in (getattr(outer, field, None) for field in ("body", "orelse", "finalbody")):
            if isinstance(suite, list) and inner in suite:
                rest = suite[suite.index(inner) + 1 :]
                if any(isinstance(s, (ast.Break, ast.Return, ast.Raise)) for s in rest):
                    return True
        if isinstance(outer, (ast.For, ast.While, ast.AsyncFor)):
            return False
        inner = outer
    return False


def _trained(trace: Trace, load: Mark, taken: ast.stmt, states: list[ast.stmt]) -> tuple[Ran | None, Step | None]:
    """Where the state was taken, and a step after it that wrote to the same parameters before they were loaded, and
    after which none of ``states`` is surely taken anew."""
    leaves = set(load.of or ())
    own = load.by.cls.find("state_dict") if isinstance(load.by, Instance) else None
    # what cannot be seen may be a wrapper, whose state is gathered from elsewhere
    if (
        not isinstance(load.by, (Instance, Module))
        or not trace.complete
        or not leaves
        or not load.exact
        or getattr(own, "definition", None) is not None
    ):
        return None, None

    def anew(step: Step) -> bool:
        return any(
            step.place.clock <= again.first
            and again.last <= load.place.clock
            and (
                comes_before(again.place, load.place)
                or comes_after(step.place, again.place, turning=True, until=load.place)
            )
            for again in trace.ran
            if any(again.statement is other for other in states)
        )

    within = isinstance(load.place.node, ast.Call) and isinstance(load.place.node.args[0], ast.Name)
    for ran in trace.ran:
        if ran.statement is not taken or ran.last > load.place.clock:
            continue
        if ran.frame is not load.place.frame if within else not _of_the_same(trace, load, ran):
            continue
        for step in trace.steps:
            known = isinstance(step.optimizer, Optimizer) and step.optimizer.cls is None
            owned = step.leaves
            between = ran.last <= step.place.clock < load.place.clock
            if known and owned is not None and between and leaves & set(owned) and not anew(step):
                return ran, step
    return None, None


def _of_the_same(trace: Trace, load: Mark, ran: Ran) -> bool:
    """Whether the state that ``ran`` took is of the parameters that ``load`` loads, which stayed where they were."""
    leaves = set(load.of or ())
    moved = any(
        isinstance(call := getattr(other.statement, "value", None), ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in _MOVING
        for other in trace.ran
        if ran.last <= other.first < load.place.clock
    )
    return not moved and any(
        mark.kind is Marked.STATE_TAKEN
        and mark.exact
        and ran.first <= mark.place.clock < ran.last
        and set(mark.of or ()) == leaves
        for mark in trace.marks
    )


RULE = BestStateNotCopied
