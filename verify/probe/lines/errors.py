"""What went wrong: kinds of exceptions, the user's own line, and what of a traceback people need."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from .knobs import plain
from .sites import OWN, Tree

_FREED = ("backward through the graph a second time", "saved intermediate values of the graph are freed")
_INPLACE = ("modified by an inplace operation", "modified inplace", "used in an in-place operation")
_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED")
_MISSING = ("Dataset not found or corrupted",)
#: Frames of libraries that are shown below the user's innermost one.
_LIBRARY_FRAMES = 5
_LONGEST = 4000
_NOT_FOUND = re.compile(r"\S+ not found\.$")


def kind(error: BaseException) -> str:
    """``freed``, ``inplace``, ``memory``, ``missing`` or ``other``; a wrapped error counts as what it wraps."""
    for each in _chain(error):
        found = _kind(each)
        if found != "other":
            return found
    return "other"


def _kind(error: BaseException) -> str:
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "memory"
    if isinstance(error, (ModuleNotFoundError, FileNotFoundError, NotADirectoryError)) or _variable(error):
        return "missing"
    message = str(error)
    if isinstance(error, RuntimeError) or type(error).__module__.startswith("torch"):
        for texts, name in ((_FREED, "freed"), (_INPLACE, "inplace"), (_MEMORY, "memory"), (_MISSING, "missing")):
            if any(text in message for text in texts):
                return name
    return "other"


def _variable(error: BaseException) -> bool:
    """Whether ``os.environ`` raised it, for a variable that is not there."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if not isinstance(error, KeyError) or last is None or len(error.args) != 1:
        return False
    return last.tb_frame.f_globals.get("__name__") == "os"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    while error is not None and not any(error is each for each in seen):
        seen.append(error)
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def trouble(error: BaseException) -> dict[str, Any]:
    """Type, message and kind of ``error`` as records.py has them."""
    try:
        message = str(error)
    except Exception:
        # Exceptions of the user's own making can fail at this.
        message = ""
    return {"type": type(error).__name__, "message": message[:_LONGEST], "kind": kind(error)}


def missing(error: BaseException) -> str | None:
    """The path, module or variable of the environment that is not there, or None."""
    for each in _chain(error):
        if isinstance(each, ModuleNotFoundError) and each.name:
            return str(each.name)
        if _variable(each):
            return str(each.args[0])
        if isinstance(each, OSError) and _kind(each) == "missing" and each.filename is not None:
            name = each.filename
            return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
        if isinstance(each, FileNotFoundError) and _NOT_FOUND.match(str(each)):
            # NumPy's own, which has the name in its message alone.
            return str(each)[: -len(" not found.")]
    return None


def uncaught(error: BaseException, at: TracebackType | None, tree: Tree) -> dict[str, Any]:
    """The error event for an exception that nobody caught."""
    event = {"event": "error", "site": tree.traceback_site(at), "traceback": text(error, at, tree)}
    event.update(trouble(error))
    event["missing"] = missing(error) if event["kind"] == "missing" else None
    return event


def text(error: BaseException, at: TracebackType | None, tree: Tree) -> str:
    """The traceback as Python prints it, less the frames of libraries between and far below the user's."""
    # Ours stand between the user's where the probe hands a call on.
    frames = [frame for frame in traceback.extract_tb(at) if not os.path.realpath(frame.filename).startswith(OWN)]
    users = [i for i in range(len(frames)) if tree.relative(frames[i].filename) is not None]
    last = users[-1] if users else -1
    wanted = set(users) | set(range(max(last + 1, len(frames) - _LIBRARY_FRAMES), len(frames)))
    lines = ["Traceback (most recent call last):\n"]
    skipped = 0
    for i in range(len(frames)):
        if i not in wanted:
            skipped += 1
            continue
        if skipped:
            lines.append(f"  [{skipped} frames of libraries]\n")
            skipped = 0
        lines.extend(map(plain, traceback.format_list([frames[i]])))
    lines.extend(traceback.format_exception_only(type(error), error))
    return "".join(lines)[-5 * _LONGEST :]
