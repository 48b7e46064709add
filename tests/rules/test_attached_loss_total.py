"""What attached-loss-total finds, mends and leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.rules.tools import LEARNING, analysed, mended

RULES = ("attached-loss-total", "attached-loss-history")

HEAD = (
    """
import math
import torch.nn.functional as F
"""
    + LEARNING
)

LOOP = """
total = 0
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    total += loss
"""


def check(folder: Path, program: str, after: str, style: str = "auto") -> None:
    """One exact total in ``program``, whose line becomes ``after``."""
    found = analysed(folder, Options(select=RULES, total_style=style), HEAD, program)
    assert [(f.rule, f.promise) for f in found] == [("attached-loss-total", Promise.EXACT)]
    old, new = (folder / "train.py").read_text().splitlines(), mended(folder, found).splitlines()
    assert [b.strip() for a, b in zip(old, new, strict=True) if a != b] == [after]
    assert found[0].trail[0].note == "graph produced here"


def leave(folder: Path, *programs: str, **files: str) -> None:
    """Nothing in ``programs``."""
    assert analysed(folder, Options(select=RULES, unsafe=True), HEAD, *programs, **files) == []


# numbers


@pytest.mark.parametrize("method", ["add_scalar", "log", "handle"])
def test_what_unseen_code_gets_stays_a_tensor_whatever_its_name_is(tmp_path: Path, method: str) -> None:
    seen = "from elsewhere import report\n"
    check(tmp_path, seen + LOOP + f"report.{method}('loss', total / 50)", "total += loss.detach()")


@pytest.mark.parametrize(
    "read",
    [
        "print(total)",
        "print('%.3f' % (total / 50))",
        "print(f'{math.exp(total / 50):.2f}')",
        "from torch.utils.tensorboard import SummaryWriter as S; S().add_scalar('loss', total / 50, 1)",
        "import logging; log = logging.getLogger('a'); log.info(total / 50)",
        "print('{:.4f}'.format(0.5 * total - 1))",
    ],
)
def test_a_total_that_is_only_reported_holds_a_number(tmp_path: Path, read: str) -> None:
    check(tmp_path, LOOP + read, "total += loss.item()")


def test_a_sum_beside_a_count(tmp_path: Path) -> None:
    program = "n = 0\n" + LOOP.replace("total += loss", "total, n = total + loss, n + 1") + "print(total / n)"
    check(tmp_path, program, "total, n = total + loss.item(), n + 1")


def test_sums_that_change_places_are_none(tmp_path: Path) -> None:
    leave(tmp_path, "n = 0\n" + LOOP.replace("total += loss", "total, n = n + loss.item(), total") + "print(total)")


def test_factors_stay_outside(tmp_path: Path) -> None:
    program = LOOP.replace("total += loss", "total += loss * x.size(0)") + "print(total)"
    check(tmp_path, program, "total += loss.item() * x.size(0)")


def test_a_sum_written_out(tmp_path: Path) -> None:
    program = LOOP.replace("total += loss", "total = total + loss / 2") + "print(total)"
    check(tmp_path, program, "total = total + loss.item() / 2")


def test_a_running_mean_that_is_printed(tmp_path: Path) -> None:
    program = LOOP.replace("total += loss", "total = 0.9 * total + 0.1 * loss") + "print(total)"
    check(tmp_path, program, "total = 0.9 * total + 0.1 * loss.item()")


def test_two_attached_terms_are_taken_as_one(tmp_path: Path) -> None:
    program = """
total = 0
for x, y in batches():
    out = net(x)
    fit, size = criterion(out, y), out.pow(2).mean()
    learn(fit + size)
    total += fit + size
print(total)
"""
    check(tmp_path, program, "total += (fit + size).item()")


def test_a_total_counted_before_the_backward(tmp_path: Path) -> None:
    program = """
total = 0
for x, y in batches():
    loss = criterion(net(x), y)
    total += loss
    learn(loss)
print(total)
"""
    check(tmp_path, program, "total += loss.item()")


def test_a_component_that_is_returned_beside_the_loss(tmp_path: Path) -> None:
    program = """
def terms(x, y):
    out = net(x)
    penalty = out.abs().mean()
    return criterion(out, y) + penalty, penalty

