"""The parts of the probe by themselves: values, steps, seeds, errors, records, guards."""

from __future__ import annotations

import ast
import base64
import importlib
import itertools
import json
import math
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import verify.probe  # noqa: E402
from verify.comparing.distances import distance  # noqa: E402
from verify.measured.records import Values  # noqa: E402
from verify.probe import errors, hooks  # noqa: E402
from verify.probe.guard import Clock, Part  # noqa: E402
from verify.probe.memory import Memory  # noqa: E402
from verify.probe.output import Recorder  # noqa: E402
from verify.probe.params import Parameters  # noqa: E402
from verify.probe.seeds import Seeds  # noqa: E402
from verify.probe.sites import Tree  # noqa: E402
from verify.probe.steps import Calls, Steps  # noqa: E402
from verify.probe.tensors import generators, loss  # noqa: E402

HERE = Tree(str(Path(__file__).resolve().parent))


@pytest.mark.parametrize("path", sorted(Path(verify.probe.__file__).parent.rglob("*.py")), ids=lambda path: path.stem)
def test_the_oldest_python_reads_it(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    for node in ast.walk(tree):
        # Nothing outside the standard library, torch and the probe itself may be needed to import it.
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            assert (node.module or "").split(".")[0] not in ("verify", "codemods", "tests")


DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.int8]


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_bit_changes_the_digest(dtype: Any) -> None:
    first, second = torch.ones(5, 7, dtype=dtype), torch.zeros(3, dtype=dtype)
    before = Parameters().read([first, second])
    assert before["count"] == 38 * (1 + dtype.is_complex)
    assert [any(row) for row in sums(before)] == [True, False]
    size = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[
        first.element_size() // (1 + dtype.is_complex)
    ]
    for bit in (0, 3, 8 * torch.zeros(0, dtype=size).element_size() - 1):
        changed = first.clone()
        bits = (torch.view_as_real(changed) if dtype.is_complex else changed).view(size).view(-1)
        bits[17] ^= -(2**bit) if bit == 8 * bits.element_size() - 1 else 2**bit
        assert Parameters().read([changed, second])["digest"] != before["digest"]
    assert Parameters().read([first.clone(), second.clone()]) == before


def test_views_and_negative_zero_and_nan() -> None:
    grid = torch.arange(6.0).reshape(2, 3)
    assert Parameters().read([grid.t()])["digest"] == Parameters().read([grid.t().contiguous()])["digest"]
    assert Parameters().read([torch.tensor([0.0])])["digest"] != Parameters().read([torch.tensor([-0.0])])["digest"]
    (row,) = sums(Parameters().read([torch.tensor([float("nan"), float("-inf")])]))
    assert math.isnan(row[0])
    assert math.isinf(row[1])
    assert Parameters().read([]) == {"digest": Parameters().read([])["digest"], "count": 0, "sums": ""}


def sums(read: dict[str, Any]) -> list[tuple[float, ...]]:
    """The sums of each tensor."""
    return Values(read["digest"], read["count"], base64.b64decode(read["sums"])).rows()


SIZES = [(3,), (70, 60), (4096,), (2**16 + 5,), (), (0,), (9,), (2**17,)]


def test_the_length_of_a_difference_can_be_told_afterwards_from_all_values() -> None:
    torch.manual_seed(0)
    one = [torch.randn(size, dtype=torch.float64) for size in SIZES]
    other = [tensor + 1e-3 * torch.randn(tensor.shape, dtype=torch.float64) for tensor in one]
    for left, right, mine, theirs in zip(
        sums(Parameters().read(one)), sums(Parameters().read(other)), one, other, strict=True
    ):
        true = (mine - theirs).norm().item()
        assert 0.4 * true <= distance(left, right) <= 1.8 * true


@pytest.mark.parametrize("place", [0, 1, 4095, 4096, 2**16 - 1, 2**16, 2**17 - 1])
def test_a_single_value_that_differs_is_told_exactly(place: int) -> None:
    values = torch.randn(2**17, dtype=torch.float32)
    changed = values.clone()
    changed[place] += 0.25
    gap = (changed[place].double() - values[place].double()).item()
    (one,), (other,) = sums(Parameters().read([values])), sums(Parameters().read([changed]))
    assert distance(one, other) == pytest.approx(gap, rel=1e-9)


