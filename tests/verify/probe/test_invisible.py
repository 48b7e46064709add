"""What a script can look at is the same with and without the probe."""

from __future__ import annotations

import socket
import sys
import textwrap
from pathlib import Path

import pytest

from tests.verify.probe.tools import plain, probe, probe_all, probe_command

pytestmark = pytest.mark.slow

LOOKS = '''
"""The docstring."""
import __main__, atexit, importlib.resources, inspect, pickle, sys, threading, warnings
import torch, torch.nn as nn
class Thing:
    """It has a source."""
assert type(pickle.loads(pickle.dumps(Thing()))) is Thing
print(__name__, __doc__, __spec__, __main__ is sys.modules["__main__"], sys.argv[1:], sys.path[1:])
loader = torch.__loader__
print(inspect.getsource(Thing), type(loader), torch.__spec__.loader is loader, "exec_module" in vars(loader))
print(threading.active_count(), [thread.name for thread in threading.enumerate()], sys.gettrace(), sys.getprofile())
print(sys.excepthook is sys.__excepthook__, sys.flags)
print(inspect.signature(torch.autograd.backward), inspect.signature(torch.manual_seed), torch.get_num_threads())
print(torch.are_deterministic_algorithms_enabled(), len(inspect.getsource(torch.nn.Linear)))
print(torch.manual_seed(5).initial_seed())
print([name for name in dir(__main__) if not name.startswith("_")], warnings.filters[:1])
net = nn.Linear(2, 1)
frames = []
net.register_forward_hook(lambda *_: frames.append(len(inspect.stack())))
loss = net(torch.ones(1, 2)).sum()
print(sorted(vars(net)), loss.grad_fn.metadata, frames, len(net._forward_hooks))
loss.backward()
print(net.weight.grad.tolist(), net.weight.grad_fn, net.weight._backward_hooks)
'''


def test_a_script_sees_what_it_would_see() -> None:
    without = plain(LOOKS, "--epochs", "3")
    _, with_probe = probe(LOOKS, "--epochs", "3", watch={"train.py": [9999]}, watchdog=60)
    assert without.returncode == 0, without.stderr
    assert with_probe.stderr == without.stderr
    assert with_probe.stdout == without.stdout


def test_modules_are_run_as_modules(tmp_path: Path) -> None:
    package = tmp_path / "tree" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "data.py").write_text("SIZE = 3\n")
    (package / "train.py").write_text(
        textwrap.dedent("""
        import torch
        from .data import SIZE
        net = torch.nn.Linear(SIZE, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(6):
            net(torch.ones(1, SIZE)).sum().backward()
            optimizer.step()
        print(__name__, __spec__.name, __package__)
    """)
    )
    command = [sys.executable, "-m", "package.train"]
    (record,), done = probe_command(command, tmp_path / "tree", tmp_path)
    assert done.stdout.strip() == "__main__ package.train package"
    assert record.end == "completed"
    assert [str(step.site) for step in record.steps] == ["package/train.py:8"] * 6


def test_every_rank_of_torchrun_writes_its_record(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "train.py").write_text(
        textwrap.dedent("""
        import torch, torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel
        dist.init_process_group("gloo")
        torch.manual_seed(dist.get_rank())
        net = DistributedDataParallel(torch.nn.Linear(3, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(100):
            optimizer.zero_grad()
            net(torch.randn(2, 3)).square().mean().backward()
            optimizer.step()
    """)
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    # Loopback by name: in a sandbox the machine's own name leads nowhere.
    environment = {"GLOO_SOCKET_IFNAME": "lo"}
    command += ["--master-port", port, "train.py"]
    records, done = probe_command(command, tree, tmp_path, environment, steps=6)
    assert done.returncode == 0, done.stderr
    assert [(record.process, record.end, len(record.steps)) for record in records] == [
        ("main", "completed", 0),
        ("rank-0", "steps", 6),
        ("rank-1", "steps", 6),
    ]
    assert [step.digest for step in records[1].steps] == [step.digest for step in records[2].steps]
    assert records[1].backwards[0].losses != records[2].backwards[0].losses


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_that_train_write_their_own_records(start: str) -> None:
    text = f"""
        import torch, torch.multiprocessing as mp
        def train(rank, net):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
            for _ in range(5):
                optimizer.zero_grad()
                net(torch.ones(1, 2)).sum().backward()
                optimizer.step()
        if __name__ == "__main__":
            torch.set_num_threads(1)
            net = torch.nn.Linear(2, 1)
            net.share_memory()
            workers = [mp.get_context("{start}").Process(target=train, args=(rank, net)) for rank in range(2)]
            for worker in workers: worker.start()
            for worker in workers: worker.join()
            print([worker.exitcode for worker in workers])
    """
    records, done = probe_all(text)
    assert done.stdout.strip() == "[0, 0]", done.stderr
    name = {"fork": "ForkProcess", "spawn": "SpawnProcess"}[start]
    assert [(record.process, record.end, len(record.steps)) for record in records] == [
        ("main", "completed", 0),
        (f"{name}-1", "completed", 5),
        (f"{name}-2", "completed", 5),
    ]


def test_compiled_modules_and_steps() -> None:
    text = """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        compiled = torch.compile(net, backend="aot_eager")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        @torch.compile(backend="eager")
        def step(x):
            loss = net(x).square().mean()
            loss.backward()
            return loss
        for i in range(8):
            optimizer.zero_grad()
            loss = step(torch.randn(3, 4)) if i % 2 else compiled(torch.randn(3, 4)).square().mean()
            if i % 2 == 0:
                loss.backward()
            optimizer.step()
        import torch._dynamo.utils as utils
        print(sorted(utils.counters["graph_break"].values()), utils.counters["frames"]["total"])
        print([p.flatten().tolist() for p in net.parameters()])
    """
    without = plain(text)
    record, with_probe = probe(text, watch={"train.py": [17, 9999]})
    assert without.returncode == 0, without.stderr
    assert with_probe.stdout == without.stdout
    assert [len(record.backwards), len(record.steps)] == [8, 8]
    assert record.reached == {("train.py", 17)}
    assert record.notes == []


def test_the_users_own_sitecustomize_still_runs(tmp_path: Path) -> None:
    site, tree = tmp_path / "site", tmp_path / "tree"
    site.mkdir()
    tree.mkdir()
    (site / "sitecustomize.py").write_text("import builtins\nbuiltins.mine = __file__\n")
    (tree / "train.py").write_text("import sitecustomize\nprint(mine, sitecustomize.__file__)\n")
    _, done = probe_command([sys.executable, "train.py"], tree, tmp_path, {"PYTHONPATH": str(site)})
    assert done.stdout.split() == [str(site / "sitecustomize.py")] * 2


def test_torch_can_be_imported_in_any_way() -> None:
    train = """
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(30):
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    """
    ways = [
        "import importlib; torch = importlib.import_module('torch')",
        "import importlib.util, sys\n"
        "spec = importlib.util.find_spec('torch')\n"
        "spec.loader = importlib.util.LazyLoader(spec.loader)\n"
        "torch = importlib.util.module_from_spec(spec)\n"
        "sys.modules['torch'] = torch\n"
        "spec.loader.exec_module(torch)",
        "from torch.nn import functional\nimport torch, importlib; importlib.reload(torch.nn)",
    ]
    for way in ways:
        record, done = probe(way + "\n" + textwrap.dedent(train))
        assert (record.end, len(record.steps)) == ("steps", 20), done.stderr
