"""The hunt in small, and what it is built of: each check has to find what it is there for."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from tests.hunt import comparing
from tests.hunt.checking import HARMLESS, Checker, check
from tests.hunt.crossed import programs as crossed
from tests.hunt.hunting import Findings, Hunt, hunted
from tests.hunt.programs import Make, program
from tests.hunt.running import Run, run
from tests.hunt.shrinking import fewer_choices, fewer_statements

TRAIN = """\
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0
for i in range(4):
    loss = net(torch.ones(2, 3) * i).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss.item()
print(total)
"""


def runs(old: str, new: str) -> tuple[Run, Run]:
    """The training script, and the same with ``old`` replaced."""
    assert old in TRAIN
    return run({"main.py": TRAIN}), run({"main.py": TRAIN.replace(old, new)})


@pytest.mark.parametrize("make", [program, crossed.program])
def test_programs_are_python_and_come_again(make: Make) -> None:
    for seed in range(200):
        made = make(seed)
        for text in made.files.values():
            ast.parse(text)
        assert make(record=made.choices).files == made.files


def test_a_run_is_watched() -> None:
    found = run({"main.py": TRAIN})
    assert found.error is None
    assert (len(found.losses), len(found.steps)) == (4, 4)
    assert found.output.strip()
    assert len({step.parameters[0].tobytes() for step in found.steps}) == 4
    assert not comparing.grows(found)


def test_the_same_program_keeps_every_promise() -> None:
    before, after = runs("print(total)", "print(total)")
    for promise in (comparing.exact, comparing.equivalent, comparing.repair, comparing.behaviour):
        assert promise(before, after) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lr=0.1", "lr=0.1001"),
        ("    opt.step()\n", "    opt.step()\n    torch.rand(1)\n"),
        ("print(total)", "print(total * 1.1)"),
        ("print(total)", "print('total', total)"),
        ("print(total)", "print(total)\nnet[0].weight.data.add_(1)"),
        ("range(4)", "range(5)"),
        ("loss.backward()", "loss.detach().backward()"),
    ],
)
def test_what_is_not_exact(old: str, new: str) -> None:
    assert comparing.exact(*runs(old, new))


def test_the_digits_of_a_total_may_differ() -> None:
    before, after = runs("loss.item()", "loss")
    assert comparing.exact(before, after) == ""


def test_rounding_is_equivalent_and_not_exact() -> None:
    before, after = runs("pow(2)", "square().mul(3).div(3)")
    assert comparing.equivalent(before, after) == ""
    before, after = runs("lr=0.1", "lr=0.101")
    assert comparing.equivalent(before, after)


NOISE = """
import torch

w = torch.nn.Parameter(torch.ones(3))
opt = torch.optim.Adagrad([w], lr=0.1)
a, b = torch.tensor(0.1), torch.tensor(0.9)
for _ in range(3):
    opt.zero_grad()
    grow = (w * (a * 9 - b)).sum()
    grow.backward()
    opt.step()
"""


def test_more_digits_tell_rounding_from_learning() -> None:
    changed = NOISE.replace("a * 9 - b", "0 * a"), NOISE.replace("grow =", "grow = -1e-3 * w.sum() +")
    before = run({"main.py": NOISE})
    assert all(comparing.equivalent(before, run({"main.py": text})) for text in changed)
    exactly = run({"main.py": NOISE}, double=True)
    same, other = (run({"main.py": text}, double=True) for text in changed)
    assert comparing.equivalent(exactly, same, least=1e-6) == ""
    assert comparing.equivalent(exactly, other, least=1e-6)


def test_more_digits_tell_it_also_of_programs_that_stop() -> None:
    stopping = NOISE + "torch.zeros(()).backward()\n"
    same, other = stopping.replace("a * 9 - b", "0 * a"), stopping.replace("grow =", "grow = -1e-3 * w.sum() +")
    in_double = Checker({"main.py": stopping})._in_double
    assert in_double({"main.py": stopping}, {"main.py": same}, "0.1 apart") == ""
    assert in_double({"main.py": stopping}, {"main.py": other}, "0.1 apart")
    assert in_double({"main.py": stopping}, {"main.py": NOISE}, "0.1 apart") == "0.1 apart"


def test_growth_is_seen() -> None:
    before, after = runs("loss.item()", "loss")
    assert comparing.grows(after)
    assert not comparing.grows(before)


def test_a_repair_must_not_raise_or_change_what_ran() -> None:
    twice = "    loss.backward()\n    loss.backward()\n"
    raising = run({"main.py": TRAIN.replace("    loss.backward()\n", twice)})
    assert raising.graph_error
    assert comparing.repair(raising, run({"main.py": TRAIN})) == ""
    assert comparing.repair(raising, raising).startswith("still raises")
    assert comparing.repair(*runs("lr=0.1", "lr=0.2")).startswith("needless")


def test_a_repair_does_not_answer_for_what_its_error_hid() -> None:
    loss = "    loss = net(torch.ones(2, 3) * i).pow(2).mean()\n"
    carrying = """\
    out = net(torch.ones(2, 3) * i)
    loss = out.pow(2).mean() + total * total
    shown = out.detach()
    shown.zero_()
