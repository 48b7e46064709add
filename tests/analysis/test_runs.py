"""Which programs are simulated: callers in other files, processes, and what is remembered between analyses."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.analysis import workers
from codemods.analysis.analyse import Analysis, analyse
from codemods.source.discovery import discover
from codemods.source.files import display_path, read_source
from codemods.source.options import Options

MODEL = """\
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(x)
"""

EVALUATION = """\
def evaluate(model, loader):
    model.eval()
    hits = 0
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum().item()
    return hits
"""

BARE = """\
import torch
from evaluation import evaluate
from model import Net

model = Net()
loader = [(torch.randn(3, 4), torch.zeros(3)) for _ in range(3)]
if __name__ == "__main__":
    print(evaluate(model, loader))
"""

GUARDED = BARE.replace("    print(", "    with torch.no_grad():\n        print(")


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def found(*paths: str, jobs: int = 1, overlay: dict[str, str] | None = None) -> list[tuple[str, str, int]]:
    return [f.key for f in analysis(*paths, jobs=jobs, overlay=overlay).findings]


def analysis(*paths: str, jobs: int = 1, overlay: dict[str, str] | None = None) -> Analysis:
    targets = [read_source(path, display_path(path)) for path in discover(paths).files]
    return analyse(targets, options=Options(), jobs=jobs, overlay=overlay)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setup.cfg").write_text("")
    return tmp_path


EXPECTED = [("grad-in-evaluation", "evaluation.py", 1)]


def test_a_function_is_judged_by_its_callers_in_other_files(here: Path) -> None:
    write(here, {"model.py": MODEL, "evaluation.py": EVALUATION, "main.py": BARE})
    assert found(".") == EXPECTED
    (here / "main.py").write_text(GUARDED)
    assert found(".") == []


def test_one_file_is_judged_like_the_whole_tree(here: Path) -> None:
    write(here, {"model.py": MODEL, "evaluation.py": EVALUATION, "main.py": GUARDED})
    assert found("evaluation.py") == []
    (here / "main.py").write_text(BARE)
    assert found("evaluation.py") == EXPECTED


def test_a_file_that_is_not_named_is_looked_at_and_not_reported(here: Path) -> None:
    write(here, {"model.py": MODEL, "evaluation.py": EVALUATION, "main.py": BARE})
    assert found("main.py") == []


def test_an_overlay_stands_for_what_is_not_written_yet(here: Path) -> None:
    write(here, {"model.py": MODEL, "evaluation.py": EVALUATION, "main.py": BARE})
    assert found(".") == EXPECTED
    assert found(".", overlay={"main.py": GUARDED}) == []
    assert found(".") == EXPECTED


def test_only_what_loads_a_changed_file_runs_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(here, {"model.py": MODEL, "evaluation.py": EVALUATION, "main.py": BARE, "other/train.py": EVALUATION})
    found(".")
    ran: list[str] = []
    run_job = workers.run_job

    def noting(project, rules, job):  # type: ignore[no-untyped-def]
        ran.append(job.relative)
        return run_job(project, rules, job)

    monkeypatch.setattr(workers, "run_job", noting)
    found(".", overlay={"main.py": GUARDED})
    assert set(ran) == {"main.py"}


@pytest.mark.slow
def test_processes_find_what_one_process_finds(here: Path) -> None:
    for number in range(workers.PARALLEL_FROM):
        write(
            here / f"project{number}",
            {"model.py": MODEL, "evaluation.py": EVALUATION, "main.py": BARE if number % 2 else GUARDED},
        )
    assert found(".", jobs=2) == found(".", jobs=1) != []


@pytest.mark.slow
def test_what_cannot_be_parsed_is_named_by_any_number_of_processes(here: Path) -> None:
    for number in range(workers.PARALLEL_FROM):
        broken = "\nprint 'x'\n" if number % 8 == 0 else ""
        write(here / f"project{number}", {"model.py": MODEL, "evaluation.py": EVALUATION + broken, "main.py": GUARDED})
    skipped = [sorted(entry.path for entry in analysis(".", jobs=jobs).skipped) for jobs in (1, 2)]
    assert skipped[0] == skipped[1] == [f"project{number}/evaluation.py" for number in (0, 16, 8)]


TRAINER = """\
import torch


class Trainer:
    def __init__(self, model):
        self.model = model

    def fit(self, loader):
        opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        total = 0
        for x, y in loader:
            loss = ((self.model(x) - y) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += self.penalty(loss)
        return total
"""

CHOOSING = """\
from model import Net
from trainer import Trainer


class Small(Trainer):
    def penalty(self, loss):
        return 0.1 * loss


def choose(name):
    return Small(Net())
"""

PROGRAM = """\
import torch
from choosing import choose

if __name__ == "__main__":
    print(choose("small").fit([(torch.randn(3, 4), torch.randn(3, 2)) for _ in range(3)]))
"""


def test_a_program_may_come_to_training_through_modules_that_only_define(here: Path) -> None:
    write(here, {"model.py": MODEL, "trainer.py": TRAINER, "choosing.py": CHOOSING})
    assert found(".") == []
    write(here, {"program.py": PROGRAM})
    total = TRAINER.splitlines().index("            total += self.penalty(loss)") + 1
    assert found(".") == [("attached-loss-total", "trainer.py", total)]


FACTORY = """
import torch
from parts import Net

class Trainer:
    def __init__(self, lr):
        self.net = Net()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=lr)

    def step(self, x):
        self.loss = self.net(x).pow(2).mean(){more}
        self.opt.zero_grad()
        self.loss.backward(retain_graph=True)
        self.opt.step()
"""
FAR = {
    "main.py": "import argparse\nimport sys\nfrom data import load\nfrom making import make\n\n"
    "trainer = make(sys.argv[1])\nfor x in load():\n    trainer.step(x)\n",
    "making.py": "from methods import choose\n\ndef make(name):\n    return choose(name)(0.1)\n",
    "data.py": "import torch\n\ndef load():\n    return [torch.randn(3, 4) for _ in range(9)]\n",
    "parts.py": "from torch import nn\n\nclass Net(nn.Linear):\n"
    "    def __init__(self):\n        super().__init__(4, 2)\n",
}
CHOICES = {
    "methods/__init__.py": [
        "import importlib\n\ndef choose(name):\n    return importlib.import_module('methods.' + name).Trainer\n",
        "import importlib\n\ndef choose(name):\n    return importlib.import_module(f'methods.{name}').Trainer\n",
        "import importlib\n\ndef choose(name):\n    full = 'methods.%s' % name\n"
        "    return importlib.import_module(full).Trainer\n",
        "def choose(name):\n    from methods.plain import Trainer\n    return Trainer\n",
    ]
}


@pytest.mark.parametrize("choice", CHOICES["methods/__init__.py"])
@pytest.mark.parametrize(("more", "promises"), [("", ["exact"]), (" + getattr(self, 'loss', 0.0)", [])])
def test_a_script_far_from_the_words_is_a_program_if_nothing_imports_it(
    tmp_path: Path, choice: str, more: str, promises: list[str]
) -> None:
    texts = {**FAR, "methods/__init__.py": choice, "methods/plain.py": FACTORY.format(more=more)}
    for path, text in {"setup.cfg": "", **texts}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    targets = [read_source(tmp_path / path, path) for path in texts]
    findings = analyse(targets, options=Options(select=("surplus-retain-graph",)), jobs=1).findings
    assert [f.promise.value for f in findings] == promises
