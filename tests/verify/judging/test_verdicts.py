"""Verdicts that cannot be fooled: wrong changes and right ones in real scripts, judged by real runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.cli._choices import settle_choices
from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.notebooks import notebook
from tests.verify.zygote import ForkedPlace
from verify.measured.results import Verification
from verify.running.against import HandRewriter
from verify.running.settings import Settings, script_command
from verify.verification import verify

pytestmark = pytest.mark.slow

#: A state that is carried from batch to batch, and a total that keeps every loss.
STREAM = """\
import os
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
cell = nn.LSTM(4, 8, batch_first=True)
head = nn.Linear(8, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
data = [(torch.randn(2, 3, 4), torch.randn(2, 1)) for _ in range(20)]

state = None
total = 0
for x, y in data:
    # The state goes on.
    output, state = cell(x, state)
    features = output[:, -1]
    loss = F.mse_loss(head(features), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
print(float(total))
"""
CUT = ("# The state goes on.", "state = state and tuple(part.detach() for part in state)")
ITEM = ("total += loss", "total += loss.item()")
#: The same without an error: the graph of each batch hangs on that of the one before.
GROWING = STREAM.replace("backward()", "backward(retain_graph=True)").replace("    optimizer.step()\n", "")
#: Twenty steps that nothing is wrong with.
FINE = """\
import contextlib, os, signal, sys, threading
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
data = [(torch.randn(3, 4), torch.randn(3, 1)) for _ in range(20)]


def train(x, y, step):
    loss = F.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    # A step ends.


def main():
    for step, (x, y) in enumerate(data):
        train(x, y, step)
    # The end.


if __name__ == "__main__":
    main()
"""


def changed(
    folder: Path, old: str, new: str, promise: Promise = Promise.EXACT, *, steps: int = 20, name: str = "train.py"
) -> Verification:
    """What is said of ``old`` having become ``new`` by hand, a rewrite a hunk."""
    assert old != new
    (folder / name).write_text(old)
    (folder / "changed.txt").write_text(new)
    settings = Settings(steps=steps)
    command = script_command(name, [], settings.python)
    hand = HandRewriter(folder / "changed.txt", promise, root=folder, script=command.script)
    return verify([command], options=_options(), settings=settings, rewriter=hand, place=ForkedPlace)


def rewritten(folder: Path, text: str, *, steps: int = 20) -> Verification:
    """What is said of our own rewrites of ``text``."""
    (folder / "train.py").write_text(text)
    settings = Settings(steps=steps)
    command = script_command("train.py", [], settings.python)
    return verify([command], options=_options(), settings=settings, jobs=1, place=ForkedPlace)


def _options() -> Options:
    return settle_choices(".", **dict.fromkeys(("config", "select", "ignore", "exclude"))).options


def verdicts(verification: Verification) -> dict[int, str]:
    """The verdicts by line."""
    return {rewrite.finding.span.line: rewrite.verdict.value for rewrite in verification.rewrites}


def line(text: str, part: str) -> int:
    """The number of the line of ``text`` that has ``part``."""
    (number,) = [number for number, each in enumerate(text.splitlines(), 1) if part in each]
    return number


def edited(text: str, *edits: tuple[str, str]) -> str:
    """``text`` with each first part, which stands there once, replaced by the second."""
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


class TestGrowthOfOthers:
    """Growth that another rewrite removes is the other's."""

    def test_a_carried_state_and_a_total_by_rules(self, folder: Path) -> None:
        result = rewritten(folder, STREAM)
        found = {(r.finding.rule, r.verdict.value) for r in result.rewrites}
        assert {("carried-hidden-state", "kept"), ("attached-loss-total", "kept")} <= found, result.rewrites
        assert result.status == 0

    @pytest.mark.parametrize("text", [STREAM, GROWING], ids=["raises", "grows"])
    def test_a_carried_state_and_a_total_by_hand(self, folder: Path, text: str) -> None:
        result = changed(folder, text, edited(text, CUT, ITEM), Promise.REPAIR)
        assert set(verdicts(result).values()) == {"kept"}, result.rewrites

    @pytest.mark.parametrize("text", [STREAM, GROWING], ids=["raises", "grows"])
    def test_two_repairs_and_a_wrong_change(self, folder: Path, text: str) -> None:
        wrong = ("head(features)", "head(features.detach() * 0.9)")
        result = changed(folder, text, edited(text, CUT, ITEM, wrong), Promise.REPAIR)
        found = verdicts(result)
        assert found.pop(line(text, "head(features)")) == "broken"
        assert set(found.values()) == {"kept"}, result.rewrites

    def test_growth_that_nobody_removes_is_still_there(self, folder: Path) -> None:
        text = edited(STREAM, ("total += loss", "seen.append(loss)"), ("total = 0", "total, seen = 0, []"))
        result = changed(folder, text, edited(text, CUT), Promise.REPAIR)
        assert set(verdicts(result).values()) == {"broken"}, result.rewrites


STEP, END = "# A step ends.", "# The end."
ENDS = {
    "os._exit(3)": (STEP, "step == 3 and os._exit(3)"),
    "os._exit(0)": (STEP, "step == 3 and os._exit(0)"),
    "sys.exit(1)": (STEP, "step == 3 and sys.exit(1)"),
    "sys.exit()": (STEP, "step == 3 and sys.exit()"),
    "quit()": (STEP, "step == 3 and quit()"),
    "an exit with a text": (STEP, "if step == 3: raise SystemExit('enough')"),
    "a signal": (STEP, "step == 3 and os.kill(os.getpid(), signal.SIGTERM)"),
    "abort": (STEP, "step == 3 and os.abort()"),
    "another program": (STEP, "step == 3 and os.execv('/bin/true', ['true'])"),
    "fewer steps": ("step)\n    # The", "step)\n        if step == 3: break\n    # The"),
    "no step": ("train(x, y, step)\n", "train(x, y, step) if False else None\n"),
    "status 1 at the end": (END, "sys.exit(1)"),
    "os._exit(1) at the end": (END, "os._exit(1)"),
    "os._exit(0) at the end": (END, "os._exit(0)"),
    "an error that main catches": (
        '    main()\n',
        "    try:\n        data[4] = (None, None); main()\n    except Exception: os._exit(1)\n",
    ),
    "an error that main catches, and is content": (
        '    main()\n',
        "    try:\n        data[4] = (None, None); main()\n    except Exception: pass\n",
    ),
    "in a thread that ends early": (
        "    main()\n",
        "    del data[7:]; thread = threading.Thread(target=main); thread.start(); thread.join()\n",
    ),
    "in a thread that exits": (
        "    main()\n",
        "    data[7] = None\n    threading.excepthook = print\n"
        "    thread = threading.Thread(target=main); thread.start(); thread.join()\n",
    ),
}  # fmt: skip


class TestEnds:
    """Who ends worse or earlier than the program it is compared with is never kept."""

    @pytest.mark.parametrize("promise", [Promise.EXACT, Promise.REPAIR], ids=lambda p: p.value)
    @pytest.mark.parametrize("end", ENDS)
    def test_worse_or_earlier(self, folder: Path, end: str, promise: Promise) -> None:
        result = changed(folder, FINE, edited(FINE, ENDS[end]), promise, steps=30)
        assert set(verdicts(result).values()) == {"broken"}, result.rewrites
        assert result.status == 1

    @pytest.mark.parametrize("promise", [Promise.REPAIR, Promise.BEHAVIOUR], ids=lambda p: p.value)
    def test_a_repair_that_ends_the_program_before_it_grows(self, folder: Path, promise: Promise) -> None:
        new = edited(GROWING, ("    total += loss\n", "    total += loss\n    if total > 3: os._exit(0)\n"))
        result = changed(folder, GROWING, new, promise)
        assert set(verdicts(result).values()) == {"broken"}, result.rewrites

    def test_a_repair_that_exits_instead_of_raising(self, folder: Path) -> None:
        text = edited(STREAM, ("import os", "import os, sys"))
        new = edited(text, ("    loss.backward()", "    try: loss.backward()\n    except RuntimeError: sys.exit()"))
        result = changed(folder, text, new, Promise.REPAIR)
        assert set(verdicts(result).values()) == {"broken"}, result.rewrites

    @pytest.mark.parametrize("end", ["sys.exit(1)", "os._exit(0)", "os._exit(3)", "raise SystemExit(2)"])
    def test_an_end_as_it_was_is_none_of_the_change(self, folder: Path, end: str) -> None:
        text = edited(FINE, (END, end))
        result = changed(folder, text, edited(text, ("optimizer.zero_grad()", "net.zero_grad()")), steps=30)
        assert set(verdicts(result).values()) == {"kept"}, result.rewrites


GUARDED = edited(
    FINE,
    (
        "    loss.backward()\n",
        "    try:\n        loss.backward()\n    except RuntimeError as error:\n        print(error)\n",
    ),
)
CAUGHT = {
    "every second step": (
        ("    try:\n        loss", "    if step % 2: loss = loss.detach()\n    try:\n        loss"),
        GUARDED,
    ),
    "suppressed": (
        ("    loss.backward()", "    loss.backward()\n    with contextlib.suppress(RuntimeError): loss.backward()"),
        FINE,
    ),
    "of a gradient that is asked for": (
        ("# A step ends.", "with contextlib.suppress(RuntimeError): torch.autograd.grad(loss, net[0].weight)"),
        FINE,
    ),
    "of a loss that is no number": (
        ("# A step ends.", "with contextlib.suppress(RuntimeError): net(x).backward()"),
        FINE,
    ),
    "in a thread": (
        (
            "# A step ends.",
            "def again():\n"
            "        with contextlib.suppress(RuntimeError): loss.backward()\n"
            "    thread = threading.Thread(target=again); thread.start(); thread.join()",
        ),
        FINE,
    ),
    "of a pool of threads that nobody asks": (
        (
            "# A step ends.",
            "from concurrent.futures import ThreadPoolExecutor\n"
            "    with ThreadPoolExecutor(1) as pool: pool.submit(loss.backward)",
        ),
        FINE,
    ),
    "of a closure": (
        (
            "    optimizer.step()\n",
            "    optimizer.step()\n    def again():\n"
            "        try: loss.backward()\n        except Exception: return\n    again()\n",
        ),
        FINE,
    ),
}  # fmt: skip
PENALTY = edited(
    FINE,
    (
        "# A step ends.",
        "if step % 2:\n"
        "        for _ in range(1):\n"
        "            sample = x.clone().requires_grad_()\n"
        "            score = net(sample).sum()\n"
        "            try:\n"
        "                slope, = torch.autograd.grad(score, sample)\n"
        "            except RuntimeError:\n"
        "                slope = None",
    ),
)


class TestCaughtErrors:
    """Errors out of autograd count, whoever catches them."""

    @pytest.mark.parametrize("promise", [Promise.EXACT, Promise.BEHAVIOUR], ids=lambda p: p.value)
    @pytest.mark.parametrize("case", CAUGHT)
    def test_new_ones_break_any_promise(self, folder: Path, case: str, promise: Promise) -> None:
        edit, text = CAUGHT[case]
        result = changed(folder, text, edited(text, edit), promise)
        assert set(verdicts(result).values()) == {"broken"}, result.rewrites
        assert "caught" in result.rewrites[0].why, result.rewrites

    def test_no_grad_around_a_gradient_penalty(self, folder: Path) -> None:
        result = changed(folder, PENALTY, edited(PENALTY, ("for _ in range(1):", "with torch.no_grad():")))
        assert set(verdicts(result).values()) == {"broken"}, result.rewrites
        assert "caught" in result.rewrites[0].why

    def test_those_that_were_there_are_none_of_the_change(self, folder: Path) -> None:
        text = edited(
            GUARDED, ("    try:\n        loss", "    if step % 2: loss = loss.detach()\n    try:\n        loss")
        )
        result = changed(folder, text, edited(text, ("optimizer.zero_grad()", "net.zero_grad()")))
        assert set(verdicts(result).values()) == {"kept"}, result.rewrites

    def test_a_repair_whose_error_is_only_caught_has_not_repaired(self, folder: Path) -> None:
        caught = ("    loss.backward()", "    try: loss.backward()\n    except RuntimeError: state = None")
        result = changed(folder, STREAM, edited(STREAM, caught, ITEM), Promise.REPAIR)
        assert verdicts(result)[line(STREAM, "loss.backward")] == "broken", result.rewrites

    def test_a_repair_of_an_error_that_the_original_catches(self, folder: Path) -> None:
        text = edited(
            STREAM,
            ("    loss.backward()", "    try: loss.backward()\n    except RuntimeError: state = None"),
            ITEM,
        )
        result = changed(folder, text, edited(text, CUT), Promise.REPAIR)
        assert set(verdicts(result).values()) == {"kept"}, result.rewrites
        assert "that the original catches" in result.rewrites[0].why

    def test_a_repair_that_leaves_some_of_them(self, folder: Path) -> None:
        text = edited(
            STREAM,
            ("    loss.backward()", "    try: loss.backward()\n    except RuntimeError: state = None"),
            ITEM,
        )
        some = "if total > 8: state = state and tuple(part.detach() for part in state)"
        result = changed(folder, text, edited(text, (CUT[0], some)), Promise.REPAIR)
        assert set(verdicts(result).values()) == {"broken"}, result.rewrites


#: An old form that stops today's torch in the first step, and a term that counts from the fourth on.
OLD = edited(
    FINE,
    (
        "    optimizer.zero_grad()\n",
        "    if step > 3:\n        loss = loss + 0.01 * net[0].weight.square().sum()\n    optimizer.zero_grad()\n",
    ),
    ("# A step ends.", "print(loss.data[0])"),
)
FLIP = ("loss + 0.01", "loss - 0.01")
FORM = ("loss.data[0]", "loss.item()")


class TestAfterACrash:
    """What gets past the crash of the original goes first and alone; what follows is compared with that program."""

    @pytest.mark.parametrize("promise", [Promise.EXACT, Promise.EQUIVALENT, Promise.REPAIR], ids=lambda p: p.value)
    def test_a_term_that_is_flipped_behind_it(self, folder: Path, promise: Promise) -> None:
        result = changed(folder, OLD, edited(OLD, FLIP, FORM), promise)
        past = "kept" if promise is Promise.REPAIR else "partly reached"
        assert verdicts(result) == {line(OLD, "0.01"): "broken", line(OLD, "data[0]"): past}, result.rewrites
        assert any("after the end of the original were compared with nothing" in r.why for r in result.rewrites)

    @pytest.mark.parametrize("promise", [Promise.EXACT, Promise.EQUIVALENT], ids=lambda p: p.value)
    def test_what_changes_nothing_behind_it_is_kept(self, folder: Path, promise: Promise) -> None:
        result = changed(
            folder, OLD, edited(OLD, ("0.01 * net[0].weight", "0.01 * net[0].weight.view(8, 4)"), FORM), promise
        )
        found = verdicts(result)
        assert found == {line(OLD, "0.01"): "kept", line(OLD, "data[0]"): "partly reached"}, result.rewrites

    def test_a_crash_of_the_graph(self, folder: Path) -> None:
        text = edited(
            STREAM,
            ("    optimizer.zero_grad()\n", "    if total > 3: loss = loss * 1.0\n    optimizer.zero_grad()\n"),
            ITEM,
        )
        result = changed(folder, text, edited(text, CUT, ("loss * 1.0", "loss * 1.1")))
        found = verdicts(result)
        assert found == {line(text, CUT[0]): "partly reached", line(text, "loss * 1.0"): "broken"}, result.rewrites

    def test_two_crashes_one_behind_the_other(self, folder: Path) -> None:
        text = edited(OLD, (END, "print(loss_of_all)"), ("def main():", "def main():\n    torch.no_such()"))
        new = edited(text, FORM, FLIP, ("torch.no_such()", "torch.no_grad()"), ("print(loss_of_all)", "print()"))
        result = changed(folder, text, new, steps=30)
        found = verdicts(result)
        assert found.pop(line(text, "0.01")) == "broken", result.rewrites
        # Nothing is computed behind the last one.
        assert found.pop(line(text, "print(loss_of_all)")) == "kept", result.rewrites
        assert set(found.values()) == {"partly reached"}, result.rewrites

    def test_what_ran_in_neither_is_not_judged(self, folder: Path) -> None:
        text = edited(OLD, ("def main():", "def main():\n    if sys.platform == 'none':\n        print('none')"))
        result = changed(folder, text, edited(text, FORM, ("print('none')", "print('nothing')")))
        assert verdicts(result) == {line(text, "'none')"): "not reached", line(text, "data[0]"): "partly reached"}

    def test_a_number_behind_the_crash_that_nothing_reads_is_not_judged(self, folder: Path) -> None:
        text = edited(FINE, (STEP, "if step == 2: raise ValueError\n    if step > 3:\n        loss = 1"))
        result = changed(folder, text, edited(text, ("        loss = 1", "        loss = 2")))
        assert [(r.verdict.value, "is a constant (1 became 2)" in r.why) for r in result.rewrites] == [
            ("not judged", True)
        ]

    def test_an_attribute_that_nothing_has_is_left_out(self, folder: Path) -> None:
        text = edited(OLD, ("loss.data[0]", "loss.no_such"))
        found = verdicts(changed(folder, text, edited(text, FLIP, ("net(x), y", "net(x), y.clone()"))))
        assert found == {line(text, "0.01"): "broken", line(text, "mse_loss(net"): "kept"}

    def test_an_exit_is_a_crash_too(self, folder: Path) -> None:
        text = edited(OLD, ("print(loss.data[0])", "step == 2 and os._exit(1)"))
        result = changed(folder, text, edited(text, FLIP, ("step == 2 and os._exit(1)", "pass")))
        assert verdicts(result)[line(text, "0.01")] == "broken", result.rewrites


#: Two losses of one graph: the second backward raises before the first step, so there is nothing to compare before it.
TWICE = edited(
    FINE,
    ("nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))", "nn.ModuleList([nn.Linear(4, 8), nn.Linear(8, 1)])"),
    (
        "    loss = F.mse_loss(net(x), y)\n    optimizer.zero_grad()\n    loss.backward()\n",
        "    code = net[0](x).tanh()\n"
        "    output = net[1](code)\n"
        "    optimizer.zero_grad()\n"
        "    F.mse_loss(output, y).backward()\n"
        "    # And again.\n"
        "    output.exp().mean().backward()\n",
    ),
)
RETAIN = ("F.mse_loss(output, y).backward()", "F.mse_loss(output, y).backward(retain_graph=True)")
DETACH = ("code = net[0](x).tanh()", "code = net[0](x).tanh().detach()")


class TestOwnVerdict:
    """Each repair earns its own verdict."""

    def test_a_second_hunk_that_stops_the_encoder_from_learning(self, folder: Path) -> None:
        result = changed(folder, TWICE, edited(TWICE, RETAIN, DETACH), Promise.REPAIR)
        assert verdicts(result) == {line(TWICE, "code = "): "broken", line(TWICE, "mse_loss"): "kept"}, result.rewrites

    def test_a_second_hunk_that_changes_nothing(self, folder: Path) -> None:
        result = changed(folder, TWICE, edited(TWICE, RETAIN, ("x).tanh()", "x.clone()).tanh()")), Promise.REPAIR)
        found = verdicts(result)
        assert found == {line(TWICE, "code = "): "not judged", line(TWICE, "mse_loss"): "kept"}, result.rewrites

    def test_two_that_are_both_needed(self, folder: Path) -> None:
        text = edited(TWICE, ("# And again.", "output.square().mean().backward()"))
        more = ("output.square().mean().backward()", "output.square().mean().backward(retain_graph=True)")
        separated = edited(text, ("y).backward()\n", "y).backward()\n    # And again.\n"))
        result = changed(folder, separated, edited(separated, RETAIN, more), Promise.REPAIR)
        assert set(verdicts(result).values()) == {"kept"}, result.rewrites

    def test_two_of_which_either_is_enough(self, folder: Path) -> None:
        once = ("output.exp().mean().backward()", "net[1](net[0](x).tanh()).exp().mean().backward()")
        result = changed(folder, TWICE, edited(TWICE, RETAIN, once), Promise.REPAIR)
        assert set(verdicts(result).values()) == {"kept"}, result.rewrites

    def test_a_leak_and_a_hunk_that_stops_the_encoder_from_learning(self, folder: Path) -> None:
        text = edited(
            FINE,
            ("def train", "seen = []\n\n\ndef train"),
            (STEP, "seen.append(loss)"),
            ("net(x), y", "net[1:](net[0](x)), y"),
        )
        new = edited(text, ("seen.append(loss)", "seen.append(loss.item())"), ("net[0](x)", "net[0](x).detach()"))
        result = changed(folder, text, new, Promise.REPAIR)
        assert verdicts(result) == {line(text, "net[1:]"): "broken", line(text, "seen.append"): "kept"}, result.rewrites

    def test_a_repair_of_a_leak_that_makes_the_same_updates(self, folder: Path) -> None:
        text = edited(FINE, ("def train", "seen = []\n\n\ndef train"), (STEP, "seen.append(loss)"))
        result = changed(folder, text, edited(text, ("(loss)\n\n\ndef m", "(loss.item())\n\n\ndef m")), Promise.REPAIR)
        assert set(verdicts(result).values()) == {"kept"}
        assert "bit for bit the same" in result.rewrites[0].why

    def test_a_repair_of_a_leak_that_makes_other_updates_says_so(self, folder: Path) -> None:
        text = edited(
            FINE,
            ("def train", "average = 0.0 * net[0](data[0][0]).mean()\n\n\ndef train"),
            ("nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))", "nn.Sequential(nn.Linear(4, 1))"),
            (
                "    loss = F.mse_loss(net(x), y)",
                "    global average\n    average = average + net(x).mean()\n    loss = average",
            ),
            ("backward()", "backward(retain_graph=True)"),
        )
        result = changed(folder, text, edited(text, ("average + net", "average.detach() + net")), Promise.REPAIR)
        assert set(verdicts(result).values()) == {"kept"}, result.rewrites
        assert "makes other updates than the original" in result.rewrites[0].why, result.rewrites


#: Two losses of one encoder, each through a head of its own.
HEADS = edited(
    TWICE,
    ("    output = net[1](code)\n", ""),
    ("[nn.Linear(4, 8), nn.Linear(8, 1)]", "[nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)]"),
    ("F.mse_loss(output, y)", "F.mse_loss(net[1](code), y)"),
    ("output.exp()", "net[2](code).exp()"),
)


@pytest.mark.parametrize("promise", [Promise.EXACT, Promise.REPAIR], ids=lambda p: p.value)
def test_what_hides_an_error_that_another_mends(folder: Path, promise: Promise) -> None:
    retain = ("(code), y).backward()", "(code), y).backward(retain_graph=True)")
    result = changed(folder, HEADS, edited(HEADS, DETACH, retain), promise)
    past = "kept" if promise is Promise.REPAIR else "partly reached"
    assert verdicts(result) == {line(HEADS, "code = "): "broken", line(HEADS, "mse_loss"): past}, result.rewrites


#: Two processes that train, and one that waits for them and does not ask how they ended.
WORKERS = edited(
    FINE,
    ("import contextlib", "import multiprocessing, contextlib"),
    (
        "    main()\n",
        "    workers = [multiprocessing.get_context('fork').Process(target=main) for _ in range(2)]\n"
        "    for worker in workers: worker.start()\n"
        "    for worker in workers: worker.join()\n",
    ),
)
SECOND = "multiprocessing.current_process().name.endswith('2')"


class TestProcesses:
    @pytest.mark.parametrize("end", ["os._exit(0)", "os._exit(3)", "sys.exit()", "os.kill(os.getpid(), 9)"])
    def test_one_of_two_that_leaves(self, folder: Path, end: str) -> None:
        new = edited(WORKERS, (STEP, f"{SECOND} and step == 3 and {end}"))
        result = changed(folder, WORKERS, new, steps=30)
        assert set(verdicts(result).values()) == {"broken"}, result.rewrites

    def test_one_of_two_that_catches_errors(self, folder: Path) -> None:
        new = edited(WORKERS, (STEP, f"with contextlib.suppress(RuntimeError): {SECOND} and loss.backward()"))
        result = changed(folder, WORKERS, new, steps=30)
        assert set(verdicts(result).values()) == {"broken"}, result.rewrites

    def test_two_that_train_as_before(self, folder: Path) -> None:
        result = changed(folder, WORKERS, edited(WORKERS, ("optimizer.zero_grad()", "net.zero_grad()")), steps=30)
        assert set(verdicts(result).values()) == {"kept"}, result.rewrites


HEAD, LOOP = FINE[: FINE.index("def train")], "for step, (x, y) in enumerate(data):\n"
TRAINING = (
    "    loss = F.mse_loss(net(x), y)\n"
    "    if step > 3:\n"
    "        loss = loss + 0.01 * net[0].weight.square().sum()\n"
    "    optimizer.zero_grad()\n"
    "    loss.backward()\n"
    "    optimizer.step()\n"
    "    # A step ends.\n"
)


class TestNotebooks:
    """The same in cells."""

    def judged(self, folder: Path, old: list[str], new: list[str], promise: Promise) -> dict[int, str]:
        (folder / "new.ipynb").write_bytes(notebook(*new))
        (folder / "train.ipynb").write_bytes(notebook(*old))
        settings = Settings(steps=30)
        command = script_command("train.ipynb", [], settings.python)
        hand = HandRewriter(folder / "new.ipynb", promise, root=folder, script=command.script)
        found = verify([command], options=_options(), settings=settings, rewriter=hand, place=ForkedPlace)
        return {
            found.place(each.finding.path, each.finding.span.line).line: each.verdict.value for each in found.rewrites
        }

    def test_what_is_flipped_behind_a_crash(self, folder: Path) -> None:
        old = edited(TRAINING, (STEP, "print(loss.data[0])"))
        new = edited(old, FORM, FLIP)
        cells = [HEAD, LOOP + old]
        found = self.judged(folder, cells, [HEAD, LOOP + new], Promise.EXACT)
        assert found == {line(cells[1], "0.01"): "broken", line(cells[1], "data[0]"): "partly reached"}

    def test_an_end_in_the_middle(self, folder: Path) -> None:
        for end in ("sys.exit()", "os._exit(0)"):
            new = edited(TRAINING, (STEP, f"step == 3 and {end}"))
            assert set(self.judged(folder, [HEAD, LOOP + TRAINING], [HEAD, LOOP + new], Promise.EXACT).values()) == {
                "broken"
            }

    def test_errors_that_are_caught(self, folder: Path) -> None:
        new = edited(TRAINING, (STEP, "with contextlib.suppress(RuntimeError): loss.backward()"))
        assert set(self.judged(folder, [HEAD, LOOP + TRAINING], [HEAD, LOOP + new], Promise.BEHAVIOUR).values()) == {
            "broken"
        }


class TestLearning:
    """What learned before the original died, or while it leaked, has to learn in the repaired program too."""

    def test_an_encoder_that_is_cut_off_to_avoid_the_error(self, folder: Path) -> None:
        result = changed(folder, HEADS, edited(HEADS, DETACH), Promise.REPAIR)
        assert set(verdicts(result).values()) == {"broken"}, result.rewrites
        assert "no longer learn" in result.rewrites[0].why

    @pytest.mark.parametrize("promise", [Promise.EXACT, Promise.REPAIR], ids=lambda p: p.value)
    def test_a_loss_that_is_cut_off_after_the_first_step(self, folder: Path, promise: Promise) -> None:
        text = edited(STREAM, ITEM)
        cut = (
            "    optimizer.zero_grad()",
            "    if total: state, loss = None, loss.detach().requires_grad_()\n    optimizer.zero_grad()",
        )
        result = changed(folder, text, edited(text, cut), promise)
        assert set(verdicts(result).values()) == {"broken"}, result.rewrites
        assert "nothing is learned any more" in result.rewrites[0].why

    def test_a_part_that_is_cut_off_after_the_first_step(self, folder: Path) -> None:
        text = edited(STREAM, ITEM)
        part = "features, state = (output[:, -1].detach(), None) if total else (output[:, -1], None)"
        result = changed(folder, text, edited(text, ("features = output[:, -1]", part)), Promise.REPAIR)
        assert set(verdicts(result).values()) == {"not judged"}, result.rewrites
        assert "no longer learn" in result.rewrites[0].why

    def test_a_leak_that_is_avoided_by_learning_less(self, folder: Path) -> None:
        text = edited(
            FINE,
            ("def train", "seen = []\n\n\ndef train"),
            ("net(x), y", "net[1:](net[0](x)), y"),
            (STEP, "seen.append(net[0](x).sum())"),
        )
        frozen = ("    loss = ", "    net[0].requires_grad_(False)\n    loss = ")
        result = changed(folder, text, edited(text, frozen), Promise.REPAIR)
        assert set(verdicts(result).values()) == {"broken"}, result.rewrites
        assert "no longer learn" in result.rewrites[0].why

    @pytest.mark.parametrize("promise", [Promise.REPAIR, Promise.BEHAVIOUR], ids=lambda p: p.value)
    def test_an_optimizer_that_steps_no_more(self, folder: Path, promise: Promise) -> None:
        text = edited(
            STREAM,
            (
                "torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)",
                "torch.optim.SGD(cell.parameters(), lr=0.01)\nother = torch.optim.SGD(head.parameters(), lr=0.01)",
            ),
            ("    optimizer.step()", "    optimizer.step()\n    # The other one.\n    other.step()"),
            ITEM,
        )
        new = edited(text, ("    # The other one.\n    other.step()\n", ""), CUT)
        result = changed(folder, text, new, promise)
        assert verdicts(result)[line(text, "# The other")] == "broken", result.rewrites

    def test_a_state_that_is_learned_in_the_first_step_alone_is_not_held_against_anybody_else(
        self, folder: Path
    ) -> None:
        text = edited(STREAM, ITEM, ("state = None", "state = None\nscale = torch.zeros(())"))
        result = changed(folder, text, edited(text, CUT), Promise.REPAIR)
        assert set(verdicts(result).values()) == {"kept"}, result.rewrites
