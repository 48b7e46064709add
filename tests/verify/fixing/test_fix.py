"""From the error to the diff, on programs that run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from codemods.source.options import Options
from tests.verify.diagnosis.scripts import SCRIPTS
from tests.verify.fixing.seeds import SEEDS, STORIES, Seed
from tests.verify.zygote import ForkedPlace
from verify.diagnosis.reports.text import render
from verify.fixing import report
from verify.fixing.fix import Fixed, Fixer
from verify.running.settings import Command, Settings

pytestmark = pytest.mark.slow


def fixed(text: str, folder: Path) -> Fixed:
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(text, encoding="utf-8")
    command = Command((sys.executable, "train.py"), folder, "train.py", folder / "train.py")
    return Fixer(command, folder, settings=Settings(), options=Options(), place=ForkedPlace).fix()


@pytest.mark.parametrize(
    ("name", "added"),
    [
        ("a meter of an object in a dictionary", 'self.meters["loss"].history.append(loss.item())'),
    ],
)
def test_a_fault_becomes_a_proved_diff(name: str, added: str, tmp_path: Path) -> None:
    result = fixed(SCRIPTS[name].text, tmp_path)
    assert result.status == 0
    (repair,) = result.repairs
    assert repair.proof
    assert any(line.startswith("+") and added in line for line in repair.diff.splitlines())
    assert (tmp_path / "train.py").read_text() == SCRIPTS[name].text
    assert {path: source.text for path, source in result.sources.items()} == {"train.py": SCRIPTS[name].text}
    assert "nothing is wrong any more" in report.text(result, written=False)
    assert json.loads(report.as_json(result, written=False))["repairs"][0]["proof"]


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.page)
def test_a_mistake_that_all_began_with_goes_as_its_page_tells(seed: Seed, tmp_path: Path) -> None:
    result = fixed(seed.block("python"), tmp_path)
    assert result.status == 0
    (repair,) = result.repairs
    assert repair.diff.split("\n", 2)[2] == seed.block("diff")
    told = render(result.before).splitlines()
    # Where runs are forked, the script's variables are gone at its end, and the names of its parameters with them.
    lines = [line for line in seed.block("text").splitlines() if not line.startswith("   parameters")]
    assert [line for line in lines if line not in told] == []
    assert (repair.measures.learning, repair.measures.meant) == (seed.learning, seed.learning)
    assert all(other.measures.learning <= seed.learning for other in repair.others)
    if seed.other:
        assert any(seed.other in other.diff for other in repair.others)
        shown = report.text(result, written=False).splitlines()
        assert any("this one" in line and " or" in line for line in shown)


def test_each_story_is_run() -> None:
    assert {seed.page for seed in SEEDS} == {page.stem for page in STORIES.glob("*.md")}


def test_a_change_that_keeps_parameters_from_learning_is_no_repair(tmp_path: Path) -> None:
    # With the step behind both backwards the gradients of the two losses cancel each other out.
    result = fixed(SCRIPTS["a discriminator that steps before the generator's backward"].text, tmp_path)
    assert (result.status, result.repairs, result.files) == (1, (), {})
    assert "do not learn" in result.refused[0].why
    assert "tried in vain" in report.text(result, written=False)


def test_a_program_without_faults_is_left_alone(tmp_path: Path) -> None:
    # Its window of tensors is a finding of the rules, though nothing grows.
    text = SCRIPTS["an ordinary training"].text.replace("recent.append(loss)", "recent.append(loss.item())")
    result = fixed(text, tmp_path)
    assert (result.status, result.repairs, result.refused) == (0, (), ())


def test_a_program_that_cannot_be_run_is_not_touched(tmp_path: Path) -> None:
    result = fixed("import torch\nprint(undefined)\n", tmp_path)
    assert (result.status, result.repairs) == (3, ())
    assert "NameError" in report.text(result, written=False)


SURPLUS = """
import torch
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(8):
    loss = net(torch.randn(3, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
net.eval()
for step in range(4):
    print(net(torch.randn(3, 4)).mean().item())
"""


def test_what_the_rules_know_is_proposed_where_no_error_and_no_growth_shows(tmp_path: Path) -> None:
    result = fixed(SURPLUS, tmp_path)
    (repair,) = result.repairs
    added = [line[1:].strip() for line in repair.diff.splitlines() if line.startswith("+")]
    assert "loss.backward()" in added
    assert "surplus-retain-graph" in " ".join(repair.proof)
