"""Losses with a forward each are back-propagated at once; terms of one graph, and gradients that are used, are left."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import assert_mended, found, mended

RULE = "summed-micro-batches"

START = """\
import torch
from torch import nn
import torch.nn.functional as F

net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
graphs = [torch.randn(3, 4) for _ in range(6)]
k = 3

"""

HITS = {
    "an error ends the training": (
        """
        try:
            for epoch in range(3):
                opt.zero_grad()
                total = 0
                for x in graphs:
                    loss = net(x).mean()
                    total = total + loss
                total.backward()  #
                opt.step()
        except KeyboardInterrupt:
            print("stopped")
        """,
        """
        try:
            for epoch in range(3):
                opt.zero_grad()
                total = 0
                for x in graphs:
                    loss = net(x).mean()
                    loss.backward()
                    total = total + loss.detach()
                opt.step()
        except KeyboardInterrupt:
            print("stopped")
        """,
    ),
    "a sum behind which one backward stands": (
        """
        for epoch in range(3):
            opt.zero_grad()
            total = 0
            for x in graphs:
                loss = net(x).pow(2).mean()
                total = total + loss
            total.backward()  #
            opt.step()
            print(total.item())
        """,
        """
        for epoch in range(3):
            opt.zero_grad()
            total = 0
            for x in graphs:
                loss = net(x).pow(2).mean()
                loss.backward()
                total = total + loss.detach()
            opt.step()
            print(total.item())
        """,
    ),
    "an expression is named, the clearing goes where the sum begins": (
        """
        class Trainer:
            def step(self, batch):
                self.total = 0.0
                for x in batch:
                    self.total += F.mse_loss(net(x),
                                             x.sum(1, keepdim=True))
                opt.zero_grad()
                (self.total / len(batch)).backward(retain_graph=True)  #
                opt.step()

        Trainer().step(graphs)
        """,
        """
        class Trainer:
            def step(self, batch):
                self.total = 0.0
                opt.zero_grad()
                for x in batch:
                    micro_loss = F.mse_loss(net(x),
                                             x.sum(1, keepdim=True))
                    (micro_loss / len(batch)).backward()
                    self.total += micro_loss.detach()
                opt.step()

        Trainer().step(graphs)
        """,
    ),
    "a list that is stacked": (
        """
        for epoch in range(3):
            losses = []
            for x in graphs:
                loss = net(x).pow(2).mean()
                losses.append(loss)
            opt.zero_grad()
            loss = torch.stack(losses).mean() * 0.5
            loss.backward()  #
            opt.step()
        """,
        """
        for epoch in range(3):
            losses = []
            opt.zero_grad()
            for x in graphs:
                loss = net(x).pow(2).mean()
                (loss / len(graphs) * 0.5).backward()
                losses.append(loss.detach())
            loss = torch.stack(losses).mean() * 0.5
            opt.step()
        """,
    ),
    "every k-th turn, the sum begins anew in each epoch": (
        """
        for epoch in range(3):
            total = 0
            for i, x in enumerate(graphs):
                loss = net(x).pow(2).mean()
                total = total + loss
                if (i + 1) % k == 0:
                    opt.zero_grad()
                    (total / k).backward()  #
                    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                    opt.step()
                    total = 0
        """,
        """
        for epoch in range(3):
            total = 0
            opt.zero_grad()
            for i, x in enumerate(graphs):
                loss = net(x).pow(2).mean()
                (loss / k).backward()
                total = total + loss.detach()
                if (i + 1) % k == 0:
                    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                    opt.step()
                    opt.zero_grad()
                    total = 0
        """,
    ),
}

SILENT = {
    # six graphs and windows of three; of seven the last one would fill none
    "a step behind the windows finds the gradients of turns that filled none": """
        for epoch in range(3):
            total = 0
            for i, x in enumerate(graphs):
                total = total + net(x).mean()
                if (i + 1) % k == 0:
                    total.backward()
                    opt.step()
                    opt.zero_grad()
                    total = 0
            opt.step()
        """,
    "gradients are read behind the windows": """
        for epoch in range(3):
            total = 0
            for i, x in enumerate(graphs):
                total = total + net(x).mean()
                if (i + 1) % k == 0:
                    total.backward()
                    opt.step()
                    opt.zero_grad()
                    total = 0
            print(net[0].weight.grad)
        """,
    "nothing is cleared where the sum forgets turns that filled no window": """
        for epoch in range(3):
            total = 0
            for i, x in enumerate(graphs):
                total = total + net(x).mean()
                if (i + 1) % k == 0:
                    total.backward()
                    opt.step()
                    print(total)
                    total = 0
        """,
    "a sum goes on into the next epoch, and its gradients are cleared before": """
        total = 0
        for epoch in range(3):
            opt.zero_grad()
            for i, x in enumerate(graphs):
                total = total + net(x).mean()
                if (i + 1) % k == 0:
                    total.backward()
                    opt.step()
                    opt.zero_grad()
                    total = 0
        """,
    "more comes to the sum in some turns": """
        total, before = 0, None
        for i, x in enumerate(graphs):
            out = net(x)
            total = total + out.pow(2).mean()
            if before is not None:
                total = total + (out - before).pow(2).mean()
            before = out.detach()
            if (i + 1) % 3 == 0:
                opt.zero_grad()
                total.backward()
                opt.step()
                total = 0
        """,
    "the sum begins anew in the middle of the loop": """
        for step in range(3):
            total = 0
            for i, x in enumerate(graphs):
                total = total + net(x).pow(2).mean()
                if i == 1 and step:
                    total = 0
            opt.zero_grad()
            total.backward()
            opt.step()
        """,
    "more comes to the list from a function": """
        def also(out):
            losses.append(out.abs().mean())

        for epoch in range(3):
            losses = []
            for x in graphs:
                out = net(x)
                losses.append(out.pow(2).mean())
                also(out)
            opt.zero_grad()
            sum(losses).backward()
            opt.step()
        """,
    "a model that cannot be seen may keep a state": """
        import snntorch

        lif = snntorch.Leaky(beta=0.9, init_hidden=True)
        for epoch in range(3):
            opt.zero_grad()
            total = 0
            for x in graphs:
                total = total + lif(net(x)).mean()
            total.backward()
            opt.step()
        """,
    "an argument that is a model": """
        def fit(model):
            optimizer = torch.optim.Adam(model.parameters())
            for epoch in range(3):
                optimizer.zero_grad()
                total = 0
                for x in graphs:
                    total = total + model(x).mean()
                total.backward()
                optimizer.step()
        """,
    "heads on one encoding": """
        for epoch in range(3):
            opt.zero_grad()
            code, total = net[:2](graphs[0]), 0
            for head in (nn.Linear(8, 1), nn.Linear(8, 1)):
                total = total + head(code).mean()
            total.backward()
            opt.step()
        """,
    "a state carried along": """
        cell = nn.GRUCell(4, 4)
        for epoch in range(3):
            opt.zero_grad()
            h, total = torch.zeros(3, 4), 0
            for x in graphs:
                h = cell(x, h)
                total = total + net(h).mean()
            total.backward()
            opt.step()
        """,
    "already one by one": """
        for epoch in range(3):
            opt.zero_grad()
            total = 0
            for x in graphs:
                loss = net(x).mean() / len(graphs)
                loss.backward()
                total += loss.item()
            opt.step()
        """,
    "gradients are cleared in a callee": """
        def inner(x):
            net.zero_grad()
            return net(x).mean()

        for epoch in range(3):
            total = 0
            for x in graphs:
                total = total + inner(x)
            total.backward()
            opt.step()
        """,
    "an inner step": """
        for epoch in range(3):
            total = 0
            for x in graphs:
                first = net(x).mean()
                grads = torch.autograd.grad(first, list(net.parameters()), create_graph=True)
                total = total + net(x).mean() - sum(g.sum() for g in grads)
            opt.zero_grad()
            total.backward()
            opt.step()
        """,
    "a divisor known at the end": """
        for epoch in range(3):
            opt.zero_grad()
            total, count = 0, 0
            for x in graphs:
                total = total + net(x).sum()
                count += len(x)
            (total / count).backward()
            opt.step()
        """,
    "the sum is squared": """
        for epoch in range(3):
            opt.zero_grad()
            total = 0
            for x in graphs:
                total = total + net(x).mean()
            (total ** 2).backward()
            opt.step()
        """,
    "a window that may be skipped": """
        for epoch in range(3):
            opt.zero_grad()
            total = 0
            for x in graphs:
                total = total + net(x).mean()
            if torch.isnan(total):
                continue
            total.backward()
            opt.step()
        """,
    "scaled by a parameter": """
        weight = nn.Parameter(torch.ones(()))
        for epoch in range(3):
            opt.zero_grad()
            total = 0
            for x in graphs:
                total = total + net(x).mean()
            (total * weight).backward()
            opt.step()
        """,
    "two losses of one forward in one turn": """
        for epoch in range(3):
            opt.zero_grad()
            total = 0
            for x in graphs:
                y = net(x)
                total = total + y.mean()
                total = total + y.pow(2).mean()
            total.backward()
            opt.step()
        """,
    "a penalty from before the loop": """
        for epoch in range(3):
            opt.zero_grad()
            total = sum(p.norm() for p in net.parameters())
            for x in graphs:
                total = total + net(x).mean()
            total.backward()
            opt.step()
        """,
    "a penalty of parameters": """
        for epoch in range(3):
            opt.zero_grad()
            penalty = 0
            for p in net.parameters():
                penalty = penalty + p.norm()
            penalty.backward()
            opt.step()
        """,
    "hooks on the parameters": """
        for p in net.parameters():
            p.register_hook(lambda g: g.clamp(-1, 1))
        for epoch in range(3):
            opt.zero_grad()
            total = 0
            for x in graphs:
                total = total + net(x).mean()
            total.backward()
            opt.step()
        """,
    "a checkpoint that draws anew": """
        from torch.utils.checkpoint import checkpoint
        for epoch in range(3):
            opt.zero_grad()
            total = 0
            for x in graphs:
                total = total + checkpoint(net, x, use_reentrant=False, preserve_rng_state=False).mean()
            total.backward()
            opt.step()
        """,
    "a window that ends with an error, and a step all the same": """
        for epoch in range(3):
            opt.zero_grad()
            try:
                total = 0
                for x in graphs[epoch:] + [None]:
                    total = total + net(x).mean()
                total.backward()
            except TypeError:
                print("skipped")
            opt.step()
        """,
    "a window whose caller goes on after an error": """
        import contextlib
        def window(epoch):
            total = 0
            for x in graphs[epoch:] + [None]:
                total = total + net(x).mean()
            total.backward()
        for epoch in range(3):
            opt.zero_grad()
            with contextlib.suppress(TypeError):
                window(epoch)
            opt.step()
        """,
    "a window whose caller expects an error and goes on": """
        import pytest
        def window(epoch):
            total = 0
            for x in graphs[epoch:] + [None]:
                total = total + net(x).mean()
            total.backward()
        for epoch in range(3):
            opt.zero_grad()
            with pytest.raises(TypeError):
                window(epoch)
            opt.step()
        """,
    "a sum that nobody resets": """
        total = 0
        for i, x in enumerate(graphs):
            total = total + net(x).mean()
            if (i + 1) % k == 0:
                opt.zero_grad()
                total.backward()
                opt.step()
        """,
    "a remainder that is back-propagated behind the loop": """
        for epoch in range(3):
            total = 0
            for i, x in enumerate(graphs):
                total = total + net(x).mean()
                if (i + 1) % k == 0:
                    opt.zero_grad()
                    total.backward()
                    opt.step()
                    total = 0
            if torch.is_tensor(total):
                total.backward()
                opt.step()
        """,
    "the loop may be left": """
        def run(batch):
            opt.zero_grad()
            total = 0
            for x in batch:
                loss = net(x).mean()
                if loss > 9:
                    return None
                total = total + loss
            total.backward()
            opt.step()

        run(graphs)
        """,
}


@pytest.mark.parametrize("name", HITS)
def test_each_loss_is_back_propagated_at_once(name: str, tmp_path: Path) -> None:
    before, after = HITS[name]
    assert_mended(tmp_path, RULE, "equivalent", START, before, after)


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_found(name: str, tmp_path: Path) -> None:
    assert found(tmp_path, RULE, START + dedent(SILENT[name])) == []


def test_a_sum_through_a_function_is_told(tmp_path: Path) -> None:
    findings = found(
        tmp_path,
        RULE,
        START,
        """
        def process(x, total):
            total = total + net(x).mean()
            return total

        for epoch in range(3):
            opt.zero_grad()
            total = 0
            for x in graphs:
                total = process(x, total)
            total.backward()
            opt.step()
        """,
    )
    assert [(f.promise, f.edits) for f in findings] == [(Promise.ADVICE, ())]


@pytest.mark.parametrize(
    ("kept", "added", "backward", "term"),
    [
        ("0", "total = total + loss", "(total / (2 * k)).backward()", "(loss / (2 * k)).backward()"),
        ("0", "total = total + loss", "(k * total).backward()", "(loss * k).backward()"),
        ("0", "total = total + loss", "(total * nn.scale).backward()", "(loss * nn.scale).backward()"),
        ("[]", "total.append(loss)", "sum(total).backward()", "loss.backward()"),
        ("[]", "total.append(loss)", "torch.stack(total).sum().backward()", "loss.backward()"),
        ("[]", "total.append(loss)", "torch.stack(total, 0).mean().backward()", "(loss / len(graphs)).backward()"),
        ("[]", "total.append(loss)", "(sum(total) / len(total)).backward()", "(loss / len(graphs)).backward()"),
        # how many there are is known only at the end
        ("[]", "total.append(loss); _ = 3 if len(graphs) else 2; continue", "torch.stack(total).mean().backward()", ""),
        ("[]", "total.append(loss) if x.sum() > 0 else None", "torch.stack(total).mean().backward()", ""),
    ],
)
def test_each_loss_has_the_factor_of_the_sum(tmp_path: Path, kept: str, added: str, backward: str, term: str) -> None:
    program = (
        f"for epoch in range(3):\n    opt.zero_grad()\n    total = {kept}\n    for x in graphs:\n"
        f"        loss = net(x).mean()\n        {added}\n    {backward}\n    opt.step()\n"
    )
    findings = found(tmp_path, RULE, START, program)
    assert [f.promise for f in findings] == [Promise.EQUIVALENT] * bool(term)
    assert not term or f"        {term}\n" in mended(tmp_path, findings)


WINDOW = """
class Counted:
    k = 2
    @property
    def more(self):
        self.k += 1
        return self.k

