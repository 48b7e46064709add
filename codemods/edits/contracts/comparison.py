"""The expected tree and the one that was made, side by side."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from codemods.edits.bindings import MODULE, Bindings, Spot
from codemods.edits.contracts.trees import FUNCTIONS, SUITES, TORCH_MARK, Emptied
from codemods.edits.emptied import is_harmless, negations
from codemods.terms.edits import EditError


class Comparison:
    """Goes through two trees side by side; raises EditError where they part."""

    def __init__(self, extras: Sequence[ast.stmt]) -> None:
        self.extras = list(extras)
        self.helpers: list[ast.stmt] = []
        self.named: list[tuple[ast.AST, str]] = []
        """Names in the new tree that stand for torch, or for what is behind the dot of it."""

    def nodes(self, expected: ast.AST, actual: ast.AST) -> None:
        if isinstance(expected, ast.Name) and expected.id == TORCH_MARK and isinstance(actual, ast.Name):
            self.named.append((actual, ""))
            return
        if (
            isinstance(expected, ast.Attribute)
            and isinstance(expected.value, ast.Name)
            and expected.value.id == TORCH_MARK
            and isinstance(actual, ast.Name)
        ):
            self.named.append((actual, expected.attr))
            return
        if isinstance(expected, ast.If) and isinstance(actual, ast.If) and self._branches(expected, actual):
            return
        if type(expected) is not type(actual):
            raise _parted(expected, actual)
        for name in expected._fields:
            mine, theirs = getattr(expected, name, None), getattr(actual, name, None)
            if name in SUITES and isinstance(mine, list) and isinstance(theirs, list):
                self.bodies(mine, theirs)
            else:
                self.fields(mine, theirs, expected, actual)

    def fields(self, mine: object, theirs: object, expected: ast.AST, actual: ast.AST) -> None:
        if isinstance(mine, ast.AST) and isinstance(theirs, ast.AST):
            self.nodes(mine, theirs)
        elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
            for one, other in zip(mine, theirs, strict=True):
                self.fields(one, other, expected, actual)
        elif not _same_constant(mine, theirs):
            raise _parted(expected, actual)

    def bodies(self, expected: Sequence[ast.stmt], actual: Sequence[ast.stmt], *, at_top: bool = False) -> None:
        """Compare two suites."""
        rest = list(actual)
        wanted = [s for s in expected if not isinstance(s, Emptied)]
        emptied = len(wanted) < len(expected)
        for statement in wanted:
            while at_top and rest and self._extra(statement, rest[0]):
                rest.pop(0)
            if _may_go(statement) and not (rest and same(statement, rest[0])):
                emptied = True
                continue
            if not rest:
                raise _parted(statement, None)
            self.nodes(statement, rest.pop(0))
        while at_top and rest and self._extra(None, rest[0]):
            rest.pop(0)
        if rest and not (emptied and _is_pass(actual)):
            raise _parted(None, rest[0])

    def _branches(self, expected: ast.If, actual: ast.If) -> bool:
        """Whether the body of an ``if`` emptied, and what is left is the other branch under its negation."""
        if not all(map(_may_go, expected.body)) or _is_pass(actual.body) or not expected.orelse:
            return False
        for negation in negations(expected.test):
            if ast.dump(negation) == ast.dump(actual.test) and not actual.orelse:
                self.bodies(expected.orelse, actual.body)
                return True
        return False

    def _extra(self, expected: ast.stmt | None, actual: ast.stmt) -> bool:
        """Whether ``actual`` stands here beside what was expected: an import of torch, or a helper asked for."""
        if expected is not None and type(expected) is type(actual) and same(expected, actual):
            return False
        if isinstance(actual, ast.Import) and [alias.name for alias in actual.names] == [MODULE]:
            return True
        for extra in self.extras:
            if type(extra) is type(actual) and same(extra, actual):
                self.extras.remove(extra)
                self.helpers.append(actual)
                self.nodes(extra, actual)
                return True
        return False

    def check_helpers(self, before: ast.Module, after: ast.Module) -> None:
        """Raise EditError if a helper is not there, or not yet where its name is first mentioned."""
        for extra in self.extras:
            if not any(same(extra, statement) for statement in before.body):
                raise _parted(extra, None)
        for helper in self.helpers:
            name = getattr(helper, "name", "")
            above = after.body[: after.body.index(helper)]
            if any(isinstance(node, ast.Name) and node.id == name for s in above for node in ast.walk(s)):
                raise EditError(f"{name} stands below what uses it")

    def check_names(self, after: ast.Module) -> None:
        """Raise EditError if what stands for torch may be something else there."""
        if not self.named:
            return
        parents = {child: node for node in ast.walk(after) for child in ast.iter_child_nodes(node)}
        bindings = Bindings(after, parents)
        for node, attribute in self.named:
            assert isinstance(node, ast.Name)
            place = Spot(_header_place(node, parents))
            if node.id not in (
                bindings.modules_at(place) if not attribute else bindings.attributes_at(place, attribute)
            ):
                raise EditError(f"{node.id} in line {node.lineno} of the result is not surely torch")


def same(expected: ast.AST, actual: ast.AST) -> bool:
    """Whether a tree may be what was expected, whatever the file calls torch."""
    try:
        Comparison(()).nodes(expected, actual)
    except EditError:
        return False
    return True


def _header_place(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST:
    """A node from which the scopes of a name are found: for a decorator the function itself."""
    parent = parents.get(node)
    child = node
    while parent is not None and not isinstance(child, ast.stmt):
        if isinstance(parent, (*FUNCTIONS, ast.ClassDef)) and child in parent.decorator_list:
            return parent
        child, parent = parent, parents.get(parent)
    return node


def _is_pass(statements: Sequence[ast.stmt]) -> bool:
    return len(statements) == 1 and isinstance(statements[0], ast.Pass)


def _may_go(statement: ast.stmt) -> bool:
    """Whether an ``if`` is left without anything to do, and nothing happens when its test is evaluated."""
    if isinstance(statement, Emptied):
        return True
    if not isinstance(statement, ast.If) or not is_harmless(statement.test):
        return False
    return all(map(_may_go, (*statement.body, *statement.orelse)))


def _same_constant(mine: object, theirs: object) -> bool:
    if isinstance(mine, str) and isinstance(theirs, str) and TORCH_MARK in mine:
        return bool(re.fullmatch(re.escape(mine).replace(TORCH_MARK, r"\w+"), theirs))
    return type(mine) is type(theirs) and repr(mine) == repr(theirs)


def _parted(expected: ast.AST | None, actual: ast.AST | None) -> EditError:
    wanted = "nothing" if expected is None else type(expected).__name__
    line = getattr(actual, "lineno", None) or getattr(expected, "lineno", None)
    what = "nothing" if actual is None else f"{type(actual).__name__}"
    return EditError(f"the edits would change more than they may: {what} for {wanted} near line {line}")
