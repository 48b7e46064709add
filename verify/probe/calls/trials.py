"""Copies of this process that try something: what they tell by a pipe, and their end."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import stat
import time


def forked() -> tuple[int, int]:
    """Fork: in the copy 0 and where to write to, else the copy's number and where to read what it tells."""
    reading, writing = os.pipe()
    pid = os.fork()
    os.close(writing if pid else reading)
    if pid:
        return pid, reading
    _read_apart()
    return 0, writing


def _read_apart() -> None:
    """In a copy: what it reads of files that are open is not to be gone for the process that goes on."""
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return
    for number in numbers:
        try:
            if not stat.S_ISREG(os.fstat(number).st_mode) or fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE:
                continue
            own = os.open(f"/proc/self/fd/{number}", os.O_RDONLY | os.O_CLOEXEC)
            os.lseek(own, os.lseek(number, 0, os.SEEK_CUR), os.SEEK_SET)
            os.dup2(own, number, inheritable=os.get_inheritable(number))
            os.close(own)
        except OSError:
            continue


def heard(pid: int, reading: int, until: float) -> bytes:
    """What the copy ``pid`` tells until it ends, or until a time of ``time.monotonic``, when it is ended."""
    text = b""
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        piece = os.read(reading, 1 << 16) if ready else b""
        if not piece:
            break
        text += piece
    os.close(reading)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return text


def unheard() -> None:
    """In a copy: neither read nor print."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)


def limit(seconds: float) -> None:
    """In a copy: end after ``seconds`` of work. One that waits for somebody is ended by its parent."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
