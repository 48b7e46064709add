"""Repositories and campaigns for the tests of `codemod batch`."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

TRAIN = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
data = [(torch.randn(4, 8), torch.randn(4, 1)) for _ in range(8)]
for epoch in range(2):
    total = 0
    for x, y in data:
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        total += loss
    print(total / len(data))
"""
"""Two findings, both exact: surplus-retain-graph and attached-loss-total."""

CLEAN = "def add(a, b):\n    return a + b\n"

_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Someone",
    "GIT_AUTHOR_EMAIL": "someone@example.org",
    "GIT_COMMITTER_NAME": "Someone",
    "GIT_COMMITTER_EMAIL": "someone@example.org",
    "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
}


def git(folder: Path, *arguments: str, input: bytes | None = None) -> str:
    """What git prints; it has to work."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=_ENVIRONMENT, input=input, capture_output=True, check=True
    )
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def commit(folder: Path, files: Mapping[str, str | bytes]) -> str:
    """Commit ``files`` in the repository ``folder``; return the commit."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "--allow-empty", "-m", "work")
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A new repository with one commit of ``files``."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    commit(folder, files)
    return folder


def bare(folder: Path, source: Path) -> Path:
    """A bare repository with what ``source`` has, as a forge keeps it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(source), str(folder)], env=_ENVIRONMENT, check=True)
    return folder


def campaign_file(folder: Path, text: str = "", *, verify: bool = False, artifacts: str = '"patch", "json"') -> Path:
    """A campaign over the repositories below ``folder / 'repos'``, with more tables of ``text``."""
    file = folder / "campaign.toml"
    run = "steps = 6" if verify else "run = false"
    file.write_text(
        f'[campaign]\nname = "trial"\nwork = "work"\nartifacts = [{artifacts}]\n'
        f'[repositories]\nglobs = ["repos/*"]\n[verify]\n{run}\n'
        f'[commit]\nauthor = "A Person <person@example.org>"\n[limits]\njobs = 2\n{text}',
        encoding="utf-8",
    )
    return file


def tree_of(folder: Path, branch: str) -> str:
    """The id of a branch's tree."""
    return git(folder, "rev-parse", f"{branch}^{{tree}}")


def nested(levels: int) -> str:
    """A module that takes a while to be looked at."""
    return TRAIN + "".join(f"\ndef f{n}(x):\n    return f{n - 1}(x) if x else {n}\n" for n in range(1, levels))


class Held:
    """A source that keeps who clones it waiting until it is released: then it cannot be had.

    A campaign that names it is at work for as long as a test wants, however fast or busy the machine.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(120)
        self._connections: list[socket.socket] = []
        self.address = f"git://127.0.0.1:{self._socket.getsockname()[1]}/held"

    def hold(self) -> None:
        """Have those wait who clone it from now on; until then they are turned away."""
        self._socket.listen()

    def begun(self) -> None:
        """Wait until somebody has begun to clone it."""
        self._connections.append(self._socket.accept()[0])

    def release(self) -> None:
        """Turn away who waits, and whoever comes."""
        for one in (*self._connections, self._socket):
            one.close()
