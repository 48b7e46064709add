"""Wrong changes by hand are never kept, right ones never broken; each in a script of an awkward kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.verify import hands
from tests.verify.judging.test_verdicts import changed, edited, line, rewritten, verdicts

pytestmark = pytest.mark.slow

Edit = tuple[str, str]
EXACT, EQUIVALENT, REPAIR, BEHAVIOUR = Promise.EXACT, Promise.EQUIVALENT, Promise.REPAIR, Promise.BEHAVIOUR

FORM = ("loss.data[0]", "loss.item()")
CUT = ("    # The state goes on.\n", "    hidden = hidden.detach()\n")
GOES_ON = edited(hands.CARRIED, ("    # Here it comes.", "    # Cut: state = None"))
#: name: script, promise, wrong edits, right ones in the same file.
WRONG: dict[str, tuple[str, Promise, list[Edit], list[Edit]]] = {
    "an average of weights that nothing reads": (
        hands.TEACHER,
        EXACT,
        [("alpha=1 - self.decay", "alpha=self.decay")],
        [],
    ),
    "a teacher that follows faster": (hands.TEACHER, EXACT, [("lerp_(fast, 0.01)", "lerp_(fast, 0.02)")], []),
    "a teacher that follows no more": (
        hands.TEACHER,
        EXACT,
        [("zip(teacher.parameters(), student.parameters())", "zip(teacher.parameters(), teacher.parameters())")],
        [],
    ),
    "the first is the best whatever it is": (
        hands.STOPPING,
        EXACT,
        [("if value <= stopper.best", "if epoch == 0 or value <= stopper.best")],
        [],
    ),
    "patience": (hands.STOPPING, EXACT, [("self.bad += 1", "self.bad += 2")], []),
    "the best of weights": (hands.STOPPING, EXACT, [("if value <= stopper.best", "if value >= stopper.best")], []),
    "the best, where two are as good": (hands.STOPPING, EXACT, [("if value < self.best", "if value <= self.best")], []),
    "a mean of losses": (hands.STOPPING, EXACT, [("value / len(held)", "value / len(history or held)")], []),
    "a validation of fewer batches": (hands.STOPPING, EXACT, [("in held:", "in held[:2]:")], []),
    "a scaler that is told nothing": (hands.SCALED, EXACT, [("    scaler.update()\n", "")], []),
    "a rate under half precision": (
        hands.SCALED,
        EQUIVALENT,
        [("AnnealingLR(optimizer, 40)", "AnnealingLR(optimizer, 43)")],
        [],
    ),
    "a threshold of gradients": (hands.SCALED, EXACT, [("parameters(), 0.5)", "parameters(), 0.4)")], []),
    "gradients clipped before they are unscaled": (hands.SCALED, EXACT, [("    scaler.unscale_(optimizer)\n", "")], []),
    "no half precision": (hands.SCALED, EXACT, [("dtype=torch.bfloat16", "dtype=torch.bfloat16, enabled=False")], []),
    "a solver's history": (hands.SOLVER, EXACT, [("history_size=5", "history_size=1")], []),
    "a solver's boundary": (hands.SOLVER, EXACT, [("10 * boundary", "10 * boundary.detach()")], []),
    "a curve of other numbers": (hands.SOLVER, EXACT, [("curve.append(loss)", "curve.append(loss.item() + 1)")], []),
    "calls that are not counted": (hands.SOLVER, EXACT, [("    calls += 1\n", "    calls += 2\n")], []),
    "a backward of one's own": (hands.CUSTOM, EXACT, [("0.1 * (1 - inside)", "0.2 * (1 - inside)")], []),
    "a backward of one's own, no more": (hands.CUSTOM, EQUIVALENT, [("-ctx.weight * grad", "ctx.weight * grad")], []),
    "a crash, and a sign behind it": (hands.GAN, EXACT, [("- 1).square()", "+ 1).square()")], [FORM]),
    "a crash, and a player who learns less": (
        hands.GAN,
        EXACT,
        [("F.softplus(-critic(fake)).mean()", "F.softplus(-critic(fake.detach())).mean()")],
        [FORM],
    ),
    "a crash and what follows it, in one": (
        hands.GAN,
        EXACT,
        [
            (
                "log.append(loss.data[0])",
                "log.append(loss.item())\n    if turn > 3: of_maker.param_groups[0]['lr'] = 1.0",
            )
        ],
        [],
    ),
    "a crash and what follows it, in one repair": (
        hands.GAN,
        REPAIR,
        [
            (
                "log.append(loss.data[0])",
                "log.append(loss.item())\n    if turn > 3:\n        of_maker.param_groups[0]['lr'] = 1.0",
            )
        ],
        [],
    ),
    "a crash and what it computes, in one": (
        hands.GAN,
        EXACT,
        [("log.append(loss.data[0])", "log.append(loss.item() * (turn + 1))")],
        [],
    ),
    "a crash before everything": (
        hands.EARLY,
        EXACT,
        [
            (
                "torch.zeros(3).no_such_form()\nnet = nn.Linear(3, 1)",
                "torch.zeros(3)\nnet = nn.Linear(3, 1).requires_grad_()\nnet.weight.data.zero_()",
            )
        ],
        [],
    ),
    "one batch less to a step": (hands.GATHERED, EXACT, [("gather = 4", "gather = 3")], []),
    "an order of batches": (
        hands.GATHERED,
        EXACT,
        [
            (
                "order = torch.randperm(count, generator=numbers)",
                "order = torch.arange(count); torch.randperm(count, generator=numbers)",
            )
        ],
        [],
    ),
    "gradients that are not cleared": (
        hands.GATHERED,
        EQUIVALENT,
        [("            optimizer.zero_grad()\n", "            index == 3 and optimizer.zero_grad()\n")],
        [],
    ),
    "what was seen": (hands.GATHERED, EXACT, [("seen += len(x)", "seen += 1")], []),
    "numbers that are drawn and thrown away": (
        hands.GATHERED,
        EXACT,
        [("        seen += len(x)", "        random.random(); seen += len(x)")],
        [],
    ),
    "a memory of other actions": (
        hands.KEEPING,
        EXACT,
        [
            ("(state.copy(), int(action), reward)", "(state.copy(), int(scores.argmax()), reward)"),
        ],
        [],
    ),
    "a pickle of other rewards": (
        hands.KEEPING,
        EXACT,
        [('"rewards": rewards}, file', '"rewards": rewards[1:]}, file')],
        [],
    ),
    "a count that is one too large": (hands.KEEPING, EXACT, [("1000000 + episode", "1000001 + episode")], []),
    "a checkpoint without the optimizer's state": (
        hands.KEEPING,
        EXACT,
        [('"optimizer": optimizer.state_dict()', '"optimizer": torch.optim.Adam(policy.parameters()).state_dict()')],
        [],
    ),
    "a sign of the smaller loss": (hands.UNEVEN, EQUIVALENT, [("small(x).cos()", "(-small(x).cos())")], []),
    "a buffer beside noise": (
        hands.UNEVEN,
        EQUIVALENT,
        [("    light.backward()", "    norm.running_var.mul_(1.5); light.backward()")],
        [],
    ),
    "a smaller loss that is not learned": (
        hands.UNEVEN,
        EQUIVALENT,
        [("small(x).cos()", "(0.9 * small(x)).cos()")],
        [],
    ),
    "errors of a forward, caught": (
        hands.SKIPPING,
        BEHAVIOUR,
        [("    x = torch.randn(2, 4)", "    x = torch.randn(2, 4 + step % 2)")],
        [CUT],
    ),
    "errors of a loss, caught": (
        hands.SKIPPING,
        REPAIR,
        [("    # The state goes on.\n", "    hidden = hidden.detach()[:, :step % 2 * 8]\n")],
        [],
    ),
    "errors of other kinds, caught": (
        edited(hands.SKIPPING, ("torch.randn(2, 4)", "torch.randn(2, 4 + step % 2)"), CUT),
        EXACT,
        [("except RuntimeError", "except Exception")],
        [],
    ),
    "a second model that a thread trains": (
        hands.THREADS,
        EXACT,
        [("    thread.start()\n", "    optimizer.param_groups[0]['lr'] /= 2\n    thread.start()\n")],
        [],
    ),
    "a file before os._exit": (hands.THREADS, EXACT, [('"mean", mean', '"mean", mean * 2')], []),
    "one rank's data": (hands.RANKS, EXACT, [("x = torch.randn(8, 4)", "x = torch.randn(8, 4) * (1 + rank)")], []),
    "one rank's total": (
        hands.RANKS,
        EXACT,
        [("shared[rank] = float(total)", "shared[rank] = float(total) + rank")],
        [],
    ),
    "a state that is cut, and a buffer before that": (
        hands.CARRIED,
        REPAIR,
        [("    # Here it comes.\n", "    state = tuple(part.detach() for part in state); norm.running_mean.add_(1)\n")],
        [],
    ),
    "a state that is cut, and one more number before that": (
        hands.CARRIED,
        REPAIR,
        [("    # Here it comes.\n", "    state = tuple(part.detach() for part in state); torch.randn(1)\n")],
        [],
    ),
    "a state that is cut, and another rate": (
        hands.CARRIED,
        REPAIR,
        [
            (
                "    # Here it comes.\n",
                "    state = tuple(part.detach() for part in state); optimizer.param_groups[0]['lr'] = 0.4\n",
            )
        ],
        [],
    ),
    "a side that is not taken": (
        hands.SIDES,
        EXACT,
        [("x * scale if scale is not None else x", "x / scale if scale is not None else x")],
        [],
    ),
    "a condition that is the same so far": (
        hands.SIDES,
        EXACT,
        [("part is not None and part.requires_grad", "part is not None or part.requires_grad")],
        [],
    ),
    "a body on the line of its condition": (hands.SIDES, EXACT, [("net.zero_grad()", "net.requires_grad_()")], []),
    "a body of a lambda": (hands.SIDES, EXACT, [("grad * 0.5", "grad + grad")], []),
    "a case that does not come": (hands.SIDES, EXACT, [("% 1000 == 999", "% 1000 == 998")], []),
    "a handler that does not come": (hands.SIDES, EXACT, [("except ZeroDivisionError", "except ArithmeticError")], []),
    "a bound that is far away": (hands.SIDES, EXACT, [("maxlen=200", "maxlen=100")], []),
    "a choice of the other": (hands.SIDES, EXACT, [("min(left, 500)", "min(left, 500 - step)")], []),
    "a comparison that comes out the same": (hands.SIDES, EXACT, [("enabled=step >= 0", "enabled=step < 5000")], []),
    "a loss that became a module, and a validation of other values": (
        edited(hands.STOPPING, ("history = []", "history = []\nmean = nn.MSELoss()")),
        EXACT,
        [("        for x, y in held:\n", "        for y, x in [(y, 2 * x) for x, y in held]:\n")],
        [("F.mse_loss(net(x), y).backward()", "mean(net(x), y).backward()")],
    ),
    "an evaluation that stays": (hands.QUIET, EXACT, [("    net.train()\n", "")], []),
    "an evaluation of fewer batches": (hands.QUIET, EXACT, [("for x, y in test:", "for x, y in test[:5]:")], []),
    "an evaluation that counts otherwise": (hands.QUIET, EXACT, [("argmax(1)", "argmin(1)")], []),
}

#: name: script, promise, edits.
RIGHT: dict[str, tuple[str, Promise, list[Edit]]] = {
    "an average by another form": (hands.TEACHER, EXACT, [(".detach().clone() for", ".clone().detach() for")]),
    "a teacher without gradients": (
        hands.TEACHER,
        EXACT,
        [("teacher = copy.deepcopy(student)", "teacher = copy.deepcopy(student).requires_grad_(False)")],
    ),
    "zero_grad of the module": (
        hands.TEACHER,
        EXACT,
        [("        optimizer.zero_grad()\n", "        student.zero_grad()\n")],
    ),
    "a loss that became a module": (
        hands.STOPPING,
        EXACT,
        [
            (
                "        F.mse_loss(net(x), y).backward()\n",
                "        loss = nn.MSELoss()(net(x), y)\n        loss.backward()\n",
            )
        ],
    ),
    "inference mode": (hands.STOPPING, EXACT, [("with torch.no_grad()", "with torch.inference_mode()")]),
    "gradients that are cleared a line earlier": (
        hands.TEACHER,
        EXACT,
        [
            (
                "        loss = F.cross_entropy(student(x), y)\n        optimizer.zero_grad()\n",
                "        optimizer.zero_grad()\n        loss = F.cross_entropy(student(x), y)\n",
            )
        ],
    ),
    "a helper variable": (
        hands.STOPPING,
        EXACT,
        [("history.append(value / len(held))", "mean = value / len(held)\n    history.append(mean)")],
    ),
    "a flag that is the default": (
        hands.SCALED,
        EXACT,
        [("    optimizer.zero_grad()\n", "    optimizer.zero_grad(set_to_none=True)\n")],
    ),
    "numbers on the curve": (hands.SOLVER, EXACT, [("curve.append(loss)", "curve.append(loss.item())")]),
    "a detached curve": (hands.SOLVER, EXACT, [("curve.append(loss)", "curve.append(loss.detach())")]),
    "a gradient asked for at once": (
        hands.CUSTOM,
        EXACT,
        [("    (loss + adversarial).backward()", "    torch.autograd.backward([loss + adversarial])")],
    ),
    "two losses, two backwards": (
        hands.CUSTOM,
        EQUIVALENT,
        [("    (loss + adversarial).backward()", "    loss.backward(retain_graph=True)\n    adversarial.backward()")],
    ),
    "an old form": (hands.GAN, REPAIR, [FORM]),
    "an old form and a list": (hands.GAN, REPAIR, [("log.append(loss.data[0])", "log.append(loss.item())")]),
    "gathered by another loop": (
        hands.GATHERED,
        EXACT,
        [("(index + 1) % gather == 0", "index % gather == gather - 1")],
    ),
    "a checkpoint by another name of the same": (hands.KEEPING, EXACT, [("state.copy()", "np.array(state)")]),
    "sums of losses": (
        hands.UNEVEN,
        EQUIVALENT,
        [("    heavy.backward(retain_graph=True)\n    light.backward()", "    (heavy + light).backward()")],
    ),
    "a state that is cut": (hands.SKIPPING, REPAIR, [CUT]),
    "threads with another name": (
        hands.THREADS,
        EXACT,
        [("        optimizer.zero_grad()\n", "        net.zero_grad()\n")],
    ),
    "a total of numbers in two ranks": (hands.RANKS, EXACT, [("total += loss", "total += loss.item()")]),
    "a state that is cut in text": (
        hands.CARRIED,
        REPAIR,
        [("    # Here it comes.\n", "    state = tuple(part.detach() for part in state)\n")],
    ),
    "a comprehension by another name": (
        hands.SIDES,
        EXACT,
        [("kept = [part for part in parts if", "kept = [part for part in list(parts) if")],
    ),
    "both sides with a helper around them": (
        hands.SIDES,
        EXACT,
        [("return x * scale if scale is not None else x", "return (x * scale if scale is not None else x).clone()")],
    ),
    "an evaluation without graphs": (
        hands.QUIET,
        EXACT,
        [
            (
                "    for x, y in test:\n        out = net(x)",
                "    for x, y in test:\n        with torch.no_grad(): out = net(x)",
            )
        ],
    ),
}
#: Scripts of which our own rules change something, or nothing.
RULES = [
    "TEACHER",
    "STOPPING",
    "SCALED",
    "SOLVER",
    "CUSTOM",
    "GAN",
    "GATHERED",
    "KEEPING",
    "SKIPPING",
    "RANKS",
    "CARRIED",
    "QUIET",
]


@pytest.mark.parametrize("case", WRONG)
def test_wrong_is_never_kept(folder: Path, case: str) -> None:
    text, promise, wrong, right = WRONG[case]
    result = changed(folder, text, edited(text, *wrong, *right), promise)
    found = verdicts(result)
    others = {line(text, old.strip("\n").split("\n")[0].strip()) for old, _ in right}
    assert found, case
    for number, verdict in found.items():
        told = [(r.finding.span.line, r.verdict.value, r.why) for r in result.rewrites]
        assert verdict != ("broken" if number in others else "kept"), told


@pytest.mark.parametrize("case", RIGHT)
def test_right_is_never_broken(folder: Path, case: str) -> None:
    text, promise, right = RIGHT[case]
    result = changed(folder, text, edited(text, *right), promise)
    assert set(verdicts(result).values()) == {"kept"}, [(r.verdict.value, r.why) for r in result.rewrites]


@pytest.mark.parametrize("name", RULES)
def test_our_own_rewrites_are_never_broken(folder: Path, name: str) -> None:
    result = rewritten(folder, getattr(hands, name))
    assert "broken" not in verdicts(result).values(), [(r.verdict.value, r.why) for r in result.rewrites]
