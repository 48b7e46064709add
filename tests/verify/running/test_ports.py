"""A port that another program holds for a moment is no fault of the one that wants it."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from tests.verify.zygote import ForkedPlace
from verify.measured.results import Run
from verify.running import runner as module
from verify.running.runner import Runner
from verify.running.settings import Settings, script_command

pytestmark = pytest.mark.slow

SCRIPT = """
import socket
import torch
server = socket.create_server(("127.0.0.1", {port}))
net = torch.nn.Linear(2, 1)
net(torch.ones(1, 2)).sum().backward()
"""


def ran(folder: Path, text: str) -> Run:
    (folder / "train.py").write_text(text)
    settings = Settings()
    with Runner(folder, settings, place=ForkedPlace) as runner:
        return runner.run("original", script_command("train.py", [], settings.python))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "_PAUSES", (2.0, 2.0))
    return tmp_path


def test_it_runs_again_once_the_port_is_free(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closing = threading.Timer(1.0, taken.close)
        closing.start()
        run = ran(folder, SCRIPT.format(port=taken.getsockname()[1]))
        closing.join()
    assert run.error is None
    assert len(run.record.backwards) == 1


def test_a_port_that_stays_taken_is_told(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = ran(folder, SCRIPT.format(port=taken.getsockname()[1]))
    assert run.error is not None
    assert "in use" in run.error.message


def test_other_errors_run_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Run] = []
    real = module._port_is_taken
    monkeypatch.setattr(module, "_port_is_taken", lambda run: asked.append(run) or real(run))
    run = ran(folder, SCRIPT.format(port=0) + "raise OSError('address')\n")
    assert len(asked) == 1
    assert run.error is not None
    assert run.error.message == "address"
