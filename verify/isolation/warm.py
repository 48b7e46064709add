"""A process that has imported what takes long, from which launchers are forked: the caller's side."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

_FAREWELL = 5.0
#: How long it may take to be ready, in seconds.
_PATIENCE = 60.0


@dataclass(frozen=True)
class Start:
    """What is executed ahead of a run: ``command`` (an interpreter, and what its program is; its arguments may be
    others in the run), with a variable that tells its ``sitecustomize`` to import ``modules`` and wait. ``least`` of
    these are worth it; the others are left out, from the first on with which it cannot be forked from.

    The process is outside of any isolation: it refuses where a module could come from ``tree``. Of the environment of a
    run it gets all but ``own``. ``names`` are modules that the program may have of its own.
    """

    command: tuple[str, ...]
    modules: tuple[str, ...]
    least: tuple[str, ...]
    tree: str
    own: str
    names: frozenset[str]

    def with_modules(self, modules: Sequence[str]) -> Start:
        """The same with these modules, and the least that there must be."""
        return replace(self, modules=(*modules, *(each for each in self.least if each not in modules)))


#: The variable.
TOLD = "CODEMOD_WARM"
#: Its value for an interpreter that is only to show that it heeds it, by this status.
_WAITS_FOR, _WAITS = "?", 77
_LAUNCHER = Path(__file__).with_name("launcher")


class Unready(Exception):
    """There is no process to fork from; the text says why. ``first``: there is one with so many of the modules."""

    def __init__(self, why: str, first: int = 0) -> None:
        super().__init__(why)
        self.first = first


class Forked:
    """A launcher that somebody else's process forked, as much like :class:`subprocess.Popen` as its caller needs."""

    def __init__(self, pid: int, stdin: int, stdout: int) -> None:
        self._handle = os.pidfd_open(pid)
        self.stdin: IO[bytes] | None = os.fdopen(stdin, "wb", buffering=0)
        self.stdout: IO[bytes] | None = os.fdopen(stdout, "rb", buffering=0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; which status it had only its parent knows. Raises :class:`subprocess.TimeoutExpired`."""
        if not select.select([self._handle], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("launcher", timeout or 0.0)
        return -1

    def kill(self) -> None:
        """End it."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def __del__(self) -> None:
        os.close(self._handle)


class Warm:
    """A started process that waits; ``close`` ends it. ``imports`` are the names that its imports asked for, by their
    first parts: who has modules of these names would get others."""

    def __init__(self, start: Start, folder: Path, environment: Mapping[str, str]) -> None:
        """Start it in ``folder`` and wait until it is ready. Raises :class:`Unready`."""
        self._turn = threading.Lock()
        self.imports: frozenset[str] = frozenset()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Streams as a program has them: Python looks at what they are.
        self._silent, output, errors = self._pipes()
        told = {
            "control": theirs.fileno(),
            "launcher": str(_LAUNCHER),
            "modules": list(start.modules),
            "tree": start.tree,
        }
        try:
            # An interpreter that does not heed its environment would run the program, here, outside of any isolation.
            tried = subprocess.run(
                [start.command[0], "-c", ""], env={**environment, TOLD: _WAITS_FOR}, cwd=os.sep, timeout=_PATIENCE,
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, check=False,
            )  # fmt: skip
            if tried.returncode != _WAITS:
                raise OSError("it does not wait")
            self._process = subprocess.Popen(
                start.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env={**environment, TOLD: json.dumps(told)},
                cwd=folder,
                pass_fds=[theirs.fileno()],
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            ours.close()
            self._hush()
            raise Unready(str(error)) from None
        finally:
            os.close(output)
            os.close(errors)
            theirs.close()
        self._control = ours
        try:
            self._greet()
        except BaseException:
            self.close()
            raise

    def _pipes(self) -> tuple[list[int], int, int]:
        """The ends of two pipes from which nobody reads, and those to write to: what is printed there is counted."""
        (first, output), (second, errors) = os.pipe(), os.pipe()
        return [first, second], output, errors

    def _hush(self) -> None:
        for handle in self._silent:
            os.close(handle)
        self._silent = []

    def _greet(self) -> None:
        self._control.settimeout(_PATIENCE)
        try:
            said = json.loads(self._control.recv(1 << 16) or b"{}")
        except (OSError, ValueError):
            said = {}
        if said.get("refused", "it ended"):
            raise Unready(said.get("refused", "it ended"), said.get("first", 0))
        self.imports = frozenset(said["imports"])

    def fork(self, locks: Sequence[int], complaints: int) -> Forked | None:
        """Fork a launcher that keeps ``locks`` and complains to ``complaints``; None where that does not work."""
        asking, stdin = os.pipe()
        stdout, answering = os.pipe()
        try:
            with self._turn:
                socket.send_fds(self._control, [b"1"], [asking, answering, complaints, *locks])
                pid = int(self._control.recv(64))
                return Forked(pid, stdin, stdout)
        except (OSError, ValueError):
            for handle in (stdin, stdout):
                os.close(handle)
            return None
        finally:
            os.close(asking)
            os.close(answering)

    def close(self) -> None:
        """End it; launchers that it has forked end by themselves."""
        self._control.close()
        try:
            self._process.wait(_FAREWELL)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._hush()
