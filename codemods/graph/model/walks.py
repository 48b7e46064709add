"""What code back-propagates, by its look, and which libraries may hand what they get to such code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.graph.model.facts.python import CARRYING_LIBRARIES
from codemods.graph.model.program import ParsedFile
from codemods.source.walking import called, children, walk
from codemods.terms.words import words

_Function = ast.FunctionDef | ast.AsyncFunctionDef

_KEEPING = words("append appendleft add extend insert put setdefault update backward setattr __setattr__ exec")
"""What Python's own containers and objects keep a value by, and the method that walks it."""

_SHOWING = words("join len str repr print format")
"""What makes a number or a text of a list or dict that it gets, by its last name."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)

TOLD_APART = CARRYING_LIBRARIES | {"", "builtins", "torch"}
"""Libraries of which is followed what they do with classes and functions of the tree, and what is none."""

_RECORDING = words("warnings.catch_warnings logging.setLogRecordFactory logging.setLoggerClass")
"""Functions after which a library lets code of the tree have what it gets (docs)."""

_BACKWARD = re.compile(r"\b(?:manual_)?backward\b")
_AUTOGRAD = re.compile("autograd")
_GRAD = re.compile(r"\bgrad\b")


def walks(scope: ast.AST) -> bool:
    """Whether the code in ``scope`` back-propagates, reached or not."""
    return any(_is_walk(node) for node in walk(scope) if isinstance(node, ast.Call))


def _is_walk(call: ast.Call) -> bool:
    name = called(call)
    return name in ("backward", "manual_backward") or (
        name == "grad" and ast.unparse(call.func).endswith("autograd.grad")
    )


def keeps(definition: ast.AST) -> bool:
    """Whether the code of a function stores anything, or calls a method with arguments: it may keep what goes through
    it. What it puts into a list or dict of its own, which goes with the call, it does not keep."""
    own = _own_containers(definition)
    for node in walk(definition):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _name(node.value) not in own:
            return True
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            return True
        if isinstance(node, ast.Call) and called(node) in _KEEPING and _name(_receiver(node)) not in own:
            return True
    return False


def _own_containers(definition: ast.AST) -> set[str]:
    """The variables of a function that are nothing but lists, dicts and sets made in it, and that nobody else gets:
    they are filled, gone through, joined to a text and returned."""
    nodes = list(walk(definition))
    inside = {n for scope in nodes if isinstance(scope, _SCOPES) and scope is not definition for n in walk(scope)}
    if any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in nodes):
        # its variables stay from one turn to the next
        return set()
    made, harmless = set[ast.AST](), set[ast.AST]()
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, _DISPLAYS):
            made.add(node.targets[0])
        elif isinstance(node, ast.Call):
            harmless.add(_receiver(node))
            harmless.update(node.args if called(node) in _SHOWING else ())
        elif isinstance(node, ast.Subscript):
            harmless.add(node.value)
        elif isinstance(node, (ast.For, ast.comprehension)):
            harmless.add(node.iter)
        elif isinstance(node, ast.Return) and node.value is not None:
            harmless.add(node.value)
    names = [n for n in nodes if isinstance(n, ast.Name)]
    other = {n.id for n in names if n in inside or n not in (made if isinstance(n.ctx, ast.Store) else harmless)}
    other |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    return {n.id for n in names if n in made} - other


def _receiver(call: ast.Call) -> ast.AST:
    """The object whose method is called; the call itself where it is a function."""
    return call.func.value if isinstance(call.func, ast.Attribute) else call


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def may_walk(file: ParsedFile, code: ast.AST) -> bool:
    """Whether a stretch of code back-propagates, or calls something that does by a name of a function of its file."""
    if not _named(file):
        return False
    return file.once(walks, code) or not _calls(code).isdisjoint(file.once(_walking, file.tree))


def _calls(code: ast.AST) -> set[str]:
    """The last names of what is called in a stretch of code."""
    return {called(node) for node in walk(code) if isinstance(node, ast.Call)}


def _walking(tree: ast.AST) -> set[str]:
    """The names of the functions of a file that back-propagate, or call one that does."""
    calls: dict[_Function, set[str]] = {}
    around: dict[_Function, _Function | None] = {}
    walking: set[_Function] = set()
    stack: list[tuple[ast.AST, _Function | None]] = [(tree, None)]
    while stack:
        node, owner = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            around[node], calls[node], owner = owner, set(), node
        elif owner is not None and isinstance(node, ast.Call):
            calls[owner].add(called(node))
            if _is_walk(node):
                walking.add(owner)
        stack += [(child, owner) for child in children(node)]
    for inner, outer in reversed(around.items()):
        # what stands in a function within a function stands in both
        if outer is not None:
            calls[outer] |= calls[inner]
            if inner in walking:
                walking.add(outer)
    found = {function.name for function in walking}
    while more := {f.name for f, called in calls.items() if f.name not in found and not called.isdisjoint(found)}:
        found |= more
    return found


def _named(file: ParsedFile) -> bool:
    """Whether a name that back-propagates stands in a file: without, no code in it does."""
    # Python takes letters of other alphabets for these
    if not file.text.isascii() or file.holds(_BACKWARD):
        return True
    return file.holds(_AUTOGRAD) and file.holds(_GRAD)


def answering(file: ParsedFile) -> frozenset[str]:
    """The modules from whose classes a file derives one that may keep or walk what it gets, of which it replaces
    something, or that it asks to record what they get."""
    asked = (path.rpartition(".")[0] for node in walk(file.tree) for path in _answered(file, node))
    return frozenset(module for module in asked if module.partition(".")[0] not in TOLD_APART)


def _answered(file: ParsedFile, node: ast.AST) -> Iterator[str]:
    """The public names of what code at a node derives from, replaces, or lets record."""
    if isinstance(node, ast.ClassDef):
        methods = [m for m in node.body if isinstance(m, ast.FunctionDef) and m.name != "__init__"]
        if any(file.once(keeps, m) or may_walk(file, m) for m in methods):
            yield from map(file.named, node.bases)
    elif isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant):
        yield from (file.named(target) for target in node.targets if isinstance(target, ast.Attribute))
    elif isinstance(node, ast.Call) and (node.args or node.keywords):
        path = file.named(node.func)
        if path in _RECORDING:
            yield path