shown = 0
for x, y in batches():
    loss, penalty = terms(x, y)
    learn(loss)
    shown += penalty
print(shown)
"""
    check(tmp_path, program, "shown += penalty.item()")


def test_a_total_that_begins_late(tmp_path: Path) -> None:
    program = """
def fit():
    seen = 0
    total = 0.0
    for x, y in batches():
        if seen > 10:
            loss = criterion(net(x), y)
            learn(loss)
            total += loss
        seen += 1
    print(total)

fit()
"""
    check(tmp_path, program, "total += loss.item()")


def test_a_value_that_is_sometimes_a_number(tmp_path: Path) -> None:
    program = """
def update(x, y):
    if x.sum() > 3:
        return 0
    loss = criterion(net(x), y)
    learn(loss)
    return loss

total = 0
for x, y in batches():
    total += update(x, y)
print(total)
"""
    check(tmp_path, program, "total += float(update(x, y))")


# tensors


@pytest.mark.parametrize(
    "read",
    [
        "print(total.item())",
        "print(total.cpu())",
        "print(torch.sqrt(total))",
        "print((total / 50) ** 0.5)",
        "print(total < 3)",
        "if total / 50 < 0.1:\n    print('done')",
        "torch.optim.lr_scheduler.ReduceLROnPlateau(opt).step(total)",
        "torch.distributed.all_reduce(total)",
        "handed_to_something(total)",
        "print(1 / total)",
    ],
)
def test_a_total_that_is_read_as_a_tensor_stays_one(tmp_path: Path, read: str) -> None:
    check(tmp_path, "from somewhere import handed_to_something\n" + LOOP + read, "total += loss.detach()")


def test_a_count_that_may_be_nothing(tmp_path: Path) -> None:
    program = """
total, hits = 0, 0
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    total += loss
    hits += int((y > 0.9).sum())
print(total / hits)
"""
    check(tmp_path, program, "total += loss.detach()")


def test_a_count_that_is_assigned_may_be_nothing_too(tmp_path: Path) -> None:
    program = """
total, hits = 0, 0
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    total += loss
    hits = (y > 0.9).sum().item()
print(total / hits)
"""
    check(tmp_path, program, "total += loss.detach()")


@pytest.mark.parametrize("begin", ["MeanMetric()", "MeanMetric() if len(net) > 2 else 0.0"])
def test_what_a_library_made_adds_up_what_it_wants_to(tmp_path: Path, begin: str) -> None:
    program = "from torchmetrics import MeanMetric\n" + LOOP.replace("total = 0", f"total = {begin}") + "print(total)"
    assert analysed(tmp_path, Options(select=RULES), HEAD, program) == []


def test_a_count_of_some_turns_only(tmp_path: Path) -> None:
    program = """
total, odd = 0, 0
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    total += loss
    if x.mean() > 0:
        odd += 1
print(total / odd)
"""
    check(tmp_path, program, "total += loss.detach()")


def test_a_vector_is_detached(tmp_path: Path) -> None:
    program = """
total = torch.zeros(2)
for x, y in batches():
    each = (net(x) - y).pow(2).mean(dim=0)
    learn(each.sum())
    total += each
print(total)
"""
    check(tmp_path, program, "total += each.detach()")


def test_what_a_caller_that_cannot_be_seen_gets_stays_a_tensor(tmp_path: Path) -> None:
    program = """
def train(loader):
    total = 0
    for x, y in loader:
        loss = criterion(net(x), y)
        learn(loss)
        total += loss
    return total
"""
    check(tmp_path, program, "total += loss.detach()")


def test_the_lowest_loss(tmp_path: Path) -> None:
    program = """
lowest = 1e9
for x, y in batches():
    loss = criterion(net(x), y)
    if loss < lowest:
        lowest = loss
    learn(loss)
print(lowest)
"""
    check(tmp_path, program, "lowest = loss.detach()")


@pytest.mark.parametrize("choice", ["min(lowest, loss)", "loss if loss < lowest else lowest"])
def test_the_lowest_loss_in_one_expression(tmp_path: Path, choice: str) -> None:
    program = f"""
