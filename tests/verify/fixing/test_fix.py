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
from verify.fixing.fix import Fixer
from verify.fixing.repairs import Fixed, Repair
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


def test_what_the_rules_know_is_proposed_where_nothing_is_wrong(tmp_path: Path) -> None:
    result = fixed(SURPLUS.partition("net.eval()")[0], tmp_path)
    (repair,) = result.repairs
    assert changed(repair) == ["loss.backward()"]
    assert "surplus-retain-graph" in " ".join(repair.proof)


def test_waste_is_mended_and_what_has_nothing_to_do_with_it_is_named(tmp_path: Path) -> None:
    result = fixed(SURPLUS, tmp_path)
    (repair,) = result.repairs
    assert changed(repair)[0] == "with torch.no_grad():"
    assert "loss.backward()" not in changed(repair)
    assert result.besides == ("surplus-retain-graph at train.py:8",)


CARRIED = """
import torch
net, head = torch.nn.LSTM(4, 8), torch.nn.Linear(8, 1)
parameters = [*net.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, 0.1)
state, total = None, 0
for step in range(14):
    out, state = net(torch.randn(5, 2, 4), state)
    loss = head(out).square().mean()
    optimizer.zero_grad()
    loss.backward({})
    optimizer.step()
    {}
print(float(total))
"""


def changed(repair: Repair) -> list[str]:
    """The lines that a repair adds."""
    lines = repair.diff.splitlines()
    return [line[1:].strip() for line in lines if line.startswith("+") and not line.startswith("+++")]


def test_each_fault_gets_a_change_of_its_own_and_they_are_proved_together(tmp_path: Path) -> None:
    result = fixed(CARRIED.format("", "total += loss"), tmp_path)
    assert result.status == 0
    state, total = result.repairs
    assert changed(state) == ["state = tuple(h.detach() for h in state)"]
    assert changed(total) == ["total += loss.item()"]
    assert "proved together" in state.proof[0]
    assert "the error of the original" in total.proof[0]
    assert "the graph stays flat" in total.proof[0]


def test_what_a_repair_does_not_need_is_left_out_and_named(tmp_path: Path) -> None:
    extra = "other = torch.nn.Linear(4, 1)\nother(torch.randn(2, 4)).sum().backward(retain_graph=True)\n"
    result = fixed(CARRIED.format("", "total += loss.item()") + extra, tmp_path)
    (state,) = result.repairs
    assert changed(state) == ["state = tuple(h.detach() for h in state)"]
    assert result.besides == ("surplus-retain-graph at train.py:17",)
    shown = report.text(result, written=False)
    assert "the rules also find, and this does not need: surplus-retain-graph at train.py:17" in shown
    assert json.loads(report.as_json(result, written=False))["besides"] == list(result.besides)


TWICE = """
import torch
body, gate, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD([*body.parameters(), *gate.parameters(), *head.parameters()], 0.1)
for step in range(8):
    x = torch.randn(3, 4)
    h = torch.sigmoid(body(x))
    g = torch.tanh(gate(x))
    h *= 0.5
    g.mul_(h).add_(1)
    loss = head(h + g).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_one_error_may_hide_the_next(tmp_path: Path) -> None:
    result = fixed(TWICE, tmp_path)
    assert result.status == 0
    made = [line for repair in result.repairs for line in changed(repair)]
    assert sorted(made) == ["g = g.mul(h).add(1)", "h = h * 0.5"]


TWO_OPTIMIZERS = """
import torch
encoder, decoder = torch.nn.Linear(6, 3), torch.nn.Linear(3, 6)
first, second = (torch.optim.SGD(net.parameters(), 0.1) for net in (encoder, decoder))
for step in range(8):
    x = torch.randn(4, 6)
    z = encoder(x)
    error = (decoder(z) - x).square().mean()
    penalty = z.square().mean() + error
    second.zero_grad()
    error.backward()
    second.step()
    first.zero_grad()
    penalty.backward()
    first.step()
"""


def test_a_change_that_makes_another_one_necessary_is_followed(tmp_path: Path) -> None:
    result = fixed(TWO_OPTIMIZERS, tmp_path)
    assert result.status == 0
    text = result.files["train.py"].decode()
    kept, stepped = result.repairs
    assert changed(kept) == ["error.backward(retain_graph=True)"]
    assert text.index("penalty.backward()") < text.index("second.step()")
    assert "the error of the original" in stepped.proof[0]


def test_where_what_is_uncovered_stays_nothing_is_changed(tmp_path: Path) -> None:
    text = CARRIED.format("", "atexit.register(str, loss * 1)").replace("import torch", "import atexit, torch", 1)
    result = fixed(text, tmp_path)
    assert (result.status, result.repairs, result.files) == (1, (), {})
    assert any("grows" in one.why for one in result.refused)


def test_graphs_go_though_their_values_stay(tmp_path: Path) -> None:
    text = CARRIED.format("", "state = None\n    kept.append(out)").replace(
        "state, total =", "kept = []\nstate, total ="
    )
    result = fixed(text.replace("torch.randn(5, 2, 4)", "torch.randn(64, 16, 4)"), tmp_path)
    (repair,) = result.repairs
    assert changed(repair) in (["kept.append(out.detach())"], ["out = out.detach()"])
    assert [fault.kind.value for fault in result.after.faults] == ["growing-tensors"]
    assert result.status == 1


GAN = """
import torch
maker, judge = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
first, second = (torch.optim.SGD(net.parameters(), 0.1) for net in (maker, judge))
for step in range(8):
    fake = maker(torch.randn(3, 4))
    judge.zero_grad()
    judge(fake).square().mean().backward()
    second.step()
    maker.zero_grad()
    judge(maker(torch.randn(3, 4))).mean().backward()
    first.step()
