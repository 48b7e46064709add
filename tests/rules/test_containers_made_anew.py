"""Containers that grow by being made anew: ``losses = losses + [loss]`` keeps what ``losses.append(loss)`` keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.rules.tools import LEARNING, added, analysed, found, mended

HISTORY = "attached-loss-history"

TRAIN = """
def train(epochs=2):
    {begin}
    for epoch in range(epochs):
        for x, y in batches():
            output = net(x)
            loss = criterion(output, y)
            learn(loss)
            {grow}
    {end}

train()
"""


@pytest.mark.parametrize(
    ("begin", "grow", "end", "after"),
    [
        ("losses = []", "losses = losses + [loss]", "print(sum(losses))", "losses = losses + [loss.item()]"),
        ("losses = []", "losses = [loss] + losses", "print(sum(losses))", "losses = [loss.item()] + losses"),
        ("losses = []", "losses = [*losses, loss]", "print(sum(losses))", "losses = [*losses, loss.item()]"),
        ("losses = []", "losses = [*losses[-9:], loss]", "print(sum(losses))", "losses = [*losses[-9:], loss.item()]"),
        ("losses = ()", "losses = losses + (loss,)", "print(sum(losses))", "losses = losses + (loss.item(),)"),
        ("losses = ()", "losses = (*losses, loss)", "print(sum(losses))", "losses = (*losses, loss.item())"),
        ("losses = ()", "losses += (loss,)", "print(sum(losses))", "losses += (loss.item(),)"),
        ("losses = []", "losses = losses + [loss]", "print(torch.stack(losses))", "losses = losses + [loss.detach()]"),
        (
            "losses = []",
            "losses = losses + [(epoch, loss)]",
            "print([float(value) for _, value in losses])",
            "losses = losses + [(epoch, loss.detach())]",
        ),
        ("losses = {}", "losses = {**losses, epoch: loss}", "print(losses)", "losses = {**losses, epoch: loss.item()}"),
        ("losses = {}", "losses = losses | {epoch: loss}", "print(losses)", "losses = losses | {epoch: loss.item()}"),
        ("losses = {}", "losses.update({epoch: loss})", "print(losses)", "losses.update({epoch: loss.item()})"),
    ],
)
def test_it_keeps_each_loss(tmp_path: Path, begin: str, grow: str, end: str, after: str) -> None:
    findings = found(tmp_path, HISTORY, LEARNING, TRAIN.format(begin=begin, grow=grow, end=end))
    assert [f.promise for f in findings] == [Promise.EXACT]
    assert findings[0].message.startswith("losses keeps loss with its graph")
    text = (tmp_path / "train.py").read_text()
    assert added(text, mended(tmp_path, findings)) == [after]


def test_an_attribute_that_is_made_anew(tmp_path: Path) -> None:
    program = """
    class Trainer:
        def __init__(self):
            self.losses = []

        def run(self):
            for x, y in batches():
                loss = criterion(net(x), y)
                learn(loss)
                self.losses = self.losses + [loss]
            print(sum(self.losses) / len(self.losses))

    trainer = Trainer()
    trainer.run()
    trainer.run()
    """
    findings = found(tmp_path, HISTORY, LEARNING, program)
    assert [f.message.partition(" ")[0] for f in findings] == ["self.losses"]


@pytest.mark.parametrize(
    ("begin", "grow"),
    [
        ("kept = []", "kept = kept + [output]"),
        ("kept = ()", "kept = (*kept, output)"),
        ("kept = ()", "kept += (output,)"),
    ],
)
def test_outputs_that_are_only_looked_at(tmp_path: Path, begin: str, grow: str) -> None:
    program = TRAIN.format(begin=begin, grow=grow, end="print(torch.cat(kept).mean().item())")
    findings = found(tmp_path, "stored-graph", LEARNING, program)
    assert [f.promise for f in findings] == [Promise.EXACT]
    text = (tmp_path / "train.py").read_text()
    assert added(text, mended(tmp_path, findings)) == [grow.replace("output", "output.detach()")]


@pytest.mark.parametrize(
    ("begin", "grow"),
    [
        # made new in each step
        ("pass", "losses = []; losses = losses + [loss]; print(sum(losses))"),
        ("losses = []", "losses = [loss]; print(sum(losses))"),
        # so many of another list
        ("losses = others = []", "losses = [*others[-9:], loss]; print(sum(losses))"),
        ("losses = {}", "losses.update({'loss': loss}); print(losses)"),
        ("losses = {}", "losses = {**losses, 'loss': loss}; print(losses)"),
        # numbers, and tensors without a graph
        ("losses = []", "losses = [*losses, loss.item()]; print(sum(losses))"),
        ("losses = ()", "losses += (loss.detach(),); print(sum(losses))"),
        ("losses = {}", "losses.update({epoch: loss.item()}); print(losses)"),
        # something else grows
        ("losses = others = []", "losses = others + [loss]; print(sum(losses))"),
    ],
)
def test_nothing_is_kept(tmp_path: Path, begin: str, grow: str) -> None:
    program = TRAIN.format(begin=begin, grow=grow, end="pass")
    assert not analysed(tmp_path, Options(unsafe=True), LEARNING, program)


@pytest.mark.parametrize(
    "program",
    [
        """
        for epoch in range(3):
            losses = []
            for x, y in batches():
                losses = losses + [criterion(net(x), y)]
            learn(sum(losses))
        """,
        """
        for epoch in range(3):
            losses = ()
            for x, y in batches():
                losses += (criterion(net(x), y),)
            learn(torch.stack(losses).mean())
        """,
        """
        def collect():
            losses = []
            for x, y in batches():
                losses = [*losses, criterion(net(x), y)]
            return losses

        for epoch in range(3):
            learn(sum(collect()))
        """,
        """
        losses = []
        for x, y in batches():
            losses = losses + [criterion(net(x), y)]
            if len(losses) == 4:
                learn(sum(losses))
                losses = []
        """,
        """
        rest = []
        for x, y in batches():
            loss = criterion(net(x), y)
            opt.zero_grad()
            loss.backward(retain_graph=True)
            rest = [*rest, loss]
        opt.zero_grad()
        sum(rest).backward()
        opt.step()
        """,
        """
        states = ()
        for x, y in batches():
            output = net(x)
            opt.zero_grad()
            criterion(output, y).backward(retain_graph=True)
            states = (*states, output)
        opt.zero_grad()
        torch.cat(states).mean().backward()
        opt.step()
        """,
    ],
)
def test_what_is_walked_later_keeps_its_graph(tmp_path: Path, program: str) -> None:
    assert not analysed(tmp_path, Options(unsafe=True), LEARNING, program)
