"""Requests for CUDA on a machine without it, and the settings that make a run repeatable."""

import json

import pytest

from tests.verify.probe.tools import forked, forked_plain, probe, probe_all
from verify.measured.records import Record

torch = pytest.importorskip("torch")
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="what happens here without a GPU")

TRAINING = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)){model}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    batch = torch.randn(16, 4{factory}){tensor}
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""


#: What scripts say, and how the request that it makes is told.
REQUESTS = [
    ("torch.ones(2).cuda()", "Tensor.cuda()"),
    ("torch.ones(2).cuda(0, non_blocking=True)", "Tensor.cuda()"),
    ("torch.ones(2).to('cuda')", "Tensor.to('cuda')"),
    ("torch.ones(2).to(torch.device('cuda', 0), torch.float64)", "Tensor.to('cuda')"),
    ("torch.ones(2).to(0)", "Tensor.to('cuda')"),
    ("torch.ones(2).to(device='cuda:0', non_blocking=True)", "Tensor.to('cuda')"),
    ("torch.nn.Linear(2, 2).cuda()", "Module.cuda()"),
    ("torch.nn.Linear(2, 2).to('cuda:0')", "Module.to('cuda')"),
    ("torch.nn.Linear(2, 2, device='cuda')", "torch.empty(device='cuda')"),
    ("torch.zeros(2, device='cuda')", "torch.zeros(device='cuda')"),
    ("torch.randn_like(torch.ones(2), device='cuda')", "torch.randn_like(device='cuda')"),
    ("torch.tensor([1.0], device=torch.device('cuda:0'))", "torch.tensor(device='cuda')"),
    ("torch.ones(2).new_zeros(2, device='cuda')", "Tensor.new_zeros(device='cuda')"),
    ("torch.cuda.FloatTensor(2).zero_()", "torch.cuda.FloatTensor"),
    ("torch.ones(2).type('torch.cuda.DoubleTensor')", "torch.cuda.DoubleTensor"),
    ("torch.set_default_device('cuda')\ntorch.ones(2)", "a default device 'cuda'"),
    ("with torch.device('cuda'):\n    torch.ones(2)", "a default device 'cuda'"),
    ("torch.Generator('cuda').manual_seed(1)", "torch.Generator('cuda')"),
    ("torch.ones(2).pin_memory()", "Tensor.pin_memory()"),
    ("torch.cuda.synchronize()", "torch.cuda.synchronize()"),
    ("torch.cuda.set_device(0)", "torch.cuda.set_device()"),
    ("assert torch.cuda.current_device() == 0", "torch.cuda.current_device()"),
    ("assert torch.cuda.get_device_name(0) == 'cpu'", "torch.cuda.get_device_name()"),
    ("torch.cuda.get_device_properties(0).total_memory + 1", "torch.cuda.get_device_properties()"),
    ("torch.cuda.reset_peak_memory_stats()", "torch.cuda.reset_peak_memory_stats()"),
    ("with torch.cuda.stream(torch.cuda.Stream()):\n    torch.ones(2)", "torch.cuda.Stream"),
    ("torch.cuda.current_stream().wait_stream(torch.cuda.Stream())", "torch.cuda.current_stream()"),
    ("with torch.cuda.device(0):\n    torch.ones(2)", "torch.cuda.device"),
    (
        "a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)\n"
        "a.record()\nb.record()\ntorch.cuda.synchronize()\nassert a.elapsed_time(b) >= 0.0",
        "torch.cuda.Event",
    ),
    (
        "with torch.autocast('cuda', dtype=torch.float16):\n    torch.ones(2, 2) @ torch.ones(2, 2)",
        "autocast on 'cuda'",
    ),
    ("with torch.cuda.amp.autocast():\n    torch.ones(2, 2) @ torch.ones(2, 2)", "autocast on 'cuda'"),
    ("torch.cuda.amp.GradScaler()", "GradScaler"),
    ("torch.save(torch.ones(2), 'a.pt')\ntorch.load('a.pt', map_location='cuda:0')", "torch.load() onto 'cuda'"),
    ("torch.jit.script(torch.nn.ReLU()).save('a.pt')\ntorch.jit.load('a.pt', 'cuda')", "torch.jit.load() onto 'cuda'"),
    ("torch.nn.utils.rnn.pack_sequence([torch.ones(2)]).cuda()", "Tensor.to('cuda')"),
]


