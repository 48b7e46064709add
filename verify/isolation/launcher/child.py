"""From the launcher to the user's program: an init for its process namespace, and the last steps before exec."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import re
import resource
import signal
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from . import kernel, landlock

#: Threads of all processes of a run together; a fork bomb ends here where the kernel can count them for us.
MOST_THREADS = 8000

_STANDARD = 3  # stdin, stdout, stderr
_OWN_PID_MAX = (6, 14)  # the release of Linux since which every process namespace has a pid_max of its own


@dataclass(frozen=True)
class Program:
    """What to execute, where, with which environment; how large a file it may write (bytes).

    ``others`` are the threads that the same user runs already. ``rules`` are those that Landlock has to see to; None
    where namespaces do.
    """

    command: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    largest_file: int
    others: int
    rules: landlock.Rules | None


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
    # A child must never come back into the launcher's code, whatever happens to it.
    try:
        _be_child(program, own_processes, guard_proc, output, report)
    except OSError as error:
        _tell(report, {"failed": reason(error)})
    except BaseException as error:
        _tell(report, {"failed": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(127)


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
        _restrict(alone=program.rules is None)
    os.chdir(program.folder)
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


#: By machine: what the kernel calls its instructions, and the numbers of socket, socketpair and seccomp there.
_MACHINES = {"x86_64": (0xC000003E, (41, 53), 317), "aarch64": (0xC00000B7, (198, 199), 277)}
#: The numbers of shmget, shmat, semget and msgget: memory, locks and messages by keys that programs share.
_SHARED = {"x86_64": (29, 30, 64, 68), "aarch64": (194, 196, 190, 186)}

#: The numbers of prlimit64 and setpriority, which reach all processes of a user.
_OTHERS = {"x86_64": (302, 141), "aarch64": (261, 140)}

#: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK and AF_PACKET, of which namespaces have their own; AF_ALG only computes.
_FAMILIES = (1, 2, 10, 16, 17, 38)

#: The calls of io_uring: what is asked of it makes sockets too, and passes by all filters.
_IO_URING = (425, 426, 427)

#: From here on x86-64 has a second number for each call.
_X32 = 0x40000000

_SET_FILTER = 1
_WITHOUT_MITIGATIONS = 4
_RETURN_ALLOW, _RETURN_ERROR = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _NOT_BELOW, _RETURN = 0x20, 0x15, 0x35, 0x06
#: Where a filter finds the number of a call, the machine, and the halves of its arguments.
_NUMBER, _MACHINE, _FIRST, _THIRD = 0, 4, 16, (32, 36)


def _restrict(*, alone: bool) -> bool:
    """From here on this process and its children make no sockets but of the usual families, and no ``io_uring``.

    Unless it is ``alone`` in namespaces of its own, it uses no memory by keys (System V's), which programs share, sets
    no limits of processes that it names by their number (the kernel would end them), and the priority of single ones
    only. Programs of 32 bits, whose calls have other numbers, do not run any more. Returns whether the kernel does so.
    The caller must have given up gaining privileges.
    """
    name = os.uname().machine
    known = _MACHINES.get(name)
    if known is None:
        return False
    machine, sockets, number = known
    if alone:
        instructions = _filter(machine, sockets, _IO_URING, ())
    else:
        instructions = _filter(machine, sockets, (*_IO_URING, *_SHARED[name]), _OTHERS[name])
    code = ctypes.create_string_buffer(instructions, len(instructions))
    # struct sock_fprog: how many instructions, and where they are
    program = struct.pack("HP", len(instructions) // 8, ctypes.addressof(code))
    arguments = map(ctypes.c_long, (number, _SET_FILTER, _WITHOUT_MITIGATIONS))
    return bool(kernel.libc().syscall(*arguments, program) == 0)


def _filter(machine: int, sockets: tuple[int, ...], closed: tuple[int, ...], others: tuple[int, ...]) -> bytes:
    # Code, value, where to go if it holds, where if not; the next one where nothing is said
    body: list[tuple[int, int, str, str]] = [
        (_LOAD, _MACHINE, "", ""),
        (_EQUAL, machine, "", "call"),
        (_LOAD, _NUMBER, "", ""),
        (_NOT_BELOW, _X32, "call", ""),
        *((_EQUAL, number, "call", "") for number in closed),
        *((_EQUAL, number, place, "") for number, place in zip(others, ("limit", "priority"), strict=False)),
        *((_EQUAL, number, "made", "") for number in sockets[:-1]),
        (_EQUAL, sockets[-1], "made", "allow"),
    ]
    places = {"made": len(body)}
    body += [
        (_LOAD, _FIRST, "", ""),
        *((_EQUAL, family, "allow", "") for family in _FAMILIES[:-1]),
        (_EQUAL, _FAMILIES[-1], "allow", "family"),
    ]
    # Its own limits it names by 0, and who sets none only asks.
    places["limit"] = len(body)
    body += [
        (_LOAD, _FIRST, "", ""),
        (_EQUAL, 0, "allow", ""),
        (_LOAD, _THIRD[0], "", ""),
        (_EQUAL, 0, "", "rights"),
        (_LOAD, _THIRD[1], "", ""),
        (_EQUAL, 0, "allow", "rights"),
    ]
    # 0 is a single process; else it is a group, or all of a user.
    places["priority"] = len(body)
    body += [(_LOAD, _FIRST, "", ""), (_EQUAL, 0, "allow", "rights")]
    errors = {"family": errno.EAFNOSUPPORT, "call": errno.ENOSYS, "rights": errno.EPERM}
    ends = {**{name: _RETURN_ERROR | error for name, error in errors.items()}, "allow": _RETURN_ALLOW}
    places.update({name: len(body) + place for place, name in enumerate(ends)})
    lines = [
        (code, *(places[to] - at - 1 if to else 0 for to in (then, other)), value)
        for at, (code, value, then, other) in enumerate(body)
    ]
    lines += [(_RETURN, 0, 0, value) for value in ends.values()]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
