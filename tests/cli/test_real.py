"""The command line as a process, with the real engine and the real editor."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codemods.rules import rule_names

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """\
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
data = [(torch.randn(2, 3), torch.randn(2, 1))]


def validate(batches):
    total = 0
    for x, y in batches:
        total += ((model(x) - y) ** 2).mean().item()
    return total


for x, y in data:
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
print(validate(data))
"""


def codemod(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "codemods", *arguments],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_check_diff_apply_and_nothing_left(tmp_path: Path, line_end: str) -> None:
    original = SCRIPT.replace("\n", line_end).encode()
    (tmp_path / "train.py").write_bytes(original)
    checked = codemod(tmp_path, "check", ".", "--format", "json")
    assert checked.returncode == 1, checked.stderr
    (finding,) = json.loads(checked.stdout)["findings"]
    assert (finding["rule"], finding["line"], finding["fixable"]) == ("grad-in-evaluation", 8, True)
    assert finding["rule"] in rule_names()

    diff = codemod(tmp_path, "apply", ".", "--dry-run", "-q")
    assert (diff.returncode, diff.stderr) == (0, b"")
    assert (tmp_path / "train.py").read_bytes() == original
    applied = codemod(tmp_path, "apply", ".")
    assert applied.returncode == 0, applied.stderr
    mended = (tmp_path / "train.py").read_bytes()
    assert mended == original.replace(b"def validate", b"@torch.no_grad()" + line_end.encode() + b"def validate")
    if shutil.which("git"):
        (tmp_path / "train.py").write_bytes(original)
        subprocess.run(["git", "apply", "--whitespace=nowarn"], input=diff.stdout, cwd=tmp_path, check=True)
        assert (tmp_path / "train.py").read_bytes() == mended
    again = codemod(tmp_path, "apply", ".", "--dry-run", "--exit-code")
    assert (again.returncode, again.stdout) == (0, b"")


def test_a_baseline_a_selection_and_comments(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    update = ("check", ".", "--baseline", "b.json", "--update-baseline")
    assert codemod(tmp_path, *update).returncode == 0
    frozen = (tmp_path / "b.json").read_bytes()
    assert b'"function": "", "statement": "def validate(batches):"' in frozen
    assert codemod(tmp_path, "check", ".", "--baseline", "b.json").returncode == 0
    # What was not looked for is not gone.
    assert codemod(tmp_path, *update, "--select", "stored-graph").returncode == 0
    assert (tmp_path / "b.json").read_bytes() == frozen
    assert codemod(tmp_path, "check", ".", "--add-ignores").returncode == 0
    said = b"def validate(batches):  # codemod: ignore[grad-in-evaluation]\n"
    assert said in (tmp_path / "train.py").read_bytes()
    assert codemod(tmp_path, "check", ".", "--report-unused-ignores").returncode == 0
    gone = codemod(tmp_path, *update)
    assert gone.stderr == b"codemod: b.json: 0 in the baseline, 0 added, 1 dropped\n"