@pytest.fixture(scope="module")
def answers() -> tuple[Record, dict[str, str]]:
    """One run of all statements in one child; how each failed, if it did."""
    script = f"""
import json
import torch

failed = {{}}
for statement in {[statement for statement, _told in REQUESTS]!r}:
    try:
        exec(statement)
    except Exception as error:
        failed[statement] = repr(error)
    torch.set_default_device(None)
print(json.dumps(failed))
"""
    record, done = forked(script, device="auto")
    return record, json.loads(done.stdout)


@pytest.mark.parametrize(("statement", "told"), REQUESTS, ids=[statement for statement, _told in REQUESTS])
@without_gpu
def test_a_request_for_cuda_is_answered_and_told(
    answers: tuple[Record, dict[str, str]], statement: str, told: str
) -> None:
    record, failed = answers
    assert statement not in failed, failed[statement]
    assert [what for what in record.devices if what.startswith(told)], record.devices
    assert record.notes == []


@without_gpu
def test_the_same_request_is_told_once() -> None:
    record, _done = forked("import torch\nfor _ in range(5):\n    torch.ones(2).cuda()\n    torch.ones(3).cuda()\n")
    assert record.devices == ["Tensor.cuda()"]


@without_gpu
def test_training_on_cuda_computes_bit_for_bit_what_the_script_computes_on_the_cpu() -> None:
    mapped = TRAINING.format(model=".cuda()", factory=", device='cuda'", tensor=".to('cuda', non_blocking=True)")
    record, done = forked(mapped)
    assert done.stdout == forked_plain(TRAINING.format(model="", factory="", tensor="")).stdout
    assert len(done.stdout.split()) == 3
    assert len(record.steps) == 3


@without_gpu
def test_mixed_precision_trains() -> None:
    script = """
    import torch

    model = torch.nn.DataParallel(torch.nn.Linear(4, 1), device_ids=[0]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    with torch.cuda.amp.autocast():
        loss = model(torch.ones(2, 4).cuda()).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    """
    record, done = probe(script)
    assert len(record.steps) == 1, done.stderr
    assert "GradScaler (switched off)" in record.devices


@without_gpu
def test_seeding_and_asking_work_by_themselves() -> None:
    script = """
    import torch

    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    torch.cuda.empty_cache()
    print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.is_initialized())
    print(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved())
    print(torch.device("cuda:0"), torch.device("cuda") == torch.device("cpu"))
    """
    record, done = forked(script)
    assert done.stdout == "False 0 False\n0 0 0\ncuda:0 False\n", done.stderr
    assert record.devices == []


def test_a_script_that_chooses_the_cpu_is_told_nothing() -> None:
    script = """
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() and False else "cpu")
    model = torch.nn.Linear(4, 1).to(device)
    model(torch.ones(2, 4, device=device).to(device)).sum().backward()
    torch.save(model.state_dict(), "model.pt")
    torch.load("model.pt", map_location=device)
    torch.ones(2).to(torch.ones(1)).to(torch.float64).to(dtype=torch.float32, copy=True)
    """
    record, done = forked(script, device="auto")
    assert record.end == "completed", done.stderr
    assert record.devices == []
    assert record.notes == []


@without_gpu
def test_with_cuda_nothing_is_answered_in_its_place() -> None:
    record, _done = forked("import torch\ntorch.ones(2).cuda()\n", device="cuda")
    assert record.error is not None
    assert record.devices == []


