"""Tells which of the watched lines ran, each when it runs for the first time.

Python 3.12 has events for this that cost nothing once a place has been seen. Before, there is only the trace function,
which every call in the process pays for; it goes away as soon as all lines have been seen, and at once when the script
sets a trace function of its own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

from .guard import Write
from .sites import Tree


class Reach:
    """Watches ``groups`` of lines, [path relative to the tree, number]; of a group, the first that runs is enough.

    Writes ``reached`` events, and notes. The lines ``also`` are told of too, and nobody waits for them.
    """

    def __init__(self, groups: list[list[list[Any]]], tree: Tree, write: Write, also: Iterable[list[Any]] = ()) -> None:
        self._tree = tree
        self._write = write
        self._groups: list[set[tuple[str, int]]] = [{(path, line) for path, line in group} for group in groups if group]
        self._also: set[tuple[str, int]] = {(path, line) for path, line in also}
        self._missing: dict[str, set[int]] = {}
        self._count()
        self._method: Any = None

    @property
    def waiting(self) -> bool:
        """Whether there are groups of which no line has run yet."""
        return bool(self._groups)

    def install(self) -> None:
        """Start watching."""
        if not self._missing:
            return
        monitoring = getattr(sys, "monitoring", None)
        self._method = _Monitoring(self, monitoring) if monitoring is not None else _Tracing(self)
        self._method.install()

    def remove(self) -> None:
        """Stop watching; harmless at any time."""
        if self._method is not None:
            self._method.remove()
            self._method = None

    def wanted(self, code: CodeType) -> str | None:
        """The path of ``code`` if lines of it are still to be seen, else None."""
        path = self._tree.relative(code.co_filename)
        if path is None or path not in self._missing:
            return None
        return path if self._missing[path] & lines_of(code) else None

    def saw(self, path: str, line: int) -> None:
        """``line`` of ``path`` runs now."""
        if line not in self._missing.get(path, ()):
            return
        self._groups = [group for group in self._groups if (path, line) not in group]
        self._also.discard((path, line))
        self._count()
        self._write({"event": "reached", "path": path, "line": line})
        if not self._missing:
            self.remove()

    def _count(self) -> None:
        missing: dict[str, set[int]] = {}
        for path, line in self._also.union(*self._groups):
            missing.setdefault(path, set()).add(line)
        self._missing = missing

    def note(self, text: str) -> None:
        self._write({"event": "note", "text": text})


def lines_of(code: CodeType) -> set[int]:
    """The lines that ``code`` has instructions for, those of the functions inside it not included."""
    if hasattr(code, "co_lines"):
        return {line for _, _, line in code.co_lines() if line is not None}
    import dis

    return {line for _, line in dis.findlinestarts(code) if line is not None}


class _Monitoring:
    """By ``sys.monitoring``: the start of each code object once, lines only in those that are watched."""

    _TOOLS = (4, 3, 5, 1, 2, 0)

    def __init__(self, reach: Reach, monitoring: Any) -> None:
        self._reach = reach
        self._monitoring = monitoring
        self._tool: int | None = None

    def install(self) -> None:
        monitoring = self._monitoring
        for tool in self._TOOLS:
            if monitoring.get_tool(tool) is None:
                monitoring.use_tool_id(tool, "codemod verify")
                break
        else:
            self._reach.note("All tool slots of sys.monitoring are taken; lines that run cannot be seen.")
            return
        self._tool = tool
        monitoring.register_callback(tool, monitoring.events.PY_START, self._start)
        monitoring.register_callback(tool, monitoring.events.LINE, self._line)
        monitoring.set_events(tool, monitoring.events.PY_START)

    def remove(self) -> None:
        if self._tool is None:
            return
        monitoring, tool = self._monitoring, self._tool
        self._tool = None
        monitoring.set_events(tool, monitoring.events.NO_EVENTS)
        monitoring.register_callback(tool, monitoring.events.PY_START, None)
        monitoring.register_callback(tool, monitoring.events.LINE, None)
        monitoring.free_tool_id(tool)

    def _start(self, code: CodeType, offset: int) -> Any:
        if self._tool is not None and self._reach.wanted(code) is not None:
            self._monitoring.set_local_events(self._tool, code, self._monitoring.events.LINE)
        return self._monitoring.DISABLE

    def _line(self, code: CodeType, line: int) -> Any:
        path = self._reach._tree.relative(code.co_filename)
        if path is not None:
            self._reach.saw(path, line)
        return self._monitoring.DISABLE


class _Tracing:
    """By ``sys.settrace``, before Python 3.12."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._decided: dict[CodeType, bool] = {}
        self._gettrace = sys.gettrace
        self._settrace = sys.settrace
        self._on = False

    def install(self) -> None:
        if self._gettrace() is not None:
            self._reach.note("Another trace function (a debugger, coverage) runs; lines that run cannot be seen.")
            return
        self._on = True
        threading.settrace(self._call)
        # Scripts ask for a trace function to find out about a debugger, and then leave out their workers.
        sys.gettrace = self._shown
        sys.settrace = self._taken
        self._settrace(self._call)

    def remove(self) -> None:
        if not self._on:
            return
        self._on = False
        if self._gettrace() == self._call:
            self._settrace(None)
        if getattr(threading, "_trace_hook", None) == self._call:
            threading.settrace(None)
        if sys.gettrace == self._shown:
            sys.gettrace = self._gettrace
        if sys.settrace == self._taken:
            sys.settrace = self._settrace

    def _shown(self) -> Any:
        current = self._gettrace()
        return None if current == self._call else current

    def _taken(self, function: Any) -> None:
        if function == self._call:
            # threading, in a new thread.
            self._settrace(function)
        elif function is not None:
            self._reach.note("The script set a trace function of its own; lines that ran after that were not seen.")
            self.remove()
            self._settrace(function)
        # A script that takes "its" trace function away (debuggers do, around their own code) leaves ours.

    def _call(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        wanted = self._decided.get(code)
        if wanted is None:
            wanted = self._decided[code] = self._on and self._reach.wanted(code) is not None
        if not wanted or not self._on:
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if not self._on:
            return None
        if event == "line":
            path = self._reach._tree.relative(frame.f_code.co_filename)
            if path is not None:
                self._reach.saw(path, frame.f_lineno)
        return self._line
