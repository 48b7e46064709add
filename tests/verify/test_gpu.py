"""What only a GPU can show: its memory counted, a leak that runs out of it, and the same numbers twice."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.commands import codemod

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

LEAK = dedent(
    """\
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(256, 4096), nn.ReLU(), nn.Linear(4096, 1)).cuda()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    total = 0
    for step in range(200):
        x, y = torch.randn(512, 256, device="cuda"), torch.randn(512, 1, device="cuda")
        loss = F.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        total += loss
    print(float(total))
    """
)


@pytest.fixture(autouse=True)
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project on a machine with a GPU."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(LEAK)
    monkeypatch.chdir(tmp_path)


def entry(*arguments: str) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    ran = codemod("verify", "train.py", "--format", "json", "--device", "cuda", *arguments)
    assert ran.stdout, ran.stderr
    report = json.loads(ran.stdout)
    return ran.status, report["entries"][0], report["rewrites"]


def test_memory_of_the_card_grows_before_and_is_flat_after() -> None:
    status, runs, rewrites = entry()
    before, after = runs["original"]["figures"], runs["rewritten"]["figures"]
    assert status == 0, rewrites
    assert before["device"] != "cpu"
    assert before["bytes_per_step"] > 8 << 20
    assert abs(after["bytes_per_step"]) < 64 << 10


def test_the_leak_meets_the_limit() -> None:
    _, runs, rewrites = entry("--memory-limit", "400M", "--steps", "100")
    assert runs["original"]["error"]["kind"] == "memory"
    assert runs["rewritten"]["outcome"] == "ok"
    assert {rewrite["verdict"] for rewrite in rewrites} == {"kept"}


def test_the_same_twice() -> None:
    _, runs, _ = entry()
    assert runs["deterministic"] is True
