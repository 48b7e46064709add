"""The rule ``best-state-not-copied``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.graph.model.kinds import Marked
from codemods.graph.model.nodes import Frame
from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Mark, Ran, Step, Trace
from codemods.graph.model.values import Instance, Module, Optimizer
from codemods.proofs.observations import Observation
from codemods.proofs.syntax import FUNCTIONS
from codemods.rules._advice import AdvisingRule, scope

_MOVING = frozenset(["to", "cuda", "cpu", "half", "float", "double", "bfloat16", "type", "to_empty", "apply"])


class BestStateNotCopied(AdvisingRule):
    """A ``state_dict`` that is kept while training goes on and loaded later: it holds the newest weights, not the best.

    Why it hurts: ``best = model.state_dict()`` copies nothing. The tensors in it are the parameters' own memory, which
    every later step writes to. When ``model.load_state_dict(best)`` comes, it loads the weights into
    themselves: early stopping and "best on validation" keep whatever the last step left. Nothing raises.

    Left alone: states that are copied (``copy.deepcopy``, a dict of clones), saved to a file at once, or loaded into
    another model; models that are made again or moved in between; names that are given anything else on the way; a
    state that is taken right before the loop is left; optimizers of classes of the tree; models with a ``state_dict``
    of their own, and such as cannot be seen.

    Advice: ``best = copy.deepcopy(model.state_dict())``.

    Promise: advice. What is loaded in the end is another model.

    Source: https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html
    """

    name = "best-state-not-copied"
    summary = "a state dict is kept over steps without a copy and loaded later"
    gate = (b".backward(", b"autograd.backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        for load in trace.marks:
            if load.kind is not Marked.PARAMETERS_LOADED or not isinstance(load.place.node, ast.Call):
                continue
            file = load.place.frame.file
            for taken in _kept(file, load.place.node):
                ran, step = _trained(trace, load, taken)
                if ran is None or step is None:
                    yield self.fine(file, taken)
                    continue
                name = ast.unparse(taken.targets[0])
                yield self.fault(
                    file,
                    taken,
                    f"`{name}` is no copy: each step changes the tensors in it, and when it is loaded it holds the "
                    "newest weights",
                    f"write `{name} = copy.deepcopy({ast.unparse(_plain(taken.value))})`",
                    (step.place, "writes to the tensors in it"),
                    (load.place, "loaded here, into themselves"),
                )


def _plain(value: ast.expr) -> ast.expr:
    """Without a ``.copy()``, which copies the dict and not the tensors."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "copy":
        return value.func.value
    return value


def _kept(file: ParsedFile, load: ast.Call) -> Iterator[ast.Assign]:
    """The statements that took the state which is loaded, if its name is never given anything that is a copy."""
    given = load.args[0] if load.args else None
    if not isinstance(load.func, ast.Attribute) or not isinstance(given, (ast.Name, ast.Attribute)):
        return
    name, model = ast.unparse(given), ast.unparse(load.func.value)
    if not isinstance(given, ast.Name):
        return
    found: list[ast.Assign] = []
    around = scope(file, load)
    bound = 0
    for node in ast.walk(around):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and given.id in node.names:
            return
        if isinstance(node, ast.arg) and node.arg == given.id:
            return
        if isinstance(node, ast.Name) and node.id == given.id and not isinstance(node.ctx, ast.Load):
            bound += 1
        for target, value in _assigned(node):
            if ast.unparse(target) != name:
                continue
            if isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and not value.keys):
                bound -= 1
            elif (
                isinstance(node, ast.Assign)
                and target in node.targets
                and _takes(_plain(value), model)
                and scope(file, node) is around
            ):
                bound -= 1
                found.append(node)
    if bound or _changed(file, around, name, model):
        return
    yield from (taken for taken in found if not _leaves(file, taken))


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


def _takes(value: ast.expr, model: str) -> bool:
    return (
        isinstance(value, ast.Call)
        and not value.args
        and not value.keywords
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "state_dict"
        and ast.unparse(value.func.value) == model
    )


def _changed(file: ParsedFile, around: ast.AST, name: str, model: str) -> bool:
    """Whether what is kept is written to, or the model is made anew or moved."""
    made = 0
    for node in ast.walk(around):
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
    """Whether the loop or the function ends right behind it."""
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


def _trained(trace: Trace, load: Mark, taken: ast.stmt) -> tuple[Ran | None, Step | None]:
    """Where the state was taken, and a step behind it that wrote to the same parameters before they were loaded."""
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
    frame: Frame = load.place.frame
    for ran in trace.ran:
        if ran.statement is not taken or ran.frame is not frame or ran.last > load.place.clock:
            continue
        for step in trace.steps:
            known = isinstance(step.optimizer, Optimizer) and step.optimizer.cls is None
            owned = step.leaves
            if known and owned is not None and ran.last <= step.place.clock < load.place.clock and leaves & set(owned):
                return ran, step
    return None, None


RULE = BestStateNotCopied
