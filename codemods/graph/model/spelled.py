"""Which attributes a file may write or delete unseen: by a text, through a dict of attributes, by the script's name.

What assigns to an attribute is followed by the engine, whatever it calls the object.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from codemods.source.walking import walk

_RUN_TEXTS = frozenset({"exec", "eval", "compile", "__import__"})
_HOLDING = frozenset({"vars", "__dict__", "locals", "globals"})
_HELD = frozenset({"vars", "__dict__", "_buffers", "_modules", "_parameters"})
_EMPTYING = frozenset({"clear", "popitem"})
_ASKING = ("hasattr", "getattr")
_SCRIPT = "__main__"
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


def _texts(nodes: list[ast.AST]) -> Iterator[str]:
    calls = (n for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in _ASKING)
    names_nothing = {id(given) for call in calls for given in call.args}
    names_nothing |= {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in names_nothing:
            yield node.value
