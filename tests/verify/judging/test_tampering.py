"""Programs that change what the probe writes of them: whatever they forge, nothing of theirs is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.verify.zygote import ForkedPlace
from verify.measured.results import Verdict, Verification
from verify.running.against import HandRewriter
from verify.running.settings import Settings, script_command
from verify.verification import verify

pytestmark = pytest.mark.slow

SCRIPT = """\
import glob
import json
import os
import torch
from torch import nn

CONFIG = json.load(open(os.environ["CODEMOD_PROBE"]))
FOLDER = CONFIG["records"]
torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
(mine,) = glob.glob(FOLDER + "/main-*.jsonl")
pass
"""

FORGERIES = {
    "lines of its own": "open(mine, 'a').write(json.dumps({'event': 'end', 'reason': 'completed'}) + '\\n')",
    "steps that were not made": (
        "text = open(mine).read().splitlines()\n"
        "open(mine, 'a').write([line for line in text if '\"step\"' in line][-1] + '\\n')"
    ),
    "steps taken away": (
        "text = open(mine).read().splitlines(True)\n"
        "open(mine, 'w').write(''.join(line for line in text if '\"step\"' not in line))"
    ),
    "nothing left": "os.truncate(mine, 0)",
    "no file": "os.unlink(mine); os._exit(0)",
    "another file": "os.unlink(mine); os.symlink('/etc/passwd', mine); os._exit(0)",
    "a pipe": "os.mkfifo(FOLDER + '/rank-1.jsonl')",
    "a folder elsewhere": "os.rename(FOLDER, FOLDER + '-old'); os.symlink(FOLDER + '-old', FOLDER)",
    "events that are none": 'open(mine, \'a\').write(\'{"event": "step", "n": "x"}\\n\')',
    "another process that trains": (
        "open(FOLDER + '/rank-1.jsonl', 'w').write('{\"event\": \"backward\", \"losses\": 3}\\n')"
    ),
}


def judged(folder: Path, text: str) -> Verification:
    (folder / "train.py").write_text(SCRIPT)
    (folder / "changed.py").write_text(text)
    settings = Settings(timeout=20.0, reach=0.0)
    command = script_command("train.py", (), settings.python)
    by_hand = HandRewriter(folder / "changed.py", Promise.EXACT, root=folder, script=command.script)
    return verify(
        [command], options=Options(), settings=settings, tree=folder, rewriter=by_hand, jobs=1, place=ForkedPlace
    )


def test_who_forges_nothing_is_kept(folder: Path) -> None:
    (rewrite,) = judged(folder, SCRIPT.replace("pass", "print('the end')")).rewrites
    assert rewrite.verdict is Verdict.KEPT, rewrite.why


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("wrong", ["lr=0.1", "lr=0.2"])
def test_who_forges_is_not(folder: Path, forgery: str, wrong: str) -> None:
    report = judged(folder, SCRIPT.replace("lr=0.1", wrong).replace("pass", FORGERIES[forgery]))
    verdicts = [(rewrite.verdict, rewrite.why) for rewrite in report.rewrites]
    assert all(verdict in (Verdict.NOT_JUDGED, Verdict.BROKEN) for verdict, _ in verdicts), verdicts
    assert "root:" not in str(report)
