"""By what name code at some place of a file reaches torch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

MODULE = "torch"

_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_Comprehension = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Import = ast.Import | ast.ImportFrom
# The name that one imported thing gets, or None if it is another thing than the one looked for.
_Binding = Callable[[_Import, ast.alias], str | None]


@dataclass(frozen=True)
class Spot:
    """Where code runs: at ``node`` itself, right ``after`` it, or at the ``start`` or ``end`` of its body."""

    node: ast.AST
    where: Literal["at", "after", "start", "end"] = "at"


class Bindings:
    """What the imports of a file bind; those in ``ignored`` will not be there."""

    def __init__(self, tree: ast.Module, parents: Mapping[ast.AST, ast.AST], ignored: Iterable[ast.stmt] = ()) -> None:
        self.tree = tree
        self.parents = parents
        self.ignored = frozenset(ignored)

    def modules_at(self, place: Spot) -> list[str]:
        """All such names."""
        return list(self._bound(place, _module_name))

    def attributes_at(self, place: Spot, attribute: str) -> list[str]:
        """All such names."""

        def name(statement: _Import, alias: ast.alias) -> str | None:
            found = isinstance(statement, ast.ImportFrom) and not statement.level and statement.module == MODULE
            return (alias.asname or alias.name) if found and alias.name == attribute else None

        return list(self._bound(place, name))

    def free_name(self, place: Spot) -> str:
        """A name that an import of torch at the top of the module may bind for code at ``place``."""
        scopes = list(self._scopes(place))
        outer = scopes[-1][0]
        taken = any(_binds(scope, MODULE, lambda *_: None) for scope, _ in scopes if scope is not outer)
        if not taken and not _binds(outer, MODULE, _module_name) and not self._declared_global(MODULE):
            return MODULE
        name = f"_{MODULE}"
        taken_names = identifiers(self.tree)
        while name in taken_names:
            name = f"_{name}"
        return name

    def _bound(self, place: Spot, name_of: _Binding) -> Iterator[str]:
        hidden: set[str] = set()
        for scope, before in self._scopes(place):
            for name in sorted(self._certain(before, name_of)):
                other = _binds(scope, name, name_of) or (scope is self.tree and self._declared_global(name))
                if name not in hidden and not other:
                    yield name
            hidden |= {name for name, _, _ in _bindings(scope)}

    def _declared_global(self, name: str) -> bool:
        return any(isinstance(node, ast.Global) and name in node.names for node in ast.walk(self.tree))

    def _scopes(self, place: Spot) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
        """The scopes that code at ``place`` sees, inner ones first, with the statements run there before it."""
        before: list[ast.stmt] = []
        node, innermost = place.node, True
        if place.where in ("start", "end") or isinstance(node, ast.Module):
            body: list[ast.stmt] = getattr(node, "body", [])
            before += body if place.where == "end" else []
            if isinstance(node, (*_Function, ast.ClassDef, ast.Module)):
                yield node, before
                before, innermost = [], isinstance(node, ast.Module)
        elif place.where == "after" and isinstance(node, ast.stmt):
            before.append(node)
        while node in self.parents:
            parent = self.parents[node]
            inside = False
            for field in ("body", "orelse", "finalbody"):
                suite = getattr(parent, field, None)
                if suite is node:
                    inside = True
                elif isinstance(suite, list) and any(sibling is node for sibling in suite):
                    inside = inside or field == "body"
                    for sibling in suite:
                        if sibling is node:
                            break
                        before.append(sibling)
            scoped = isinstance(parent, (*_Function, ast.ClassDef)) and inside
            if scoped or isinstance(parent, (*_Comprehension, ast.Module)):
                # The names of a class are not seen by the functions in it.
                if innermost or not isinstance(parent, ast.ClassDef):
                    yield parent, before
                before = []
                innermost = False
            node = parent

    def _certain(self, statements: Iterable[ast.stmt], name_of: _Binding) -> set[str]:
        """The names that are bound once ``statements`` have run."""
        names: set[str] = set()
        for statement in statements:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                if statement not in self.ignored:
                    names |= {name for alias in statement.names if (name := name_of(statement, alias))}
            elif isinstance(statement, ast.If) and statement.orelse:
                names |= self._in_all([statement.body, statement.orelse], name_of)
            elif isinstance(statement, ast.Try):
                names |= self._certain(statement.finalbody, name_of)
                tried = [*statement.body, *statement.orelse]
                names |= self._in_all([tried, *(handler.body for handler in statement.handlers)], name_of)
        return names

    def _in_all(self, suites: list[list[ast.stmt]], name_of: _Binding) -> set[str]:
        found = [self._certain(suite, name_of) for suite in suites if not _leaves(suite)]
        return set.intersection(*found) if found else set()


def _module_name(statement: _Import, alias: ast.alias) -> str | None:
    if not isinstance(statement, ast.Import):
        return None
    if alias.name == MODULE:
        return alias.asname or MODULE
    return MODULE if alias.name.startswith(f"{MODULE}.") and not alias.asname else None


def _leaves(suite: list[ast.stmt]) -> bool:
    """Whether what follows ``suite`` cannot run after it."""
    last = suite[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return ast.unparse(last.value.func) in ("sys.exit", "exit", "quit", "os._exit")
    return isinstance(last, (ast.Raise, ast.Return, ast.Continue, ast.Break))


def _binds(scope: ast.AST, name: str, name_of: _Binding) -> bool:
    """Whether ``scope`` binds ``name`` to anything else than what ``name_of`` names."""
    return any(
        bound == name
        and not (isinstance(node, (ast.Import, ast.ImportFrom)) and alias and name_of(node, alias) == name)
        for bound, node, alias in _bindings(scope)
    )


def _bindings(scope: ast.AST) -> Iterator[tuple[str, ast.AST, ast.alias | None]]:
    """Every name that ``scope`` itself binds, and where; not those of the functions and classes in it."""
    stack: list[ast.AST]
    if isinstance(scope, _Function):
        stack = [scope.args, *(scope.body if isinstance(scope.body, list) else [scope.body])]
    elif isinstance(scope, (ast.ClassDef, ast.Module)):
        stack = list(scope.body)
    else:
        stack = list(ast.iter_child_nodes(scope))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id, node, None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], node, alias
        elif isinstance(node, ast.arg):
            yield node.arg, node, None
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from ((name, node, None) for name in node.names)
        for name in (getattr(node, "name", None), getattr(node, "rest", None)):
            if isinstance(name, str) and not isinstance(node, ast.alias):
                yield name, node, None
        if not isinstance(node, (*_Function, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


def identifiers(tree: ast.Module) -> set[str]:
    """Every name in ``tree``, but for those of attributes."""
    found: set[str] = set()
    for node in ast.walk(tree):
        found.update(
            name
            for name in (getattr(node, field, None) for field in ("id", "name", "arg", "asname", "rest"))
            if isinstance(name, str)
        )
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
    return found
