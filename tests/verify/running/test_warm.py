"""Runs that begin with torch imported ahead: what a program can tell of it, and where none begins so."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest

from verify.comparing.compare import compare, unsteady
from verify.measured.results import Difference, Run
from verify.running.runner import Runner
from verify.running.settings import Command, Settings

#: What a process is, as it finds itself before and after it imports torch.
LOOK = """
    import atexit, json, os, signal, sys
    def ours():
        return sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names))
    before = ours()
    depth = 0
    frame = sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    import resource, random
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    found = {
        "modules": before,
        "depth": depth,
        "main": sorted((name, repr(value)[:200]) for name, value in vars(sys.modules["__main__"]).items()
                       if name in ("__name__", "__file__", "__package__", "__cached__", "__doc__", "__annotations__")),
        "spec": str(__spec__ and __spec__.origin),
        "argv": sys.argv,
        "words": sys.orig_argv,
        "path": sys.path,
        "folder": os.getcwd(),
        "environment": {name: value for name, value in os.environ.items() if "CODEMOD" not in name},
        "c": os.popen("env | cut -d= -f1 | grep -v CODEMOD | sort").read(),
        "handles": sorted(name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")),
        "streams": [repr(sys.stdin), repr(sys.stdout), sys.stdout.seekable(), sys.stdout.line_buffering],
        "signals": [repr(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "limits": [resource.getrlimit(getattr(resource, name)) for name in dir(resource)
                   if name.startswith("RLIMIT") and name != "RLIMIT_NPROC"],
        "rights": {name: status[name].strip() for name in status if name.startswith(("Cap", "NoNewPrivs", "Seccomp"))},
        "group": [os.getpid() == os.getsid(0), os.getpid() == os.getpgid(0), status["PPid"].strip()],
        "hashes": hash("text"),
        "random": random.random(),
        "found": repr(__import__("importlib.util").util.find_spec("torch").origin),
    }
    import numpy
    found["numpy"] = ours()
    found["drawn"] = numpy.random.rand()
    import torch.nn as nn
    import torch
    found["torch"] = ours()
    found["spec of torch"] = torch.__spec__.origin, str(type(torch.__spec__.loader)), str(type(torch.__loader__))
    found["numbers"] = torch.rand(3).tolist(), torch.initial_seed(), torch.get_num_threads()
    atexit.register(lambda: print("last words"))
    from multiprocessing.process import ORIGINAL_DIR
    found["origin"] = ORIGINAL_DIR
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        loss = model(torch.ones(3, 2)).sum()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
    found["dynamo"] = "torch._dynamo" in sys.modules
    print(json.dumps(found, default=str))
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks of a process that is there")


def runs(tree: Path, command: Command, count: int = 2, *, ahead: bool = True, **more: bool) -> list[Run]:
    """Runs of the command one after the other; skips where none can begin warm here."""
    with Runner(tree, Settings(device="cpu", steps=3, ahead=ahead)) as runner:
        assert runner._workspace is not None
        if "overlay" not in runner._workspace.sandbox:  # type: ignore[attr-defined]
            pytest.skip("no overlays here")
        return [runner.run(f"run {number}", command, **more) for number in range(count)]


def write(tree: Path, code: str = LOOK, name: str = "train.py") -> Path:
    """A script in the tree."""
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(code))
    return path


def command_of(tree: Path, *words: str) -> Command:
    """The command that runs these words in the tree."""
    return Command((sys.executable, *words), tree, " ".join(words), tree / words[0])


@pytest.mark.parametrize("words", [("train.py", "--rate", "2"), ("-m", "train", "x")])
def test_program_cannot_tell_how_it_began(tmp_path: Path, words: tuple[str, ...]) -> None:
    write(tmp_path)
    cold, warm = runs(tmp_path, command_of(tmp_path, *words))
    assert (cold.warm, warm.warm) == (False, True)
    assert cold.status == warm.status == 0, (cold.output, warm.output)
    told = [json.loads(next(line for line in run.output.splitlines() if line[:1] == "{")) for run in (cold, warm)]
    assert told[0] == told[1]
    assert told[0]["modules"] == told[1]["modules"]
    assert not {"torch", "numpy"}.intersection(told[1]["modules"])
    assert warm.output.splitlines()[-1] == "last words"


def test_both_are_recorded_alike(tmp_path: Path) -> None:
    code = """
        import random, numpy, torch
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(), torch.nn.Linear(4, 1))
        optimizer = torch.optim.Adam(model.parameters())
        data = torch.utils.data.TensorDataset(torch.randn(40, 3), torch.rand(40, 1))
        for epoch in range(3):
            for x, y in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True):
                loss = (model(x) - y).pow(2).mean() * random.random() * numpy.random.rand()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(loss.item())
        torch.save(model.state_dict(), "model.pt")
    """
    write(tmp_path, code)
    cold, warm = runs(tmp_path, command_of(tmp_path, "train.py"))
    assert compare(cold, warm, tolerance=0.0).difference is Difference.IDENTICAL
    assert unsteady(cold, warm) == frozenset()
    assert (cold.outcome, cold.record.end) == (warm.outcome, warm.record.end)


@pytest.mark.parametrize(
    ("old", "new"),
    [("lr=0.1", "lr=0.2"), (".sum()", ".sum() * 1.5"), ("range(8)", "range(7)"), ("rand(3", "randn(3"), ("0.9", "0.8")],
)
def test_a_wrong_change_shows_against_a_run_that_began_from_nothing(tmp_path: Path, old: str, new: str) -> None:
    code = """
        import torch
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for step in range(8):
            loss = model(torch.rand(3, 2)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
    text = write(tmp_path, code).read_text()
    command = command_of(tmp_path, "train.py")
    with Runner(tmp_path, Settings(device="cpu", steps=8)) as runner:
        cold, same = (runner.run(str(number), command) for number in range(2))
        wrong = runner.run("wrong", command, files={"train.py": text.replace(old, new).encode()})
    assert (cold.warm, same.warm, wrong.warm) == (False, True, True)
    assert compare(cold, same, tolerance=0.0).difference is Difference.IDENTICAL
    differs = compare(cold, wrong, tolerance=1e-3).difference is Difference.DIFFERENT
    assert differs or len(wrong.record.steps) < len(cold.record.steps)


def test_arguments_may_differ(tmp_path: Path) -> None:
    write(tmp_path, "import sys, torch; print(sys.argv, sys.orig_argv[1:])")
    with Runner(tmp_path, Settings(device="cpu")) as runner:
        runner.run("first", command_of(tmp_path, "train.py", "--epochs", "1"))
        run = runner.run("second", command_of(tmp_path, "train.py", "--cuda"))
    assert run.output == "['train.py', '--cuda'] ['train.py', '--cuda']\n"


def test_each_sees_the_tree_as_it_is_in_its_run(tmp_path: Path) -> None:
    write(tmp_path, "import torch, os; print(os.path.exists('left')); open('left', 'w')")
    command = command_of(tmp_path, "train.py")
    with Runner(tmp_path, Settings(device="cpu")) as runner:
        outputs = [runner.run(str(number), command).output for number in range(3)]
        changed = runner.run("changed", command, files={"train.py": b"print('another')"})
    assert outputs == ["False\n"] * 3
    assert changed.output == "another\n"
    assert not (tmp_path / "left").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("queue.py", ""),
        ("numpy/__init__.py", ""),
        ("deep/down/typing_extensions.py", ""),
        ("other.py", "import os\nos.environ['OMP_NUM_THREADS'] = '1'\n"),
        ("other.py", "import sys\nsys.modules['numpy'] = None\n"),
        ("other.py", "import warnings\nwarnings.simplefilter('error')\n"),
    ],
)
def test_what_an_import_could_notice_begins_anew(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path, "import torch")
    write(tmp_path, text, name)
    assert [run.warm for run in runs(tmp_path, command_of(tmp_path, "train.py"))] == [False, False]


@pytest.mark.parametrize("words", [("-m", "torch.distributed.run", "train.py"), ("-u", "train.py")])
def test_launchers_and_options_of_python_begin_anew(tmp_path: Path, words: tuple[str, ...]) -> None:
    write(tmp_path, "print('here')")
    assert not any(run.warm for run in runs(tmp_path, command_of(tmp_path, *words)))


def test_notebooks_begin_anew(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": ["import torch\n", "print('here')\n"], "metadata": {}, "outputs": []}
    notebook = {"cells": [{**cell, "execution_count": None}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "train.ipynb").write_text(json.dumps(notebook))
    made = runs(tmp_path, command_of(tmp_path, "train.ipynb"))
    assert [(run.warm, run.status, run.output.strip()) for run in made] == [(False, 0, "here")] * 2


def test_one_that_shall_begin_anew_does(tmp_path: Path) -> None:
    write(tmp_path, "import torch")
    assert not any(run.warm for run in runs(tmp_path, command_of(tmp_path, "train.py"), anew=True))


def test_packages_of_others_are_imported_by_runs_alone(tmp_path: Path) -> None:
    write(tmp_path, "import torch")
    assert not any(run.warm for run in runs(tmp_path, command_of(tmp_path, "train.py"), ahead=False))


def test_nothing_of_the_tree_is_executed_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, proof = tmp_path / "tree", tmp_path / "executed"
    bad = f"open({str(proof)!r}, 'w').write('outside')\n"
    for name in ("sitecustomize.py", "usercustomize.py", "torch/__init__.py", "numpy.py", "library/torch/__init__.py"):
        write(tree, bad, name)
    write(tree, bad)
    monkeypatch.setenv("PYTHONPATH", str(tree / "library"))
    runs(tree, command_of(tree, "train.py"), count=3)
    assert not proof.exists()


@pytest.mark.parametrize("ignoring", ["-I", "-E", "-S"])
def test_an_interpreter_that_does_not_heed_its_environment_executes_nothing_outside(
    tmp_path: Path, ignoring: str
) -> None:
    tree, proof, python = tmp_path / "tree", tmp_path / "executed", tmp_path / "python"
    write(tree, f"open({str(proof)!r}, 'a').write('ran')\nprint('ran')\n")
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {ignoring} "$@"\n')
    python.chmod(0o755)
    with Runner(tree, Settings(device="cpu", python=str(python))) as runner:
        command = Command((str(python), "train.py"), tree, "train.py", tree / "train.py")
        made = [runner.run(str(number), command) for number in range(2)]
    assert [run.warm for run in made] == [False, False]
    assert "ran" in made[0].output
    assert not proof.exists()


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed modules beside the interpreter's own."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


IMPORTS = """
    import os, sys
    import slow
    import slow.inner
    print(slow.MADE == os.getpid(), slow.inner.__name__ in sys.modules, slow.__spec__.origin)
    import torch
"""


def test_what_a_run_imported_is_imported_ahead_of_the_next(tmp_path: Path, library: Path) -> None:
    tree = tmp_path / "tree"
    write(library, "import os\nMADE = os.getpid()\n", "slow/__init__.py")
    write(library, "", "slow/inner.py")
    write(tree, IMPORTS)
    cold, warm, another = runs(tree, command_of(tree, "train.py"), count=3)
    assert (cold.warm, warm.warm, another.warm) == (False, True, True)
    assert cold.output.startswith("True True "), cold.output
    assert warm.output == another.output == cold.output.replace("True", "False", 1)


@pytest.mark.parametrize(
    "why",
    [
        "print('welcome')",
        "import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "import os; assert 'CODEMOD_PROBE' in os.environ",
    ],
)
def test_what_an_import_does_besides_every_run_does(tmp_path: Path, library: Path, why: str) -> None:
    tree = tmp_path / "tree"
    write(library, "import os\nMADE = os.getpid()\n", "first/__init__.py")
    write(library, f"import os\nMADE = os.getpid()\n{why}\n", "slow/__init__.py")
    write(library, "", "slow/inner.py")
    write(tree, "    import first\n" + IMPORTS + "    print(first.MADE == os.getpid())\n    os._exit(0)\n")
    cold, warm = runs(tree, command_of(tree, "train.py"))
    assert (cold.warm, warm.warm) == (False, True)
    # Up to there it is ahead.
    assert warm.output.splitlines()[:-1] == cold.output.splitlines()[:-1]
    assert (cold.output.splitlines()[-1], warm.output.splitlines()[-1]) == ("True", "False")


def test_what_may_depend_on_a_variable_is_imported_by_every_run(tmp_path: Path, library: Path) -> None:
    tree = tmp_path / "tree"
    write(library, "import os\nMADE = os.getpid()\nMODE = os.environ.get('MODE')\n", "slow/__init__.py")
    write(library, "", "slow/inner.py")
    write(tree, "    import os\n    os.environ['MODE'] = 'fast'\n" + IMPORTS + "    print(slow.MODE)\n")
    cold, warm = runs(tree, command_of(tree, "train.py"))
    assert warm.warm
    assert warm.output == cold.output
    assert warm.output.endswith("fast\n")
