"""What of a tree is worth a run: files that may concern a rule, scripts, and functions that nothing else may enter.

All of it is read off texts and syntax trees, by the words without which no rule has anything to say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from codemods.graph.model.program import ParsedFile, Tree
from codemods.graph.python.loading import NEVER_OF_THE_TREE
from codemods.source.gates import code_of

Definition = tuple[str, int, int]
"""A function by its file (path below the root), line and column: the same in all processes."""

MANY_METHODS = 40
"""From so many methods on, only those of a class are run for themselves that lead to a rule's words."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_CONTEXTS = (b"no_grad", b"inference_mode", b"set_grad_enabled")
_CONTEXT = re.compile(b"|".join(_CONTEXTS))
_NAME = re.compile(rb"[A-Za-z_]\w*")
_IMPLICIT = frozenset({b"__init__", b"__call__", b"forward", b"__enter__", b"__exit__", b"__iter__", b"__next__"})
"""Methods that are called without their name: who names their class may call them."""
_MAY_ACT = re.compile(
    rb"^(?:(?:async[ \t]+)?(?:for|while|with|if(?![ \t]+(?:\w+\.)?TYPE_CHECKING\b)|try|match|await)\b"
    rb"|[A-Za-z_][\w.]*(?:\[[^\n]*\])?[ \t]*(?:\(|(?:[-+*/|&^%@]|//|\*\*|<<|>>)=))",
    re.MULTILINE,
)

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def may_act(raw: bytes) -> bool:
    """Whether a text looks as if running it did more than to define and import; a cheap look before it is parsed."""
    return _MAY_ACT.search(raw) is not None


def may_switch(raw: bytes) -> bool:
    """Whether a text names what switches gradients off."""
    return any(word in raw for word in _CONTEXTS)


def mentions(raw: bytes, names: Collection[bytes]) -> bool:
    """Whether one of ``names`` stands in a text."""
    return not frozenset(names).isdisjoint(_NAME.findall(raw))


# imports

