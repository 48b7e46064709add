"""The record of one process: JSON lines as records.py describes them."""

from __future__ import annotations

import _thread
import os
import sys
from collections.abc import Callable
from typing import Any

from ..values.copies import Copy, settle

#: What shows that a process trains. The others (workers that load data, tools that the script starts) stay silent.
_WORTH_A_FILE = ("backward", "step", "caught")
#: What they have to tell all the same, in the record of the process that they were forked from.
_OF_ALL = ("reached", "part")
_MOST_WAITING = 1000
#: What may be held back while a small model trains, and how much of it: several are written in a third of the time.
_HELD = ("backward", "output")
_MOST_HELD = 24


class Recorder:
    """Writes events of this process into ``folder``, each line at once; with ``hold`` those of small models later.

    A process that the user did not name (``eager`` is False) writes nothing until it calls backward; what came before
    waits. ``about`` returns the fields of the start event, ``above`` is the recorder of the process that this one was
    forked from.
    """

    def __init__(
        self,
        folder: str,
        eager: bool,
        name: str,
        about: Callable[[], dict[str, Any]],
        above: Recorder | None = None,
        *,
        hold: bool = False,
    ) -> None:
        self.eager = eager
        self._hold = hold
        self._small = False
        self._held: list[dict[str, Any]] = []
        self._folder = folder
        self._name = name
        self._about = about
        self.pid = os.getpid()
        self._path = ""
        self._opened: tuple[int, tuple[int, int]] | None = None
        self._waiting: list[dict[str, Any]] = []
        self._encode: Callable[[Any], str] | None = None
        self._lock = _thread.allocate_lock()
        self._lines = 0
        self._above: str = "" if above is None else above._path or above._above

    def below(self, name: str) -> Recorder:
        """The recorder of a process that this one was forked into."""
        return Recorder(self._folder, False, name, self._about, self, hold=self._hold)

    @property
    def opened(self) -> bool:
        return bool(self._path)

    def write(self, event: dict[str, Any]) -> None:
        """Append ``event``. Raises OSError where the folder cannot be written."""
        if os.getpid() != self.pid:
            return
        with self._lock:
            if not self._path:
                if not self.eager and event["event"] not in _WORTH_A_FILE:
                    if event["event"] in _OF_ALL and self._above:
                        self._tell_above(event)
                    if len(self._waiting) < _MOST_WAITING:
                        self._waiting.append(event)
                    return
                self._open()
            if self._hold and self._waits(event):
                self._held.append(event)
                if len(self._held) >= _MOST_HELD:
                    self._append(self._held)
                    self._held = []
            else:
                self._append([*self._held, event])
                self._held = []

    def _waits(self, event: dict[str, Any]) -> bool:
        """Whether ``event`` may be held back: what was copied of a step, and what comes between two such steps."""
        if event["event"] != "step":
            return self._small and event["event"] in _HELD
        small = isinstance(event["params"], Copy)
        if small and not self._small:
            self._append([*self._held, {"event": "held"}])
            self._held = []
        self._small = small
        return small

    def _tell_above(self, event: dict[str, Any]) -> None:
        """Add a line to the record of the other process, where several may write: all at once, at the end."""
        descriptor = os.open(self._above, os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0))
        try:
            os.write(descriptor, self._line({**event, "n": 0}))
        finally:
            os.close(descriptor)

    def open(self) -> None:
        """Make the file now, with the start event alone."""
        with self._lock:
            if not self._path:
                self._open()

    def restart(self) -> None:
        """Write the start event again: what it says of the device is known only once CUDA is in use."""
        if self.opened:
            self.write(self._start())

    def _open(self) -> None:
        self._path = os.path.join(self._folder, f"{self.process()}-{self.pid}.jsonl")
        self._append([self._start(), *self._waiting])
        self._waiting = []

    def _start(self) -> dict[str, Any]:
        event = {"event": "start", "version": 1, "pid": self.pid, "process": self.process()}
        event.update(self._about())
        return event

    def process(self) -> str:
        """The name of this process."""
        # Asked for only now: a spawned worker learns its name after sitecustomize has run.
        multiprocessing = sys.modules.get("multiprocessing.process")
        if multiprocessing is not None and multiprocessing.parent_process() is not None:
            return _file_name(multiprocessing.current_process().name)
        return self._name

    def _append(self, events: list[dict[str, Any]]) -> None:
        lines = []
        for event in settle(events):
            self._lines += 1
            lines.append(self._line({**event, "n": self._lines}))
        os.write(self._descriptor(), b"".join(lines))

    def _line(self, event: dict[str, Any]) -> bytes:
        if self._encode is None:
            # Imported late: most processes that a script starts write nothing.
            import json

            self._encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
        return (self._encode(event) + "\n").encode("utf-8", "backslashreplace")

    def _descriptor(self) -> int:
        """The descriptor, or a new one: a script that closes all (daemons do) may have a file of its own there."""
        if self._opened is not None:
            number, place = self._opened
            try:
                if _place(number) == place:
                    return number
            except OSError:
                pass
        low = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        number = _high(low)
        self._opened = number, _place(number)
        return number


def _place(descriptor: int) -> tuple[int, int]:
    state = os.fstat(descriptor)
    return state.st_dev, state.st_ino


def _high(descriptor: int) -> int:
    """The same file under a high descriptor, which no script uses by number, where the system allows one."""
    try:
        import fcntl

        number = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 200)
    except (ImportError, AttributeError, OSError):
        return descriptor
    os.close(descriptor)
    return number


def _file_name(process: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in process)[:80]
