"""``codemod verify`` from end to end: real scripts, real runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.commands import codemod
from tests.verify.zygote import warm

pytestmark = pytest.mark.slow

TRAIN = dedent(
    """\
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    data = [(torch.randn(4, 8), torch.randn(4, 1)) for _ in range(12)]

    for epoch in range(2):
        total = 0
        for x, y in data:
            optimizer.zero_grad()
            hidden = net[:2](x)
            loss = F.mse_loss(net[2](hidden), y)
            loss.backward(retain_graph=True)
            optimizer.step()
            total += loss
        print("mean loss", total / len(data))
    """
)


@pytest.fixture(name="warm")
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are forked from one that has torch."""
    warm(monkeypatch)


def verified(*arguments: str) -> tuple[int, dict[str, Any]]:
    ran = codemod("verify", "--format", "json", *arguments)
    return ran.status, json.loads(ran.stdout)


def verdicts(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(rewrite["verdict"], rewrite["findings"][0]["rule"]) for rewrite in report["rewrites"]]


def test_rewrites_that_hold(folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN)
    status, report = verified("train.py")
    assert verdicts(report) == [("kept", "surplus-retain-graph"), ("kept", "attached-loss-total")]
    assert status == 0
    assert report["entries"][0]["deterministic"] is True
    assert (folder / "train.py").read_text() == TRAIN
    assert sorted(path.name for path in folder.iterdir()) == ["pyproject.toml", "train.py"]


@pytest.mark.usefixtures("warm")
def test_nothing_to_rewrite(folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN.replace("(retain_graph=True)", "()").replace("+= loss", "+= loss.item()"))
    status, report = verified("train.py")
    assert report["rewrites"] == []
    assert status == 0


@pytest.mark.usefixtures("warm")
def test_text_says_it_to_people(folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN)
    ran = codemod("verify", "train.py")
    assert ran.status == 0
    assert "kept" in ran.stdout
    assert "surplus-retain-graph" in ran.stdout
    assert "bit for bit" in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 120


@pytest.mark.usefixtures("warm")
def test_arguments_reach_the_script(folder: Path) -> None:
    (folder / "train.py").write_text("import sys\nassert sys.argv == ['train.py', '--epochs', '1', '-v']\n" + TRAIN)
    status, _ = verified("train.py", "--", "--epochs", "1", "-v")
    assert status == 0


def test_a_module_and_several_entries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pkg").mkdir()
    (folder / "pkg" / "__init__.py").touch()
    (folder / "pkg" / "train.py").write_text(TRAIN)
    (folder / "other.py").write_text("import pkg.train\n")
    status, report = verified("-m", "pkg.train")
    assert (status, len(report["rewrites"])) == (0, 2)
    warm(monkeypatch)
    status, report = verified("--entry", "-m pkg.train", "--entry", "python other.py")
    assert (status, len(report["entries"]), len(report["rewrites"])) == (0, 2, 2)


@pytest.mark.usefixtures("warm")
def test_no_run_begins_after_the_time_for_all(folder: Path) -> None:
    (folder / "train.py").write_text("import time\ntime.sleep(1.2)\n" + TRAIN)
    (folder / "other.py").write_text("import train\n")
    status, report = verified("--within", "1", "--entry", "train.py", "--entry", "other.py")
    assert (status, len(report["entries"]), len(report["rewrites"])) == (3, 1, 2)
    late = "the 1 s for all runs were over; --within gives more time"
    assert {(row["verdict"], row["why"]) for row in report["rewrites"]} == {("not judged", late)}
    assert report["advice"] == [f"other.py was not run: {late}"]


@pytest.mark.usefixtures("warm")
def test_lines_that_never_run_are_not_reached(folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN.replace("for epoch in range(2)", "for epoch in range(0)"))
    status, report = verified("train.py")
    assert {verdict for verdict, _ in verdicts(report)} == {"not reached"}
    assert status == 3


WRONG: dict[str, Callable[[str], str]] = {
    "a detach that breaks learning": lambda text: text.replace("net[2](hidden)", "net[2](hidden.detach())"),
    "a detach that leaves nothing to learn": lambda text: text.replace("net[2](hidden)", "net[2](hidden).detach()"),
    "no_grad over training": lambda text: text.replace(
        "        hidden = net[:2](x)\n", "        with torch.no_grad():\n            hidden = net[:2](x)\n"
    ),
    "a step too many": lambda text: text.replace("optimizer.step()", "optimizer.step(); optimizer.step()"),
    "other random numbers": lambda text: text.replace("torch.manual_seed(0)", "torch.manual_seed(0); torch.rand(1)"),
    "does not parse": lambda text: text.replace("total += loss", "total += = loss"),
    "does not import": lambda text: text.replace("import torch\n", "import torch, torch.no_such_module\n", 1),
    "ends early": lambda text: text.replace("for x, y in data:", "for x, y in data[:3]:"),
}  # fmt: skip


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_changes_come_out_broken(folder: Path, wrong: str) -> None:
    (folder / "train.py").write_text(TRAIN)
    (folder / "changed.txt").write_text(WRONG[wrong](TRAIN))
    assert WRONG[wrong](TRAIN) != TRAIN
    status, report = verified("train.py", "--against", "changed.txt")
    assert status == 1, report["rewrites"]
    assert "broken" in {verdict for verdict, _ in verdicts(report)}


