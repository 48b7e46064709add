"""Which watched lines ran."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.verify.probe.tools import forked, plain, probe, probe_all

pytestmark = pytest.mark.slow

BRANCHES = """
import sys
def run(flag):
    if flag:
        x = 1
    else:
        x = 2
    return [y
            for y in range(x)]
class Late:
    def method(self):
        yield 1
        yield 2
print(run(True), next(Late().method()), sys.gettrace())
"""


def test_lines_that_ran_and_lines_that_did_not() -> None:
    record, done = probe(BRANCHES, watch={"train.py": [3, 5, 7, 9, 12, 13, 99], "other.py": [1]})
    assert record.reached == {("train.py", line) for line in (3, 5, 9, 12)}
    assert done.stdout == plain(BRANCHES).stdout


def test_threads_and_functions_called_from_torch() -> None:
    record, done = forked(
        """
        import threading, torch
        class Net(torch.nn.Module):
            def forward(self, x):
                return x * 2
        def hook(grad):
            return grad * 3
        def work():
            x = torch.ones(1, requires_grad=True)
            x.register_hook(hook)
            Net()(x).sum().backward()
            print(x.grad)
        thread = threading.Thread(target=work)
        thread.start(); thread.join()
        """,
        watch={"train.py": [5, 7, 11]},
    )
    assert done.stdout == "tensor([6.])\n", done.stderr
    assert record.reached == {("train.py", line) for line in (5, 7, 11)}


def test_lines_that_only_workers_run() -> None:
    record, done = forked(
        """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Data(Dataset):
            def __len__(self):
                return 8
            def __getitem__(self, index):
                scale = 2.0 if index < 20 else 0.5
                return torch.ones(3) * scale

        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for x in DataLoader(Data(), batch_size=2, num_workers=2):
            optimizer.zero_grad()
            net(x).sum().backward()
            optimizer.step()
        """,
        watch={"train.py": [9, 10]},
    )
    assert done.returncode == 0, done.stderr
    assert record.reached == {("train.py", 9), ("train.py", 10)}
    assert len(record.steps) == 4


def test_lines_in_a_forked_trainer() -> None:
    records, _ = probe_all(
        """
        import os, torch
        w = torch.ones(1, requires_grad=True)
        pid = os.fork()
        if pid == 0:
            (w * 2).sum().backward()
            w.grad.item()
            os._exit(0)
        os.waitpid(pid, 0)
        """,
        watch={"train.py": [3, 7]},
    )
    assert [(record.process, record.reached) for record in records] == [
        ("main", {("train.py", 3)}),
        ("child", {("train.py", 7)}),
    ]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="a trace function of the script does not get in the way there")
def test_a_trace_function_of_the_script_wins() -> None:
    text = """
        import sys
        seen = []
        def trace(frame, event, arg):
            if frame.f_code.co_name == "traced": seen.append(event)
            return trace
        def traced():
            return 1
        sys.settrace(trace)
        traced()
        assert sys.gettrace() is trace
        sys.settrace(None)
        print(seen, sys.gettrace())
        """
    record, done = probe(text, watch={"train.py": [3, 8, 99]})
    assert done.stdout == plain(text).stdout
    assert record.reached == {("train.py", 3)}
    assert any("trace function" in note for note in record.notes)


def test_paths_outside_the_tree_are_nobodys_lines(tmp_path: Path) -> None:
    from verify.probe.lines.sites import Tree

    (tmp_path / "pkg" / "site-packages").mkdir(parents=True)
    tree = Tree(str(tmp_path.resolve()))
    assert tree.relative(str(tmp_path / "pkg" / "a.py")) == "pkg/a.py"
    assert tree.relative(str(tmp_path / "pkg" / "site-packages" / "a.py")) is None
    assert tree.relative(str(tmp_path.parent / "a.py")) is None
    assert tree.relative("<string>") is None
    assert tree.relative("") is None


GROUPS = """
    import torch
    w = torch.nn.Parameter(torch.ones(3))
    opt = torch.optim.SGD([w], lr=0.1)
    def step():
        opt.zero_grad()
        w.sum().backward()
        opt.step()
    for i in range(200):
        step()
        if i == 40:
            late = 1
        if i > 1000:
            never = 1
    """


def test_of_a_group_one_line_is_enough() -> None:
    record, _ = forked(GROUPS, watch=[[["train.py", 6], ["train.py", 14]]])
    assert record.reached == {("train.py", 6)}
    assert len(record.steps) == 20


def test_a_run_goes_on_until_each_group_has_run() -> None:
    # A real start: what is not watched while torch is imported, by the script and by its optimizer, is watched again.
    record, _ = probe(GROUPS, watch=[[["train.py", 3]], [["train.py", 6]], [["train.py", 12]]])
    assert record.reached == {("train.py", 3), ("train.py", 6), ("train.py", 12)}
    assert len(record.steps) == 42


def test_it_does_not_wait_for_ever() -> None:
    record, _ = forked(GROUPS, watch=[[["train.py", 14]]])
    assert record.reached == set()
    assert len(record.steps) == 100


def test_the_files_that_were_loaded_are_told(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").touch()
    (tmp_path / "pkg" / "net.py").write_text("import torch\n")
    (tmp_path / "unused.py").touch()
    (tmp_path / "main.py").write_text("import pkg.net\n")
    record, _ = probe(tmp_path / "main.py")
    assert record.loaded == ("main.py", "pkg/__init__.py", "pkg/net.py")


COMPILED = """\
import torch
def inner(x):
    if x.shape[0] > 3:
        return x * 2
    return x * 3
def left(x):
    return x.sin()
def right(x):
    return x.cos()
def outer(x):
    y = inner(x)
    print("a break")
    z = y + 1
    return torch.cond(z.sum() > 0, left, right, (z,))
def never(x):
    return x
compiled = torch.compile(outer, backend="eager")
weight = torch.ones(2, requires_grad=True)
compiled(weight).sum().backward()
print(torch.compile(never, backend="eager") is None)
"""


def test_lines_of_a_compiled_function() -> None:
    """Those that its graphs have; of both sides that a graph may take, none is known to run."""
    record, done = probe(COMPILED, watch={"train.py": [3, 4, 5, 7, 9, 11, 13, 14, 16, 20]})
    assert done.returncode == 0, done.stderr
    assert record.reached == {("train.py", line) for line in (3, 5, 11, 13, 14, 20)}