def test_differences_do_not_cancel_out() -> None:
    values = torch.zeros(2**18)
    for step in (1, 16, 2**16):
        changed = values.clone()
        changed[::step] = 1.0
        changed[step // 2 :: step] -= 1.0 if step > 1 else 0.0
        (one,), (other,) = sums(Parameters().read([values])), sums(Parameters().read([changed]))
        assert 0.4 <= distance(one, other) / changed.norm().item() <= 1.8


def test_what_is_not_there_has_no_sums_and_is_told_from_zeros() -> None:
    something = torch.ones(3)
    nothing, zeros = (Parameters().read([something, each]) for each in (None, torch.zeros(3)))
    assert sums(nothing) == sums(zeros)
    assert nothing["digest"] != zeros["digest"]
    assert (nothing["count"], zeros["count"]) == (3, 6)


def test_sparse_gradients_differ_by_places_and_by_values() -> None:
    def read(places: list[int], values: list[float]) -> str:
        sparse = torch.sparse_coo_tensor([places], values, (10,))
        return str(Parameters().read([sparse])["digest"])

    assert read([1, 2], [1.0, 2.0]) == read([2, 1], [2.0, 1.0])
    assert read([1, 2], [1.0, 2.0]) != read([1, 3], [1.0, 2.0])
    assert read([1, 2], [1.0, 2.0]) != read([1, 2], [1.0, 2.5])


def test_a_light_reading_sees_every_value_too() -> None:
    values = torch.randn(2**17)
    before = Parameters().read([values], light=True)
    assert Parameters().read([values.clone()], light=True) == before
    for place in (0, 70_000, 2**17 - 1):
        changed = values.clone()
        changed[place] = changed[place].nextafter(torch.tensor(9.0))
        assert Parameters().read([changed], light=True)["digest"] != before["digest"]


def test_the_digest_of_a_card_sees_single_bits_too() -> None:
    # The sum that is computed on cards, here on the CPU: position and chunk matter, and every bit does.
    fold = Parameters()._fold
    values = torch.linspace(0, 1, 3 * 2**18 + 5)
    before = fold(values).item()
    assert fold(values.clone()).item() == before
    for place in (0, 1, 2**18, len(values) - 1):
        for bit in (0, 31):
            changed = values.clone()
            changed.view(torch.int32)[place] ^= 1 if bit == 0 else -(2**31)
            assert fold(changed).item() != before
    swapped = values.clone()
    swapped[[5, 2**18 + 5]] = values[[2**18 + 5, 5]]
    assert fold(swapped).item() != before


def test_reading_does_not_disturb() -> None:
    weight = torch.ones(3, requires_grad=True)
    before = generators()
    Parameters().read([weight])
    entry = loss((weight * 2).sum())
    assert entry["value"] == (6.0).hex()
    assert entry["numel"] == 1
    assert loss(weight)["value"] is None
    assert loss(torch.ones(1, device="meta")) == {"value": None, "digest": "", "numel": 1}
    assert torch.is_grad_enabled()
    assert weight.grad_fn is None
    assert generators() == before
    torch.rand(1)
    assert generators() != before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc tells")
def test_bytes_of_the_heap() -> None:
    memory = Memory()
    before, _ = memory.look()
    kept = torch.ones(4_000_000)
    during, peak = memory.look()
    assert during - before >= 16_000_000
    del kept
    after, still = memory.look()
    assert after < during
    assert still == peak
    memory.reset()
    assert memory.look()[1] < peak


def test_when_enough_steps_were_made() -> None:
    seen: list[tuple[int, int]] = []
    steps = Steps(lambda optimizer, index, call, frame: seen.append((index, call)))
    weight = torch.nn.Parameter(torch.ones(1))
    weight.grad = torch.ones(1)
    first, second = torch.optim.SGD([weight], lr=0.1), torch.optim.Adam([weight])
    steps.install()
    try:
        assert not steps.enough(1)
        for _ in range(3):
            first.step()
        assert steps.enough(3)
        second.step()
        assert not steps.enough(3)
        del second
        assert steps.enough(3)
    finally:
        steps.remove()
    first.step()
    assert seen == [(0, 1), (0, 2), (0, 3), (1, 1)]
    assert steps.total == 4


def test_without_steps_backwards_are_counted_by_line() -> None:
    calls = Calls()
    here, there = ("train.py", 1), ("train.py", 2)
    counted = [(calls.count(here), calls.enough(here, False, 3, False)) for _ in range(3)]
    assert counted == [(1, False), (2, False), (3, True)]
    assert calls.count(there) == 1
    assert not calls.enough(there, False, 3, False)
    for _ in range(5):
        calls.count(there)
    assert not calls.enough(there, True, 3, False)
    assert not calls.enough(there, False, 3, True)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    assert not calls.enough(there, False, 3, False)
    del optimizer


@pytest.mark.parametrize(
    ("error", "kind", "missing"),
    [
        (RuntimeError("Trying to backward through the graph a second time (or ...)"), "freed", None),
        (RuntimeError("one of the variables ... has been modified by an inplace operation: [...]"), "inplace", None),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), "memory", None),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), "memory", None),
        (MemoryError(), "memory", None),
        (ModuleNotFoundError("No module named 'apex'", name="apex"), "missing", "apex"),
        (FileNotFoundError(2, "No such file", "data/a.csv"), "missing", "data/a.csv"),
        (FileNotFoundError(2, "No such file", b"data/b.csv"), "missing", "data/b.csv"),
        (RuntimeError("Dataset not found or corrupted. You can use download=True"), "missing", None),
        (ValueError("a second time out of memory"), "other", None),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), "other", None),
        (ImportError("cannot import name 'x'"), "other", None),
        (PermissionError(13, "Permission denied", "x"), "other", None),
    ],
)
def test_kinds_of_errors(error: Exception, kind: str, missing: str | None) -> None:
    assert errors.trouble(error) == {"type": type(error).__name__, "message": str(error), "kind": kind}
    assert errors.missing(error) == missing
    wrapped = TypeError("wrapped")
    wrapped.__cause__ = error
    assert errors.kind(wrapped) == kind


