"""From the launcher to the user's program: an init for its process namespace, and the last steps before exec."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from . import kernel, landlock, seccomp

#: Threads of all processes of a run together; a fork bomb ends here where the kernel can count them for us.
MOST_THREADS = 8000

_STANDARD = 3  # stdin, stdout, stderr
_OWN_PID_MAX = (6, 14)  # the release of Linux since which every process namespace has a pid_max of its own


@dataclass(frozen=True)
class Program:
    """What to execute, where, with which environment; how large a file it may write (bytes).

    ``others`` are the threads that the same user runs already. ``rules`` are those that Landlock has to see to; None
    where namespaces do. ``warm``: nothing is executed, see :class:`Begins`.
    """

    command: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    largest_file: int
    others: int
    rules: landlock.Rules | None
    warm: bool = False


class Begins(BaseException):
    """Raised in the child, which has become the program: ``command`` with ``environment``, to go on where this is
    caught."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.command, self.environment = program.command, program.environment


def start(program: Program | None, *, own_processes: bool, guard_proc: bool, output: int, report: int) -> int:
    """Fork, and return the child's process id; the child executes the program, or nothing where there is none.

    ``own_processes``: in a new process namespace, whose init the child is then; ``guard_proc``: with the kernel's
    settings read-only in it, which root needs. ``output`` and ``report`` are the ends
    of pipes to write to: what the program prints, and a JSON object a line: ``ready``, ``failed`` (why it could not be
    executed, with ``proc`` where no process namespace can be had) and ``status`` (how it ended, as from waitpid).
    """
    if own_processes:
        kernel.unshare(kernel.CLONE_NEWPID, "process namespace")
    pid = os.fork()
    if pid:
        return pid
    # A child must never come back into the launcher's code, whatever happens to it, unless it is the program by now.
    begins: Begins | None = None
    try:
        _be_child(program, own_processes, guard_proc, output, report)
    except Begins as raised:
        begins = raised
    except OSError as error:
        _tell(report, {"failed": reason(error)})
    except BaseException as error:
        _tell(report, {"failed": f"{type(error).__name__}: {error}"})
    finally:
        if begins is None:
            os._exit(127)
    assert begins is not None
    raise begins


def _be_child(program: Program | None, own_processes: bool, guard_proc: bool, output: int, report: int) -> NoReturn:
    _detach(output, report)
    if sys.platform == "linux":
        kernel.die_with_parent(signal.SIGKILL)
    if own_processes:
        try:
            _mount_proc(guard_proc)
        except OSError as error:
            _tell(report, {"failed": reason(error), "proc": True})
            os._exit(127)
    _tell(report, {"ready": True})
    if program is None:
        os._exit(0)
    if not own_processes:
        _execute(program, report)
    first = os.fork()
    if first == 0:
        _execute(program, report)
    _be_init(first, report)


def _detach(output: int, report: int) -> None:
    """Keep nothing of the launcher's open but the pipes: its end must show, and its locks must not outlive it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for name in os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"):
        if int(name) >= _STANDARD and int(name) != report:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _mount_proc(guard: bool) -> None:
    """Show this namespace's processes in /proc, to this process and its children alone."""
    kernel.unshare(kernel.CLONE_NEWNS, "mount namespace")
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    if _release() >= _OWN_PID_MAX:
        with open("/proc/sys/kernel/pid_max", "w", encoding="ascii") as file:
            file.write(str(MOST_THREADS))
    if guard:
        kernel.guard_settings()


def _release() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])


def _be_init(first: int, report: int) -> NoReturn:
    """Reap orphans until the program ends; leaving then takes everything in the namespace along."""
    for number in (0, 1, 2):
        os.close(number)
    while True:
        pid, status = os.wait()
        if pid == first:
            _tell(report, {"status": status})
            os._exit(0)


def _execute(program: Program, report: int) -> NoReturn:
    os.setsid()
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _limit(resource.RLIMIT_FSIZE, program.largest_file)
    _limit(resource.RLIMIT_CORE, 0)
    # It counts what this user runs: since Linux 5.14 in this user namespace alone, before everywhere.
    _limit(resource.RLIMIT_NPROC, MOST_THREADS + program.others)
    if sys.platform == "linux":
        kernel.give_up_privileges()
        kernel.forget_keys()
        landlock.restrict(program.rules)
        seccomp.restrict(alone=program.rules is None)
    os.chdir(program.folder)
    if program.warm:
        kernel.give_up_as_by_exec()
        os.close(report)
        raise Begins(program)
    os.set_inheritable(report, False)
    try:
        os.execvpe(program.command[0], list(program.command), dict(program.environment))
    except OSError as error:
        raise OSError(error.errno, "exec", program.command[0]) from None


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (allowed, allowed))


def _tell(report: int, event: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        os.write(report, json.dumps(event).encode() + b"\n")


def reason(error: OSError) -> str:
    what = f": {os.fsdecode(error.filename)}" if isinstance(error.filename, (str, bytes)) else ""
    return f"{os.strerror(error.errno) if error.errno else error}{what}"
