"""Changes for graphs that an object, a container or a loop hands on to a later step, made where the step ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from verify.diagnosis.model import Fault
from verify.fixing.clues import Candidate, at, base, within_a_step
from verify.fixing.states import cuts
from verify.fixing.texts import Text, Texts
from verify.syntax import FUNCTIONS, bound, last_name, method_call, names, pairs

_OWN = re.compile(r"self\.(\w+)$")
_TEXT_KEY = re.compile(r"\['(\w+)'\]$")
_NUMBERED = re.compile(r"\[[\d*]+\]")
#: Objects within objects that are followed.
_DEEPEST = 3
_OWN_GRAPH = "each step learns from its own graph; the value is carried on"


@at("freed by")
def detached_in_its_owner(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Detach an attribute of an object after the backward that freed its graph, by the name of the object there."""
    carrier = fault.clue("carrier")
    attribute = _OWN.match(carrier.name) if carrier is not None else None
    if carrier is None or attribute is None or within_a_step(fault):
        return
    for owner in dict.fromkeys(_owners(carrier.function, attribute[1], file, file.scope(statement))):
        for code, title, meaning in cuts(f"{owner}.{attribute[1]}", file, several=False):
            title = f"{title} after the backward at {file.at(statement.lineno)}"
            yield Candidate(title, meaning, file.inserted(statement, code), "cut")


def _owners(method: str, attribute: str, file: Text, scope: ast.AST) -> Iterator[str]:
    """The objects of which ``scope`` calls ``method``, and those that it has of a class of the file with
    ``attribute``: by themselves, or within an object of another class."""
    classes = [node for node in ast.walk(file.tree) if isinstance(node, ast.ClassDef)]
    own: set[str] = set()
    for known in classes:
        if attribute in ast.unparse(known):
            own.update(_objects(known, classes, file, scope, _DEEPEST))
    calls = [ast.unparse(node.func) for node in _within(scope) if isinstance(node, ast.Call)]
    for function in calls:
        if function.endswith(f".{method}"):
            yield function.removesuffix(f".{method}")
        elif function in own:
            yield function
    called = {function.split(".")[0] for function in calls}
    yield from sorted(each for each in own if each.count(".") and each.split(".")[0] in called)


def _objects(
    made: ast.ClassDef, classes: list[ast.ClassDef], file: Text, scope: ast.AST, deepest: int
) -> Iterator[str]:
    """How ``scope`` writes the objects of the class ``made``."""
    for target, value in (pair for node in ast.walk(file.tree) for pair in pairs(node)):
        if not isinstance(value, ast.Call) or last_name(value.func) != made.name:
            continue
        code = ast.unparse(target)
        outer = next((each for each in classes if target in ast.walk(each)), None)
        if outer is None or scope in ast.walk(outer):
            yield code
        elif code.startswith("self.") and outer is not made and deepest:
            for owner in _objects(outer, classes, file, scope, deepest - 1):
                yield owner + code.removeprefix("self")


def _within(scope: ast.AST) -> Iterator[ast.AST]:
    """What runs when ``scope`` does, without the functions and classes that it defines."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            waiting = [*ast.iter_child_nodes(node), *waiting]


@at("freed by")
def forgotten(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Clear a list after the backward that freed the graphs in it: what a step left there is of no use to the next."""
    carrier = fault.clue("carrier")
    if carrier is None or within_a_step(fault):
        return
    known = names(next(iter(file.loops(statement)), file.scope(statement)))
    calls = (method_call(node, "append", "extend") for node in ast.walk(file.tree))
    filled = {last_name(call[0]) for call in calls if call is not None}
    found = [name for name in (carrier.name, *carrier.also) if _NUMBERED.match(name.removeprefix(base(name)))]
    for code in dict.fromkeys(map(base, found)):
        if code.partition(".")[0] not in known or code.rpartition(".")[2] not in filled:
            continue
        title = f"clear {code} after the backward at {file.at(statement.lineno)}"
        meaning = "each step learns from what it put there itself; nothing of earlier steps is left in it"
        yield Candidate(title, meaning, file.inserted(statement, f"{code}.clear()"), "afresh", fresh=True)


@at("cause")
def given_detached(fault: Fault, texts: Texts, file: Text, statement: ast.stmt) -> Iterator[Candidate]:
    """Detach a value where a call is given it under the key that it is kept by."""
    carrier = fault.clue("carrier")
    key = _TEXT_KEY.search(carrier.name) if carrier is not None else None
    if key is None or within_a_step(fault):
        return
    for keyword in (node for node in ast.walk(statement) if isinstance(node, ast.keyword) and node.arg == key[1]):
        title = f"keep {file.bare(keyword.value)}.detach() at {file.at(keyword.value.lineno)}"
        yield Candidate(title, _OWN_GRAPH, file.replaced(keyword.value, f"{file.bare(keyword.value)}.detach()"), "cut")


@at("site")
def carried_on(fault: Fault, texts: Texts, file: Text, backward: ast.stmt) -> Iterator[Candidate]:
    """Detach after the backward all that the loop hands on to its next turn, if a backward meets the weights of an
    earlier step: the error names them, and not what carried their graph."""
    loops = file.loops(backward) if "an earlier step" in fault.remedy else []
    for loop in reversed(loops):
        begun = {
            target.id: value
            for each in file.block(loop)
            if each.lineno < loop.lineno
            for target, value in pairs(each)
            if isinstance(target, ast.Name) and not isinstance(value, ast.Constant)
        }
        kept = [name for name in begun if name in bound(loop) and name in _first_read(loop)]
        if not kept:
            continue
        lines = []
        for name in kept:
            code = next(iter(cuts(name, file, several=isinstance(begun[name], (ast.Tuple, ast.List)))))[0]
            lines.append(f"{code}.requires_grad_()" if name in _differentiated(loop) else code)
        title = f"detach {', '.join(kept)} after the backward at {file.at(backward.lineno)}"
        yield Candidate(title, _OWN_GRAPH, file.inserted(backward, "\n".join(lines)), "cut", parts=len(kept))


def _first_read(loop: ast.For | ast.While) -> set[str]:
    """The variables that a turn of ``loop`` reads before it binds them."""
    found: set[str] = set()
    given: set[str] = set()
    for node in _in_order(loop.body):
        if isinstance(node.ctx, ast.Load) and node.id not in given:
            found.add(node.id)
        elif not isinstance(node.ctx, ast.Load):
            given.add(node.id)
    return found


def _in_order(block: list[ast.stmt]) -> Iterator[ast.Name]:
    """The variables of ``block`` in the order of their use: of an assignment the value comes first."""
    for statement in block:
        inner = [each for name in ("body", "orelse", "finalbody") for each in getattr(statement, name, ())]
        inside = {node for each in inner for node in ast.walk(each)}
        own = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node not in inside]
        yield from sorted(own, key=lambda node: not isinstance(node.ctx, ast.Load))
        yield from _in_order(inner)


def _differentiated(loop: ast.AST) -> set[str]:
    """The variables that ``loop`` asks gradients for, by ``autograd.grad(loss, x)``."""
    calls = (node for node in ast.walk(loop) if isinstance(node, ast.Call) and last_name(node.func) == "grad")
    return {
        each.id for call in calls for part in call.args[1:] for each in ast.walk(part) if isinstance(each, ast.Name)
    }
