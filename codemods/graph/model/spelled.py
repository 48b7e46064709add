"""Which attributes a file may write or delete unseen: by a text, through a dict of attributes, by the script's name.

What assigns to an attribute is followed by the engine, whatever it calls the object.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from codemods.graph.model.program import ParsedFile
from codemods.source.walking import last_name, walk

_RUN_TEXTS = frozenset({"exec", "eval", "compile", "__import__"})
_HOLDING = frozenset({"vars", "__dict__", "locals", "globals"})
_HELD = frozenset({"vars", "__dict__", "_buffers", "_modules", "_parameters"})
_EMPTYING = frozenset({"clear", "popitem"})
_ASKING = ("hasattr", "getattr")
_SCRIPT = "__main__"
_SETTING = frozenset({"setattr", "__setattr__", "update", "setdefault", "setitem"})
_WORD = re.compile(r"\w+")


class Spelled(NamedTuple):
    """The ``words`` of a file that may name an attribute which it writes or deletes; ``anything``: it runs texts,
    empties a dict that may hold attributes, or imports the script."""

    words: frozenset[str]
    anything: bool

    def may_write(self, name: str) -> bool:
        """Whether an attribute of that name may be written or deleted unseen."""
        return self.anything or name in self.words


def spelled(tree: ast.Module) -> Spelled:
    """What a file spells out: the words of its texts but for those that ``hasattr`` and ``getattr`` ask for, and
    keywords where it looks at all attributes of something."""
    nodes = list(walk(tree))
    bare = {n.id for n in nodes if isinstance(n, ast.Name)}
    names = bare | {n.attr for n in nodes if isinstance(n, ast.Attribute)}
    words = {word for text in _texts(nodes) for word in _WORD.findall(text)}
    if not names.isdisjoint(_HOLDING):
        words |= {n.arg for n in nodes if isinstance(n, ast.keyword) and n.arg}
    empties = not names.isdisjoint(_HELD) and not names.isdisjoint(_EMPTYING)
    imported = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    imported |= {n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.module}
    return Spelled(frozenset(words), empties or _SCRIPT in imported or not bare.isdisjoint(_RUN_TEXTS))


def written_by(file: ParsedFile, definition: ast.AST) -> frozenset[str]:
    """The attributes, the variables of others and the elements that a function may write, with what it calls in its
    file."""
    found: set[str] = set()
    defined, seen, stack = file.once(_functions, file.tree), {definition}, [definition]
    while stack:
        stored, called, own = file.once(_written_and_called, stack.pop())
        found |= stored
        if own - defined.keys():
            # it calls what it was given: any function of the file
            found |= file.once(_written_and_called, file.tree)[0]
        new = [other for name in called for other in defined.get(name, ()) if other not in seen]
        seen.update(new)
        stack += new
    return frozenset(found)


def _functions(tree: ast.AST) -> dict[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    for node in walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.setdefault(node.name, []).append(node)
    return found


def _written_and_called(definition: ast.AST) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """What a function writes itself, by name, the names of what it calls, and those among them that lie in its
    own object: ``self.act()``."""
    nodes = list(walk(definition))
    stored = {n.attr for n in nodes if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)}
    stored |= {name for n in nodes if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
    under = [n.slice for n in nodes if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load)]
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    called = {last_name(n.func) for n in calls}
    if not called.isdisjoint(_SETTING):
        under += [given for n in calls if last_name(n.func) in _SETTING for given in n.args]
        stored |= {k.arg for n in calls if last_name(n.func) in _SETTING for k in n.keywords if k.arg}
    stored |= {n.value for n in under if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    first = definition.args.args[:1] if isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    of_own = (n.func for n in calls if isinstance(n.func, ast.Attribute) and isinstance(n.func.value, ast.Name))
    own = {func.attr for func in of_own if first and ast.unparse(func.value) == first[0].arg}
    return frozenset(stored), frozenset(called - {""}), frozenset(own)


def _texts(nodes: list[ast.AST]) -> Iterator[str]:
    calls = (n for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in _ASKING)
    names_nothing = {id(given) for call in calls for given in call.args}
    names_nothing |= {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in names_nothing:
            yield node.value
