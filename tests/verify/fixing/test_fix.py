"""From the error to the diff, on programs that run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from codemods.source.options import Options
from tests.verify.diagnosis.scripts import SCRIPTS
from tests.verify.zygote import ForkedPlace
from verify.fixing import report
from verify.fixing.fix import Fixed, Fixer
from verify.running.settings import Command, Settings

pytestmark = pytest.mark.slow


def fixed(text: str, folder: Path) -> Fixed:
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(text, encoding="utf-8")
    command = Command((sys.executable, "train.py"), folder, "train.py", folder / "train.py")
    return Fixer(command, folder, settings=Settings(), options=Options(), place=ForkedPlace).fix()


@pytest.mark.parametrize(
    ("name", "added"),
    [
        ("a state on self, of a module that owns it", "self.state = tuple(part.detach() for part in self.state)"),
        ("two heads on one trunk", "first.backward(retain_graph=True)"),
        ("a meter of an object in a dictionary", 'self.meters["loss"].history.append(float(loss))'),
    ],
)
def test_a_fault_becomes_a_proved_diff(name: str, added: str, tmp_path: Path) -> None:
    result = fixed(SCRIPTS[name].text, tmp_path)
    assert result.status == 0
    (repair,) = result.repairs
    assert repair.proof
    assert any(line.startswith("+") and added in line for line in repair.diff.splitlines())
    assert (tmp_path / "train.py").read_text() == SCRIPTS[name].text
    assert "nothing is wrong any more" in report.text(result, written=False)
    assert json.loads(report.as_json(result, written=False))["repairs"][0]["proof"]


def test_a_change_that_keeps_parameters_from_learning_is_no_repair(tmp_path: Path) -> None:
    # With the step behind both backwards the gradients of the two losses cancel each other out.
    result = fixed(SCRIPTS["a discriminator that steps before the generator's backward"].text, tmp_path)
    assert (result.status, result.repairs, result.files) == (1, (), {})
    assert "no longer learn" in result.refused[0].why
    assert "tried in vain" in report.text(result, written=False)


def test_a_program_without_faults_is_left_alone(tmp_path: Path) -> None:
    result = fixed(SCRIPTS["an ordinary training"].text, tmp_path)
    assert (result.status, result.repairs, result.refused) == (0, (), ())


def test_a_program_that_cannot_be_run_is_not_touched(tmp_path: Path) -> None:
    result = fixed("import torch\nprint(undefined)\n", tmp_path)
    assert (result.status, result.repairs) == (3, ())
    assert "NameError" in report.text(result, written=False)
