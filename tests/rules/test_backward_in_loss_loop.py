"""Losses of one forward are summed; losses with a graph each, and gradients that are looked at, are left alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import CLIPPED, found, lines, mended

RULE = "backward-in-loss-loop"

START = """\
import torch
from torch import nn
import torch.nn.functional as F

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
heads = nn.ModuleList([nn.Linear(8, 1) for _ in range(3)])
opt = torch.optim.SGD([*net.parameters(), *heads.parameters()], lr=0.1)
x, y = torch.randn(9, 4), torch.randn(9, 3)

"""

HITS = {
    "with the flag": (
        "equivalent",
        """
        for step in range(5):
            code = net(x)
            for k in range(3):
                loss = F.mse_loss(heads[k](code).squeeze(1), y[:, k])
                loss.backward(retain_graph=True)  #
            opt.step()
        """,
        """
        for step in range(5):
            code = net(x)
            total_loss = 0
            for k in range(3):
                loss = F.mse_loss(heads[k](code).squeeze(1), y[:, k])
                total_loss = total_loss + loss  #
            total_loss.backward()
            opt.step()
        """,
    ),
    "without the flag, the name taken, perhaps no turn": (
        "repair",
        """
        def update(count):
            total_loss = torch.zeros(())
            code = net(x)
            for head in heads[:count]:
                head(code).mean().backward()  #
            opt.step()
            return total_loss

        update(3)
        """,
        """
        def update(count):
            total_loss = torch.zeros(())
            code = net(x)
            summed_loss = 0
            for head in heads[:count]:
                summed_loss = summed_loss + head(code).mean()  #
            if torch.is_tensor(summed_loss):
                summed_loss.backward()
            opt.step()
            return total_loss

        update(3)
        """,
    ),
    "a product keeps its meaning, a difference its parentheses": (
        "equivalent",
        """
        for step in range(5):
            code = net(x)
            for head in (heads[0], heads[1]):
                (0.5 * head(code).mean()).backward(retain_graph=True)  #
            opt.step()
        """,
        """
        for step in range(5):
            code = net(x)
            total_loss = 0
            for head in (heads[0], heads[1]):
                total_loss = total_loss + 0.5 * head(code).mean()  #
            total_loss.backward()
            opt.step()
        """,
    ),
    "a difference": (
        "equivalent",
        """
        for step in range(5):
            code = net(x)
            for k in [0, 1]:
                (heads[k](code).mean() - 1).backward(retain_graph=True)  #
            opt.step()
        """,
        """
        for step in range(5):
            code = net(x)
            total_loss = 0
            for k in [0, 1]:
                total_loss = total_loss + (heads[k](code).mean() - 1)  #
            total_loss.backward()
            opt.step()
        """,
    ),
    "nothing but the backward": (
        "equivalent",
        """
        for step in range(5):
            code = net(x)
            losses = [head(code).mean() for head in heads]
            for loss in losses:
                loss.backward(retain_graph=True)  #
            opt.step()
        """,
        """
        for step in range(5):
            code = net(x)
            losses = [head(code).mean() for head in heads]
            total_loss = sum(losses)
            if torch.is_tensor(total_loss):
                total_loss.backward()  #
            opt.step()
        """,
    ),
    "nothing but the backward of a few": (
        "equivalent",
        """
        for step in range(5):
            code = net(x)
            first, second = heads[0](code).mean(), heads[1](code).mean()
            for loss in (first, second):
                loss.backward(retain_graph=True)  #
            opt.step()
        """,
        """
        for step in range(5):
            code = net(x)
            first, second = heads[0](code).mean(), heads[1](code).mean()
            sum((first, second)).backward()  #
            opt.step()
        """,
    ),
    "a growing sum": (
        "repair",
        """
        for step in range(5):
            a, b = net(x).chunk(2, dim=1)
            loss = 0.0
            for part in (a, b):
                loss += part.pow(2).mean()
                loss.backward()  #
            opt.step()
        """,
        """
        for step in range(5):
            a, b = net(x).chunk(2, dim=1)
            loss = 0.0
            for part in (a, b):
                loss += part.pow(2).mean()
            loss.backward()  #
            opt.step()
        """,
    ),
    "a growing sum with the flag": (
        "behaviour",
        """
        for step in range(5):
            a, b = net(x).chunk(2, dim=1)
            loss = 0
            for part in (a, b):
                loss = loss + part.pow(2).mean()
                loss.backward(retain_graph=True)  #
            opt.step()
        """,
        """
        for step in range(5):
            a, b = net(x).chunk(2, dim=1)
            loss = 0
            for part in (a, b):
                loss = loss + part.pow(2).mean()
            loss.backward()  #
            opt.step()
        """,
    ),
    "a list that may be emptied by a slice": (
        "equivalent",
        """
        for step in range(5):
            code = net(x)
            losses = [heads[0](code).mean(), heads[1](code).mean()]
            if step == 3:
                losses[:] = []
            for loss in losses:
                loss.backward(retain_graph=True)  #
            opt.step()
        """,
        """
        for step in range(5):
            code = net(x)
            losses = [heads[0](code).mean(), heads[1](code).mean()]
            if step == 3:
                losses[:] = []
            total_loss = sum(losses)  #
            if torch.is_tensor(total_loss):
                total_loss.backward()
            opt.step()
        """,
    ),
    "a list that a function may shorten": (
        "equivalent",
        """
        def drop_unused(some):
            if len(some) > 9:
                del some[:]

        for step in range(5):
            code = net(x)
            losses = [heads[0](code).mean(), heads[1](code).mean()]
            drop_unused(losses)
            for loss in losses:
                loss.backward(retain_graph=True)  #
            opt.step()
        """,
        """
        def drop_unused(some):
            if len(some) > 9:
                del some[:]

        for step in range(5):
            code = net(x)
            losses = [heads[0](code).mean(), heads[1](code).mean()]
            drop_unused(losses)
            total_loss = sum(losses)  #
            if torch.is_tensor(total_loss):
                total_loss.backward()
            opt.step()
        """,
    ),
    "a list with another name": (
        "equivalent",
        """
        for step in range(5):
            code = net(x)
            losses = [heads[0](code).mean(), heads[1](code).mean()]
            kept = losses
            if step == 3:
                kept.clear()
            for loss in losses:
                loss.backward(retain_graph=True)  #
            opt.step()
        """,
        """
        for step in range(5):
            code = net(x)
            losses = [heads[0](code).mean(), heads[1](code).mean()]
            kept = losses
            if step == 3:
                kept.clear()
            total_loss = sum(losses)  #
            if torch.is_tensor(total_loss):
                total_loss.backward()
            opt.step()
        """,
    ),
    "a list that is only looked at": (
        "equivalent",
        """
        for step in range(5):
            code = net(x)
            losses = [heads[0](code).mean(), heads[1](code).mean()]
            print(len(losses), sum(losses).item(), losses[0].item(), [one.item() for one in losses])
            for loss in losses:
                loss.backward(retain_graph=True)  #
            opt.step()
        """,
        """
        for step in range(5):
            code = net(x)
            losses = [heads[0](code).mean(), heads[1](code).mean()]
            print(len(losses), sum(losses).item(), losses[0].item(), [one.item() for one in losses])
            sum(losses).backward()  #
            opt.step()
        """,
    ),
}


@pytest.mark.parametrize("name", HITS)
def test_one_backward_behind_the_loop(tmp_path: Path, name: str) -> None:
    promise, before, after = HITS[name]
    findings = found(tmp_path, RULE, START, before.replace("  #", ""))
    at = f"{START}\n{before}".splitlines().index(next(s for s in before.splitlines() if "  #" in s)) + 1
    assert lines(findings) == [(at, promise)]
    assert mended(tmp_path, findings) == f"{START}\n{dedent(after.replace('  #', ''))}"


NOOPS = {
    "a forward for each turn": """
        for step in range(5):
            for part in x.split(3):
                net(part).mean().backward(retain_graph=True)
            opt.step()
        """,
    "the sum of turns with a forward each": """
        for step in range(5):
            for part in x.split(3):
                loss = net(part).mean()
                loss.backward()
            opt.step()
        """,
    "a carried state": """
        for step in range(5):
            code = net(x)
            state = torch.zeros(9, 8)
            for k in range(3):
                state = torch.tanh(state + code * state.exp())
                state.mean().backward(retain_graph=True)
            opt.step()
        """,
    "a step in each turn": """
        code = net(x)
        for head in heads:
            head(code).mean().backward(retain_graph=True)
            opt.step()
        """,
    "gradients are cleared in each turn": """
        for step in range(5):
            code = net(x)
            for head in heads:
                opt.zero_grad()
                head(code).mean().backward(retain_graph=True)
            opt.step()
        """,
    "gradients are read in each turn": """
        shares = []
        for step in range(5):
            code = net(x)
            for head in heads:
                head(code).mean().backward(retain_graph=True)
                shares.append(net[0].weight.grad.norm().item())
            opt.step()
        """,
    "gradients are clipped in a helper": """
        def clip():
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)

        for step in range(5):
            code = net(x)
            for head in heads:
                head(code).mean().backward(retain_graph=True)
                clip()
            opt.step()
        """,
    "parameters go to code that cannot be seen": """
        from somewhere import note_gradients
        for step in range(5):
            code = net(x)
            for head in heads:
                head(code).mean().backward(retain_graph=True)
                note_gradients(net.parameters())
            opt.step()
        """,
    "a hook on the parameters": """
        for p in net.parameters():
            p.register_hook(lambda g: g.clamp(-1, 1))
        for step in range(5):
            code = net(x)
            for head in heads:
                head(code).mean().backward(retain_graph=True)
            opt.step()
        """,
    "a function of their own that clips gradients": CLIPPED
    + """
        for step in range(5):
            code = Clipped.apply(net(x))
            for head in heads:
                head(code).pow(2).mean().backward(retain_graph=True)
            opt.step()
        """,
    "walked again behind the loop": """
        for step in range(5):
            code = net(x)
            for head in heads:
                head(code).mean().backward(retain_graph=True)
            code.pow(2).mean().backward()
            opt.step()
        """,
    "shared features that were detached": """
        for step in range(5):
            code = net(x).detach()
            for head in heads:
                head(code).mean().backward(retain_graph=True)
            opt.step()
        """,
    "shared on one path only": """
        for step in range(5):
            code = net(x)
            for head in heads:
                if len(x) == step:
                    code = net(x)
                head(code.detach() if step else code).mean().backward(retain_graph=True)
            opt.step()
        """,
    "a flag that is no literal": """
        for step in range(5):
            code = net(x)
            for k, head in enumerate(heads):
                head(code).mean().backward(retain_graph=k < 2)
            opt.step()
        """,
    "a return in the loop": """
        def update():
            code = net(x)
            for head in heads:
                loss = head(code).mean()
                loss.backward(retain_graph=True)
                if loss.item() < 0.1:
                    return
            opt.step()

        update()
        """,
    "a sum that goes on from another loss": """
        for step in range(5):
            code = net(x)
            loss = code.mean()
            for head in heads:
                loss = loss + head(code).mean()
                loss.backward(retain_graph=True)
            opt.step()
        """,
    "losses that somebody hands over": """
        def update(losses):
            for loss in losses:
                loss.backward(retain_graph=True)
            opt.step()
        """,
    "a gradient penalty": """
        for step in range(5):
            code = net(x)
            for head in heads:
                head(code).mean().backward(retain_graph=True, create_graph=True)
            opt.step()
        """,
}


@pytest.mark.parametrize("name", NOOPS)
def test_left_alone(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, RULE, START, NOOPS[name]) == []


def test_a_loop_that_makes_much_of_its_own_says_so(tmp_path: Path) -> None:
    source = """
    tower = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    for step in range(5):
        code = net(x)
        for part in range(3):
            tower(code[part:part + 3]).mean().backward(retain_graph=True)
        opt.step()
    """
    findings = found(tmp_path, RULE, START, source)
    assert len(findings) == 1
    assert "memory" in findings[0].message


IN_PLACE = """
import torch
from torch import nn