@without_gpu
def test_a_tensor_class_of_the_scripts_own_is_asked_as_torch_would_ask_it() -> None:
    script = """
    import torch

    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func in (torch.Tensor.to, torch.Tensor.cuda):
                print(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    tensor = torch.ones(2).as_subclass(Loud)
    print(type(tensor.to("cuda")).__name__, type(tensor.cuda()).__name__)
    """
    _record, done = forked(script)
    assert done.stdout == "to\ncuda\nLoud Loud\n", done.stderr


@without_gpu
@pytest.mark.slow
def test_compiled_traced_and_scripted_code_works_on() -> None:
    script = """
    import pickle
    import torch
    from torch import fx, nn

    class Net(nn.Module):
        def forward(self, x):
            return torch.zeros(1, 2, device=x.device) + x.to(x.device) + torch.ones_like(x)

    linear = nn.Linear(4, 2).cuda()

    @torch.compile(backend="aot_eager")
    def compiled(x):
        y = torch.zeros(2, device="cuda") + linear(x.to("cuda"))
        return (y.cuda() * torch.ones_like(y)).sum()

    compiled(torch.ones(3, 4)).backward()
    print(torch.jit.script(Net())(torch.ones(1, 2)).tolist())
    print(torch.func.vmap(lambda x: x.to("cuda") * 2)(torch.ones(2)).tolist())
    print(pickle.loads(pickle.dumps(torch.zeros)) is torch.zeros, isinstance(torch.Generator(), torch.Generator))
    """
    record, done = probe(script)
    assert done.stdout == "[[2.0, 2.0]]\n[2.0, 2.0]\nTrue True\n", done.stderr
    # What torch's compiler asks for itself is not told.
    assert set(record.devices) == {"Module.cuda()", "Tensor.cuda()", "Tensor.to('cuda')", "torch.zeros(device='cuda')"}


@without_gpu
@pytest.mark.slow
def test_distributed_training_on_one_card_runs_over_gloo() -> None:
    script = """
    import os
    import socket
    import torch
    import torch.distributed as dist
    from torch import nn

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl")
    torch.cuda.set_device(0)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).cuda())
    model = nn.parallel.DistributedDataParallel(model, device_ids=[0], output_device=0)
    model(torch.ones(4, 3).cuda()).sum().backward()
    dist.barrier(device_ids=[0])
    print(dist.get_backend())
    dist.destroy_process_group()
    """
    records, done = probe_all(script)
    assert done.stdout == "gloo\n", done.stderr
    told = {what for record in records for what in record.devices}
    assert {"the process group's backend 'nccl'", "DistributedDataParallel(device_ids=...)"} <= told


def test_algorithms_are_deterministic_and_benchmarks_stay_off() -> None:
    script = """
    import torch

    print(torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.benchmark = True
    print(torch.backends.cudnn.benchmark, torch.utils.deterministic.fill_uninitialized_memory)
    """
    record, done = forked(script, deterministic=True)
    assert done.stdout == "True True\nFalse False\n", done.stderr
    assert [note for note in record.notes if "benchmark" in note] == record.notes
    assert len(record.notes) == 1


def test_without_determinism_nothing_is_set() -> None:
    script = """
    import torch

    torch.backends.cudnn.benchmark = True
    print(torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark)
    """
    record, done = forked(script, deterministic=False)
    assert done.stdout == "False True\n", done.stderr
    assert record.notes == []


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_memory_limit_is_an_out_of_memory_error() -> None:
    script = "import torch\ntorch.ones(1 << 20, device='cuda')\ntorch.ones(1 << 28, device='cuda')\n"
    record, _done = probe(script, device="cuda", memory_limit=256 << 20)
    assert record.error is not None
    assert record.error.kind == "memory"


@without_gpu
def test_a_memory_limit_asks_nothing_of_a_machine_without_cuda() -> None:
    record, done = forked("import torch\nprint(torch.cuda.is_initialized())\n", device="cuda", memory_limit=1 << 20)
    assert done.stdout == "False\n"
    assert record.notes == []
