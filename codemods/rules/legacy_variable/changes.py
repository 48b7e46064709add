"""One old form and what becomes of it; the old forms of a line, which are mended together."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from codemods.edits.emptied import is_identity
from codemods.graph.model.program import ParsedFile
from codemods.proofs.blocks import suite_of
from codemods.proofs.observations import Decision, Site
from codemods.proofs.repackaging import repackaging_helpers
from codemods.source.walking import walk
from codemods.terms.edits import (
    Edit,
    RemoveIdentity,
)
from codemods.terms.findings import Promise
from codemods.terms.spans import Span


@dataclass(frozen=True)
class Change:
    """One old form and what is to become of it; ``given`` is the part of it that is left, where nothing else is."""

    file: ParsedFile
    span: Span
    statement: Span
    line: int
    old: str
    message: str
    remedy: str
    edit: Edit
    promise: Promise = Promise.EXACT
    given: ast.expr | None = None
    partners: tuple[tuple[str, str, int], ...] = ()


@dataclass
class Line:
    """The old forms in one line of a statement, which are mended together."""

    changes: list[Change] = field(default_factory=list)

    def edits(self, statement: Span) -> list[Edit]:
        """The edits, or the removal of a statement that would then only assign names to themselves."""
        file = self.changes[0].file
        node = file.find(statement, ast.stmt)
        edits = [change.edit for change in self.changes]
        if not isinstance(node, ast.Assign) or isinstance(file.parent(node), ast.ClassDef):
            return edits
        kept = {c.span: c.given for c in self.changes if c.given is not None}
        left = _Given(file, kept).visit(copy.deepcopy(node))
        suite = suite_of(file, node)
        if len(kept) < len(self.changes) or not is_identity(left, suite[: suite.index(node)]):
            return edits
        if isinstance(node.targets[0], ast.Attribute) and _defines(file.tree, node.targets[0].attr):
            # a property may store something else
            return edits
        return [*edits, RemoveIdentity(statement)]


def _defines(tree: ast.AST, name: str) -> bool:
    return any(isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name == name for n in walk(tree))


class _Given(ast.NodeTransformer):
    """Puts the parts that are left in the place of the whole."""

    def __init__(self, file: ParsedFile, kept: Mapping[Span, ast.expr]) -> None:
        self.file = file
        self.kept = kept

    def visit(self, node: ast.AST) -> Any:
        left = self.kept.get(self.file.span(node)) if isinstance(node, (ast.Call, ast.Attribute)) else None
        # what stays is a part of the file, which is not changed
        return super().visit(node) if left is None else self.visit(copy.deepcopy(left))


def without_unseen(site: Site) -> Site:
    """A site by what runs showed; where none came through, by what its function says."""
    ran = [o for o in site.observations if not o.facts["unreached"]]
    if ran:
        return Site(site.path, site.span, tuple(ran))
    return site


def changes_at(
    found: Iterable[Site], decision: Decision, make: Callable[[Site, ParsedFile], Change | None]
) -> Iterator[Change]:
    """What ``make`` makes of sites, but for those in helpers that ``carried-hidden-state`` mends."""
    for site in found:
        file = decision.files(site.path)
        if file is None or _repackages(site, file):
            continue
        change = make(site, file)
        if change is not None:
            yield change


def _repackages(site: Site, file: ParsedFile) -> bool:
    """Whether it is a line of a broken helper for hidden state, which ``carried-hidden-state`` mends."""
    node = file.find(site.span, ast.expr)
    function = file.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef) if node is not None else None
    return isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
        within(site, file.path, helper) for helper in repackaging_helpers(file, function)
    )


def within(site: Site, path: str, outer: Span) -> bool:
    """Whether a site lies in ``outer`` of the file ``path``."""
    return site.path == path and site.span.lies_in(outer)


def change_of(file: ParsedFile, node: ast.expr, message: str, remedy: str, edit: Edit, **more: object) -> Change:
    """The change of the expression ``node``; ``more`` are other fields."""
    statement = file.enclosing(node, ast.stmt)
    assert statement is not None
    span, whole = file.span(node), file.span(statement)
    # the header of a loop or a branch is a line of its own
    line = 0 if isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.Call, ast.Tuple)) else span.line
    old = ast.unparse(node)
    short = old if len(old) <= 60 else f"{old[:57]}..."
    return Change(file, span, whole, line, short, message, remedy, edit, **more)  # type: ignore[arg-type]


def loses_comments(file: ParsedFile, node: ast.expr, kept: ast.expr) -> bool:
    """Whether comments stand in an expression outside of the part that is kept."""
    whole, part = file.span(node), file.span(kept)
    if whole.line == whole.end_line:
        return False
    before, after = Span(*whole.start, *part.start), Span(*part.end, *whole.end)
    return "#" in text_of(file, before) + text_of(file, after)


def text_of(file: ParsedFile, span: Span) -> str:
    """What stands at a place, with all line ends alike."""
    lines = file.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.column :]
    return "\n".join(lines)


def short_of(node: ast.expr) -> str:
    """An expression as a remedy names it, left out where it is long."""
    text = ast.unparse(node)
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        text = f"({text})"
    return text if len(text) <= 40 else "..."
