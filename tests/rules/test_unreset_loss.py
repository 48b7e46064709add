"""A loss that grows from step to step begins anew; sums that are meant, and those that are cut, are left alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.commands import codemod
from tests.rules.tools import analysed, assert_mended, found, mended

RULE = "unreset-loss"

START = """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
batches = [torch.randn(8, 4) for _ in range(8)]

"""

HITS = {
    "the initialisation moves": (
        """
        loss = 0  #
        for x in batches:
            loss = loss + net(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(loss.item())
        """,
        """
        for x in batches:
            loss = 0  #
            loss = loss + net(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(loss.item())
        """,
    ),
    "over an outer loop, into the loop of the steps": (
        """
        def train():
            loss = torch.zeros(1)  #
            for epoch in range(3):
                for x in batches:
                    for row in x:
                        loss = loss + net(row).pow(2)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()

        train()
        """,
        """
        def train():
            for epoch in range(3):
                for x in batches:
                    loss = torch.zeros(1)  #
                    for row in x:
                        loss = loss + net(row).pow(2)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()

        train()
        """,
    ),
    "a total is printed behind the loop": (
        """
        loss = 0.0  #
        for x in batches:
            loss += net(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(loss / len(batches))
        """,
        """
        total_loss = 0
        for x in batches:
            loss = 0.0
            loss += net(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            total_loss = total_loss + loss.detach()
            opt.step()
        print(total_loss / len(batches))
        """,
    ),
    "a window is reset behind its backward": (
        """
        loss = 0
        for i, x in enumerate(batches):
            loss = loss + net(x).pow(2).mean()
            if (i + 1) % 4 == 0:
                opt.zero_grad()
                loss.backward()  #
                opt.step()
                print(loss.item())
        """,
        """
        loss = 0
        for i, x in enumerate(batches):
            loss = loss + net(x).pow(2).mean()
            if (i + 1) % 4 == 0:
                opt.zero_grad()
                loss.backward()  #
                opt.step()
                print(loss.item())
                loss = 0
        """,
    ),
    "an attribute that a method adds to": (
        """
        class Trainer:
            def __init__(self):
                self.loss = 0

            def step(self, x):
                self.loss = self.loss + net(x).pow(2).mean()
                opt.zero_grad()
                self.loss.backward()  #
                opt.step()

        trainer = Trainer()
        for x in batches:
            trainer.step(x)
        """,
        """
        class Trainer:
            def __init__(self):
                self.loss = 0

            def step(self, x):
                self.loss = self.loss + net(x).pow(2).mean()
                opt.zero_grad()
                self.loss.backward()  #
                self.loss = 0
                opt.step()

        trainer = Trainer()
        for x in batches:
            trainer.step(x)
        """,
    ),
}

ADVICE = {
    "read where it would have been reset": """
        loss = 0
        for i, x in enumerate(batches):
            loss = loss + net(x).pow(2).mean()
            if (i + 1) % 4 == 0:
                opt.zero_grad()
                loss.backward()
                opt.step()
            print(loss.item())
        """,
    "read by others": """
        class Trainer:
            def __init__(self):
                self.loss = 0

            def step(self, x):
                self.loss = self.loss + net(x).pow(2).mean()
                opt.zero_grad()
                self.loss.backward()
                opt.step()

        trainer = Trainer()
        for x in batches:
            trainer.step(x)
            print(trainer.loss.item())
        """,
}

SILENT = {
    "a sum that grows within one step": """
        for x in batches:
            code, loss = net[:2](x), 0
            opt.zero_grad()
            for k in range(3):
                loss = loss + net[2](code).mean()
                loss.backward()
            opt.step()
        """,
    "reset in each step": """
        for x in batches:
            loss = 0
            loss = loss + net(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "one backward behind the loop": """
        loss = 0
        for x in batches:
            loss = loss + net(x).pow(2).mean()
        loss.backward()
        opt.step()
        """,
    "reset behind the step": """
        loss = 0
        for i, x in enumerate(batches):
            loss = loss + net(x).pow(2).mean()
            if (i + 1) % 4 == 0:
                opt.zero_grad()
                loss.backward()
                opt.step()
                loss = 0
        """,
    "detached behind the step": """
        loss = torch.zeros(1)
        for x in batches:
            loss = 0.9 * loss + net(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            loss = loss.detach()
        """,
    "a total of numbers": """
        total = 0
        for x in batches:
            loss = net(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        """,
    "a total that nobody back-propagates": """
        total = 0
        for x in batches:
            loss = net(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total = total + loss
        print(total)
        """,
    "heads of one step": """
        for x in batches:
            code, loss = net[:2](x), 0
            for k in range(3):
                loss = loss + net[2](code).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "perhaps reset": """
        loss = 0
        for i, x in enumerate(batches):
            if i % 4 == 0:
                loss = 0
            loss = loss + net(x).pow(2).mean()
            if i % 4 == 3:
                opt.zero_grad()
                loss.backward()
                opt.step()
        """,
    "reset by a method": """
        class Trainer:
            def __init__(self):
                self.begin()

            def begin(self):
                self.loss = 0

            def step(self, x):
                self.begin()
                self.loss = self.loss + net(x).pow(2).mean()
                opt.zero_grad()
                self.loss.backward()
                opt.step()

        trainer = Trainer()
        for x in batches:
            trainer.step(x)
        """,
}


@pytest.mark.parametrize("name", HITS)
def test_the_loss_begins_anew(name: str, tmp_path: Path) -> None:
    before, after = HITS[name]
    assert_mended(tmp_path, RULE, "repair", START, before, after)


@pytest.mark.parametrize("name", ADVICE)
def test_what_a_person_must_decide_is_told(name: str, tmp_path: Path) -> None:
    findings = found(tmp_path, RULE, START + dedent(ADVICE[name]))
    assert [f.promise for f in findings] == [Promise.ADVICE]


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_found(name: str, tmp_path: Path) -> None:
    assert found(tmp_path, RULE, START + dedent(SILENT[name])) == []


def test_the_flag_goes_with_it_and_without_an_error_it_is_behaviour(tmp_path: Path) -> None:
    program = START + dedent(
        """
        weight = nn.Parameter(torch.zeros(4))
        opt = torch.optim.SGD([weight], lr=0.1)
        loss = 0
        for x in batches:
            loss = loss + (x @ weight).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            opt.step()
        """
    )
    findings = analysed(tmp_path, Options(unsafe=True, select=(RULE, "surplus-retain-graph")), program)
    assert sorted((f.rule, f.promise.value) for f in findings) == [
        ("surplus-retain-graph", "behaviour"),
        (RULE, "behaviour"),
    ]
    assert "    loss = 0\n" in mended(tmp_path, findings)
    assert "loss.backward()\n" in mended(tmp_path, findings)


def test_what_the_error_hid_is_mended_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(START + dedent(HITS["a window is reset behind its backward"][0]))
    monkeypatch.chdir(tmp_path)
    codemod("apply", ".")
    text = (tmp_path / "train.py").read_text()
    # the reset by this rule, one graph at a time by summed-micro-batches
    assert "        loss = 0\n" in text
    assert "    micro_loss.backward()\n" in text
    assert codemod("apply", ".", "--dry-run").stdout == ""


NEVER_RESET = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
GROWS = "total = total + net(torch.randn(2, 4)).mean().exp()"
STEP = "opt.zero_grad(); total.backward(); opt.step()"
EACH = f"for step in range(9):\n    {GROWS}\n    {STEP}\n"

ADVISED = {
    "it is read before the loop": ("total = 0\nprint(total)\n" + EACH, "it is read before the loop"),
    "another name begins with it": ("total = best = 0\n" + EACH + "print(total)", "it is read before the loop"),
    "it begins as a part of something": ("total, best = torch.zeros(2)\n" + EACH, "the second step raises"),
    "it begins with what changes": (
        f"size = 1\ntotal = torch.zeros(size)\nfor step in range(9):\n    {GROWS}\n"
        "    opt.zero_grad(); total.sum().backward(); opt.step()\n    size += 1\n",
        "what it begins with changes in the loop",
    ),
    "it begins as what cannot be seen": ("from other import total\n" + EACH, "that initialises it cannot be seen"),
    "the block may be left first": (
        f"total = 0\nfor step in range(9):\n    {GROWS}\n"
        f"    if step % 2:\n        {STEP}\n        if step > 5: break\n        print(total)",
        "the block is left before it could be reset",
    ),
    "a global variable of a function": (
        f"total = 0\ndef turn():\n    global total\n    {GROWS}\n    {STEP}\nfor step in range(9):\n    turn()",
        "it is a global variable",
    ),
    "the head of the loop reads it": (
        f"total = torch.zeros(1)\nwhile total < 9:\n    {GROWS}\n    {STEP}",
        "it is read before the loop",
    ),
    "the end of the loop reads it": (
        f"total = 0\n{EACH}else:\n    print(total)",
        "it is read before the loop",
    ),
    "each turn asks for it first": (
        f"total = 0\nfor step in range(9):\n    if total > 9: break\n    {GROWS}\n    {STEP}",
        "it is read where it would have been reset",
    ),
    "it is back-propagated once more": (
        f"total = 0\n{EACH}mean = total / 9\nmean.backward()",
        "it is back-propagated behind the loop, too",
    ),
    "it grows elsewhere": (
        f"total = 0\ndef add():\n    global total\n    {GROWS}\nfor step in range(9):\n    add()\n    {STEP}",
        "it grows in another function",
    ),
}

AGENT = """
class Agent:
    def __init__(self):
        self.total = 0

    def turn(self):
        self.total = 0
        for step in range(9):
            self.total = self.total + net(torch.randn(2, 4)).mean().exp()
            opt.zero_grad()
            self.total.backward()
            opt.step()

    def say(self):
        print({read})

agent = Agent()
agent.turn()
agent.say()
"""


@pytest.mark.parametrize("name", ADVISED)
def test_why_it_is_not_reset_is_told(name: str, tmp_path: Path) -> None:
    program, why = ADVISED[name]
    [advice] = found(tmp_path, RULE, NEVER_RESET, program)
    assert advice.promise is Promise.ADVICE
    assert why in advice.message


@pytest.mark.parametrize(("read", "promise"), [("self.total", Promise.ADVICE), ("net", Promise.REPAIR)])
def test_an_attribute_may_be_read_by_other_methods(tmp_path: Path, read: str, promise: Promise) -> None:
    program = AGENT.format(read=read)
    assert [f.promise for f in found(tmp_path, RULE, NEVER_RESET, program)] == [promise]
