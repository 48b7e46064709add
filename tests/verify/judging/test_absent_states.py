"""Where weights are not there, what asks for them and what loads them is compared: it leaves no other trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.verify.zygote import ForkedPlace
from verify.measured.results import Verdict
from verify.running.against import HandRewriter
from verify.running.settings import Settings, script_command
from verify.verification import verify

pytestmark = pytest.mark.slow

PROGRAM = """\
import torch
from torch import nn

torch.manual_seed(0)
net, other = nn.Linear(4, 2), nn.Linear(4, 2)
saved = torch.load("weights/best.pth")
net.load_state_dict(saved["net"])
net.eval()
with torch.no_grad():
    for _ in range(6):
        print(float(net(torch.ones(3, 4)).sum()))
"""


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ('"weights/best.pth"', '"weights/last.pth"', False),
        ('net.load_state_dict(saved["net"])\n', "", False),
        ('saved["net"]', 'saved["ema"]', False),
        ("net.load_state_dict", "other.load_state_dict", False),
        ('"weights/best.pth"', '"weights/" + "best.pth"', True),
        ('net.load_state_dict(saved["net"])', 'weights = saved["net"]\nnet.load_state_dict(weights)', True),
    ],
)
def test_another_state_is_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, kept: bool
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "evaluate.py").write_text(PROGRAM)
    (tmp_path / "new.py").write_text(PROGRAM.replace(old, new))
    monkeypatch.chdir(tmp_path)
    settings = Settings(timeout=120)
    command = script_command("evaluate.py", (), settings.python)
    by_hand = HandRewriter(tmp_path / "new.py", Promise.EXACT, root=tmp_path, script=command.script)
    done = verify(
        [command], options=Options(), settings=settings, tree=tmp_path, rewriter=by_hand, jobs=1, place=ForkedPlace
    )
    (rewrite,) = done.rewrites
    assert (rewrite.verdict is Verdict.KEPT) is kept, (rewrite.verdict, rewrite.why)
