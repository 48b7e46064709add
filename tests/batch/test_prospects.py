"""A plan says what can be verified and what cannot, without running anything."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from codemods.batch.campaign.settings import Runs, read
from codemods.batch.planning import plan, plan_text
from codemods.batch.prospects import READY, Prospect, prospects, without
from codemods.batch.stages.job import Job, Outcome
from codemods.source.entries import Entry
from tests.batch.inline import run_inline, verified
from tests.batch.tools import CLEAN, TRAIN, campaign_file, repository

NEEDS = "import no_such_module_a\nimport helper\n" + TRAIN
ASKS = (
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('--data', required=True)\np.parse_args()\n" + TRAIN
)


def of(text: str, *more: str, command: str = "train.py", runs: Runs | None = None) -> Prospect:
    files = {"train.py": text, "helper.py": "import no_such_module_b.part\n"}
    (found,) = prospects(files, {*files, *more}, [Entry(command, ".", "")], runs or Runs())
    return without([found], {"no_such_module_a", "no_such_module_b"})[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TRAIN, ""),
        (NEEDS, "modules no_such_module_a, no_such_module_b"),
        ("import helper\n" + TRAIN, "modules no_such_module_b"),
        ("try:\n    import no_such_module_a\nexcept ImportError:\n    pass\n" + TRAIN, ""),
        ("def f():\n    import no_such_module_a\n" + TRAIN, ""),
        (ASKS, "arguments --data"),
        ("import numpy\nx = numpy.load('data/x.npy')\n" + TRAIN, "files data/x.npy"),
        ("open('notes.txt', 'w')\n" + TRAIN, ""),
    ],
)
def test_what_a_script_lacks(text: str, told: str) -> None:
    assert of(text).text() == told


def test_what_is_given_is_not_missed() -> None:
    assert of(ASKS, command="train.py --data=x").text() == ""
    assert of(ASKS, command="train.py --data x").text() == ""
    text = "import numpy\nx = numpy.load('data/x.npy')\n" + TRAIN
    assert of(text, "data/x.npy").text() == ""
    assert of(text, runs=Runs(stand_ins=("data/x.npy=float32:10,3",))).text() == ""
    assert of(text).outlook == READY


def test_nothing_is_written_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    files = {"train.py": TRAIN, "../out.py": "x", f"{tmp_path}/abs.py": "x", "a": "x", "a/b.py": "x"}
    prospects(files, set(files), [Entry("train.py", ".", "")], Runs())
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"]
    assert not list((tmp_path / "tmp").iterdir())


def planned(folder: Path, text: str = "") -> tuple[dict[str, dict[str, Any]], str]:
    campaign = read(campaign_file(folder, text, verify=True))
    plans = plan(campaign)
    return {one["slug"]: one for one in plans}, plan_text(campaign, plans)


def lacks(module: str) -> bool:
    return importlib.util.find_spec(module) is None


def test_a_plan_sees_notebooks(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "source": TRAIN, "metadata": {}, "outputs": [], "execution_count": None}]
    whole = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    repository(tmp_path / "repos" / "one", {"my net.ipynb": json.dumps(whole), "broken.ipynb": "{", "-c.py": CLEAN})
    repository(tmp_path / "repos" / "two", {"-c.py": TRAIN})
    plans, text = planned(tmp_path)
    assert {slug: one["prospect"] for slug, one in plans.items()} == {"one": "can be run", "two": "can be run"}
    assert "to be run: 'my net.ipynb'" in text
    assert "to be run: ./-c.py" in text


def test_a_plan_says_which_can_be_verified(tmp_path: Path) -> None:
    for name, text in {
        "ready": TRAIN,
        "lacks": NEEDS.replace("import helper\n", ""),
        "lib": CLEAN,
        "asks": ASKS,
        "bars": f"import gym\nimport {'prettytable' if lacks('prettytable') else 'visdom'}\n" + TRAIN,
    }.items():
        repository(tmp_path / "repos" / name, {"train.py": text})
    (tmp_path / "repos" / "none" / ".git").mkdir(parents=True)
    repository(tmp_path / "repos" / "reads", {"train.py": "import numpy\nx = numpy.load('x.npy')\n" + TRAIN})
    repository(tmp_path / "repos" / "bare", {"train.py": "import no_such_module_b\n" + TRAIN})
    repository(tmp_path / "repos" / "large", {"train.py": TRAIN, "weights.bin": b"0" * 3000})
    plans, text = planned(tmp_path, 'file-size = "2K"\n[[repository]]\nsource = "https://host.invalid/o/n"\n')
    assert {slug: one["prospect"] for slug, one in plans.items()} == {
        "ready": "can be run", "reads": "can be run", "bars": "can be run with stand-ins", "asks": "cannot be run",
        "lacks": "may be run in part", "bare": "may be run in part", "lib": "has no script", "o+n": "not seen yet",
        "none": "cannot be read", "large": "cannot be read",
    }  # fmt: skip
    assert plans["lacks"]["lacks"] == [{"command": "train.py", "what": "modules no_such_module_a"}]
    for line in (
        "2 ready to be run, as far as the code tells: reads, ready\n"
        "    1 with data that are not there, for many of which stand-ins are made\n",
        "1 ready with stand-ins for loggers, bars, plots and environments: bars\n",
        "2 perhaps in part: stand-ins for modules that are not installed: bare, lacks\n"
        "    1 × module no_such_module_b\n    1 × module no_such_module_a\n",
        "1 not to be run without: asks\n    1 × argument --data\n",
        "1 without a script that trains: lib\n",
        "1 not seen before they are cloned: o+n\n",
        "2 not to be read, or too large, or not safe to write: large, none\n"
        "    large: will be refused: weights.bin is 2.9 KiB; the limit is 2 KiB a file\n    none: cannot be read: git",
    ):
        assert line in text
    assert "    train.py lacks modules no_such_module_a\n" in plan_text(
        read(tmp_path / "campaign.toml"), list(plans.values()), verbose=True
    )


def test_a_plan_says_what_is_proven_already(tmp_path: Path) -> None:
    for name in ("kept", "unjudged", "fine", "no"):
        text = {"fine": CLEAN, "unjudged": "import no_such_module_a\n" + TRAIN}.get(name, TRAIN)
        repository(tmp_path / "repos" / name, {"train.py": text})
    file = campaign_file(tmp_path, verify=True)

    def fate(job: Job) -> Outcome | None:
        if job.slug == "no":
            return Outcome(job, "refused", "for a reason", {}, job.folder)
        return verified("kept" if job.slug == "kept" else "not judged")(job)

    run_inline(read(file), fate)
    plans, text = planned(tmp_path)
    assert {slug: one["prospect"] for slug, one in plans.items()} == {
        "kept": "is proven", "unjudged": "was not judged", "fine": "has nothing to change", "no": "has stopped",
    }  # fmt: skip
    assert "1 proven by a run, in part at least: kept\n1 run already, and not judged: unjudged\n" in text
    # What would bring it further is told.
    assert "not judged: unjudged\n    1 × module no_such_module_a\n" in text
    # With other settings it may come out otherwise.
    file.write_text(file.read_text().replace("steps = 6", "steps = 7"))
    campaign = read(file)
    again = {one["slug"]: one["prospect"] for one in plan(campaign)}
    assert again == {
        "kept": "can be run",
        "unjudged": "may be run in part",
        "fine": "has no script",
        "no": "has stopped",
    }


def test_a_plan_of_many_fits_a_screen(tmp_path: Path) -> None:
    for number in range(12):
        repository(tmp_path / "repos" / f"r{number}", {"train.py": TRAIN if number % 2 else CLEAN})
    plans, text = planned(tmp_path)
    assert len(plans) == 12
    assert text.count("\n") <= 24
    assert "6 ready to be run, as far as the code tells: r1, r11, r3, r5, r7 and 1 more" in text
    campaign = read(campaign_file(tmp_path, verify=True))
    assert plan_text(campaign, list(plans.values()), verbose=True).count("to be run:") == 12
