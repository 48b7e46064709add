"""Runs that reach what the command does not, from end to end: real scripts, real runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codemods.source.files import read_source
from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.verify.zygote import ForkedPlace
from verify.measured.results import Rewrite, Verdict, Verification
from verify.reports import remarks, render
from verify.running.against import HandRewriter
from verify.running.settings import Settings, script_command
from verify.verification import verify

pytestmark = pytest.mark.slow

HEAD = """\
import argparse
import torch
from torch import nn
from torch.nn import functional as F

"""
MAIN = """\
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--test", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = [(torch.randn(4, 8), torch.randn(4, 1)) for _ in range(12)]
    for epoch in range(1, args.epochs + 1):
        for x, y in data:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
{body}

if __name__ == "__main__":
    main()
"""
EVALUATE = """\
def evaluate(model, data):
    model.eval()
    total = 0.0
    for x, y in data:
        total += F.mse_loss(model(x), y).item()
    return total / len(data)


"""


def program(body: str, functions: str = EVALUATE) -> str:
    return HEAD + functions + MAIN.format(body="    " + body.replace("\n", "\n    "))


#: No option and no count of turns opens this.
NEVER = "if not data:\n    print(evaluate(model, data))"


def verified(*, against: str | None = None, **chosen: Any) -> Verification:
    settings = Settings(**chosen)
    command = script_command("train.py", (), settings.python)
    root = Path.cwd()
    by_hand = HandRewriter(root / against, Promise.EXACT, root=root, script=command.script) if against else None
    return verify(
        [command], options=Options(), settings=settings, tree=root, rewriter=by_hand, jobs=1, place=ForkedPlace
    )


def the_one(report: Verification) -> Rewrite:
    (rewrite,) = report.rewrites
    return rewrite


def test_what_stands_behind_a_loop_is_reached(folder: Path) -> None:
    (folder / "train.py").write_text(program('print("test", evaluate(model, data))'))
    report = verified()
    rewrite = the_one(report)
    assert (rewrite.verdict, rewrite.alone, rewrite.run) == (Verdict.KEPT, False, 1), rewrite.why
    assert any("the loop was ended after" in limit for limit in remarks.limits(report))
    plain, planned = report.entries
    assert (plain.plan, plain.rewrites[0].verdict) == ("", Verdict.NOT_REACHED)
    assert "-- --epochs 1" in plain.rewrites[0].why
    # Both programs were driven alike.
    runs = (planned.original, planned.again, planned.rewritten)
    knobs = [run.record.knobs for run in runs if run is not None]
    assert len(knobs) == 3
    assert knobs[0] == knobs[1] == knobs[2] != []


def test_a_bound_counts_as_met(folder: Path) -> None:
    bound = 'if epoch % 50 == 0:\n    print("validation", evaluate(model, data))'
    (folder / "train.py").write_text(program(f"    {bound}".replace("\n", "\n    ")))
    report = verified()
    assert (the_one(report).verdict, the_one(report).alone) == (Verdict.KEPT, False), the_one(report).why
    assert any("the bound counted as met" in limit for limit in remarks.limits(report))


def test_a_function_that_nothing_called_is_driven_alone(folder: Path) -> None:
    (folder / "train.py").write_text(program(NEVER))
    report = verified()
    rewrite = the_one(report)
    assert (rewrite.verdict, rewrite.alone, rewrite.shown) == (Verdict.KEPT, True, "kept, driven alone"), rewrite.why
    assert rewrite.why.startswith("called as train.py:")
    assert "kept, driven alone" in render(report, "text")


def test_an_option_opens_a_condition(folder: Path) -> None:
    (folder / "train.py").write_text(program("if args.test:\n    print(evaluate(model, data))"))
    report = verified()
    rewrite = the_one(report)
    assert (rewrite.verdict, rewrite.alone) == (Verdict.KEPT, False), rewrite.why
    assert report.entries[rewrite.run].command[-1] == "--test"
    assert report.entries[rewrite.run].plan == "with other arguments"


def test_an_option_that_says_how_often(folder: Path) -> None:
    body = 'if epoch % args.every == 0:\n        print("validation", evaluate(model, data))'
    (folder / "train.py").write_text(program(f"    {body}"))
    report = verified()
    rewrite = the_one(report)
    assert (rewrite.verdict, rewrite.alone) == (Verdict.KEPT, False), rewrite.why
    assert report.entries[rewrite.run].command[-2:] == ("--every", "1")


def test_past_an_error_of_the_original(folder: Path) -> None:
    text = program(NEVER)
    (folder / "train.py").write_text(
        text.replace("F.mse_loss(model(x), y).backward()", "loss = F.mse_loss(model(x), y)")
        .replace("            optimizer.step()", "            loss.backward()\n            print(loss.data[0])")
        .replace("print(loss.data[0])", "print(loss.data[0])\n            optimizer.step()")
    )
    found = {rewrite.finding.rule: rewrite for rewrite in verified().rewrites}
    assert {rewrite.verdict for rewrite in found.values()} == {Verdict.KEPT}, [each.why for each in found.values()]
    assert found["grad-in-evaluation"].alone


WRONG = [
    ("total / len(data)", "total / (len(data) + 1)"),
    ("for x, y in data:\n        total", "for x, y in data[:-1]:\n        total"),
    ("    model.eval()\n", "    model.eval()\n    torch.rand(1)\n"),
    ("    model.eval()\n", "    model.eval()\n    model.missing()\n"),
]


@pytest.mark.parametrize(("old", "new"), WRONG, ids=[new for _, new in WRONG])
def test_a_wrong_change_of_a_function_that_is_driven_alone_is_broken(folder: Path, old: str, new: str) -> None:
    right = program(NEVER)
    assert old in right
    (folder / "train.py").write_text(right)
    (folder / "new.py").write_text(right.replace(old, new))
    rewrite = the_one(verified(against="new.py"))
    assert (rewrite.verdict, rewrite.alone) == (Verdict.BROKEN, True), rewrite.why


ELSEWHERE = """\
def evaluate(model, archive):
    model.eval()
    total = 0.0
    for x, y in archive:
        total += F.mse_loss(model(x), y).item()
    return total / len(archive)


