"""The doctor on programs that run: what it names is what is wrong, and where nothing is wrong it names nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree

import pytest

from tests.verify.diagnosis import unusual  # noqa: F401 - adds scripts
from tests.verify.diagnosis.scripts import HEAD, SCRIPTS
from tests.verify.zygote import ForkedPlace
from verify.diagnosis.diagnose import diagnose
from verify.diagnosis.model import Diagnosis, Kind
from verify.diagnosis.pictures import svg
from verify.diagnosis.reports import json as as_json
from verify.diagnosis.reports import text
from verify.isolation import Place, Workspace
from verify.running.settings import Command, Settings

DRAWN = {Kind.SECOND_BACKWARD, Kind.CHANGED_IN_PLACE, Kind.GROWING_GRAPH, Kind.OUT_OF_MEMORY}

pytestmark = pytest.mark.slow


def examined(text: str, folder: Path, place: Callable[..., Place] = ForkedPlace, **settings: float) -> Diagnosis:
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(text, encoding="utf-8")
    command = Command((sys.executable, "train.py"), folder, "train.py", folder / "train.py")
    return diagnose(command, folder, settings=Settings(**settings), place=place)  # type: ignore[arg-type]


def marked(text: str, role: str) -> set[int]:
    """The lines whose comment names ``role``."""
    found = set()
    for number, line in enumerate(text.split("\n"), 1):
        if role in line.partition("  # ")[2].split():
            found.add(number)
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_wrong_is_named(name: str, tmp_path: Path) -> None:
    script = SCRIPTS[name]
    diagnosis = examined(script.text, tmp_path)
    assert tuple(fault.kind.value for fault in diagnosis.faults) == script.kinds
    assert diagnosis.status == (1 if script.kinds else 0)
    assert not [note for note in diagnosis.unwatched if "probe" in note]
    if not script.kinds:
        return
    fault = diagnosis.faults[0]
    for role in ("cause", "consumer", "freed_by", "saved_by", "made", "loss", "step", "called_from"):
        if wanted := marked(script.text, role):
            lines = [clue.site.line for clue in fault.clues if clue.role == role.replace("_", " ") and clue.site]
            assert lines, role
            assert lines[0] in wanted, role
    if marked(script.text, "site"):
        assert fault.site is not None
        assert fault.site.line in marked(script.text, "site")
    if script.name:
        assert script.name in [clue.name for clue in fault.clues if clue.role in ("carrier", "parameters", "unused")]
    assert fault.remedy
    assert (fault.graph is not None) == (fault.kind in DRAWN)
    if fault.graph is not None:
        for role in ("cause", "consumer", "saved by"):
            for box in (box for box in fault.graph.boxes if role in box.roles):
                assert box.site is not None
                assert box.site.line in marked(script.text, role.replace(" ", "_"))
        ElementTree.fromstring(svg.draw(fault.graph, fault.headline))


def test_a_program_that_stops_for_another_reason(tmp_path: Path) -> None:
    diagnosis = examined("import torch\nprint(undefined)\n", tmp_path)
    assert diagnosis.status == 3
    assert diagnosis.faults == ()
    assert "train.py:2 with NameError" in diagnosis.reason
    assert "undefined" in diagnosis.traceback


def test_a_program_that_does_not_train(tmp_path: Path) -> None:
    diagnosis = examined("import torch\nprint(torch.ones(2).sum())\n", tmp_path)
    assert diagnosis.status == 3
    assert re.search("without a backward", diagnosis.reason)


def test_steps_that_get_slower(tmp_path: Path) -> None:
    text = """\
import time, torch
from torch import nn
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(30):
    optimizer.zero_grad()
    net(torch.randn(2, 4)).square().mean().backward()
    optimizer.step()
    time.sleep(0.004 * step)
