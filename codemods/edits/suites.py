"""Make all changes to the statements of one suite at once: insert, remove, move away and wrap."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

import libcst as cst

from codemods.edits.blocks import indent_of_bodies, wrap_statements
from codemods.edits.source import StatementNode
from codemods.edits.whitespace import (
    Lines,
    Statement,
    at_least_blank,
    indented,
    is_blank,
    is_directive,
    join_lines,
    line_end,
    split_attached,
    split_blanks,
    suite_line_end,
    with_leading_lines,
    with_newline,
)
from codemods.terms.edits import EditError

Suite = cst.Module | cst.IndentedBlock | cst.SimpleStatementSuite
Where = Literal["before", "after", "first-in", "last-in"]


@dataclass(frozen=True, eq=False)
class Insertion:
    """New ``statements`` to be put into a suite with comments ``below`` them, or else one that is ``moved`` there.

    ``blank_above`` and ``blank_below`` are the least numbers of blank lines around them. ``below_comments`` puts them
    between the anchor and the comments directly above it.
    """

    statements: Sequence[Statement] = ()
    below: Lines = ()
    moved: StatementNode | None = None
    blank_above: int = 0
    blank_below: int = 0
    below_comments: bool = False


@dataclass(frozen=True, eq=False)
class Wrap:
    """A block to be put around the statements from ``first`` to ``last``."""

    first: StatementNode
    last: StatementNode
    header: str


@dataclass(eq=False)
class SuiteChanges:
    """What is to happen to one suite; statements are named by their nodes in the tree as parsed.

    ``removed`` ones leave the comments above and after them, ``moved`` ones take them along.
    """

    before: dict[StatementNode, list[Insertion]] = field(default_factory=dict)
    after: dict[StatementNode, list[Insertion]] = field(default_factory=dict)
    first: list[Insertion] = field(default_factory=list)
    last: list[Insertion] = field(default_factory=list)
    removed: set[StatementNode] = field(default_factory=set)
    moved: set[StatementNode] = field(default_factory=set)
    wraps: list[Wrap] = field(default_factory=list)

    @property
    def inserts(self) -> bool:
        """Whether the suite needs new lines."""
        return bool(self.before or self.after or self.first or self.last or self.wraps)


@dataclass(frozen=True)
class Layout:
    """What a suite must know of the tree around it.

    ``indentation`` has the steps by which its statements are indented, ``default_indent`` is the usual step of the file
    and ``indent`` the step of blocks at this place where that differs. ``arrive`` gives a statement that is moved here.
    """

    indentation: Sequence[str]
    default_indent: str
    indent: str | None
    has_docstring: bool
    arrive: Callable[[StatementNode], Statement]


@dataclass(eq=False)
class _Line:
    """The statements of one line of code, or one compound statement: as parsed, and with the changes within them."""

    leading: Lines
    statements: list[tuple[StatementNode, StatementNode]]
    trailing: cst.TrailingWhitespace | None

    @property
    def newline(self) -> cst.Newline:
        if self.trailing is not None:
            return self.trailing.newline
        return line_end(cast(cst.BaseCompoundStatement, self.statements[0][1]))


_Run = list[tuple[StatementNode, StatementNode]]
_Close = Literal["close"]
_Event = _Run | Insertion | Wrap | _Close


def statements_of(suite: Suite) -> list[StatementNode]:
    """The statements of ``suite`` in order, those that share a line too."""
    if isinstance(suite, cst.SimpleStatementSuite):
        return list(suite.body)
    found: list[StatementNode] = []
    for item in suite.body:
        found += item.body if isinstance(item, cst.SimpleStatementLine) else [cast(cst.BaseCompoundStatement, item)]
    return found


def split_header(module: cst.Module) -> tuple[Lines, Lines]:
    """The lines above the first statement of ``module``: those about the file, and those about the statement."""
    lines = module.header
    start = len(lines)
    while start and not is_blank(lines[start - 1]):
        start -= 1
    while start and is_blank(lines[start - 1]):
        start -= 1
    if lines and not any(is_blank(line) for line in lines):
        start = len(lines)
    return lines[:start], lines[start:]


def change_suite(original: Suite, updated: Suite, changes: SuiteChanges, layout: Layout) -> Suite:
    """``updated``, which is ``original`` with changes within its statements, with ``changes`` to the statements.

    Raises EditError if blocks to be put around statements cross, or would be empty.
    """
    if isinstance(original, cst.SimpleStatementSuite):
        assert isinstance(updated, cst.SimpleStatementSuite)
        if not changes.inserts:
            return _shortened(original, updated, changes)
        by = layout.default_indent if layout.indent is None else layout.indent
        small = [indented(item, by, layout.indentation, layout.default_indent) for item in updated.body]
        layout = dataclasses.replace(layout, indentation=[*layout.indentation, by])
        newline = suite_line_end(original)
        line = _Line((), list(zip(original.body, small, strict=True)), updated.trailing_whitespace)
        block = _Builder([line], changes, layout, newline)
        body = block.build(at_start=True)
        header = cst.TrailingWhitespace(newline=newline)
        return cst.IndentedBlock(body, header=header, indent=layout.indent, footer=block.pending_comments())
    assert not isinstance(updated, cst.SimpleStatementSuite)
    lines = _lines_of_block(original, updated)
    newline = lines[0].newline if lines else cst.Newline()
    above: Lines = ()
    if isinstance(updated, cst.Module):
        above, own = split_header(updated)
        if lines:
            lines[0].leading = [*own, *lines[0].leading]
        else:
            above = updated.header
    builder = _Builder(lines, changes, layout, newline, module=isinstance(updated, cst.Module))
    footer = updated.footer
    body = builder.build(at_start=not above, footer=footer)
    footer = () if changes.last else footer
    changed = updated.with_changes(body=body, footer=(*builder.pending_comments(), *footer))
    if isinstance(updated, cst.Module):
        # Nothing has no line end to go by, and with a line end it would be a blank line.
        had_any, has_any = bool(lines or updated.header), bool(above or body or changed.footer)
        ended = has_any and (updated.has_trailing_newline or not had_any)
        return changed.with_changes(header=above, has_trailing_newline=ended)
    return changed


def _lines_of_block(original: cst.Module | cst.IndentedBlock, updated: cst.Module | cst.IndentedBlock) -> list[_Line]:
    lines = []
    for old, new in zip(original.body, updated.body, strict=True):
        if isinstance(old, cst.SimpleStatementLine) and isinstance(new, cst.SimpleStatementLine):
            lines.append(_Line(new.leading_lines, list(zip(old.body, new.body, strict=True)), new.trailing_whitespace))
        else:
            pair = cast("tuple[cst.BaseCompoundStatement, cst.BaseCompoundStatement]", (old, new))
            lines.append(_Line(pair[1].leading_lines, [pair], None))
    return lines


def _shortened(
    original: cst.SimpleStatementSuite, updated: cst.SimpleStatementSuite, changes: SuiteChanges
) -> cst.SimpleStatementSuite:
    gone = changes.removed | changes.moved
    kept = [new for old, new in zip(original.body, updated.body, strict=True) if old not in gone]
    if kept:
        return updated.with_changes(body=_ended(kept, original.body[-1] not in gone))
    trailing = updated.trailing_whitespace
    if changes.moved or trailing.comment is None or is_directive(trailing.comment.value):
        trailing = cst.TrailingWhitespace(newline=trailing.newline)
    return updated.with_changes(body=[cst.Pass()], trailing_whitespace=trailing)


def _ended(statements: Sequence[cst.BaseSmallStatement], keep_semicolon: bool) -> Sequence[cst.BaseSmallStatement]:
    if keep_semicolon:
        return statements
    return [*statements[:-1], statements[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)]


class _Builder:
    """Goes through the lines of a suite and puts together the lines of the new one."""

    def __init__(
        self, lines: list[_Line], changes: SuiteChanges, layout: Layout, newline: cst.Newline, module: bool = False
    ) -> None:
        self.lines = lines
        self.changes = changes
        self.layout = layout
        self.newline = newline
        self.module = module
        statements = (old for line in lines for old, _ in line.statements)
        self.order = {statement: index for index, statement in enumerate(statements)}
        # One list of statements for the suite, and one for each new block that is open.
        self.open: list[tuple[Wrap | None, list[Statement]]] = [(None, [])]
        # Lines left by statements that are gone, and the blank lines that the next statement must have above it.
        self.pending: list[cst.EmptyLine] | None = None
        self.blank = 0
        self.at_start = True

    def build(self, *, at_start: bool, footer: Sequence[cst.EmptyLine] = ()) -> list[Statement]:
        """The new statements.

        ``at_start`` says that nothing stands above them; ``footer`` is what stands above insertions at the bottom.
        """
        self.at_start = at_start
        _check_nesting(self.changes.wraps, self.order)
        if not self.lines:
            for insertion in (*self.changes.first, *self.changes.last):
                self._insert(insertion, (), self.newline)
        for index, line in enumerate(self.lines):
            self._add_line(line, index)
        for number, insertion in enumerate(self.changes.last if self.lines else ()):
            self._insert(insertion, footer if not number else (), self.lines[-1].newline)
        statements = self.open[0][1]
        if not statements and not self.module:
            whitespace = cst.TrailingWhitespace(newline=self.newline)
            self._emit(cst.SimpleStatementLine([cst.Pass()], trailing_whitespace=whitespace), (), self.newline)
        return statements

    def pending_comments(self) -> list[cst.EmptyLine]:
        """What must still be kept of the lines above statements that are gone."""
        lines = self.pending or []
        return [] if all(is_blank(line) for line in lines) else lines

    def _events(self, line: _Line, index: int) -> list[_Event]:
        changes = self.changes
        events: list[_Event] = []
        for number, (old, new) in enumerate(line.statements):
            is_first = not index and not number
            if is_first and not self.layout.has_docstring:
                events += changes.first
            events += changes.before.get(old, [])
            starting = [wrap for wrap in changes.wraps if wrap.first is old]
            # Of blocks that begin together the longest is the outermost, and of equal ones the first asked for.
            outermost_first = sorted(starting, key=lambda wrap: self.order[wrap.last], reverse=True)
            events += outermost_first
            if old not in changes.removed and old not in changes.moved:
                if events and isinstance(events[-1], list):
                    events[-1].append((old, new))
                else:
                    events.append([(old, new)])
            events += ["close"] * sum(wrap.last is old for wrap in changes.wraps)
            if is_first and self.layout.has_docstring:
                events += changes.first
            events += changes.after.get(old, [])
        return events

    def _add_line(self, line: _Line, index: int) -> None:
        events = self._events(line, index)
        runs = [event for event in events if isinstance(event, list)]
        gone_with_comments = not runs and any(old in self.changes.moved for old, _ in line.statements)
        alone, attached = split_attached(line.leading)
        leading = alone if gone_with_comments else line.leading
        first = next((event for event in events if isinstance(event, (list, Insertion))), None)
        behind = self._behind(line) if not runs else None
        if behind is not None:
            replaced = self._with_comment(events, behind)
            if not replaced:
                leading = [*leading, cst.EmptyLine(comment=behind, newline=line.newline)]
            events = replaced or events
            first = next((event for event in events if isinstance(event, Insertion)), None)
        for event in events:
            if event == "close":
                self._close()
            elif isinstance(event, Wrap):
                self.open.append((event, []))
            elif isinstance(event, Insertion):
                if event is not first:
                    self._insert(event, (), line.newline)
                elif not runs or event.below_comments:
                    self._insert(event, leading, line.newline)
                    leading = ()
                else:
                    self._insert(event, alone, line.newline)
                    leading = attached
                    if isinstance(line.statements[0][0], (cst.FunctionDef, cst.ClassDef)):
                        self.blank = max(self.blank, len(split_blanks(alone)[0]))
            else:
                self._emit(self._line_of(event, line, is_last=event is runs[-1]), leading, line.newline)
                leading = ()
        if first is None:
            self.pending = [*join_lines(self.pending or [], leading, at_start=False)]

    def _behind(self, line: _Line) -> cst.Comment | None:
        """The comment after statements that are all gone, if it stays."""
        comment = line.trailing.comment if line.trailing is not None else None
        last = line.statements[-1][0]
        if comment is None or is_directive(comment.value) or last in self.changes.moved:
            return None
        if isinstance(last, (cst.Import, cst.ImportFrom)):
            # it is about what nobody needs any more
            return None
        return comment

    @staticmethod
    def _with_comment(events: Sequence[_Event], comment: cst.Comment) -> list[_Event] | None:
        """``events`` with ``comment`` after the statement that replaces the removed ones, if it is a single one."""
        inserted = [event for event in events if isinstance(event, Insertion)]
        if len(inserted) != 1 or len(inserted[0].statements) != 1:
            return None
        statement = inserted[0].statements[0]
        if not isinstance(statement, cst.SimpleStatementLine) or statement.trailing_whitespace.comment is not None:
            return None
        trailing = statement.trailing_whitespace.with_changes(whitespace=cst.SimpleWhitespace("  "), comment=comment)
        new = dataclasses.replace(inserted[0], statements=[statement.with_changes(trailing_whitespace=trailing)])
        return [new if event is inserted[0] else event for event in events]

    def _line_of(self, run: _Run, line: _Line, is_last: bool) -> Statement:
        if line.trailing is None:
            return cast(cst.BaseCompoundStatement, run[0][1])
        small = [cast(cst.BaseSmallStatement, new) for _, new in run]
        whole = run[-1][0] is line.statements[-1][0]
        trailing = line.trailing if is_last else cst.TrailingWhitespace(newline=line.newline)
        return cst.SimpleStatementLine(_ended(small, whole), trailing_whitespace=trailing)

    def _insert(self, insertion: Insertion, leading: Lines, newline: cst.Newline) -> None:
        moved = insertion.moved
        statements = insertion.statements if moved is None else [self.layout.arrive(moved)]
        self.blank = max(self.blank, insertion.blank_above)
        for number, statement in enumerate(statements):
            statement = with_newline(statement, newline)
            own = statement.leading_lines
            self._emit(with_leading_lines(statement, ()), [*leading, *own] if not number else own, newline)
        if insertion.below:
            self.pending = [*(self.pending or []), *(with_newline(line, newline) for line in insertion.below)]
        self.blank = max(self.blank, insertion.blank_below)

    def _emit(self, statement: Statement, leading: Lines, newline: cst.Newline) -> None:
        if self.pending is not None:
            leading = join_lines(self.pending, leading, at_start=self.at_start)
            self.pending = None
        if not self.at_start:
            leading = at_least_blank(leading, self.blank, newline)
        self.blank = 0
        self.at_start = False
        self.open[-1][1].append(with_leading_lines(statement, leading))

    def _close(self) -> None:
        wrap, statements = self.open.pop()
        assert wrap is not None
        if not statements:
            raise EditError("all statements that a block is to be put around are removed or moved")
        indent = self.layout.indent if not self.module else indent_of_bodies(statements)
        block = wrap_statements(
            statements,
            wrap.header,
            indent=indent,
            indentation=self.layout.indentation,
            default_indent=self.layout.default_indent,
        )
        self.open[-1][1].append(block)


def _check_nesting(wraps: Sequence[Wrap], order: Mapping[StatementNode, int]) -> None:
    ranges = [(order[wrap.first], order[wrap.last]) for wrap in wraps]
    for first, last in ranges:
        if first > last:
            raise EditError("the last statement to be wrapped stands before the first")
        if any(first < other <= last < end for other, end in ranges):
            raise EditError("two blocks that are to be put around statements cross")