lowest = 1e9
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    lowest = {choice}
print(lowest)
"""
    after = {"min": "lowest = min(lowest, loss.detach())", "los": "lowest = loss.detach() if loss < lowest else lowest"}
    check(tmp_path, program, after[choice[:3]])


# what cannot be seen, proven by its backward


def test_a_scaled_loss_of_a_model_that_cannot_be_seen(tmp_path: Path) -> None:
    program = """
from somewhere import model, measure

scaler = torch.cuda.amp.GradScaler()
total = 0
for x, y in batches():
    loss = measure(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    total += loss
print(total)
"""
    check(tmp_path, program, "total += loss.item()")


def test_sums_by_name(tmp_path: Path) -> None:
    program = """
sums = {}
for x, y in batches():
    terms = {"fit": criterion(net(x), y)}
    learn(terms["fit"])
    for name, term in terms.items():
        sums[name] = sums.get(name, 0) + term
print(sums)
"""
    check(tmp_path, program, "sums[name] = sums.get(name, 0) + term.item()")


# what the user prefers


@pytest.mark.parametrize(
    ("style", "after"), [("item", "loss.item()"), ("detach", "loss.detach()"), ("float", "float(loss)")]
)
def test_a_style_can_be_chosen(tmp_path: Path, style: str, after: str) -> None:
    check(tmp_path, LOOP + "print(total)", f"total += {after}", style)


@pytest.mark.parametrize("style", ["item", "float"])
def test_no_style_breaks_a_reader(tmp_path: Path, style: str) -> None:
    check(tmp_path, LOOP + "print(total.item())", "total += loss.detach()", style)


def test_no_form_fits(tmp_path: Path) -> None:
    program = """
def update(x, y):
    if x.sum() > 3:
        return 0
    loss = criterion(net(x), y)
    learn(loss)
    return loss

total = 0
for x, y in batches():
    total += update(x, y)
print(total.item())
"""
    found = analysed(tmp_path, Options(select=RULES), HEAD, program)
    assert [(f.promise, f.edits) for f in found] == [(Promise.ADVICE, ())]


@pytest.mark.parametrize(
    "lines",
    ["gap = loss if x.sum() > 3 else metric(out)", "gap = loss\n    if x.sum() > 3:\n        gap = metric(out)"],
)
def test_what_unseen_code_gives_in_some_turns_may_be_a_number(tmp_path: Path, lines: str) -> None:
    program = f"""
from elsewhere import metric

total = 0
for x, y in batches():
    out = net(x)
    loss = criterion(out, y)
    learn(loss)
    {lines}
    total += gap
print(total)
"""
    found = analysed(tmp_path, Options(select=RULES), HEAD, program)
    assert [(f.promise, f.edits) for f in found] == [(Promise.ADVICE, ())]


def test_one_cause_is_one_finding(tmp_path: Path) -> None:
    program = """
epochs = []
for epoch in range(3):
    total = 0
    for x, y in batches():
        loss = criterion(net(x), y)
        learn(loss)
        total += loss
    epochs.append(total / 50)
print(epochs)
"""
    found = analysed(tmp_path, Options(select=RULES), HEAD, program)
    assert [f.rule for f in found] == ["attached-loss-total"]
    assert found[0].trail[-1].note == "and handed on here"


# what stays


@pytest.mark.parametrize("begin", ["elsewhere.Metric()", "elsewhere.record(0.0)"])
def test_what_an_object_of_a_library_adds_up_is_its_own_matter(tmp_path: Path, begin: str) -> None:
    leave(tmp_path, "import elsewhere", LOOP.replace("total = 0", f"total = {begin}"), "print(total)")


@pytest.mark.parametrize("kind", ["from types import SimpleNamespace as Seen", "class Seen: pass"])
@pytest.mark.parametrize("read", ["print(seen.total)", "print(seen.total.shape)"])
def test_a_sum_of_an_object_without_code_of_its_own(tmp_path: Path, kind: str, read: str) -> None:
    loop = LOOP.replace("total = 0", "seen = Seen()\nseen.total = 0").replace("total +=", "seen.total +=")
    after = "seen.total += loss.item()" if "shape" not in read else "seen.total += loss.detach()"
    check(tmp_path, kind + loop + read, after)


def test_what_unseen_code_gets_with_such_an_object_may_be_walked(tmp_path: Path) -> None:
    begin = "from elsewhere import learn_from\nfrom types import SimpleNamespace\nseen = SimpleNamespace(total=0)"
    loop = LOOP.replace("total = 0", begin).replace("total += loss", "seen.total += loss\n    learn_from(seen)")
    leave(tmp_path, loop.replace("    learn(loss)\n", "    loss.backward(retain_graph=True)\n"))


@pytest.mark.parametrize(
    "number", ["loss.item()", "float(loss)", "loss.detach()", "loss.data", "loss.detach().cpu().numpy()"]
)
def test_numbers_stay(tmp_path: Path, number: str) -> None:
    leave(tmp_path, LOOP.replace("total += loss", f"total += {number}"), "print(total)")


def test_an_objective_of_several_losses_stays(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
for x, y in batches():
    total = 0
    for scale in (1, 2, 4):
        total += criterion(net(x * scale), y)
    learn(total)
""",
    )