def test_tracebacks_keep_the_users_frames() -> None:
    try:
        torch.nn.Sequential(torch.nn.Linear(2, 2))(torch.ones(1, 3))
    except RuntimeError as error:
        event = errors.uncaught(error, error.__traceback__, HERE)
    assert event["site"][0] == "test_parts.py"
    assert event["traceback"].startswith("Traceback (most recent call last):\n")
    assert event["traceback"].rstrip().endswith(event["message"])
    assert "in linear" in event["traceback"] or "in forward" in event["traceback"]


def test_a_process_nobody_named_is_silent_until_it_trains(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path), False, "child", dict)
    recorder.write({"event": "seed", "generator": "torch", "value": 1})
    recorder.write({"event": "end", "reason": "completed"})
    assert list(tmp_path.iterdir()) == []
    recorder.write({"event": "backward"})
    (file,) = tmp_path.iterdir()
    assert file.name == f"child-{os.getpid()}.jsonl"
    assert [json.loads(line)["event"] for line in file.read_text().splitlines()] == ["start", "seed", "end", "backward"]


def test_a_named_process_writes_at_once(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path), True, "main", lambda: {"device": "cpu"})
    recorder.write({"event": "note", "text": "lone surrogate \udc80"})
    (file,) = tmp_path.iterdir()
    assert [json.loads(line)["event"] for line in file.read_text().splitlines()] == ["start", "note"]


def test_errors_inside_switch_a_part_off() -> None:
    events: list[dict[str, Any]] = []
    part = Part("the weather", events.append, Clock())
    with part:
        pass
    assert part.on
    with part:
        raise KeyError("rain")
    assert not part.on
    assert events == [{"event": "note", "text": "The probe could not go on watching the weather: KeyError: 'rain'"}]


def test_interrupts_pass() -> None:
    part = Part("the weather", print, Clock())
    with pytest.raises(KeyboardInterrupt), part:
        raise KeyboardInterrupt
    assert part.on


def test_what_a_signal_handler_raises_passes() -> None:
    def late(number: int, frame: object) -> None:
        raise TimeoutError("the script's own")

    part = Part("the weather", print, Clock())
    before = signal.signal(signal.SIGALRM, late)
    try:
        with pytest.raises(TimeoutError), part:
            signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert part.on


def seeds(replay: list[list[Any]] | None, events: list[dict[str, Any]], seed: int | None = 3) -> Seeds:
    return Seeds(seed, replay, HERE, events.append)


