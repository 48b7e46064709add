"""Which process this is, and small things that all parts of a session ask for."""

from __future__ import annotations

import os
import platform
import sys
from types import FrameType, TracebackType
from typing import Any

#: Tells a process who started it: ``main-PID`` or ``rank-PID`` of the nearest watched process that is one.
_MARK = "CODEMOD_PROBE_MAIN"


def role() -> tuple[bool, str]:
    """(whether to write from the start, the process's name)."""
    mark = os.environ.get(_MARK, "")
    role, _, pid = mark.partition("-")
    rank = os.environ.get("RANK", "")
    if mark and pid != str(os.getpid()):
        worker = "--multiprocessing-fork" in getattr(sys, "argv", [])
        if role != "main" or not rank.isdigit() or worker:
            return False, "child"
        role = "rank"
    elif not mark:
        role = "main"
    os.environ[_MARK] = f"{role}-{os.getpid()}"
    return True, "main" if role == "main" else f"rank-{rank}"


def seeded_as(process: str, words: Any) -> str:
    """Whose seeds a ``process`` is given again: children, all of one name, go by the ``words`` that started them."""
    return f"{process} {list(words or [])}" if process == "child" else process


def about(shapes: bool, torch_seen: bool) -> dict[str, Any]:
    """The fields of the start event that tell of this process; ``shapes``: it has tensors without memory."""
    torch = sys.modules.get("torch")
    found: dict[str, Any] = {"python": platform.python_version(), "torch": None, "device": "cpu", "cuda": None}
    found.update(threads=None, argv=list(getattr(sys, "argv", [])))
    if torch is not None and torch_seen:
        found.update(torch=str(torch.__version__), cuda=torch.version.cuda, threads=torch.get_num_threads())
        if shapes:
            found.update(device="shapes alone")
        elif torch.cuda.is_initialized():
            found.update(device=torch.cuda.get_device_name())
    return found


def version(text: str) -> tuple[int, int]:
    """The first two numbers of a version."""
    major, _, rest = text.partition(".")
    return int(major), int(rest.partition(".")[0])


def outward(frame: FrameType | None) -> list[FrameType]:
    """``frame`` and those around it."""
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def frames_of(at: TracebackType | None) -> list[FrameType]:
    """The frames of a traceback, the innermost first."""
    frames = []
    while at is not None:
        frames.append(at.tb_frame)
        at = at.tb_next
    return frames[::-1]
