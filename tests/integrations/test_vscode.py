"""The extension for VS Code: built from npm's packages, tried through the editor's own protocol library, packed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from codemods import __version__

ROOT = Path(__file__).resolve().parents[2]
NPM = shutil.which("npm")


@pytest.mark.slow
@pytest.mark.skipif(NPM is None, reason="no npm to build the extension with")
def test_extension_is_built_tried_and_packed(tmp_path: Path) -> None:
    kept = shutil.ignore_patterns("node_modules", "dist")
    folder = Path(shutil.copytree(ROOT / "editors" / "vscode", tmp_path / "vscode", ignore=kept))
    command = json.dumps([sys.executable, "-m", "codemods", "lsp"])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CODEMOD_COMMAND": command}
    for words in (["ci", "--no-audit", "--no-fund"], ["test"], ["run", "package"]):
        done = subprocess.run([NPM or "npm", *words], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(folder / "dist" / "codemod.vsix") as packed:
        names = set(packed.namelist())
        told = json.loads(packed.read("extension/package.json"))
    assert {name for name in names if name.startswith("extension/")} == {
        "extension/package.json", "extension/readme.md", "extension/dist/extension.js",
    }  # fmt: skip
    assert told["main"] == "./dist/extension.js"


def test_extension_has_the_version_of_the_package() -> None:
    told = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text(encoding="utf-8"))
    assert __version__.startswith(told["version"])
