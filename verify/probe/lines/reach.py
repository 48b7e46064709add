"""Tells which of the watched lines ran, each when it runs for the first time.

Python 3.12 has events for this that cost nothing once a place has been seen. Before, there is only the trace function,
which every call in the process pays for; it goes away as soon as all lines have been seen, and at once when the script
sets a trace function of its own. What torch.compile has taken into a graph neither sees; there its translator tells.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

from ..guarding import compiling, hooks
from ..guarding.guard import Write
from .parts import Parts, Watch
from .places import lines_of
from .returned import Returned, returns
from .sites import Tree


class Reach:
    """Watches ``groups`` of lines, [path relative to the tree, number]; of a group, the first that runs is enough.

    Writes ``reached`` events, and notes. The lines ``also`` are told of too, and nobody waits for them. ``parts`` of
    lines (see parts.py) are waited for where lines are, and the values of functions ``returned`` by the way.
    """

    def __init__(
        self,
        groups: list[list[list[Any]]],
        tree: Tree,
        write: Write,
        also: Iterable[list[Any]] = (),
        parts: Iterable[list[Any]] = (),
        returned: Returned | None = None,
    ) -> None:
        self.parts = Parts(parts, tree, write)
        self.returned = returned or Returned((), tree, lambda *_: None)
        self._waits = bool(groups)
        #: Whether a line of a group has run.
        self.begun = False
        self._tree = tree
        self._write = write
        self._groups: list[set[tuple[str, int]]] = [{(path, line) for path, line in group} for group in groups if group]
        self._come: set[str] = set()
        self._also: set[tuple[str, int]] = {(path, line) for path, line in also}
        self._missing: dict[str, set[int]] = {}
        self._count()
        self._method: Any = None

    @property
    def waiting(self) -> bool:
        """Whether there are groups of which no line has run yet, or parts that have not, in files that were come to.

        More steps of a loop do not load another file.
        """
        if any(path in self._come for group in self._groups for path, _ in group):
            return True
        return self._waits and self.parts.waiting_in(self._come)

    def install(self) -> None:
        """Start watching."""
        if not self.watching:
            return
        monitoring = getattr(sys, "monitoring", None)
        # Instructions are followed in one way by all versions.
        events = monitoring is not None and not self.parts.waiting
        self._method = _Monitoring(self, monitoring) if events else _Tracing(self)
        self._method.install()
        compiling.when_taken(self._taken)

    def again(self, lines: Iterable[tuple[str, int]]) -> list[Any]:
        """Watch ``lines`` as if none had run; the list gets those that do from now on, and nothing else is told."""
        seen: list[Any] = []
        self._write = lambda event: seen.append((event.get("path"), event.get("line")))
        self._also.update(lines)
        self._count()
        if self._method is None:
            self.install()
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is not None:
            monitoring.restart_events()
        return seen

    def remove(self) -> None:
        """Stop watching; harmless at any time."""
        if self._method is not None:
            self._method.remove()
            self._method = None

    def wanted(self, code: CodeType) -> str | None:
        """The path of ``code`` if lines of it are still to be seen, else None."""
        path = self._tree.relative(code.co_filename)
        if path is None:
            return None
        self._come.add(path)
        if path not in self._missing:
            return None
        return path if self._missing[path] & lines_of(code) else None

    def saw(self, path: str, line: int) -> None:
        """``line`` of ``path`` runs now."""
        if line not in self._missing.get(path, ()):
            return
        groups = [group for group in self._groups if (path, line) not in group]
        self._also.discard((path, line))
        if len(groups) < len(self._groups):
            self.begun = True
            self._groups = groups
            self._count()
        else:
            self._missing[path].discard(line)
            if not self._missing[path]:
                del self._missing[path]
        self._write({"event": "reached", "path": path, "line": line})
        if not self.watching:
            self.remove()

    @property
    def watching(self) -> bool:
        """Whether anything is still to be seen."""
        return bool(self._missing) or self.parts.waiting or self.returned.waiting

    def _count(self) -> None:
        missing: dict[str, set[int]] = {}
        for path, line in self._also.union(*self._groups):
            missing.setdefault(path, set()).add(line)
        self._missing = missing

    def _taken(self, filename: str, line: int) -> None:
        path = self._tree.relative(filename)
        if path is not None:
            self.saw(path, line)

    def note(self, text: str) -> None:
        self._write({"event": "note", "text": text})


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
        monitoring.register_callback(tool, monitoring.events.PY_RETURN, self._return)
        monitoring.set_events(tool, monitoring.events.PY_START)

    def remove(self) -> None:
        if self._tool is None:
            return
        monitoring, tool = self._monitoring, self._tool
        self._tool = None
        monitoring.set_events(tool, monitoring.events.NO_EVENTS)
        monitoring.register_callback(tool, monitoring.events.PY_START, None)
        monitoring.register_callback(tool, monitoring.events.LINE, None)
        monitoring.register_callback(tool, monitoring.events.PY_RETURN, None)
        monitoring.free_tool_id(tool)

    def _start(self, code: CodeType, offset: int) -> Any:
        if self._tool is not None:
            events = self._monitoring.events
            wanted = events.LINE if self._reach.wanted(code) is not None else 0
            wanted |= events.PY_RETURN if self._reach.returned.wants(code) else 0
            if wanted:
                self._monitoring.set_local_events(self._tool, code, wanted)
        return self._monitoring.DISABLE

    def _return(self, code: CodeType, offset: int, value: Any) -> Any:
        if self._reach.returned.told(sys._getframe(1), value):
            return None
        if not self._reach.watching:
            self._reach.remove()
        return self._monitoring.DISABLE

    def _line(self, code: CodeType, line: int) -> Any:
        path = self._reach._tree.relative(code.co_filename)
        if path is not None:
            self._reach.saw(path, line)
        return self._monitoring.DISABLE


#: Packages whose import makes a million calls, none of them the user's.
_LARGE = ("torch", "torch._dynamo", "torchvision")


class _Tracing:
    """By ``sys.settrace``, before Python 3.12; not while large libraries are imported, which it would slow down."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._decided: dict[CodeType, bool] = {}
        self._twice = sys.version_info < (3, 12)
        self._gettrace = sys.gettrace
        self._settrace = sys.settrace
        self._on = False
        #: The threads that import such a library now.
        self._importing: list[int] = []

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
        for name in _LARGE:
            hooks.around_import(name, self._pause, self._resume)

    def _pause(self) -> None:
        thread = threading.get_ident()
        if thread in self._importing or (self._on and self._gettrace() == self._call):
            self._importing.append(thread)
            self._settrace(None)

    def _resume(self) -> None:
        thread = threading.get_ident()
        if thread in self._importing:
            self._importing.remove(thread)
            # One of them may import another, and whoever has seen all lines is not wanted back.
            if self._on and thread not in self._importing and self._gettrace() is None:
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
        if not self._on:
            return None
        plan = self._reach.parts.plan(code)
        if plan is not None:
            local: Any = self._within(self._reach.parts.watch(plan, frame), frame)
        else:
            local = self._line if wanted else None
        return self._until_return(local, frame) if self._reach.returned.wants(code) else local

    def _until_return(self, inner: Any, frame: FrameType) -> Callable[..., Any]:
        """The trace function of a frame of which the returned value is wanted; ``inner`` is what it has else."""

        def local(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
            nonlocal inner
            if inner is not None:
                inner = inner(frame, event, argument)
            if inner is None:
                frame.f_trace_lines = frame.f_trace_opcodes = False
            if event == "return" and self._on and returns(frame):
                self._reach.returned.told(frame, argument)
                if not self._reach.watching:
                    self._reach.remove()
            return local

        if inner is None:
            frame.f_trace_lines = False
        return local

    def _within(self, watch: Watch, frame: FrameType) -> Callable[..., Any]:
        """The trace function of a frame whose single instructions are watched."""
        if not self._twice:
            # Python 3.12 looks whether anybody wants instructions when a trace function is set, and only then.
            self._twice = True
            frame.f_trace_opcodes = True
            self._settrace(self._call)

        def local(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
            if self._on:
                watch.see(frame, event)
            return local if self._line(frame, event, argument) is not None else None

        return local

    def _line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if not self._on:
            return None
        if event == "line":
            path = self._reach._tree.relative(frame.f_code.co_filename)
            if path is not None:
                self._reach.saw(path, frame.f_lineno)
        return self._line
