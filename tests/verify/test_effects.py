"""Wrong changes by hand whose effect a short run does not show are never kept, right ones beside them are."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.verify import effects as e
from tests.verify.judging.test_verdicts import changed, edited, verdicts

pytestmark = pytest.mark.slow

EXACT, EQUIVALENT = Promise.EXACT, Promise.EQUIVALENT
Cases = dict[str, tuple[str, Promise, list[tuple[str, str]]]]

WRONG: Cases = {
    "returns the first": (e.OBJECTIVE, EXACT, [('"last": history[-1]', '"last": history[0]')]),
    "returns nothing": (e.OBJECTIVE, EXACT, [('    return found["last"]\n', "    return None\n")]),
    "returns another type": (e.OBJECTIVE, EXACT, [('return found["last"]', 'return str(found["last"])')]),
    "returns from a coroutine": (e.OBJECTIVE, EXACT, [("return 2 * value", "return 3 * value")]),
    "callers return it": (e.OBJECTIVE, EXACT, [('"steps": len(history)', '"steps": len(history) - 1')]),
    "a flag that a later epoch needs": (e.LATER, EXACT, [("retain_graph=epoch >= begin", "")]),
    "a flag that is off": (e.LATER, EXACT, [("retain_graph=epoch >= begin", "retain_graph=False")]),
    "frozen no more": (e.LATER, EXACT, [("requires_grad_(False)", "requires_grad_(True)")]),
    "never frozen": (
        e.LATER,
        EXACT,
        [("for parameter in other.parameters():\n    parameter.requires_grad_(False)\n", "")],
    ),
    "a type for later": (e.LATER, EXACT, [("torch.ones(3, 2)", "torch.ones(3, 2).half()")]),
    "a shape for later": (e.LATER, EXACT, [("torch.ones(3, 2)", "torch.ones(3, 2).t()")]),
    "no sum over ranks": (e.ONCE, EXACT, [("        dist.all_reduce(total)\n", "")]),
    "the largest of ranks": (e.ONCE, EXACT, [("all_reduce(total)", "all_reduce(total, op=dist.ReduceOp.MAX)")]),
    "nothing at the end": (e.ONCE, EXACT, [("@atexit.register\n", "")]),
    "a lock that is gone": (
        e.ONCE,
        EXACT,
        [
            (
                "    with lock:\n        total += torch.tensor([loss.item(), 1.0])\n",
                "    total += torch.tensor([loss.item(), 1.0])\n",
            )
        ],
    ),
    "warnings that are none": (e.ONCE, EXACT, [('warnings.simplefilter("error")\n', "")]),
    "other numbers near zero": (e.ONCE, EXACT, [("torch.set_flush_denormal(True)\n", "")]),
    "another program": (e.ONCE, EXACT, [('os.system(f"echo {step}")', 'os.system(f"echo {step + 1}")')]),
    "a scaled loss": (e.PLAIN, EQUIVALENT, [("label_smoothing=0.1)", "label_smoothing=0.1) * 1.0004")]),
    "another constant": (e.PLAIN, EQUIVALENT, [("label_smoothing=0.1)", "label_smoothing=0.10001)")]),
}
RIGHT: Cases = {
    "a name for it": (
        e.OBJECTIVE,
        EXACT,
        [('    return found["last"]\n', '    last = found["last"]\n    return last\n')],
    ),
    "another way to say it": (
        e.OBJECTIVE,
        EXACT,
        [
            (
                '    return {"last": history[-1], "steps": len(history)}\n',
                "    return dict(last=history[-1], steps=len(history))\n",
            )
        ],
    ),
    "a coroutine's name": (
        e.OBJECTIVE,
        EXACT,
        [("    return 2 * value\n", "    double = 2 * value\n    return double\n")],
    ),
    "a flag for all epochs": (e.LATER, EXACT, [("retain_graph=epoch >= begin", "retain_graph=True")]),
    "gradients that are cleared elsewhere": (
        e.ONCE,
        EXACT,
        [
            ("    optimizer.zero_grad()\n    loss.backward()\n", "    loss.backward()\n"),
            ("    loss = net(", "    optimizer.zero_grad()\n    loss = net("),
        ],
    ),
    "the same mathematics": (
        e.PLAIN,
        EQUIVALENT,
        [("(net(x), y, label_smoothing=0.1)", "(net(x).double(), y, label_smoothing=0.1).float()")],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_is_never_kept(folder: Path, case: str) -> None:
    text, promise, wrong = WRONG[case]
    result = changed(folder, text, edited(text, *wrong), promise)
    found = verdicts(result)
    assert found, case
    assert not {"kept", "not reached"} & set(found.values()), [(r.verdict.value, r.why) for r in result.rewrites]


@pytest.mark.parametrize("case", RIGHT)
def test_right_is_kept(folder: Path, case: str) -> None:
    text, promise, right = RIGHT[case]
    result = changed(folder, text, edited(text, *right), promise)
    assert set(verdicts(result).values()) == {"kept"}, [(r.verdict.value, r.why) for r in result.rewrites]
