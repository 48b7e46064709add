"""How a watched process ends, and what stands in its record then."""

from __future__ import annotations

import time

import pytest

from tests.verify.probe.tools import forked, plain, probe, probe_all

pytestmark = pytest.mark.slow

TRAIN = """
import sys, torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    net(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""


def test_enough_steps_end_it_past_bare_excepts_and_finally() -> None:
    record, done = probe(
        TRAIN
        + """
try:
    for i in range(1000):
        try:
            step()
            print(i)
        except:
            print("swallowed")
finally:
    print("finally")
""",
        steps=7,
    )
    assert done.returncode == 0
    assert (record.end, len(record.steps)) == ("steps", 7)
    # What was printed before is not lost in a buffer.
    assert done.stdout.split() == ["0", "1", "2", "3", "4", "5"]


def test_exit_status_and_completion() -> None:
    record, done = probe(TRAIN + "step()\nsys.exit(3)\n")
    assert (record.end, record.status, done.returncode) == ("exit", 3, 3)
    record, done = probe(TRAIN + "step()\nsys.exit('no')\n")
    assert (record.end, record.status, done.returncode, done.stderr) == ("exit", 1, 1, "no\n")
    record, done = probe(TRAIN + "step()\n")
    assert (record.end, record.status, done.returncode) == ("completed", None, 0)
    assert len(record.steps) == 1
    assert record.overhead > 0


def test_an_excepthook_of_the_script_is_kept() -> None:
    record, done = probe(TRAIN + "sys.excepthook = lambda *args: print('mine')\nstep()\nraise ValueError('bad')\n")
    assert done.stdout == "mine\n"
    assert record.error is not None
    assert (record.error.type, record.error.message, record.error.kind) == ("ValueError", "bad", "other")
    assert record.error_site is not None
    assert record.error_site.function == "<module>"


def test_errors_in_threads() -> None:
    record, done = probe(
        TRAIN
        + """
import threading
def work():
    step()
    open("nowhere.npy")
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    )
    assert "nowhere.npy" in done.stderr
    assert record.missing == "nowhere.npy"
    assert record.error_site is not None
    assert record.error_site.function == "work"


def test_the_watchdog_ends_what_hangs() -> None:
    started = time.monotonic()
    record, done = probe(
        TRAIN + "step()\nstep()\nwhile True:\n    try: sum(range(10**6))\n    except: pass\n", watchdog=12
    )
    assert time.monotonic() - started < 60
    assert (record.end, len(record.steps), done.returncode) == ("watchdog", 2, 0)
    assert record.census is not None


def test_the_watchdog_lets_what_is_faster_go() -> None:
    record, _ = forked(TRAIN + "step()\n", watchdog=60)
    assert record.end == "completed"


def test_an_optimizer_outside_torch_is_stopped_by_backwards() -> None:
    record, _ = forked(TRAIN + "for _ in range(4000): net(torch.ones(1, 2)).sum().backward()\n", steps=4)
    # There is an optimizer that may still step, so patience is longer than four calls.
    assert (record.end, len(record.backwards)) == ("backwards", 64)


def test_a_second_optimizer_is_waited_for() -> None:
    record, _ = forked(
        TRAIN
        + """
other = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(1000):
    step()
    if i % 3 == 0: other.step()
""",
        steps=5,
    )
    assert record.end == "steps"
    assert [sum(step.optimizer == index for step in record.steps) for index in (0, 1)] == [13, 5]


def test_optimizers_made_anew_do_not_keep_it_running() -> None:
    record, _ = forked(
        TRAIN
        + """
for epoch in range(1000):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3): step()
""",
        steps=5,
    )
    assert record.end == "steps"
    assert len(record.steps) <= 50


def test_a_broken_probe_does_not_break_the_script() -> None:
    text = (
        TRAIN
        + """
class Odd(torch.optim.SGD):
    @property
    def param_groups(self):
        if getattr(self, "armed", False) and sys._getframe(1).f_code.co_name == "parameters": raise RuntimeError("odd")
        return self.__dict__["groups"]
    @param_groups.setter
    def param_groups(self, value): self.__dict__["groups"] = value
optimizer = Odd(net.parameters(), lr=0.1)
optimizer.armed = True
for _ in range(30): step()
"""
    )
    record, done = forked(text)
    assert done.returncode == 0, done.stderr
    assert (record.end, len(record.steps)) == ("steps", 20)
    # each is read by itself
    assert [note.partition(": ")[2] for note in record.notes] == ["RuntimeError: odd"] * 3
    assert all(what in " ".join(record.notes) for what in ("the gradients", "the parameters", "the frozen parameters"))


def test_a_record_that_cannot_be_written_does_not_break_the_script(tmp_path) -> None:  # type: ignore[no-untyped-def]
    text = TRAIN + "for _ in range(3): step()\nprint('done')\n"
    records, done = probe_all(text, records=str(tmp_path / "nowhere"))
    assert records == []
    assert (done.stdout, done.returncode) == ("done\n", 0)
    assert plain(text).stderr == done.stderr


@pytest.mark.parametrize(
    "fails",
    [
        "optimizer.step(lambda: 1 / 0)",
        "Broken.apply(net(x)).sum().backward()",
        "print(Loud())",
        "torch.save(Loud(), 'x.pt')",
        "open('no/such/file')",
        "net(x[0, 0, 0])",
        "list(DataLoader([1], batch_size=0))",
    ],
)
def test_frames_of_the_probe_are_hidden(fails: str) -> None:
    script = f"""
import torch
from torch.utils.data import DataLoader
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(2, 3)
class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 1
    @staticmethod
    def backward(ctx, gradient): return gradient / undefined
class Loud:
    def __str__(self): raise ValueError("loud")
    def __reduce__(self): raise ValueError("loud")
net(x).sum().backward()
optimizer.step()
{fails}
"""
    record, done = forked(script, batch=1)
    assert record.error is not None, done.stderr
    assert fails in record.traceback
    assert "verify/probe" not in record.traceback, record.traceback
    assert "_codemod" not in record.traceback