def test_gradients_of_a_window_stay(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
window = 0
for i, (x, y) in enumerate(batches()):
    window = window + criterion(net(x), y) / 4
    if i % 4 == 3:
        learn(window)
        window = 0
""",
    )


def test_a_sum_that_a_caller_walks_stays(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
from terms import running

for x, y in batches():
    learn(0.5 * running(net, x, y))
""",
        terms="""
def running(net, x, y):
    total = 0
    for k in range(3):
        total += (net(x)[:, 0] - y[:, 0]).pow(2).mean()
    return total
""",
    )


def test_a_factor_of_the_objective_stays(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
for x, y in batches():
    weight = 1.0
    for k in range(2):
        weight += net(x).pow(2).mean()
    learn(weight * criterion(net(x), y))
""",
    )


def test_a_sum_of_one_step_stays(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
for x, y in batches():
    fit = criterion(net(x), y)
    size = net(x).abs().mean()
    learn(fit + size)
    shown = 0
    for term in (fit, size):
        shown += term
    print(shown)
""",
    )


def test_no_grad_stays(tmp_path: Path) -> None:
    program = LOOP.replace("    total += loss", "    with torch.no_grad():\n        total += loss")
    leave(tmp_path, program, "print(total)")


def test_evaluation_belongs_to_another_rule(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
for x, y in batches():
    learn(criterion(net(x), y))
total = 0
for x, y in batches():
    total += criterion(net(x), y)
print(total)
""",
    )


def test_code_that_cannot_be_seen_may_walk_a_graph_that_is_still_there(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
def train(loader):
    total = 0
    for x, y in loader:
        out = net(x)
        loss = criterion(out, y)
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
        total += loss
    return total
""",
    )


def test_a_name_proves_nothing(tmp_path: Path) -> None:
    leave(
        tmp_path,
        """
from somewhere import step

total_loss = 0
for x, y in batches():
    learn(criterion(net(x), y))
    loss = step(x, y)
    total_loss += loss
print(total_loss)
""",
    )


def test_a_name_that_is_rebound_to_a_number_stays(tmp_path: Path) -> None:
    program = LOOP.replace("    total += loss", "    loss = loss.item()\n    total += loss")
    leave(tmp_path, program, "print(total)")


# sometimes a number, and classes that are not whole


def test_a_constant_of_a_library_is_a_number(tmp_path: Path) -> None:
    program = """
import sys
import numpy as np

def measure(out, y):
    if len(sys.argv) > 1:
        return np.nan
    return (out - y).abs().mean()

total = 0
for x, y in batches():
    out = net(x)
    gap = measure(out, y)
    learn(criterion(out, y))
    total += gap
print(total)
"""
    check(tmp_path, program, "total += float(gap)")


def test_what_else_a_library_holds_is_not_detached(tmp_path: Path) -> None:
    program = """
import sys
from elsewhere import UNKNOWN

total = 0
for x, y in batches():
    out = net(x)
    gap = UNKNOWN if len(sys.argv) > 1 else (out - y).abs().mean()
    learn(criterion(out, y))
    total += gap
print(total)
"""
    found = analysed(tmp_path, Options(select=RULES), HEAD, program)
    assert [f.promise for f in found] in ([], [Promise.ADVICE])


