"""``codemod apply``: the tree, the diff, and the programs that take it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import Codemod

TREE = {
    "plain.py": b"import torch\n\nx = WRONG\n\ny = 2\n",
    "windows.py": b"import torch\r\n\r\nx = WRONG\r\ny = 2\r\n",
    "mixed.py": b"a = 1\r\nb = 2\nx = WRONG\r\nc = 3\nd = 4\r\n",
    "lone.py": b"a = 1\rb = 2\rx = WRONG\rc = 3\n",
    "marked.py": b"\xef\xbb\xbfx = WRONG\ny = 2\n",
    "latin.py": b"# coding: latin-1\nn = 'caf\xe9'\nx = WRONG  # \xe9t\xe9\n",
    "gbk.py": "# coding: gbk\nn = '\u6d4b\u8bd5'\nx = WRONG  # \u4e2d\n".encode("gbk"),
    "ends.py": b"a = 1\nx = WRONG",
    "form.py": b"a = 1\n\x0c\nx = WRONG\n\x0cb = 2\n",
    "separators.py": "s = '\u2028 \x85'\nx = WRONG\n".encode(),
    "with space.py": b"x = WRONG\n",
    'quo"te.py': b"x = WRONG\n",
    "gr\u00fcn.py": b"x = WRONG\n",
    "sub/deep er/far.py": b"if 1:\n    x = WRONG\n" + b"    y = 1\n" * 20 + b"    z = WRONG\n",
    "untouched.py": b"x = 1\n",
}


def lay(folder: Path, names: Sequence[str] = tuple(TREE)) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(TREE[name])


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*.py"))
        if ".git" not in path.parts
    }


MENDED = {name: data.replace(b"WRONG", b"right") for name, data in TREE.items()}


def test_rewrites_in_place(codemod: Codemod, folder: Path) -> None:
    lay(folder)
    ran = codemod("apply", ".")
    assert (ran.status, ran.err) == (0, "")
    assert content(folder) == MENDED
    assert "15 files, 15 findings fixed in 14 files, 0 left" in ran.out.decode()
    assert "0 findings fixed" in codemod("apply", ".").out.decode()


@pytest.mark.parametrize("tool", ["git", "patch"])
def test_the_diff_is_taken_as_it_is(codemod: Codemod, folder: Path, tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    lay(folder)
    ran = codemod("apply", ".", "--dry-run")
    assert ran.status == 0
    assert content(folder) == TREE
    assert "15 findings would be fixed" in ran.err
    command = ["git", "apply", "--whitespace=nowarn"] if tool == "git" else ["patch", "-p1", "--no-backup-if-mismatch"]
    taken = subprocess.run(command, input=ran.out, capture_output=True, cwd=folder, check=False)
    assert taken.returncode == 0, taken.stderr.decode() + taken.stdout.decode()
    assert b"fuzz" not in taken.stdout + taken.stderr
    assert content(folder) == MENDED


@pytest.mark.parametrize("name", [name for name in TREE if name != "untouched.py"])
def test_the_diff_of_each_file_alone_reverses_too(codemod: Codemod, folder: Path, name: str) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    lay(folder, [name])
    diff = codemod("apply", name, "--dry-run").out
    codemod("apply", name)
    assert (folder / name).read_bytes() == MENDED[name]
    subprocess.run(["git", "apply", "-R", "--whitespace=nowarn"], input=diff, cwd=folder, check=True)
    assert (folder / name).read_bytes() == TREE[name]


def test_exit_code_of_a_dry_run(codemod: Codemod, folder: Path) -> None:
    lay(folder, ["plain.py", "untouched.py"])
    assert codemod("apply", ".", "--dry-run").status == 0
    assert codemod("apply", ".", "--dry-run", "--exit-code").status == 1
    assert codemod("apply", "untouched.py", "--dry-run", "--exit-code").status == 0
    assert codemod("apply", ".").status == 0


def test_nothing_to_change_prints_no_diff(codemod: Codemod, folder: Path) -> None:
    lay(folder, ["untouched.py"])
    ran = codemod("apply", ".", "--dry-run")
    assert ran.out == b""
    assert ran.err == "1 file, 0 findings would be fixed in 0 files, 0 left\n"


def test_dry_run_into_a_file(codemod: Codemod, folder: Path) -> None:
    lay(folder, ["plain.py"])
    ran = codemod("apply", ".", "--dry-run", "-o", "out.patch")
    assert ran.out == b""
    assert (
        (folder / "out.patch")
        .read_bytes()
        .partition(b"\n")[2]
        .startswith(b"--- a/plain.py\n+++ b/plain.py\n@@ -1,5 +1,5 @@\n")
    )


def test_dry_run_in_colours_marks_the_changed_words(codemod: Codemod, folder: Path) -> None:
    lay(folder, ["plain.py"])
    out = codemod("apply", ".", "--dry-run", "--color", "always").out.decode()
    assert "\x1b[31m-x = \x1b[7mWRONG\x1b[27m\x1b[0m\n" in out
    assert "\x1b[32m+x = \x1b[7mright\x1b[27m\x1b[0m\n" in out


def test_standard_input_goes_to_standard_output(codemod: Codemod) -> None:
    ran = codemod("apply", "-", stdin=b"\xef\xbb\xbfx = WRONG\r\n")
    assert (ran.status, ran.out) == (0, b"\xef\xbb\xbfx = right\r\n")
    diff = codemod("apply", "-", "--dry-run", "--stdin-filename", "net.py", stdin=b"x = WRONG\n").out
    assert diff == b"--- a/net.py\n+++ b/net.py\n@@ -1 +1 @@\n-x = WRONG\n+x = right\n"


@pytest.mark.parametrize("text", [b"x = (\n", b"print 'x'\n", b"\0\n", b"\xff\n", b"", b"x = 1"])
def test_standard_input_that_is_not_changed_goes_through_as_it_came(codemod: Codemod, text: bytes) -> None:
    assert codemod("apply", "-", stdin=text).out == text


def test_json_says_what_was_done(codemod: Codemod, folder: Path) -> None:
    (folder / "a.py").write_text("x = WRONG\ny = STUBBORN\nz = RISKY\n")
    ran = codemod("apply", ".", "--format", "json")
    report = json.loads(ran.out)
    assert [finding["rule"] for finding in report["fixed"]] == ["wrong"]
    assert [finding["rule"] for finding in report["findings"]] == ["stubborn", "risky"]
    assert report["changed"] == ["a.py"]
    assert report["failures"] == [
        {"rule": "stubborn", "path": "a.py", "line": 2, "reason": "the finding is still there after the edit"}
    ]


def test_edits_taken_back_are_named(codemod: Codemod, folder: Path) -> None:
    (folder / "a.py").write_text("x = WRONG\ny = STUBBORN\n")
    ran = codemod("apply", ".", "--dry-run")
    assert "a.py:2: stubborn: our edit was taken back: the finding is still there after the edit\n" in ran.err
    assert "1 edit taken back" in ran.err
    assert ran.out.count(b"\n+") == 2


@pytest.mark.parametrize("closed", ["file", "folder"])
def test_read_only_is_named_and_the_others_go_on(codemod: Codemod, folder: Path, closed: str) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "a.py").write_text("x = WRONG\n")
    (folder / "b.py").write_text("x = WRONG\n")
    target = folder / "sub" / "a.py" if closed == "file" else folder / "sub"
    target.chmod(0o555)
    ran = codemod("apply", ".")
    target.chmod(0o755)
    assert ran.status == 2
    assert f"sub/a.py: not saved: read-only {closed}" in ran.out.decode()
    assert "1 not saved" in ran.out.decode()
    assert (folder / "sub" / "a.py").read_text() == "x = WRONG\n"
    assert (folder / "b.py").read_text() == "x = right\n"
    assert not [name for name in os.listdir(folder / "sub") if name != "a.py"]
