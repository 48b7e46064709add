"""What zero-grad-misplaced finds and leaves alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.tools import LEARNING, found, mended, sited

RULE = "zero-grad-misplaced"
HEAD = (
    LEARNING
    + """
"""
)

FOUND = {
    "right behind the backward": (
        """
        for x, y in batches():
            criterion(net(x), y).backward()
            opt.zero_grad()
            opt.step()
        """,
        "opt.step()",
    ),
    "by the module": (
        """
        for x, y in batches():
            loss = criterion(net(x), y)
            loss.backward()
            net.zero_grad()
            opt.step()
        """,
        "opt.step()",
    ),
    "in a function of its own": (
        """
        def update(x, y):
            loss = criterion(net(x), y)
            loss.backward()
            print(loss.item())
            opt.zero_grad()
            opt.step()

        for x, y in batches():
            update(x, y)
        """,
        "opt.step()",
    ),
    "where micro-batches end": (
        """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            if (i + 1) % 4 == 0:
                opt.zero_grad()
                opt.step()
        """,
        "opt.step()",
    ),
    "in every micro-batch": (
        """
        steps = 4
        for i, (x, y) in enumerate(batches()):
            opt.zero_grad()
            loss = criterion(net(x), y) / steps
            loss.backward()
            if (i + 1) % steps == 0:
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                opt.step()
        """,
        "opt.zero_grad()",
        "opt.zero_grad()",
    ),
    "in every micro-batch, by the module": (
        """
        def train():
            for i, (x, y) in enumerate(batches()):
                with torch.autocast("cpu"):
                    loss = criterion(net(x), y)
                net.zero_grad()
                loss.backward()
                if not (i + 1) % 2 or i == 49:
                    opt.step()
        train()
        """,
        "net.zero_grad()",
        "net.zero_grad()",
    ),
    "at the end of every micro-batch": (
        """
        for i, (x, y) in enumerate(batches()):
            loss = criterion(net(x), y) / 4
            loss.backward()
            if (i + 1) % 4 == 0:
                opt.step()
            opt.zero_grad()
        """,
        "opt.zero_grad()",
        "opt.zero_grad()",
    ),
    "at the end of every micro-batch, in a method": (
        """
        class Trainer:
            def __init__(self):
                self.net = nn.Linear(4, 2)
                self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

            def fit(self):
                for i, (x, y) in enumerate(batches()):
                    if x.sum() > 100:
                        continue
                    (criterion(self.net(x), y) / 4).backward()
                    if (i + 1) % 4 == 0:
                        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
                        self.opt.step()
                    print(i)
                    self.net.zero_grad()

        Trainer().fit()
        """,
        "self.net.zero_grad()",
        "self.net.zero_grad()",
    ),
}
"""Programs with the line that is found."""

LEFT = {
    "at the end of the turns that stepped": """
        for i, (x, y) in enumerate(batches()):
            (criterion(net(x), y) / 4).backward()
            if (i + 1) % 4 != 0:
                continue
            if (i + 1) % 4 == 0:
                opt.step()
            opt.zero_grad()
        """,
    "at the end of every turn, where a step stands in each": """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            opt.step()
            if (i + 1) % 4 == 0:
                print(i)
            opt.zero_grad()
        """,
    "at the end of every turn, where a step has a backward of its own": """
        judge = nn.Linear(2, 1)
        slow = torch.optim.SGD(judge.parameters(), lr=0.01)
        for i, (x, y) in enumerate(batches()):
            judge(net(x)).mean().backward()
            slow.step()
            slow.zero_grad()
            if (i + 1) % 4 == 0:
                opt.zero_grad()
                criterion(net(x), y).backward()
                opt.step()
            opt.zero_grad()
        """,
    "at the end of every turn, where a step has a backward of its own in a function": """
        judge = nn.Linear(2, 1)
        slow = torch.optim.SGD(judge.parameters(), lr=0.01)

        def update(x, y):
            opt.zero_grad()
            criterion(net(x), y).backward()

        for i, (x, y) in enumerate(batches()):
            judge(net(x)).mean().backward()
            slow.step()
            slow.zero_grad()
            if (i + 1) % 4 == 0:
                update(x, y)
                opt.step()
            opt.zero_grad()
        """,
    "at the end of every turn, where the others are told": """
        for i, (x, y) in enumerate(batches()):
            (criterion(net(x), y) / 4).backward()
            if (i + 1) % 4 == 0:
                opt.step()
            print(net[0].weight.grad.norm())
            opt.zero_grad()
        """,
    "at the end of every turn, where the others step elsewhere": """
        slow = torch.optim.SGD(net.parameters(), lr=0.01)
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            if (i + 1) % 4 == 0:
                opt.step()
            slow.step()
            opt.zero_grad()
        """,
    "at the end of every turn, where the others are used up": """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            if (i + 1) % 4 == 0:
                opt.step()
            else:
                slow = torch.optim.SGD(net.parameters(), lr=0.01)
                slow.step()
            opt.zero_grad()
        """,
    "behind the loop over the micro-batches": """
        for epoch in range(3):
            for i, (x, y) in enumerate(batches()):
                (criterion(net(x), y) / 4).backward()
                if (i + 1) % 4 == 0:
                    opt.step()
                    opt.zero_grad()
            opt.zero_grad()
        """,
    "micro-batches cleared at the top, a step with a backward of its own": """
        judge = nn.Linear(2, 1)
        slow = torch.optim.SGD(judge.parameters(), lr=0.01)
        for i, (x, y) in enumerate(batches()):
            opt.zero_grad()
            judge(net(x)).mean().backward()
            slow.step()
            slow.zero_grad()
            if (i + 1) % 4 == 0:
                criterion(net(x), y).backward()
                opt.step()
        """,
    "a function that clears nothing on one path": """
        def clear(many):
            if many % 4:
                return
            opt.zero_grad()

        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            clear(i)
            opt.step()
        """,
    "micro-batches, cleared behind their step": """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            if (i + 1) % 4 == 0:
                opt.step()
                opt.zero_grad()
        """,
    "a step in every turn": """
        for i, (x, y) in enumerate(batches()):
            opt.zero_grad()
            criterion(net(x), y).backward()
            if (i + 1) % 1 == 0:
                opt.step()
        """,
    "how many, an option decides": """
        import sys
        steps = int(sys.argv[1])
        for i, (x, y) in enumerate(batches()):
            opt.zero_grad()
            criterion(net(x), y).backward()
            if (i + 1) % steps == 0:
                opt.step()
        """,
    "gradients of every turn are told": """
        for i, (x, y) in enumerate(batches()):
            opt.zero_grad()
            criterion(net(x), y).backward()
            print(net[0].weight.grad.norm())
            if (i + 1) % 4 == 0:
                opt.step()
        """,
    "the other turns step elsewhere": """
        slow = torch.optim.SGD(net.parameters(), lr=0.01)
        for i, (x, y) in enumerate(batches()):
            opt.zero_grad()
            criterion(net(x), y).backward()
            slow.step()
            if (i + 1) % 4 == 0:
                opt.step()
        """,
    "the backward stands beside the step": """
        for i, (x, y) in enumerate(batches()):
            opt.zero_grad()
            loss = criterion(net(x), y)
            if (i + 1) % 4 == 0:
                loss.backward()
                opt.step()
        """,
    "a step that a good loss decides": """
        for i, (x, y) in enumerate(batches()):
            opt.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            if loss.item() < 10:
                opt.step()
        """,
    "cleared once in so many": """
        for i, (x, y) in enumerate(batches()):
            if i % 4 == 0:
                opt.zero_grad()
            criterion(net(x), y).backward()
            if (i + 1) % 4 == 0:
                opt.step()
        """,
    "first": """
        for x, y in batches():
            opt.zero_grad()
            criterion(net(x), y).backward()
            opt.step()
        """,
    "behind the step": """
        for x, y in batches():
            criterion(net(x), y).backward()
            opt.step()
            opt.zero_grad()
        """,
    "another backward follows": """
        for x, y in batches():
            criterion(net(x), y).backward()
            opt.zero_grad()
            criterion(net(x + 1), y).backward()
            opt.step()
        """,
    "gradients are kept and put back": """
        for x, y in batches():
            criterion(net(x), y).backward()
            kept = [p.grad.clone() for p in net.parameters()]
            opt.zero_grad()
            for p, g in zip(net.parameters(), kept):
                p.grad = g
            opt.step()
        """,
    "the other optimizer is cleared": """
        other = nn.Linear(4, 2)
        second = torch.optim.SGD(other.parameters(), lr=0.1)
        for x, y in batches():
            criterion(net(x), y).backward()
            second.zero_grad()
            opt.step()
        """,
    "a part of the model is cleared": """
        for x, y in batches():
            criterion(net(x), y).backward()
            net[0].zero_grad()
            opt.step()
        """,
    "a hook has used them": """
        for p in net.parameters():
            p.register_post_accumulate_grad_hook(lambda p: p.data.sub_(0.1 * p.grad))
        for x, y in batches():
            criterion(net(x), y).backward()
            opt.zero_grad()
            opt.step()
        """,
    "a closure computes them anew": """
        def closure():
            loss = criterion(net(x), y)
            loss.backward()
            return loss

        for x, y in batches():
            criterion(net(x), y).backward()
            opt.zero_grad()
            opt.step(closure)
        """,
    "an optimizer of the tree keeps them": """
        class Kept(torch.optim.SGD):
            def zero_grad(self, set_to_none=True):
                self.kept = [p.grad for g in self.param_groups for p in g["params"]]

        own = Kept(net.parameters(), lr=0.1)
        for x, y in batches():
            criterion(net(x), y).backward()
            own.zero_grad()
            own.step()
        """,
    "cleared in some turns": """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            if i == 0:
                opt.zero_grad()
            opt.step()
        """,
    "unseen code gets the model on the way": """
        from elsewhere import synchronize

        for x, y in batches():
            criterion(net(x), y).backward()
            synchronize(net)
            opt.zero_grad()
            opt.step()
        """,
}

told, test_found, test_left = sited(RULE, HEAD, FOUND, LEFT)


MOVED = {
    "from the end of every micro-batch": (
        """
        for i, (x, y) in enumerate(batches()):
            (criterion(net(x), y) / 4).backward()
            if (i + 1) % 4 == 0:
                opt.step()
                print(i)
            opt.zero_grad()
        """,
        """
        for i, (x, y) in enumerate(batches()):
            (criterion(net(x), y) / 4).backward()
            if (i + 1) % 4 == 0:
                opt.step()
                opt.zero_grad()
                print(i)
        """,
    ),
    "nowhere from the end, as it clears for another as well": (
        """
        judge = nn.Linear(2, 1)
        both = nn.ModuleList([net, judge])
        slow = torch.optim.SGD(judge.parameters(), lr=0.01)
        for i, (x, y) in enumerate(batches()):
            criterion(judge(net(x)), y[:, :1]).backward()
            slow.step()
            if (i + 1) % 4 == 0:
                opt.step()
            both.zero_grad()
        """,
        None,
    ),
    "to the end of the turn": (
        """
        for x, y in batches():
            criterion(net(x), y).backward()
            opt.zero_grad()  # not yet
            opt.step()
            print("stepped")
        """,
        """
        for x, y in batches():
            criterion(net(x), y).backward()
            opt.step()
            opt.zero_grad()  # not yet
            print("stepped")
        """,
    ),
    "within the condition of the step": (
        """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            if (i + 1) % 4 == 0:
                opt.zero_grad()
                opt.step()
        """,
        """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            if (i + 1) % 4 == 0:
                opt.step()
                opt.zero_grad()
        """,
    ),
    "into the condition of the step": (
        """
        for i, (x, y) in enumerate(batches()):
            opt.zero_grad()
            criterion(net(x), y).backward()
            if (i + 1) % 4 == 0:
                opt.step()
        """,
        """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            if (i + 1) % 4 == 0:
                opt.step()
                opt.zero_grad()
        """,
    ),
    "nowhere where the first turns do not step": (
        """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            opt.zero_grad()
            if i > 2:
                opt.step()
            else:
                print(i)
        """,
        None,
    ),
    "nowhere where a bad loss skips the step": (
        """
        for x, y in batches():
            loss = criterion(net(x), y)
            loss.backward()
            opt.zero_grad()
            if torch.isfinite(loss):
                opt.step()
        """,
        None,
    ),
    "behind a loop that is left early": (
        """
        for x, y in batches():
            criterion(net(x), y).backward()
            opt.zero_grad()
            for name, part in net.named_parameters():
                if part.numel() > 100:
                    break
                print(name)
            opt.step()
        """,
        """
        for x, y in batches():
            criterion(net(x), y).backward()
            for name, part in net.named_parameters():
                if part.numel() > 100:
                    break
                print(name)
            opt.step()
            opt.zero_grad()
        """,
    ),
    "nowhere where a bad loss ends the turn": (
        """
        for x, y in batches():
            loss = criterion(net(x), y)
            loss.backward()
            opt.zero_grad()
            if loss.item() > 100:
                continue
            opt.step()
        """,
        None,
    ),
    "nowhere where a bad loss ends the turn before both": (
        """
        for x, y in batches():
            loss = criterion(net(x), y)
            loss.backward()
            if loss.item() > 100:
                continue
            opt.zero_grad()
            opt.step()
        """,
        None,
    ),
    "nowhere where a bad loss keeps from both": (
        """
        for x, y in batches():
            loss = criterion(net(x), y)
            loss.backward()
            if torch.isfinite(loss):
                opt.zero_grad()
                opt.step()
        """,
        None,
    ),
    "nowhere where a bad loss keeps from a function of both": (
        """
        def update():
            opt.zero_grad()
            opt.step()

        for x, y in batches():
            loss = criterion(net(x), y)
            loss.backward()
            if torch.isfinite(loss):
                update()
        """,
        None,
    ),
    "nowhere where a bad loss of micro-batches is skipped": (
        """
        for i, (x, y) in enumerate(batches()):
            opt.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            if (i + 1) % 4 == 0 and torch.isfinite(loss):
                opt.step()
        """,
        None,
    ),
    "nowhere where a bad loss ends the turn between two backwards": (
        """
        for x, y in batches():
            loss = criterion(net(x), y)
            loss.backward()
            if loss.item() > 100:
                continue
            criterion(net(x + 1), y).backward()
            opt.zero_grad()
            opt.step()
        """,
        None,
    ),
    "nowhere where another backward has no step": (
        """
        for x, y in batches():
            if x.sum() > 10:
                criterion(net(x + 1), y).backward()
                continue
            criterion(net(x), y).backward()
            opt.zero_grad()
            opt.step()
        """,
        None,
    ),
    "nowhere where only good losses are counted": (
        """
        turn = 0
        for x, y in batches():
            loss = criterion(net(x), y)
            loss.backward()
            if loss.item() < 100:
                turn += 1
            if turn % 4 == 0:
                opt.zero_grad()
                opt.step()
            turn += 1
        """,
        None,
    ),
    "nowhere where a bad loss returns": (
        """
        def update(x, y):
            loss = criterion(net(x), y)
            loss.backward()
            opt.zero_grad()
            if loss.item() > 100:
                return
            opt.step()

        for x, y in batches():
            update(x, y)
        """,
        None,
    ),
    "nowhere where an error is passed over": (
        """
        for x, y in batches():
            try:
                loss = criterion(net(x), y)
                loss.backward()
                opt.zero_grad()
                assert loss.item() < 100
                opt.step()
            except AssertionError:
                print("bad")
        """,
        None,
    ),
    "nowhere where errors are suppressed": (
        """
        import contextlib

        def check(loss):
            if loss.item() > 100:
                raise ValueError(loss.item())

        for x, y in batches():
            with contextlib.suppress(ValueError):
                loss = criterion(net(x), y)
                loss.backward()
                opt.zero_grad()
                check(loss)
                opt.step()
        """,
        None,
    ),
    "nowhere where the epoch decides": (
        """
        for epoch in range(5):
            for x, y in batches():
                criterion(net(x), y).backward()
                opt.zero_grad()
                if epoch % 2 == 0:
                    opt.step()
        """,
        None,
    ),
    "nowhere where the values of a batch decide": (
        """
        for x in range(50):
            for i, n in enumerate(range(8)):
                n = int(net(torch.randn(2, 4)).sum())
                criterion(net(torch.randn(2, 4)), torch.randn(2, 2)).backward()
                opt.zero_grad()
                if n % 2 == 0:
                    opt.step()
        """,
        None,
    ),
    "behind a turn of a micro-batch that ends early": (
        """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            opt.zero_grad()
            if (i + 1) % 4 != 0:
                continue
            opt.step()
        """,
        """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            if (i + 1) % 4 != 0:
                continue
            opt.step()
            opt.zero_grad()
        """,
    ),
    "within a condition on what is counted by hand": (
        """
        turn = 0
        for x, y in batches():
            if x.sum() > 100:
                continue
            criterion(net(x), y).backward()
            turn += 1
            if turn % 4 == 0:
                opt.zero_grad()
                opt.step()
        """,
        """
        turn = 0
        for x, y in batches():
            if x.sum() > 100:
                continue
            criterion(net(x), y).backward()
            turn += 1
            if turn % 4 == 0:
                opt.step()
                opt.zero_grad()
        """,
    ),
    "behind several backwards": (
        """
        for x, y in batches():
            for part in x.chunk(2):
                net(part).mean().backward()
            criterion(net(x), y).backward()
            opt.zero_grad()
            opt.step()
        """,
        """
        for x, y in batches():
            for part in x.chunk(2):
                net(part).mean().backward()
            criterion(net(x), y).backward()
            opt.step()
            opt.zero_grad()
        """,
    ),
    "behind a function of both": (
        """
        def update():
            opt.zero_grad()
            opt.step()

        for x, y in batches():
            criterion(net(x), y).backward()
            update()
        """,
        """
        def update():
            opt.step()
            opt.zero_grad()

        for x, y in batches():
            criterion(net(x), y).backward()
            update()
        """,
    ),
    "nowhere out of a function": (
        """
        def clear():
            opt.zero_grad()

        for x, y in batches():
            criterion(net(x), y).backward()
            clear()
            opt.step()
        """,
        None,
    ),
    "nowhere past another optimizer of its name": (
        """
        for x, y in batches():
            criterion(net(x), y).backward()
            opt.zero_grad()
            mine, opt = opt, opt
            mine.step()
        """,
        None,
    ),
}
"""Programs, and what they become, if anything."""


@pytest.mark.parametrize("name", MOVED)
def test_what_clears_moves_behind_the_step(tmp_path: Path, name: str) -> None:
    before, after = MOVED[name]
    findings = found(tmp_path, RULE, HEAD, before)
    assert len(findings) == 1
    assert bool(findings[0].edits) is (after is not None)
    assert mended(tmp_path, findings) == "\n".join((HEAD, dedent(after or before)))


SEVERAL = {
    "two branches": """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            opt.zero_grad()
            if i % 2 == 0:
                opt.step()
            else:
                opt.step()
        """,
    "a branch that ends the turn": """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            opt.zero_grad()
            if i % 2 == 0:
                opt.step()
                continue
            opt.step()
        """,
    "two conditions": """
        for i, (x, y) in enumerate(batches()):
            criterion(net(x), y).backward()
            opt.zero_grad()
            if i % 2 == 0:
                opt.step()
            if i % 3 == 0:
                opt.step()
        """,
}
"""Programs that step at several places of a turn."""


@pytest.mark.parametrize("name", SEVERAL)
def test_what_several_paths_need_stays(tmp_path: Path, name: str) -> None:
    findings = found(tmp_path, RULE, HEAD, SEVERAL[name])
    assert findings
    assert not any(finding.edits for finding in findings)


def test_the_message_counts_turns(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, RULE, HEAD, FOUND["in every micro-batch, by the module"][0])
    assert "every 2 iterations" in finding.message


WRITTEN = sum(len(program) > 2 for program in FOUND.values()) + sum(after is not None for _, after in MOVED.values())
