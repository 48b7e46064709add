"""Which script of a repository is run when nobody said."""

from __future__ import annotations

import pytest

from codemods.source.entries import find_entries

TRAINS = "loss.backward()\n"
MAIN = "if __name__ == '__main__':\n    main()\n"


def found(files: dict[str, str], readme: str = "", concerned: tuple[str, ...] = (), most: int = 1) -> list[str]:
    """Commands, with the folder where it is not the root."""
    entries = find_entries(files, readme, concerned, most=most)
    return [e.command if e.folder == "." else f"{e.folder}: {e.command}" for e in entries]


def test_a_script_that_trains() -> None:
    assert found({"main.py": TRAINS + MAIN, "model.py": "class Net: ..."}) == ["main.py"]


def test_train_goes_before_main_and_what_lies_near_before_what_lies_deep() -> None:
    files = {"main.py": TRAINS + MAIN, "train.py": TRAINS + MAIN, "a/b/train.py": TRAINS + MAIN}
    assert found(files, most=3) == ["train.py", "a/b/train.py", "main.py"]


def test_what_it_imports_may_train() -> None:
    files = {"run.py": "from lib.engine import fit\n" + MAIN, "lib/engine.py": "def fit():\n    loss.backward()\n"}
    assert found(files) == ["run.py"]


def test_it_has_to_lead_to_what_changes() -> None:
    files = {
        "train.py": TRAINS + MAIN,
        "other.py": "import lib\n" + TRAINS + MAIN,
        "lib.py": "def f():\n    loss.backward()\n",
    }
    assert found(files, concerned=("lib.py",)) == ["other.py"]
    assert found(files, concerned=("nothing.py",)) == []


README = """# Title
Train it with

    python train_big.py --epochs 1 --lr 0.1   # comment

or
"""


@pytest.mark.parametrize(
    ("readme", "command"),
    [
        (README, "train_big.py --epochs 1 --lr 0.1"),
        ("```\n$ python3 train_big.py\n```", "train_big.py"),
        ("`CUDA_VISIBLE_DEVICES=0 python -u train_big.py --x`", "train_big.py --x"),
        ("python train_big.py --data path/to/data", "train_big.py"),
        ("python train_big.py --data <folder>", "train_big.py"),
        ("python train_big.py | tee log; rm -rf /", "train_big.py"),
        ("python train_big.py $(reboot)", "train_big.py"),
        ("python missing.py", "train.py"),
        ("python ../train.py", "train.py"),
        ("see train_big.py", "train.py"),
        ("python train_big.py -h", "train_big.py"),
        ("python train_big.py --help\npython train_big.py --lr 1", "train_big.py --lr 1"),
        ("python train_big.py --hidden 3", "train_big.py --hidden 3"),
    ],
)
def test_what_the_readme_says(readme: str, command: str) -> None:
    assert found({"train.py": TRAINS + MAIN, "train_big.py": TRAINS + MAIN}, readme) == [command]


def test_the_readme_may_change_the_folder() -> None:
    files = {"src/train.py": TRAINS + MAIN}
    assert found(files, "cd src && python train.py --fast") == ["src: train.py --fast"]
    assert found(files, "cd src\npython train.py\n") == ["src: train.py"]
    assert found(files, "cd ../..\npython src/train.py\n") == ["src/train.py"]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("from net.model import Net\n", "-m net.train"),
        ("from .model import Net\n", "-m net.train"),
        ("from model import Net\n", "net/train.py"),
        ("from model import Net\nimport tools\n", "net/train.py"),
        ("import tools\n", "-m net.train"),
        ("import numpy\n", "net/train.py"),
    ],
)
def test_a_script_or_a_module(text: str, command: str) -> None:
    files = {"net/train.py": text + TRAINS + MAIN, "net/model.py": "class Net: ...", "tools.py": "x = 1"}
    assert found(files) == [command]


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"model.py": "class Net: ..."},
        {"model.py": "def train():\n    loss.backward()\n"},
        {"main.py": MAIN},
        {"setup.py": TRAINS + MAIN, "tests/test_shapes.py": "import lib\n" + MAIN, "lib.py": "x = 1\n"},
    ],
)
def test_nothing_to_run(files: dict[str, str]) -> None:
    assert found(files) == []


@pytest.mark.parametrize(
    ("path", "line", "command"),
    [
        ("tasks/adding/train.py", 'sys.path.append("../..")', "tasks/adding: train.py"),
        ("tasks/adding/train.py", "sys.path.insert(0, '..')", "tasks/adding: train.py"),
        ("train.py", "sys.path.append('..')", "train.py"),
        # these mean the root, and a folder that the script finds wherever it is started
        ("tasks/train.py", "sys.path.append('.')", "tasks/train.py"),
        ("tasks/train.py", "sys.path.append(os.path.dirname(__file__) + '/..')", "tasks/train.py"),
        ("tasks/train.py", "# sys.path.append('..')", "tasks/train.py"),
        # files that would lie outside of the tree from the root
        ("tasks/train.py", "words = open('../data/words.txt')", "tasks: train.py"),
        ("tasks/train.py", "parser.add_argument('--data', default=\"../data\")", "tasks: train.py"),
        ("train.py", "words = open('../data/words.txt')", "train.py"),
        ("tasks/train.py", "# words = open('../data/words.txt')", "tasks/train.py"),
        ("tasks/train.py", "words = open(os.path.join(HERE, '../data/words.txt'))", "tasks/train.py"),
        ("tasks/train.py", "words = open(os.path.dirname(__file__) + '/../data/words.txt')", "tasks/train.py"),
        ("tasks/train.py", "words = open('data/words.txt')", "tasks/train.py"),
    ],
)
def test_a_script_that_looks_for_things_from_its_own_folder(path: str, line: str, command: str) -> None:
    files = {path: f"import sys\n{line}\nimport model\n" + TRAINS + MAIN, "lib/model.py": ""}
    assert found(files) == [command]


