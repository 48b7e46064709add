"""Tensors of two devices: from what a run told to the fault, and labels of tensors on a machine without a card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.verify.diagnosis.test_faults import run_of
from verify.diagnosis import devices
from verify.diagnosis.evidence import Sources
from verify.measured.values import Trouble


def operand(device: str, name: str = "", near: str = "") -> dict[str, Any]:
    return {
        "argument": "self",
        "device": device,
        "born": ["t.py", 1, "f"] if device == "cpu" else None,
        "names": [{"name": name, "function": "f"}] if name else [],
        "near": [{"name": near, "function": "f"}] if near else [],
    }


MIXED = {"what": "mixed", "site": ["t.py", 2, "f"], "operation": "add_"}


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    (tmp_path / "t.py").write_text("table = torch.ones(4)\ny = x + table\n")
    return Sources(tmp_path)


def test_the_tensor_that_was_left_behind_is_named_and_where_it_should_go(sources: Sources) -> None:
    event = {**MIXED, "operands": [operand("cuda:0", near="x"), operand("cpu", "table")]}
    (fault,) = devices.mixed(run_of(event), sources)
    assert [(clue.role, clue.name) for clue in fault.clues][1:3] == [("carrier", "table"), ("other", "x")]
    assert fault.clues[0].source == "table = torch.ones(4)"
    assert "table.to(x.device)" in fault.remedy
    assert devices.mixed(run_of(), sources) == []
    assert devices.mixed(None, sources) == []


def test_without_names_the_device_is_named(sources: Sources) -> None:
    (fault,) = devices.mixed(run_of({**MIXED, "operands": [operand("cpu"), operand("cuda:0")]}), sources)
    assert "'cuda:0'" in fault.remedy


def test_a_closer_look_is_taken_where_devices_are_spoken_of() -> None:
    message = "Expected all tensors to be on the same device, but found at least two devices"
    other = Trouble("RuntimeError", "no such thing", "other")
    assert not devices.asked(run_of())
    assert not devices.asked(run_of(error=other))
    assert devices.asked(run_of(error=Trouble("RuntimeError", message, "other")))
    assert devices.asked(run_of(devices=("Tensor.cuda()",)))
