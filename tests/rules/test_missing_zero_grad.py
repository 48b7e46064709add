"""Gradients are cleared where nothing else does, and nowhere that anything might."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise, promoted
from tests.rules.tools import added, found, lines, mended

RULE = "missing-zero-grad"

START = """\
import torch
from torch import nn
import torch.nn.functional as F

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = [(torch.randn(5, 4), torch.randn(5, 1)) for _ in range(9)]
"""

HITS = {
    "a model of its own in each fold": (
        """
        for fold in range(3):
            model = nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x, y in data:
                F.mse_loss(model(x), y).backward()
                optimizer.step()
        """,
        ["optimizer.zero_grad()"],
    ),
    "a loop that counts itself": (
        """
        at = 0
        while at < len(data):
            x, y = data[at]
            F.mse_loss(net(x), y).backward()
            opt.step()
            at += 1
        """,
        ["opt.zero_grad()"],
    ),
    "flat": (
        """
        for x, y in data:
            loss = F.mse_loss(net(x), y)
            loss.backward()
            opt.step()
        """,
        ["opt.zero_grad()"],
    ),
    "clipped": (
        """
        for x, y in data:
            F.mse_loss(net(x), y).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
        """,
        ["opt.zero_grad()"],
    ),
    "cleared once before the loop": (
        """
        opt.zero_grad()
        for epoch in range(3):
            for x, y in data:
                F.mse_loss(net(x), y).backward()
                opt.step()
        """,
        ["opt.zero_grad()"],
    ),
    "a trainer": (
        """
        class Trainer:
            def __init__(self, model):
                self.model = model
                self.optimizer = torch.optim.Adam(model.parameters())

            def update(self, x, y):
                loss = F.mse_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                return loss.item()

            def fit(self):
                for x, y in data:
                    self.update(x, y)

        Trainer(net).fit()
        """,
        ["self.optimizer.zero_grad()"],
    ),
    "a loop of micro-batches": (
        """
        for epoch in range(3):
            for x, y in data[:4]:
                (F.mse_loss(net(x), y) / 4).backward()
            opt.step()
        """,
        ["opt.zero_grad()"],
    ),
    "two losses, one step": (
        """
        for x, y in data:
            F.mse_loss(net(x), y).backward()
            net(x).pow(2).mean().backward()
            opt.step()
        """,
        ["opt.zero_grad()"],
    ),
    "a scaler": (
        """
        scaler = torch.cuda.amp.GradScaler(enabled=False)
        for x, y in data:
            scaler.scale(F.mse_loss(net(x), y)).backward()
            scaler.unscale_(opt)
            scaler.step(opt)
            scaler.update()
        """,
        ["opt.zero_grad()"],
    ),
    "only the other network is cleared": (
        """
        other = nn.Linear(4, 1)
        for x, y in data:
            other.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
        """,
        ["opt.zero_grad()"],
    ),
    "both in the branch of a phase": (
        """
        import sys
        for phase in ("train", "test"):
            for x, y in data:
                loss = F.mse_loss(net(x), y)
                if len(sys.argv) > 1:
                    loss.backward()
                    opt.step()
        """,
        ["opt.zero_grad()"],
    ),
}


@pytest.mark.parametrize("name", HITS)
def test_gradients_are_cleared(tmp_path: Path, name: str) -> None:
    body, new = HITS[name]
    findings = found(tmp_path, RULE, START, body)
    assert [f.promise for f in findings] == [Promise.BEHAVIOUR]
    before = (tmp_path / "train.py").read_text()
    text = mended(tmp_path, findings)
    assert len(text.splitlines()) == len(before.splitlines()) + 1
    line = findings[0].span.line
    assert [text.splitlines()[line - 1].strip()] == new
    assert text.splitlines()[line] == before.splitlines()[line - 1]
    assert ".backward()" in text[text.index(new[0], len("".join(text.splitlines(True)[: line - 1]))) :]


def test_several_optimizers_with_one_backward(tmp_path: Path) -> None:
    body = """
        head = nn.Linear(1, 1)
        second = torch.optim.SGD(head.parameters(), lr=0.1)
        for x, y in data:
            F.mse_loss(head(net(x)), y).backward()
            opt.step()
            second.step()
        """
    findings = found(tmp_path, RULE, START, body)
    before = (tmp_path / "train.py").read_text()
    assert added(before, mended(tmp_path, findings)) == ["opt.zero_grad()", "second.zero_grad()"]


NOOPS = {
    "a model of its own in each turn": """
        def fresh():
            return nn.Linear(4, 1)

        for x, y in data:
            model = fresh()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        """,
    "a step by another name": """
        advance = opt.step
        for x, y in data:
            F.mse_loss(net(x), y).backward()
            advance()
        """,
    "a closure by its keyword": """
        for x, y in data:
            def close():
                loss = F.mse_loss(net(x), y)
                loss.backward()
                return loss
            opt.step(closure=close)
        """,
    "cleared by the optimizer": """
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
        """,
    "cleared after the step": """
        for x, y in data:
            F.mse_loss(net(x), y).backward()
            opt.step()
            opt.zero_grad()
        """,
    "cleared by the module": """
        for x, y in data:
            net.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
        """,
    "cleared per epoch": """
        for epoch in range(3):
            opt.zero_grad()
            for x, y in data:
                F.mse_loss(net(x), y).backward()
                opt.step()
        """,
    "cleared in a helper": """
        def reset(*parts):
            for part in parts:
                part.zero_grad()

        for x, y in data:
            reset(net)
            F.mse_loss(net(x), y).backward()
            opt.step()
        """,
    "cleared by hand": """
        for x, y in data:
            F.mse_loss(net(x), y).backward()
            opt.step()
            for p in net.parameters():
                p.grad = None
        """,
    "zeroed by hand": """
        for x, y in data:
            F.mse_loss(net(x), y).backward()
            opt.step()
            for p in net.parameters():
                p.grad.data.zero_()
        """,
    "set by hand": """
        for x, y in data:
            loss = F.mse_loss(net(x), y)
            for p, g in zip(net.parameters(), torch.autograd.grad(loss, net.parameters())):
                p.grad = g
            opt.step()
        """,
    "accumulated on purpose": """
        for i, (x, y) in enumerate(data):
            F.mse_loss(net(x), y).backward()
            if (i + 1) % 4 == 0:
                opt.step()
        """,
    "one shot": """
        x, y = data[0]
        F.mse_loss(net(x), y).backward()
        opt.step()
        """,
    "one turn": """
        for x, y in data:
            F.mse_loss(net(x), y).backward()
            opt.step()
            break
        """,
    "an attack": """
        x, y = data[0]
        delta = torch.zeros(5, 4, requires_grad=True)
        attack = torch.optim.Adam([delta])
        for _ in range(9):
            (-F.mse_loss(net(x + delta), y)).backward()
            attack.step()
        """,
    "a closure": """
        solver = torch.optim.LBFGS(net.parameters())
        for x, y in data:
            def closure():
                loss = F.mse_loss(net(x), y)
                loss.backward()
                return loss
            solver.step(closure)
        """,
    "an optimizer that cannot be seen": """
        def fit(model, optimizer):
            model.train()
            for x, y in data:
                F.mse_loss(model(x), y).backward()
                optimizer.step()
        """,
    "an optimizer of the tree": """
        class Clearing(torch.optim.SGD):
            def step(self):
                super().step()
                self.zero_grad()

        mine = Clearing(net.parameters(), lr=0.1)
        for x, y in data:
            F.mse_loss(net(x), y).backward()
            mine.step()
        """,
    "a wrapper that clears": """
        class Noam:
            def __init__(self, inner):
                self.inner = inner

            def step(self):
                self.inner.step()
                self.inner.zero_grad()

        wrapped = Noam(opt)
        for x, y in data:
            F.mse_loss(net(x), y).backward()
            wrapped.step()
        """,
    "accelerate": """
        from accelerate import Accelerator
        accelerator = Accelerator()
        net, opt = accelerator.prepare(net, opt)
        for x, y in data:
            accelerator.backward(F.mse_loss(net(x), y))
            opt.step()
        """,
    "handed to something unseen": """
        from callbacks import after_batch
        for x, y in data:
            F.mse_loss(net(x), y).backward()
            opt.step()
            after_batch(net, opt)
        """,
    "no_sync": """
        for x, y in data:
            with net.no_sync():
                F.mse_loss(net(x), y).backward()
            opt.step()
        """,
}


@pytest.mark.parametrize("name", NOOPS)
def test_nothing_is_added(tmp_path: Path, name: str) -> None:
    assert lines(found(tmp_path, RULE, START, NOOPS[name])) == []


def test_a_branch_that_clears_beside_one_that_does_not_is_advice(tmp_path: Path) -> None:
    body = """
        import sys
        scaler = torch.cuda.amp.GradScaler()
        for x, y in data:
            loss = F.mse_loss(net(x), y)
            if "--amp" in sys.argv:
                opt.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(opt)
                scaler.update()
            else:
                loss.backward()
                opt.step()
        """
    findings = found(tmp_path, RULE, START, body)
    assert [(f.promise, f.edits) for f in findings] == [(Promise.ADVICE, ())]
    assert (tmp_path / "train.py").read_text().splitlines()[findings[0].span.line - 1].strip() == "loss.backward()"


def test_an_engine_that_walks_and_steps_may_clear_for_itself(tmp_path: Path) -> None:
    body = """
        import sys
        from somewhere import wrap
        engine = wrap(net, opt)
        for x, y in data:
            loss = F.mse_loss(net(x), y)
            if "--engine" in sys.argv:
                engine.backward(loss)
                engine.step()
            else:
                opt.zero_grad()
                loss.backward()
                opt.step()
        """
    assert found(tmp_path, RULE, START, body) == []


def test_two_losses_for_two_optimizers_are_advice(tmp_path: Path) -> None:
    body = """
        critic = nn.Linear(1, 1)
        second = torch.optim.SGD(critic.parameters(), lr=0.1)
        for x, y in data:
            second.zero_grad()
            critic(net(x)).mean().backward()
            second.step()
            (-critic(net(x)).mean()).backward()
            opt.step()
        """
    assert [f.promise for f in found(tmp_path, RULE, START, body)] == [Promise.ADVICE]


UNSEEN = """
        from somewhere import Net
        unseen = Net()
        other = torch.optim.Adam(unseen.parameters())
