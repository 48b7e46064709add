"""Workers answer in order, hear nothing of an interrupt, and end when their owner wants it, whatever they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods.analysis.pool import Pool, WorkerEnded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

_given: list[object] = []


def begin(*given: object) -> None:
    _given.extend(given)


def told(number: int) -> tuple[int, list[object], int]:
    return number, _given, os.getpid()


def failing(number: int) -> int:
    if number == 3:
        raise KeyError(number)
    if number < 3:
        # the error comes first, and has to wait
        time.sleep(0.1)
    return number


def ending(signal_number: int) -> None:
    os.kill(os.getpid(), signal_number)


def leaving(status: int) -> None:
    os._exit(status)


@pytest.fixture
def pool() -> Iterator[Pool]:
    pool = Pool(2, begin, "a", "b")
    yield pool
    pool.end()


@pytest.mark.parametrize("portion", [1, 3, 50])
def test_results_come_in_order(pool: Pool, portion: int) -> None:
    for count in (0, 1, 10):
        found = list(pool.map(told, range(count), portion))
        assert [number for number, _, _ in found] == list(range(count))
        assert all(given == ["a", "b"] for _, given, _ in found)
        assert os.getpid() not in {pid for _, _, pid in found}


def test_an_error_is_raised_where_it_is_asked_for(pool: Pool) -> None:
    results = pool.map(failing, range(6))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError) as caught:
        next(results)
    assert "in failing" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("work", "number", "said"),
    [
        (
            ending,
            signal.SIGKILL,
            "a worker process was ended by SIGKILL, as the system does where memory runs out; -j 1 takes less",
        ),
        (ending, signal.SIGTERM, "a worker process was ended by SIGTERM"),
        (leaving, 3, "a worker process ended with status 3"),
    ],
)
def test_a_worker_that_is_gone_is_told(pool: Pool, work: object, number: int, said: str) -> None:
    with pytest.raises(WorkerEnded) as caught:
        list(pool.map(work, [number]))  # type: ignore[arg-type]
    assert str(caught.value) == said


def test_a_worker_that_waits_hears_no_interrupt(pool: Pool, capfd: pytest.CaptureFixture[str]) -> None:
    before = {pid for _, _, pid in pool.map(told, range(20))}
    for pid in before:
        os.kill(pid, signal.SIGINT)
    assert {pid for _, _, pid in pool.map(told, range(20))} <= {worker.pid for worker in pool._workers.values()}
    assert all(Path(f"/proc/{pid}").exists() or sys.platform != "linux" for pid in before)
    assert capfd.readouterr().err == ""


SCRIPT = """\
import os, signal, sys
sys.path.insert(0, {root!r})
from codemods.analysis.pool import Pool
from tests.analysis.test_pool import begin, told
{before}
try:
    pool = Pool(2, begin)
    {during}
except KeyboardInterrupt:
    print("interrupted", flush=True)
finally:
    pool.end()
"""
ROOT = str(Path(__file__).parents[2])


def ran(before: str, during: str) -> subprocess.CompletedProcess[str]:
    script = SCRIPT.format(root=ROOT, before=before, during=during)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(sys.platform == "darwin", reason="processes are forked")
def test_an_interrupt_at_the_very_start_of_a_worker_is_not_heard() -> None:
    before = "os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGINT))"
    done = ran(before, "print(len(list(pool.map(told, range(4)))))")
    assert (done.stdout, done.stderr, done.returncode) == ("4\n", "", 0)


@pytest.mark.skipif(sys.platform == "darwin", reason="processes are forked")
def test_an_interrupt_while_workers_start_waits_for_them() -> None:
    # the first worker is there by then, and must be ended
    before = "os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))"
    done = ran(before, "list(pool.map(told, range(4)))")
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)


def test_workers_end_in_the_midst_of_their_work() -> None:
    pool = Pool(2, begin)
    results = pool.map(_first_only, range(4))
    assert next(results) == 0
    pids = [process.pid for process in pool._workers.values()]
    pool.end()
    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def _first_only(number: int) -> int:
    if number:
        time.sleep(3600)
    return number
