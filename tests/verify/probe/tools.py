"""Starts real scripts under the real probe and reads what it wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import verify
from tests.verify.zygote import fork
from verify.measured.reading import read_records
from verify.measured.records import Record

BOOT = Path(verify.__file__).parent / "probe" / "boot"
SCENARIOS = Path(__file__).parents[1] / "scenarios"

#: What the runner would write; seeds, threads and algorithms are left alone unless a test is about them.
DEFAULTS: dict[str, Any] = {
    "steps": 20,
    "seed": None,
    "threads": None,
    "deterministic": False,
    "device": "auto",
    "memory_limit": None,
    "replay": None,
    "watch": [],
    "batches": None,
    "watchdog": None,
    "stand_ins": [],
    "data": False,
    "params": True,
}

Finished = subprocess.CompletedProcess[str]


def probe(script: str | Path, *args: str, **config: Any) -> tuple[Record, Finished]:
    """Run ``script`` (a path, or the text of one) with ``args`` in a real child under the probe.

    ``config`` overrides DEFAULTS. Returns the first record, the main process's, and the finished child; fails where
    there is no record.
    """
    records, done = probe_all(script, *args, **config)
    assert records, f"no record was written\n{done.stdout}\n{done.stderr}"
    return records[0], done


def probe_all(script: str | Path, *args: str, **config: Any) -> tuple[list[Record], Finished]:
    """As :func:`probe`, with the records of all processes."""
    with tempfile.TemporaryDirectory() as folder:
        path = _script(script, Path(folder))
        return probe_command([sys.executable, str(path), *args], path.parent, Path(folder), **config)


def forked(script: str | Path, *args: str, **config: Any) -> tuple[Record, Finished]:
    """As :func:`probe`, in a process that has torch already: for tests of what the probe does once torch is there."""
    with tempfile.TemporaryDirectory() as folder:
        path = _script(script, Path(folder))
        command = [sys.executable, str(path), *args]
        records, done = probe_command(command, path.parent, Path(folder), start=_fork, **config)
    assert records, f"no record was written\n{done.stdout}\n{done.stderr}"
    return records[0], done


def forked_plain(script: str | Path, *args: str) -> Finished:
    """As :func:`plain`, in a process that has torch already."""
    with tempfile.TemporaryDirectory() as folder:
        path = _script(script, Path(folder))
        return _fork([sys.executable, str(path), *args], path.parent, {**_environment(), "PYTHONPATH": str(BOOT)})


def probe_command(
    command: list[str],
    cwd: Path,
    folder: Path,
    environment: dict[str, str] | None = None,
    start: Callable[[list[str], Path, dict[str, str]], Finished] | None = None,
    **config: Any,
) -> tuple[list[Record], Finished]:
    """Run ``command`` in ``cwd``, the user's tree, under the probe; ``folder`` is for the record."""
    records = folder / "records"
    records.mkdir()
    watch = config.get("watch")
    if isinstance(watch, dict):
        # Each line for itself.
        config["watch"] = [[[path, line]] for path, lines in watch.items() for line in lines]
    file = folder / "probe.json"
    file.write_text(json.dumps({**DEFAULTS, "records": str(records), "root": os.path.realpath(cwd), **config}))
    environment = {**_environment(), **(environment or {})}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(BOOT), environment.get("PYTHONPATH", "")]))
    environment["CODEMOD_PROBE"] = str(file)
    done = (start or _start)(command, cwd, environment)
    return read_records(records), done


def plain(script: str | Path, *args: str) -> Finished:
    """Run ``script`` as :func:`probe` does, without the probe."""
    with tempfile.TemporaryDirectory() as folder:
        path = _script(script, Path(folder))
        return _start([sys.executable, str(path), *args], path.parent, _environment())


def _start(command: list[str], cwd: Path, environment: dict[str, str]) -> Finished:
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)


def _fork(command: list[str], cwd: Path, environment: dict[str, str]) -> Finished:
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        status = fork(command, cwd, environment, output, errors, seconds=120)
        return Finished(command, status, output.read_text(), errors.read_text())


def _script(script: str | Path, folder: Path) -> Path:
    if isinstance(script, Path):
        return script.resolve()
    tree = folder / "tree"
    tree.mkdir()
    path = tree / "train.py"
    path.write_text(textwrap.dedent(script))
    return path


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CODEMOD_", "PYTHON", "COV_"))}
    # Test processes share few cores; one thread each also makes sums come out the same in every run.
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
