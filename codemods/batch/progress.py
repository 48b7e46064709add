"""What a person sees while a campaign is at work: a live table on a terminal, else a line a repository."""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codemods.batch.executors import Doing
from codemods.batch.ledger.ledger import Row
from codemods.batch.requests.standing import standing_of
from codemods.batch.stages.job import PARTLY
from codemods.source.diffs import printable
from codemods.source.logs import quoted
from codemods.terms.counting import plain_count_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

#: The rate is that of so many repositories that came to their end last.
_RECENT = 50
_REFRESH = 0.25
#: Why a repository was not verified for which nobody named a script.
NO_SCRIPT = "no script to run was found"


class Progress:
    """Lines on standard error; ``quiet`` says nothing. A context manager, because a live table must be ended."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._live: Live | None = None
        self._total = self._finished = self._before = 0
        self._start = time.monotonic()
        self._ends: deque[float] = deque(maxlen=_RECENT)
        self._states: Counter[str] = Counter()
        self._shown = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def begin(self, total: int, finished: int) -> None:
        """Note that ``total`` repositories are listed, and that ``finished`` of them need nothing more."""
        self._total, self._finished, self._before = total, finished, finished
        self._start = time.monotonic()
        self._ends.append(self._start)
        if finished:
            self.say(f"{finished} of {total} repositories were finished by an earlier run")
        if sys.stderr.isatty() and not self.quiet and finished < total:
            from rich.console import Console
            from rich.live import Live

            # Without its refreshing thread: there are threads enough.
            self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()

    def settled(self, row: Row, seconds: float) -> None:
        """Tell that a repository came to its end, for this run, which worked on it for so many seconds."""
        self._finished += 1
        self._ends.append(time.monotonic())
        self._states[row["state"]] += 1
        self.say(f"{self._finished}/{self._total}  {row['slug']}: {outcome(row)} ({seconds:.1f} s)")

    def look(self, doing: Sequence[Doing]) -> None:
        """Show what is being done; called several times a second."""
        now = time.monotonic()
        if self._live is not None and now - self._shown > _REFRESH:
            self._shown = now
            self._live.update(self._table(doing), refresh=True)

    def say(self, text: str) -> None:
        """Tell the person a sentence."""
        if self.quiet:
            return
        if self._live is not None:
            self._live.console.print(printable(text), markup=False, highlight=False)
        else:
            print(quoted(printable(text)), file=sys.stderr, flush=True)

    def interrupted(self, file: str) -> None:
        """Say what is kept of a run that was interrupted, and how it goes on with ``file``, as a shell has it."""
        self.say(
            f"interrupted: {self._finished} of {self._total} repositories are finished; they are kept, and so is "
            f"each stage that was done of the others. To go on: codemod batch run {file}"
        )

    def rate(self) -> float | None:
        """Repositories a minute, of late; None before anything can be said."""
        if len(self._ends) < 3:
            return None
        span = time.monotonic() - self._ends[0]
        return 60 * (len(self._ends) - 1) / span if span > 0 else None

    def summary(self) -> str:
        """Where it stands, in one line."""
        rate = self.rate()
        text = f"{self._finished} of {self._total} repositories"
        if self._states:
            text += ": " + ", ".join(f"{count} {state}" for state, count in sorted(self._states.items()))
        if rate:
            left = (self._total - self._finished) / rate * 60
            text += f"; {rate:.1f} a minute, {duration(left)} left"
        return text

    def _table(self, doing: Sequence[Doing]) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        # On a narrow terminal names and what is done are cut; which stage it is, and since when, can be read on any.
        table = Table(box=None, pad_edge=False, expand=True)
        for name, ratio in (("worker", None), ("repository", 2), ("stage", None), ("", 3), ("since", None)):
            right = "right" if name == "since" else "left"
            table.add_column(name, justify=right, no_wrap=True, overflow="ellipsis", ratio=ratio)  # type: ignore[arg-type]
        now = time.monotonic()
        # A terminal has so many lines; what the hundredth worker does is not news.
        for one in doing[:16]:
            cells = (one.worker, one.slug, one.stage, one.text, duration(now - one.since))
            table.add_row(*(Text(printable(cell)) for cell in cells))
        if len(doing) > 16:
            table.add_row("", Text(f"and {len(doing) - 16} more"))
        return Group(table, Text(self.summary(), style="bold"))


def outcome(row: Row) -> str:
    """What became of a repository, in a phrase."""
    state = row["state"]
    if state in ("failed", "refused"):
        return f"{state} at {row['stage']}: {row['reason']}"
    if state == "unchanged":
        return "nothing to change"
    files = f"{plain_count_text(row['changed'], 'file')} changed" if row["changed"] else "nothing changed"
    if state == "rewritten":
        if row["verification"] == PARTLY:
            return f"rewritten, {files}; verified in part: {row['why']}"
        if row["verification"] == "not judged":
            return f"rewritten, {files}; not verified: {row['why']}"
        why = f": {NO_SCRIPT}" if row["entries"] == "[]" else ""
        return f"rewritten, {files}; not verified{why}"
    if state == "verified":
        return f"verified, {files}: {row['why']}"
    if state == "published":
        standing = standing_of(row)
        return f"published: {standing.text()}" if standing is not None else state
    return str(state)


def duration(seconds: float) -> str:
    """A time for people: ``3 m 20 s``."""
    seconds = max(0, round(seconds))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} m {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} m"
