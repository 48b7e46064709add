"""The settings for Helix that docs/editor.md shows, in Helix (which Debian has from release 13 on, as ``hx``)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.test_neovim import SCRIPT

ROOT = Path(__file__).resolve().parents[2]
HELIX = shutil.which("hx") or shutil.which("helix")
TMUX = shutil.which("tmux")
PATIENCE = 120.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(HELIX is None or TMUX is None, reason="no Helix, or no tmux to try it in"),
]


class Screen:
    """A terminal with ``command`` in it, typed into and read by tmux."""

    def __init__(self, folder: Path, command: list[str], env: dict[str, str]) -> None:
        self._tmux = [str(TMUX), "-f", os.devnull, "-S", str(folder / "tmux")]
        size = ["-x", "150", "-y", "40"]
        subprocess.run([*self._tmux, "new-session", "-d", *size, *command], cwd=folder, env=env, check=True)

    def text(self) -> str:
        return subprocess.run([*self._tmux, "capture-pane", "-p"], capture_output=True, text=True).stdout

    def press(self, *keys: str, until: str) -> str:
        """Press ``keys`` one by one, wait until the pattern ``until`` is shown, and return the screen."""
        for key in keys:
            subprocess.run([*self._tmux, "send-keys", key], check=True)
        deadline = time.monotonic() + PATIENCE
        while not re.search(until, self.text()):
            assert time.monotonic() < deadline, f"{until} never came:\n{self.text()}"
            time.sleep(0.1)
        return self.text()

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True)


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    page = (ROOT / "docs" / "editor.md").read_text(encoding="utf-8")
    settings = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]
    folders = {name: tmp_path / name for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "bin")}
    for folder in (*folders.values(), folders["XDG_CONFIG_HOME"] / "helix"):
        folder.mkdir()
    (folders["XDG_CONFIG_HOME"] / "helix" / "languages.toml").write_text(settings)
    program = folders["bin"] / "codemod"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m codemods "$@"\n')
    program.chmod(0o755)
    (tmp_path / "pyproject.toml").write_text("[tool.codemod]\n")
    (tmp_path / "train.py").write_text(SCRIPT)
    homes = {name: str(folder) for name, folder in folders.items() if name != "bin"}
    path = f"{folders['bin']}{os.pathsep}{os.environ['PATH']}"
    terminal = {"PYTHONPATH": str(ROOT), "PATH": path, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    shown = Screen(tmp_path, [str(HELIX), "train.py"], {**os.environ, **homes, **terminal})
    yield shown
    shown.close()


def test_helix_shows_and_mends(screen: Screen, tmp_path: Path) -> None:
    assert "import torch" in screen.press(until=r"\u25cf +11 ")
    listed = screen.press("Space", "d", until="surplus-retain-graph")
    assert "attached-loss-total" in listed
    screen.press("Enter", until=r"NOR +train\.py .* 9:5")
    told = screen.press("Space", "k", until="Promise: exact")
    assert "no later backward uses it" in told
    # Keys that come right behind an escape are read with it as one.
    screen.press("Escape", until=r"12 +print\(total / 4\)")
    offered = screen.press("Space", "a", until="codemod: drop `retain_graph=True`")
    assert "codemod: ignore surplus-retain-graph here" in offered
    assert "codemod: fix all that is safe in this file (2)" in offered
    screen.press("Enter", until=r"9 +loss\.backward\(\)")
    screen.press(":", "w", "Enter", until="written")
    assert (tmp_path / "train.py").read_text() == SCRIPT.replace("retain_graph=True", "")
