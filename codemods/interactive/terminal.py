"""The terminal itself: single keys where it has them, lines where not, and everything shown on standard error."""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from codemods.interactive.dialogue import EditorError
from codemods.interactive.editor import edited
from codemods.interactive.items import Item, Texts
from codemods.rewriting.changes import Hunk
from codemods.source.diffs import printable

if TYPE_CHECKING:
    from rich.text import Text

    from codemods.interactive.views import View

END = "\x04"
_ESCAPE = "\x1b"
_TURN = 0.2
"""Seconds until Python looks for signals again while no key is pressed."""


class NoTerminal(Exception):
    """There is nobody to ask: standard input or standard error is no terminal."""


class Terminal:
    """A :class:`~codemods.interactive.dialogue.Screen` on standard input and standard error."""

    def __init__(self) -> None:
        """Take hold of the terminal; raises :class:`NoTerminal` if there is none at either end."""
        self._sink = sys.stderr
        try:
            self._input = sys.stdin.fileno()
            self._output = self._sink.fileno()
        except (OSError, ValueError, AttributeError):
            raise NoTerminal from None
        if not (os.isatty(self._input) and os.isatty(self._output)):
            raise NoTerminal
        self._colour = False
        # What calls itself dumb is often an editor's window, which hands over whole lines whatever it is told.
        self._raw = os.environ.get("TERM", "dumb") != "dumb" and _has_keys(self._input)
        self._view: View | None = None
        self._texts: Texts | None = None
        self._pending = b""

    def opened(self, texts: Texts, *, colour: bool) -> Terminal:
        """Return this terminal, ready to show changes of ``texts``."""
        from codemods.interactive.views import View

        self._colour = colour
        self._texts = texts
        self._view = View(texts, colour=colour, encoding=self._sink.encoding or "ascii")
        return self

    @property
    def size(self) -> tuple[int, int]:
        """Its columns and rows at this moment."""
        try:
            columns, rows = os.get_terminal_size(self._output)
        except OSError:
            columns = rows = 0
        return columns or 80, rows or 24

    def show(self, item: Item, number: int, total: int) -> None:
        """Show a change."""
        assert self._view is not None
        columns, _ = self.size
        # The last column stays free: some terminals go on to the next line once it is taken.
        self._print(["", *self._rendered(self._view.change(item, number, total, columns - 1))])

    def say(self, text: str) -> None:
        """Show a sentence or two."""
        self._print(self._folded(text))

    def page(self, text: str) -> None:
        """Show a long text, a screenful at a time."""
        lines = self._folded(text)
        while lines:
            _, rows = self.size
            shown, lines = lines[: max(1, rows - 1)], lines[max(1, rows - 1) :]
            self._print(shown)
            if lines and self.key("more?", "Yn").lower() in ("n", "q", ""):
                break

    def key(self, question: str, keys: str) -> str:
        """Ask for one of ``keys``; Enter means the capital one, the end of the input gives the empty text."""
        # A narrow terminal has no room for many with commas between them.
        asked = f"{question} [{keys if len(keys) > 10 else ','.join(keys)}] "
        if not self._raw:
            self._write(asked)
            line = self._read_line()
            return "" if line is None else (line.strip() or "\n")[:1]
        with _keys(self._input):
            # Asked only now: Ctrl-D is a key here, and something else to a terminal that hands over lines.
            self._write(asked)
            key = self._read_key()
        shown = "" if key in ("\n", END) or not key.isprintable() else key
        self._print([shown])
        return "" if key == END else key

    def line(self, question: str) -> str | None:
        """Ask for a line."""
        self._write(f"{question}\n> ")
        return self._read_line()

    def edit(self, item: Item, proposed: Mapping[Hunk, str]) -> Mapping[Hunk, str]:
        """Open the user's editor."""
        if not proposed:
            raise EditorError("There are no lines to edit.")
        assert self._texts is not None
        return edited(proposed, self._texts.start)

    def _write(self, text: str) -> None:
        self._sink.write(text)
        self._sink.flush()

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._sink.write(line + "\n")
        self._sink.flush()

    def _folded(self, text: str) -> list[str]:
        from rich.text import Text

        from codemods.interactive.views import fold

        columns, _ = self.size
        encoding = self._sink.encoding or "ascii"
        lines = []
        for line in text.rstrip("\n").split("\n"):
            shown = printable(line).encode(encoding, "backslashreplace").decode(encoding)
            indent = " " * min(len(shown) - len(shown.lstrip()), columns // 2)
            lines += [piece.plain for piece in fold(Text(shown), columns - 1, indent)]
        return lines

    def _rendered(self, lines: Iterable[Text]) -> Iterator[str]:
        from rich.console import Console

        if not self._colour:
            yield from (line.plain for line in lines)
            return
        console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=10_000)
        for line in lines:
            with console.capture() as capture:
                console.print(line, end="", soft_wrap=True)
            yield capture.get()

    def _read_line(self) -> str | None:
        """Read a line as the terminal edits it; None at the end of the input."""
        while b"\n" not in self._pending:
            read = _read(self._input, 4096)
            if not read:
                line, self._pending = self._pending, b""
                return line.decode(errors="replace") if line else None
            self._pending += read
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode(errors="replace")

    def _read_key(self) -> str:
        data = self._next_byte()
        # A Ctrl-D pressed ahead of the question arrives as a null.
        if data in (b"", b"\0"):
            return END
        if data == _ESCAPE.encode():
            # An arrow or a function key: the rest of its sequence is no answer to anything.
            while select.select([self._input], [], [], 0.05)[0] and _read(self._input, 16):
                pass
            return _ESCAPE
        while not _complete(data):
            more = self._next_byte()
            if not more:
                break
            data += more
        key = data.decode(errors="replace")
        return "\n" if key == "\r" else key

    def _next_byte(self) -> bytes:
        if self._pending:
            byte, self._pending = self._pending[:1], self._pending[1:]
            return byte
        # In turns: a signal that arrives between Python's look for one and a read would wait for the next key.
        while not select.select([self._input], [], [], _TURN)[0]:
            pass
        return _read(self._input, 1)


def _complete(data: bytes) -> bool:
    first = data[0]
    wanted = 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    return len(data) >= wanted


def _read(descriptor: int, size: int) -> bytes:
    try:
        return os.read(descriptor, size)
    except OSError:
        # Linux says "input/output error" where a terminal has been closed; for us both are its end.
        return b""


def _has_keys(descriptor: int) -> bool:
    try:
        import termios

        termios.tcgetattr(descriptor)
    except (ImportError, OSError):
        return False
    except Exception as error:
        if type(error).__module__ == "termios":
            return False
        raise
    return True


@contextlib.contextmanager
def _keys(descriptor: int) -> Iterator[None]:
    """Have the terminal hand over keys as they are pressed, unseen; signals stay what they are."""
    import termios

    before = termios.tcgetattr(descriptor)
    wanted = termios.tcgetattr(descriptor)
    wanted[3] &= ~(termios.ICANON | termios.ECHO)
    wanted[6][termios.VMIN], wanted[6][termios.VTIME] = 1, 0

    def again(*_: object) -> None:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, wanted)

    # Brought back to the foreground, the terminal is as the shell left it.
    resumed = signal.signal(signal.SIGCONT, again)
    try:
        again()
        yield
    finally:
        signal.signal(signal.SIGCONT, resumed)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
