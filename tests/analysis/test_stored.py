"""What earlier processes have seen: the same result as from nothing, and less work."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from codemods.analysis import workers
from codemods.analysis.analyse import Analysis, analyse
from codemods.source.cache import FOLDER
from codemods.source.discovery import discover
from codemods.source.files import display_path, read_source
from codemods.source.options import Options
from tests.commands import codemod

MODEL = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.head(x)
"""
TRAIN = """\
import torch
from model import Net
from tools import {helper}

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0
for x in {loader}:
    loss = net(x).mean()
    opt.zero_grad()
    loss.backward({flag})
    opt.step()
    total += {helper}(loss)
print(total)
"""
TOOLS = "def number(loss):\n    return loss{}\n\n\ndef same(loss):\n    return loss\n"
EVALUATE = """\
def evaluate(net, loader):
    net.eval()
    return [net(x).argmax(1) for x in loader]
"""
GUARDED = """\
import torch
from model import Net
from evaluate import evaluate

with torch.no_grad():
    evaluate(Net(), [])
"""

WAYS = {
    "model.py": [MODEL, MODEL.replace("(x)\n", "(x).detach()\n"), MODEL + "\n# a comment\n", None],
    "train.py": [
        TRAIN.format(helper=helper, loader=loader, flag=flag)
        for helper in ("number", "same")
        for loader in ("range(3)", "torch.ones(3, 4)")
        for flag in ("", "retain_graph=True")
    ],
    "tools.py": [TOOLS.format(""), TOOLS.format(".item()"), TOOLS.format(".data[0]"), "def number(:\n", None],
    "evaluate.py": [EVALUATE, EVALUATE.replace("def", "import torch\n\n\n@torch.no_grad()\ndef"), None],
    "main.py": [GUARDED, GUARDED.replace("torch.no_grad()", "open('x')"), None],
    "tools/__init__.py": [None, None, "from .inner import number\nsame = number\n"],
    "tools/inner.py": [None, TOOLS.format(".data"), TOOLS.format("")],
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "setup.cfg").write_text("")
    monkeypatch.chdir(root)
    for path, texts in WAYS.items():
        put(path, texts[0])
    return root


def put(path: str, text: str | None) -> None:
    if text is None:
        Path(path).unlink(missing_ok=True)
    else:
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)


def seen(*, cache: bool, **options: object) -> Analysis:
    """What a process sees that knows nothing."""
    workers._memory.clear()
    targets = [read_source(path, display_path(path)) for path in discover(["."]).files]
    return analyse(targets, options=Options(cache=cache, **options), jobs=1)  # type: ignore[arg-type]


def test_random_edits_give_what_a_run_from_nothing_gives(tree: Path) -> None:
    chance = random.Random(15)
    found = set()
    for _ in range(24):
        for path in chance.sample(sorted(WAYS), chance.choice((0, 1, 2, 3))):
            put(path, chance.choice(WAYS[path]))
        kept = seen(cache=True)
        assert kept == seen(cache=False)
        found.add(repr((kept.findings, kept.skipped)))
    assert len(found) > 3, len(found)


def test_only_what_depends_on_a_change_is_run(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    run_job = workers.run_job

    def noting(project, rules, job):  # type: ignore[no-untyped-def]
        ran.append(job.relative)
        return run_job(project, rules, job)

    monkeypatch.setattr(workers, "run_job", noting)
    seen(cache=True)
    assert "train.py" in ran
    ran.clear()
    seen(cache=True)
    assert ran == []
    put("evaluate.py", EVALUATE + "\n")
    seen(cache=True)
    assert "main.py" in ran
    assert "train.py" not in ran
    ran.clear()
    seen(cache=True, select=("surplus-retain-graph",))
    assert "train.py" in ran


REGISTRY = "NETS = {}\n\n\ndef register(cls):\n    NETS[cls.__name__] = cls\n    return cls\n"
REGISTERED = "import table\n" + MODEL.replace("class Net", "@table.register\nclass Net")
TRAIN_REGISTERED = """\
import torch
import nets
from table import NETS

net = NETS["Net"]()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in range(3):
    opt.zero_grad()
    net(torch.ones(2, 4)).mean().backward(retain_graph=True)
    opt.step()
"""


def test_a_file_that_was_passed_over_is_asked_again(tree: Path) -> None:
    put("table.py", REGISTRY)
    put("nets.py", MODEL)
    put("train.py", TRAIN_REGISTERED)
    first = seen(cache=True)
    assert first == seen(cache=False)
    put("nets.py", REGISTERED)
    kept = seen(cache=True)
    assert kept.findings != first.findings
    assert kept == seen(cache=False)


def test_a_mended_file_is_no_longer_broken(tree: Path) -> None:
    put("tools.py", "def number(:\n")
    assert [entry.path for entry in seen(cache=True).skipped] == ["tools.py"]
    put("tools.py", TOOLS.format(""))
    assert seen(cache=True).skipped == []


def test_nothing_is_kept_unasked_or_for_texts_that_are_not_written(tree: Path) -> None:
    seen(cache=False)
    targets = [read_source(Path("train.py").absolute(), "train.py")]
    analyse(targets, options=Options(cache=True), jobs=1, overlay={"tools.py": TOOLS.format(".data")})
    assert not (tree / FOLDER).exists()


def test_options_and_rules_have_results_of_their_own(tree: Path) -> None:
    put("train.py", TRAIN.format(helper="same", loader="range(3)", flag="retain_graph=True"))
    every = seen(cache=True).findings
    alone = seen(cache=True, select=("surplus-retain-graph",)).findings
    assert {f.rule for f in alone} == {"surplus-retain-graph"} < {f.rule for f in every}
    assert seen(cache=True).findings == every


def test_the_command_keeps_and_cleans(tree: Path) -> None:
    put("train.py", TRAIN.format(helper="same", loader="range(3)", flag="retain_graph=True"))
    workers._memory.clear()
    told = [codemod("check", ".", "--format", "json", *more) for more in (("--no-cache",), (), (), ("--jobs", "2"))]
    assert len({json.dumps(json.loads(ran.stdout)["findings"]) for ran in told}) == 1
    assert (tree / FOLDER).is_dir()
    cleaned = codemod("clean")
    assert (cleaned.status, cleaned.stdout) == (0, f"removed {os.path.realpath(tree / FOLDER)}\n")
    assert not (tree / FOLDER).exists()
    assert codemod("clean").stdout == ""
    codemod("check", ".", "--no-cache")
    assert not (tree / FOLDER).exists()
