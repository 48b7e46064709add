"""What is worth a run: the choice changes how long it takes, not what is found."""

from __future__ import annotations

import ast
from pathlib import Path, PurePosixPath

import pytest

from codemods.analysis import outline as roots
from codemods.analysis import programs as runs
from codemods.analysis import workers
from codemods.analysis.analyse import analyse
from codemods.analysis.job import Job, Record
from codemods.analysis.outline import Outline, may_act
from codemods.analysis.project import Project
from codemods.graph.model.files import Files
from codemods.graph.model.program import ParsedFile, Tree
from codemods.rules.base import Rule
from codemods.source.discovery import discover
from codemods.source.files import display_path, read_source
from codemods.source.options import Options
from fixtures import cases

NET = """\
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(x)
"""

EVALUATE = """\
def evaluate(model, loader):
    model.eval()
    return [model(x).argmax(1).item() for x in loader]
"""

TREES = {
    "a method that leads to the words through another": {
        "trainer.py": NET
        + """

class Trainer:
    def __init__(self):
        self.net = Net()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.history = []

    def step(self, x):
        loss = self.net(x).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss

    def run(self, loader):
        for x in loader:
            self.history.append(self.step(x))
        print(sum(self.history))
"""
    },
    "a caller in another package switches gradients off": {
        "tools/evaluation.py": EVALUATE,
        "tools/__init__.py": "",
        "jobs/nightly.py": """\
import torch
from tools.evaluation import evaluate


def nightly(model, loader):
    with torch.no_grad():
        return evaluate(model, loader)
""",
    },
    "one caller switches gradients off, another does not": {
        "model.py": NET,
        "evaluation.py": EVALUATE,
        "guarded.py": """\
import torch
from evaluation import evaluate


def guarded(model, loader):
    with torch.no_grad():
        return evaluate(model, loader)
""",
        "main.py": """\
import torch
from evaluation import evaluate
from model import Net

print(evaluate(Net(), [torch.randn(3, 4) for _ in range(3)]))
""",
    },
    "a module of a package that acts by what it imports": {
        "pack/__init__.py": "",
        "pack/model.py": NET,
        "pack/evaluation.py": EVALUATE,
        "pack/report.py": """\
import torch
from .evaluation import evaluate as measure
from .model import Net

RESULT = None
for seed in range(3):
    RESULT = measure(Net(), [torch.randn(3, 4)])
""",
    },
}


SILENT = "a caller in another package switches gradients off"
"""The tree in which nothing is wrong: nobody else calls the evaluation."""