class Given:
    def __getitem__(self, i):
        if i == 6:
            raise IndexError
        {given}
        return graphs[i]

count, seen = Counted(), [1.0]
weight = torch.ones(())
named = weight
number = 2.0

def more():
    global number
    number, count.k = number + 1, count.k + 1
    seen.append(1.0)
    named.add_(1)

def epoch(last=False):
    opt.zero_grad()
    total = 0
    for x in {iterated}:
        total = total + net(x).mean()
        {turn}
    {end}
    {backward}
    opt.step()
    return total
"""


@pytest.mark.parametrize(
    ("changes", "edited"),
    [
        ({}, True),
        ({"backward": "(total / number).backward()"}, True),
        ({"backward": "(total / count.k).backward()"}, True),
        ({"backward": "(total / len(graphs)).backward()"}, True),
        ({"iterated": "Given()"}, True),
        # what a call, another name or a property changes in the turns
        ({"turn": "more()", "backward": "(total / number).backward()"}, False),
        ({"turn": "more()", "backward": "(total / count.k).backward()"}, False),
        ({"turn": "more()", "backward": "(total / len(seen)).backward()"}, False),
        ({"turn": "named.add_(1)", "backward": "(total / weight).backward()"}, False),
        ({"backward": "(total / count.more).backward()"}, False),
        # what gives the loop its values, and what stands behind its last turn
        ({"iterated": "Given()", "given": "opt.zero_grad()"}, False),
        ({"end": "else:\n        opt.zero_grad()"}, False),
    ],
)
def test_what_the_turns_change_is_no_factor(tmp_path: Path, changes: dict[str, str], edited: bool) -> None:
    parts = {"given": "pass", "iterated": "graphs", "turn": "pass", "end": "pass", "backward": "total.backward()"}
    program = WINDOW.format(**(parts | changes)).replace("    pass\n    total", "    total") + "\nepoch()\nepoch()\n"
    assert bool(found(tmp_path, RULE, START, program)) is edited


@pytest.mark.parametrize(
    ("read", "edited"),
    [("print(total)", True), ("print(total.item())", True), ("rate = 1 if total.requires_grad else 2", False),
     ("print(total.grad_fn)", False)],
)  # fmt: skip
def test_a_sum_that_is_asked_for_its_graph_keeps_it(tmp_path: Path, read: str, edited: bool) -> None:
    parts = {"given": "pass", "iterated": "graphs", "turn": "pass", "end": "pass", "backward": "total.backward()"}
    program = WINDOW.format(**parts) + f"\nfor _ in range(3):\n    total = epoch()\n    {read}\n"
    assert bool(found(tmp_path, RULE, START, program)) is edited


@pytest.mark.parametrize(
    ("begin", "edited"), [("[]", True), ("deque()", True), ("deque(maxlen=1)", False), ("deque([], 2)", False)]
)
def test_what_forgets_its_first_losses_is_no_sum_of_all(tmp_path: Path, begin: str, edited: bool) -> None:
    program = f"""