_FROM = re.compile(rb"^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(rb"^[ \t]*import[ \t]+([^\n#]+)", re.MULTILINE)
_COMPUTED = re.compile(rb"\b(?:import_module|__import__)\b")
_BEGUN = re.compile(rb"""["']((?:\w+\.)*\w+)\.(?:["'{]|%)""")
"""A text that a full name of a module may begin with."""


def imports(tree: Tree, relative: str, raw: bytes) -> Iterator[str]:
    """The files of the tree that a file imports, by a look at its text."""
    importer = PurePosixPath(relative)
    for source, names in _FROM.findall(raw):
        module = source.decode(errors="replace")
        dots = len(module) - len(module.lstrip("."))
        if dots:
            found = tree.resolve_relative(module[dots:] or None, dots, importer)
        elif module.partition(".")[0] in NEVER_OF_THE_TREE:
            continue
        else:
            found = tree.resolve(module, importer)
        if found is None:
            continue
        yield found
        if found.endswith(("/", "__init__.py")):
            folder = found.removesuffix("__init__.py")
            for name in re.findall(rb"\w+", names):
                member = tree.at(folder + name.decode(errors="replace"))
                if member is not None:
                    yield member
    for modules in _IMPORT.findall(raw):
        for part in modules.split(b","):
            name = part.split()[0].decode(errors="replace") if part.split() else ""
            if name and name.partition(".")[0] not in NEVER_OF_THE_TREE:
                found = tree.resolve(name, importer)
                if found is not None:
                    yield found
    for name in set(_BEGUN.findall(raw)) if _COMPUTED.search(raw) is not None else ():
        # any module of the package may be meant
        package = tree.package(name.decode(errors="replace"), importer)
        if package is not None and package.endswith(("/", "__init__.py")):
            yield package.removesuffix("__init__.py")


# one file


def called_as(name: str, owner: str | None) -> bytes:
    """The name by which others call a function, or a method of the class ``owner``."""
    word = name.encode()
    return owner.encode() if owner is not None and word in _IMPLICIT else word


@dataclass(eq=False)
class _Unit:
    """A function at the top of a file, or a method; ``text`` is that of it with its decorators, ``code`` the same
    without comments and strings."""

    node: _Function
    owner: ast.ClassDef | None
    text: bytes
    code: bytes

    @property
    def calls(self) -> bytes:
        """The name by which others call it."""
        return called_as(self.node.name, self.owner.name if self.owner is not None else None)

    @cached_property
    def words(self) -> frozenset[bytes]:
        return frozenset(_NAME.findall(self.text))


class Outline:
    """The functions and classes at the top of one file, with their texts."""

    def __init__(self, file: ParsedFile, raw: bytes, concerns: Callable[[bytes], bool]) -> None:
        self.file = file
        self.raw = raw
        self.concerns = concerns
        self._lines = raw.splitlines(keepends=True)
        self._code = code_of(raw).splitlines(keepends=True)

    def script(self, other: Callable[[str], Outline | None], tree: Tree) -> bool:
        """Whether the file acts when it runs, and may come to anything that concerns a rule.

        A module of a package that nothing marks as a program is run by its imports only, for what it defines; its own
        statements count where they lead to a rule's words, in it or in a file that it imports from; ``other`` gives the
        outline of such a file, None where no rule's words stand in it.
        """
        acting = [s for s in self.file.tree.body if _acts(s)]
        if not acting or b"__main__" in self.raw:
            return bool(acting)
        relative = [s for s in self.file.tree.body if isinstance(s, ast.ImportFrom) and s.level]
        if not relative:
            return True
        if any(self.concerns(self._text(s, self._code)) for s in acting):
            return True
        named = {name for s in acting for name in _NAME.findall(self._text(s, self._lines))}
        if self._leads(named):
            return True
        for statement in relative:
            found = tree.resolve_relative(statement.module, statement.level, self.file.relative)
            used = {a.name for a in statement.names if (a.asname or a.name).encode() in named}
            if found is None or not used:
                continue
            members = {name: tree.at(found.removesuffix("__init__.py") + name) for name in used}
            if any((outline := other(m)) is not None and outline._leads(named) for m in members.values() if m):
                return True
            names = {name.encode() for name, member in members.items() if member is None}
            outline = other(found)
            if outline is not None and (outline._leads(names) or names - outline._defined):
                return True
        return False

    def candidates(self) -> set[Definition]:
        """The functions to be run if nothing enters them: of the definitions in which a rule's words stand, and of
        those that name one of these and lead to the words."""
        chosen = [s for s, _, code in self._segments if self.concerns(code)]
        if not chosen:
            return set()
        names = re.compile(rb"\b(?:" + b"|".join(re.escape(s.name.encode()) for s in chosen) + rb")\b")
        callers = [s for s, text, _ in self._segments if s not in chosen and names.search(text)]
        if callers:
            leading = {unit.owner or unit.node for unit in self._leading}
            chosen += [s for s in callers if s in leading]
        return {d for s in chosen for d in self._roots(s, lambda unit: self.concerns(unit.code))}

    def handing(self) -> dict[Definition, Definition]:
        """The functions that only call another one of this file, once and with what they get themselves, with that one:
        they show no more of it than it shows alone."""
        relative = self.file.relative.as_posix()
        places = {(u.owner, u.node.name): (relative, u.node.lineno, u.node.col_offset) for u in self._units}
        found: dict[Definition, Definition] = {}
        for unit in self._units:
            called = _handed_to(unit.node, method=unit.owner is not None)
            target = places.get((unit.owner, called)) if called else None
            if target is not None and called != unit.node.name:
                found[places[(unit.owner, unit.node.name)]] = target
        return found

    def switching(self, names: Collection[bytes]) -> set[Definition]:
        """The functions that switch gradients off and name one of ``names``."""
        wanted = frozenset(names)

        def tells(text: bytes) -> bool:
            return _CONTEXT.search(text) is not None and not wanted.isdisjoint(_NAME.findall(text))

        chosen = [s for s, text, _ in self._segments if tells(text)]
        return {d for s in chosen for d in self._roots(s, lambda unit: tells(unit.text))}

    def nodes(self, definitions: Collection[Definition]) -> set[ast.AST]:
        """The syntax nodes of functions of this file."""
        relative = self.file.relative.as_posix()
        return {u.node for u in self._units if (relative, u.node.lineno, u.node.col_offset) in definitions}

    @cached_property
    def _segments(self) -> list[tuple[_Function | ast.ClassDef, bytes, bytes]]:
        """The definitions with their texts, and the parts of these that are code."""
        found = (s for s in self.file.tree.body if isinstance(s, (*FUNCTIONS, ast.ClassDef)))
        return [(s, self._text(s, self._lines), self._text(s, self._code)) for s in found]

    @cached_property
    def _units(self) -> list[_Unit]:
        found: list[_Unit] = []
        for statement, text, code in self._segments:
            if isinstance(statement, ast.ClassDef):
                methods = (m for m in statement.body if isinstance(m, FUNCTIONS))
                found += [_Unit(m, statement, self._text(m, self._lines), self._text(m, self._code)) for m in methods]
            else:
                found.append(_Unit(statement, None, text, code))
        return found

    @property
    def _defined(self) -> set[bytes]:
        return {statement.name.encode() for statement, _, _ in self._segments}

    def _leads(self, names: Collection[bytes]) -> bool:
        """Whether one of ``names`` is that of a function which leads to a rule's words."""
        return any(unit.calls in names or unit.node.name.encode() in names for unit in self._leading)

    @cached_property
    def _leading(self) -> list[_Unit]:
        """The functions that lead to a rule's words, by the names in them."""
        found = [unit for unit in self._units if self.concerns(unit.code)]
        told = {unit.owner or unit.node for unit in found}
        # words in the body of a class or in a class within a class: whatever names it may come to them
        names = {s.name.encode() for s, _, code in self._segments if s not in told and self.concerns(code)}
        names |= {unit.calls for unit in found}
        left = [unit for unit in self._units if unit not in found]
        while True:
            more = [unit for unit in left if not names.isdisjoint(unit.words)]
            if not more:
                return found
            found += more
            names |= {unit.calls for unit in more}
            left = [unit for unit in left if unit not in more]

    def _roots(self, statement: _Function | ast.ClassDef, tells: Callable[[_Unit], bool]) -> Iterator[Definition]:
        """The functions of a definition that are run for themselves: it, or its methods; nobody can call what is
        nested."""
        units = [u for u in self._units if u.node is statement or u.owner is statement]
        for unit in units:
            if len(units) < MANY_METHODS or tells(unit):
                yield (self.file.relative.as_posix(), unit.node.lineno, unit.node.col_offset)

    @staticmethod
    def _text(statement: ast.stmt, lines: list[bytes]) -> bytes:
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        return b"".join(lines[first - 1 : statement.end_lineno])


def _handed_to(function: _Function, *, method: bool) -> str:
    """The name of what a function calls and does nothing else, with its own parameters and constants; else empty."""
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    given = body[0].value if len(body) == 1 and isinstance(body[0], (ast.Expr, ast.Return)) else None
    spec = function.args
    own = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg) if a is not None]
    if not isinstance(given, ast.Call) or function.decorator_list:
        return ""
    values = [a.value if isinstance(a, ast.Starred) else a for a in given.args] + [k.value for k in given.keywords]
    if not all(isinstance(v, ast.Constant) or (isinstance(v, ast.Name) and v.id in own) for v in values):
        return ""
    match given.func:
        case ast.Attribute(value=ast.Name(id=receiver), attr=name) if method and own and receiver == own[0]:
            return name
        case ast.Name(id=name) if not method and name not in own:
            return name
    return ""


def _acts(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.AugAssign):
        return not (isinstance(statement.target, ast.Name) and statement.target.id == "__all__")
    if isinstance(statement, (ast.For, ast.AsyncFor, ast.While, ast.With, ast.Match)):
        return True
    if isinstance(statement, (ast.If, ast.Try)):
        return any(_acts(s) for s in [*statement.body, *statement.orelse])
    return isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Call, ast.Await))
