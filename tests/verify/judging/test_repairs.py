"""A repair that alters more than what it repairs is never kept; one that does not is."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.verify.judging.test_verdicts import CUT, FINE, GROWING, ITEM, STREAM, changed, edited
from verify.measured.results import Verification

pytestmark = pytest.mark.slow

Edit = tuple[str, str]
LEAK = edited(STREAM, CUT)
SILENT = edited(LEAK, ("print(float(total))", "pass"))
CARRIED, GROWN = edited(STREAM, ITEM), edited(GROWING, ITEM)
FORWARD = "    loss = F.mse_loss(net(x), y)\n"
#: A part of the forward is changed in place after it was used.
IN_PLACE = edited(
    FINE,
    (
        FORWARD,
        "    hidden = net[:2](x)\n    out = net[2](hidden)\n    hidden += 1\n    loss = F.mse_loss(out, y)\n",
    ),
)
HISTORY = edited(FINE, ("# A step ends.", "seen.append(loss)"), ("data = [", "seen = []\ndata = ["))
TWICE = edited(FINE, ("    loss.backward()\n", "    loss.backward()\n    part = loss * 0.1\n    part.backward()\n"))
BEST = edited(FINE, ("# A step ends.", "best.append(F.mse_loss(net(x), y))"), ("data = [", "best = []\ndata = ["))
#: A running mean that is carried from step to step with its graph.
MEAN = edited(
    FINE,
    (
        FORWARD,
        "    global mean\n    out = net(x)\n    mean = 0.9 * mean + 0.1 * out.mean()\n"
        "    loss = F.mse_loss(out, y) + 0.1 * mean\n",
    ),
    ("data = [", "mean = torch.zeros(())\ndata = ["),
)

WRONG: dict[str, tuple[str, Edit]] = {
    "a total twice as large": (LEAK, ("total += loss", "total += loss.item() * 2")),
    "a total twice as large that nobody prints": (SILENT, ("total += loss", "total += loss.detach() * 2")),
    "a state twice as large": (CARRIED, (CUT[0], "state = state and tuple(part.detach() * 2 for part in state)")),
    "a state that is forgotten": (CARRIED, (CUT[0], "state = None")),
    "a growing state half as large": (GROWN, (CUT[0], "state = state and tuple(part.detach() / 2 for part in state)")),
    "another output": (IN_PLACE, ("hidden += 1", "hidden = hidden + 1; out = out * 1.1")),
    "a history of other values": (HISTORY, ("seen.append(loss)", "seen.append(loss.detach() * 2)")),
    "a history of something else": (HISTORY, ("seen.append(loss)", "seen.append(y.mean())")),
    "a backward that is taken away": (TWICE, ("    part.backward()\n", "    pass\n")),
    "a backward of another loss": (
        TWICE,
        ("    loss.backward()\n    part = loss * 0.1\n", "    part = loss * 2\n"),
    ),
    "another measure": (BEST, ("best.append(F.mse_loss(net(x), y))", "best.append(F.l1_loss(net(x), y).detach())")),
    "a mean that moves faster": (MEAN, ("0.9 * mean +", "0.8 * mean.detach() +")),
}
RIGHT: dict[str, tuple[str, Edit]] = {
    "a total of numbers": (LEAK, ITEM),
    "a total without graphs": (SILENT, ("total += loss", "total += loss.detach()")),
    "a state that is cut": (CARRIED, CUT),
    "a growing state that is cut": (GROWN, CUT),
    "out of place": (IN_PLACE, ("hidden += 1", "hidden = hidden + 1")),
    "a history without graphs": (HISTORY, ("seen.append(loss)", "seen.append(loss.detach())")),
    "a history of numbers": (HISTORY, ("seen.append(loss)", "seen.append(loss.item())")),
    "a graph that lasts": (TWICE, ("    loss.backward()\n    part", "    loss.backward(retain_graph=True)\n    part")),
    "a measure without graphs": (BEST, ("net(x), y))\n", "net(x), y).detach())\n")),
    "a mean that is cut": (MEAN, ("0.9 * mean +", "0.9 * mean.detach() +")),
}


def repaired(folder: Path, text: str, edit: Edit) -> Verification:
    return changed(folder, text, edited(text, edit), Promise.REPAIR)


@pytest.mark.parametrize("case", WRONG)
def test_what_alters_more_is_not_kept(folder: Path, case: str) -> None:
    result = repaired(folder, *WRONG[case])
    assert "kept" not in {rewrite.verdict.value for rewrite in result.rewrites}, result.rewrites
    assert result.status in (1, 3)


@pytest.mark.parametrize("case", RIGHT)
def test_what_repairs_and_nothing_else_is_kept(folder: Path, case: str) -> None:
    result = repaired(folder, *RIGHT[case])
    assert {rewrite.verdict.value for rewrite in result.rewrites} == {"kept"}, result.rewrites