def test_a_base_class_is_followed_past_what_its_subclasses_supply(tmp_path: Path) -> None:
    program = """
class Frame(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = self.build()
        self.head = nn.Linear(8, 2)

    def build(self):
        raise NotImplementedError

    def forward(self, x):
        return self.head(self.body(x))

    def fit(self, opt, loader):
        total = 0
        for x, y in loader:
            loss = criterion(self(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss
        print(total)
"""
    check(tmp_path, program, "total += loss.item()")


# what is asked of a total later

OF_TENSORS = [
    "print(total.shape)",
    "print(total.dtype)",
    "print(total.device, total / 50)",
    "print(total.new_zeros(3))",
    "print(f'{total.item():.3f}')",
    "print((total / 50).ndim)",
    "print(torch.stack([total, total]).mean())",
    "show = lambda value: print(value.shape)\nshow(total)",
    "def show(report):\n    print(report['loss'].dtype)\nshow({'loss': total})",
    "class Report:\n    pass\nreport = Report()\nreport.loss = total\nprint(report.loss.shape)",
    "print(getattr(total, 'dtype'))",
    "read = total.item\nprint(read())",
]


@pytest.mark.parametrize("read", OF_TENSORS)
def test_a_total_that_is_asked_for_what_only_tensors_have_stays_one(tmp_path: Path, read: str) -> None:
    check(tmp_path, LOOP + read, "total += loss.detach()")


@pytest.mark.parametrize("kept", ["total.detach()", "total.item()", "torch.stack([total, total])"])
def test_a_total_that_a_history_reads_as_a_tensor_stays_one(tmp_path: Path, kept: str) -> None:
    check(tmp_path, f"history = []\n{LOOP}    history.append({kept})\nprint(history)", "total += loss.detach()")


@pytest.mark.parametrize("read", ["print(loss.shape, total)", "print(x.shape, total)"])
def test_what_numbers_have_and_what_others_are_asked_for_leaves_it_a_number(tmp_path: Path, read: str) -> None:
    check(tmp_path, LOOP + read, "total += loss.item()")


# means that begin with the first loss

MEANS = {
    "in one expression": "mean = loss if mean is None else 0.9 * mean + 0.1 * loss",
    "the other way round": "mean = 0.9 * mean + 0.1 * loss if mean is not None else loss",
    "in two statements": "if mean is None:\n        mean = loss\n    else:\n        mean = 0.9 * mean + 0.1 * loss",
}


@pytest.mark.parametrize("form", MEANS.values(), ids=MEANS)
@pytest.mark.parametrize("read", ["print(mean)", "print(mean.item())", "if step == 0:\n        print(mean.item())"])
def test_a_mean_that_begins_with_the_first_loss(tmp_path: Path, form: str, read: str) -> None:
    program = f"""
mean, step = None, 0
for x, y in batches():
    loss = criterion(net(x), y)
    learn(loss)
    {form}
    {read}
    step += 1
"""
    found = analysed(tmp_path, Options(select=RULES), HEAD, program)
    assert [(f.rule, f.promise) for f in found] == [("attached-loss-total", Promise.EXACT)]
    assert mended(tmp_path, found).count("loss.detach()") == 2


@pytest.mark.parametrize("form", MEANS.values(), ids=MEANS)
@pytest.mark.parametrize(
    ("made", "walked"),
    [
        ("loss = criterion(net(x), y) if mean is None else criterion(net(x), y) - mean", "loss"),
        ("loss = criterion(net(x), y)", "loss if mean is None else loss + 0.1 * mean"),
        ("loss = criterion(net(x), y).detach()", "criterion(net(x), y)"),
    ],
    ids=["a baseline that is walked", "a mean that is walked", "detached already"],
)
def test_a_mean_that_learns_or_has_no_graph(tmp_path: Path, form: str, made: str, walked: str) -> None:
    program = f"""
mean = None
for x, y in batches():
    {made}
    opt.zero_grad()
    ({walked}).backward(retain_graph=True)
    opt.step()
    {form}
    print(mean)
"""
    leave(tmp_path, program)
