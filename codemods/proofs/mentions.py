"""Whether the names that an edit mentions are bound where it places them: checked once, for every rule."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from typing import Literal

from codemods.graph.model.program import ParsedFile
from codemods.proofs.bindings import bound_around, bound_at
from codemods.proofs.blocks import suite_of
from codemods.proofs.observations import Decision
from codemods.proofs.syntax import COMPREHENSIONS, DEFINITIONS, names, reads
from codemods.source.walking import children, walk
from codemods.terms.edits import AddHelper, Edit, InsertStatements, MoveStatement
from codemods.terms.findings import Finding, as_advice

_ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_TORCH = "__torch__"
_BUILTINS = frozenset(dir(builtins))


def with_bound_names(findings: list[Finding], decision: Decision) -> list[Finding]:
    """Return the findings; those whose edits would mention an unbound name, and their partners, become advice."""
    return as_advice(findings, {f.key: "" for f in findings if f.edits and not _sound(f, decision)})


def _sound(finding: Finding, decision: Decision) -> bool:
    for path, edit in finding.edits:
        called = _builtins_of(edit)
        file = decision.files(path) if called else None
        if file is not None and not called.isdisjoint(file.once(_bound_builtins, file.tree)):
            return False
    by_file: dict[str, list[InsertStatements | MoveStatement]] = {}
    helpers = {edit.name for _, edit in finding.edits if isinstance(edit, AddHelper)}
    for path, edit in finding.edits:
        if isinstance(edit, (InsertStatements, MoveStatement)):
            by_file.setdefault(path, []).append(edit)
    for path, edits in by_file.items():
        file = decision.files(path)
        if file is not None and not _bound_in(file, edits, helpers):
            return False
    return True


def _builtins_of(edit: Edit) -> set[str]:
    """The built-in functions that the text of an edit calls."""
    texts = (getattr(edit, name, "") for name in ("prefix", "suffix", "code", "header"))
    return {word for text in texts for word in re.findall(r"(?<![\w.])(\w+)\(", text or "")} & _BUILTINS


def _bound_builtins(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    methods = {id(m) for c in walk(tree) if isinstance(c, ast.ClassDef) for m in c.body}
    for node in walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            given = {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            # ``torch`` exports types and functions of these names
            found |= {"float", "sum", "any", "all", "int", "bool", "abs", "max", "min"} if "*" in given else given
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (*DEFINITIONS, ast.ClassDef)) and id(node) not in methods:
            found.add(node.name)
    return found & _BUILTINS


def _bound_in(file: ParsedFile, edits: list[InsertStatements | MoveStatement], helpers: set[str]) -> bool:
    moved = [file.find(e.target, ast.stmt) for e in edits if isinstance(e, MoveStatement)]
    texts = {e: _parsed(e.code) for e in edits if isinstance(e, InsertStatements)}
    # what the edits bind themselves they bind in their order
    made = helpers | {n for node in (*moved, *texts.values()) if node is not None for n in names(node, ast.Store)}
    for edit in edits:
        anchor = file.find(edit.anchor, ast.stmt)
        if not isinstance(anchor, ast.stmt):
            continue
        point = _point(anchor, edit.where)
        node: ast.AST | None
        if isinstance(edit, MoveStatement):
            node = file.find(edit.target, ast.stmt)
            if isinstance(node, ast.stmt) and _read_between(file, node, anchor, moved):
                return False
        else:
            node = texts[edit]
        if node is not None and any(_taken_over(file, point[0], name) for name in names(node, ast.Store)):
            return False
        if node is not None and not all(_bound(file, *point, name) for name in _read(node) - made):
            return False
    return True


def _parsed(code: str) -> ast.Module | None:
    try:
        return ast.parse(code.replace("{torch}", _TORCH))
    except SyntaxError:
        return None


def _read(node: ast.AST) -> set[str]:
    """The names that code reads from its surroundings."""
    own = {n for c in walk(node) if isinstance(c, ast.comprehension) for n in names(c.target, ast.Store)}
    own |= {a.arg for a in walk(node) if isinstance(a, ast.arg)}
    asked = names(node)
    if isinstance(node, ast.AugAssign):
        asked |= names(node.target, ast.Store)
    return asked - own - {_TORCH} - set(dir(builtins))


def _point(anchor: ast.stmt, where: str) -> tuple[ast.stmt, Literal["before", "after"]]:
    """The statement before or after which the edit is placed."""
    body = getattr(anchor, "body", None)
    if where in ("first-in", "last-in") and isinstance(body, list) and body:
        return (body[0], "before") if where == "first-in" else (body[-1], "after")
    return anchor, "before" if where in ("before", "first-in") else "after"


def _bound(file: ParsedFile, statement: ast.stmt, where: Literal["before", "after"], name: str) -> bool:
    belongs = bound_around(file, statement, name)
    if belongs is None:
        return file.once(_takes_all, file.tree)
    # the edit asks for what is around the function when the function itself does
    return not belongs or bound_at(file, statement, name, where) or _asked_anyway(file, statement, where, name)


def _taken_over(file: ParsedFile, statement: ast.stmt, name: str) -> bool:
    """Whether a name of an outer scope, bound in a function that reads it, would become one of the function's own."""
    if bound_around(file, statement, name) is not False:
        return False
    function = file.enclosing(statement, *DEFINITIONS)
    if function is None:
        return False
    declared = {n for s in walk(function) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
    return name not in declared and name in names(function)


def _takes_all(tree: ast.Module) -> bool:
    """Whether the file has a star import."""
    return any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in walk(tree))


