"""A person at a real pseudo-terminal: waits for a prompt, presses a key."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
PROMPT = re.compile(rb"(?:\] |\n> )$")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Person:
    """``codemod`` with ``arguments`` in a terminal of ``columns`` and ``rows``; its output may go to ``out``."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        columns: int = 80,
        rows: int = 24,
        out: Path | None = None,
        **environ: str,
    ) -> None:
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
        env |= {"LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **environ}
        self.seen = b""
        self._mark = 0
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:  # pragma: no cover - the child
            os.chdir(folder)
            if out is not None:
                os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
            os.execve(sys.executable, [sys.executable, "-m", "codemods", *arguments], env)
        self.resize(columns, rows)

    def __enter__(self) -> Person:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self._terminal)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self) -> bool:
        """Read what there is; False at the end."""
        ready, _, _ = select.select([self._terminal], [], [], PATIENCE)
        assert ready, f"nothing came any more after: {self.seen[-500:]!r}"
        try:
            data = os.read(self._terminal, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def prompt(self) -> str:
        """Wait for a question and return what was shown since the last one, without colours."""
        while not PROMPT.search(self.seen, self._mark):
            assert self._read(), f"it ended after: {self.seen[-500:]!r}"
        return self._since()

    def wait_for(self, words: bytes) -> None:
        """Wait until ``words`` were shown."""
        while words not in self.seen:
            assert self._read(), f"it ended after: {self.seen[-500:]!r}"

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def answer(self, keys: str) -> str:
        """Wait for a question, press ``keys``, and return what was shown before."""
        shown = self.prompt()
        self.press(keys)
        return shown

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit status and what was shown since the last question."""
        while self._read():
            pass
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status), self._since()

    def _since(self) -> str:
        shown, self._mark = self.seen[self._mark :], len(self.seen)
        return COLOURS.sub("", shown.decode(errors="replace")).replace("\r\n", "\n")

    def cook(self) -> None:
        """Set the terminal as a shell does when a program has stopped."""
        modes = termios.tcgetattr(self._terminal)
        modes[3] |= termios.ICANON | termios.ECHO
        termios.tcsetattr(self._terminal, termios.TCSANOW, modes)

    def until_raw(self) -> None:
        """Wait until the program has asked for single keys again."""
        deadline = time.monotonic() + PATIENCE
        while termios.tcgetattr(self._terminal)[3] & termios.ICANON:
            assert time.monotonic() < deadline
            os.sched_yield()

    @property
    def settings(self) -> list[object]:
        """The terminal's modes."""
        return termios.tcgetattr(self._terminal)[:4]
