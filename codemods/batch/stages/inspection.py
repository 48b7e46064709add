"""A repository's tree, looked at before anything of it is written: what would leave it, or be too much, is refused."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from codemods.batch.campaign.settings import Limits
from codemods.batch.errors import Failed, Refused
from codemods.batch.git import Git, human
from codemods.batch.sources import of_path
from codemods.source.errors import SourceError
from codemods.source.git import blobs_in
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
    contents = blobs_in(git.run("cat-file", "--batch", cwd=place, input=request))
    if not contents.keys() >= {entry.object for entry in chosen}:
        raise Failed("objects are left out of it")
    texts: dict[str, str] = {}
    for entry in chosen:
        path = entry.path.decode("utf-8", "surrogateescape")
        texts[path] = _text(path, contents[entry.object])
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


_LINK, _SUBMODULE = "120000", "160000"
_HOPS = 40
#: Characters that HFS+ ignores in names, so that ``.g\u200cit`` is ``.git`` there; see git's utf8.c, next_hfs_char.
_IGNORED = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
#: What NTFS takes for ``.git``: short names, trailing dots and spaces, streams; see git's path.c, is_ntfs_dotgit.
_GIT = re.compile(r"(\.git|git~\d+)[. ]*(:.*)?", re.IGNORECASE)


@dataclass(frozen=True)
class Inspected:
    """A tree that may be written: how much it is, and what of it is left out."""

    files: int
    size: int
    links: int
    submodules: int


@dataclass(frozen=True)
class Entry:
    """One entry of a tree: its mode, the object's id, the size of its contents, and its path as bytes.

    ``there`` is false for what is not in the repository, as it was left out of a clone for its size.
    """

    mode: str
    object: str
    size: int
    path: bytes
    there: bool = True


def list_tree(git: Git, repository: Path, commit: str = "HEAD") -> list[Entry]:
    """All entries of ``commit`` but folders."""
    out = git.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit, cwd=repository)
    entries = []
    for record in out.split(b"\0"):
        if record:
            head, _, path = record.partition(b"\t")
            mode, kind, name, size = head.decode("ascii").split()
            missing = kind == "blob" and not size.isdigit()
            entries.append(Entry(mode, name, int(size) if size.isdigit() else 0, path, not missing))
    return entries


def inspect(git: Git, repository: Path, limits: Limits, source: Path | None = None, commit: str = "HEAD") -> Inspected:
    """Look at the tree of ``commit``; raises :class:`Refused`, saying why, for one that is not to be written.

    ``source`` is where it was cloned from, on this machine: it knows the size of what was left out, unless it lacks
    that itself.
    """
    entries = list_tree(git, repository, commit)
    if len(entries) > limits.files:
        raise Refused(f"{len(entries)} files; the limit of this campaign is {limits.files}")
    for entry in entries:
        if not entry.there:
            size = _size_at(source, entry)
            if source is not None and not size:
                raise Refused(f"{_shown(entry.path)} is not in {source}, which is a partial clone")
            limit = human(limits.file_size)
            told = (
                f"is {human(size)}; the limit is {limit} a file" if size else f"is more than {limit}, the limit a file"
            )
            raise Refused(f"{_shown(entry.path)} {told}")
    total = sum(entry.size for entry in entries)
    for entry in entries:
        if entry.size > limits.file_size:
            raise Refused(f"{_shown(entry.path)} is {human(entry.size)}; the limit is {human(limits.file_size)} a file")
    if total > limits.size:
        raise Refused(f"{human(total)} of files; the limit of this campaign is {human(limits.size)}")
    _check_names(entries)
    links = {e.path: _target(git, repository, e) for e in entries if e.mode == _LINK}
    if limits.links == "refuse":
        for path in links:
            where = leaves(path, links)
            if where:
                raise Refused(f"{_shown(path)} is a link to {_shown(links[path])}, {where}")
    submodules = sum(entry.mode == _SUBMODULE for entry in entries)
    return Inspected(len(entries) - len(links) - submodules, total, len(links), submodules)


def _size_at(source: Path | None, entry: Entry) -> int:
    """The size of an entry's contents in the repository ``source``; 0 where it is not known."""
    if source is None:
        return 0
    try:
        return int(Git(of_path(source), reaching=False).run("cat-file", "-s", entry.object, cwd=source))
    except (Failed, ValueError):
        return 0


def _check_names(entries: list[Entry]) -> None:
    known: dict[str, bytes] = {}
    leaves: dict[bytes, bool] = {}
    done: set[bytes] = set()
    for entry in entries:
        parts = entry.path.split(b"/")
        for depth, part in enumerate(parts, 1):
            text = part.decode("utf-8", "surrogateescape")
            pieces = text.split("\\")
            if part in (b"", b".", b"..") or (len(pieces) > 1 and ".." in pieces):
                raise Refused(f"{_shown(entry.path)}: a path that leads out of the repository")
            if any(_GIT.fullmatch(_IGNORED.sub("", piece)) for piece in pieces):
                raise Refused(f"{_shown(entry.path)}: a name that some systems take for .git")
            if len(part) > 255:
                raise Refused(f"{_shown(entry.path)[:80]}...: a name of {len(part)} bytes")
            path = b"/".join(parts[:depth])
            folded = unicodedata.normalize("NFC", path.decode("utf-8", "surrogateescape")).casefold()
            other = known.setdefault(folded, path)
            if other != path:
                raise Refused(f"{_shown(other)} and {_shown(path)} are one file where case does not count")
            leaf = depth == len(parts)
            if leaves.setdefault(path, leaf) != leaf or (leaf and path in done):
                raise Refused(f"{_shown(path)} stands in the tree twice")
            if leaf:
                done.add(path)
        if len(entry.path) > 3000:
            raise Refused(f"a path of {len(entry.path)} bytes")


def _target(git: Git, repository: Path, entry: Entry) -> bytes:
    if entry.size > 4096:
        raise Refused(f"{_shown(entry.path)} is a link of {human(entry.size)}")
    return git.run("cat-file", "blob", entry.object, cwd=repository)


def leaves(path: bytes, links: Mapping[bytes, bytes]) -> str:
    """Say how the link at ``path`` leaves the tree, other links on its way followed; empty if it stays inside."""
    place: list[bytes] = []
    hops = 0
    pending = path.split(b"/")
    while pending:
        part = pending.pop(0)
        if part in (b"", b"."):
            continue
        if part == b"..":
            if not place:
                return "which leads out of the repository"
            place.pop()
            continue
        place.append(part)
        target = links.get(b"/".join(place))
        if target is None:
            continue
        hops += 1
        if hops > _HOPS:
            return "which leads nowhere: links in a circle"
        if target.startswith(b"/"):
            return "which leads out of the repository"
        place.pop()
        pending = [*target.split(b"/"), *pending]
        if any(part.lower() == b".git" for part in target.split(b"/")):
            return "which leads into .git"
    return ""


def _shown(path: bytes) -> str:
    from codemods.source.diffs import printable

    return printable(path.decode("utf-8", "replace"))
