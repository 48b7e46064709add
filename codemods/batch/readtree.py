"""The programs and the README of a commit, read out of a repository on this machine: nothing is written or executed."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from codemods.batch.errors import Failed
from codemods.batch.git import Git
from codemods.batch.inspection import Entry, list_tree
from codemods.batch.sources import of_path
from codemods.source.errors import SourceError
from codemods.source.notebooks import SUFFIX, read_notebook

#: Larger sources are data in disguise, and more files than this take longer than a plan may.
_LARGEST, _MOST = 400_000, 400
#: A notebook has pictures in it.
_LARGEST_NOTEBOOK = 20 << 20


def read_tree(place: Path, commit: str) -> tuple[dict[str, str], str, set[str]]:
    """The programs of a commit (Python files, and notebooks), the README, and all paths; nothing is written out.

    Raises :class:`Failed` where there is no such commit.
    """
    git = Git(of_path(place), reaching=False)
    wanted: list[Entry] = []
    readme: list[Entry] = []
    paths = set()
    for entry in list_tree(git, place, commit):
        path = entry.path.decode("utf-8", "surrogateescape")
        paths.add(path)
        largest = _LARGEST_NOTEBOOK if path.endswith(SUFFIX) else _LARGEST
        if entry.there and entry.mode in ("100644", "100755") and entry.size <= largest:
            if path.endswith((".py", SUFFIX)):
                wanted.append(entry)
            elif "/" not in path and PurePosixPath(path).stem.lower() == "readme":
                readme.append(entry)
    chosen = [*wanted[:_MOST], *readme[:1]]
    if not chosen:
        return {}, "", paths
    request = b"".join(entry.object.encode() + b"\n" for entry in chosen)
    answer = git.run("cat-file", "--batch", cwd=place, input=request)
    texts: dict[str, str] = {}
    position = 0
    for entry in chosen:
        end = answer.index(b"\n", position)
        if answer[position:end].endswith(b" missing"):
            raise Failed("objects are left out of it")
        size = int(answer[position:end].split()[2])
        path = entry.path.decode("utf-8", "surrogateescape")
        texts[path] = _text(path, answer[end + 1 : end + 1 + size])
        position = end + 2 + size
    told = texts.pop(readme[0].path.decode("utf-8", "surrogateescape")) if readme else ""
    return texts, told, paths


def _text(path: str, data: bytes) -> str:
    """The program that a file is; nothing for a notebook that is none."""
    if not path.endswith(SUFFIX):
        return data.decode("utf-8", "replace")
    try:
        return read_notebook(data, path).text
    except SourceError:
        return ""
