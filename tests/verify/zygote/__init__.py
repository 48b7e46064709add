"""Runs many short scripts for the price of one import of torch."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import pytest

from verify import applying, verification
from verify.isolation import Ending, Execution, Limits, View


class ForkedPlace:
    """A place for trusted scripts that end by themselves: a copy of the tree, and processes forked from one with torch.

    Everything but isolation is as in real runs: the same probe by the same sitecustomize, real `__main__`s, real files.
    """

    def __init__(self, root: Path, mode: str = "auto") -> None:
        self.original = root.resolve()
        self._folder = tempfile.TemporaryDirectory()
        self.root = Path(self._folder.name).resolve() / "tree"

    def seen(self, path: str | Path) -> Path:
        """The path in the copy."""
        real = Path(path).resolve()
        return self.root / real.relative_to(self.original) if real.is_relative_to(self.original) else real

    def execute(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        changed: Mapping[str, bytes],
        environment: Mapping[str, str],
        shared: Path,
        limits: Limits,
        view: View,
        warm: object = None,
    ) -> Execution:
        """Run the script, which sees everything; the limits are not kept."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.original, self.root)
        for path, data in changed.items():
            (self.root / path).write_bytes(data)
        output = shared / "output"
        started = time.monotonic()
        status = fork(command, self.seen(cwd), environment, output, output)
        seconds = time.monotonic() - started
        return Execution(Ending.EXITED, status, seconds, 0, output.read_text(errors="replace"), "forked")

    def cancel(self) -> None:
        """Programs end by themselves."""

    def close(self) -> None:
        """Remove the copy."""
        self._folder.cleanup()


def warm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands run programs in a :class:`ForkedPlace`: for tests of what is judged, not of how it is run."""
    forked = functools.partial(verification.verify, place=ForkedPlace)
    for module in (verification, applying):
        monkeypatch.setattr(module, "verify", forked)


def fork(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str], output: Path, errors: Path, seconds: int = 0
) -> int:
    """Run ``command``, a Python and its script, in a process forked from one with torch; its exit status.

    ``output`` and ``errors`` are the files that its two streams go to, or one file for both. After ``seconds`` a signal
    ends it; 0 lets it run.
    """
    request = {
        "argv": list(command),
        "cwd": str(cwd),
        "environment": dict(environment),
        "streams": [str(output), str(errors)],
        "seconds": seconds,
    }
    return _ask(json.dumps(request))


def _ask(request: str) -> int:
    asking, answering = _server()
    asking.write(request + "\n")
    asking.flush()
    return int(answering.readline())


@functools.cache
def _server() -> tuple[IO[str], IO[str]]:
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("server.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    atexit.register(server.kill)
    return server.stdin, server.stdout
