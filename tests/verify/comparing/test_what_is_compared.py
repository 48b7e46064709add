"""Wrong changes that only a thorough comparison finds, in real runs; and right ones that it lets pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.verify.zygote import ForkedPlace
from verify.measured.results import Verdict, Verification
from verify.running.against import HandRewriter
from verify.running.settings import Settings, script_command
from verify.verification import verify

pytestmark = pytest.mark.slow

Edit = Callable[[str], str]


def judged(folder: Path, text: str, edit: Edit | None, *, promise: Promise = Promise.EXACT) -> Verification:
    """The report on ``text`` changed by hand, or by our rules."""
    text = dedent(text)
    script = folder / "train.py"
    script.write_text(text)
    rewriter = None
    settings = Settings()
    command = script_command("train.py", [], settings.python)
    if edit is not None:
        changed = folder / "changed.txt"
        changed.write_text(edit(text))
        assert edit(text) != text
        rewriter = HandRewriter(changed, promise, root=folder, script=command.script)
    return verify([command], options=Options(), settings=settings, tree=folder, rewriter=rewriter, place=ForkedPlace)


def verdicts(report: Verification) -> set[str]:
    return {rewrite.verdict.value for rewrite in report.rewrites}


HEAD = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
"""
SMALL = (
    HEAD
    + """
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    scale = 1.0
    for step in range(20):
        optimizer.zero_grad()
        loss = 1e-5 * F.mse_loss(net(torch.randn(4, 8)), torch.randn(4, 1)) * scale
        loss.backward()
        optimizer.step()
    """
)
WIDE = (
    HEAD
    + """
    net = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    trained = len(list(net.parameters()))
    for step in range(20):
        optimizer.zero_grad()
        F.mse_loss(net(torch.randn(4, 64)), torch.randn(4, 1)).backward()
        optimizer.step()
    """
)


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        (SMALL, lambda text: text.replace("* scale", "* scale * 2")),
        (SMALL, lambda text: text.replace("optimizer.step()", "step % 5 and optimizer.step()")),
        # A bias of one value among forty thousand.
        (WIDE, lambda text: text.replace(".backward()", ".backward(); net[4].bias.grad = None")),
        (WIDE, lambda text: text.replace(".backward()", ".backward(); net[0].weight.grad[7:9] = 0.0")),
    ],
    ids=["doubled", "steps left out", "a bias", "two rows"],
)  # fmt: skip
def test_equivalent_means_it(folder: Path, text: str, edit: Edit) -> None:
    report = judged(folder, text, edit, promise=Promise.EQUIVALENT)
    assert verdicts(report) == {"broken"}, report.rewrites


EQUIVALENT = (
    HEAD
    + """
    norm = nn.BatchNorm1d(16)
    # The bias before a BatchNorm learns nothing but noise, which Adam turns into steps of full size.
    net = nn.Sequential(nn.Linear(8, 16), norm, nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for step in range(20):
        optimizer.zero_grad()
        out = net(torch.randn(32, 8))
        one, other = F.mse_loss(out, torch.randn(32, 1)), F.l1_loss(out, torch.randn(32, 1))
        one.backward(retain_graph=True)
        other.backward()
        optimizer.step()
    """
)


def test_rounding_is_still_equivalent(folder: Path) -> None:
    def merged(text: str) -> str:
        return text.replace("one.backward(retain_graph=True)", "pass").replace("other.back", "(one + other).back")

    report = judged(folder, EQUIVALENT, merged, promise=Promise.EQUIVALENT)
    assert verdicts(report) == {"kept"}, report.rewrites
    assert "parameters differ by at most" in report.rewrites[0].why