"""
    (fault,) = examined(text, tmp_path).faults
    assert fault.kind.value == "slower-steps"
    assert fault.site is not None
    assert fault.site.line == 9


def test_gradients_that_are_all_zero_are_worth_a_remark(tmp_path: Path) -> None:
    text = """
    body, head = nn.Linear(4, 4), nn.Linear(4, 4)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], 0.1)
    for step in range(6):
        x = torch.randn(3, 4)
        loss = (head(body(x).round()) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
    whole = examined(HEAD + dedent(text).lstrip(), tmp_path)
    assert whole.faults == ()
    assert whole.remarks == ("2 of 4 parameters of SGD get no gradients but zeros: body.weight, body.bias",)
    assert examined(HEAD + dedent(text).lstrip().replace(".round()", ""), tmp_path).remarks == ()


@pytest.mark.parametrize(("factor", "learning"), [("step != 8", 2), ("step < 4", 0)])
def test_who_learns_is_not_judged_by_one_step(factor: str, learning: int, tmp_path: Path) -> None:
    text = f"""
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(12):
        loss = net(torch.randn(3, 4)).square().mean() * ({factor})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
    assert examined(HEAD + dedent(text).lstrip(), tmp_path).measures.learning == learning


PILE = """
net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
kept = []
for step in range(2000):
    loss = net(torch.randn(SIZE, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(net(torch.randn(SIZE, 64)).LAST)
"""


@pytest.mark.parametrize(
    ("batch", "last", "line", "remedy", "carrier"),
    [
        (16384, "square()", "kept.append", "graphs pile up", "kept[*]"),
        # one operation takes more than there is
        (3_000_000, "detach()", "loss = net", "smaller batches", None),
    ],
)
def test_what_memory_runs_out_of(
    batch: int, last: str, line: str, remedy: str, carrier: str | None, tmp_path: Path
) -> None:
    text = HEAD + PILE.replace("SIZE", str(batch)).replace("LAST", last)
    diagnosis = examined(text, tmp_path, Workspace, memory=1200 << 20)
    fault = diagnosis.faults[0]
    assert fault.kind is Kind.OUT_OF_MEMORY
    assert remedy in fault.remedy
    # the line that holds most, or else the one that ran when it was half gone
    most = next((clue.site for clue in fault.clues if clue.role == "activations"), fault.site)
    assert most is not None
    assert line in text.splitlines()[most.line - 1]
    assert next((clue.name for clue in fault.clues if clue.role == "carrier"), None) == carrier


ABSENT = HEAD + dedent(
    """
    import surely_absent_logger
    logger = surely_absent_logger.Logger("run")
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    total = 0
    for step in range(14):
        loss = net(torch.randn(5, 4)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss
        logger.add(step)
    """
)
REQUIRED = HEAD + dedent(
    """
    import argparse
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", required=True)
    args = parser.parse_args()
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(14):
        loss = net(torch.randn(5, 4)).square().mean()
        opt.zero_grad()
        if args.mode == "train":
            loss.backward()
            opt.step()
        open(f"logs/out/{step}", "w").write(str(loss.item()))
    """
)


def test_what_a_program_lacks_has_a_stand_in_and_that_is_told(tmp_path: Path) -> None:
    diagnosis = examined(ABSENT, tmp_path)
    assert [fault.kind for fault in diagnosis.faults] == [Kind.GROWING_GRAPH]
    assert [run.name for run in diagnosis.runs][1] == "the same with a stand-in for surely_absent_logger"
    assert "module surely_absent_logger" in diagnosis.limits[0]
    assert text.render(diagnosis).count("\nlimit: ") == len(diagnosis.limits) == 2
    assert as_json.content(diagnosis)["limits"] == list(diagnosis.limits)


def test_arguments_and_folders_that_are_missing_are_made_up(tmp_path: Path) -> None:
    diagnosis = examined(REQUIRED, tmp_path)
    assert (diagnosis.status, diagnosis.reason, diagnosis.steps) == (0, "", 14)
    assert any("mode" in limit for limit in diagnosis.limits)


def test_without_made_up_data_a_program_that_lacks_a_module_is_told_what_it_lacks(tmp_path: Path) -> None:
    diagnosis = examined(ABSENT, tmp_path, data=False)
    assert (diagnosis.status, diagnosis.limits, len(diagnosis.runs)) == (3, (), 1)
    assert "surely_absent_logger" in " ".join(diagnosis.advice)


def test_where_a_stand_in_does_not_help_the_first_run_counts(tmp_path: Path) -> None:
    diagnosis = examined(ABSENT.replace("net = nn", "undefined\nnet = nn"), tmp_path)
    assert (diagnosis.status, diagnosis.limits) == (3, ())
    assert "ModuleNotFoundError" in diagnosis.reason


def test_a_program_that_lacks_nothing_has_no_limits(tmp_path: Path) -> None:
    whole = ABSENT.replace("import surely_absent_logger\n", "").replace("surely_absent_logger.Logger", "dict")
    assert examined(whole.replace("logger.add(step)", "pass").replace('dict("run")', "{}"), tmp_path).limits == ()


def test_what_a_program_reads_from_a_folder_that_is_missing_is_not_made_up(tmp_path: Path) -> None:
    diagnosis = examined(REQUIRED.replace('"w").write(str(loss.item()))', '"r").read()'), tmp_path)
    assert (diagnosis.status, diagnosis.steps) == (3, 1)
    assert not any("logs" in limit for limit in diagnosis.limits)


def test_no_time_is_spent_on_made_up_values_where_none_is_given(tmp_path: Path) -> None:
    text = HEAD + 'import json\ndata = json.load(open("table.json"))\nprint(nn.Linear(2, 1)(torch.tensor(data)))\n'
    diagnosis = examined(text, tmp_path, reach=0.0)
    assert (diagnosis.status, diagnosis.limits) == (3, ())
    assert "table.json is not there" in " ".join(diagnosis.advice)
