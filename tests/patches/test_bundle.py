"""The record of a review: what git takes of it, and what stands in it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from codemods.patches.bundle import BundleError, blob_of, dump, load, save
from codemods.patches.fitting import fit
from codemods.rewriting.apply import apply
from codemods.source.options import Options
from codemods.source.targets import read_targets
from codemods.terms.errors import UserError
from tests.patches.drift import SCRIPT, applied, now, recorded, states


@pytest.mark.parametrize("tool", ["git", "patch"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_other_tools_take_it_as_it_is(tool: str, line_end: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    Path("sub").mkdir()
    for path in ("train.py", "sub/with space.py", "gr\u00fcn.py"):
        Path(path).write_text(SCRIPT.replace("\n", line_end), newline="")
    result = apply(read_targets(["."]).sources, options=Options(), dry_run=True)
    data = dump(result, options=Options())
    command = ["git", "apply", "--whitespace=nowarn"] if tool == "git" else ["patch", "-p1", "--binary"]
    taken = subprocess.run(command, input=data, capture_output=True, check=False)
    assert taken.returncode == 0, taken.stderr.decode() + taken.stdout.decode()
    assert b"fuzz" not in taken.stdout + taken.stderr
    assert {one.source.path: one.new for one in result.rewrites} == {
        path: Path(path).read_bytes().decode() for path in ("train.py", "sub/with space.py", "gr\u00fcn.py")
    }


def test_git_can_merge_it_three_ways() -> None:
    data = recorded()
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], check=True)
    Path("train.py").write_text(SCRIPT.replace("optimizer.step()", "optimizer . step()"))
    subprocess.run(["git", "add", "."], check=True)
    taken = subprocess.run(["git", "apply", "--3way"], input=data, capture_output=True, check=False)
    assert taken.returncode in (0, 1), taken.stderr
    assert b"does not exist in the index" not in taken.stderr
    assert b"lacks the necessary blob" not in taken.stderr


def test_blobs_are_those_of_git() -> None:
    assert blob_of(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_it_says_what_was_reviewed() -> None:
    head = recorded().decode().split("\n#codemod", 1)[0]
    assert "# 2. train.py:23 surplus-retain-graph (exact)\n" in head
    assert "#    retain_graph=True keeps the graph" in head


def test_what_is_read_back_is_what_was_recorded() -> None:
    bundle = load(recorded(target_torch="1.13"))
    assert bundle.ours
    assert bundle.options.target_torch == "1.13"
    assert [change.rule for change in bundle.changes] == [
        "grad-in-evaluation",
        "surplus-retain-graph",
        "attached-loss-total",
    ]
    (file,) = (bundle.files or {}).values()
    assert [hunk.about.function for hunk in file.hunks] == ["validate", "train", "train"]
    assert bundle.changes[2].findings[0].statement == "total += loss"


def test_nothing_to_change_is_a_bundle_of_nothing() -> None:
    data = recorded("x = 1\n")
    assert data.startswith(b"# A patch of codemod")
    assert fit(load(data)).hunks == ()


def test_files_outside_the_working_directory_cannot_be_recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "train.py").write_text(SCRIPT)
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    with pytest.raises(BundleError, match="outside the working directory"):
        dump(
            apply(read_targets([str(folder / "train.py")]).sources, options=Options(), dry_run=True), options=Options()
        )


def test_a_translation_is_not_recorded() -> None:
    pytest.importorskip("fissix")
    with pytest.raises(BundleError, match="no translation from Python 2"):
        recorded(SCRIPT + "print 'done'\n", python2=True)


def test_a_bundle_that_cannot_be_written_is_an_error_and_leaves_nothing(folder: Path) -> None:
    result = applied(SCRIPT)
    (folder / "closed").mkdir()
    for place in (folder / "closed", folder / "missing" / "x.patch"):
        with pytest.raises(UserError, match="cannot write"):
            save(result, place, options=Options())
    assert sorted(path.name for path in folder.iterdir()) == ["closed", "train.py"]


def test_imports_that_several_changes_need_come_with_the_first_of_them() -> None:
    text = SCRIPT.replace("import torch\nfrom torch import nn\n", "from torch import nn, ones, optim, randn\n")
    text = text.replace("torch.optim", "optim").replace("torch.randn", "randn").replace("torch.ones", "ones")
    text = text.replace(
        "def train",
        "def score(batches):\n    model.eval()\n    return sum(float(model(x).sum()) for x, _ in batches)\n\n\n"
        "def train",
    ).replace("print(validate(data))", "print(validate(data), score(data))")
    data = recorded(text)
    files = load(data).files or {}
    shared = [hunk for hunk in files["train.py"].hunks if len(hunk.about.changes) > 1]
    assert shared, data.decode()
    # One of the two that need it is gone: the other is made, with the import.
    drifted = text.replace("    model.eval()\n    return sum", "    return sum(1 for _ in batches)\n    return sum")
    Path("train.py").write_text(drifted)
    result = fit(load(data))
    assert "refused" in states(result)
    assert "@torch.no_grad()\ndef validate" in now() or "no_grad()\ndef validate" in now()
    compile(now(), "train.py", "exec")
    assert now().count("no_grad()") == 1