TRAIN = (
    HEAD
    + """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.norm, self.outer = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 1)
        def forward(self, x):
            return self.outer(torch.relu(self.norm(self.inner(x))))
    net = Net()
    extra = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    late = torch.optim.SGD(extra.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    data = [(torch.randn(8, 8), torch.randn(8, 1)) for _ in range(20)]
    total = 0.0
    for step, (x, y) in enumerate(data):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y) + 0.1 * F.mse_loss(extra(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    net.eval()
    with torch.no_grad():
        value = net(data[0][0]).sum()
    """
)
UNSEEN: dict[str, Edit] = {
    "gradients of an optimizer that does not step": lambda text: text.replace("0.1 * F", "0.2 * F").replace(
        "F.mse_loss(net(x), y) +", "F.mse_loss(net(x), y) - 0.1 * F.mse_loss(extra(x), y).detach() +"
    ),
    "a buffer": lambda text: text.replace("net.eval()", "net.norm.running_mean += 1; net.eval()"),
    "a buffer in training": lambda text: text.replace("total +=", "net.norm.running_var.mul_(1.5); total +="),
    "a learning rate after the last step": lambda text: text.replace(
        "net.eval()", "optimizer.param_groups[0]['lr'] = 1.0; net.eval()"
    ),
    "one more random number in each step": lambda text: text.replace("total +=", "torch.randn(1); total +="),
    "one more random number after training": lambda text: text.replace("net.eval()", "torch.randn(1); net.eval()"),
    "parameters after training": lambda text: text.replace("net.eval()", "net.outer.weight.data.mul_(2); net.eval()"),
    "a mode that changes what comes out": lambda text: text.replace("net.eval()", "net.train()"),
}  # fmt: skip


@pytest.mark.parametrize("change", UNSEEN)
def test_what_no_loss_shows_breaks_exact(folder: Path, change: str) -> None:
    report = judged(folder, TRAIN, UNSEEN[change])
    assert "broken" in verdicts(report), report.rewrites


RIGHT: dict[str, Edit] = {
    "a name": lambda text: text.replace("value", "outcome"),
    "no graph": lambda text: text.replace("total += loss.item()", "total += float(loss)"),
    "zeros": lambda text: text.replace("optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)"),
    "inference": lambda text: text.replace("torch.no_grad()", "torch.inference_mode()"),
}


@pytest.mark.parametrize("change", RIGHT)
def test_right_changes_are_kept_and_it_is_said_what_was_compared(folder: Path, change: str) -> None:
    report = judged(folder, TRAIN, RIGHT[change])
    assert verdicts(report) == {"kept"}, report.rewrites
    assert report.entries[0].comparison is not None
    compared = report.entries[0].comparison.compared
    assert {"gradients", "buffers", "learning rates", "random generators"} <= set(compared)


EVALUATE = (
    HEAD
    + """
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, 3))
    net.eval()
    data = [(torch.randn(4, 8), torch.randint(0, 3, (4,))) for _ in range(25)]
    right = 0
    for x, y in data:
        out = net(x)
        right += int((out.argmax(1) == y).sum())
    print("accuracy", right / 100)
    """
)


def test_an_evaluation_without_any_backward_is_judged(folder: Path) -> None:
    report = judged(folder, EVALUATE, None)
    (rewrite,) = report.rewrites
    assert (rewrite.verdict, rewrite.finding.rule) == (Verdict.KEPT, "grad-in-evaluation"), rewrite.why
    assert "25 outputs of modules" in rewrite.why
    assert "forwards that built a graph for nothing: 25 before, 0 after" in rewrite.why


def test_an_evaluation_that_computes_something_else_is_broken(folder: Path) -> None:
    def changed(text: str) -> str:
        return text.replace("    out = net(x)", "    with torch.no_grad():\n        out = net(2 * x)")

    report = judged(folder, EVALUATE, changed)
    assert verdicts(report) == {"broken"}, report.rewrites
    assert "output of call 1" in report.rewrites[0].why


LONG = (
    HEAD
    + """
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(1000):
        optimizer.zero_grad()
        factor = 1.0
        if step > LIMIT:
            factor = 1.0 + 0.0
        (factor * F.mse_loss(net(torch.randn(4, 8)), torch.randn(4, 1))).backward()
        optimizer.step()
    """
)


