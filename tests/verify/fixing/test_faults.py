"""From a fault to the change that a careful person would make: what it computes is what theirs does."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from codemods.source.options import Options
from tests.verify.diagnosis.test_scripts import marked
from tests.verify.fixing import handed_on, reported, unusual  # noqa: F401 - they add programs
from tests.verify.fixing.faults import FAULTS, Faulty
from tests.verify.zygote import ForkedPlace, fork
from verify.fixing.fix import Fixer
from verify.running.runner import BOOT
from verify.running.settings import Command, Settings

pytestmark = pytest.mark.slow

_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def printed(text: str, folder: Path) -> list[float]:
    """The numbers that a program prints."""
    output = folder / "output"
    (folder / "plain.py").write_text(text, encoding="utf-8")
    status = fork([sys.executable, "plain.py"], folder, {**os.environ, "PYTHONPATH": str(BOOT)}, output, output)
    assert status == 0, output.read_text()
    return [float(number) for number in _NUMBER.findall(output.read_text())]


def by_hand(faulty: Faulty) -> str:
    text = faulty.text
    for old, new in faulty.hand:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_is_named_and_mended_as_by_hand(name: str, tmp_path: Path) -> None:
    faulty = FAULTS[name]
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(faulty.text, encoding="utf-8")
    command = Command((sys.executable, "train.py"), tmp_path, "train.py", tmp_path / "train.py")
    fixed = Fixer(command, tmp_path, settings=Settings(), options=Options(), place=ForkedPlace).fix()
    (fault,) = fixed.before.faults
    assert fault.kind.value == faulty.kind
    for role in ("cause", "consumer", "freed_by", "saved_by"):
        if wanted := marked(faulty.text, role):
            lines = [clue.site.line for clue in fault.clues if clue.role == role.replace("_", " ") and clue.site]
            assert lines, role
            assert lines[0] in wanted, role
    if faulty.names:
        assert {clue.name for clue in fault.clues if clue.role in ("carrier", "parameters")} & set(faulty.names)
    assert (fixed.status, len(fixed.repairs)) == (0, 1)
    assert fixed.repairs[0].proof
    if faulty.hand:
        numbers = printed(fixed.files["train.py"].decode(), tmp_path)
        assert numbers
        assert numbers == pytest.approx(printed(by_hand(faulty), tmp_path), rel=1e-5)