"""
FAILS_FIRST = """\
def evaluate(model, data):
    folder = data.folder
    model.eval()
    total = 0.0
    for x, y in folder:
        total += F.mse_loss(model(x), y).item()
    return total / len(data)


"""


def test_what_cannot_be_driven_is_not_reached(folder: Path) -> None:
    (folder / "train.py").write_text(program('print("done")', FAILS_FIRST))
    rewrite = the_one(verified())
    assert rewrite.verdict is Verdict.NOT_REACHED
    assert "nothing in sight calls it" in rewrite.why
    assert "calls of evaluate with made-up arguments were tried, and each raised" in rewrite.why


def test_what_has_no_arguments_at_hand_is_driven_with_made_up_ones(folder: Path) -> None:
    (folder / "train.py").write_text(program('print("done")', ELSEWHERE))
    rewrite = the_one(verified())
    assert (rewrite.verdict, rewrite.alone) == (Verdict.KEPT, True), rewrite.why
    assert "with made-up arguments (model: what is called so, archive: two batches)" in rewrite.why


def test_another_script_of_the_tree_is_found(folder: Path) -> None:
    (folder / "train.py").write_text(program("if args.test:\n    from tools import evaluate", ""))
    (folder / "tools.py").write_text(HEAD + EVALUATE.replace("archive", "data"))
    (folder / "other.py").write_text("from tools import evaluate\n" + program("    print(evaluate(model, data))", ""))
    settings = Settings()
    targets = [read_source(folder / name) for name in ("train.py", "other.py", "tools.py")]
    command = script_command("train.py", (), settings.python)
    found = verify([command], options=Options(), settings=settings, targets=targets, jobs=1, place=ForkedPlace)
    rewrite = the_one(found)
    assert (rewrite.verdict, rewrite.alone) == (Verdict.KEPT, False), rewrite.why
    assert found.entries[rewrite.run].command[-1] == "other.py"


def test_nothing_is_looked_for_without_time(folder: Path) -> None:
    (folder / "train.py").write_text(program('print("test", evaluate(model, data))'))
    report = verified(reach=0.0)
    assert the_one(report).verdict is Verdict.NOT_REACHED
    assert "-- --epochs 1" in the_one(report).why
    assert len(report.entries) == 1


def test_an_option_behind_another_one(folder: Path) -> None:
    """Neither alone comes to the lines."""
    body = "if args.test:\n    if not args.quiet:\n        print(evaluate(model, data))"
    text = program(body).replace(
        "    args = p", '    parser.add_argument("--quiet", type=bool, default=True)\n    args = p'
    )
    (folder / "train.py").write_text(text)
    report = verified()
    assert (the_one(report).verdict, the_one(report).alone) == (Verdict.KEPT, False), the_one(report).why
    assert any(entry.command[-3:] == ("--test", "--quiet", "") for entry in report.entries)


def test_two_options_and_a_loop_are_one_run(folder: Path) -> None:
    """A run for each takes time, which others then lack."""
    text = program("if args.test:\n    print(evaluate(model, data))\nif not args.quiet:\n    print(other(model, data))")
    text = text.replace("def main", EVALUATE.replace("evaluate", "other") + "def main").replace(
        "    args = p", '    parser.add_argument("--loud", action="store_false", dest="quiet")\n    args = p'
    )
    (folder / "train.py").write_text(text)
    report = verified()
    assert {(each.verdict, each.alone) for each in report.rewrites} == {(Verdict.KEPT, False)}
    plain, planned = report.entries
    assert (plain.plan, planned.command[-2:]) == ("", ("--test", "--loud"))


#: Seconds in which a program that sleeps is ended; ten times what the others take beside another process.
LATE = 6.0

#: Larger batches than four never come to their end, as on a machine that is too slow for them.
SLOW = """\
import argparse
import time
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=64)
args = parser.parse_args()
torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(640, 8), torch.randn(640, 1)), batch_size=BATCH)
for x, y in loader:
    if len(x) > 4:
        time.sleep(1000)
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
model.eval()
total = 0.0
for x, y in loader:
    total += F.mse_loss(model(x), y).item()
