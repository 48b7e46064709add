"""One loss is back-propagated once; gradients that somebody looks at, and other losses, are left alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.rules.tools import CLIPPED, analysed, found, lines, marked, mended

RULE = "repeated-backward"
BOTH = (RULE, "surplus-retain-graph")

START = """\
import torch
from torch import nn

enc = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8))
flat = nn.Linear(4, 8)
head = nn.Linear(8, 1)
opt_a = torch.optim.SGD(enc.parameters(), lr=0.1, momentum=0.9)
opt_b = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
opt_f = torch.optim.SGD(flat.parameters(), lr=0.1)
opt = torch.optim.Adam([*enc.parameters(), *head.parameters()])
x = torch.randn(16, 4)

"""

HITS = {
    "two optimizers, the encoder's step changes what the second call needs": (
        "repair",
        """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt_a.zero_grad()
            loss.backward(retain_graph=True)
            opt_a.step()
            opt_b.zero_grad()
            loss.backward()  #
            opt_b.step()
        """,
        """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt_a.zero_grad()
            opt_b.zero_grad()
            loss.backward()
            opt_a.step()
            opt_b.step()
        """,
    ),
    "two optimizers as they run, by two names": (
        "exact",
        """
        def train(step):
            loss_f = loss_h = head(torch.tanh(flat(x))).pow(2).mean()
            opt_f.zero_grad()
            loss_f.backward(retain_graph=True)
            opt_f.step()
            head.zero_grad()
            loss_h.backward()  #
            opt_b.step()

        for step in range(9):
            train(step)
        """,
        """
        def train(step):
            loss_f = loss_h = head(torch.tanh(flat(x))).pow(2).mean()
            opt_f.zero_grad()
            head.zero_grad()
            loss_f.backward()
            opt_f.step()
            opt_b.step()

        for step in range(9):
            train(step)
        """,
    ),
    "the second call raises": (
        "repair",
        """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            print(loss.item())
            loss.backward()  #
            opt.step()
        """,
        """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            print(loss.item())
            opt.step()
        """,
    ),
    "doubled gradients": (
        "behaviour",
        """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            loss.backward()  #
            opt.step()
        """,
        """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    ),
}