def never(text: str) -> str:
    return text.replace("LIMIT", "5000")


def test_a_wrong_body_that_never_ran_is_not_kept(folder: Path) -> None:
    report = judged(folder, never(LONG), lambda text: text.replace("1.0 + 0.0", "2.0"))
    # "broken" where the budget was enough for a run whose bound is lower
    assert verdicts(report) <= {"not reached", "broken"}, report.rewrites


@pytest.mark.parametrize("factor", ["1.0", "3.0"])
def test_a_branch_of_a_hunk_that_never_ran_is_named(folder: Path, factor: str) -> None:
    def changed(text: str) -> str:
        new = f"factor = 1.0\n    if step > 4999:\n        factor = {factor}\n    if"
        return text.replace("factor = 1.0\n    if", new)

    report = judged(folder, never(LONG), changed)
    (rewrite,) = report.rewrites
    assert rewrite.verdict is Verdict.PARTLY_REACHED, rewrite.why
    assert "line 14, line 13 (`step > 4999` never came out the other way) of train.py" in rewrite.why
    assert report.status == 3


def test_a_body_that_runs_late_is_waited_for(folder: Path) -> None:
    text = LONG.replace("LIMIT", "59")
    broken = judged(folder, text, lambda text: text.replace("1.0 + 0.0", "2.0"))
    assert verdicts(broken) == {"broken"}, broken.rewrites
    kept = judged(folder, text, lambda text: text.replace("1.0 + 0.0", "0.0 + 1.0"))
    assert verdicts(kept) == {"kept"}, kept.rewrites


def test_what_is_taken_away_has_to_have_run(folder: Path) -> None:
    removed = "    if step > LIMIT:\n        factor = 1.0 + 0.0\n"
    kept = judged(folder, LONG.replace("LIMIT", "3"), lambda text: text.replace(removed.replace("LIMIT", "3"), ""))
    assert verdicts(kept) == {"kept"}, kept.rewrites
    missed = judged(folder, never(LONG), lambda text: text.replace(never(removed), ""))
    assert verdicts(missed) == {"partly reached"}, missed.rewrites


WRITES = (
    HEAD
    + """
    import csv, json
    net = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    total = 0
    with open("log.csv", "w") as log:
        for step in range(15):
            optimizer.zero_grad()
            loss = F.mse_loss(net(torch.randn(8, 4)), torch.randn(8, 3))
            loss.backward()
            optimizer.step()
            total += loss
            csv.writer(log).writerow([step, loss.item()])
            if step == 10:
                torch.save({"model": net.state_dict(), "step": step}, "model.pt")
    mean = float(total) / 15
    json.dump({"mean": mean, "steps": step + 1}, open("result.json", "w"))
    print(f"mean {mean:.6f}, final", total / 15)
    """
)


def test_totals_made_of_numbers_are_kept_although_their_last_digits_differ(folder: Path) -> None:
    report = judged(folder, WRITES, None)
    assert [(rewrite.verdict, rewrite.finding.rule) for rewrite in report.rewrites] == [
        (Verdict.KEPT, "attached-loss-total")
    ], report.rewrites
    assert report.entries[0].comparison is not None
    assert {"files", "numbers printed on stdout"} <= set(report.entries[0].comparison.compared)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("[step, loss.item()]", "[step, loss.item() * 2]", "log.csv"),
        ("net.state_dict()", "{k: v * 2 for k, v in net.state_dict().items()}", "model.pt"),
        ('"steps": step + 1', '"steps": step', "result.json"),
        ("mean {mean:.6f}", "mean {mean * 2:.6f}", "printed"),
    ],
)
def test_what_is_written_and_printed_breaks_exact(folder: Path, old: str, new: str, word: str) -> None:
    assert old in WRITES
    report = judged(folder, WRITES, lambda text: text.replace(old, new))
    assert verdicts(report) == {"broken"}, report.rewrites
    assert word in report.rewrites[0].why


