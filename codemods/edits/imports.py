"""Where imports and helpers belong in a file, and imports that nothing needs any more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import libcst as cst

from codemods.edits.bindings import MODULE
from codemods.edits.gaps import gap_to_end, gap_to_next
from codemods.source.magics import is_stand_in
from codemods.terms.edits import EditError

_KEPT_BY_COMMENT = re.compile(r"#.*\b(noqa|pylint:\s*disable)\b", re.IGNORECASE)
_TYPE_COMMENT = re.compile(r"#\s*type:(.*)")
_WORD = re.compile(r"[^\W\d]\w*")
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class TopLevelPlace(NamedTuple):
    """A place between the statements of a module: before or after ``anchor``, or anywhere if there is none.

    ``below_comments`` says that comments directly above ``anchor`` are about more than that statement.
    """

    anchor: ast.stmt | None
    where: str
    blank_above: int = 0
    blank_below: int = 0
    below_comments: bool = False


def place_for_import(tree: ast.Module, limit: int) -> TopLevelPlace:
    """Where ``import torch`` goes so that the statement ``limit`` of ``tree`` and those after it can use it.

    That is in front of other imports of torch, else after the other imports, else at the top.
    """
    body = tree.body
    start = _after_preamble(tree)
    imports = [index for index in range(start, limit) if isinstance(body[index], (ast.Import, ast.ImportFrom))]
    for index in imports:
        if _of_torch(body[index]):
            return TopLevelPlace(_first_on_line(body, index, start), "before", below_comments=True)
    if imports:
        last = imports[0]
        while last + 1 in imports:
            last += 1
        return TopLevelPlace(_last_on_line(body, last), "after")
    if not body:
        return TopLevelPlace(None, "before")
    following = body[start] if start < len(body) else None
    below = 2 if isinstance(following, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else 1
    if start:
        return TopLevelPlace(_last_on_line(body, start - 1), "after", 1, below)
    return TopLevelPlace(body[0], "before", 0, below)


def place_for_helper(tree: ast.Module) -> TopLevelPlace:
    """Where a helper function goes: after the imports at the top of the file."""
    body = tree.body
    end = _after_preamble(tree)
    while end < len(body) and _only_imports(body[end]):
        end += 1
    if end:
        return TopLevelPlace(_last_on_line(body, end - 1), "after", 2, 2)
    return TopLevelPlace(body[0] if body else None, "before", 2, 2)


def drop_names(statement: cst.Import | cst.ImportFrom, indexes: Iterable[int]) -> cst.Import | cst.ImportFrom:
    """``statement`` without those of its names that are at ``indexes``; raises EditError if none is left."""
    for index in sorted(indexes, reverse=True):
        statement = _drop_name(statement, index)
    return statement


def _drop_name(statement: cst.Import | cst.ImportFrom, index: int) -> cst.Import | cst.ImportFrom:
    if isinstance(statement.names, cst.ImportStar) or len(statement.names) < 2:
        raise EditError("an import cannot lose its only name")
    names = list(statement.names)
    dropped = names.pop(index)
    lpar = statement.lpar if isinstance(statement, cst.ImportFrom) else None
    rpar = statement.rpar if isinstance(statement, cst.ImportFrom) else None
    changes: dict[str, object] = {"names": names}
    after = dropped.comma.whitespace_after if isinstance(dropped.comma, cst.Comma) else None
    if index == 0:
        if lpar is not None and after is not None:
            changes["lpar"] = lpar.with_changes(whitespace_after=gap_to_next(lpar.whitespace_after, after, first=True))
        return statement.with_changes(**changes)
    previous = names[index - 1]
    if not isinstance(previous.comma, cst.Comma):
        raise EditError("a name without a comma stands before another one")
    before = previous.comma.whitespace_after
    comma: cst.Comma | cst.MaybeSentinel = cst.MaybeSentinel.DEFAULT
    if index < len(names) and after is not None:
        comma = previous.comma.with_changes(whitespace_after=gap_to_next(before, after, first=False))
    elif after is not None:
        comma = previous.comma.with_changes(whitespace_after=gap_to_end(before, after))
    elif rpar is not None:
        changes["rpar"] = rpar.with_changes(whitespace_before=gap_to_end(before, rpar.whitespace_before))
    names[index - 1] = previous.with_changes(comma=comma)
    return statement.with_changes(**changes)


def unused_names(
    before: ast.Module,
    after: ast.Module,
    lines: Sequence[str],
    new_lines: Sequence[str],
    parents: Mapping[ast.AST, ast.AST],
    exported: Iterable[str],
) -> dict[ast.Import | ast.ImportFrom, set[int]]:
    """The imports of ``before`` that are used there and no longer in ``after``, with the indexes of their names.

    ``lines`` and ``new_lines`` are the texts of the two, ``parents`` has those of the nodes in ``before``. Kept are
    names in ``exported``, re-exports, imports from the package itself, imports below ``try`` or ``if`` and those on
    lines with a ``noqa``.
    """
    lost = _mentioned(before, lines) - _mentioned(after, new_lines) - set(exported)
    unused: dict[ast.Import | ast.ImportFrom, set[int]] = {}
    if not lost:
        return unused
    for node in ast.walk(before):
        if not isinstance(node, (ast.Import, ast.ImportFrom)) or _is_kept(node, lines, parents):
            continue
        indexes = {
            index
            for index, alias in enumerate(node.names)
            if alias.asname != alias.name and (alias.asname or alias.name.partition(".")[0]) in lost
        }
        if indexes:
            unused[node] = indexes
    return unused


def _is_kept(node: ast.Import | ast.ImportFrom, lines: Sequence[str], parents: Mapping[ast.AST, ast.AST]) -> bool:
    if isinstance(node, ast.ImportFrom) and (node.level or node.module == "__future__"):
        return True
    if not isinstance(parents[node], (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
        return True
    end = node.end_lineno or node.lineno
    return any(_KEPT_BY_COMMENT.search(line) for line in lines[node.lineno - 1 : end])


def _mentioned(tree: ast.Module, lines: Sequence[str]) -> set[str]:
    """Every name that the code uses, in strings too where they may stand for code."""
    names: set[str] = set()
    annotations: list[ast.AST | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            names.update(node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
            names.add(node.value.partition(".")[0])
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            annotations.append(node.annotation)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            annotations.append(node.returns)
    for annotation in annotations:
        for node in ast.walk(annotation) if annotation is not None else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names.update(_WORD.findall(node.value))
    for line in lines:
        if "type:" in line and (comment := _TYPE_COMMENT.search(line)):
            names.update(_WORD.findall(comment[1]))
    return names


def _after_preamble(tree: ast.Module) -> int:
    """The index of the first statement after the docstring and the imports from the future."""
    index = 1 if ast.get_docstring(tree, clean=False) is not None else 0
    for number, statement in enumerate(tree.body):
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            index = number + 1
    return index


def _only_imports(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return all(map(_only_imports, [*statement.body, *statement.orelse]))
    if isinstance(statement, ast.Try):
        return all(map(_only_imports, statement.body))
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        return isinstance(called, ast.Name) and is_stand_in(called.id)
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def _of_torch(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import):
        return any(alias.name.partition(".")[0] == MODULE for alias in statement.names)
    if not isinstance(statement, ast.ImportFrom) or statement.level:
        return False
    return (statement.module or "").partition(".")[0] == MODULE


def _first_on_line(body: Sequence[ast.stmt], index: int, start: int) -> ast.stmt:
    while index > start and body[index - 1].end_lineno == body[index].lineno:
        index -= 1
    return body[index]


def _last_on_line(body: Sequence[ast.stmt], index: int) -> ast.stmt:
    while index + 1 < len(body) and body[index].end_lineno == body[index + 1].lineno:
        index += 1
    return body[index]