ADVICE = {
    "one optimizer steps between": """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            opt.step()
            loss.backward()
            opt.step()
        """,
    "the second call under a condition": """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            if step > 3:
                loss.backward()
            opt.step()
        """,
    "cleared between without a step": """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            loss.backward(retain_graph=True)
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "only fills .grad, and a hook is registered behind it": """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            loss.backward(retain_graph=True)
            slopes = torch.autograd.grad(loss, list(head.parameters()))
            handles = [w.register_hook(lambda grad, s=s: s) for w, s in zip(head.parameters(), slopes)]
            opt.zero_grad()
            head(torch.tanh(enc(x))).mean().backward()
            opt.step()
            for handle in handles:
                handle.remove()
        """,
    "only fills .grad": """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            loss.backward(retain_graph=True)
            grads = torch.autograd.grad(loss, list(head.parameters()))
            opt.zero_grad()
            (head(enc(x)).mean() + sum(g.sum() for g in grads)).backward()
            opt.step()
        """,
}

SILENT = {
    "gradients that are looked at before the derivative": """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            loss.backward(retain_graph=True)
            print(head.weight.grad.norm())
            slopes = torch.autograd.grad(loss, list(head.parameters()))
            opt.zero_grad()
            for weight, slope in zip(head.parameters(), slopes):
                weight.grad = slope
            opt.step()
        """,
    "gradients of many elements, each weighed": """
        for step in range(9):
            out = head(torch.tanh(enc(x)))
            opt.zero_grad()
            out.backward(torch.ones(16, 1), retain_graph=True)
            out.backward(-torch.ones(16, 1))
            opt.step()
        """,
    "two losses at once": """
        for step in range(9):
            out = head(torch.tanh(enc(x)))
            losses = [out.pow(2).mean(), out.abs().mean()]
            opt.zero_grad()
            torch.autograd.backward(losses, retain_graph=True)
            torch.autograd.backward(losses)
            opt.step()
        """,
    "each for its own parameters": """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward(inputs=list(enc.parameters()), retain_graph=True)
            loss.backward(inputs=list(head.parameters()))
            opt.step()
        """,
    "a step by hand between them": """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            for weight in enc.parameters():
                weight.data -= 0.1 * weight.grad
            opt_b.zero_grad()
            loss.backward()
            opt_b.step()
        """,
    "a leaf that asks for gradients": """
        for step in range(9):
            shift = torch.zeros((), requires_grad=True)
            opt.zero_grad()
            shift.backward(retain_graph=True)
            shift.backward()
            head(torch.tanh(enc(x)) + shift).mean().backward()
            opt.step()
        """,
    "two losses": """
        for step in range(9):
            opt.zero_grad()
            head(enc(x)).mean().backward()
            head(enc(-x)).mean().backward()
            opt.step()
        """,
    "two losses of one forward": """
        for step in range(9):
            y = head(enc(x))
            opt.zero_grad()
            y.mean().backward(retain_graph=True)
            y.pow(2).mean().backward()
            opt.step()
        """,
    "gradients are read between": """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            norm = head.weight.grad.norm()
            loss.backward()
            opt.step()
        """,
    "clipped together": """
        for step in range(9):
            loss = head(torch.tanh(flat(x))).pow(2).mean()
            opt_f.zero_grad()
            loss.backward(retain_graph=True)
            nn.utils.clip_grad_norm_([*flat.parameters(), *head.parameters()], 0.1)
            opt_f.step()
            opt_b.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_([*flat.parameters(), *head.parameters()], 0.1)
            opt_b.step()
        """,
    "hooks": """
        for p in head.parameters():
            p.register_hook(lambda g: g.clamp(-1, 1))
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            loss.backward()
            opt.step()
        """,
    "a function of their own that clips gradients": CLIPPED
    + """
        for step in range(9):
            loss = head(Clipped.apply(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            loss.backward()
            opt.step()
        """,
    "a gradient norm that is used": """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)
            norm = sum(g.norm() for g in torch.autograd.grad(loss, list(head.parameters())))
            opt.step()
            print(norm)
        """,
    "one or the other": """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            if step % 2:
                loss.backward()
            else:
                loss.backward()
            opt.step()
        """,
    "the branch of the first call leaves the turn": """
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            if step < 3:
                loss.backward()
                opt.step()
                continue
            loss.backward()
            opt.step()
        """,
    "with a flag that is no literal": """
        keep = input() == "yes"
        for step in range(9):
            loss = head(torch.tanh(enc(x))).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=keep)
            loss.backward()
            opt.step()
        """,
}


@pytest.mark.parametrize("name", HITS)
def test_one_backward_is_left(name: str, tmp_path: Path) -> None:
    promise, before, after = HITS[name]
    program = START + dedent(before)
    findings = analysed(tmp_path, Options(unsafe=True, select=BOTH), program)
    assert (marked(program), promise) in lines([f for f in findings if f.rule == RULE])
    assert {p for f in findings for p in f.partners} == ({f.key for f in findings} if len(findings) > 1 else set())
    assert mended(tmp_path, findings) == START + dedent(after)


@pytest.mark.parametrize("name", ADVICE)
def test_what_a_person_must_decide_is_told(name: str, tmp_path: Path) -> None:
    findings = found(tmp_path, RULE, START + dedent(ADVICE[name]))
    assert [f.promise for f in findings] == [Promise.ADVICE]


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_found(name: str, tmp_path: Path) -> None:
    assert found(tmp_path, RULE, START + dedent(SILENT[name])) == []


def test_the_flag_goes_also_where_its_rule_was_not_asked_for(tmp_path: Path) -> None:
    _, before, after = HITS["doubled gradients"]
    options = Options(unsafe=True, select=(RULE,), ignore=("surplus-retain-graph",))
    findings = analysed(tmp_path, options, START + dedent(before))
    assert [f.rule for f in findings] == [RULE]
    assert mended(tmp_path, findings) == START + dedent(after)


UNSEEN = """
import torch
from torch import nn
from layers import Padded

net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
pad = Padded(5)
for step in range(3):
    out = pad(net(torch.randn(3, 4))).exp().sum()
    opt.zero_grad()
    out.backward()
    {use}
    opt.step()
"""


@pytest.mark.parametrize(
    "use",
    ["back = pad.backward(out)", "print(pad.backward(out).shape)", "pad.backward(out)", "back = [pad.backward(out)]"],
)
def test_a_backward_of_what_cannot_be_seen_may_be_a_derivative(tmp_path: Path, use: str) -> None:
    assert found(tmp_path, "repeated-backward", UNSEEN.format(use=use)) == []


def test_a_second_backward_of_the_loss_itself_is_none(tmp_path: Path) -> None:
    findings = found(tmp_path, "repeated-backward", UNSEEN.format(use="out.backward()"))
    assert [f.promise.value for f in findings] == ["repair"]


FRAMES = """
import torch
from torch import nn

one, two = nn.Linear(4, 4), nn.Linear(4, 1)
first = torch.optim.SGD(one.parameters(), lr=0.1)
second = torch.optim.SGD(two.parameters(), lr=0.1)

for step in range(4):
    loss = two(torch.tanh(one(torch.randn(8, 4)))).pow(2).mean()
    first.zero_grad()
    loss.backward(retain_graph=True)
    first.step()
    second.zero_grad()
    loss.backward()
    second.step()
"""


def test_two_frames_around_one_loss(tmp_path: Path) -> None:
    assert {f.promise for f in found(tmp_path, RULE, FRAMES)} == {Promise.EXACT}


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("    first.step()\n", "    if loss > 3: continue\n    first.step()\n", "may leave the block"),
        ("    second.step()\n", "", "no second step is next to it"),
        ("second.zero_grad()\n", "two.zero_grad(); one.zero_grad()\n", "of the first step are cleared between"),
        ("second.zero_grad()\n", "for p in two.parameters(): p.grad = None\n", "cannot be seen"),
        ("    second.step()\n", "    second.step()\n    print(one.weight.grad)\n", "are read after the second call"),
        ("    first.zero_grad()\n", "", "take part in the first step"),
        ("    second.zero_grad()\n", "", "take part in the second step"),
    ],
)
def test_what_one_backward_would_change_is_told(tmp_path: Path, before: str, after: str, why: str) -> None:
    [advice] = found(tmp_path, RULE, FRAMES.replace(before, after))
    assert advice.promise is Promise.ADVICE
    assert why in advice.message


def test_gradients_that_are_read_before_the_second_step_are_those_of_two_backwards(tmp_path: Path) -> None:
    read = "    print(one.weight.grad)\n    second.step()\n"
    assert found(tmp_path, RULE, FRAMES.replace("    second.step()\n", read)) == []
