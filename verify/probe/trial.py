"""Tries calls in a process of its own, so that those that fail leave nothing behind."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Sequence

#: The best of those that did not raise is tried again by itself, because those before it may have helped; so often.
_AGAIN = 3
#: How long it is waited for, in proportion: the machine may be busy.
_WALL = 4


def best(count: int, attempt: Callable[[int], int], enough: int, silence: Callable[[], None], seconds: float) -> int:
    """The number, below ``count``, of the first call ``attempt(number)`` that scores most without an error; -1: none.

    A score of ``enough`` ends the search; it takes ``seconds`` of the processor at most. ``silence`` is called in the
    child process, which prints nothing.
    """
    until = time.monotonic() + _WALL * seconds
    failed: set[int] = set()
    for _ in range(_AGAIN):
        numbers = [number for number in range(count) if number not in failed]
        scores = _scores(numbers, attempt, enough, silence, seconds, until)
        if not scores:
            return -1
        found = max(scores, key=lambda number: (scores[number], -number))
        if found == numbers[0] or found in _scores([found], attempt, enough, silence, seconds, until):
            return found
        failed.add(found)
    return -1


def _scores(
    numbers: Sequence[int],
    attempt: Callable[[int], int],
    enough: int,
    silence: Callable[[], None],
    seconds: float,
    until: float,
) -> dict[int, int]:
    if until <= time.monotonic() or not hasattr(os, "fork"):
        return {}
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        _child(numbers, attempt, enough, silence, writing, seconds)
    os.close(writing)
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
    lines = text.decode().split("\n")[:-1]
    return {int(number): int(score) for number, score in (line.split() for line in lines)}


def _child(
    numbers: Sequence[int],
    attempt: Callable[[int], int],
    enough: int,
    silence: Callable[[], None],
    writing: int,
    seconds: float,
) -> None:
    try:
        silence()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        # A call that never ends is ended here, one that waits for somebody by the parent.
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        for number in numbers:
            try:
                score = attempt(number)
            except BaseException:
                continue
            os.write(writing, f"{number} {score}\n".encode())
            if score >= enough:
                break
    finally:
        os._exit(0)
