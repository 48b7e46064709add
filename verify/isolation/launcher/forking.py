"""Launchers by fork: a process that has imported what takes long becomes one for each request, and the program too.

The caller sends what a launcher has open (its three streams, and locks to keep) with a message of one byte, and is told
the process. All that a launcher does is the same but for the last step: the program is not executed, but goes on here.
"""

from __future__ import annotations

import os
import signal
import socket
import traceback
from collections.abc import Mapping, Sequence

from . import main
from .child import Begins

_HANDLES = 32
_STREAMS = 3


def serve(control: int, said: bytes) -> tuple[Sequence[str], Mapping[str, str]]:
    """Say ``said`` and fork until ``control``, a socket, is at its end; returns in programs alone: their command and
    environment."""
    os.setsid()
    place = socket.socket(fileno=control)
    place.sendall(said)
    while True:
        asked, handles, _, _ = socket.recv_fds(place, 1, _HANDLES)
        _forget_ended()
        if not asked:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            break
        for handle in handles:
            os.close(handle)
        place.send(str(pid).encode())
    # A handle that somebody else gets must not be closed with an object of ours.
    os.close(place.detach())
    try:
        os.setsid()
        for number, handle in enumerate(handles[:_STREAMS]):
            os.dup2(handle, number)
            os.close(handle)
        status = main.main(warm=True)
    except Begins as begins:
        _be_fresh()
        return begins.command, begins.environment
    except SystemExit:
        status = 0
    except BaseException:
        traceback.print_exc()
        status = 1
    os._exit(status)


def _forget_ended() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        pass


def _be_fresh() -> None:
    """Be as to signals what Python is at its start; the launcher has set all to what the system does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
