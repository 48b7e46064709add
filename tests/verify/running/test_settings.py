"""Commands as a user would type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.errors import VerifyError
from verify.running.settings import Settings, entry_command, script_command, starts_a_program


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__main__.py").touch()
    return tmp_path


def test_a_script_and_its_arguments(folder: Path) -> None:
    command = script_command("train.py", ["--name", "a b"], "python")
    assert command.argv == ("python", "train.py", "--name", "a b")
    assert command.text == "train.py --name 'a b'"
    assert (command.cwd, command.script) == (folder, folder / "train.py")


def test_a_module(folder: Path) -> None:
    command = script_command("pkg", ["-v"], "python", module=True)
    assert command.argv == ("python", "-m", "pkg", "-v")
    assert command.script == folder / "pkg" / "__main__.py"
    assert script_command("elsewhere", [], "python", module=True).script is None
    for text, script in (
        ("-m pkg -v", "pkg/__main__.py"),
        ("python -m train", "train.py"),
        ("-m pytest train.py", "train.py"),
    ):
        assert entry_command(text, "python", folder).script == folder / script
    assert entry_command("-m elsewhere", "python", folder).script is None


@pytest.mark.parametrize("script", ["nowhere.py", "."])
def test_what_cannot_be_run(script: str) -> None:
    with pytest.raises(VerifyError):
        script_command(script, [], "python")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("train.py --epochs 1", ("py", "train.py", "--epochs", "1")),
        ("python train.py", ("py", "train.py")),
        ("/usr/bin/python3 -u train.py", ("py", "-u", "train.py")),
        ("-m pkg --x 'a b'", ("py", "-m", "pkg", "--x", "a b")),
        ("torchrun --nproc-per-node 2 train.py", ("torchrun", "--nproc-per-node", "2", "train.py")),
    ],
)
def test_entries(folder: Path, text: str, words: tuple[str, ...]) -> None:
    command = entry_command(text, "py", folder)
    assert command.argv == words
    assert command.text == text


@pytest.mark.parametrize(
    ("word", "is_one"),
    [
        ("python", True),
        ("python3", True),
        ("torchrun", True),
        ("train.py", False),
        ("missing.py", False),
        ("missing.ipynb", False),
        ("pkg", False),
        ("bin/torchrun", False),
        ("no-such-command-anywhere", False),
    ],
)
def test_a_word_that_starts_a_program(folder: Path, word: str, is_one: bool) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "torchrun").touch(mode=0o755)
    assert starts_a_program(word, str(folder / "bin" / "python")) is is_one


def test_the_interpreter_itself_starts_a_program_however_it_is_named(folder: Path) -> None:
    python = str(folder / "bin" / "python3.11")
    assert starts_a_program(python, python)
    assert not starts_a_program(python, "python3")
    command = entry_command(f"{python} -m pytest train.py", python, folder)
    assert (command.argv, command.script) == ((python, "-m", "pytest", "train.py"), folder / "train.py")


def test_the_file_of_a_single_test_is_the_script(folder: Path) -> None:
    assert entry_command("pytest -q train.py::test_a", "py", folder).script == folder / "train.py"


def test_launchers_are_those_of_the_chosen_interpreter(folder: Path) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "torchrun").touch()
    command = entry_command("torchrun train.py", str(folder / "bin" / "python"), folder)
    assert command.argv[0] == str(folder / "bin" / "torchrun")
    assert command.script == folder / "train.py"


@pytest.mark.parametrize("text", ["", "python", "nowhere.py", "python nowhere.py", "train.py 'open"])
def test_entries_that_cannot_be_run(folder: Path, text: str) -> None:
    with pytest.raises(VerifyError):
        entry_command(text, "py", folder)


def test_loaders_stop_so_that_validation_is_reached() -> None:
    assert Settings().cap == 5
    assert Settings(steps=2).cap == 2
    assert Settings(batches=7).cap == 7
    assert Settings(batches=0).cap is None