TYPES = (
    HEAD
    + """
    import json
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(6):
        loss = net(torch.randn(3, 2)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("epoch", epoch)
    json.dump({"epoch": epoch}, open("last.json", "w"))
    torch.save({"loss": loss.detach(), "epoch": epoch, "done": True}, "last.pt")
    """
)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('epoch, "done"', 'float(epoch), "done"', "epoch in last.pt is of type int and float"),
        ('"done": True', '"done": 1', "done in last.pt is of type bool and int"),
        ('{"epoch": epoch},', '{"epoch": float(epoch)},', "last.json: 5 and 5.0"),
        ('print("epoch", epoch)', 'print("epoch", float(epoch))', "printed: 0 and 0.0"),
    ],
)
def test_numbers_of_other_types_are_not_the_same(folder: Path, old: str, new: str, word: str) -> None:
    assert old in TYPES
    report = judged(folder, TYPES, lambda text: text.replace(old, new))
    assert verdicts(report) == {"not judged"}, report.rewrites
    assert word in report.rewrites[0].why


KEPT = (
    HEAD
    + """
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(6):
        out = net(torch.randn(3, 3))
        optimizer.zero_grad()
        out.square().mean().backward()
        optimizer.step()
    weights = {name: value.detach() for name, value in net.named_parameters()}
    torch.save({"net": weights, "last": out, "order": [0, 1]}, "last.pt")
    """
)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("value.detach() for", "value for", "net.bias in last.pt is of type Tensor of torch.float32, shape (2,) "),
        ('"last": out,', '"last": out.detach().numpy(),', "last in last.pt is of type"),
        ('"last": out,', '"last": out.detach().requires_grad_(),', "Tensor that learns of torch.float32"),
        ("[0, 1]", "(0, 1)", "order in last.pt is of type list and tuple"),
        ('"net": weights', '"net": __import__("collections").OrderedDict(weights)', "type dict and OrderedDict"),
    ],
)
def test_things_of_other_types_in_a_checkpoint_are_not_the_same(folder: Path, old: str, new: str, word: str) -> None:
    assert old in KEPT
    report = judged(folder, KEPT, lambda text: text.replace(old, new))
    assert verdicts(report) == {"not judged"}, report.rewrites
    assert word in report.rewrites[0].why


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"last": out,', '"last": out.detach(),'),
        ("value.detach() for", "value.data for"),
        ("[0, 1]", "list((0, 1))"),
    ],
)
def test_what_is_saved_without_its_graph_is_the_same(folder: Path, old: str, new: str) -> None:
    assert old in KEPT
    report = judged(folder, KEPT, lambda text: text.replace(old, new))
    assert verdicts(report) == {"kept"}, report.rewrites


def test_a_tensor_of_one_number_may_be_saved_as_a_number(folder: Path) -> None:
    report = judged(folder, TYPES, lambda text: text.replace('"loss": loss.detach()', '"loss": loss.item()'))
    assert verdicts(report) == {"kept"}, report.rewrites


SEEDED = (
    HEAD
    + """
    import random, time
    import numpy as np
    random.seed(time.time_ns())
    np.random.seed(7)
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(6):
        loss = net(torch.rand(3, 2) + random.random() + float(np.random.rand())).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
)


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("torch.manual_seed(0)", "torch.manual_seed(0 + len([0]))", "not judged"),
        ("np.random.seed(7)", "np.random.seed(7 + 1)", "not judged"),
        ("np.random.seed(7)", "np.random.seed(seed=7)", "kept"),
        # What the clock gave is given again.
        ("time.time_ns()", "time.time_ns() + 1", "kept"),
        ("loss.backward()", "loss.backward(retain_graph=False)", "kept"),
    ],
)
def test_a_seed_that_is_replayed_hides_no_change(folder: Path, old: str, new: str, verdict: str) -> None:
    assert old in SEEDED
    report = judged(folder, SEEDED, lambda text: text.replace(old, new))
    assert verdicts(report) == {verdict}, report.rewrites
    assert ("it seeds" in report.rewrites[0].why) is (verdict == "not judged")


#: An average of weights that no loss shows, in a program that stops at a mistake of its own after four steps.
STOPS = """\
import torch
from torch import nn

class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, count=1):
        self.total += value * count
        self.count += count