@pytest.mark.usefixtures("warm")
def test_a_change_that_makes_the_graph_grow(folder: Path) -> None:
    text = TRAIN.replace("total += loss", "total += loss.item()")
    (folder / "train.py").write_text(text)
    growing = text.replace("for epoch in", "kept = []\nfor epoch in").replace(
        "optimizer.step()", "optimizer.step(); kept.append(loss)"
    )
    (folder / "changed.txt").write_text(growing)
    status, report = verified("train.py", "--against", "changed.txt")
    assert status == 1
    assert any("the graph grows" in rewrite["why"] and "kept" in rewrite["why"] for rewrite in report["rewrites"])


@pytest.mark.usefixtures("warm")
def test_a_needed_flag_that_was_dropped(folder: Path) -> None:
    text = TRAIN.replace("        optimizer.step()\n", "        loss.backward()\n        optimizer.step()\n")
    (folder / "train.py").write_text(text)
    (folder / "changed.txt").write_text(text.replace("retain_graph=True", ""))
    status, report = verified("train.py", "--against", "changed.txt")
    assert status == 1
    assert "second time" in report["rewrites"][0]["why"]


@pytest.mark.usefixtures("warm")
def test_the_one_wrong_hunk_is_named_and_the_rest_holds(folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN)
    changed = TRAIN.replace("retain_graph=True", "").replace("total += loss", "total += loss.item()")
    (folder / "changed.txt").write_text(changed.replace("net[2](hidden)", "net[2](hidden.detach())"))
    status, report = verified("train.py", "--against", "changed.txt")
    assert status == 1
    # Neighbouring lines are one hunk.
    assert [(r["verdict"], r["findings"][0]["line"]) for r in report["rewrites"]] == [("broken", 15), ("kept", 18)]
    assert "hold" in report["rewrites"][0]["without"]


@pytest.mark.usefixtures("warm")
def test_a_change_by_hand_that_is_right(folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN)
    (folder / "changed.txt").write_text(TRAIN.replace("total += loss", "total += loss.item()"))
    status, report = verified("train.py", "--against", "changed.txt")
    assert (status, verdicts(report)) == (0, [("kept", "change")])


@pytest.mark.usefixtures("warm")
def test_a_script_that_fails_for_another_reason(folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN.replace("data = [", "weights = open('weights.bin').read()\ndata = ["))
    ran = codemod("verify", "train.py", "--reach", "0", "--no-data")
    assert ran.status == 3
    assert "FileNotFoundError" in ran.stdout
    assert "weights.bin" in ran.stdout
    assert "--stand-in" in ran.stdout
    assert "train.py" in ran.stdout
    assert "line 8" in ran.stdout or "train.py:8" in ran.stdout


def test_a_missing_module(folder: Path) -> None:
    """What only has to be there is stood in for; what the script takes its turns from is named."""
    (folder / "train.py").write_text("import no_such_library\n" + TRAIN)
    ran = codemod("verify", "train.py")
    assert ran.status == 0
    assert "stand-in data for the module no_such_library" in ran.stdout
    needed = TRAIN.replace("range(12)", "no_such_library.batches(12)")
    (folder / "train.py").write_text("import no_such_library\n" + needed)
    ran = codemod("verify", "train.py")
    assert ran.status == 3
    assert "no_such_library" in ran.stdout
    assert "install" in ran.stdout


@pytest.mark.usefixtures("warm")
def test_a_script_that_does_not_parse(folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN + "total += = 1\n")
    ran = codemod("verify", "train.py")
    assert ran.status == 3
    assert "SyntaxError" in ran.stdout


def test_an_interpreter_without_torch(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "bare"], check=True)
    (folder / "train.py").write_text(TRAIN)
    ran = codemod("verify", "train.py", "--python", "bare/bin/python")
    assert ran.status == 3
    assert f"{folder / 'bare' / 'bin' / 'python'} has no torch:".replace(" ", "") in "".join(ran.stdout.split())


def test_an_interpreter_is_looked_for_from_where_the_user_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").touch()
    (folder / "bin").mkdir()
    (folder / "bin" / "own").symlink_to(sys.executable)
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text(TRAIN)
    monkeypatch.chdir(folder / "code")
    ran = codemod("verify", "train.py", "--python", "../bin/own", "--tree", "..", "--format", "json")
    assert f'"python": "{folder / "bin" / "own"}"' in ran.stdout


