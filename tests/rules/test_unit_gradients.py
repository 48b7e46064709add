"""legacy-variable: the constant that backward gets as a gradient loses its dimension where the losses have none."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import MAIN, added, found, mended

RULE = "legacy-variable"

HEAD = """\
import torch
import torch.nn as nn

judge = nn.Linear(6, 1)
steer = torch.optim.RMSprop(judge.parameters(), lr=1e-4)
seen, made = torch.randn(5, 6), torch.randn(5, 6)
print(judge)
"""


def _changed(folder: Path, code: str, **files: str) -> tuple[list[str], list[Promise]]:
    """The lines of ``code`` that become others, as they are then, and the promises of what is found."""
    findings = found(folder, RULE, HEAD, code, **files)
    before = (folder / MAIN).read_text()
    return added(before, mended(folder, findings)), [f.promise for f in findings]


@pytest.mark.parametrize(
    ("constant", "today"),
    [
        ("up = torch.FloatTensor([1])", "up = torch.tensor(1.0)"),
        ("up = torch.Tensor([1.])", "up = torch.tensor(1.0)"),
        ("up = torch.Tensor((0.25,))", "up = torch.tensor(0.25)"),
        ("up = torch.FloatTensor([-1])", "up = torch.tensor(-1.0)"),
        ("up = torch.DoubleTensor([1])", "up = torch.tensor(1.0, dtype=torch.float64)"),
        ("up = torch.cuda.FloatTensor([1])", 'up = torch.tensor(1.0, device="cuda")'),
        ("up = torch.tensor([1.0], device='cpu')", "up = torch.tensor(1.0, device='cpu')"),
        ("up = torch.ones(1)", "up = torch.ones(())"),
        ("up = torch.ones([1], dtype=torch.float32)", "up = torch.ones((), dtype=torch.float32)"),
        ("up = torch.FloatTensor([1]).cuda()", "up = torch.tensor(1.0).cuda()"),
        ("up = -torch.FloatTensor([1]) * 2", "up = -torch.tensor(1.0) * 2"),
        ("up = 0.5 * torch.FloatTensor([1])", "up = 0.5 * torch.tensor(1.0)"),
        ("up = torch.FloatTensor([1]).mul(2).div(3.5)", "up = torch.tensor(1.0).mul(2).div(3.5)"),
        (
            "up = torch.FloatTensor([1]) if len(seen) > 3 else torch.FloatTensor([2])",
            "up = torch.tensor(1.0) if len(seen) > 3 else torch.tensor(2.0)",
        ),
        ("up, down = torch.FloatTensor([1]), 0", "up, down = torch.tensor(1.0), 0"),
    ],
)
def test_where_it_is_made(tmp_path: Path, constant: str, today: str) -> None:
    assert _changed(tmp_path, f"{constant}\njudge(seen).mean().backward(up)\nsteer.step()") == (
        [today],
        [Promise.REPAIR],
    )


def test_its_moves_and_its_negative_stay(tmp_path: Path) -> None:
    code = """\
    up = torch.FloatTensor([1])
    down = up * -1
    if torch.cuda.is_available():
        up, down = up.cuda(0), down.cuda(0)
    for _ in range(3):
        real = judge(seen).mean()
        real.backward(down)
        fake = nn.functional.softplus(judge(made)).mean() - 1
        fake.backward(gradient=up)
        steer.step()
    """
    assert _changed(tmp_path, code) == (["up = torch.tensor(1.0)"], [Promise.REPAIR])


def test_in_a_method_and_made_in_two_ways(tmp_path: Path) -> None:
    code = """\
    class Game:
        def play(self, fast):
            if fast:
                up = torch.cuda.FloatTensor([1])
            else:
                up = torch.FloatTensor([1])
            judge(seen).mean().backward(up)
            steer.step()
    Game().play(input())
    """
    changed, promises = _changed(tmp_path, code)
    assert changed == ['up = torch.tensor(1.0, device="cuda")', "up = torch.tensor(1.0)"]
    assert promises == [Promise.REPAIR]


def test_wrapped_in_a_variable(tmp_path: Path) -> None:
    code = """\
    from torch.autograd import Variable
    up = Variable(torch.FloatTensor([1]))
    judge(seen).mean().backward(up)
    """
    changed, promises = _changed(tmp_path, code)
    assert changed == ["up = torch.tensor(1.0)"]
    assert sorted(promises, key=str) == [Promise.EXACT, Promise.REPAIR]


def test_made_in_the_call(tmp_path: Path) -> None:
    code = "judge(seen).mean().backward(torch.Tensor([1]))"
    assert _changed(tmp_path, code) == (["judge(seen).mean().backward(torch.tensor(1.0))"], [Promise.REPAIR])


@pytest.mark.parametrize(
    "code",
    [
        "up = torch.FloatTensor([1])\njudge(seen).mean(0).view(1).backward(up)",
        "up = torch.FloatTensor([1])\njudge(seen).mean(0).backward(up)",
        "up = torch.FloatTensor([1])\n(judge(seen).mean() * torch.ones(1)).backward(up)",
        "up = torch.tensor(1.0)\njudge(seen).mean().backward(up)",
        "up = torch.ones(5, 1)\njudge(seen).backward(up)",
        "up = torch.FloatTensor([1, 2])\njudge(seen).mean(0).expand(2).backward(up)",
        "from settings import up\njudge(seen).mean().backward(up)",
        "def step(up):\n    judge(seen).mean().backward(up)\nstep(torch.FloatTensor([1]))",
        "judge(seen).mean().backward(None)",
        "judge(seen).mean().backward()",
        "up = torch.FloatTensor([1])\nup *= judge(made).detach().mean()\njudge(seen).mean().backward(up)",
        "up = torch.FloatTensor([1]) * made.mean()\njudge(seen).mean().backward(up)",
        "up = torch.FloatTensor([1]).mul(made.mean())\njudge(seen).mean().backward(up)",
        "up = torch.FloatTensor([1]) if len(seen) > 3 else made.mean()\njudge(seen).mean().backward(up)",
        "up, down = torch.FloatTensor([1, -1])\njudge(seen).mean().backward(up)",
        "up = torch.FloatTensor([1])\ntry:\n    judge(seen).mean().backward(up)\nexcept RuntimeError:\n    print(2)",
        "up, *rest = torch.FloatTensor([1]), 0\njudge(seen).mean().backward(up)",
        "up = torch.FloatTensor([True])\njudge(seen).mean().backward(up)",
        "up = torch.ones(1, requires_grad=True)\njudge(seen).mean().backward(up)",
        "up = torch.ones(1, out=made)\njudge(seen).mean().backward(up)",
    ],
)
def test_nothing_is_said(tmp_path: Path, code: str) -> None:
    assert _changed(tmp_path, code) == ([], [])


def test_a_model_that_ends_in_one_element(tmp_path: Path) -> None:
    code = """\
    class Judge(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(6, 1)
        def forward(self, t):
            return self.last(t).mean(0).view(1)
    game = Judge()
    up = torch.FloatTensor([1])
    down = up * -1
    game(seen).backward(up)
    game(made).backward(down)
    """
    assert _changed(tmp_path, code) == ([], [])


@pytest.mark.parametrize(
    "also",
    [
        "judge(made).mean(0).view(1).backward(up)",
        "print(up)",
        "judge(made).backward(up.expand(5, 1))",
        "table = {'up': up}",
        "if input():\n    raise SystemExit\n    judge(made).mean().backward(up)",
    ],
)
def test_what_else_reads_it_is_not_proven(tmp_path: Path, also: str) -> None:
    code = f"up = torch.FloatTensor([1])\njudge(seen).mean().backward(up)\n{also}"
    assert _changed(tmp_path, code) == ([], [Promise.ADVICE])


def test_a_module_that_others_read(tmp_path: Path) -> None:
    step = """\
    import torch
    up = torch.FloatTensor([1])
    def step(loss):
        loss.backward(up)
    """
    code = "import lesson\nlesson.step(judge(seen).mean())"
    for also in ("", "\nprint(lesson.up)"):
        assert _changed(tmp_path, code + also, lesson=step)[1] == [Promise.ADVICE]


def test_what_functions_make_for_others_is_proven_in_a_script_only(tmp_path: Path) -> None:
    step = """\
    import torch
    def begin():
        global up
        up = torch.FloatTensor([1])
    def step(loss):
        loss.backward(up)
    """
    code = "import lesson\nlesson.begin()\nlesson.step(judge(seen).mean())"
    assert _changed(tmp_path, code, lesson=step)[1] == [Promise.ADVICE]
    assert _changed(tmp_path, dedent(step) + "begin()\nstep(judge(seen).mean())")[1] == [Promise.REPAIR]
