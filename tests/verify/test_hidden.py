"""Wrong changes that hide from the numbers of a short run are never kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.verify import hidden
from tests.verify.judging.test_verdicts import changed, edited, verdicts

pytestmark = pytest.mark.slow

Edit = tuple[str, str]
BEFORE_MODEL = "model = nn.Sequential("
HIDING = "    os.chmod(__file__, 0o600)\n    optimizer.zero_grad()"
THERE = "    os.makedirs(runs, exist_ok=True)\n    optimizer.zero_grad()"
STEP, TAKEN = "        optimizer.step()\n", "    x, y = item\n"
#: name: script, edits.
WRONG: dict[str, tuple[str, list[Edit]]] = {
    "a fallback that nothing needed": (
        hidden.CLASSIFIER,
        [('settings.get("smooth", 0)', 'settings.get("smooth", len(settings))')],
    ),
    "a default that no call takes": (
        hidden.CLASSIFIER,
        [("def groups(model, decay=1e-4)", "def groups(model, decay=settings['rate'])")],
    ),
    "errors that are suppressed": (
        hidden.CLASSIFIER,
        [(STEP, "        with contextlib.suppress(Exception): optimizer.step()\n")],
    ),
    "errors that a function ends": (hidden.CLASSIFIER, [(STEP, "        careful(optimizer.step)\n")]),
    "a coarser kind of number": (
        hidden.CLASSIFIER,
        [(BEFORE_MODEL, f"torch.backends.cuda.matmul.allow_tf32 = True\n{BEFORE_MODEL}")],
    ),
    "one thread": (hidden.CLASSIFIER, [(BEFORE_MODEL, f"torch.set_num_threads(1)\n{BEFORE_MODEL}")]),
    "a variable of the environment": (
        hidden.CLASSIFIER,
        [(BEFORE_MODEL, f"os.environ['CUDA_LAUNCH_BLOCKING'] = '1'\n{BEFORE_MODEL}")],
    ),
    "a device": (hidden.CLASSIFIER, [("x.to(device), y.to(device)", "x.to(device), y")]),
    "a schedule further on": (hidden.CLASSIFIER, [("0.5 ** (step // 30)", "0.5 ** (step // (30 + step))")]),
    "names in capitals": (
        hidden.CLASSIFIER,
        [('"names": list(names)}', '"names": [name.upper() for name in names]}')],
    ),
    "keys of another kind": (hidden.CLASSIFIER, [("history[epoch] =", "history[str(epoch)] =")]),
    "names in another order": (hidden.CLASSIFIER, [("list(names)", "list(names)[::-1]")]),
    "the members of a set": (hidden.FEED, [('f"{step} of {which}"', 'f"{which} of {step}"')]),
    "an iterator that is further on": (hidden.FEED, [("which = next(order)", "which = next(order); next(order)")]),
    "letters that are skipped": (hidden.FEED, [("    step += 1\n", "    step += 1\n    next(letters)\n")]),
    "another mark between numbers": (hidden.FEED, [("csv.writer(log)", "csv.writer(log, delimiter=';')")]),
    "a text in a checkpoint": (hidden.FEED, [('"arch": "small"', '"arch": "small"[:step // 2]')]),
    "texts of a checkpoint in another order": (hidden.FEED, [('["a", "b"]', 'sorted(["a", "b"], reverse=True)')]),
    "an array in a checkpoint": (hidden.FEED, [("np.arange(3) * float(loss)", "np.arange(3) + float(loss)")]),
    "a set in a checkpoint": (hidden.FEED, [('"seen": seen}', '"seen": seen - {"0 of 0"}}')]),
    "no less than nothing": (hidden.FEED, [("F.mse_loss(net(x), y)", "F.mse_loss(net(x), y).abs()")]),
    "no infinities": (hidden.FEED, [("F.mse_loss(net(x), y)", "torch.nan_to_num(F.mse_loss(net(x), y))")]),
    "at most so many": (hidden.FEED, [(TAKEN, f"{TAKEN}    x = x[:128]\n")]),
    "as many as there are letters": (hidden.FEED, [(TAKEN, f"{TAKEN}    x, y = x[: len('batches')], y\n")]),
    "all that are one": (hidden.FEED, [(TAKEN, f"{TAKEN}    x = x.squeeze()\n")]),
    "a view that fits this batch alone": (
        hidden.CLASSIFIER,
        [("F.cross_entropy(model(x), y,", "F.cross_entropy(model(x.view(8, -1)), y,")],
    ),
    "a size that a name has": (
        hidden.CLASSIFIER,
        [("F.cross_entropy(model(x), y,", "F.cross_entropy(model(x.reshape((train.batch_size, 8))), y,")],
    ),
    "who may read a file": (hidden.SAVING, [("    optimizer.zero_grad()", HIDING)]),
    "an empty folder": (hidden.FEED, [("log = open(", 'os.makedirs("plots/late")\nlog = open(')]),
    "a file that is gone": (hidden.FEED, [("log = open(", "os.remove(__file__)\nlog = open(")]),
    "a link": (hidden.FEED, [("log = open(", 'os.symlink("kept.pt", "latest.pt")\nlog = open(')]),
    "a second name of a file": (hidden.FEED, [("log = open(", 'os.link(__file__, "copy.txt")\nlog = open(')]),
    "modes of files to come": (hidden.FEED, [("log = open(", "os.umask(0o2)\nlog = open(")]),
    "graphs no more": (
        hidden.FEED,
        [("    step += 1\n", "    step += 1\n    torch.set_grad_enabled(step < 20 or len(seen) < 20)\n")],
    ),
    "weights in a file of a made-up name": (
        hidden.SAVING,
        [("torch.save(net.state_dict()", "torch.save(nn.Linear(4, 2).state_dict()")],
    ),
    "one more file of a made-up name": (
        hidden.SAVING,
        [('dir=".")', 'dir=".")\n        torch.save(net.bias, tempfile.NamedTemporaryFile(delete=False, dir="."))')],
    ),
}
#: Right ones in the same places.
RIGHT: dict[str, tuple[str, list[Edit]]] = {
    "a fallback beside what is changed": (
        hidden.CLASSIFIER,
        [("loss = F.cross_entropy(model(x), y, label", "out = model(x)\n        loss = F.cross_entropy(out, y, label")],
    ),
    "a default that a call takes": (
        hidden.CLASSIFIER,
        [
            ("def groups(model, decay=1e-4)", "def groups(model, decay=1e-4, ending='bias')"),
            ('if n.endswith("bias")]', "if n.endswith(ending)]"),
            ('if not n.endswith("bias")]', "if not n.endswith(ending)]"),
        ],
    ),
    "a context that ends no errors": (
        hidden.CLASSIFIER,
        [(STEP, "        with torch.enable_grad(): optimizer.step()\n")],
    ),
    "devices as before": (
        hidden.CLASSIFIER,
        [("x, y = x.to(device), y.to(device)", "y, x = y.to(device), x.to(device)")],
    ),
    "the same set": (
        hidden.FEED,
        [('seen.add(f"{step} of {which}")', 'name = f"{step} of {which}"\n    seen.add(name)')],
    ),
    "the same letters": (hidden.FEED, [("next(letters)])", "letters.__next__()])")]),
    "the same checkpoint": (
        hidden.FEED,
        [('"means": np.arange(3) * float(loss)', '"means": float(loss) * np.arange(3)')],
    ),
    "files of made-up names": (hidden.SAVING, [("    optimizer.zero_grad()", "    net.zero_grad()")]),
    "a view that asks for the size": (
        hidden.CLASSIFIER,
        [("F.cross_entropy(model(x), y,", "F.cross_entropy(model(x.view(x.size(0), -1)), y,")],
    ),
    "a folder that is there already": (hidden.SAVING, [("    optimizer.zero_grad()", THERE)]),
    "a copy": (hidden.FEED, [(TAKEN, f"{TAKEN}    x = x.clone()\n")]),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_is_never_kept(folder: Path, case: str) -> None:
    text, wrong = WRONG[case]
    result = changed(folder, text, edited(text, *wrong), Promise.EXACT)
    told = [(r.verdict.value, r.why) for r in result.rewrites]
    assert told
    assert "kept" not in verdicts(result).values(), told


def test_names_that_are_made_up_break_nothing_that_did_not_run(folder: Path) -> None:
    result = changed(folder, hidden.SAVING, edited(hidden.SAVING, ('print("late")', 'print("later")')))
    # The line is brought to run, and then only its words differ.
    assert set(verdicts(result).values()) == {"not judged"}, [(r.verdict.value, r.why) for r in result.rewrites]


@pytest.mark.parametrize("case", RIGHT)
def test_right_is_kept(folder: Path, case: str) -> None:
    text, right = RIGHT[case]
    result = changed(folder, text, edited(text, *right), Promise.EXACT)
    assert set(verdicts(result).values()) == {"kept"}, [(r.verdict.value, r.why) for r in result.rewrites]
