"""Runs by shapes alone: what they carry, what they do not, and what they say where a value is needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codemods.cli._choices import settle_choices
from codemods.terms.findings import Promise
from tests.verify.judging.test_verdicts import FINE, STREAM, edited
from tests.verify.zygote import ForkedPlace
from verify.measured.results import Verification
from verify.reports import render
from verify.running.against import HandRewriter
from verify.running.settings import Settings, script_command
from verify.verification import verify

pytestmark = pytest.mark.slow

CUT = ("# The state goes on.", "state = state and tuple(part.detach() for part in state)")
#: Nobody here has 80 TB of memory for the weights.
HUGE = edited(STREAM, ("LSTM(4, 8,", "LSTM(4, 1_000_000,"), ("Linear(8, 1)", "Linear(1_000_000, 1)"))


def by_shapes(
    old: str, new: str, promise: Promise = Promise.REPAIR, steps: int = 2, arguments: tuple[str, ...] = ()
) -> Verification:
    Path("train.py").write_text(old)
    Path("changed.txt").write_text(new)
    settings = Settings(steps=steps, shapes=True)
    command = script_command("train.py", arguments, settings.python)
    hand = HandRewriter(Path("changed.txt"), promise, root=Path.cwd(), script=command.script)
    options = settle_choices(".", **dict.fromkeys(("config", "select", "ignore", "exclude"))).options
    result = verify([command], options=options, settings=settings, rewriter=hand, place=ForkedPlace)
    return replace(result, rewrites=tuple(sorted(result.rewrites, key=lambda r: r.finding.span)))


def told(result: Verification) -> list[tuple[str, str]]:
    return [(rewrite.verdict.value, rewrite.why) for rewrite in result.rewrites]


def test_an_error_of_the_graph_in_a_model_that_fits_nowhere_is_gone(folder: Path) -> None:
    result = by_shapes(HUGE, edited(HUGE, CUT))
    ((verdict, why),) = told(result)
    assert verdict == "not judged", why
    assert "the original stops in RuntimeError at train.py:20" in why
    assert "the rewritten program does not" in why
    assert "numbers are not compared" in why
    weights = 4 * (4_000_000 * (4 + 1_000_000 + 2) + 1_000_001)
    peak = max(step.peak for step in result.entries[0].rewritten.record.steps)  # type: ignore[union-attr]
    # Weights and their gradients, and a few batches of states.
    assert 2 * weights < peak < 2.01 * weights
    assert f"{peak:,} bytes" in why
    assert result.status == 3


def test_an_error_that_is_still_there_is_broken(folder: Path) -> None:
    wrong = ("# The state goes on.", "state = state and tuple(part * 1 for part in state)")
    ((verdict, why),) = told(by_shapes(STREAM, edited(STREAM, wrong)))
    assert (verdict, "still there" in why) == ("broken", True)


@pytest.mark.parametrize("promise", [Promise.EXACT, Promise.BEHAVIOUR], ids=lambda each: each.value)
def test_a_shape_that_does_not_fit_any_more_is_broken_and_the_rest_is_not(folder: Path, promise: Promise) -> None:
    shape = ("    loss = F.mse_loss(net(x), y)", "    loss = F.mse_loss(net(x.T), y)")
    result = by_shapes(
        FINE, edited(FINE, shape, ("        train(x, y, step)\n", "        train(x, y, step=step)\n")), promise
    )
    (broken, fine) = told(result)
    assert broken[0] == "broken"
    assert "it brings RuntimeError at train.py:13" in broken[1]
    assert fine[0] == "not judged"
    assert result.status == 1


def test_other_numbers_are_never_kept(folder: Path) -> None:
    result = by_shapes(FINE, edited(FINE, ("lr=0.05", "lr=0.5"), ("    loss.backward()", "    (2 * loss).backward()")))
    assert {verdict for verdict, _ in told(result)} == {"not judged"}


def test_numbers_that_are_read_are_made_up_and_named(folder: Path) -> None:
    read = ("# A step ends.", "print(f'{loss:.2f}', loss.item(), loss.detach().numpy(), x.tolist()[0])")
    text = edited(FINE, read)
    result = by_shapes(text, edited(text, ("optimizer.zero_grad()", "net.zero_grad()")))
    assert result.entries[0].original.output.split()[:3] == ["1.00", "1.0", "1.0"]
    assert "made up (1 each): train.py:17" in " ".join(render(result, "text", colour=False).split())


@pytest.mark.parametrize("value", ["x[x > 0].sum()", "x.nonzero()", "torch.masked_select(x, x > 0)"])
def test_what_depends_on_values_is_said(folder: Path, value: str) -> None:
    new = edited(FINE, ("# A step ends.", value))
    ((verdict, why),) = told(by_shapes(FINE, new, Promise.EXACT))
    assert verdict == "not judged"
    assert "depends on values, which shapes do not have" in why
    assert "train.py:17" in why


def test_an_error_behind_a_number_that_was_made_up_is_not_broken(folder: Path) -> None:
    new = edited(FINE, ("# A step ends.", "assert loss.item() != 1.0"))
    ((verdict, why),) = told(by_shapes(FINE, new, Promise.EXACT))
    assert verdict == "not judged"
    assert "AssertionError" in why


def test_lines_that_did_not_run_are_not_reached(folder: Path) -> None:
    new = edited(FINE, ("# A step ends.", "if step > 5: pass"), ("    # The end.", "    sys.stdout.flush()"))
    assert [verdict for verdict, _ in told(by_shapes(FINE, new))] == ["not judged", "not reached"]


def test_loaders_with_workers_load_in_this_process(folder: Path) -> None:
    rows = "[(torch.randn(4), torch.randn(1)) for _ in range(9)]"
    loader = f"data = torch.utils.data.DataLoader({rows}, 3, True, num_workers=2)"
    text = edited(FINE, ("data = [(torch.randn(3, 4), torch.randn(3, 1)) for _ in range(20)]", loader))
    result = by_shapes(text, edited(text, ("optimizer.zero_grad()", "net.zero_grad()")))
    assert len(result.entries[0].original.record.steps) == 2
    assert "no error of shape or graph in 2 steps" in result.rewrites[0].why


def test_a_script_gets_its_arguments(folder: Path) -> None:
    """A size from the command line is that of the weights; nobody's memory holds them."""
    head = (
        'import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument("--size", type=int, required=True)\n'
    )
    text = head + "SIZE = parser.parse_args().size\n"
    text += STREAM.replace("LSTM(4, 8,", "LSTM(4, SIZE,").replace("Linear(8, 1)", "Linear(SIZE, 1)")
    result = by_shapes(text, edited(text, CUT), arguments=("--size", "1000000"))
    ((verdict, why),) = told(result)
    assert (verdict, "the rewritten program does not" in why) == ("not judged", True), why
    assert max(step.peak for step in result.entries[0].rewritten.record.steps) > 2**43  # type: ignore[union-attr]
    assert result.entries[0].original.command[-2:] == ("--size", "1000000")
