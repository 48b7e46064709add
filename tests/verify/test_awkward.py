"""Wrong changes by hand in scripts whose numbers go many ways are never kept, right ones never broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.verify import awkward as a
from tests.verify.judging.test_verdicts import changed, edited, verdicts

pytestmark = pytest.mark.slow

EXACT, EQUIVALENT = Promise.EXACT, Promise.EQUIVALENT
Cases = dict[str, tuple[str, Promise, list[tuple[str, str]]]]

WRONG: Cases = {
    "drop_last": (a.LOADED, EXACT, [("collate_fn=joined, drop_last=False", "collate_fn=joined, drop_last=True")]),
    "drop_last test": (a.LOADED, EXACT, [("shuffle=False, drop_last=False", "shuffle=False, drop_last=True")]),
    "amsgrad": (a.LOADED, EXACT, [("amsgrad=False", "amsgrad=True")]),
    "plateau mode": (a.LOADED, EXACT, [('mode="min"', 'mode="max"')]),
    "plateau sum": (a.LOADED, EXACT, [("plateau.step(total / count)", "plateau.step(total)")]),
    "alias best": (a.LOADED, EXACT, [("best = copy.deepcopy(net.state_dict())", "best = net.state_dict()")]),
    "lowest stays": (a.LOADED, EXACT, [("lowest = total / count", "lowest = min(lowest, total)")]),
    "len of data": (a.LOADED, EXACT, [("return len(self.x)", "return len(self.x) - 1")]),
    "no replacement": (a.LOADED, EXACT, [("torch.ones(66), 66)", "torch.ones(66), 66, replacement=False)")]),
    "sum": (a.WRITING, EXACT, [('reduction="mean"', 'reduction="sum"')]),
    "alias snapshots": (a.WRITING, EXACT, [("net.weight.detach().clone()", "net.weight.detach()")]),
    "logged": (a.WRITING, EXACT, [('log.info("loss %.4f", value)', 'log.info("loss %.4f", value * 2)')]),
    "level": (a.WRITING, EXACT, [("level=logging.INFO", "level=logging.WARNING")]),
    "sqlite": (a.WRITING, EXACT, [("(step, value))", "(step, -value))")]),
    "memmap": (a.WRITING, EXACT, [("table[step] = value", "table[step] = value + 1")]),
    "os.write": (a.WRITING, EXACT, [('loss {value:.5f}\\n".encode', 'loss {value * 2:.5f}\\n".encode')]),
    "gzip": (a.WRITING, EXACT, [('file.write(f"{value:.5f}\\n")', 'file.write(f"{value / 2:.5f}\\n")')]),
    "struct": (a.WRITING, EXACT, [('struct.pack("<f", value)', 'struct.pack("<f", value + 1)')]),
    "rounded": (a.WRITING, EXACT, [("right / (step + 1)", "right / (step + 2)")]),
    "child": (a.WRITING, EXACT, [('input=f"{value}\\n"', 'input=f"{-value}\\n"')]),
    "caught save": (
        a.WRITING,
        EXACT,
        [('np.save("value.npy", np.array([value, step]))', 'np.save("value.npy", np.array([valu, step]))')],
    ),
    "words": (a.WRITING, EXACT, [("value < 1 else", "value > 1 else")]),
    "functional sign": (a.OWN, EXACT, [("weights[name] - 0.05", "weights[name] + 0.05")]),
    "functional momentum": (a.OWN, EXACT, [("0.9 * speed[name] + slope", "0.9 * speed[name] + 0.1 * slope")]),
    "functional objective": (a.OWN, EXACT, [("- y).square().mean()", "- y).abs().mean()")]),
    "by hand momentum": (a.BYHAND, EXACT, [("mul_(0.5)", "mul_(0.4)")]),
    "by hand count": (a.BYHAND, EXACT, [("self.count += 1", "self.count += 2")]),
    "by hand no zero": (a.BYHAND, EXACT, [("                each.grad.zero_()\n", "")]),
    "center": (a.SWA, EXACT, [("0.9 * self.center + 0.1 *", "0.8 * self.center + 0.1 *")]),
    "limits": (a.SWA, EXACT, [("torch.maximum(self.limits", "torch.minimum(self.limits")]),
    "seen": (a.SWA, EXACT, [("self.seen += len(x)", "self.seen += 1")]),
    "final": (a.SWA, EXACT, [('{"seen": net.seen,', '{"seen": net.seen + 1,')]),
    "averaged": (a.SWA, EXACT, [("averaged.update_parameters(net)", "averaged.update_parameters(averaged.module)")]),
    "no update_bn": (a.SWA, EXACT, [("update_bn([x for x, _ in loader], averaged)\n", "")]),
    "update_bn of the net": (
        a.SWA,
        EXACT,
        [("update_bn([x for x, _ in loader], averaged)", "update_bn([x for x, _ in loader], net)")],
    ),
    "decay": (a.SWA, EXACT, [('"weight_decay": 1e-4', '"weight_decay": 1e-5')]),
    "nesterov": (a.SWA, EXACT, [("nesterov=True", "nesterov=False")]),
    "anneal": (a.SWA, EXACT, [("anneal_epochs=3)", 'anneal_epochs=3, anneal_strategy="linear")')]),
    "caught schedule": (a.ENDING, EXACT, [("schedule.step()", "schedul.step()")]),
    "caught save 2": (a.ENDING, EXACT, [('save("last.pt")', 'save("last.pt", 1)')]),
    "append": (a.ENDING, EXACT, [('open("log.csv", "a")', 'open("log.csv", "w")')]),
    "extra draw": (
        a.ENDING,
        EXACT,
        [("        numbers.shuffle(order)", "        numbers.shuffle(order); numbers.random()")],
    ),
    "extra draw np": (a.ENDING, EXACT, [("    return 0\n", "    rng.normal()\n    return 0\n")]),
    "exit 3": (a.ENDING, EXACT, [("    return 0\n", "    return 3\n")]),
    "one epoch less": (a.ENDING, EXACT, [("range(4)", "range(3)")]),
    "stop at once": (
        a.ENDING,
        EXACT,
        [
            (
                "        try:\n            save(",
                "        if epoch == 3:\n            os._exit(0)\n        try:\n            save(",
            )
        ],
    ),
    "skips": (
        a.ENDING,
        EXACT,
        [
            (
                "                loss.backward()\n",
                "                loss.backward()\n                if index == 5: raise RuntimeError()\n",
            )
        ],
    ),
    "counts": (a.ENDING, EXACT, [('counts["steps"] += 1', 'counts["steps"] += 2')]),
    "checkpoint without counts": (a.ENDING, EXACT, [('"counts": counts}', '"counts": {}}')]),
    "milestone": (a.ENDING, EXACT, [("milestones=[6]", "milestones=[7]")]),
    "max of ranks": (a.GROUP, EXACT, [("dist.ReduceOp.SUM", "dist.ReduceOp.MAX")]),
    "world": (a.GROUP, EXACT, [("mean /= dist.get_world_size()", "mean /= dist.get_world_size() + 1")]),
    "rank": (a.GROUP, EXACT, [("dist.get_rank() == 0 and", "dist.get_rank() <= 1 and")]),
    "norm of halves": (a.GROUP, EXACT, [("float(grad.norm())", "float(grad.norm(1))")]),
    "momentum": (a.GROUP, EXACT, [("momentum=None", "momentum=0.1")]),
    "backward order": (a.GROUP, EXACT, [("round(mean.item(), 3)", "round(loss.item() / 2, 3)")]),
}
RIGHT: Cases = {
    "workers": (
        a.LOADED,
        EXACT,
        [("shuffle=False, drop_last=False)", "shuffle=False, drop_last=False, pin_memory=False)")],
    ),
    "inference": (a.LOADED, EXACT, [("with torch.no_grad():", "with torch.inference_mode():")]),
    "clone best": (
        a.LOADED,
        EXACT,
        [
            (
                "best = copy.deepcopy(net.state_dict())",
                "best = {name: value.clone() for name, value in net.state_dict().items()}",
            )
        ],
    ),
    "f-string": (a.WRITING, EXACT, [('log.info("loss %.4f", value)', 'log.info(f"loss {value:.4f}")')]),
    "tolist": (a.WRITING, EXACT, [("value = loss.item()", "value = loss.detach().item()")]),
    "clone detach": (a.WRITING, EXACT, [("net.weight.detach().clone()", "net.weight.clone().detach()")]),
    "functional same": (
        a.OWN,
        EXACT,
        [
            (
                "for name, slope in slopes(weights, x, y).items():",
                "found = slopes(weights, x, y)\n    for name, slope in found.items():",
            )
        ],
    ),
    "data": (a.BYHAND, EXACT, [("each -= self.rate * speed", "each.sub_(self.rate * speed)")]),
    "none": (a.BYHAND, EXACT, [("each.grad.zero_()", "each.grad = torch.zeros_like(each.grad)")]),
    "detach": (a.SWA, EXACT, [("out.detach().mean(0)", "out.mean(0).detach()")]),
    "zero": (a.SWA, EXACT, [("optimizer.zero_grad(set_to_none=True)", "optimizer.zero_grad()")]),
    "path": (
        a.ENDING,
        EXACT,
        [
            (
                'torch.save({"net": net.state_dict(), "counts": counts}, name)',
                'kept = {"net": net.state_dict(), "counts": counts}\n    torch.save(kept, name)',
            )
        ],
    ),
    "with": (
        a.ENDING,
        EXACT,
        [
            (
                "            x = torch.from_numpy(rng.normal(size=(4, 3))).float() + index",
                "            x = torch.as_tensor(rng.normal(size=(4, 3))).float() + index",
            )
        ],
    ),
    "penalty": (
        a.GROUP,
        EQUIVALENT,
        [("sum(p.square().sum() for p in body.parameters())", "sum((p * p).sum() for p in body.parameters())")],
    ),
    "mean": (a.GROUP, EXACT, [("mean = loss.detach().clone()", "mean = loss.clone().detach()")]),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_is_never_kept(folder: Path, case: str) -> None:
    text, promise, wrong = WRONG[case]
    result = changed(folder, text, edited(text, *wrong), promise)
    found = verdicts(result)
    assert found, case
    assert "kept" not in found.values(), [(r.verdict.value, r.why) for r in result.rewrites]


@pytest.mark.parametrize("case", RIGHT)
def test_right_is_never_broken(folder: Path, case: str) -> None:
    text, promise, right = RIGHT[case]
    result = changed(folder, text, edited(text, *right), promise)
    # Without a backward and a step there is nothing to compare.
    wanted = "not judged" if text is a.OWN else "kept"
    assert set(verdicts(result).values()) == {wanted}, [(r.verdict.value, r.why) for r in result.rewrites]
