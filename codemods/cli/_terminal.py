"""Streams, colours, exit statuses and the progress bar."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from codemods.cli import TROUBLE as TROUBLE
from codemods.cli._ours import titled
from codemods.terms.errors import UserError

if TYPE_CHECKING:
    from rich.progress import Progress

    from codemods.patches.results import PatchResult
    from codemods.rewriting.result import ApplyResult

FINE = 0
FOUND = 1


class BadValue(UserError):
    """An option has an invalid value; ``spellings`` are all its names, the message uses the first."""

    def __init__(self, spellings: Sequence[str], value: object, wanted: str) -> None:
        super().__init__(f"{spellings[0]} {value}: {wanted}")
        self._spellings = spellings

    def as_typed(self, arguments: Sequence[str]) -> str:
        """Return the sentence with the name of the option that stands in the command line ``arguments``."""
        names = (word.partition("=")[0] for word in reversed(arguments))
        typed = next((name for name in names if name in self._spellings), self._spellings[0])
        return typed + str(self).removeprefix(self._spellings[0])


def require_choice(option: str, given: str, known: Sequence[str]) -> str:
    """Return ``given``, what ``option`` was set to; raises :class:`UserError` if it is none of ``known``."""
    if given not in known:
        raise UserError(f"{option} {given}: must be one of {', '.join(known)}")
    return given


def complain(message: str) -> None:
    """Say ``message`` on standard error, as a sentence of ours."""
    from codemods.source.diffs import printable_lines
    from codemods.source.logs import quoted

    print(quoted("codemod: " + printable_lines(message.rstrip("\n"))), file=sys.stderr)


def wants_colour(stream: TextIO | None, choice: str) -> bool:
    """Tell whether to colour what goes to ``stream``, by ``choice`` (auto, always or never)."""
    if choice != "auto":
        return choice == "always"
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and is_watched(stream)


def is_watched(stream: TextIO | None) -> bool:
    """Tell whether a person looks at ``stream``; Python has None for one that was closed when it began."""
    return stream is not None and stream.isatty()


def emit(data: str | bytes, output: Path | None, *, stream: TextIO | None = None, report: bool = True) -> None:
    """Write ``data`` to the file ``output``, else to ``stream``, by default standard output; text as UTF-8 in a file.

    In a ``report`` that goes to a stream no server finds a command; bytes go there as they are.
    Raises :class:`UserError` if it cannot be written; a file is then as it was before.
    """
    if output is not None:
        from codemods.source.writing import write_output

        write_output(output, data)
        return
    target = stream or sys.stdout
    if target is None:
        raise UserError("standard output is closed")
    try:
        if isinstance(data, bytes):
            target.flush()
            target.buffer.write(data)
            target.buffer.flush()
        else:
            from codemods.source.logs import quoted

            target.write(quoted(data) if report else data)
            target.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise given_up(target, error) from None


def given_up(stream: TextIO, error: OSError) -> UserError:
    """Write no more to ``stream``, and return what to say of it."""
    from codemods.source.errors import os_reason

    # What is left in the buffer would fail once more, at the end of the process.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    name = "error" if stream is sys.stderr else "output"
    return UserError(f"cannot write standard {name}: {os_reason(error)}")


def emit_diff(result: ApplyResult | PatchResult, output: Path | None, *, colour: bool) -> None:
    """Write the diff of ``result`` to the file ``output``, else to standard output; in a file it has a title of ours.

    Raises :class:`UserError` if it cannot be written.
    """
    diff = result.coloured_diff() if colour else result.diff()
    if output is not None:
        diff = titled(diff if isinstance(diff, bytes) else diff.encode("utf-8", "backslashreplace"))
    emit(diff, output)


def read_stdin() -> bytes:
    """Return what standard input holds; raises :class:`UserError` where there is none."""
    if sys.stdin is None:
        raise UserError("standard input is closed")
    return sys.stdin.buffer.read()


class ProgressBar:
    """A bar on standard error for a job that takes more than ``patience`` seconds, if a person is watching."""

    def __init__(self, *, quiet: bool, patience: float = 1.0) -> None:
        self._watched = not quiet and is_watched(sys.stderr)
        self._due = time.monotonic() + patience
        self._shown = 0.0
        self._bar: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` files are finished."""
        now = time.monotonic()
        if not self._watched or now < self._due or (now - self._shown < 0.1 and done < total):
            return
        self._shown = now
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            # Without its refreshing thread: worker processes are forked beside it.
            self._bar = Progress(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._bar.start()
            self._bar.add_task("reading the code", total=total)
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)
        self._bar.refresh()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
