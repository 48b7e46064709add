"""What a campaign takes: repositories a minute, memory over time, the cost of going on, and a cluster on this machine.

    python tests/benchmarks/batch.py
    python tests/benchmarks/batch.py --repositories 60 --dask-repositories 60   # a look

Repositories are made of the fixtures and of filler, the same ones every time, and nothing is verified: what a run of a
training script takes is a matter of the script. CPU time is that of all processes, the workers' and git's included.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.batch.tools import commit, git  # noqa: E402
from tests.benchmarks.trees import make_scripts  # noqa: E402

_SAMPLE = 0.5  # seconds


def make_repository(folder: Path, number: int, files: int) -> None:
    """A repository of ``files`` Python files: a fifth train, as research does, and most of the rest is the library."""
    folder.mkdir(parents=True)
    scripts = max(2, files // 5)
    make_scripts(folder, scripts)
    chance = random.Random(number)
    have = sum(1 for _ in folder.rglob("*.py"))
    texts: dict[str, str | bytes] = {}
    for index in range(files - have):
        names = [chance.choice(("encode", "decode", "pool", "embed", "mask", "score")) + str(n) for n in range(6)]
        body = "\n\n".join(
            f"class {name.title()}(nn.Module):\n    def __init__(self, size={chance.randrange(8, 512)}):\n"
            f"        super().__init__()\n        self.layer = nn.Linear(size, size)\n"
            f"        self.drop = nn.Dropout(0.1)\n\n"
            f"    def forward(self, x):\n        h = torch.relu(self.layer(x))\n        return self.drop(h) + x\n"
            for name in names
        )
        texts[f"lib{index % 4}/module_{index}.py"] = f"import torch\nfrom torch import nn\n\n\n{body}"
    (folder / "number.txt").write_text(str(number))
    git(folder, "init", "-q", "-b", "main")
    commit(folder, texts)


@dataclass
class Measured:
    """One command: seconds, CPU seconds, and the resident memory of its processes over time, in MB."""

    wall: float
    cpu: float
    status: int
    memory: list[tuple[float, float]] = field(default_factory=list)

    def quarters(self) -> list[float]:
        """The largest memory in each quarter of the time."""
        most = [0.0] * 4
        for at, size in self.memory:
            most[min(3, int(4 * at / max(self.wall, 1e-9)))] = max(
                most[min(3, int(4 * at / max(self.wall, 1e-9)))], size
            )
        return most


def measure(command: Sequence[str], cwd: Path, *, kill_after: float | None = None) -> Measured:
    """Run ``command``; with ``kill_after`` it is killed, and its workers with it, after so many seconds."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    memory: list[tuple[float, float]] = []
    stop = threading.Event()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def watch() -> None:
        while not stop.wait(_SAMPLE):
            total = 0.0
            for pid in family(process.pid):
                with contextlib.suppress(OSError, ValueError, IndexError):
                    total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6
            memory.append((time.perf_counter() - begin, total))

    watcher = threading.Thread(target=watch)
    watcher.start()
    if kill_after is not None:
        time.sleep(kill_after)
        process.send_signal(signal.SIGKILL)
    status = process.wait()
    wall = time.perf_counter() - begin
    stop.set()
    watcher.join()
    # Its own and that of the processes that it has waited for, as its workers' and git's.
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(wall, cpu, status, memory)


