"""The rule ``best-state-not-copied``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import EllipsisType

from codemods.graph.model.kinds import Marked
from codemods.graph.model.nodes import Frame, Place
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Mark, Ran, Step, Trace
from codemods.graph.model.values import Instance, Module, Optimizer
from codemods.proofs.bindings import bound_around, bound_at
from codemods.proofs.blocks import suites_around
from codemods.proofs.observations import Observation, Shows
from codemods.proofs.paths import comes_after, comes_before
from codemods.proofs.syntax import DEFINITIONS, FUNCTIONS, LOOPS, everywhere, method, own_nodes, scope
from codemods.proofs.turns import in_some_turns, loops_around
from codemods.rules._sites import SiteRule, under
from codemods.rules.best_state_not_copied.states import (
    MOVING,
    Taken,
    assigned,
    changed,
    empty,
    given_to,
    handed_on,
    named_in,
    owner_of,
    plain,
    read_of,
    states_in,
)
from codemods.source.walking import walk
from codemods.terms.edits import Edit, InsertStatements, KeepPart, WrapExpression
from codemods.terms.findings import Promise


class BestStateNotCopied(SiteRule):
    """A ``state_dict`` that is kept while training goes on and used later: it holds the newest weights, not the best.

    Why it hurts: ``best = model.state_dict()`` copies nothing. The tensors in it are the parameters' own memory, which
    every later step writes to. When ``model.load_state_dict(best)`` comes, it loads the weights into
    themselves: early stopping and "best on validation" keep whatever the last step left. Nothing raises. So it is where
    ``best`` was taken under a condition and is saved when the loop is over. A dict copies nothing either: ``best =
    {"model": model.state_dict(), "loss": loss}``.

    Left alone: states that are copied (``copy.deepcopy``, a dict of clones), saved to a file at once, or loaded into
    another model; models that are made again or moved in between; names and attributes that are given anything else on
    the way, and attributes that are read for more than to load, save or test them; a state that is taken anew in every
    turn behind the last step of it, or right before the loop is left; optimizers of classes of the tree; models with a
    ``state_dict`` of their own, and such as cannot be seen; dicts of states in an attribute, and such as are written to
    or handed on.

    The rewrite: ``best = copy.deepcopy(model.state_dict())``, with ``import copy`` where the file has none; in a
    dict, each state is copied.

    Promise: behaviour. What is loaded in the end is another model: the one that was best.

    Source: https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    name = "best-state-not-copied"
    promise = Promise.BEHAVIOUR
    summary = "a state dict is kept over steps without a copy and used later"
    gate = (b".backward(", b"autograd.backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        seen = list(self._uses(trace))
        # that one state of a dict is used in time says nothing of the others
        wrong = {t.statement for t, one in seen if one.shows is Shows.FAULT and isinstance(t.value, ast.Dict)}
        yield from (one for taken, one in seen if one.shows is Shows.FAULT or taken.statement not in wrong)

    def _uses(self, trace: Trace) -> Iterator[tuple[Taken, Observation]]:
        loads = ((mark, _model(mark)) for mark in trace.marks if mark.kind is Marked.PARAMETERS_LOADED)
        for load, model in (*loads, *_saves(trace)):
            saved = load.kind is Marked.STATE_TAKEN
            states = list(_kept(trace, load, model))
            for taken in states:
                ran, step = _trained(trace, load, taken.statement, [other.statement for other in states])
                if ran is None or step is None:
                    yield taken, self.fine(taken.file, taken.statement)
                    continue
                name = ast.unparse(taken.target)
                copied = [f"copy.deepcopy({ast.unparse(plain(state))})" for state in states_in(taken.value).values()]
                yield (
                    taken,
                    self.fault(
                        taken.file,
                        taken.statement,
                        f"`{name}` is not a copy: each step changes the tensors in it, so that "
                        + ("the newest weights are saved" if saved else "loading it restores the newest weights"),
                        f"copy what it takes: `{'`, `'.join(copied)}`"
                        if isinstance(taken.value, ast.Dict)
                        else f"write `{name} = {copied[0]}`",
                        (step.place, "writes to the tensors in it"),
                        (
                            load.place,
                            "saved here, as they are by then" if saved else "loaded here, onto themselves",
                        ),
                        edits=_copied(taken),
                    ),
                )


def _copied(taken: Taken) -> list[Edit]:
    """The edits that copy the states that are taken; none where ``copy`` may be anything but Python's module."""
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
    for part in states_in(value).values():
        state = plain(part)
        if state is not part:
            edits.append(KeepPart(file.span(part), file.span(state)))
        edits.append(WrapExpression(file.span(state), "copy.deepcopy(", ")"))
    return edits


def _is_whole(file: ParsedFile, alias: ast.alias) -> bool:
    """Whether an import binds a module, and not something in it."""
    return isinstance(file.parent(alias), ast.Import)


def _binds_copy(node: ast.AST) -> bool:
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) == "copy"
    if isinstance(node, ast.Name):
        return node.id == "copy" and not isinstance(node.ctx, ast.Load)
    return isinstance(node, (*DEFINITIONS, ast.ClassDef)) and node.name == "copy"


