"""What a script prints, raises and writes of secrets, and what of it comes into reports."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from verify.measured.results import Entry, Verification
from verify.reports import FORMATS, render
from verify.running.runner import Runner
from verify.running.settings import Settings, entry_command

SCRIPT = """
import os, sys, torch, base64
value = os.environ.get("MY_SERVICE_TOKEN", "absent")
print("token", value, base64.b64encode(value.encode()).decode(), 7)
print("unnamed", os.environ.get("OTHER_API_KEY", "absent"))
w = torch.nn.Linear(2, 1)
o = torch.optim.SGD(w.parameters(), lr=0.1)
w(torch.ones(1, 2)).sum().backward()
o.step()
raise ValueError("no access with " + value + sys.argv[1])
"""


@pytest.mark.slow
def test_values_of_secrets_are_in_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "sup3r-s3cret")
    monkeypatch.setenv("OTHER_API_KEY", "0ther-s3cret")
    (tmp_path / "train.py").write_text(SCRIPT)
    settings = Settings(environment={"MY_SERVICE_TOKEN": "sup3r-s3cret"})
    with Runner(tmp_path, settings) as runner:
        run = runner.run("original", entry_command("train.py --key=0ther-s3cret", sys.executable, tmp_path))
    assert run.output.startswith("token [MY_SERVICE_TOKEN is masked] [MY_SERVICE_TOKEN is masked] 7\nunnamed absent\n")
    assert run.error is not None
    assert run.error.message == "no access with [MY_SERVICE_TOKEN is masked]--key=[OTHER_API_KEY is masked]"
    assert len(run.record.steps) == 1
    entry = Entry(run.command, run, None, None, None, None, ())
    made = Verification(str(tmp_path), (entry,), (), "", "", False, "it raises", (), settings.told())
    for form in FORMATS:
        text = render(made, form)
        assert "sup3r" not in text
        assert "0ther" not in text
