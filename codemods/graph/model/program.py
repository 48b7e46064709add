"""The tree as Python sees it: parsed files, what their imports mean, the classes that stand in them.

Nothing is ever imported or run.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from codemods.graph.model.facts.libraries import SCHEDULERS
from codemods.graph.model.nodes import Value
from codemods.graph.model.paths import canonical
from codemods.graph.model.values import Class, Function, Library
from codemods.source.walking import children, forget, statements, walk
from codemods.terms.spans import Span

_CONTAINERS = {
    **dict.fromkeys(("list", "UserList", "List"), "list"),
    **dict.fromkeys(("set", "frozenset"), "set"),
    **dict.fromkeys(("dict", "Dict", "TypedDict"), "dict"),
    **dict.fromkeys(("OrderedDict", "defaultdict", "Counter", "UserDict", "ChainMap"), "dict"),
    "deque": "deque",
    "tuple": "tuple",
    "NamedTuple": "record",
}
"""What the classes of Python's own libraries are that hold values (docs: builtins, collections, typing)."""

_Answer = TypeVar("_Answer")
_Asked = TypeVar("_Asked", bound=ast.AST)


def _may_hold(node: ast.AST, span: Span) -> bool:
    """Whether a node may be at ``span`` or around it, by its lines."""
    first = getattr(node, "lineno", None)
    if first is None or isinstance(node, (ast.JoinedStr, ast.FormattedValue)):
        # before Python 3.12 what stands in a formatted string is not where it says
        return True
    decorators = getattr(node, "decorator_list", None)
    if decorators:
        first = min(first, decorators[0].lineno)
    return bool(first <= span.line and span.end_line <= node.end_lineno)  # type: ignore[attr-defined]


def receiver_name(definition: ast.AST | None) -> str:
    """What a method calls its own object: its first argument."""
    spec = getattr(definition, "args", None)
    given = [*spec.posonlyargs, *spec.args] if isinstance(spec, ast.arguments) else []
    return given[0].arg if given else ""


