"""What a run died for the lack of, and what is said to do about it."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from tests.verify import builders
from verify.measured.records import Record
from verify.measured.results import Outcome, Run
from verify.measured.values import Trouble
from verify.running import missing
from verify.running.missing import ARGUMENT, FILE, INPUT, MODULE, NETWORK, VARIABLE, Piece
from verify.running.settings import Command, Settings
from verify.running.standins import parse


def died(error: Trouble | None = None, lacking: str | None = None, *, output: str = "", status: int = 1) -> Run:
    """A run that came to no backward."""
    record = Record(error=error, missing=lacking)
    return Run("original", ("python", "train.py"), Outcome.RAISED, status, 1.0, 0, (record,), output)


def trouble(kind: str, name: str = "Error", message: str = "") -> Trouble:
    return Trouble(name, message, kind)


@pytest.mark.parametrize(
    ("run", "piece"),
    [
        (died(trouble("missing", "ModuleNotFoundError"), "einops"), Piece(MODULE, "einops")),
        (died(trouble("missing", "FileNotFoundError"), "data/x.npy"), Piece(FILE, "data/x.npy")),
        (died(trouble("missing", "KeyError"), "DATA_ROOT"), Piece(VARIABLE, "DATA_ROOT")),
        (
            died(
                output="usage: train.py\ntrain.py: error: the following arguments are required: --data, name\n",
                status=2,
            ),
            Piece(ARGUMENT, "--data, name"),
        ),
        (
            died(output="E   ModuleNotFoundError: No module named 'torch'\n1 error in 0.76s\n", status=2),
            Piece(MODULE, "torch"),
        ),
        (died(output="Usage: train.py\n\nError: Missing option '--data'.\n", status=2), Piece(ARGUMENT, "--data")),
        (
            died(trouble("other", "URLError", "<urlopen error [Errno -3] Temporary failure in name resolution>")),
            Piece(NETWORK, "<urlopen error [Errno -3] Temporary failure in name resolution>"),
        ),
        (died(trouble("other", "EOFError", "EOF when reading a line")), Piece(INPUT, "")),
    ],
)
def test_pieces(run: Run, piece: Piece) -> None:
    assert missing.ended_by(run) == piece


@pytest.mark.parametrize(
    "run",
    [
        died(trouble("other", "ValueError", "bad luck")),
        died(trouble("other", "EOFError", "Ran out of input")),
        died(trouble("freed", "RuntimeError", "a second time")),
        died(trouble("missing", "RuntimeError", "Dataset not found or corrupted.")),
        died(output="error: the following arguments are required: --data", status=1),
        died(output="error: invalid choice: 'x'", status=2),
        died(output="error: the following arguments are required: --data", status=0),
        died(output="ModuleNotFoundError: No module named 'torch'", status=0),
        died(output="ModuleNotFoundError: No module named 'torch_scatter'"),
        builders.run(builders.record([1.0], error=trouble("missing", "FileNotFoundError"))),
    ],
)
def test_no_pieces(run: Run) -> None:
    assert missing.ended_by(run) is None


def advised(root: Path, piece: Piece, *absent: str, settings: Settings | None = None) -> tuple[str, ...]:
    """What is said to ``piece``, where the interpreter lacks the modules ``absent``."""
    script = root / "train.py"
    command = Command((sys.executable, "train.py"), root, "train.py", script if script.exists() else None)

    def lacks(names: Collection[str]) -> Collection[str]:
        return [name for name in names if name in absent]

    return missing.advice(piece, command, root, settings or Settings(python="/opt/python"), lacks)


def test_all_is_named_together(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch, einops, cv2\np.add_argument('--data', required=True)\nnp.load('x.npy'); open('train.py')\n"
    )
    said = advised(tmp_path, Piece(MODULE, "einops"), "einops", "cv2")
    assert said == (
        "/opt/python lacks modules cv2, einops: /opt/python -m pip install opencv-python-headless einops (a package "
        "may have another name), or name another interpreter with --python",
        "it asks for arguments, to be given after --: --data",
        "it also names what is missing: x.npy",
    )


def test_an_image_gets_no_packages(tmp_path: Path) -> None:
    settings = Settings(python="python3", image="acme/torch:2")
    assert advised(tmp_path, Piece(MODULE, "cv2"), "cv2", settings=settings) == (
        "the image acme/torch:2 lacks the module cv2: take one that has opencv-python-headless",
    )


def test_a_launcher_of_another_python_is_told_from_the_one_with_torch(tmp_path: Path) -> None:
    command = Command(("bin/pytest", "tests/test_a.py"), tmp_path, "pytest tests/test_a.py", None)
    settings = Settings(python="/opt/python")
    (said,) = missing.advice(Piece(MODULE, "torch"), command, tmp_path, settings, lambda names: [])
    assert said == (
        "bin/pytest starts a Python that lacks the module torch, and /opt/python has it: install it in that one (its "
        "own python -m pip install torch), or have this one start the program: /opt/python -m pytest tests/test_a.py"
    )


def test_a_module_that_only_the_run_has_shown(tmp_path: Path) -> None:
    (said,) = advised(tmp_path, Piece(MODULE, "torch._six"))
    assert said.startswith("/opt/python lacks the module torch._six: ")


@pytest.mark.parametrize(
    ("path", "declaration"),
    [
        ("data/x.npy", "data/x.npy=float32:100,3,32,32"),
        ("x.npz", "x.npz[x]=float32:100,3,32,32"),
        ("input.txt", "input.txt=text:100000"),
        ("a.csv", "a.csv=float32:100,10"),
        ("a.png", "a.png=uint8:64,64,3"),
        ("images", "images/*.png=uint8:20,64,64,3"),
    ],
)
def test_every_stand_in_that_is_proposed_can_be_declared(tmp_path: Path, path: str, declaration: str) -> None:
    (said,) = advised(tmp_path, Piece(FILE, path))
    assert said.startswith(f"{path} is not there: give the path of the data as an argument, or let a stand-in be made")
    assert declaration in said
    parse(declaration)


@pytest.mark.parametrize("path", ["labels.json", "x.h5", "/nowhere/x.npy", "../x.npy"])
def test_no_stand_in_is_proposed_where_none_can_be_made(tmp_path: Path, path: str) -> None:
    (said,) = advised(tmp_path, Piece(FILE, path))
    assert "--stand-in" not in said
    assert "give the path of the data as an argument" in said


def test_the_option_whose_default_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "p.add_argument('--root', default='data')\np.add_argument('--out', default='out')"
    )
    assert "give its place with --root" in advised(tmp_path, Piece(FILE, "data/train/x.npy"))[0]


def test_what_lies_in_the_home_is_exposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / ".cache" / "torch").mkdir(parents=True)
    (home / "x.npy").touch()
    monkeypatch.setenv("HOME", str(home))
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(home)
    for path in (str(home / "x.npy"), "../home/x.npy", "link/x.npy"):
        (said,) = advised(tree, Piece(FILE, path))
        assert "lies in your home folder, which runs find empty: --expose " in said
    (said,) = advised(tree, Piece(NETWORK, "Name or service not known"))
    assert "--network lets it; if it has been downloaded already: --expose ~/.cache/torch" in said


def test_a_program_that_asks_is_told_that_nobody_answers(tmp_path: Path) -> None:
    (said,) = advised(tmp_path, Piece(INPUT, ""))
    assert "take the answer as an argument" in said


def test_a_variable_is_named_with_its_option(tmp_path: Path) -> None:
    assert "--env DATA_ROOT" in advised(tmp_path, Piece(VARIABLE, "DATA_ROOT"))[0]


def test_what_was_declared_or_given_is_not_missed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("np.load('x.npy'); np.load('y.npy'); p.add_argument('--data', required=True)")
    settings = Settings(stand_ins=(parse("x.npy=float32:3"),))
    command = Command((sys.executable, "train.py", "--data=x"), tmp_path, "train.py", tmp_path / "train.py")
    said = missing.advice(Piece(VARIABLE, "A"), command, tmp_path, settings, lambda _: ())
    assert said[1:] == ("it also names what is missing: y.npy",)


def test_the_error_of_a_variable_is_told_from_that_of_a_dictionary() -> None:
    from verify.probe.lines.errors import kind
    from verify.probe.lines.errors import missing as named

    for container, found in ((os.environ, "missing"), ({}, "other")):
        with pytest.raises(KeyError) as caught:
            container["CODEMOD_NO_SUCH_VARIABLE"]
        assert kind(caught.value) == found
        assert (named(caught.value) == "CODEMOD_NO_SUCH_VARIABLE") == (found == "missing")


@pytest.mark.parametrize(
    ("place", "made", "told"),
    [
        ("site-packages/torchvision/transforms/_functional_tensor.py", "MNIST (512 made-up items of 28x28)", True),
        ("site-packages/torchvision/transforms/_functional_tensor.py", "the module scipy", False),
        ("site-packages/torchvision/datasets/mnist.py", "MNIST (512 made-up items of 28x28)", False),
    ],
)
def test_transforms_that_fit_no_made_up_image(place: str, made: str, told: bool) -> None:
    text = (
        f'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n  File "{place}", line 9, in f\n'
    )
    run = died(trouble("other", "RuntimeError", "size of tensor"))
    record = replace(run.records[0], traceback=text + "RuntimeError: size", standins=[{"what": made}])
    assert missing.unfit(replace(run, records=(record,))) is told
    trained = replace(record, backwards=builders.record([1.0]).backwards)
    assert not missing.unfit(replace(run, records=(trained,)))


@pytest.mark.parametrize(
    ("files", "folder"),
    [
        (["tools.py"], "."),
        (["src/tools/__init__.py"], "src"),
        (["net/data/tools.py", "net/train.py"], "net/data"),
        (["net/tools/__init__.py"], "net"),
        # which of them is meant nobody knows
        (["net/tools.py", "old/tools.py"], None),
        (["net/tools/readme.txt", ".git/tools.py"], None),
    ],
)
def test_the_folder_of_a_module_in_the_tree(tmp_path: Path, files: list[str], folder: str | None) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert missing.folder_of("tools", tmp_path) == folder
