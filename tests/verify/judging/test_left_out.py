"""Programs that lack something are judged with made-up values: no wrong change is kept by them, and right ones are."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.verify.zygote import ForkedPlace
from verify.judging import search
from verify.measured.results import Rewrite, Verdict, Verification
from verify.reports import remarks, render
from verify.running.against import HandRewriter
from verify.running.settings import Settings, script_command
from verify.verification import verify

pytestmark = pytest.mark.slow

#: ``tracker`` and ``trainers`` are modules that nobody has, none of the files is there.
PROGRAM = """\
import numpy as np
import torch
import tracker
from torch import nn
from trainers import Trainer


class Book:
    def __init__(self):
        self.best = 0.0


def restore(weight):
    table = np.load("../table.npy")
    return table.decode("utf-8").splitlines()[0] + weight


torch.manual_seed(0)
x = torch.from_numpy(np.load("../data.npy")).float().reshape(-1, 4)
encoder = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1))
head = nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1, momentum=0.5)
trainer = Trainer(encoder)
total, told, history, book = 0.0, 0.0, [], Book()
for epoch in range(30):
    hidden = encoder(x)
    out = head(hidden)
    loss = out.pow(2).mean() + 0.1 * hidden.abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    told += loss.item() * 2
    history.append(loss.item())
    book.best = max(book.best, loss.item())
    with torch.no_grad():
        again = head(encoder(x))
    penalty = head(encoder(x)).mean()
    extra = np.load("../extra.npy", total)
    more = np.load(f"../more-{epoch}.npy", history)
    kept = np.load("../kept.npy", penalty)
    last = np.load("../last.npy", book)
    pair = np.load("../pair.npy", {"one": total, "two": epoch})
    tracker.log(told, epoch)
    trainer.step(penalty * 2)
"""
WRONG = [
    ("flipped sign", "loss = out.pow(2).mean() +", "loss = -out.pow(2).mean() +"),
    ("dropped term", " + 0.1 * hidden.abs().mean()", ""),
    ("no_grad around what learns", "    hidden = encoder(x)\n",
     "    with torch.no_grad():\n        hidden = encoder(x)\n"),
    ("learning rate", "lr=0.1", "lr=0.05"),
    ("momentum", "momentum=0.5", "momentum=0.4"),
    ("order", "    optimizer.zero_grad()\n    loss.backward()\n", "    loss.backward()\n    optimizer.zero_grad()\n"),
    ("detach", "head(hidden)", "head(hidden.detach())"),
    ("extra randn", "    loss.backward()\n", "    torch.randn(1)\n    loss.backward()\n"),
    ("total reset", "    total += loss.item()\n", "    total = loss.item()\n"),
    ("total doubled", "    total += loss.item()\n", "    total += 2 * loss.item()\n"),
    ("total constant", "    total += loss.item()\n", "    total += 1.0\n"),
    ("only told", "told += loss.item() * 2", "told += loss.item() * 3"),
    ("told less often", "    tracker.log(told, epoch)\n", "    if epoch % 2:\n        tracker.log(told, epoch)\n"),
    ("told something else", "tracker.log(told, epoch)", "tracker.log(epoch, told)"),
    ("history", "history.append(loss.item())", "history.append(0.0)"),
    ("in an object", "book.best = max(book.best, loss.item())", "book.best = min(book.best, loss.item())"),
    ("cut from a graph", "penalty = head(encoder(x)).mean()", "penalty = head(encoder(x)).mean().detach()"),
    ("gradient scaled", "penalty = head(encoder(x)).mean()", "penalty = head(encoder(x) * 1.001).mean()"),
    ("argument of what is left out", 'np.load("../kept.npy", penalty)', 'np.load("../kept.npy", penalty * 2)'),
    ("a path", '/more-{epoch}.npy', '/more-{epoch + 1}.npy'),
    ("keys", '{"one": total, "two": epoch}', '{"two": total, "one": epoch}'),
    ("called twice", '    extra = np.load("../extra.npy", total)\n',
     '    np.load("../extra.npy", total)\n    extra = np.load("../extra.npy", total)\n'),
    ("no dropout", "    hidden = encoder(x)\n", "    encoder.eval()\n    hidden = encoder(x)\n"),
    ("steps", "    optimizer.step()\n", "    if epoch % 3:\n        optimizer.step()\n"),
    ("detach in what may learn", "trainer.step(penalty * 2)", "trainer.step(penalty.detach() * 2)"),
    ("scaled in what may learn", "trainer.step(penalty * 2)", "trainer.step(penalty * 3)"),
    ("in a function that nothing calls", '+ weight\n', '- weight\n'),
]  # fmt: skip
RIGHT = [
    ("sum the other way", "told += loss.item() * 2", "told += 2 * loss.item()"),
    ("written out", "    total += loss.item()\n", "    total = total + loss.item()\n"),
    ("item before", "    history.append(loss.item())\n", "    value = loss.item()\n    history.append(value)\n"),
    ("extend", "history.append(loss.item())", "history.extend([loss.item()])"),
    ("cleared before", "    hidden = encoder(x)\n", "    optimizer.zero_grad()\n    hidden = encoder(x)\n"),
    ("detached already", "total += loss.item()", "total += loss.detach().item()"),
    ("inference", "with torch.no_grad():", "with torch.inference_mode():"),
    ("an argument by a name", 'np.load("../extra.npy", total)', 'np.load("../extra.npy", float(total))'),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def found_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is left out of the program is looked for once for all tests: it is the original's alone."""
    look = search.found

    def found(*arguments: Any) -> Any:
        if PROGRAM not in _FOUND:
            _FOUND[PROGRAM] = look(*arguments)
        return _FOUND[PROGRAM]

    monkeypatch.setattr(search, "found", found)
    return None