def _imported(tree: ast.Module) -> dict[str, str]:
    """What the names of a file are by their public names, where nothing but one import, or nothing at all, binds
    them."""
    found: dict[str, set[str]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                found.setdefault(name, set()).add(alias.name if alias.asname else name)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                path = "" if node.level else f"{node.module}.{alias.name}"
                found.setdefault(alias.asname or alias.name, set()).add(path)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.setdefault(node.id, set()).add("")
        elif isinstance(node, ast.arg):
            found.setdefault(node.arg, set()).add("")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.setdefault(node.name, set()).add("")
    free = {} if "*" in found else {name: {f"builtins.{name}"} for name in dir(builtins) if name not in found}
    return {name: next(iter(paths)) for name, paths in {**found, **free}.items() if len(paths) == 1}


@dataclass(eq=False)
class ParsedFile:
    """One file of the tree: its display ``path``, its place below the tree's root and its syntax tree."""

    path: str
    relative: PurePosixPath
    text: str
    tree: ast.Module
    objects: int = field(default=0, init=False)
    """How many objects the garbage collector may count that are its syntax tree."""
    _answers: dict[tuple[Callable[..., Any], ast.AST], Any] = field(default_factory=dict, init=False)
    _parents: dict[ast.AST, ast.AST] = field(default_factory=dict, init=False)
    _all_parents: bool = field(default=False, init=False)
    _lines: list[str] | None = field(default=None, init=False)
    _found: dict[re.Pattern[str], bool] = field(default_factory=dict, init=False)

    def span(self, node: ast.AST) -> Span:
        """Where a node stands, in characters (``ast`` counts bytes of UTF-8)."""
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        start, end = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
        if not self.text.isascii():
            if self._lines is None:
                # ast ends lines at \n, \r\n and \r, and nowhere else
                self._lines = self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            start = len(self._lines[first - 1].encode()[:start].decode(errors="replace"))
            end = len(self._lines[last - 1].encode()[:end].decode(errors="replace"))
        return Span(first, start, last, end)

    def holds(self, pattern: re.Pattern[str]) -> bool:
        """Whether a pattern fits somewhere in the text, comments and strings included; it is looked for once."""
        if pattern not in self._found:
            self._found[pattern] = pattern.search(self.text) is not None
        return self._found[pattern]

    def once(self, ask: Callable[[_Asked], _Answer], node: _Asked) -> _Answer:
        """What ``ask`` says of a node of this file; it is asked once."""
        if (ask, node) not in self._answers:
            self._answers[(ask, node)] = ask(node)
        return self._answers[(ask, node)]  # type: ignore[no-any-return]

    def forget(self) -> None:
        """Take the syntax tree apart, for a file that nobody asks any more: what still points at it keeps little."""
        forget(self.tree)
        self._answers.clear()
        self._parents.clear()

    def named(self, node: ast.expr) -> str:
        """The public name of what an expression is by the imports of the file: ``torch.no_grad`` for ``th.no_grad``.

        Empty where its first name comes from elsewhere, or may.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        first = self.once(_imported, self.tree).get(node.id, "") if isinstance(node, ast.Name) else ""
        return canonical(".".join([first, *parts])) if first else ""

    def find(self, span: Span, *kinds: type[ast.AST]) -> ast.AST | None:
        """The outermost node of one of ``kinds`` that stands exactly at ``span``."""
        level: list[ast.AST] = [self.tree]
        while level:
            around: list[ast.AST] = []
            for outer in level:
                for node in children(outer):
                    if not _may_hold(node, span):
                        continue
                    around.append(node)
                    if isinstance(node, kinds) and getattr(node, "lineno", 0) == span.line and self.span(node) == span:
                        return node
            level = around
        return None

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The syntax node around ``node``."""
        if node not in self._parents and not self._all_parents:
            line = getattr(node, "lineno", 0)
            # most files are large, and few of their statements are asked about
            near = [s for s in self.tree.body if s not in self._parents and _first_line(s) <= line <= _last_line(s)]
            self._note_parents(near)
            if node not in self._parents:
                self._all_parents = True
                self._note_parents(self.tree.body)
        return self._parents.get(node)

    def _note_parents(self, statements: list[ast.stmt]) -> None:
        parents = self._parents
        parents.update(dict.fromkeys(statements, self.tree))
        stack: list[ast.AST] = [*statements]
        while stack:
            outer = stack.pop()
            inside = children(outer)
            parents.update(dict.fromkeys(inside, outer))
            stack += inside

    def is_statement(self, node: ast.AST) -> bool:
        """Whether an expression is a statement, of whose value nothing is made."""
        return node in self.once(_bare, self.tree)

    def enclosing(self, node: ast.AST, *kinds: type[ast.AST]) -> ast.AST | None:
        """The innermost node of one of ``kinds`` around ``node``."""
        outer = self.parent(node)
        while outer is not None and not isinstance(outer, kinds):
            outer = self.parent(outer)
        return outer

    def outward(self, node: ast.AST, *ends: type[ast.AST]) -> Iterator[ast.AST]:
        """The nodes around ``node``, the innermost first, up to one of the kinds ``ends``, which is left out."""
        outer = self.parent(node)
        while outer is not None and not isinstance(outer, ends):
            yield outer
            outer = self.parent(outer)


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", None)
    return decorators[0].lineno if decorators else statement.lineno


def _last_line(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def _bare(tree: ast.Module) -> frozenset[ast.expr]:
    return frozenset(s.value for s in statements(tree) if isinstance(s, ast.Expr))


def _merged(orders: list[list[ClassInfo]]) -> list[ClassInfo] | None:
    """Orders in one that keeps each of them; None if there is none."""
    merged: list[ClassInfo] = []
    while orders := [order for order in orders if order]:
        later = [info for order in orders for info in order[1:]]
        first = next((order[0] for order in orders if order[0] not in later), None)
        if first is None:
            return None
        merged.append(first)
        orders = [[info for info in order if info is not first] for order in orders]
    return merged


def _named_in(declared: ast.AnnAssign) -> set[str]:
    """The names that say what kind of a field is declared: ``InitVar`` of ``dataclasses.InitVar[int]``."""
    outer = declared.annotation.value if isinstance(declared.annotation, ast.Subscript) else declared.annotation
    if isinstance(outer, ast.Constant) and isinstance(outer.value, str):
        return {part.rpartition(".")[2] for part in outer.value.partition("[")[:1]}
    return {outer.attr if isinstance(outer, ast.Attribute) else getattr(outer, "id", "")}


def _made(declared: ast.AnnAssign) -> bool:
    """Whether a field is none of the arguments: ``field(init=False)``."""
    keywords = declared.value.keywords if isinstance(declared.value, ast.Call) else []
    return any(k.arg == "init" and isinstance(k.value, ast.Constant) and k.value.value is False for k in keywords)


@dataclass(eq=False)
class ClassInfo:
    """A class of the tree: its statement, its bases as values, and the functions and constants of its body."""

    name: str
    node: ast.ClassDef
    file: ParsedFile
    bases: tuple[Value, ...]
    members: dict[str, Value] = field(default_factory=dict)
    oid: int = 0
    """Under which the state holds what was written to the class later."""
    setters: dict[str, Function] = field(default_factory=dict)
    """What is called where a property is set, by its name."""
    deleters: dict[str, Function] = field(default_factory=dict)
    """What is called where a property is deleted, by its name."""
    factories: dict[str, Value] = field(default_factory=dict)
    """What makes the fields of a dataclass that are not given."""
    metaclass: ClassInfo | None = None
    """What stands behind ``metaclass=`` in its statement, where that is a class of the tree."""
    family: str = "plain"
    """plain, module, lightning, function (autograd.Function), optimizer, dataset, or external: a base that cannot be
    seen"""

    def mro(self) -> list[ClassInfo]:
        """The classes of the tree that attributes are looked up in, in Python's order (docs: C3); depth first where
        there is none."""
        return self._mro

    @cached_property
    def _mro(self) -> list[ClassInfo]:
        from codemods.graph.model.values import Class

        # a class that comes to itself
        self.__dict__["_mro"] = [self]
        bases = [base.info for base in self.bases if isinstance(base, Class) and base.info is not self]
        merged = _merged([*([*base.mro()] for base in bases), bases])
        if merged is not None and self not in merged:
            return [self, *merged]
        order: list[ClassInfo] = []
        stack: list[ClassInfo] = [self]
        while stack:
            info = stack.pop(0)
            if info in order:
                continue
            order.append(info)
            stack[:0] = [base.info for base in info.bases if isinstance(base, Class)]
        return order

    def find(self, name: str, after: ClassInfo | None = None) -> Value | None:
        """The member ``name``, looked up as Python does; ``after`` a class for ``super()``."""
        order = self.mro()
        if after is not None and after in order:
            order = order[order.index(after) + 1 :]
        for info in order:
            if name in info.members:
                return info.members[name]
        return None

    def fields(self, *, given: bool = False) -> list[str]:
        """The fields that a dataclass or named tuple declares, in the order of its arguments; ``given``: what a call
        may give by its place, what is only passed on among them."""
        without = {"ClassVar", "KW_ONLY"} if given else {"ClassVar", "KW_ONLY", "InitVar"}
        return [name for name, s in self._declared().items() if not (_named_in(s) & without or (given and _made(s)))]

    def passed_on(self) -> list[str]:
        """The fields of a dataclass that only ``__post_init__`` gets (docs: InitVar)."""
        return [name for name, s in self._declared().items() if "InitVar" in _named_in(s)]

    def _declared(self) -> dict[str, ast.AnnAssign]:
        """The declarations of fields, by name: one that a class repeats stays where it was."""
        declared: dict[str, ast.AnnAssign] = {}
        for base in reversed(self.mro()):
            for s in base.node.body:
                if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name):
                    declared[s.target.id] = s
        return declared

    @cached_property
    def container(self) -> str:
        """What its objects are beside: a ``list``, ``set``, ``deque``, ``tuple``, ``dict``, a ``record`` (a named
        tuple), or empty."""
        from codemods.graph.model.values import Class, Library

        for base in self.bases:
            if isinstance(base, Class) and base.info is not self and base.info.container:
                return base.info.container
            if isinstance(base, Library):
                path = base.path.removeprefix("builtins.").removeprefix("collections.").removeprefix("typing.")
                if path in _CONTAINERS and base.path.partition(".")[0] in ("builtins", "collections", "typing"):
                    return _CONTAINERS[path]
        return ""

    @cached_property
    def layer(self) -> str:
        """The class of ``torch.nn`` that it derives from beside ``Module``, by its name there; else empty."""
        from codemods.graph.model.values import Library

        paths = [canonical(b.path) for info in self.mro() for b in info.bases if isinstance(b, Library)]
        names = (path.removeprefix("torch.nn.") for path in paths if path.startswith("torch.nn."))
        return next((name for name in names if name != "Module"), "")

    @cached_property
    def calls_differently(self) -> bool:
        """Whether a class has a metaclass that cannot be seen, so that a call of it may give something else than an
        object of it."""
        known = ("ABCMeta", "EnumMeta", "type")
        unseen = [info for info in self.mro() if info.metaclass is None]
        given = [k.value for info in unseen for k in info.node.keywords if k.arg == "metaclass"]
        return any(ast.unparse(value).rpartition(".")[2] not in known for value in given)

    def of_metaclass(self, name: str) -> Value | None:
        """What the metaclass of a class, if it is of the tree, has under a name."""
        behind = next((info.metaclass for info in self.mro() if info.metaclass is not None), None)
        return behind.find(name) if behind is not None else None

    def outside(self) -> list[str]:
        """The full names of its bases outside the tree; empty ones stand for such as cannot be seen."""
        bases = [base for info in self.mro() for base in info.bases if not isinstance(base, Class)]
        return [base.path if isinstance(base, Library) else "" for base in bases]

    def derives(self, names: frozenset[str]) -> bool:
        """Whether one of its bases outside the tree is a builtin among ``names``."""
        return any(path.removeprefix("builtins.") in names for path in self.outside())

    def distribution(self) -> str:
        """The full name of torch's distribution from which alone it derives, if from one: its methods compute and keep
        nothing; else empty."""
        paths = [canonical(path) for path in self.outside()]
        return paths[0] if paths and all(path.startswith("torch.distributions.") for path in paths) else ""

    def schedules(self) -> bool:
        """Whether all that it derives from outside the tree are schedulers of torch."""
        paths = [canonical(path) for path in self.outside()]
        return bool(paths) and all(path.startswith(SCHEDULERS) for path in paths)

    @property
    def is_module(self) -> bool:
        """Whether its objects are ``nn.Module``s."""
        return self.family in ("module", "lightning")


class Tree:
    """All files that can be looked at, and how their imports resolve.

    ``name`` is that of the root folder: where the whole tree is one package, its files import each other by it.
    """

    def __init__(self, relative_paths: dict[str, Path], display: dict[str, str], name: str = "") -> None:
        self.relative_paths = relative_paths
        self.display = display
        self.name = name
        self.folders: set[str] = {""}
        self._resolved: dict[tuple[str, str], str | None] = {}
        self._inside: dict[str, dict[str, str]] = {}
        for relative in relative_paths:
            parent = PurePosixPath(relative).parent
            while str(parent) != ".":
                self.folders.add(str(parent))
                parent = parent.parent

    def inside(self, folder: str) -> dict[str, str]:
        """The modules and packages in a folder, by their names."""
        found = self._inside.get(folder)
        if found is None:
            stems = (PurePosixPath(p) for p in (*self.relative_paths, *self.folders) if p)
            names = sorted({p.stem for p in stems if str(p.parent) == (folder or ".") and p.stem.isidentifier()})
            prefix = f"{folder}/" if folder else ""
            made = {name: self.at(prefix + name) for name in names if name != "__init__"}
            found = self._inside[folder] = {name: path for name, path in made.items() if path is not None}
        return found

    def resolve(self, module: str, importer: PurePosixPath) -> str | None:
        """The path below the root of what ``import module`` means in ``importer``: a file, or a folder with ``/``
        behind it.

        Folders are tried from the importer's own up to the root, as a script's folder, a package's root or
        ``PYTHONPATH`` would make them, then what is called src or lib in one of these; the nearest wins.
        """
        key = (module, str(importer.parent))
        if key in self._resolved and self._resolved[key] != str(importer):
            return self._resolved[key]
        found = self._resolved[key] = self._resolve(module, importer)
        return found

    def package(self, module: str, importer: PurePosixPath) -> str | None:
        """The same for a package of which a module is imported: it may be that of the importer itself."""
        return self._resolve(module, importer, own=importer.name == "__init__.py")

    def _resolve(self, module: str, importer: PurePosixPath, *, own: bool = False) -> str | None:
        tail = module.replace(".", "/")
        above = ["" if str(folder) == "." else f"{folder}/" for folder in importer.parents]
        for prefix in (*above, *(f"{one}{top}" for one in above for top in ("src/", "lib/"))):
            found = self.at(prefix + tail)
            # a module never imports itself under its own name
            if found is not None and (own or found != str(importer)):
                return found
        if self.name and tail.startswith(f"{self.name}/"):
            return self.at(tail.removeprefix(f"{self.name}/"))
        # a library may have the name of a folder that is no package
        return "__init__.py" if self.name == tail and "__init__.py" in self.relative_paths else None

    def resolve_relative(self, module: str | None, level: int, importer: PurePosixPath) -> str | None:
        """The same for ``from ..module import``: ``level`` dots."""
        folder = importer.parent
        for _ in range(level - 1):
            folder = folder.parent
        prefix = "" if str(folder) == "." else f"{folder}/"
        if not module:
            init = f"{prefix}__init__.py"
            return init if init in self.relative_paths else prefix or None
        return self.at(prefix + module.replace(".", "/"))

    def at(self, stem: str) -> str | None:
        """The file or folder (with ``/`` after it) of a module path below the root."""
        if f"{stem}.py" in self.relative_paths:
            return f"{stem}.py"
        if f"{stem}/__init__.py" in self.relative_paths:
            return f"{stem}/__init__.py"
        return f"{stem}/" if stem in self.folders else None
