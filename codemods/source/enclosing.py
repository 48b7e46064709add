"""Where in a program a line stands: the function or class around it, by its name."""

from __future__ import annotations

import ast
import re

from codemods.source.errors import Unparsable
from codemods.source.syntax import parse

_LINE_END = re.compile(r"\r\n?|\n")


class Outline:
    """The functions and classes of a text, to be asked for many lines; of text that does not parse there are none."""

    def __init__(self, text: str) -> None:
        self._lines = _LINE_END.split(text)
        self._found: list[tuple[int, int, str]] = []
        self._statements: list[tuple[int, int]] = []
        try:
            tree = parse(text, "")
        except Unparsable:
            return
        stack: list[tuple[ast.AST, str]] = [(tree, "")]
        while stack:
            node, inside = stack.pop()
            name = inside
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{inside}.{node.name}" if inside else node.name
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                self._found.append((first, node.end_lineno or node.lineno, name))
            if isinstance(node, ast.stmt):
                self._statements.append((node.lineno, _header_end(node)))
            stack += [(child, name) for child in ast.iter_child_nodes(node)]

    def function_at(self, line: int) -> str:
        """Return the dotted name of the innermost function or class around ``line``; empty at the top of the file."""
        around = [(end - first, name) for first, end, name in self._found if first <= line <= end]
        return min(around)[1] if around else ""

    def has(self, name: str) -> bool:
        """Return whether a function or class of that dotted name is there; the top of the file always is."""
        return not name or any(name == other for _, _, other in self._found)

    def statement_at(self, line: int) -> str:
        """Return the words of the statement that begins at ``line`` (of a block its header), blanks between them."""
        ends = [end for first, end in self._statements if first == line]
        lines = self._lines[line - 1 : max(ends, default=line)]
        return " ".join(" ".join(lines).split())


def _header_end(node: ast.stmt) -> int:
    body = getattr(node, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
        return max(node.lineno, body[0].lineno - 1) if body[0].lineno > node.lineno else node.lineno
    return node.end_lineno or node.lineno