def test_seeds_are_written_down_and_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("seed",):
        monkeypatch.setattr(random, name, getattr(random, name))
    events: list[dict[str, Any]] = []
    original = random.seed
    first = seeds(None, events)
    first._python()
    random.seed(1_700_000_000.25)
    random.seed()
    random.seed(None)
    random.seed(b"bytes")
    drawn = [event["value"] for event in events]
    assert drawn[0] == 1_700_000_000.25
    assert len(set(drawn)) == 3
    monkeypatch.setattr(random, "seed", original)
    replayed: list[dict[str, Any]] = []
    seeds([["torch", 5], *[["random", value] for value in drawn]], replayed)._python()
    random.seed(1_800_000_000.75)
    at_replay = random.random()
    random.seed()
    random.seed(12)
    assert [event["value"] for event in replayed] == drawn
    # Used up: from here the script's own values count again.
    random.seed(12)
    monkeypatch.setattr(random, "seed", original)
    random.seed(12)
    own = random.random()
    random.seed(1_700_000_000.25)
    assert random.random() == at_replay != own


def test_seeds_of_libraries_are_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "seed", random.seed)
    events: list[dict[str, Any]] = []
    elsewhere = Seeds(3, None, Tree("/nowhere"), events.append)
    elsewhere._python()
    random.seed(5)
    assert events == []


def drawn_without_seed() -> list[Any]:
    import numpy

    return [
        numpy.random.default_rng().random(),
        numpy.random.default_rng().random(),
        numpy.random.RandomState().rand(),
        numpy.random.SeedSequence().entropy,
    ]


def in_worker(connection: Any) -> None:
    connection.send(drawn_without_seed())
    connection.close()


def test_numpy_begins_with_the_same_where_nobody_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy.random

    source: Any = importlib.import_module("numpy.random.bit_generator")
    monkeypatch.setattr(source, "randbits", source.randbits)
    state = numpy.random.get_state()
    elsewhere = Tree("/nowhere")
    drawn = []
    for seed in (3, 3, 4):
        Seeds(seed, None, elsewhere, print)._fix_entropy()
        drawn.append([drawn_without_seed(), drawn_without_seed()])
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({str(each) for row in drawn[0] for each in row}) == 8
    # With a seed of its own a generator stays what it was.
    assert numpy.random.default_rng(5).random() == 0.8050029237453802
    numpy.random.set_state(state)


def test_workers_draw_other_numbers_than_their_parent_and_the_same_in_every_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import multiprocessing

    source: Any = importlib.import_module("numpy.random.bit_generator")
    monkeypatch.setattr(source, "randbits", source.randbits)
    fork = multiprocessing.get_context("fork")
    runs = []
    for _ in range(2):
        # Workers are told apart by their order in the program.
        monkeypatch.setattr(multiprocessing.process, "_process_counter", itertools.count(1))
        Seeds(3, None, Tree("/nowhere"), print)._fix_entropy()
        seen = []
        for _ in range(2):
            receiving, sending = fork.Pipe(False)
            worker = fork.Process(target=in_worker, args=(sending,))
            worker.start()
            seen.append(receiving.recv())
            worker.join()
        runs.append([*seen, drawn_without_seed()])
    assert runs[0] == runs[1]
    assert len({str(row) for row in runs[0]}) == 3


def test_where_nothing_is_seeded_numpy_asks_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy.random

    source: Any = importlib.import_module("numpy.random.bit_generator")
    before = source.randbits
    monkeypatch.setattr(numpy.random, "seed", numpy.random.seed)
    seeds(None, [], None)._numpy()
    assert source.randbits is before


def test_callbacks_after_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "first_seen_module.py").write_text("VALUE = 1\n")
    (tmp_path / "broken_seen_module.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    told: list[Any] = []
    monkeypatch.setattr(hooks, "_REPORTS", [told.append])
    hooks.when_imported("sys", lambda: told.append("at once"))
    hooks.when_imported("first_seen_module", lambda: told.append(sys.modules["first_seen_module"].VALUE))
    hooks.when_imported("broken_seen_module", lambda: told.append(1 / 0))
    assert told == ["at once"]
    import broken_seen_module  # type: ignore[import-not-found]
    import first_seen_module  # type: ignore[import-not-found]

    assert told[:1] + told[2:] == ["at once", 1]
    assert isinstance(told[1], ZeroDivisionError)
    assert "exec_module" not in vars(first_seen_module.__loader__)
    assert broken_seen_module.VALUE == 1
    assert not any(type(finder) is hooks._Finder for finder in sys.meta_path)
