"""Worker processes find what one process finds, and end with the process that started them, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codemods.analysis import told
from codemods.analysis.analyse import analyse
from codemods.source.files import read_source
from codemods.source.options import Options
from codemods.source.syntax import plainly_readable
from fixtures import cases

CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


@pytest.mark.slow
@pytest.mark.skipif(not CHILDREN.exists(), reason="asks Linux for the children of a process")
def test_workers_of_a_killed_check_end(tmp_path: Path) -> None:
    case = next(case for case in cases("carried-hidden-state") if "before.py" in case.before)
    for number in range(120):
        (tmp_path / f"part{number}.py").write_bytes(case.before["before.py"])
    command = [sys.executable, "-m", "codemods", "check", ".", "--no-cache", "--jobs", "2"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as check:
        started = time.monotonic()
        workers: list[int] = []
        while len(workers) < 2 and check.poll() is None and time.monotonic() - started < 60:
            workers = children(check.pid)
        assert len(workers) >= 2
        check.send_signal(signal.SIGKILL)
        check.wait()
    started = time.monotonic()
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() - started < 30:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


@pytest.mark.slow
def test_any_number_of_processes_names_the_same_broken_files(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    for number in range(6):
        (tmp_path / f"good{number}.py").write_text("import torch\nloss = torch.ones(1)\nloss.backward()\n")
    for number in range(3):
        (tmp_path / f"bad{number}.py").write_text("import torch\nloss.backward(\n")
    # A file that concerns no rule, in a tree of more than four million characters.
    (tmp_path / "old.py").write_text("x = 1\n" * 700_000 + "print 'x'\n")
    targets = [read_source(path, path.name) for path in sorted(tmp_path.glob("*.py"))]
    skipped = {jobs: analyse(targets, options=Options(), jobs=jobs).skipped for jobs in (1, 2)}
    assert [entry.path for entry in skipped[1]] == ["bad0.py", "bad1.py", "bad2.py", "old.py"]
    assert skipped[1] == skipped[2]


@pytest.mark.parametrize("terms", [500, 4_000])
def test_any_number_of_processes_reads_nesting_as_deep(tmp_path: Path, terms: int) -> None:
    # A simulation leaves room for more calls than the rest of a process has.
    (tmp_path / "pyproject.toml").touch()
    for number in range(30):
        text = "import torch\nfrom long import total\nloss = torch.ones(1) * total\nloss.backward()\n"
        (tmp_path / f"part{number}.py").write_text(text)
    (tmp_path / "long.py").write_text("total = " + " + ".join(["1"] * terms) + "\n")
    targets = [read_source(path, path.name) for path in sorted(tmp_path.glob("*.py"))]
    skipped = {jobs: analyse(targets, options=Options(cache=False), jobs=jobs).skipped for jobs in (1, 2)}
    assert skipped[1] == skipped[2]
    assert len(skipped[1]) == (terms > 3_000 and sys.version_info < (3, 12))


def test_what_a_run_has_parsed_is_not_read_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(told, "plainly_readable", lambda text: asked.append(text) or plainly_readable(text))
    (tmp_path / "pyproject.toml").touch()
    texts = {
        "train.py": "import torch\nimport shared\nloss = torch.ones(1)\nloss.backward()\n",
        "shared.py": "x = 10\n",
        "alone.py": "x = 11\n",
        "bad.py": "import torch\nloss.backward(\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    targets = [read_source(path, path.name) for path in sorted(tmp_path.glob("*.py"))]
    assert [entry.path for entry in analyse(targets, options=Options(), jobs=1).skipped] == ["bad.py"]
    assert texts["train.py"] not in asked
    assert texts["alone.py"] in asked
