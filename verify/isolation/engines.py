"""The program that runs containers, docker or podman, and the words of its command line."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from verify.isolation.execution import Limits

#: They are looked for in this order.
PROGRAMS = ("docker", "podman")
_ANSWER_SECONDS = 60.0
_FETCH_SECONDS = 3600.0
#: Of the launcher and of the container itself, beside what the program may take.
_SPARE_MEMORY = 256 << 20
_SPARE_PROCESSES = 16


class NoContainers(Exception):
    """No container can be had here: there is no program for it, it does not answer, or there is no such image."""


@dataclass(frozen=True)
class Bind:
    """A file or folder of this machine that a container sees at the same path."""

    path: Path
    writable: bool = False

    def word(self) -> str:
        """It as the value of ``--mount``."""
        fields = ["type=bind", f"source={self.path}", f"target={self.path}", *([] if self.writable else ["readonly"])]
        text = io.StringIO()
        # A path may hold a comma.
        csv.writer(text, lineterminator="").writerow(fields)
        return text.getvalue()


@dataclass(frozen=True)
class Engine:
    """A container program that answers: ``program`` is its path; ``podman`` or docker; ``rootless``: as no root."""

    program: str
    podman: bool = False
    rootless: bool = False

    @property
    def name(self) -> str:
        """What people call it."""
        return "podman" if self.podman else "docker"

    def identity(self, image: str) -> str:
        """The digest of ``image``, which names other contents than another one does; empty if it is not here."""
        done = self._ask("image", "inspect", "--format", "{{.Id}}", image)
        return "" if done.returncode else done.stdout.strip()

    def fetch(self, image: str) -> None:
        """Have ``image`` on this machine; nothing is asked of the network where it is. Raises NoContainers."""
        if self.identity(image):
            return
        done = self._ask("pull", "--quiet", image, seconds=_FETCH_SECONDS)
        if done.returncode:
            raise NoContainers(f"{self.name} cannot fetch the image {image}: {_said(done)}")

    def ask(self, image: str, python: str, question: str, seconds: float) -> subprocess.CompletedProcess[str]:
        """Have the interpreter ``python`` of ``image`` answer, with nothing of this machine in its container.

        Raises subprocess.TimeoutExpired.
        """
        limits = Limits(seconds)
        return self._ask(*self.words(image, [python, "-c", question], limits, [])[1:], seconds=seconds)

    def words(
        self, image: str, command: Sequence[str], limits: Limits, binds: Sequence[Bind], *, devices: bool = False
    ) -> list[str]:
        """The command line that runs ``command`` in a new container of ``image``, with its standard streams.

        Only ``binds`` of this machine are in it. It is removed when it ends. ``devices``: with the machine's GPUs.
        """
        memory = limits.memory_bytes + _SPARE_MEMORY
        words = [self.program, "run", "--rm", "--interactive", "--pull", "never", "--log-driver", "none"]
        words += [] if limits.network else ["--network", "none"]
        # The same in every run, as programs print it.
        words += ["--hostname", "codemod"]
        words += ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
        # Labels of SELinux would hide the folders; the other way is to give those of the user other labels.
        words += ["--security-opt", "label=disable"]
        words += ["--memory", str(memory), "--memory-swap", str(memory), "--shm-size", str(limits.memory_bytes)]
        words += ["--pids-limit", str(limits.processes + _SPARE_PROCESSES)]
        words += ["--tmpfs", f"/tmp:rw,mode=1777,size={limits.disk}", *self._user()]
        if devices:
            words += ["--device", "nvidia.com/gpu=all"] if self.podman else ["--gpus", "all"]
        for bind in binds:
            words += ["--mount", bind.word()]
        return [*words, "--workdir", "/", "--entrypoint", command[0], image, *command[1:]]

    def _user(self) -> Iterator[str]:
        """Who the program is in its container: who it is that started it, so that files are theirs."""
        if self.rootless and not self.podman:
            # Its root is the user outside.
            return
        if self.rootless:
            yield from ("--userns", "keep-id")
        yield from ("--user", f"{os.getuid()}:{os.getgid()}")

    def _ask(self, *words: str, seconds: float = _ANSWER_SECONDS) -> subprocess.CompletedProcess[str]:
        return _asked([self.program, *words], seconds)


def find() -> Engine:
    """The first container program on PATH that answers. Raises :class:`NoContainers`, with what each said."""
    refused = []
    for name in PROGRAMS:
        program = shutil.which(name)
        if program is None:
            continue
        try:
            return _answering(program)
        except NoContainers as error:
            refused.append(f"{name} does not answer: {error}")
    raise NoContainers("; ".join(refused) or "neither docker nor podman is installed")


def _answering(program: str) -> Engine:
    try:
        # Some call podman docker.
        if "podman" in _asked([program, "--version"], _ANSWER_SECONDS).stdout:
            return Engine(program, podman=True, rootless=os.getuid() != 0)
        done = _asked([program, "info", "--format", "{{.ServerVersion}} {{json .SecurityOptions}}"], _ANSWER_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoContainers(str(error)) from None
    if done.returncode or not done.stdout.strip().partition(" ")[0]:
        raise NoContainers(_said(done))
    return Engine(program, rootless="rootless" in done.stdout)


def _asked(words: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        cwd=os.sep,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def _said(done: subprocess.CompletedProcess[str]) -> str:
    text = " ".join(done.stderr.split())
    return text[:300] or f"status {done.returncode}"
