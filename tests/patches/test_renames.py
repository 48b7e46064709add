"""Files that were renamed or removed since."""

from __future__ import annotations

import subprocess
from pathlib import Path

from codemods.patches.bundle import load
from codemods.patches.fitting import fit
from tests.patches.drift import now, recorded, states


def git(*arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


def test_renamed_twice_and_then_in_the_index() -> None:
    data = recorded()
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "1")
    Path("src").mkdir()
    for old, new in (("train.py", "fit.py"), ("fit.py", "src/fit.py")):
        git("mv", old, new)
        git("commit", "-qm", new)
    git("mv", "src/fit.py", "src/main.py")
    result = fit(load(data))
    assert states(result) == ["applied"] * 3
    assert result.notes == ("train.py is called src/main.py now",)
    assert {hunk.now[0] for hunk in result.hunks} == {"src/main.py"}
    assert "total += loss.item()" in now("src/main.py")


def test_removed() -> None:
    data = recorded()
    Path("train.py").unlink()
    result = fit(load(data))
    assert states(result) == ["refused"] * 3
    assert result.hunks[0].reason.startswith("is gone, and git knows no new name for it")


def test_below_another_root_only_some_paths(folder: Path) -> None:
    data = recorded()
    (folder / "copy").mkdir()
    (folder / "train.py").rename(folder / "copy" / "train.py")
    (folder / "other").mkdir()
    assert fit(load(data), root="copy", paths=["other"]).hunks == ()
    assert states(fit(load(data), root="copy", paths=["copy"])) == ["applied"] * 3
    assert "loss.item()" in now("copy/train.py")
