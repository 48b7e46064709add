"""Conditions on a count of turns: what they leave out is left out in some turns of every few, never for good."""

from __future__ import annotations

import ast

from codemods.graph.model.program import ParsedFile
from codemods.proofs.syntax import scope
from codemods.source.walking import walk


def by_count(file: ParsedFile, test: ast.expr, loop: ast.AST | None, *, holds: bool) -> bool:
    """Whether nothing but a count of the turns of ``loop`` keeps a condition from being what ``holds`` says: it is so
    in every nth turn at least."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return by_count(file, test.operand, loop, holds=not holds)
    if isinstance(test, ast.BoolOp):
        each = [by_count(file, part, loop, holds=holds) for part in test.values]
        return any(each) if isinstance(test.op, ast.Or) is holds else all(each)
    value = test.left if isinstance(test, ast.Compare) and len(test.ops) == 1 else test
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Mod):
        return False
    asked = [node for node in walk(value.left) if isinstance(node, (ast.Name, ast.Attribute))]
    calls = any(isinstance(node, (ast.Call, ast.Subscript)) for node in walk(test))
    return loop is not None and not calls and len(asked) == 1 and _counts(file, asked[0], loop)


def _counts(file: ParsedFile, name: ast.expr, loop: ast.AST) -> bool:
    """Whether a name or an attribute counts the turns of a loop: by ``enumerate``, ``range`` or ``+= 1``."""
    text, counted = ast.unparse(name), False
    for node in walk(scope(file, loop)):
        if not isinstance(getattr(node, "ctx", None), ast.Store) or ast.unparse(node) != text:
            continue
        made = file.parent(node)
        if isinstance(made, ast.AugAssign):
            if not isinstance(made.op, ast.Add) or not _whole(made.value):
                return False
            if any(each is made for each in getattr(loop, "body", ())):
                counted = True
            elif any(each is made for each in walk(loop)):
                # it counts what comes in some turns only
                return False
        elif isinstance(made, ast.Assign):
            if not _whole(made.value):
                return False
        elif made is loop or (made is not None and file.parent(made) is loop):
            counted = counted or _numbers(loop, node)
        else:
            return False
    return counted


def _whole(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) is int


def _numbers(loop: ast.AST, target: ast.AST) -> bool:
    """Whether a target of a loop is a number that grows by one in each turn."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    paired = isinstance(loop.target, ast.Tuple) and loop.target.elts[0] is target
    given: ast.AST | None = loop.iter if paired or loop.target is target else None
    while isinstance(given, ast.Call):
        if isinstance(given.func, ast.Name) and given.func.id == ("enumerate" if paired else "range"):
            return True
        # a bar of progress gives what it gets
        given = given.args[0] if given.args else None
    return False