LIBRARY = {
    "lib/__init__.py": "",
    "lib/fitting.py": "def fit():\n    loss.backward()\n",
    "lib/drawing.py": "def draw(): ...\n",
    "tests/test_fitting.py": "from lib.fitting import fit\n\n\ndef test_fit(): ...\n",
    "tests/test_drawing.py": "from lib.drawing import draw\n\n\ndef test_draw(): ...\n",
    "tests/util.py": "from lib.fitting import fit\n" + MAIN,
    "more tests/own_test.py": "from lib import fitting\n",
}


def test_of_a_library_the_tests_that_train_are_run() -> None:
    assert found(LIBRARY, most=3) == ["-m pytest -q 'more tests/own_test.py'", "-m pytest -q tests/test_fitting.py"]
    assert found(LIBRARY, concerned=("lib/drawing.py",), most=3) == []


def test_a_script_goes_before_any_test() -> None:
    assert found({**LIBRARY, "train.py": "import lib.fitting\n" + MAIN}, most=3) == ["train.py"]


def test_a_script_whose_name_looks_like_an_option() -> None:
    assert found({"-c.py": TRAINS + MAIN}) == ["./-c.py"]
    assert found({"-a b.py": TRAINS + MAIN}) == ["'./-a b.py'"]


@pytest.mark.parametrize(
    ("setup", "acts"),
    [
        ("import torch\ntorch.manual_seed(1)\n", False),
        ("import numpy as np\nnp.random.seed(1)\n", False),
        ("from torch import manual_seed\nmanual_seed(\n    1,\n)\n", False),
        ("import matplotlib\nmatplotlib.use('Agg')\nimport sys\nsys.path.append('..')\n", False),
        ("import torch\ntorch.manual_seed(1)\nfit()\n", True),
        ("import torch\nmodel = Net()\nmodel.fit()\n", True),
        ("from absl import app\napp.run(fit)\n", True),
        ("import torch.multiprocessing as mp\nmp.spawn(\n    fit,\n    nprocs=2,\n)\n", True),
        ("from lib import work\nimport fire\nfire.Fire(work)\n", True),
        ("from lib import work\nwork()\n", True),
        ("import torch\nfor turn in range(3):\n    pass\n", True),
        ("print('begin')\n", True),
    ],
)
def test_what_only_defines_and_sets_up_is_no_script(setup: str, acts: bool) -> None:
    files = {"agent.py": f"{setup}def fit():\n    loss.backward()\n", "lib.py": "def work(): ...\n"}
    assert found(files) == (["agent.py"] if acts else [])


def test_a_script_imports_the_neighbour_of_that_name() -> None:
    files = {
        "a/run.py": "from brain import Agent\nAgent().learn()\n",
        "a/brain.py": "class Agent: ...\n",
        "b/run.py": "from brain import Agent\nAgent().learn()\n",
        "b/brain.py": "class Agent:\n    def learn(self):\n        self.loss.backward()\n",
    }
    assert found(files, most=9) == ["b/run.py"]
    # What a script imports looks beside the script, not beside itself.
    deeper = {
        "run.py": "from lib.part import work\nwork()\n",
        "lib/part.py": "from brain import Agent\n",
        "lib/brain.py": "class Agent: ...\n",
        "brain.py": "class Agent:\n    def learn(self):\n        self.loss.backward()\n",
    }
    assert found(deeper) == ["run.py"]


def test_a_module_that_has_the_name_of_its_package_is_imported_by_both() -> None:
    files = {
        "main.py": "from trainer.trainer import Trainer\n" + MAIN,
        "trainer/__init__.py": "",
        "trainer/trainer.py": "class Trainer:\n    def step(self):\n        self.loss.backward()\n",
        "plots/curves.py": "from main import arguments\n" + MAIN,
    }
    assert found(files, concerned=("trainer/trainer.py",), most=3) == ["main.py", "-m plots.curves"]
    # Another module of that name is none of it.
    files["other/trainer.py"] = files.pop("trainer/trainer.py")
    files["trainer/trainer.py"] = "class Trainer: ...\n"
    assert found(files, concerned=("other/trainer.py",)) == []


def test_one_that_changes_and_does_not_train_goes_behind_the_one_that_does() -> None:
    readme = "python scores.py --path data\n\npython train.py --model 1\n"
    files = {
        "train.py": "from main import main\nmain()\n",
        "main.py": "from model import fit\ndef main(): fit()\n",
        "model.py": TRAINS,
        "scores.py": "from model import Net\n" + MAIN,
    }
    assert found(files, readme, ("scores.py", "model.py"))[0].startswith("train.py")
    files["scores.py"] += TRAINS
    assert found(files, readme, ("scores.py", "model.py"))[0].startswith("scores.py")