def _asked_anyway(file: ParsedFile, statement: ast.stmt, where: str, name: str) -> bool:
    """Whether the program itself surely reads the name around that point, with no binding in between."""
    inner: ast.AST = statement
    first = True
    while isinstance(inner, ast.stmt):
        outer, suite = file.parent(inner), suite_of(file, inner)
        split = suite.index(inner) + (first and where == "after")
        if _asks(reversed(suite[:split]), name) or (first and _asks(iter(suite[split:]), name)):
            return True
        if outer is None or isinstance(outer, (*DEFINITIONS, ast.ClassDef)):
            return False
        if name in names(outer, ast.Del):
            return False
        if isinstance(outer, ast.stmt) and name in _at_once(outer):
            return True
        inner, first = outer, False
    return False


def _asks(suite: Iterator[ast.stmt], name: str) -> bool:
    for statement in suite:
        if name in names(statement, ast.Del):
            return False
        if name in _at_once(statement):
            return True
        if name in names(statement, ast.Store) or any(isinstance(n, _ENDS) for n in walk(statement)):
            return False
    return False


def _at_once(statement: ast.stmt) -> set[str]:
    """The names that a statement surely reads whenever it runs."""
    if isinstance(statement, (*DEFINITIONS, ast.ClassDef)):
        return set()
    found: set[str] = set()
    stack: list[ast.AST] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        if isinstance(node, (ast.Lambda, ast.IfExp, ast.BoolOp, *COMPREHENSIONS)):
            continue
        stack += [
            child for child in children(node) if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case))
        ]
    return found


def _read_between(file: ParsedFile, target: ast.stmt, anchor: ast.stmt, moved: list[ast.AST | None]) -> bool:
    """Whether what ``target`` binds is read on its way to ``anchor``, by something that does not move with it."""
    given = names(target, ast.Store)
    low, high = target.end_lineno or target.lineno, anchor.lineno
    if anchor.lineno < target.lineno:
        low, high = anchor.end_lineno or anchor.lineno, target.lineno
    lines = {n for s in moved if isinstance(s, ast.stmt) for n in range(s.lineno, (s.end_lineno or s.lineno) + 1)}
    around = file.enclosing(target, *DEFINITIONS) or file.tree
    asked = (n for name in given for n in reads(around, name))
    return any(low < n.lineno < high and n.lineno not in lines for n in asked)
