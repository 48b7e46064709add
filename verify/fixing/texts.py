"""A file as text and as statements, for changes of single lines. A notebook is the program made of its cells."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from codemods.source.files import SourceFile
from codemods.terms.findings import ShownLine
from verify.measured.values import Site
from verify.syntax import FUNCTIONS, LOOPS, Function, bound, names, parameters

#: Expressions that take a method call without parentheses.
PRIMARY = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant)
#: The file at a path below the root; may raise SourceError.
Texts = Callable[[str], SourceFile]


class Text:
    """A file, its statements, and copies of it with added or changed lines."""

    def __init__(self, path: str, texts: Texts) -> None:
        self.path = path
        self._source = texts(path)
        self.text = self._source.text
        self.lines = self.text.splitlines(keepends=True)
        self.tree = ast.parse(self.text)

    @property
    def has_records(self) -> bool:
        """Whether the file makes named tuples."""
        return "namedtuple" in self.text.lower()

    def line(self, site: Site) -> int:
        """The line of the text at which ``site`` is."""
        return self._source.line(ShownLine(site.cell, site.line))

    def at(self, line: int) -> str:
        """Line ``line`` of the text, as users find it in the file."""
        place = self._source.place(line)
        return f"line {line}" if place.cell is None else f"line {place.line} of cell {place.cell}"

    def statement(self, line: int) -> ast.stmt | None:
        """The innermost statement at ``line`` that shares its lines with no other."""
        found = None
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
                found = node
        return found if found is not None and not hasattr(found, "body") and self.alone(found) else None

    def alone(self, statement: ast.stmt) -> bool:
        """Whether ``statement`` shares its lines with no other."""
        before = self.lines[statement.lineno - 1].encode()[: statement.col_offset]
        after = self.lines[(statement.end_lineno or 1) - 1].encode()[statement.end_col_offset or 0 :].strip()
        return not before.strip() and (not after or after.startswith(b"#"))

    def segment(self, node: ast.AST) -> str:
        """The source of ``node``."""
        return ast.get_source_segment(self.text, node) or ""

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements of the block of ``statement``, itself included."""
        for node in ast.walk(self.tree):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and statement in block:
                    return block
        return []

    def function(self, statement: ast.stmt) -> Function | None:
        """The innermost function around ``statement``."""
        found = None
        for node in ast.walk(self.tree):
            if isinstance(node, FUNCTIONS) and statement in ast.walk(node):
                found = node
        return found

    def scope(self, statement: ast.stmt) -> ast.AST:
        """The innermost function around ``statement``, or the whole file."""
        return self.function(statement) or self.tree

    def loops(self, statement: ast.stmt) -> list[ast.For | ast.While]:
        """The loops around ``statement`` in its function, the outermost first."""
        found = (node for node in ast.walk(self.scope(statement)) if isinstance(node, (ast.For, ast.While)))
        return [loop for loop in found if statement in ast.walk(loop)]

    def means_the_same(self, made: ast.stmt, used: ast.stmt) -> bool:
        """Whether the names in ``made`` refer to the same things before ``used``: further down in one function, in a
        nested function, or in another method if they are ``self`` and names of the file."""
        here, there = self.function(made), self.function(used)
        if here is there:
            return made.lineno < used.lineno
        if there is None:
            return False
        inner = [node.target for node in ast.walk(made) if isinstance(node, ast.comprehension)]
        used_names = names(made).difference(*map(names, inner))
        if here is None or there in ast.walk(here):
            return self._means_the_same_inside(made, used, there, used_names)
        if not here.args.args or not there.args.args:
            return False
        same = any(isinstance(n, ast.ClassDef) and here in n.body and there in n.body for n in ast.walk(self.tree))
        owner = here.args.args[0].arg
        own = _names_of(here) | _names_of(there)
        return same and owner == there.args.args[0].arg and not (used_names - {owner}) & own

    def _means_the_same_inside(self, made: ast.stmt, used: ast.stmt, there: Function, used_names: set[str]) -> bool:
        """The same where ``there``, the function around ``used``, is nested in the function or file of ``made``:
        what it binds must not be read earlier, and everything else must be that of outside."""
        given = bound(made)
        for loop in (node for node in ast.walk(self.tree) if isinstance(node, LOOPS)):
            inside = list(ast.walk(loop))
            later = (n for n in inside if isinstance(n, ast.stmt) and n.lineno > made.lineno and n is not there)
            # A function of the same turn sees what the statement saw, if the turn does not bind it anew.
            if made in inside and (there not in inside or used_names & set().union(*map(bound, later))):
                return False
        between = [
            function
            for function in ast.walk(self.tree)
            if isinstance(function, (*FUNCTIONS, ast.Lambda))
            and there in ast.walk(function)
            and made not in ast.walk(function)
        ]
        if any(used_names & _names_of(function) for function in between):
            return False
        early = {n.id for n in ast.walk(there) if isinstance(n, ast.Name) and getattr(n, "lineno", 0) < used.lineno}
        shared = {name for n in ast.walk(there) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        return bool(given) and not given & (early | shared)

    def dissolved(self, block: ast.stmt, body: list[ast.stmt]) -> str | None:
        """The file with ``body``, the whole of ``block``, in its place; None where its lines are not indented by
        code."""
        first, last = body[0].lineno - 1, body[-1].end_lineno or body[-1].lineno
        indent, inner = self.indent(block.lineno), self.lines[first][: body[0].col_offset]
        lines = self.lines[first:last]
        if inner.strip() or not all(line.startswith(inner) or not line.strip() for line in lines):
            return None
        kept = [indent + line[len(inner) :] if line.strip() else line for line in lines]
        return "".join([*self.lines[: block.lineno - 1], *kept, *self.lines[last:]])

    def without(self, block: ast.stmt) -> str:
        """The file without ``block``."""
        return "".join([*self.lines[: block.lineno - 1], *self.lines[block.end_lineno or block.lineno :]])

    def indent(self, line: int) -> str:
        """The white space at the start of line ``line``."""
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip())]

    def inserted(self, after: ast.stmt, code: str, *, before: bool = False) -> dict[str, str]:
        """The file with ``code``, a statement without indentation, inserted after ``after`` or before it."""
        indent = self.indent(after.lineno)
        at = after.lineno - 1 if before else after.end_lineno or after.lineno
        lines = list(self.lines)
        if at and not lines[at - 1].endswith("\n"):
            lines[at - 1] += "\n"
        lines.insert(at, "".join(f"{indent}{line}\n" for line in code.splitlines()))
        return {self.path: "".join(lines)}

    def moved(
        self, statements: Iterable[ast.stmt], to: ast.stmt, *, before: bool = False, keep: bool = False
    ) -> dict[str, str]:
        """The file with ``statements``, each alone on its lines, after ``to`` or in front of it; ``keep``: where they
        are as well."""
        indent, lines, code = self.indent(to.lineno), list(self.lines), []
        spans = [(each.lineno - 1, each.end_lineno or each.lineno) for each in statements]
        for first, last in spans:
            inner = self.indent(first + 1)
            code += [indent + line.removeprefix(inner) if line.strip() else line for line in lines[first:last]]
        at = to.lineno - 1 if before else to.end_lineno or to.lineno
        if not lines[at - 1].endswith("\n"):
            lines[at - 1] += "\n"
        for first, last in spans if not keep else ():
            lines[first:last] = [""] * (last - first)
        lines[at:at] = code
        return {self.path: "".join(lines)}

    def replaced(self, node: ast.AST, code: str) -> dict[str, str]:
        """The file with ``code`` in place of ``node``, which begins and ends on one line."""
        return self.replaced_all([(node, code)])

    def given(self, call: ast.Call, argument: str) -> dict[str, str]:
        """The file with one more argument of ``call``, which stands on one line."""
        return self.replaced(call, self.with_argument(call, argument))

    def with_argument(self, call: ast.Call, argument: str) -> str:
        """The source of ``call`` with one more argument."""
        comma = ", " if call.args or call.keywords else ""
        return f"{self.segment(call)[:-1].rstrip().removesuffix(',')}{comma}{argument})"

    def bare(self, value: ast.expr) -> str:
        """The source of ``value``, in parentheses where a method call needs them."""
        code = self.segment(value)
        own = isinstance(value, (ast.Tuple, ast.GeneratorExp)) and code[0] + code[-1] == "()"
        return code if own or isinstance(value, PRIMARY) else f"({code})"

    def replaced_all(self, pairs: Iterable[tuple[ast.AST, str]]) -> dict[str, str]:
        """The same for several nodes that do not contain each other."""
        lines = list(self.lines)
        for node, code in sorted(pairs, key=lambda pair: -getattr(pair[0], "col_offset", 0)):
            first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
            if first != last:
                raise ValueError("spans lines")
            raw = lines[first - 1].encode()
            start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
            lines[first - 1] = (raw[:start] + code.encode() + raw[end:]).decode()
        return {self.path: "".join(lines)}


def _names_of(function: Function | ast.Lambda) -> set[str]:
    """The names that ``function`` itself binds."""
    return parameters(function) | bound(function)