_FOUND: dict[str, Any] = {}


def verified(*, against: bool = False, **chosen: Any) -> Verification:
    settings = Settings(**{"timeout": 120, "reach": 400, **chosen})
    command = script_command("train.py", (), settings.python)
    root = Path.cwd()
    by_hand = HandRewriter(root / "new.py", Promise.EXACT, root=root, script=command.script) if against else None
    return verify(
        [command], options=Options(), settings=settings, tree=root, rewriter=by_hand, jobs=1, place=ForkedPlace
    )


def changed(folder: Path, old: str, new: str) -> tuple[Rewrite, ...]:
    assert PROGRAM.count(old) == 1, PROGRAM.count(old)
    (folder / "new.py").write_text(PROGRAM.replace(old, new))
    return verified(against=True).rewrites


@pytest.mark.parametrize(("old", "new"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_a_wrong_change_is_not_kept(folder: Path, found_once: None, old: str, new: str) -> None:
    rewrites = changed(folder, old, new)
    assert not all(rewrite.verdict is Verdict.KEPT for rewrite in rewrites), rewrites[0].why


@pytest.mark.parametrize(("old", "new"), [each[1:] for each in RIGHT], ids=[each[0] for each in RIGHT])
def test_a_right_change_is_kept(folder: Path, found_once: None, old: str, new: str) -> None:
    (rewrite,) = changed(folder, old, new)
    assert rewrite.verdict is Verdict.KEPT, rewrite.why
    assert rewrite.made
    assert rewrite.shown == "kept, with made-up values"


def test_what_stands_in_a_left_out_call_is_not_reached(folder: Path, found_once: None) -> None:
    (rewrite,) = changed(folder, "+ weight\n", "- weight\n")
    assert rewrite.verdict is Verdict.NOT_REACHED, rewrite.why


def test_it_is_said_in_every_form(folder: Path, found_once: None) -> None:
    (folder / "new.py").write_text(PROGRAM.replace(*RIGHT[0][1:]))
    report = verified(against=True)
    assert any("train.py:19 was left out" in limit for limit in remarks.limits(report))
    assert "kept, with made-up values" in render(report, "text")
    assert "kept, with made-up values" in render(report, "markdown")
    assert '"made": [' in render(report, "json")


def test_nothing_is_left_out_where_data_may_not_be_made_up(folder: Path) -> None:
    (folder / "new.py").write_text(PROGRAM.replace(*RIGHT[0][1:]))
    (rewrite,) = verified(against=True, data=False).rewrites
    assert rewrite.verdict is Verdict.NOT_REACHED


def test_a_change_of_what_is_left_out_is_not_reached_and_others_are_judged(folder: Path, found_once: None) -> None:
    text = PROGRAM.replace('np.load("../kept.npy"', 'np.fromfile("../kept.npy"').replace(*RIGHT[0][1:])
    (folder / "new.py").write_text(text)
    verdicts = {rewrite.finding.span.line: rewrite.verdict for rewrite in verified(against=True).rewrites}
    lines = {PROGRAM[: PROGRAM.index(part)].count("\n") + 1: part for part in ("told += loss", 'np.load("../kept.npy"')}
    assert [verdicts[line] for line in lines] == [Verdict.KEPT, Verdict.NOT_REACHED]


#: What the tree imports is there, and lacks a module itself; and then there is no file.
LOGGED = """\
import numpy as np
import torch
from torch.utils.tensorboard import SummaryWriter

writer = SummaryWriter("logs")
x = torch.from_numpy(np.load("../data.npy")).float().reshape(-1, 4)
weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(20):
    loss = (x * weight).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    writer.add_scalar("loss", loss.item(), step)
"""


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is not None, reason="tensorboard is installed")
@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("(x * weight).pow(2)", "(weight * x).pow(2)", True),
        ("(x * weight).pow(2)", "(x * weight).pow(4)", False),
        ('"loss", loss.item()', '"loss", 2 * loss.item()', False),
    ],
    ids=["right", "another loss", "another log"],
)
def test_a_module_that_a_library_lacks_is_stood_in_for(folder: Path, old: str, new: str, kept: bool) -> None:
    (folder / "train.py").write_text(LOGGED)
    (folder / "new.py").write_text(LOGGED.replace(old, new))
    (rewrite,) = verified(against=True).rewrites
    assert (rewrite.verdict is Verdict.KEPT) is kept, rewrite.why
    assert rewrite.verdict is not Verdict.NOT_REACHED, rewrite.why