from collections import deque
for epoch in range(3):
    opt.zero_grad()
    losses = {begin}
    for x in graphs:
        losses.append(net(x).mean())
    sum(losses).backward()
    opt.step()
"""
    assert bool(found(tmp_path, RULE, START, program)) is edited


@pytest.mark.parametrize(
    ("answer", "behind", "edited"),
    [
        ("except ValueError:\n    print('ended')", "print('done')", True),
        ("except ValueError:\n    opt.zero_grad()\n    raise", "opt.step()", True),
        ("finally:\n    print('done')", "print('done')", True),
        # the gradients of half a window
        ("except ValueError:\n    print('ended')", "opt.step()", False),
        ("except ValueError:\n    opt.step()\n    raise", "print('done')", False),
        ("finally:\n    opt.step()", "print('done')", False),
        ("except ValueError:\n    opt.step()", "print('done')", False),
    ],
)
def test_an_error_finds_no_half_of_a_window(tmp_path: Path, answer: str, behind: str, edited: bool) -> None:
    parts = {"given": "pass", "iterated": "graphs", "turn": "float(input())", "end": "pass"}
    window = WINDOW.format(**parts, backward="total.backward()")
    program = f"{window}\ntry:\n    epoch()\n{answer}\n{behind}\n"
    assert bool(found(tmp_path, RULE, START, program)) is edited
