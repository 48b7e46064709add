"""What variables hold at the end of a real script, by names that are the same in every run."""

from __future__ import annotations

import sys

from tests.verify.probe.tools import forked, probe

SCRIPT = """
import collections, itertools, random
import numpy, torch
from torch import nn

class Stopper:
    __slots__ = ("bad", "__weakref__")
    def __init__(self):
        self.bad = 0

class Holder:
    def __init__(self):
        self.average = {"weight": torch.ones(3), "step": torch.tensor(7.0)}
        self.stopper = Stopper()
    @property
    def asked(self):
        raise SystemExit("nobody may ask")

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
holder, flags = Holder(), {1, 2}
recent = collections.deque([1.5, 2.5])
array, numbers = numpy.arange(4.0), torch.Generator().manual_seed(4)
by_object = {object(): 3, "plain": 4}
huge, text = 10 ** 400, "text"
by_number, nothing, long = {1: "a", 2: b"b"}, None, "x" * 1000
turns, ahead = itertools.cycle([1.5, 2.5, 3.5]), iter([4, 5, 6])
next(turns), next(ahead)

def train():
    count = 0
    for step in range(50):
        optimizer.zero_grad()
        net(torch.randn(2, 2)).sum().backward()
        optimizer.step()
        count += 2
        holder.stopper.bad = count

train()
"""


def test_numbers_and_tensors_by_name() -> None:
    record, done = probe(SCRIPT, steps=3)
    assert record.notes == []
    assert record.end == "steps", done.stderr
    found = record.variables
    assert found is not None
    # The third step is made, and what follows it is not.
    assert found.numbers["count in train"] == 4
    assert found.numbers["holder.stopper.bad"] == 4
    assert found.numbers["holder.average['step']"] == 7
    assert found.numbers["recent[1]"] == 2.5
    assert found.numbers["by_object[key 0]"] == 3
    assert found.numbers["net.training"] == 1
    assert {"holder.average['weight']", "array", "numbers"} <= set(found.names)
    assert not any(name.startswith(("flags", "huge", "text")) for name in [*found.numbers, *found.names])


def test_texts_sizes_and_how_far_iterators_are() -> None:
    record, _ = forked(SCRIPT, steps=3)
    found = record.variables
    assert found is not None
    assert found.texts["text"] == "text"
    assert found.texts["flags"] == "{1, 2}"
    assert found.texts["list(by_number)"] == "1, 2"
    assert found.texts["by_number[2]"] == "b'b'"
    assert found.texts["nothing"] == "None"
    assert found.texts["long"].startswith("x" * 40 + "... (1000 letters, ")
    assert found.numbers["len(recent)"] == 2
    # The place in a list, and what it goes over.
    assert found.numbers["ahead.<part 1>"] == 1
    assert found.numbers["ahead.<part 0>[2]"] == 6
    if sys.version_info < (3, 12):
        assert found.numbers["turns.<part 0>.<part 1>"] == 1


def test_what_is_set_for_the_whole_process() -> None:
    settings = (
        "import os, signal\n"
        "torch.set_default_dtype(torch.float64)\n"
        "torch.set_num_threads(1)\n"
        "torch.backends.cuda.matmul.allow_tf32 = True\n"
        "torch.autograd.set_detect_anomaly(True)\n"
        "os.environ['MODE'] = 'fast'\n"
        "signal.signal(signal.SIGUSR1, lambda *_: None)\n"
    )
    plain, _ = forked(SCRIPT, steps=3)
    record, _ = forked(SCRIPT.replace("net = nn", f"{settings}net = nn"), steps=3)
    one, other = plain.variables, record.variables
    assert one is not None
    assert other is not None
    assert record.notes == []
    names = one.numbers.keys() & other.numbers.keys() | one.texts.keys() & other.texts.keys()
    differ = {name for name in names if {**one.numbers, **one.texts}[name] != {**other.numbers, **other.texts}[name]}
    assert {
        "torch.get_default_dtype()",
        "torch.set_num_threads",
        "torch.backends.cuda.matmul.allow_tf32",
        "torch.is_anomaly_enabled()",
        "os.environ",
        "the handler of SIGUSR1",
    } <= differ
    assert other.texts["os.environ['MODE']"] == "fast"


def test_without_parameters_nothing_is_read() -> None:
    record, _ = forked(SCRIPT, steps=3, params=False)
    assert record.variables is None
    assert record.notes == []


def test_what_os_exit_leaves_behind() -> None:
    script = SCRIPT + "import os\nos._exit(3)\n"
    record, done = forked(script, steps=None)
    assert (record.end, done.returncode) == ("left", 3)
    assert record.variables is not None
    assert record.variables.numbers["holder.stopper.bad"] == 100
    assert record.state is not None


def test_what_comes_out_of_a_module_is_told() -> None:
    record, done = forked(
        """
        import torch
        from torch import nn
        class Inner(nn.Module):
            def forward(self, x):
                if x.shape[0] > 2:
                    raise ValueError("too many")
        net = nn.Sequential(Inner())
        for count in (1, 2, 3):
            try:
                net(torch.zeros(count, 2))
            except ValueError:
                # While one is handled, a module that returns nothing raises nothing.
                net(torch.zeros(1, 2))
        """,
        steps=None,
    )
    assert done.returncode == 0, done.stderr
    (caught,) = record.caught
    assert (caught.error.type, caught.forward) == ("ValueError", True)
    assert caught.site is not None
    assert caught.site.line == 11


def test_an_error_that_ends_the_program_is_told_once() -> None:
    record, done = forked("import torch\ntorch.nn.Linear(2, 1)(torch.zeros(3, 3))\n", steps=None)
    assert done.returncode == 1
    assert record.error is not None
    assert [each.error[:2] for each in record.caught] == [record.error[:2]]