"""
    text = TRAIN.replace(loss, carrying).replace("loss.item()", "loss")
    changed = run({"main.py": text})
    carried = run({"main.py": text.replace("detach()", "detach().clone()")})
    assert (changed.graph_error, carried.graph_error) == (True, True)
    assert comparing.repair(changed, carried) == ""
    assert comparing.repair(carried, carried).startswith("still raises")


def test_a_repair_answers_for_its_own_error_only() -> None:
    program = """\
import torch
from torch import nn

cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(2, 4)
for step in range(4):
    h = cell(torch.randn(2, 3), h)
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    loss.backward()
    opt.step()
"""
    verdict = check({"main.py": program}, ("carried-hidden-state",))
    assert verdict.before is not None
    assert verdict.before.site == ("main.py", 12)
    assert [violation.kind for violation in verdict.violations if violation.kind not in HARMLESS] == []


def test_a_loss_without_a_graph_is_a_mistake_of_its_own() -> None:
    program = """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    out = net(torch.randn(2, 3))
    opt.zero_grad()
    for term in (out.mean(), out.pow(2).mean()):
        term.backward()
    opt.step()
    extra = torch.zeros(())
    extra.backward()
"""
    verdict = check({"main.py": program})
    assert verdict.fired == {"backward-in-loss-loop repair": 1}
    assert verdict.violations == []
    kept = run({"main.py": program}, retain=True)
    assert "does not require grad" in kept.message
    assert "second time" in run({"main.py": program}).message


def test_a_child_that_dies_is_told() -> None:
    assert run({"main.py": "import os\nos._exit(3)\n"}).error == "Killed"


def test_a_program_with_rewrites_that_hold() -> None:
    text = TRAIN.replace("loss.item()", "loss").replace("loss.backward()", "loss.backward(retain_graph=True)")
    verdict = check({"main.py": text})
    assert sorted(verdict.fired) == ["attached-loss-total exact", "surplus-retain-graph exact"]
    assert verdict.violations == []
    assert verdict.after is not None
    assert "loss.item()" in verdict.after["main.py"]


def test_statements_are_left_out_while_it_fails() -> None:
    text = dedent(
        """\
        a = 1
        if a:
            b = 2
            wrong = 3
        c = 4
        """
    )
    small = fewer_statements({"main.py": text, "other.py": "x = 1\n"}, lambda files: "wrong = 3" in str(files), 1e12)
    assert small == {"main.py": "wrong = 3\n"}


def test_choices_are_left_out_while_it_fails() -> None:
    made = next(made for made in map(program, range(100)) if "extra meter" in made.features)
    record = fewer_choices(made.choices, lambda files: "Meter" in str(files), 1e12)
    assert sum(record) < sum(made.choices)
    assert "Meter" in str(program(record=record).files)


def test_a_dozen_programs() -> None:
    found = hunted((Hunt(), 0, 12))
    assert found.programs == 12
    assert found.rewritten > 3
    assert not found.violations["the hunt itself"]


@pytest.mark.slow
@pytest.mark.parametrize("start", range(900_000, 900_200, 25))
def test_no_program_breaks_a_promise(start: int) -> None:
    found = hunted((Hunt(), start, start + 25))
    assert not found.broken, found.table()
    assert found.rewritten > 25 // 3


def test_the_table_counts() -> None:
    found = Findings(programs=3, rewritten=2)
    found.add(Findings(programs=1))
    assert "4 programs, 2 rewritten" in found.table()
