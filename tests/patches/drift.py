"""A tree, a bundle made for it, and what became of the tree since."""

from __future__ import annotations

from pathlib import Path

from codemods.checking.check import check
from codemods.patches.bundle import dump, load
from codemods.patches.fitting import fit
from codemods.patches.results import PatchResult
from codemods.rewriting.apply import apply
from codemods.rewriting.result import ApplyResult
from codemods.source.options import Options
from codemods.source.targets import read_targets

SCRIPT = '''\
"""Trains."""

import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def validate(batches):
    model.eval()
    right = 0
    for x, y in batches:
        right += ((model(x) > 0) == y).sum().item()
    return right


def train(batches):
    total = 0
    for x, y in batches:
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        total += loss
    return total / len(batches)


data = [(torch.randn(2, 4), torch.ones(2, 1)) for _ in range(3)]
for epoch in range(2):
    print(epoch, train(data))
    print(validate(data))
'''


def applied(text: str, path: str = "train.py", **options: object) -> ApplyResult:
    """A dry run over the one file of that text, which is written to the working directory."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, newline="")
    return apply(read_targets([path]).sources, options=Options(**options), dry_run=True)  # type: ignore[arg-type]


def recorded(text: str = SCRIPT, **options: object) -> bytes:
    """The bundle for the one file of that text."""
    return dump(applied(text, **options), options=Options(**options))  # type: ignore[arg-type]


def fitted(bundle: bytes, now: str | bytes | None = None, *, dry_run: bool = False) -> PatchResult:
    """``bundle`` on ``train.py`` of the text ``now``."""
    if now is not None:
        Path("train.py").write_bytes(now if isinstance(now, bytes) else now.encode())
    return fit(load(bundle), dry_run=dry_run)


def states(result: PatchResult) -> list[str]:
    return [hunk.state.value for hunk in result.hunks]


def rules(path: str = "train.py") -> list[str]:
    """The rules of what is found in a file now."""
    found = check(read_targets([path]).sources, options=Options())
    return [one.finding.rule for one in found.findings]


def now(path: str = "train.py") -> str:
    return Path(path).read_bytes().decode()
