"""On a card two runs of one program may be the same by chance; that speaks against no rewrite."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.verify.judging.test_verdicts import changed, verdicts
from verify.judging import bench
from verify.measured.results import Run, Verification
from verify.running.runner import Runner
from verify.running.settings import Command

pytestmark = pytest.mark.slow

SCRIPT = """\
import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
other = 1e-6 if {when} else 0.0
total = 0
for step in range(5):
    loss = net(torch.randn(8, 4)).pow(2).mean() * (1.0 + other)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
print(float(total))
"""
ITEM = ("total += loss", "total += loss.item()")


def judged(
    monkeypatch: pytest.MonkeyPatch,
    when: str,
    *,
    card: bool,
    script: str = SCRIPT,
    item: tuple[str, str] = ITEM,
) -> Verification:
    """A right change, in the working directory, of a program whose n-th run computes something else ``when`` so."""
    ran, numbers = Runner.run, itertools.count(1)

    def run(self: Runner, name: str, command: Command, **kwargs: Any) -> Run:
        self.settings.environment["TURN"] = str(next(numbers))
        return ran(self, name, command, **kwargs)

    monkeypatch.setattr(Runner, "run", run)
    monkeypatch.setattr(bench, "_on_a_card", lambda run: card)
    text = "import os\n" + script.format(when=f"int(os.environ['TURN']) in {when}")
    return changed(Path.cwd(), text, text.replace(*item))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory: a project of its own."""
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("turn", [4, 5])
def test_the_original_differs_when_it_is_run_once_more(turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    result = judged(monkeypatch, f"(3, {turn})", card=True)
    assert set(verdicts(result).values()) == {"not judged"}
    assert result.entries[0].deterministic is False


def test_a_program_that_is_the_same_each_time_is_judged_by_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    result = judged(monkeypatch, "(3,)", card=True)
    assert set(verdicts(result).values()) == {"broken"}


def test_without_a_card_nothing_is_run_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    result = judged(monkeypatch, "(3, 4, 5)", card=False)
    assert set(verdicts(result).values()) == {"broken"}


#: Its first run ends with the steps that are asked for, and what comes behind them is run for its rewritten line.
BEHIND = """\
import torch

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(30):
    loss = net(torch.randn(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
other = 0.5 if {when} else 0.0
total = 0
for step in range(3):
    total += net(torch.randn(8, 4)).pow(2).mean()
print(float(total) + other)
"""
BEHIND_ITEM = ("total += net(torch.randn(8, 4)).pow(2).mean()", "total += net(torch.randn(8, 4)).pow(2).mean().item()")


@pytest.mark.parametrize(("turns", "verdict"), [("(3, 4)", "not judged"), ("(3,)", "broken")])
def test_behind_the_steps_the_original_is_run_once_more(
    turns: str, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = judged(monkeypatch, turns, card=False, script=BEHIND, item=BEHIND_ITEM)
    assert set(verdicts(result).values()) == {verdict}


#: Torch has no deterministic kernel for it, on the CPU neither.
PUT = SCRIPT.format(when="False").replace(
    "    total += loss", "    total += torch.zeros(4).put_(torch.tensor([0]), loss, accumulate=False).sum()"
)
PUT_ITEM = ("total += torch", "total += float(torch"), (".sum()", ".sum())")


def test_a_difference_behind_a_kernel_that_adds_in_any_order_is_not_judged() -> None:
    new = PUT.replace("* (1.0 + other)", "* (1.0 + 1e-6)")
    result = changed(Path.cwd(), PUT, new)
    assert verdicts(result) == {9: "not judged"}
    assert "torch has no deterministic kernel for put_" in result.rewrites[0].why


def test_the_same_numbers_are_the_same_whatever_the_kernel() -> None:
    new = PUT
    for pair in PUT_ITEM:
        new = new.replace(*pair)
    assert set(verdicts(changed(Path.cwd(), PUT, new)).values()) == {"kept"}


def test_torchs_warning_is_not_shown_to_a_script_that_did_not_ask() -> None:
    output = changed(Path.cwd(), PUT, PUT.replace("* (1.0 + other)", "* (1.0 + other) ")).entries[0].original.output
    assert "deterministic" not in output