"""


def test_waste_that_a_rewrite_leaves_goes_too(tmp_path: Path) -> None:
    result = fixed(GAN, tmp_path)
    assert result.status == 0
    assert ".detach()" in result.repairs[0].diff
    assert changed(result.repairs[1]) == ["with torch.no_grad():", "fake = maker(torch.randn(3, 4))"]


LACKING = """
import surely_absent_logger
import torch
logger = surely_absent_logger.Logger("run")
cell, head = torch.nn.GRUCell(4, 6), torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], 0.1)
h = torch.zeros(3, 6)
for step in range(8):
    h = cell(torch.randn(3, 4), h)
    loss = head(h).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    logger.add("loss", loss.item())
"""


def test_a_program_that_lacks_a_module_is_mended_with_a_stand_in_and_that_is_told(tmp_path: Path) -> None:
    result = fixed(LACKING, tmp_path)
    assert result.status == 0
    (repair,) = result.repairs
    assert changed(repair) == ["h = h.detach()"]
    told = report.text(result, written=False)
    assert "limit: stand-in data for the module surely_absent_logger" in told
    assert "limit: on stand-in data" in told
    assert json.loads(report.as_json(result, written=False))["after"]["limits"] == list(result.after.limits)


OLD = """
import torch
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
total = 0
for step in range(14):
    loss = net(torch.randn(5, 4)).square().mean()
    {}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss{}
print(total)
"""


def test_a_line_of_old_code_is_mended_and_then_what_is_wrong_behind_it(tmp_path: Path) -> None:
    result = fixed(OLD.format("print(step, loss.data[0])", ""), tmp_path)
    assert result.status == 0
    old, total = result.repairs
    assert changed(old) == ["print(step, loss.item())"]
    assert changed(total) == ["total += loss.item()"]
    # The second one is held against the program that the first one made.
    assert "the graph grows" in total.proof[0]
    assert "bit for bit the same over 14 steps" in total.proof[0]


def test_a_line_of_old_code_is_all_that_is_mended_where_nothing_is_wrong_behind_it(tmp_path: Path) -> None:
    result = fixed(OLD.format("print(step, loss.data[0])", ".item()"), tmp_path)
    (old,) = result.repairs
    assert (result.status, changed(old)) == (0, ["print(step, loss.item())"])


def test_of_old_code_what_the_program_stops_at_is_mended_everywhere_and_nothing_else(tmp_path: Path) -> None:
    text = OLD.format("loss = torch.autograd.Variable(loss) * 1\n    print(step, loss.data[0])", ".item()")
    (old,) = fixed(f"{text}print(loss.data[0])\n", tmp_path).repairs
    assert changed(old) == ["print(step, loss.item())", "print(loss.item())"]


@pytest.mark.parametrize("line", ["print(step, loss.shape[0])", "print(step, loss.data[undefined])"])
def test_a_mistake_that_no_rule_knows_stays(line: str, tmp_path: Path) -> None:
    result = fixed(OLD.format(line, ""), tmp_path)
    assert (result.status, result.repairs, result.files) == (3, (), {})


def test_the_program_gets_past_a_missing_module_to_a_line_of_old_code(tmp_path: Path) -> None:
    text = OLD.format("print(step, loss.data[0])", ".item()").replace("import torch", "import surely_absent, torch", 1)
    (old,) = fixed(text, tmp_path).repairs
    assert changed(old) == ["print(step, loss.item())"]


METERED = """
class Meter:
    def __init__(self):
        self.values = []
    def update(self, value):
        self.values.append(value)
"""
TWO_FILES = """
import torch
from meter import Meter
cell, head = torch.nn.RNNCell(4, 6), torch.nn.Linear(6, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], 0.1)
meter = Meter()
h = torch.zeros(3, 6)
for step in range(14):
    h = cell(torch.randn(3, 4), h)
    loss = head(h).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.update(loss * 1)