def _saves(trace: Trace) -> Iterator[tuple[Mark, str]]:
    """Where a state is saved that a variable was given before, told as the mark of its taking with that place, and
    whose state it is: of each save the last one that ran, as the first has seen no steps. What every path takes may be
    meant to be the newest."""
    last: dict[tuple[ast.Call, Frame, str], Mark] = {}
    for ran in trace.ran:
        call = ran.statement.value if isinstance(ran.statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or trace.called.get(call) != "torch.save" or not call.args:
            continue
        given, key = read_of(call.args[0])
        done: set[str] = set()
        for mark in reversed(trace.marks) if isinstance(given, ast.Name) else ():
            taken, model = mark.place.statement, _model(mark)
            if (
                mark.kind is Marked.STATE_TAKEN
                and model not in done
                and mark.place.frame is ran.frame
                and mark.place.clock < ran.first
                and taken is not None
                and any(plain(state) is mark.place.node for state in given_to(taken, ast.unparse(given), key))
                and under(ran.frame.file, taken, ast.If)
                and _in_some_turns(mark.place)
            ):
                done.add(model)
                place = Place(call, ran.statement, ran.frame, ran.loops, ran.first)
                last[call, ran.frame, model] = replace(mark, place=place)
    yield from ((mark, model) for (_, _, model), mark in last.items())


def _in_some_turns(place: Place) -> bool:
    """Whether a place in loops is come by in some of their turns: not in all, as under ``if rank == 0``."""
    loops = loops_around(place)
    return not loops or any(in_some_turns(place, loop) for loop, _ in loops)


def _kept(trace: Trace, load: Mark, model: str) -> Iterator[Taken]:
    """The statements that took the state which is loaded or saved, if it is never given anything that is a copy."""
    file, call = load.place.frame.file, load.place.node
    if not isinstance(call, ast.Call) or not call.args:
        return
    given, key = read_of(call.args[0])
    if isinstance(given, ast.Name):
        whole = load.kind is Marked.STATE_TAKEN and key is None
        found = _in_variable(file, call, given.id, model, ... if whole else key)
        if any(isinstance(one.value, ast.Dict) for one in found) and handed_on(trace, file, call, given.id):
            return
    elif isinstance(given, ast.Attribute):
        found = _in_attribute(trace, given.attr)
    else:
        return
    yield from (each for each in found if not _leaves(each.file, each.statement))


def _model(mark: Mark) -> str:
    """What the program calls the model that a mark is about."""
    call = mark.place.node
    return ast.unparse(call.func.value) if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""


def _in_variable(file: ParsedFile, load: ast.AST, name: str, model: str, key: str | EllipsisType | None) -> list[Taken]:
    """The statements that gave the state of ``model`` to a variable, under ``key`` (...: any) if that is a dict; none
    if anything else may be in it."""
    found: list[Taken] = []
    around = scope(file, load)
    bound = 0
    for node in walk(around):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return []
        if isinstance(node, ast.arg) and node.arg == name:
            return []
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            bound += 1
        for target, value in assigned(node):
            if ast.unparse(target) != name:
                continue
            if empty(value):
                bound -= 1
            elif (
                isinstance(node, ast.Assign)
                and any(key in (at, ...) and named_in(state) == model for at, state in states_in(value).items())
                and scope(file, node) is around
            ):
                bound -= 1
                found.append(Taken(file, node, target, value))
    return [] if bound or changed(file, around, name, model) else found


def _in_attribute(trace: Trace, name: str) -> list[Taken]:
    """The statements that gave a state to an attribute of this name; none if any program text does more with it than
    to give, load, save and test it."""
    found: list[Taken] = []
    known: set[ast.AST] = set()
    seen: list[ast.AST] = []
    for file, node in everywhere(trace):
        if isinstance(node, ast.Constant) and node.value == name:
            return []
        if isinstance(node, ast.Attribute) and node.attr == name:
            seen.append(node)
        for target, value in assigned(node):
            if not isinstance(target, ast.Attribute) or target.attr != name:
                continue
            if isinstance(node, ast.Assign) and owner_of(value) is not None:
                found.append(Taken(file, node, target, value))
            elif not empty(value):
                return []
            known.add(target)
        if isinstance(node, ast.Compare) and all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            known.add(node.left)
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            known.add(node.test)
        if isinstance(node, ast.Call) and (method(node) == "load_state_dict" or trace.called.get(node) == "torch.save"):
            known.update(node.args)
    return found if known.issuperset(seen) else []


def _leaves(file: ParsedFile, taken: ast.stmt) -> bool:
    """Whether the loop or the function ends right after it."""
    for suite, index in suites_around(file, taken):
        holder = file.parent(suite[index])
        if isinstance(holder, FUNCTIONS):
            return False
        if any(isinstance(s, (ast.Break, ast.Return, ast.Raise)) for s in suite[index + 1 :]):
            return True
        if isinstance(holder, LOOPS):
            return False
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

    within = isinstance(load.place.node, ast.Call) and isinstance(read_of(load.place.node.args[0])[0], ast.Name)
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
    between = (other.statement for other in trace.ran if ran.last <= other.first < load.place.clock)
    moved = any(method(getattr(other, "value", None)) in MOVING for other in between)
    return not moved and any(
        mark.kind is Marked.STATE_TAKEN
        and mark.exact
        and ran.first <= mark.place.clock < ran.last
        and set(mark.of or ()) == leaves
        for mark in trace.marks
    )


RULE = BestStateNotCopied