torch.manual_seed(0)
model = nn.Linear(4, 1)
shadow = {name: value.detach().clone() for name, value in model.state_dict().items()}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
meter = Meter()
names = ["a", "b", "c", "d"]
for step in range(20):
    optimizer.zero_grad()
    loss = model(torch.ones(3, 4) + step).pow(2).mean()
    loss.backward()
    optimizer.step()
    for name, value in model.state_dict().items():
        shadow[name].mul_(0.9).add_(value, alpha=0.1)
    meter.update(loss.item(), 3)
    print(names[step])
print(meter.total / meter.count)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("add_(value, alpha=0.1)", "add_(value, alpha=0.9)"),
        ("meter.update(loss.item(), 3)", "meter.update(loss.item())"),
        ("value.detach().clone() for", "value.detach() for"),
    ],
)
def test_what_a_program_held_when_it_stopped_is_compared(folder: Path, old: str, new: str) -> None:
    (rewrite,) = judged(folder, STOPS, lambda text: text.replace(old, new)).rewrites
    assert rewrite.verdict in (Verdict.BROKEN, Verdict.NOT_JUDGED), rewrite.why


def test_a_right_change_of_a_program_that_stops_is_kept(folder: Path) -> None:
    right = judged(folder, STOPS, lambda text: text.replace("zero_grad()", "zero_grad(set_to_none=True)"))
    (rewrite,) = right.rewrites
    assert rewrite.verdict is Verdict.KEPT, rewrite.why


OPEN = (
    HEAD
    + """
    import csv
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with open("rows.csv", "w", newline="") as file:
        rows = csv.writer(file)
        for step in range(40):
            loss = net(torch.randn(4, 3)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rows.writerow([step, loss.item()])
    """
)


def test_what_is_written_to_a_file_that_is_still_open_is_compared(folder: Path) -> None:
    report = judged(folder, OPEN, lambda text: text.replace("[step, loss.item()]", "[loss.item(), step]"))
    assert verdicts(report) == {"broken"}, report.rewrites
    assert "rows.csv" in report.rewrites[0].why
    right = judged(folder, OPEN, lambda text: text.replace("[step, loss.item()]", "(step, loss.item())"))
    assert verdicts(right) == {"kept"}, right.rewrites


HALVES = (
    HEAD
    + """
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(12):
        x = torch.randn(8, 3)
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
)


def test_a_model_may_be_given_its_batch_in_parts(folder: Path) -> None:
    loss = "loss = net(x).square().mean()"
    parts = "loss = torch.stack([net(part).square().mean() for part in (x[:4], x[4:])]).mean()"
    report = judged(folder, HALVES, lambda text: text.replace(loss, parts), promise=Promise.EQUIVALENT)
    assert "broken" not in verdicts(report), report.rewrites


WORKERS = """
import subprocess
import sys

for seed in (1, 2):
    subprocess.run([sys.executable, "worker.py", str(seed)], check=True)
"""
WORKER = (
    HEAD
    + """
    import sys
    torch.manual_seed(int(sys.argv[1]))
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    total = 0
    for step in range(10):
        loss = net(torch.randn(4, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    print(float(total))
    """
)


def test_programs_that_a_program_starts_are_told_apart(folder: Path) -> None:
    (folder / "worker.py").write_text(dedent(WORKER))
    report = judged(folder, WORKERS, None)
    (rewrite,) = report.rewrites
    assert (rewrite.finding.rule, rewrite.verdict) == ("attached-loss-total", Verdict.KEPT), rewrite.why
