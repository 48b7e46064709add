"""Changes made by hand, hunk by hunk."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from verify.errors import VerifyError
from verify.running.against import HandRewriter

OLD = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n"
NEW = "a = 1\nb = 20\nc = 3\nc2 = 0\nd = 4\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with one script; the working directory."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "train.py").write_text(OLD)
    monkeypatch.chdir(root)
    return root


def rewriter(tree: Path, other: Path, promise: Promise = Promise.EXACT) -> HandRewriter:
    return HandRewriter(other, promise, root=tree, script=tree / "train.py")


def test_every_hunk_is_a_rewrite(tree: Path) -> None:
    (tree.parent / "new.txt").write_text(NEW)
    version = rewriter(tree, tree.parent / "new.txt").all()
    assert version.files == {"train.py": NEW.encode()}
    assert [group.findings[0].span.line for group in version.groups] == [2, 4, 5]
    assert all(group.findings[0].promise is Promise.EXACT for group in version.groups)
    assert b"-b = 2\n+b = 20\n" in version.diff


def test_some_hunks(tree: Path) -> None:
    (tree.parent / "new.txt").write_text(NEW)
    hand = rewriter(tree, tree.parent / "new.txt")
    groups = hand.all().groups
    assert hand.some([groups[0].key]).files == {"train.py": OLD.replace("b = 2", "b = 20").encode()}
    assert hand.some([groups[1].key]).files == {"train.py": OLD.replace("d = 4", "c2 = 0\nd = 4").encode()}
    assert hand.some([]).files == {}


def test_lines_to_watch(tree: Path) -> None:
    (tree.parent / "new.txt").write_text(NEW)
    hand = rewriter(tree, tree.parent / "new.txt")
    version = hand.all()
    changed, added, removed = version.groups
    assert changed.touched.before() == {("train.py", 2)}
    assert added.touched.before() == {("train.py", 3), ("train.py", 4)}
    assert removed.touched.before() == {("train.py", 5)}
    watched = version.watch(version.groups)
    assert watched[changed.key] == {("train.py", 2)}
    assert ("train.py", 4) in watched[added.key]
    assert hand.relative("train.py") == "train.py"


def test_a_folder_beside_this_one(tree: Path) -> None:
    (tree.parent / "other").mkdir()
    (tree.parent / "other" / "train.py").write_text(NEW)
    assert rewriter(tree, Path("../other")).all().files == {"train.py": NEW.encode()}


def test_a_folder_laid_out_like_the_tree(tree: Path) -> None:
    other = tree.parent / "other"
    (other / "pkg").mkdir(parents=True)
    (other / "train.py").write_text(NEW)
    (other / "pkg" / "added.py").write_text("x = 1\n")
    version = rewriter(tree, other).all()
    assert version.files == {"train.py": NEW.encode(), "pkg/added.py": b"x = 1\n"}


@pytest.mark.parametrize("text", [OLD])
def test_nothing_to_compare(tree: Path, text: str) -> None:
    (tree.parent / "new.txt").write_text(text)
    with pytest.raises(VerifyError, match="no difference"):
        rewriter(tree, tree.parent / "new.txt")


def test_line_ends_and_encoding_stay(tree: Path) -> None:
    (tree / "train.py").write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n")
    (tree.parent / "new.txt").write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 3\r\n")
    assert rewriter(tree, tree.parent / "new.txt").all().files == {"train.py": b"\xef\xbb\xbfa = 1\r\nb = 3\r\n"}


def test_lines_are_those_that_python_counts(tree: Path) -> None:
    (tree / "train.py").write_bytes(b"a = 1\n\x0cb = 2\nc = 3\n")
    (tree.parent / "new.txt").write_bytes(b"a = 1\n\x0cb = 2\nc = 4\n")
    (group,) = rewriter(tree, tree.parent / "new.txt").all().groups
    assert group.touched.before() == {("train.py", 3)}


def test_a_file_without_a_script_to_replace(tree: Path) -> None:
    (tree.parent / "new.txt").write_text(NEW)
    with pytest.raises(VerifyError, match="no script"):
        HandRewriter(tree.parent / "new.txt", Promise.EXACT, root=tree, script=None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "for x in y:\n    first()\n    z = second(x)\n    third()\n",
            "for x in y:\n    z = second(x)\n    first()\n    third()\n",
        ),
        ("a()\nb(1)\nc(2)\nd(3)\n", "c(2)\na()\nb(1)\nd(3)\n"),
        ("if a:\n    b()\n    c()\n", "b()\nif a:\n    c()\n"),
    ],
    ids=["down", "up", "out"],
)
def test_each_hunk_of_a_move_has_lines_that_show_it(tree: Path, old: str, new: str) -> None:
    (tree / "train.py").write_text(old)
    (tree.parent / "new.txt").write_text(new)
    version = rewriter(tree, tree.parent / "new.txt").all()
    assert version.files == {"train.py": new.encode()}
    watched = version.watch(version.groups)
    assert all(watched[group.key] for group in version.groups), watched


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r"])
def test_the_last_line_may_end_as_it_likes(tree: Path, end: str) -> None:
    (tree / "train.py").write_bytes(f"a = 1\nb = 2{end}".encode())
    for new in ("a = 1\nb = 2\nc = 3\n", "a = 1\nb = 3", "b = 2\n", "a = 1\n    \n"):
        (tree.parent / "new.txt").write_bytes(new.encode())
        hand = rewriter(tree, tree.parent / "new.txt")
        assert hand.all().files == {"train.py": new.encode()}
        assert hand.some([]).files == {}
