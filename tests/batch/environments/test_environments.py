"""Environments: made of wheels that lie here, once, beside the packages at hand."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from codemods.batch.campaign.settings import Runs, read
from codemods.batch.environments import interpreters
from codemods.batch.environments.environments import Environment, ready
from codemods.batch.environments.requirements import imported, listed
from codemods.batch.errors import CampaignError, Failed
from codemods.batch.planning import plan
from tests.batch.tools import TRAIN, campaign_file, repository


def wheel(folder: Path, name: str, version: str, more: dict[str, str] | None = None) -> None:
    """A wheel of one module."""
    folder.mkdir(exist_ok=True)
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"version = {version!r}\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **(more or {}),
    }
    files[f"{about}/RECORD"] = "".join(f"{path},,\n" for path in files)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, which is all that there is."""
    wheel(tmp_path / "wheels", "camp_one", "1.0")
    wheel(tmp_path / "wheels", "camp_one", "2.0")
    wheel(tmp_path / "wheels", "camp_two", "3.0")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    return tmp_path / "wheels"


def made(folder: Path, *lines: str, told: list[str] | None = None) -> Environment:
    said = [] if told is None else told
    return ready(sys.executable, lines, folder / "environments", folder / "environments" / "cache", said.append)


def answer(environment: Environment, code: str) -> str:
    done = subprocess.run([environment.python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_it_has_what_is_required_and_what_is_at_hand(index: Path, tmp_path: Path) -> None:
    environment = made(tmp_path, "camp_one==1.0  # old", "torch==1.4.0")
    assert answer(environment, "import camp_one; print(camp_one.version)") == "1.0"
    where = answer(environment, "import importlib.util as u; print(u.find_spec('torch').origin)")
    assert not where.startswith(str(tmp_path))
    (said,) = environment.told
    assert said.startswith("torch==1.4.0 is asked for, 2.")


def test_it_has_what_the_interpreter_finds_by_a_file_of_paths(index: Path, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "camp_far.py").write_text("version = 'far'")
    venv.create(tmp_path / "env", with_pip=False)
    (packages,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (packages / "far.pth").write_text(f"{tmp_path / 'far'}\n")
    environment = ready(
        str(tmp_path / "env" / "bin" / "python"), ["camp_one==1.0"], tmp_path / "made", tmp_path / "made" / "cache"
    )
    assert answer(environment, "import camp_far, camp_one; print(camp_far.version, camp_one.version)") == "far 1.0"


def test_it_is_made_once(index: Path, tmp_path: Path) -> None:
    told: list[str] = []
    first = made(tmp_path, "camp_one==1.0", "camp_two", told=told)
    for file in index.iterdir():
        file.unlink()
    assert made(tmp_path, "camp_two", "camp_one==1.0", told=told) == first
    assert told == ["making its environment"]


def test_pins_that_cannot_be_had_are_relaxed_and_told(index: Path, tmp_path: Path) -> None:
    environment = made(
        tmp_path, "camp_one==1.5", "camp_two==3.0", "camp_none", "-e .", "x @ https://host.invalid/x.whl"
    )
    assert environment.told == (
        "left out '-e .': no name of a package with versions",
        "left out x: it comes from an address of its own",
        "left out camp_none: no wheel of it fits this interpreter",
        "camp_one==1.5 is asked for, 2.0 is taken",
    )
    assert answer(environment, "import camp_one, camp_two; print(camp_one.version, camp_two.version)") == "2.0 3.0"


def test_nothing_of_a_package_is_executed_when_python_starts(index: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    act = f"import pathlib; pathlib.Path({str(ran)!r}).touch()\n"
    wheel(index, "camp_bad", "1.0", {"camp_bad.pth": act, "sitecustomize.py": act, "fine.pth": "somewhere\n"})
    environment = made(tmp_path, "camp_bad")
    assert answer(environment, "import camp_bad; print(camp_bad.version)") == "1.0"
    assert not ran.exists()
    assert [text.split()[0] for text in environment.told] == ["camp_bad.pth", "sitecustomize.py"]


def test_one_that_cannot_be_made_leaves_nothing(index: Path, tmp_path: Path) -> None:
    (index / "camp_two-3.0-py3-none-any.whl").write_bytes(b"no wheel")
    environment = made(tmp_path, "camp_two", "camp_one")
    assert any("camp_two" in text for text in environment.told)
    with pytest.raises(Failed, match="cannot be run as a Python interpreter"):
        ready("/nothing/python", ["camp_one"], tmp_path / "e", tmp_path / "c")


def test_what_a_repository_requires_itself(tmp_path: Path) -> None:
    assert listed(tmp_path) is None
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["a>1", "b"]\n')
    assert listed(tmp_path) == ("a>1", "b")
    (tmp_path / "requirements.txt").write_text("c\n")
    assert listed(tmp_path) == ("c",)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("setup.py", "from setuptools import setup\nsetup(name='x', install_requires=['a', 'b>1'])\n", ("a", "b>1")),
        ("setup.py", "import setuptools\nNEEDS = ('a',)\nsetuptools.setup(install_requires=NEEDS)\n", ("a",)),
        ("setup.py", "setup(install_requires=[line for line in open('x')])\n", None),
        ("setup.py", "setup(install_requires=['a', read()])\n", ("a",)),
        ("setup.py", "import os\nos._exit(3)\nsetup(name='x')\n", None),
        ("setup.py", "setup(", None),
        (
            "setup.cfg",
            "[options]\ninstall_requires =\n    a\n    b>1; python_version > '3'\n",
            ("a", "b>1; python_version > '3'"),
        ),
        ("setup.cfg", "[options\n", None),
        ("setup.cfg", "[flake8]\nmax-line-length = %(x)s\n", None),
        ("pyproject.toml", "[project]\ndependencies = []\n", ()),
        ("pyproject.toml", "[tool.black]\n", None),
    ],
)
def test_what_older_files_list(tmp_path: Path, name: str, text: str, told: tuple[str, ...] | None) -> None:
    (tmp_path / name).write_text(text)
    assert listed(tmp_path) == told


def test_without_a_list_it_is_what_the_scripts_import(index: Path, tmp_path: Path) -> None:
    (tmp_path / "tree" / "src").mkdir(parents=True)
    (tmp_path / "tree" / "train.py").write_text("import json, torch, helper, camp_one\nfrom sklearn_like import x\n")
    (tmp_path / "tree" / "src" / "helper.py").write_text("import camp_unused\n")
    (tmp_path / "tree" / "sklearn_like.py").touch()
    (tmp_path / "tree" / "other.py").write_text("import camp_two\n")
    entries = [("train.py --x 1", "."), ("gone.py", ".")]
    assert imported(tmp_path / "tree", entries, sys.executable) == ("camp_one",)
    runs = Runs(own_requirements=True)
    python, told = interpreters.ready(runs, tmp_path / "tree", tmp_path / "environments", lambda _: None, entries)
    assert answer(Environment(python), "import camp_one; print(camp_one.version)") == "2.0"
    assert told == ("environment: it lists no requirements; by what it imports: camp_one",)
    (tmp_path / "tree" / "requirements.txt").touch()
    assert interpreters.ready(runs, tmp_path / "tree", tmp_path / "e", lambda _: None, entries) == (sys.executable, ())


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("a>1", "a==1.5"),
        ("A_b[x,y]<2 ; python_version > '3'", "A_b[x,y]==2.5; python_version > '3'"),
        ("none", "none"),
        ("twice>=1", "twice>=1"),
        ("a @ https://host.invalid/a.whl", "a @ https://host.invalid/a.whl"),
    ],
)
def test_a_lock_says_which_versions(tmp_path: Path, wanted: str, told: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[project]\ndependencies = ["{wanted}"]\n')
    versions = {"a": ["1.5"], "a-b": ["2.5"], "twice": ["1", "2"]}
    lines = [f'[[package]]\nname = "{name}"\nversion = "{one}"\n' for name, each in versions.items() for one in each]
    (tmp_path / "uv.lock").write_text("".join(lines))
    assert listed(tmp_path) == (told,)
    (tmp_path / "uv.lock").write_text("no lock [")
    assert listed(tmp_path) == (wanted,)


def another_python() -> str:
    """A version of Python that uv finds here and that is not this one; empty where there is none."""
    for minor in range(10, 14):
        if minor != sys.version_info[1]:
            with contextlib.suppress(CampaignError):
                interpreters.of(Runs(python=f"3.{minor}"))
                return f"3.{minor}"
    return ""


@pytest.mark.skipif(not another_python(), reason="needs another version of Python")
def test_another_python_gets_a_torch_of_its_own(index: Path, tmp_path: Path) -> None:
    wheel(index, "torch", "9.0")
    version = another_python()
    runs = Runs(python=version, requirements=("camp_one==1.0",))
    python, told = interpreters.ready(runs, tmp_path, tmp_path / "environments", lambda _: None)
    code = "import sys, torch, camp_one; print(sys.version_info[1], torch.version, camp_one.version)"
    assert answer(Environment(python), code) == f"{version.partition('.')[2]} 9.0 1.0"
    assert told == ()
    assert interpreters.required(Runs(python=version, requirements=("torch<8",)), tmp_path) == (("torch<8",), ())


def test_a_python_that_is_not_there_is_told(tmp_path: Path) -> None:
    repository(tmp_path / "repos" / "one", {"train.py": TRAIN})
    file = campaign_file(tmp_path, verify=True)
    file.write_text(file.read_text().replace("[verify]\n", '[verify]\npython = "3.99"\n'))
    with pytest.raises(CampaignError, match=r"python = '3.99' under \[verify\].*uv python install 3.99"):
        plan(read(file))


def test_a_path_or_a_command_is_no_version(tmp_path: Path) -> None:
    for python in ("", "python3", "python3.10", "/usr/bin/python3", "3", "2.7", "4.1", "3.x"):
        assert not interpreters.is_version(python)
    assert interpreters.of(Runs()) == sys.executable
    assert interpreters.ready(Runs(), tmp_path, tmp_path / "e", lambda _: None) == (sys.executable, ())
    assert not (tmp_path / "e").exists()


def test_a_campaign_names_them(tmp_path: Path) -> None:
    repository(tmp_path / "repos" / "one", {"train.py": "import camp_one\n" + TRAIN})
    file = campaign_file(tmp_path, verify=True)
    before = read(file)
    assert plan(before)[0]["prospect"] == "may be run in part"
    file.write_text(file.read_text().replace("[verify]\n", '[verify]\nrequirements = "needs.txt"\n'))
    with pytest.raises(CampaignError, match=r"requirements in \[verify\].*needs.txt"):
        read(file)
    (tmp_path / "needs.txt").write_text("camp-one==1.0\n")
    after = read(file)
    assert plan(after)[0]["prospect"] == "can be run"
    prints = [one.fingerprint(one.repositories[0]) for one in (before, after)]
    (tmp_path / "needs.txt").write_text("camp-one==2.0\n")
    prints.append(read(file).fingerprint(read(file).repositories[0]))
    assert len(set(prints)) == 3