def family(pid: int) -> list[int]:
    """A process and its workers; git's processes come and go too fast to be counted one by one."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                with contextlib.suppress(OSError):
                    if b"codemods.batch.stages.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                        found.append(int(child))
    return found


def campaign(folder: Path, name: str, repositories: Path, count: int) -> Path:
    """A campaign over the first ``count`` repositories."""
    paths = sorted(path for path in repositories.iterdir() if path.is_dir())[:count]
    file = folder / f"{name}.toml"
    file.write_text(
        '[campaign]\nartifacts = ["patch", "json"]\n'
        f"[repositories]\npaths = {json.dumps([str(path) for path in paths])}\n"
        '[verify]\nrun = false\n[commit]\nauthor = "Bench <bench@example.org>"\n'
    )
    return file


def run(file: Path, *words: str, kill_after: float | None = None) -> Measured:
    """``codemod batch run``."""
    command = [sys.executable, "-m", "codemods", "batch", "run", str(file), "-q", *words]
    return measure(command, file.parent, kill_after=kill_after)


def cluster(folder: Path, workers: int) -> tuple[str, list[subprocess.Popen[bytes]]]:
    """A scheduler and ``workers`` on this machine."""
    folder.mkdir()
    file = folder / "scheduler.json"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    quiet = {"cwd": folder, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "dask"]
    common = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]
    processes = [subprocess.Popen([*dask, "scheduler", *common, "--port", "0"], **quiet)]  # type: ignore[call-overload]
    for number in range(workers):
        more = ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder / str(number))]
        processes.append(subprocess.Popen([*dask, "worker", *common, *more], **quiet))  # type: ignore[call-overload]
    from distributed import Client

    while not file.exists():
        time.sleep(0.1)
    with Client(scheduler_file=str(file), set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=120)
        return str(json.loads(file.read_text())["address"]), processes


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repositories", type=int, default=300)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--dask", default="1,2,4", help="numbers of workers; empty for none")
    parser.add_argument("--dask-repositories", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codemod-batch-") as temporary:
        folder = Path(temporary)
        for number in range(given.repositories):
            make_repository(folder / "repositories" / f"r{number:04}", number, given.files)
        load = os.getloadavg()[0]
        cores = os.cpu_count()
        print(f"{given.repositories} repositories of {given.files} files; {cores} cores, load {load:.1f} at the start")
        whole = run(campaign(folder, "whole", folder / "repositories", given.repositories), "--jobs", str(given.jobs))
        rate = 60 * given.repositories / whole.wall
        print(f"one machine, {given.jobs} processes: {whole.wall:.0f} s, {rate:.0f} repositories a minute,", end=" ")
        print(f"{whole.cpu / given.repositories:.2f} CPU s a repository, status {whole.status}")
        print(
            f"memory of all processes, most in each quarter: {', '.join(f'{size:.0f} MB' for size in whole.quarters())}"
        )
        again = run(folder / "whole.toml", "--jobs", str(given.jobs))
        print(f"the same again, nothing to do: {again.wall:.2f} s")
        half = campaign(folder, "half", folder / "repositories", given.dask_repositories)
        plain = run(
            campaign(folder, "plain", folder / "repositories", given.dask_repositories), "--jobs", str(given.jobs)
        )
        killed = run(half, "--jobs", str(given.jobs), kill_after=plain.wall / 2)
        rest = run(half, "--jobs", str(given.jobs))
        print(
            f"{given.dask_repositories} repositories: {plain.wall:.1f} s; killed after {killed.wall:.1f} s and gone on "
            f"with: {rest.wall:.1f} s more, {killed.wall + rest.wall - plain.wall:+.1f} s in all"
        )
        first = 0.0
        for workers in (int(word) for word in given.dask.split(",") if word):
            address, processes = cluster(folder / f"cluster{workers}", workers)
            try:
                file = campaign(folder, f"dask{workers}", folder / "repositories", given.dask_repositories)
                taken = run(file, "--scheduler", address)
            finally:
                for process in reversed(processes):
                    process.kill()
                    process.wait()
            first = first or taken.wall * workers
            print(
                f"Dask, {workers} workers: {taken.wall:.1f} s, {60 * given.dask_repositories / taken.wall:.0f} "
                f"repositories a minute, {taken.cpu:.1f} CPU s of ours, "
                f"efficiency {first / (taken.wall * workers):.2f}, status {taken.status}"
            )
        print(f"load {os.getloadavg()[0]:.1f} at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