"""


@pytest.mark.parametrize(
    ("loss", "method"),
    [
        ("unseen.loss(x, y)", "unseen.loss()"),
        ("F.mse_loss(unseen(unseen.augment(x)), y)", "unseen.augment()"),
    ],
)
def test_a_method_that_cannot_be_seen_is_likely_not_to_clear(tmp_path: Path, loss: str, method: str) -> None:
    body = f"""
        for x, y in data:
            loss = {loss}
            loss.backward()
            other.step()
        """
    findings = found(tmp_path, RULE, START, UNSEEN, body)
    assert [(f.promise, f.likely) for f in findings] == [(Promise.ADVICE, Promise.BEHAVIOUR)]
    assert f"unless `{method}`, whose code cannot be seen" in findings[0].message
    assert "other.zero_grad()" in mended(tmp_path, promoted(findings))


@pytest.mark.parametrize(
    "loop",
    [
        # of what is called for what it does nothing is known
        "for x, y in data:\n    unseen.begin_step()\n    unseen.loss(x, y).backward()\n    other.step()",
        "for x, y in data:\n    unseen.zero_grad()\n    unseen.loss(x, y).backward()\n    other.step()",
        "for x, y in data:\n    unseen.loss(x, y, other).backward()\n    other.step()",
    ],
)
def test_what_may_well_clear_is_left(tmp_path: Path, loop: str) -> None:
    assert found(tmp_path, RULE, START, UNSEEN, loop) == []
