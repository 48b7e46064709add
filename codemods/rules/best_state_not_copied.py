"""The rule ``best-state-not-copied``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

from codemods.graph.model.kinds import Marked
from codemods.graph.model.nodes import Place
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Mark, Ran, Step, Trace
from codemods.graph.model.values import Instance, Module, Optimizer
from codemods.proofs.bindings import bound_around, bound_at
from codemods.proofs.blocks import meeting
from codemods.proofs.observations import Observation
from codemods.proofs.syntax import DEFINITIONS, FUNCTIONS, LOOPS, own_nodes
from codemods.rules._sites import SiteRule, everywhere, scope
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
    """A ``state_dict`` that is kept while training goes on and loaded later: it holds the newest weights, not the best.

    Why it hurts: ``best = model.state_dict()`` copies nothing. The tensors in it are the parameters' own memory, which
    every later step writes to. When ``model.load_state_dict(best)`` comes, it loads the weights into
    themselves: early stopping and "best on validation" keep whatever the last step left. Nothing raises.

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
    summary = "a state dict is kept over steps without a copy and loaded later"
    gate = (b".backward(", b"autograd.backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        for load in trace.marks:
            if load.kind is not Marked.PARAMETERS_LOADED or not isinstance(load.place.node, ast.Call):
                continue
            states = list(_kept(trace, load.place.frame.file, load.place.node))
            latest = _latest(trace, load, [taken.statement for taken in states])
            for taken in states:
                ran, step = _trained(trace, load, taken.statement, latest)
                if ran is None or step is None:
                    yield self.fine(taken.file, taken.statement)
                    continue
                name = ast.unparse(taken.target)
                yield self.fault(
                    taken.file,
                    taken.statement,
                    f"`{name}` is not a copy: each step changes the tensors in it, so that loading it restores "
                    "the newest weights",
                    f"write `{name} = copy.deepcopy({ast.unparse(_plain(taken.value))})`",
                    (step.place, "writes to the tensors in it"),
                    (load.place, "loaded here, into themselves"),
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


def _kept(trace: Trace, file: ParsedFile, load: ast.Call) -> Iterator[_Taken]:
    """The statements that took the state which is loaded, if it is never given anything that is a copy."""
    given = load.args[0] if load.args else None
    if not isinstance(load.func, ast.Attribute) or not isinstance(given, ast.Name | ast.Attribute):
        return
    if isinstance(given, ast.Name):
        found = _in_variable(file, load, given.id, ast.unparse(load.func.value))
    else:
        found = _in_attribute(trace, given.attr)
    yield from (each for each in found if not _leaves(each.file, each.statement))


def _in_variable(file: ParsedFile, load: ast.Call, name: str, model: str) -> list[_Taken]:
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


def _latest(trace: Trace, load: Mark, states: list[ast.stmt]) -> int:
    """When a state was surely taken last before it is loaded: what was taken earlier is not loaded."""
    return max(
        (
            ran.first
            for ran in trace.ran
            if any(ran.statement is taken for taken in states)
            and ran.last <= load.place.clock
            and _surely(trace, ran.place, load.place)
        ),
        default=0,
    )


def _surely(trace: Trace, taken: Place, load: Place) -> bool:
    """Whether every turn of the loops around ``taken`` that trains comes by it, and nothing but such loops decides
    about it."""
    met = meeting(taken, load)
    if met is None:
        return False
    for place in taken.chain():
        file, here = place.frame.file, place.frame is met[0].frame
        inner: ast.AST | None = place.statement
        # what a caller has trained before, nobody here can tell
        trained = _training(trace, place) if here else None
        # where both stand in one frame, what leaves that leaves the load too
        around = {*file.outward(met[1].node, *FUNCTIONS)} if here else set()
        while inner is not None and (outer := file.parent(inner)) not in around:
            if outer is None or isinstance(outer, (*FUNCTIONS, ast.Module)):
                break
            plain = isinstance(outer, (*LOOPS, ast.With, ast.AsyncWith)) and inner in outer.body
            if not plain and not (trained and isinstance(outer, ast.If) and _all_within(outer, inner, trained)):
                return False
            inner = outer
        if here and _of_a_handler(file, inner, met[1].node):
            # what was interrupted may have stepped
            return False
        whole = inner if here else place.frame.definition
        if whole is None or place.statement is None or _skipped(file, whole, place.statement, trained):
            return False
        if here:
            return True
    return False


def _of_a_handler(file: ParsedFile, tried: ast.AST | None, load: ast.AST) -> bool:
    """Whether a load stands in what handles the errors of something that is tried, or ends it."""
    outer = file.parent(tried) if tried is not None else None
    return (
        isinstance(outer, ast.Try) and tried in outer.body and not any(n is load for s in outer.body for n in walk(s))
    )


def _training(trace: Trace, at: Place) -> list[ast.AST]:
    """What steps, in the code in which ``at`` stands."""
    return [each.node for step in trace.steps for each in step.place.chain() if each.frame is at.frame]


def _all_within(branching: ast.If, inner: ast.AST, nodes: list[ast.AST]) -> bool:
    """Whether all ``nodes`` stand in the branch in which ``inner`` stands."""
    branch = branching.body if inner in branching.body else branching.orelse
    first, last = branch[0].lineno, branch[-1].end_lineno or inf
    return inner in branch and all(first <= getattr(node, "lineno", 0) <= last for node in nodes)


def _skipped(file: ParsedFile, around: ast.AST, taken: ast.AST, trained: list[ast.AST] | None) -> bool:
    """Whether something before ``taken`` in a statement or function ``around`` it leaves a turn, or the function, and
    something in it that has ``trained`` may come before that; None says that something always may."""
    begin = getattr(around, "lineno", 0)
    lines = [line for node in trained or () if (line := getattr(node, "lineno", 0)) >= begin]
    first = 0 if trained is None else min(lines, default=inf)
    before = [node for node in walk(around) if first <= getattr(node, "lineno", inf) < getattr(taken, "lineno", 0)]
    loops = set(file.outward(taken, *FUNCTIONS))
    return any(
        (isinstance(node, (ast.Break, ast.Continue)) and file.enclosing(node, *LOOPS) in loops)
        or (isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) and isinstance(around, FUNCTIONS))
        for node in before
    )


def _trained(trace: Trace, load: Mark, taken: ast.stmt, latest: int) -> tuple[Ran | None, Step | None]:
    """Where the state was taken, at ``latest`` or later, and a step after it that wrote to the same parameters before
    they were loaded."""
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
    within = isinstance(load.place.node, ast.Call) and isinstance(load.place.node.args[0], ast.Name)
    for ran in trace.ran:
        if ran.statement is not taken or ran.last > load.place.clock or ran.first < latest:
            continue
        if ran.frame is not load.place.frame if within else not _of_the_same(trace, load, ran):
            continue
        for step in trace.steps:
            known = isinstance(step.optimizer, Optimizer) and step.optimizer.cls is None
            owned = step.leaves
            if known and owned is not None and ran.last <= step.place.clock < load.place.clock and leaves & set(owned):
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
