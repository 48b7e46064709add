"""What the page of attached-loss-total says of its default form, asked of the PyTorch that is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "total_forms.py"


@pytest.mark.skipif(sys.platform == "win32", reason="a form is run in a fork")
def test_default_form_neither_warns_nor_keeps_the_graph() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "0"], capture_output=True, text=True, check=True)
    forms = json.loads(done.stdout)["forms"]
    assert forms["loss.item()"] == {"microseconds": None, "warns": [], "keeps_graph": False}
    assert forms["loss"]["keeps_graph"]
    assert any("Converting a tensor with requires_grad=True" in one for one in forms["float(loss)"]["warns"])