print(total)
"""


def test_smaller_batches_where_there_is_no_time(folder: Path) -> None:
    (folder / "train.py").write_text(SLOW.replace("BATCH", "args.batch"))
    report = verified(timeout=LATE, reach=200.0)
    assert (the_one(report).verdict, the_one(report).alone) == (Verdict.KEPT, False), the_one(report).why
    assert any("--batch 4" in " ".join(each.command) for each in report.entries)


def test_a_wrong_change_is_no_better_with_smaller_batches(folder: Path) -> None:
    """Here no option says how large they are."""
    text = SLOW.replace("BATCH", "64")
    (folder / "train.py").write_text(text)
    (folder / "changed.py").write_text(
        text.replace("total += F.mse_loss(model(x), y)", "total += F.l1_loss(model(x), y)").replace(
            "model.eval()", "model.train(False)"
        )
    )
    report = verified(against="changed.py", timeout=LATE, reach=200.0)
    assert [each.verdict for each in report.rewrites] == [Verdict.KEPT, Verdict.BROKEN]
    assert "batches had 4 items" in "\n".join(remarks.limits(report))


#: Without its data and behind an error that the rewrite mends, the rest of the program is reached.
MENDED = """\
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = torch.load("batches.pt")


def evaluate():
    model.eval()
    hits = 0
    for x, y in batches:
        hits += (model(x).argmax(1) == y).sum().item()
    return hits


for x, y in batches:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(loss.data[0])
print(evaluate())
"""


def test_the_rest_is_reached_behind_a_mistake_of_a_program_without_data(folder: Path) -> None:
    (folder / "train.py").write_text(MENDED)
    report = verified(steps=4)
    found = {rewrite.finding.rule: rewrite for rewrite in report.rewrites}
    assert Verdict.NOT_REACHED not in {rewrite.verdict for rewrite in report.rewrites}, found
    # The mistake may be one of what was made up.
    assert Verdict.KEPT not in {rewrite.verdict for rewrite in report.rewrites if not rewrite.alone}, found
