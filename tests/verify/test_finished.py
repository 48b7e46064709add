"""Wrong changes by hand in what a program has when it is over are never kept, right ones are."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.verify import finished
from tests.verify.judging.test_verdicts import changed, edited, verdicts

pytestmark = pytest.mark.slow

Edit = tuple[str, str]
#: name: script, edits.
WRONG: dict[str, tuple[str, list[Edit]]] = {
    "rates of epochs that do not come": (finished.INSIDE, [("options.rate / 5", "options.rate * 5")]),
    "weights of the last epoch": (
        finished.INSIDE,
        [("net.load_state_dict(kept)", "net.load_state_dict(net.state_dict())")],
    ),
    "the best of all": (finished.INSIDE, [("best = mean.total\n", "best = mean.total + best\n")]),
    "what is right": (finished.INSIDE, [("argmax(1) == y", "argmin(1) == y")]),
    "errors that a context ends": (finished.INSIDE, [("        return False\n", "        return kind is not None\n")]),
    "an option that is none": (finished.INSIDE, [("    size: int = 6\n", "    size = 6\n")]),
    "the shape of an array": (
        finished.READERS,
        [("w=net.weight.detach().numpy()", "w=net.weight.detach().numpy()[None]")],
    ),
    "the shape of a tensor": (
        finished.READERS,
        [('{"w": net.weight.detach()}', '{"w": net.weight.detach().flatten()}')],
    ),
    "the form of a file": (finished.READERS, [("pickle.dump(rows, file)", "torch.save(rows, file)")]),
    "the folder of a program": (finished.READERS, [('cwd="out", env', "env")]),
    "the environment of a program": (finished.READERS, [("env=settings, ", "")]),
    "out of a condition": (
        finished.BLOCKS,
        [("            norms.append(loss.item())\n", "        norms.append(loss.item())\n")],
    ),
    "out of a finally": (
        finished.BLOCKS,
        [('    norms.append(0.0)\n    print("end"', '    pass\nnorms.append(0.0)\nprint("end"')],
    ),
    "into a condition": (
        finished.BLOCKS,
        [
            ("        optimizer.zero_grad()\n        loss.backward()\n", "        optimizer.zero_grad()\n"),
            ("        if torch.isfinite(loss):\n", "        if torch.isfinite(loss):\n            loss.backward()\n"),
        ],
    ),
}
RIGHT: dict[str, tuple[str, list[Edit]]] = {
    "another name": (
        finished.INSIDE,
        [("            x = torch.randn(8, 4)\n", "            x = inputs = torch.randn(8, 4)\n")],
    ),
    "a batch that is reshaped": (
        finished.INSIDE,
        [("loss = F.cross_entropy(net(x), y)", "x = x.clone()\n                loss = F.cross_entropy(net(x), y)")],
    ),
    "a variable of each turn": (finished.INSIDE, [("(net(x).argmax(1) == y)", "net(x).argmax(1).eq(y)")]),
    "a copy by other words": (
        finished.INSIDE,
        [
            (
                "            kept = copy.deepcopy(net.state_dict())\n",
                "            kept = {name: value.clone() for name, value in net.state_dict().items()}\n",
            )
        ],
    ),
    "the same arrays": (finished.READERS, [("w=net.weight.detach().numpy()", "w=net.weight.data.numpy()")]),
    "a path by parts": (finished.READERS, [('open("out/rows.pkl"', 'open(os.path.join("out", "rows.pkl")')]),
    "the folder it is in": (finished.READERS, [('cwd="out", env', 'cwd=os.path.join("out"), env')]),
    "out of a block without gradients": (
        finished.BLOCKS,
        [("            norms.append(size.item())\n", "        norms.append(size.item())\n")],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_is_never_kept(folder: Path, case: str) -> None:
    text, wrong = WRONG[case]
    result = changed(folder, text, edited(text, *wrong), Promise.EXACT)
    told = [(r.verdict.value, r.why) for r in result.rewrites]
    assert told
    assert "kept" not in verdicts(result).values(), told


@pytest.mark.parametrize("case", RIGHT)
def test_right_is_kept(folder: Path, case: str) -> None:
    text, right = RIGHT[case]
    result = changed(folder, text, edited(text, *right), Promise.EXACT)
    assert set(verdicts(result).values()) == {"kept"}, [(r.verdict.value, r.why) for r in result.rewrites]


def test_what_the_program_writes_itself_breaks_nothing(folder: Path) -> None:
    other = edited(finished.READERS, ("pickle.dump(rows, file)", "file.write(pickle.dumps(rows))"))
    result = changed(folder, finished.READERS, other, Promise.EXACT)
    assert set(verdicts(result).values()) == {"not judged"}
