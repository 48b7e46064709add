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
    # What stands behind the crash of the original is compared with nothing.
    assert {rewrite["verdict"] for rewrite in rewrites} <= {"kept", "partly reached"}


SIZES = dedent(
    """\
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    for step in range(20):
        rows = {rows}
        batch = torch.randn(rows, 64, device="cuda")
        loss = net(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
)
PIECES = dedent(
    """\
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Linear(8, 1).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    kept = []
    for step in range(20):
        loss = net(torch.randn(4, 8, device="cuda")).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 3:
            filled = [torch.empty(2 << 20, dtype=torch.uint8, device="cuda") for _ in range({pieces})]
            kept = filled[::9]
            del filled
        if step == 4:
            large = torch.empty(200 << 20, dtype=torch.uint8, device="cuda")
    """
)


def diagnosed(script: str, *arguments: str) -> list[dict[str, Any]]:
    Path("train.py").write_text(script)
    ran = codemod("doctor", "train.py", "--format", "json", "--device", "cuda", *arguments)
    assert ran.stdout, ran.stderr
    found: list[dict[str, Any]] = json.loads(ran.stdout)["faults"]
    return found


def test_a_cache_that_grows_names_the_line_that_asks() -> None:
    # Each step needs larger blocks than all before left behind.
    found = diagnosed(SIZES.format(rows="100_000 + 40_000 * step"))
    (fault,) = (fault for fault in found if fault["kind"] == "growing-cache")
    assert fault["figures"]["reserved_bytes"] > 1.5 * fault["figures"]["peak_bytes"]
    assert any("batch" in clue["source"] or "net(" in clue["source"] for clue in fault["clues"][1:]), fault["clues"]


def test_a_cache_that_settles_is_no_fault() -> None:
    assert diagnosed(SIZES.format(rows="100_000 if step % 2 else 50_000")) == []


def test_memory_in_pieces_is_told_from_full_memory() -> None:
    (pieces,) = diagnosed(PIECES.format(pieces=120), "--memory-limit", "400M")
    assert pieces["kind"] == "out-of-memory"
    assert "in pieces" in pieces["remedy"], pieces
    (full,) = diagnosed(PIECES.format(pieces=120).replace("[::9]", "[:]"), "--memory-limit", "400M")
    assert "in pieces" not in full["remedy"], full


def test_the_same_twice() -> None:
    _, runs, _ = entry()
    assert runs["deterministic"] is True
