"""CUDA's allocator: a cache that grows, memory in pieces; what a card says is written out here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.verify.diagnosis.test_faults import run_of
from verify.diagnosis import allocator, resources
from verify.diagnosis.evidence import Sources
from verify.diagnosis.model import Kind
from verify.measured.values import Site, Trouble, TroubleKind
from verify.probe.doctor.cache import Cache
from verify.probe.lines.sites import Tree

torch = pytest.importorskip("torch")
MIB = 1 << 20
TWO = (
    "CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 400.00 MiB"
    " of which 20.00 MiB is free."
    " Of the allocated memory 150.00 MiB is allocated by PyTorch, and {unused} is reserved by PyTorch but unallocated."
    " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
)
ONE = (
    "CUDA out of memory. Tried to allocate 96.00 MiB (GPU 0; 7.79 GiB total capacity; 5.25 GiB already allocated;"
    " 12.00 MiB free; 6.50 GiB reserved in total by PyTorch)"
)


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    (tmp_path / "t.py").write_text("x = 1\ny = net(x)\n")
    return Sources(tmp_path)


def cached(*steps: tuple[int, int], **fields: Any) -> dict[str, Any]:
    rows = [[reserved * MIB, peak * MIB] for reserved, peak in steps]
    return {"what": "cache", "steps": rows, "retries": 0, "lines": [], **fields}


GROWS = cached(*((100 + 20 * number, 100) for number in range(20)))


def test_a_cache_that_grows_beyond_tensors_is_told_with_its_lines(sources: Sources) -> None:
    traced = {**GROWS, "lines": [{"site": ["t.py", 2, "f"], "bytes": 300 * MIB}]}
    (fault,) = allocator.growing(run_of(GROWS), run_of(traced), sources)
    assert fault.kind is Kind.GROWING_CACHE
    assert "grows by 20 MiB a step: 480 MiB are reserved, and tensors took 100 MiB at most" in fault.headline
    assert (fault.site, fault.clues[1].source) == (Site("t.py", 2, "f"), "y = net(x)")
    (unseen,) = allocator.growing(run_of(GROWS), None, sources)
    assert unseen.site is None


@pytest.mark.parametrize(
    "steps",
    [
        # tensors grow, and what is reserved with them
        [(100 + 20 * number, 90 + 20 * number) for number in range(20)],
        # some sizes at first
        [(100 + 20 * min(number, 5), 100) for number in range(20)],
        # one large evaluation
        [(100 if number < 12 else 400, 100) for number in range(20)],
        # little, against what tensors take
        [(1000 + 5 * number, 1000) for number in range(20)],
        # a window too short to tell
        [(100 + 50 * number, 100) for number in range(8)],
    ],
)
def test_a_cache_that_follows_tensors_or_settles_is_none(steps: list[tuple[int, int]], sources: Sources) -> None:
    assert allocator.growing(run_of(cached(*steps)), None, sources) == []


def test_without_a_card_nothing_is_said(sources: Sources) -> None:
    assert allocator.growing(run_of(), None, sources) == []
    assert allocator.growing(run_of(cached()), None, sources) == []
    assert allocator.retries(run_of()) == ""


def test_an_allocator_that_gives_its_cache_back_is_a_remark() -> None:
    assert allocator.retries(run_of(cached((9, 9), retries=3))).startswith("3 times the allocator")
    assert allocator.retries(run_of(cached((9, 9)))) == ""


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (TWO.format(asked="96.00 MiB", unused="230.00 MiB"), (96 * MIB, 230 * MIB)),
        (ONE, (96 * MIB, 1280 * MIB)),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", None),
        ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 400 bytes.", None),
    ],
)
def test_pieces_are_read_out_of_what_torch_says(message: str, found: tuple[int, int] | None) -> None:
    assert allocator.fragments(message) == found


@pytest.mark.parametrize(("unused", "word"), [("230.00 MiB", "in pieces"), ("12.00 MiB", "smaller batches")])
def test_memory_in_pieces_is_told_from_memory_that_is_full(unused: str, word: str, sources: Sources) -> None:
    error = Trouble("OutOfMemoryError", TWO.format(asked="96.00 MiB", unused=unused), TroubleKind.MEMORY)
    (fault,) = resources.memory(run_of(error=error), sources)
    assert word in fault.remedy
    assert fault.figures["asked_bytes"] == 96 * MIB
    assert (fault.clue("fragments") is not None) == (word == "in pieces")


def test_the_probe_reads_every_card_after_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    frames = [
        {"filename": "/site-packages/torch/nn.py", "line": 7, "name": "forward"},
        {"filename": str(tmp_path / "train.py"), "line": 3, "name": "step"},
    ]
    actions = [
        {"action": "segment_alloc", "size": 2 * MIB, "frames": frames},
        {"action": "alloc", "size": MIB, "frames": frames},
        {"action": "segment_alloc", "size": MIB, "frames": frames[:1]},
    ]
    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        device_count=lambda: 2,
        memory_reserved=lambda card: 10 + card,
        max_memory_allocated=lambda card: 5 + card,
        memory_stats=lambda card: {"num_alloc_retries": card},
        memory=SimpleNamespace(
            _record_memory_history=lambda enabled, **_: asked.append(enabled),
            _snapshot=lambda: {"device_traces": [actions]},
        ),
    )
    monkeypatch.setattr(torch, "cuda", cuda)
    (tmp_path / "train.py").touch()
    cache = Cache(Tree(str(tmp_path)), lines=True)
    cache.stepped()
    cache.stepped()
    assert cache.event() == {
        "what": "cache",
        "steps": [[21, 11], [21, 11]],
        "retries": 1,
        "lines": [{"site": ["train.py", 3, "step"], "bytes": 2 * MIB}],
    }
    assert asked == ["all", None]


def test_the_probe_asks_nothing_of_a_card_that_is_not_used(tmp_path: Path) -> None:
    if torch.cuda.is_initialized():
        pytest.skip("CUDA is in use")
    cache = Cache(Tree(str(tmp_path)), lines=True)
    cache.stepped()
    assert cache.event()["steps"] == []
