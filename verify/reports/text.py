"""A report for a terminal: a table for each command, a line for each rewrite, limits, and what went wrong."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from codemods.source.diffs import printable, printable_lines
from verify.measured.results import Entry, Rewrite, Verdict, Verification
from verify.reports import remarks
from verify.reports.table import Mood, Table, table

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

WIDEST, NARROWEST = 120, 60
_MOODS = {Mood.PLAIN: "", Mood.GOOD: "green", Mood.BAD: "red", Mood.FAINT: "dim"}
_VERDICTS = {
    Verdict.KEPT: "green",
    Verdict.BROKEN: "bold red",
    Verdict.PARTLY_REACHED: "yellow",
    Verdict.NOT_REACHED: "yellow",
    Verdict.NOT_JUDGED: "yellow",
}
_STATUS = {0: "bold green", 1: "bold red", 3: "bold yellow"}


def render(verification: Verification, *, colour: bool = False) -> str:
    """Return the report as text, as wide as the terminal and at most 120 columns; without one, 120."""
    width = min(max(shutil.get_terminal_size((WIDEST, 24)).columns, NARROWEST), WIDEST)
    page = _Page(width, colour)
    for entry in verification.entries:
        _entry(page, verification, entry)
    _rewrites(page, verification)
    page.paragraphs("limits", remarks.limits(verification), "yellow")
    page.paragraphs("notes", remarks.notes(verification), "dim")
    _verdict(page, verification)
    return page.text()


class _Page:
    """Lines as they are printed; rich knows how wide characters are and folds what does not fit."""

    def __init__(self, width: int, colour: bool) -> None:
        from rich.console import Console

        self.width = width
        self._buffer = io.StringIO()
        # Without what rich would find out about the surroundings: a pipe is to get what a terminal gets.
        self._console: Console = Console(
            file=self._buffer,
            width=width,
            force_terminal=colour,
            color_system="standard" if colour else None,
            no_color=not colour,
            legacy_windows=False,
            highlight=False,
            markup=False,
            emoji=False,
            _environ={},
        )
        self._empty = True

    def add(self, item: RenderableType, indent: int = 0) -> None:
        from rich.padding import Padding

        self._empty = False
        self._console.print(Padding(item, (0, 0, 0, indent)) if indent else item)

    def blank(self) -> None:
        if not self._empty:
            self._console.print()

    def line(self, text: str, style: str = "", indent: int = 0) -> None:
        self.add(_styled(text, style), indent)

    def paragraphs(self, title: str, texts: Sequence[str], style: str) -> None:
        """Print each text as an item below the title; nothing where there is none."""
        if not texts:
            return
        self.blank()
        self.line(f"{title}:", style)
        for text in texts:
            self.item(text)

    def item(self, text: str) -> None:
        """Print ``text`` behind a dash, folded under its own beginning."""
        from rich.table import Table as Grid

        grid = Grid.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=1)
        grid.add_column(width=self.width - 3, overflow="fold")
        grid.add_row("-", _styled(text))
        self.add(grid)

    def text(self) -> str:
        # Cells are filled up with blanks, which are noise in a pipe.
        return "".join(f"{line.rstrip()}\n" for line in self._buffer.getvalue().rstrip("\n").split("\n"))


def _styled(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(printable_lines(text), style=style, overflow="fold")


def _entry(page: _Page, verification: Verification, entry: Entry) -> None:
    page.blank()
    page.line(remarks.title(verification, entry), "bold")
    if about := remarks.setting(entry):
        page.line(about, "dim")
    page.blank()
    _table(page, table(entry))
    if left_out := remarks.basis(entry):
        page.blank()
        page.line(left_out)
    for breakdown in remarks.breakdowns(entry):
        page.blank()
        _breakdown(page, breakdown)
    # Of interest to whoever asks why; where all is well, they are steps on the way.
    if any(rewrite.verdict is Verdict.BROKEN for rewrite in entry.rewrites) and (stages := remarks.stages(entry)):
        page.blank()
        for stage in stages:
            page.line(stage)


def _table(page: _Page, content: Table) -> None:
    from rich.table import Table as Grid

    label = max(len(row.label) for row in content.rows)
    grid = Grid(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="bold")
    grid.add_column("", width=label, style="dim", no_wrap=True)
    for name in content.columns:
        grid.add_column(name, overflow="fold")
    for row in content.rows:
        grid.add_row(row.label, *(_styled(cell.text, _MOODS[cell.mood]) for cell in row.cells))
    page.add(grid)


def _breakdown(page: _Page, breakdown: remarks.Breakdown) -> None:
    style = "" if breakdown.expected else "red"
    if breakdown.expected or not breakdown.details:
        page.line(f"{breakdown.run}: {breakdown.summary}", style)
    elif breakdown.printed:
        page.line(f"{breakdown.run}: {breakdown.summary}; the last that it printed:", style)
        page.line(breakdown.details, indent=4)
    else:
        page.line(f"{breakdown.run}:", style)
        page.line(breakdown.details, indent=4)


def _rewrites(page: _Page, verification: Verification) -> None:
    """Print a line a rewrite, with its reason behind it where all fit, else on lines of their own below."""
    if not verification.rewrites:
        return
    page.blank()
    told = [(_words(one, verification), remarks.reason_text(one, verification)) for one in verification.rewrites]
    widths = [max(cell_len(words[column]) for words, _ in told) for column in range(4)]
    room = page.width - sum(widths) - 8
    beside = all(cell_len(reason) <= room for _, reason in told)
    following = [reason for _, reason in told[1:]] + [""]
    shared = 0
    for rewrite, (words, reason), after in zip(verification.rewrites, told, following, strict=True):
        cells = [*words, reason] if beside else list(words)
        padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, [*widths, 0], strict=False)]
        head = _styled("  ".join(padded).rstrip())
        head.stylize(_VERDICTS[rewrite.verdict], 0, len(words[0]))
        page.add(head)
        shared += 1
        # Rewrites that were judged by one run have one reason.
        if not beside and reason and reason != after:
            page.line(f"{'both' if shared == 2 else f'all {shared}'}: {reason}" if shared > 1 else reason, indent=4)
        if reason != after:
            shared = 0


def _words(rewrite: Rewrite, verification: Verification) -> tuple[str, str, str, str]:
    finding = rewrite.finding
    return (
        rewrite.shown,
        printable(finding.rule),
        printable(f"{finding.path}:{verification.place(finding.path, finding.span.line)}"),
        finding.promise.value,
    )


def _verdict(page: _Page, verification: Verification) -> None:
    page.blank()
    text = remarks.headline(verification)
    if counts := remarks.tally_text(verification):
        text += f": {counts}"
    page.line(text, _STATUS[verification.status])
    if verification.reason:
        page.line(verification.reason)
    for advice in verification.advice:
        page.item(advice)
