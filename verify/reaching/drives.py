"""Functions to call at the end of a run: which hold the lines that no run reached, and how the program calls them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from verify.reaching.hints import hints
from verify.syntax import FUNCTIONS, Function, functions, last_name, method_call

#: Stands for the function where only the arguments of a call are asked for.
TAKE = "__codemod_take__"
#: How many calls of one function are tried, the nearest first.
_MOST_SITES = 6

#: Methods of torch's that a loop calls which trains.
_TRAINS = ("backward", "step")


@dataclass(frozen=True)
class CallSite:
    """A call as the program has it: ``function`` and ``arguments`` (a call of :data:`TAKE`) are expressions that mean
    something in the function ``inside`` (``<module>``: at the top) of ``path``."""

    path: str
    line: int
    inside: str
    function: str
    arguments: str


@dataclass(frozen=True)
class Drive:
    """The function ``name`` (with its class) of ``path`` is called at the end of a run, as one of ``sites`` does."""

    path: str
    name: str
    sites: tuple[CallSite, ...] = ()
    hints: dict[str, Any] = field(default_factory=dict)
    """What its parameters could be, where nothing is at hand (see :mod:`verify.reaching.hints`)."""
    owner: Drive | None = None
    """How an object of its class can be made, where none is alive."""
    lines: tuple[int, ...] = ()
    """The lines that a made-up call is to reach."""
    recipe: dict[str, Any] | None = None
    """What was made up in an earlier run, to be made again."""

    def configuration(self) -> dict[str, Any]:
        """As the probe takes it."""
        return asdict(self)


def enclosing(tree: ast.AST, line: int) -> tuple[str, Function] | None:
    """The outermost function around ``line``, with the name of its class before its own; None at the top."""
    for name, function in functions(tree):
        if _first(function) <= line <= (function.end_lineno or function.lineno):
            return name, function
    return None


def calls(name: str, trees: Mapping[str, ast.AST], first: str) -> Iterator[tuple[str, str, ast.Call]]:
    """The calls of what is named ``name`` in ``trees`` (by path): (path, function around it, call); those in ``first``
    come first. Names are all there is to go by: whoever calls it has to look at what they mean. A function of another
    file that has the same name, and no method, is not meant."""
    *_, owner, last = ["", *name.split(".")]
    wanted = owner if last == "__init__" else last
    known = owner or name
    for path in sorted(trees, key=lambda path: (path != first, known not in _read(trees[path]), path)):
        found = _calls(trees[path]).get(wanted, ())
        if found and path != first and not owner and not imported(trees[path]) & {name, module_name(first), "*"}:
            continue
        for inside, call in found:
            yield path, inside, call


@functools.lru_cache(maxsize=4096)
def _read(tree: ast.AST) -> frozenset[str]:
    """All names that are read in ``tree``."""
    return frozenset(map(last_name, ast.walk(tree)))


@functools.lru_cache(maxsize=4096)
def imported(tree: ast.AST) -> frozenset[str]:
    """All parts of the names of modules that ``tree`` imports anywhere, and what it imports from them."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(part for alias in node.names for part in alias.name.split("."))
            found.update((getattr(node, "module", None) or "").split("."))
    return frozenset(found)


def module_name(path: str) -> str:
    """By what a file can be imported: its own name, or that of its package."""
    *folders, last = path.removesuffix(".py").split("/")
    return folders[-1] if last == "__init__" and folders else last


@functools.lru_cache(maxsize=4096)
def _calls(tree: ast.AST) -> dict[str, list[tuple[str, ast.Call]]]:
    """The calls in ``tree`` by the last name of the callee, each with the function around it."""
    found: dict[str, list[tuple[str, ast.Call]]] = {}
    for inside, node in _within(tree, "<module>"):
        if isinstance(node, ast.Call):
            found.setdefault(last_name(node.func), []).append((inside, node))
    return found


def drive(path: str, name: str, trees: Mapping[str, ast.AST], lines: Iterable[int] = ()) -> Drive:
    """How the function ``name`` of ``path`` can be called, so that ``lines`` run."""
    function = next((each for known, each in functions(trees[path]) if known == name), None)
    own = {} if function is None else hints(function, trees)
    owner, _, last = name.rpartition(".")
    kind = getattr(function, "decorator_list", ())
    bound = bool(owner) and not any(getattr(each, "id", "") in ("staticmethod", "classmethod") for each in kind)
    if bound and own:
        del own[next(iter(own))]
    sites = [
        CallSite(
            at,
            call.lineno,
            inside,
            ast.unparse(call.func),
            ast.unparse(ast.Call(ast.Name(TAKE), call.args, call.keywords)),
        )
        for at, inside, call in calls(name, trees, path)
    ]
    maker = drive(path, f"{owner}.__init__", trees) if bound and last != "__init__" else None
    for hint in own.values():
        # How each class is constructed; the arguments of those constructors are not followed.
        classes = hint.pop("classes", ())
        made = classes if last != "__init__" else ()
        hint["makers"] = [drive(at, f"{known}.__init__", trees).configuration() for at, known in made]
        hint["roles"] = [role for role in hint["roles"] if role != "object" or hint["makers"]] or ["tensor"]
    return Drive(path, name, tuple(dict.fromkeys(sites))[:_MOST_SITES], own, maker, tuple(sorted(lines)))


def imports(trees: Iterable[ast.AST]) -> set[str]:
    """The top-level modules that files import outright; what they only try to import they can do without."""
    found: set[str] = set()
    for tree in trees:
        for node in getattr(tree, "body", ()):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.partition(".")[0])
    return found


def training(tree: ast.AST, name: str) -> Iterator[int]:
    """The lines of the loops of the function ``name`` that could go on for ever: those that train, and ``while``."""
    for known, function in functions(tree):
        for node in ast.walk(function) if known == name else ():
            trains = any(method_call(each, *_TRAINS) for each in ast.walk(node))
            if isinstance(node, ast.While) or (isinstance(node, ast.For) and trains):
                yield node.lineno


def _within(node: ast.AST, inside: str) -> Iterable[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        yield inside, child
        yield from _within(child, child.name if isinstance(child, FUNCTIONS) else inside)


def _first(function: Function) -> int:
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])