"""


def test_changes_of_two_files_are_both_made(tmp_path: Path) -> None:
    (tmp_path / "meter.py").write_text(METERED, encoding="utf-8")
    result = fixed(TWO_FILES, tmp_path)
    assert result.status == 0
    made = "".join(data.decode() for _, data in sorted(result.files.items()))
    assert "h = h.detach()" in made
    assert [line for repair in result.repairs for line in changed(repair) if line in made] == [
        line for repair in result.repairs for line in changed(repair)
    ]


READING = """
import json
import torch
def load(path):
    with open(path) as file:
        return torch.tensor(json.load(file))
data = load("data/table.json")
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
total = 0
for step in range(14):
    loss = net(data).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
print(total)
"""


def test_a_program_without_its_data_is_mended_with_made_up_values(tmp_path: Path) -> None:
    result = fixed(READING, tmp_path)
    assert result.status == 0
    (repair,) = result.repairs
    assert changed(repair) == ["total += loss.item()"]
    assert repair.proof[0].startswith("kept, with made-up values: ")
    assert any("data/table.json" in limit for limit in result.after.limits)
    assert "made-up" not in result.files["train.py"].decode()


def test_what_learns_is_not_told_from_made_up_values(tmp_path: Path) -> None:
    # A value that is made up has no graph, whatever the true one had.
    made = "net(data.detach()).detach().square().mean().requires_grad_()"
    text = READING.replace("net(data).square().mean()", made).replace("loss\nprint", "1\nprint")
    whole = text.replace('load("data/table.json")', "torch.ones(4, 4)")
    text = text.replace("import json", "import json, surely_absent").replace("load(", "surely_absent.table(", 1)
    text = text.replace("def surely_absent.table(", "def load(").replace("data = load(", "data = surely_absent.table(")
    (tmp_path / "one").mkdir()
    assert [fault.kind.value for fault in fixed(whole, tmp_path / "one").before.faults] == ["loss-cut-off"]
    result = fixed(text, tmp_path)
    assert (result.status, result.repairs, result.before.faults) == (0, (), ())
    assert "what learns: made-up values have no graph" in result.before.unwatched


PLAYERS = """
import torch
from torch import nn
from torch.nn.functional import softplus
torch.manual_seed(1)
class Pair:
    def __init__(self):
        self.maker = nn.Linear(3, 4)
        self.body, self.real, self.code = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 3)
    def judge(self, x):
        return self.real(self.body(x).tanh())
pair = eval("Pair()")
judging = [*pair.body.parameters(), *pair.real.parameters()]
first = torch.optim.SGD(pair.maker.parameters(), 0.02)
second = torch.optim.SGD(judging, 0.02)
"""
JUDGED_FIRST = """
for step in range(12):
    x, z = torch.randn(6, 4), torch.randn(6, 3)
    made = pair.maker(z)
    worth = softplus(-pair.judge(x)).mean() + softplus(pair.judge(made)).mean()
    second.zero_grad()
    worth.backward()
    second.step()
    fool = softplus(-pair.judge(made)).mean()
    first.zero_grad()
    fool.backward()
    first.step()
"""
TOLD_CODES = """
third = torch.optim.SGD([*pair.maker.parameters(), *judging, *pair.code.parameters()], 0.02)
for step in range(12):
    x, z = torch.randn(6, 4), torch.randn(6, 3)
    made = pair.maker(z)
    fool = softplus(-pair.judge(made)).mean()
    first.zero_grad()
    fool.backward()
    first.step()
    worth = softplus(-pair.judge(x)).mean() + softplus(pair.judge(made)).mean()
    second.zero_grad()
    worth.backward()
    second.step()
    told = (pair.code(pair.body(pair.maker(z)).tanh()) - z).square().mean()
    third.zero_grad()
    told.backward()
    third.step()
"""


@pytest.mark.parametrize(
    ("losses", "line"),
    [
        (JUDGED_FIRST, "worth = softplus(-pair.judge(x)).mean() + softplus(pair.judge(made.detach())).mean()"),
        # The third optimizer holds a layer that its loss never comes to: no cut is to blame for that.
        (TOLD_CODES, "made = made.detach()"),
    ],
)
def test_what_the_maker_made_is_judged_without_its_graph(losses: str, line: str, tmp_path: Path) -> None:
    result = fixed(PLAYERS + losses, tmp_path)
    assert result.status == 0, [(one.title, one.why) for one in result.refused]
    (repair,) = result.repairs
    assert changed(repair) == [line]


def test_old_code_further_on_is_mended_with_the_repair_that_comes_to_it(tmp_path: Path) -> None:
    text = """
import torch
from torch import nn
torch.manual_seed(1)
cell = nn.GRUCell(3, 4)
optimizer = torch.optim.SGD(cell.parameters(), 0.1)
kept = {"state": torch.zeros(2, 4)}
for epoch in range(3):
    for batch in range(4):
        kept["state"] = cell(torch.randn(2, 3), kept["state"])
        loss = kept["state"].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.data[0])
"""
    result = fixed(text, tmp_path)
    assert result.status == 0, [(one.title, one.why) for one in result.refused]
    (repair,) = result.repairs
    assert "loss.item()" in repair.diff
    assert ".detach()" in repair.diff
