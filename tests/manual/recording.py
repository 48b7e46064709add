"""The recording in the README: commands run for real on a small script, as a picture of a terminal.

``python -m tests.manual.recording docs/recording.svg`` makes it anew; it needs torch.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SCRIPT = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()
loader = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(10)]

for epoch in range(3):
    total_loss = 0
    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        total_loss += loss
    print(total_loss / len(loader))
"""
COMMANDS = (
    ("codemod", "check", "--format", "full", "--color", "always"),
    ("codemod", "verify", "train.py", "--steps", "10", "--color", "always"),
    ("codemod", "apply", "--color", "always"),
)
#: What is said for the recording alone, and not typed by anybody.
_UNSAID = (" --format full", " --color always")
COLUMNS = 104
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def record(commands: Sequence[Sequence[str]] = COMMANDS) -> str:
    """Return the picture, as SVG, of ``commands`` run one after the other in a folder with :data:`SCRIPT`.

    It names no font of the network. Raises :class:`RuntimeError` where a command ends with an error of its own.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    with tempfile.TemporaryDirectory() as folder, console.file:
        Path(folder, "train.py").write_text(SCRIPT)
        for command in commands:
            typed = " ".join(command)
            for words in _UNSAID:
                typed = typed.replace(words, "")
            console.print(Text(f"$ {typed}", style="bold"))
            console.print(Text.from_ansi(_said(command, folder)))
            console.print()
        return _FONT.sub("", console.export_svg(title="codemod", unique_id="codemod")).rstrip() + "\n"


def _said(command: Sequence[str], folder: str) -> str:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "codemods", *command[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root), "COLUMNS": str(COLUMNS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode > 1:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}")
    return done.stdout.replace(folder, ".").rstrip()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(record(), encoding="utf-8")
