"""Noting the lines that make nodes, beside a program that has its own idea of anomaly mode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from verify.probe.doctor.lines import Lines
from verify.probe.graph.nodes import live_tensors
from verify.probe.graph.origins import site
from verify.probe.lines.sites import Tree


@pytest.fixture
def lines() -> Iterator[Lines]:
    lines = Lines(Tree(str(Path(__file__).parent)))
    lines.install()
    yield lines
    lines.remove()
    torch.set_anomaly_enabled(False)


def noted() -> bool:
    return site((torch.ones(1, requires_grad=True) * 2).grad_fn) is not None


def test_a_program_that_switches_the_mode_off_is_noted_still(lines: Lines) -> None:
    torch.autograd.set_detect_anomaly(False)
    assert noted()
    with torch.autograd.set_detect_anomaly(False):
        assert noted()
    assert noted()
    lines.remove()
    assert not torch.is_anomaly_enabled()
    assert not noted()


def test_nodes_that_our_own_look_makes_anew_are_no_news(lines: Lines) -> None:
    made: list[object] = []
    base = torch.ones(2, 2, requires_grad=True) * 1
    views = [base.t(), base.view(4)]
    base.add_(1)
    lines.made = made.append
    live_tensors()
    assert made == []
    # They are those of the program where it asks for them itself.
    base.add_(1)
    made.clear()
    assert views[0].grad_fn is not None
    assert len(made) == 1


def test_what_the_program_asked_for_last_comes_afterwards(lines: Lines) -> None:
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    assert noted()
    lines.remove()
    assert torch.is_anomaly_enabled()
    assert not torch.is_anomaly_check_nan_enabled()
    torch.autograd.set_detect_anomaly(False)
    assert not torch.is_anomaly_enabled()


def test_compiled_code_is_not_the_users_wherever_it_was_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    tree = Tree(str(tmp_path.resolve()))
    assert tree.relative("numpy/random/mtrand.pyx") is None
    assert tree.relative("train.py") == "train.py"
    assert tree.relative(str(tmp_path.resolve() / "train.py")) == "train.py"
