"""Diffs that nobody knows anything of: git's, ``diff -u``'s, written by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codemods.patches.bundle import load
from codemods.patches.fitting import fit
from codemods.patches.parsing import PatchError
from codemods.patches.results import PatchResult
from codemods.source.diffs import unified
from tests.patches.drift import SCRIPT, now, recorded, states

OLD = "import os\n\n\ndef size(path):\n    found = os.stat(path)\n    return found.st_size\n\n\nprint(size('x'))\n"
NEW = OLD.replace("os.stat(path)", "os.lstat(path)")


def diff(old: str = OLD, new: str = NEW, path: str = "tool.py") -> bytes:
    return unified(path, old.encode(), new.encode())


def fitted(data: bytes, text: str | bytes = OLD, path: str = "tool.py") -> PatchResult:
    Path(path).write_bytes(text if isinstance(text, bytes) else text.encode())
    return fit(load(data))


def test_as_it_is() -> None:
    assert states(fitted(diff())) == ["applied"]
    assert now("tool.py") == NEW


def test_moved_and_already_there() -> None:
    assert states(fitted(diff(), "# new\n" + OLD)) == ["moved"]
    assert states(fit(load(diff()))) == ["already applied"]
    assert now("tool.py") == "# new\n" + NEW


def test_fuzzy() -> None:
    drifted = OLD.replace("found", "result")
    assert states(fitted(diff(), drifted)) == ["fuzzy"]
    assert "    result = os.lstat(path)\n" in now("tool.py")


def test_two_places_are_refused() -> None:
    twice = OLD + "\n\n" + OLD
    result = fitted(diff(), twice)
    assert states(result) == ["refused"]
    assert "2 places are equally good: lines 5, 16" in result.hunks[0].reason
    assert now("tool.py") == twice


def test_of_two_about_equal_places_neither() -> None:
    other = OLD.replace("found", "result")
    result = fitted(diff(), other + "\n\n" + OLD.replace("found", "outcome"))
    assert states(result) == ["refused"]
    # The lines that would change, not those where what is around them begins.
    assert "2 places are about equally good: near lines 5, 16" in result.hunks[0].reason


def test_a_place_that_changed_too_much_is_named_by_the_line_that_would_change() -> None:
    data = recorded()
    at = SCRIPT[: SCRIPT.index("retain_graph=True")].count("\n") + 1
    drifted = "# new\n" + SCRIPT.replace("retain_graph=True", "retain_graph=True, create_graph=True")
    Path("train.py").write_text(drifted)
    result = fit(load(data))
    assert any(f"the code at line {at + 1} has changed too much for it" in hunk.reason for hunk in result.hunks)


def test_the_blob_that_git_names_makes_the_place_sure() -> None:
    twice = OLD + "\n\n" + OLD
    Path("tool.py").write_text(twice)
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "."], check=True)
    Path("tool.py").write_text(OLD + "\n\n" + NEW)
    data = subprocess.run(["git", "diff"], capture_output=True, check=True).stdout
    result = fitted(data, twice)
    assert states(result) == ["applied"]
    assert now("tool.py") == OLD + "\n\n" + NEW


def test_what_would_not_parse_is_refused() -> None:
    result = fitted(diff(new=OLD.replace("os.stat(path)", "os.stat(path")), "# new\n" + OLD)
    assert states(result) == ["refused"]
    assert "would not be right any more" in result.hunks[0].reason
    assert now("tool.py") == "# new\n" + OLD


def test_what_makes_a_new_finding_is_refused() -> None:
    mended = SCRIPT.replace("total += loss", "total += loss.item()")
    result = fitted(diff(mended, SCRIPT, "train.py"), "# new\n" + mended, "train.py")
    assert states(result) == ["refused"]
    assert "causes a new finding, attached-loss-total in line 26" in result.hunks[0].reason


def test_the_hunks_of_a_file_belong_together() -> None:
    old = OLD + "\n" * 8 + "x = 1\n"
    data = diff(old, old.replace("os.stat", "os.lstat").replace("x = 1", "x = 2"))
    result = fitted(data, old.replace("x = 1\n", "y = 3\n"))
    assert states(result) == ["refused", "refused"]
    assert "belongs together with hunk 2" in result.hunks[0].reason


def test_other_languages_are_only_text() -> None:
    assert states(fitted(diff("a (\nb\n", "a (\nc\n", "notes.txt"), "a (\nb\n", "notes.txt")) == ["applied"]
    assert now("notes.txt") == "a (\nc\n"


def test_names_with_times_and_without_prefix() -> None:
    lines = diff().split(b"\n")
    lines[:2] = [b"--- tool.py.orig\t2024-01-01 10:00:00", b"+++ tool.py\t2024-01-02 10:00:00"]
    assert states(fitted(b"\n".join(lines))) == ["applied"]


@pytest.mark.parametrize("name", ["with space.py", 'quo"te.py', "gr\u00fcn.py", "tab\t.py"])
def test_names_as_git_quotes_them(name: str) -> None:
    assert states(fitted(diff(path=name), path=name)) == ["applied"]


@pytest.mark.parametrize("start", ["../", "/tmp/", "a/../../", ".git/", "sub//"])
def test_names_that_lead_away_are_an_error(start: str) -> None:
    data = (
        diff().replace(b"a/tool.py", f"a/{start}tool.py".encode()).replace(b"b/tool.py", f"b/{start}tool.py".encode())
    )
    with pytest.raises(PatchError, match="only paths below the folder"):
        fit(load(data))


def test_links_are_not_followed(folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "tool.py").write_text(OLD)
    (folder / "sub").symlink_to(outside)
    (folder / "tool.py").symlink_to(outside / "tool.py")
    for path in ("sub/tool.py", "tool.py"):
        result = fit(load(diff(path=path)))
        assert states(result) == ["refused"]
        assert "symbolic link" in result.hunks[0].reason
    assert (outside / "tool.py").read_text() == OLD


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it contains no diff"),
        (b"hello\n", "it contains no diff"),
        (b"--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n a\n", "line 3: the hunk is cut off: 2 lines are missing"),
        (b"--- a/x.py\n+++ b/x.py\n@@ what @@\n", "it contains no diff"),
        (b"--- a/x.py\n+++ b/x.py\n@@ -x @@\n", "line 3: not a hunk header"),
        (b"@@ -1 +1 @@\n-a\n+b\n", "line 1: a hunk without a file"),
        (b"--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-a\nxyz\n", "line 5: not a line of a hunk"),
        (b"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n-b\n", "line 3: the hunk has more lines than its header says"),
        (b'--- "a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n', "line 1: the quoted name has no end"),
        (b"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n\\ No newline\n", "line 4: no line stands before this remark"),
        (b"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "neither side of the diff names a file"),
        (b"\x7fELF\0\0\0", "null bytes"),
    ],
)
def test_what_is_no_patch_is_named_with_its_line(data: bytes, said: str) -> None:
    with pytest.raises(PatchError, match=said):
        fit(load(data))


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"new file mode 100644\n--- /dev/null\n+++ b/tool.py\n@@ -0,0 +1 @@\n+x = 1\n", "creates the file"),
        (b"deleted file mode 100644\n--- a/tool.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n", "deletes the file"),
        (b"rename from tool.py\nrename to other.py\n", "renames the file"),
        (b"index 1..2\nBinary files a/tool.py and b/tool.py differ\n", "is about binary contents"),
        (b"old mode 100644\nnew mode 100755\n", "changes the file's mode"),
    ],
)
def test_what_is_more_than_lines_is_refused(header: bytes, said: str) -> None:
    result = fitted(b"diff --git a/tool.py b/tool.py\n" + header, "x = 1\n")
    assert states(result) == ["refused"]
    assert said in result.hunks[0].reason
    assert now("tool.py") == "x = 1\n"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ((b'{"version": 1', b'{"version": 9'), "a bundle of version 9, made by a newer codemod"),
        ((b'{"version": 1', b'{"version": "x"'), "not the head of a bundle"),
        ((b'{"rule"', b'{rule"'), "line 10: the bundle is damaged: not an object of JSON"),
        ((b'"options"', b'"opinions"'), "damaged: KeyError"),
        ((b'"changes": [0]', b'"changes": [7]'), "a change that the bundle does not record"),
        ((b'"encoding": "utf-8"', b'"encoding": "no-such"'), "its file has an unknown encoding, 'no-such'"),
        ((b'"encoding": "utf-8"', b'"encoding": "\\u0000"'), r"its file has an unknown encoding, '\\x00'"),
        ((b'"path": "train.py", "line"', b'"path": "../train.py", "line"'), "only paths below the folder"),
    ],
)
def test_damaged_bundles_are_named(damage: tuple[bytes, bytes], said: str) -> None:
    data = recorded()
    assert damage[0] in data
    with pytest.raises(PatchError, match=said):
        fit(load(data.replace(*damage)))


def test_the_last_line_gets_or_loses_its_end_only_if_the_diff_says_so() -> None:
    data = diff("a = 1\nb = 2", "a = 1\nb = 2\n")
    assert states(fitted(data, "a = 1\nb = 2")) == ["applied"]
    assert now("tool.py") == "a = 1\nb = 2\n"
    data = diff("a = 1\nb = 2\n", "a = 1\nb = 3\n")
    assert states(fitted(data, "# new\na = 1\nb = 2")) == ["moved"]
    assert now("tool.py") == "# new\na = 1\nb = 3"
