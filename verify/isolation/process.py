"""The launcher process as its caller has it."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from verify.isolation.environment import passed
from verify.isolation.warm import Forked, Warm

#: What an interpreter executes to be one.
LAUNCHER = Path(__file__).with_name("launcher")
# Beyond a run's own limit: to copy a tree before it, and to remove what it wrote afterwards.
_PATIENCE = 300.0
_FAREWELL = 30.0


class LauncherFailed(Exception):
    """The launcher gave no answer; the text says what it said instead."""


class Launched:
    """A started launcher; as a context manager it is gone in the end, and so is all that it started.

    ``locks`` are handles that it keeps open, so that folders count as used for as long as it lives. ``within`` is the
    command that starts it elsewhere, with its own streams; that gets the environment as it is. With ``warm`` it is
    forked from that.
    """

    def __init__(self, locks: Sequence[int], within: Sequence[str] = (), warm: Warm | None = None) -> None:
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  closed in __exit__
        forked = warm.fork(locks, self._complaints.fileno()) if warm is not None else None
        self._process: subprocess.Popen[bytes] | Forked = forked or subprocess.Popen(
            within or [sys.executable, "-I", "-S", str(LAUNCHER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            # What runs next to it can read the environment that a process was started with.
            env=None if within else passed(os.environ, {}),
            start_new_session=True,
            pass_fds=list(locks),
            bufsize=0,
        )

    def __enter__(self) -> Launched:
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        assert process.stdout is not None
        self.end()
        try:
            process.wait(_FAREWELL)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            process.stdout.close()
            self._complaints.close()

    def end(self) -> None:
        """Have the launcher end the program, clean up and go; whoever waits for the answer gets it."""
        assert self._process.stdin is not None
        # The end of its input tells it.
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def ask(self, request: str, seconds: float) -> bytes:
        """Send a request whose program may take ``seconds``, return the answer. Raises LauncherFailed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        data = request.encode() + b"\n"
        # Closed means that it was ended meanwhile.
        with contextlib.suppress(BrokenPipeError, ValueError):
            while data:
                data = data[self._process.stdin.write(data) :]
        end = time.monotonic() + seconds + _PATIENCE
        handle = self._process.stdout.fileno()
        parts: list[bytes] = []
        while True:
            ready, _, _ = select.select([handle], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self._process.kill()
                raise LauncherFailed("the launcher did not answer in time")
            part = os.read(handle, 1 << 20)
            if not part:
                break
            parts.append(part)
        if not parts:
            raise LauncherFailed(self._complaint())
        return b"".join(parts)

    def _complaint(self) -> str:
        status = self._process.wait()
        self._complaints.seek(0)
        lines = self._complaints.read().decode("utf-8", errors="replace").strip().splitlines()
        return f"the launcher ended with status {status}" + (f": {lines[-1]}" if lines else "")