@pytest.mark.parametrize(
    ("python", "sentence"),
    [
        ("/nowhere/python", "--python /nowhere/python: no such file"),
        ("gone/python", "--python gone/python: no such file"),
        ("plain", "--python plain: no such command; name the interpreter that has torch"),
        ("./plain", "--python ./plain: cannot be executed"),
        (".", "--python .: no such command; name the interpreter that has torch"),
        ("./", "--python ./: is a folder; name the interpreter that has torch"),
    ],
)
def test_an_interpreter_that_is_not_there(folder: Path, python: str, sentence: str) -> None:
    (folder / "train.py").write_text("open('ran', 'w')\n" + TRAIN)
    (folder / "plain").write_text("text\n")
    before = sorted(folder.iterdir())
    for words in (["verify", "train.py"], ["apply", ".", "--verify", "train.py"]):
        ran = codemod(*words, "--python", python)
        assert (ran.status, ran.stdout) == (2, "")
        assert ran.stderr == f"codemod: {sentence}\n"
    assert sorted(folder.iterdir()) == before


def test_a_device_that_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    (folder / "train.py").write_text(TRAIN)
    ran = codemod("verify", "train.py", "--device", "cuda")
    assert ran.status == 3
    assert "no CUDA device" in ran.stdout


@pytest.mark.usefixtures("warm")
def test_a_script_that_says_cuda_runs_on_the_cpu(folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN.replace("nn.Linear(16, 1))", "nn.Linear(16, 1)).cuda()"))
    ran = codemod("verify", "train.py", "--device", "cpu")
    assert ran.status == 0
    assert "cuda" in ran.stdout.lower()


def test_a_script_that_hangs(folder: Path) -> None:
    (folder / "train.py").write_text("import threading\nthreading.Event().wait()\n" + TRAIN)
    ran = codemod("verify", "train.py", "--timeout", "6")
    assert ran.status == 3
    assert "timed out" in ran.stdout


def test_a_loop_without_an_end_is_cut_short(folder: Path) -> None:
    """What lies behind it is judged, and the report says how it was come to."""
    (folder / "train.py").write_text("import time\nwhile True:\n    time.sleep(1)\n" + TRAIN)
    ran = codemod("verify", "train.py", "--timeout", "15")
    assert ran.status == 0
    assert "train.py:2: to reach the code after it, the loop was ended after 1 iteration" in ran.stdout


@pytest.mark.usefixtures("warm")
def test_a_script_that_is_not_deterministic(folder: Path) -> None:
    noise = "import os\n" + TRAIN.replace("torch.randn(4, 8)", "torch.randn(4, 8) + os.urandom(1)[0] / 100")
    (folder / "train.py").write_text(noise)
    status, report = verified("train.py")
    assert status == 3
    assert report["entries"][0]["deterministic"] is False
    assert {verdict for verdict, _ in verdicts(report)} == {"not judged"}


@pytest.mark.usefixtures("warm")
def test_seeds_of_the_clock_are_replayed(folder: Path) -> None:
    (folder / "train.py").write_text(
        TRAIN.replace("torch.manual_seed(0)", "import time; torch.manual_seed(time.time_ns() % 2**31)")
    )
    status, report = verified("train.py")
    assert report["entries"][0]["deterministic"] is True
    assert status == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.py"], "nowhere.py: no such file"),
        ([], "name a script"),
        (["train.py", "--device", "tpu"], "--device tpu"),
        (["train.py", "--memory", "lots"], "--memory lots"),
        (["train.py", "--stand-in", "x"], "--stand-in"),
        (["train.py", "--format", "pdf"], "--format pdf"),
        (["train.py", "--against", "nowhere"], "nowhere: no such file"),
        (["train.py", "--against", "train.py"], "no difference"),
        (["train.py", "--promise", "exact"], "--against"),
        (["train.py", "--tree", "nowhere"], "nowhere: no such folder"),
        (["--entry", "python"], "no script"),
        (["train.py", "--select", "no-such-rule"], "no-such-rule"),
    ],
)
def test_bad_usage(folder: Path, arguments: list[str], sentence: str) -> None:
    (folder / "train.py").write_text(TRAIN)
    ran = codemod("verify", *arguments)
    assert ran.status == 2
    assert sentence in ran.stderr
    assert "Traceback" not in ran.stderr


def test_apply_writes_only_what_was_kept(folder: Path) -> None:
    idle = dedent(
        """\


        def never(loader):
            total = 0
            for x, y in loader:
                loss = F.mse_loss(net(x), y)
                loss.backward()
                total += loss
            return float(total)
        """
    )
    (folder / "train.py").write_text(TRAIN + idle)
    ran = codemod("apply", ".", "--verify", "train.py")
    text = (folder / "train.py").read_text()
    assert ran.status == 0, ran.stderr
    assert text == TRAIN.replace("retain_graph=True", "").replace("total += loss", "total += loss.item()") + idle
    assert "not reached" in ran.stdout


def test_apply_leaves_everything_where_nothing_could_be_judged(folder: Path) -> None:
    (folder / "train.py").write_text("raise SystemExit(1)\n" + TRAIN)
    ran = codemod("apply", ".", "--verify", "train.py")
    assert ran.status == 3
    assert (folder / "train.py").read_text() == "raise SystemExit(1)\n" + TRAIN
