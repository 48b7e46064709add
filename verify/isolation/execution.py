"""What a run may take, and how it ended."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass, field
from pathlib import Path

#: Files that limit the memory of a container, in both versions of control groups.
_MEMORY_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def machine_memory() -> int:
    """Bytes of memory of this machine, or of the container that this process runs in where that has less."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _MEMORY_FILES:
        try:
            text = path.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            sizes.append(int(text))
    return min(sizes)


@dataclass(frozen=True)
class Limits:
    """What one run may take before it is ended.

    ``seconds`` of wall-clock time; ``memory`` in bytes, resident, of all its processes together (None for half of the
    machine's; pages that processes share count once); ``disk`` in bytes that it may write; ``processes`` at a time;
    ``network``: whether it keeps the network. Without, it is cut off where the system allows that; localhost works all
    the same.
    """

    seconds: float
    memory: int | None = None
    disk: int = 2 << 30
    processes: int = 2000
    network: bool = False

    @property
    def memory_bytes(self) -> int:
        """The memory limit in bytes."""
        return machine_memory() // 2 if self.memory is None else self.memory


class Ending(enum.Enum):
    """How a run ended: by itself, at one of the limits, by a signal that was not ours, or not even started."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    DISK = "disk"
    KILLED = "killed"
    NOT_STARTED = "not started"


@dataclass(frozen=True)
class Execution:
    """One run of one command.

    ``status`` is the exit status, negative for a signal, None where a limit ended it. ``seconds`` is wall-clock time
    from the start of the program, ``peak`` the largest sum of resident memory of its processes in bytes (pages that
    several of them share count for each). ``output`` is the tail of what it printed, at most 64 KiB of standard output
    and error together. ``sandbox`` says to people how it was isolated, ``notes`` what else they should know.
    ``warm``: it began as a fork.
    """

    ending: Ending
    status: int | None = None
    seconds: float = 0.0
    peak: int = 0
    output: str = ""
    sandbox: str = ""
    notes: tuple[str, ...] = field(default=())
    warm: bool = False