net = nn.Linear(4, 8)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(9):
    out = net(torch.randn(3, 4))
    mask, total = torch.ones(3, 8), torch.zeros(())
    opt.zero_grad()
    for k in range(3):
        {before}
        loss = (out * mask).mean()
        loss.backward(retain_graph=True)
        {behind}
    opt.step()
    print(total)
"""


@pytest.mark.parametrize(
    ("before", "behind", "promises"),
    [
        # the product has saved the mask of its turn: a later backward would raise
        ("pass", "mask.mul_(2)", []),
        ("pass", "mask += 1", []),
        ("mask[k] = 0", "pass", []),
        ("pass", "mask[:, k].zero_()", []),
        ("pass", "mask = mask * 2", [Promise.EQUIVALENT]),
        ("mask = torch.ones(3, 8); mask[k] = 0", "pass", [Promise.EQUIVALENT]),
        ("mask = torch.ones(3, 8); mask.mul_(2)", "pass", [Promise.EQUIVALENT]),
        ("pass", "total += loss.detach()", [Promise.EQUIVALENT]),
        ("mask = mask + total", "total += loss.detach()", []),
    ],
)
def test_what_turns_write_in_place_a_later_backward_would_find_changed(
    tmp_path: Path, before: str, behind: str, promises: list[Promise]
) -> None:
    program = IN_PLACE.format(before=before, behind=behind)
    assert [f.promise for f in found(tmp_path, RULE, program)] == promises


@pytest.mark.parametrize(
    ("head", "answer", "behind", "promises"),
    [
        ("try:", "except ValueError:\n    print('ended')", "print(out)", [Promise.EQUIVALENT]),
        ("try:", "except ValueError:\n    raise", "opt.step()", [Promise.EQUIVALENT]),
        ("try:", "finally:\n    print('done')", "opt.step()", [Promise.EQUIVALENT]),
        ("if True:", "", "opt.step()", [Promise.EQUIVALENT]),
        # the gradients of the first losses
        ("try:", "except ValueError:\n    print('ended')", "opt.step()", []),
        ("try:", "except ValueError:\n    opt.step()\n    raise", "print(out)", []),
        ("try:", "finally:\n    opt.step()", "print(out)", []),
        ("with suppress(ValueError):", "", "opt.step()", []),
    ],
)
def test_an_error_that_is_caught_finds_the_first_gradients(
    tmp_path: Path, head: str, answer: str, behind: str, promises: list[Promise]
) -> None:
    program = f"""
import torch
from contextlib import suppress
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
out = net(torch.randn(3, 4))
{head}
    for k in range(3):
        loss = (out * k).mean()
        loss.backward(retain_graph=True)
        float(input())
{answer}
{behind}
"""
    assert [f.promise for f in found(tmp_path, RULE, program)] == promises
