"""What the script prints, line by line: numbers that no loss and no parameter shows."""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import Any

from ..guarding.guard import Part, Write

#: So many lines with digits are kept of a stream, and so many characters of each.
_MOST_LINES = 2000
_LONGEST = 2000
_PLACE = re.compile(r'\s+File ".*", line \d+')


class Prints:
    """Reads along what goes to standard output and error, and writes ``printed`` events, one a line.

    Of the lines without digits those on standard output are told, as a stream of their own, ``words``.
    """

    def __init__(self, write: Write, part: Part) -> None:
        self._write = write
        self._part = part

    def install(self) -> None:
        """Call at the start of the process; a stream that the script puts in their place is not read."""
        for name in ("stdout", "stderr"):
            self._watch(name, getattr(sys, name, None))
        self._watch_descriptors()

    def _watch_descriptors(self) -> None:
        """Read along what goes past the streams, too."""
        original, part = os.write, self._part
        lines = {1: _Line("descriptor 1", self._write), 2: _Line("descriptor 2", self._write)}
        process = os.getpid()

        @functools.wraps(original)
        def write(descriptor: int, data: Any, /) -> int:
            result = original(descriptor, data)
            if descriptor in lines and part.on and os.getpid() == process:
                with part:
                    lines[descriptor].add(bytes(data).decode("utf-8", "replace"))
            return result

        os.write = write

    def _watch(self, name: str, stream: Any) -> None:
        original = getattr(stream, "write", None)
        if original is None:
            return
        line = _Line(name, self._write)
        part = self._part

        def write(text: str) -> Any:
            # First what the script asked for: what it raises is the script's.
            result = original(text)
            if part.on:
                with part:
                    line.add(text)
            return result

        try:
            stream.write = write
        except AttributeError:
            return


class _Line:
    """The line that is being printed."""

    def __init__(self, stream: str, write: Write) -> None:
        self._stream = stream
        self._write = write
        self._text = ""
        self._count = 0
        self._place = False

    def add(self, text: str) -> None:
        if not isinstance(text, str) or self._count > _MOST_LINES:
            return
        if _writer() == "warnings":
            # They name lines, which edits shift.
            return
        *lines, rest = (self._text + text).replace("\r", "\n").split("\n")
        self._text = rest[-_LONGEST:]
        for each in lines:
            if self._of_traceback(each):
                continue
            if any(character.isdigit() for character in each) or "nan" in each or "inf" in each:
                stream = self._stream
            elif self._stream == "stdout" and any(character.isalpha() for character in each):
                stream = "words"
            else:
                continue
            self._count += 1
            kept = self._count <= _MOST_LINES
            self._write({"event": "printed", "stream": stream, "text": each[:_LONGEST] if kept else None})
            if not kept:
                return

    def _of_traceback(self, line: str) -> bool:
        """Whether ``line`` is one of a traceback that names a place, or shows the code there: edits change both."""
        place = _PLACE.match(line)
        shown = place is None and self._place and line.startswith("    ")
        self._place = place is not None or shown
        return self._place


def _writer() -> str:
    """The module that writes to the stream; empty where it is no Python code, as where an interpreter ends."""
    try:
        return str(sys._getframe(3).f_globals.get("__name__"))
    except ValueError:
        return ""