def found(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    monkeypatch.chdir(root)
    targets = [read_source(path, display_path(path)) for path in discover(["."]).files]
    workers._memory.clear()
    return [f.key for f in analyse(targets, options=Options(), jobs=1).findings]


def choose_all(patch: pytest.MonkeyPatch) -> None:
    """Run every file that acts, and every function that none of these runs enters."""

    def all_functions(outline: Outline) -> set[roots.Definition]:
        return {d for s, _, _ in outline._segments for d in outline._roots(s, lambda _: True)}

    patch.setattr(runs, "concerned", lambda project: (sorted(project.paths), []))
    patch.setattr(Outline, "script", lambda outline, *_: any(map(roots._acts, outline.file.tree.body)))
    patch.setattr(Outline, "candidates", all_functions)


def assert_equal_choices(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    chosen = found(root, monkeypatch)
    with monkeypatch.context() as patch:
        choose_all(patch)
        assert found(root, patch) == chosen
    return chosen


@pytest.mark.parametrize("name", TREES)
def test_trees_show_the_same_with_and_without_the_choice(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "setup.cfg").write_text("")
    for path, text in TREES[name].items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert bool(assert_equal_choices(tmp_path, monkeypatch)) == (name != SILENT)


@pytest.mark.slow
@pytest.mark.parametrize("rule", sorted({case.rule for case in cases()}))
def test_fixtures_show_the_same_with_and_without_the_choice(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, case in enumerate(case for case in cases() if case.rule == rule):
        root = tmp_path / str(number)
        for path, text in {"setup.cfg": b"", **case.before}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text)
        assert_equal_choices(root, monkeypatch)


# texts


@pytest.mark.parametrize("text", ["for x in y:\n    f(x)\n", "train()\n", "if __name__ == '__main__':\n    f()\n"])
def test_texts_that_may_act(text: str) -> None:
    assert may_act(text.encode())


@pytest.mark.parametrize(
    "text", ["if TYPE_CHECKING:\n    import x\n", "if typing.TYPE_CHECKING:\n    import x\n", "x = f()\n", "    f()\n"]
)
def test_texts_that_only_define(text: str) -> None:
    assert not may_act(text.encode())


def outline(text: str, word: bytes = b".backward(") -> Outline:
    file = ParsedFile("a.py", PurePosixPath("pack/a.py"), text, ast.parse(text))
    return Outline(file, text.encode(), lambda raw: word in raw)


MODULE = "from .other import setup\n\nsetup()\n"


@pytest.mark.parametrize(
    ("other", "runs_it"),
    [
        ("def setup():\n    loss.backward()\n", True),
        ("def setup():\n    step()\n\ndef step():\n    loss.backward()\n", True),
        ("def setup():\n    pass\n\ndef step():\n    loss.backward()\n", False),
        ("from .deeper import setup\n\ndef step():\n    loss.backward()\n", True),
    ],
)
def test_a_module_acts_if_what_it_calls_leads_to_the_words(other: str, runs_it: bool) -> None:
    paths = {name: Path(name) for name in ("pack/a.py", "pack/other.py")}
    tree = Tree(paths, {name: name for name in paths})
    assert outline(MODULE).script(lambda _: outline(other), tree) is runs_it
    assert outline(MODULE).script(lambda _: None, tree) is False


# what no tensor can come to

PLAIN_HELPER = "def last(x):\n    return x.data[0]\n"
TRAIN = "import torch\n{}\nloss = torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum()\nprint({}(loss))\n"

OF_TORCH = {
    "imported": {"train.py": TRAIN.format("from helper import last", "last"), "helper.py": PLAIN_HELPER},
    "imported through another file": {
        "train.py": TRAIN.format("import between", "between.last"),
        "between.py": "from helper import last\n",
        "helper.py": PLAIN_HELPER,
    },
    "in a package": {
        "train.py": TRAIN.format("import tools", "tools.last"),
        "tools/__init__.py": "from .helper import last\n",
        "tools/helper.py": PLAIN_HELPER,
    },
    "in a folder that is no package": {
        "train.py": TRAIN.format("import tools.helper", "tools.helper.last"),
        "tools/helper.py": PLAIN_HELPER,
    },
    "of a program that comes to torch through others": {
        "train.py": "import model\nfrom helper import last\nprint(last(model.loss))\n",
        "model.py": TRAIN.format("", "id"),
        "helper.py": PLAIN_HELPER,
    },
    "beside a library of torch": {
        "train.py": "import torchvision\nfrom helper import last\n",
        "helper.py": PLAIN_HELPER,
    },
    "beside a library without its name": {
        "train.py": "from fastai.basics import *\nfrom helper import last\n",
        "helper.py": PLAIN_HELPER,
    },
}
OF_TORCH |= {
    f"by `{line}`": {"train.py": f"{line}\nfrom helper import last\ntorch.ones(1)\n", "helper.py": PLAIN_HELPER}
    for line in (
        "import os, torch",
        "import os, \\\n    torch",
        "try: import torch\nexcept ImportError: pass",
        "from lab import (\n    torch,\n)",
        "from lab.for_torch import *",
        "from lab import *",
        "from importlib import import_module\ntorch = import_module('torch')",
        "torch = __import__('torch')",
        "import pytest\ntorch = pytest.importorskip('torch')",
    )
}
NOT_OF_TORCH = {
    "no torch anywhere": {"main.py": "from helper import last\nprint(last([1]))\n", "helper.py": PLAIN_HELPER},
    "another program of the tree": {
        "main.py": "from helper import last\nprint(last([1]))\n",
        "helper.py": PLAIN_HELPER,
        "train.py": TRAIN.format("", "id"),
    },
    "torch in words only": {
        "main.py": "from helper import last\nprint(last([1]))  # not of torch\n",
        "helper.py": f'"""As torch has it: import torch."""\n{PLAIN_HELPER}',
    },
    "a module of the tree with torch in its name": {
        "main.py": "from torch_like import last\nprint(last([1]))\nfrom helper import last\n",
        "torch_like.py": "def last(x):\n    return x\n",
        "helper.py": PLAIN_HELPER,
    },
    "a star from a library, and no torch": {
        "main.py": "from tools import *\nfrom helper import last\n",
        "helper.py": PLAIN_HELPER,
    },
    "a library of a longer name": {"main.py": "import timmy\nfrom helper import last\n", "helper.py": PLAIN_HELPER},
}


def simulated(root: Path, texts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The files of a tree in which something was run."""
    for name, text in {**texts, "pyproject.toml": ""}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    ran = set()
    run_job = workers.run_job

    def noting(project: Project, rules: list[Rule], job: Job) -> Record:
        record = run_job(project, rules, job)
        ran.update(record.loaded if record.noted else ())
        return record

    monkeypatch.setattr(workers, "run_job", noting)
    found(root, monkeypatch)
    return ran


@pytest.mark.parametrize("name", OF_TORCH)
def test_what_a_program_with_torch_may_hand_tensors_to_is_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any("helper" in path for path in simulated(tmp_path, OF_TORCH[name], monkeypatch))


@pytest.mark.parametrize("name", NOT_OF_TORCH)
def test_what_no_tensor_comes_to_is_not_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "helper.py" not in simulated(tmp_path, NOT_OF_TORCH[name], monkeypatch)


# files


def files(texts: dict[str, str]) -> tuple[Files, list[str]]:
    read: list[str] = []

    def reading(relative: str) -> tuple[str, ast.Module] | None:
        read.append(relative)
        return texts[relative], ast.parse(texts[relative])

    return Files(Tree({name: Path(name) for name in texts}, {}), reading, texts.__getitem__), read


def test_a_word_is_looked_for_without_a_syntax_tree() -> None:
    held, read = files({"a.py": "import registry\n", "b.py": "y = 2\n"})
    assert held.mentions("a.py", "registry")
    assert not held.mentions("b.py", "registry")
    assert read == []
    held.file("a.py")
    assert held.mentions("a.py", "registry")


def test_a_glance_is_kept_while_there_is_room() -> None:
    held, read = files({"a.py": "x = 1\n", "b.py": "y = 2\n"})
    assert held.glance("a.py") is held.file("a.py")
    assert read == ["a.py"]
    held.room = 6
    first = held.glance("b.py")
    assert first is not None
    assert held.glance("b.py") is not first
    held.keep(first)
    assert held.glance("b.py") is held.file("b.py") is first


def test_what_has_no_room_is_forgotten() -> None:
    held, _ = files({"a.py": "x = 1\n", "b.py": "y = 2\n"})
    file = held.file("a.py")
    assert file is not None
    assert not held.trim()
    held.room = 1
    held.file("b.py")
    assert held.trim()
    assert not file.tree.body
    again = held.file("a.py")
    assert again is not file
    assert again is not None
    assert again.tree.body


def test_what_one_run_needed_stays_for_the_next() -> None:
    held, read = files({"a.py": "x = 1\n", "b.py": "y = 2\n", "c.py": "z = 3\n"})
    held.room = 1
    held.file("a.py")
    held.file("b.py")
    assert not held.trim()
    # with what another one needs beside, it is more than any has needed
    held.file("c.py")
    assert held.trim()
    held.file("c.py")
    assert not held.trim()
    held.file("a.py")
    assert not held.trim()
    assert read == ["a.py", "b.py", "c.py", "c.py", "a.py"]
    assert held.trim(0)
