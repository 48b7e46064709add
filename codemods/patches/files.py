"""The files of a patch on disk: safe to touch, read once, found again where they were renamed."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from codemods.patches.parsing import PatchError
from codemods.source.errors import SourceError, Unreadable
from codemods.source.files import SourceFile, display_path, read_bytes, source_from_bytes
from codemods.source.git import run_git

_HISTORY = 2000
"""So many commits back a rename is looked for."""


def require_inside(path: str) -> None:
    """Raise :class:`~codemods.patches.parsing.PatchError` for a path that leads, or might lead, out of its folder."""
    parts = path.replace("\\", "/").split("/")
    if not path or path.startswith(("/", "\\")) or os.path.isabs(path) or parts[0].endswith(":"):
        raise PatchError(f"the patch names {path!r}: only paths below the folder are taken")
    if ".." in parts or "" in parts or "\0" in path or any(part.lower() == ".git" for part in parts):
        raise PatchError(f"the patch names {path!r}: only paths below the folder are taken")


def read(path: str, root: Path) -> SourceFile:
    """Read the file of a patch. Raises ``Unreadable`` where there is none, and for one behind a symbolic link."""
    full = root / path
    shown = display_path(full)
    place = root
    for part in Path(path).parts:
        place = place / part
        if place.is_symlink():
            raise Unreadable(shown, 0, f"{display_path(place)} is a symbolic link, which no patch may follow")
    return source_from_bytes(read_bytes(full, shown), shown, full)


class Renames:
    """What git knows of files that were renamed below ``root``, in its last 2000 commits and in the index."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def of(self, path: str) -> str | None:
        """Return what ``path`` is called now; None if it was not renamed or nobody knows."""
        prefix, steps = self._known
        first = name = prefix + path
        for old, new in steps:
            if old == name:
                name = new
        if name == first or not name.startswith(prefix) or not (self._root / name[len(prefix) :]).is_file():
            return None
        return name[len(prefix) :]

    @functools.cached_property
    def _known(self) -> tuple[str, list[tuple[str, str]]]:
        prefix = _git(self._root, "rev-parse", "--show-prefix")
        if prefix is None:
            return "", []
        form = ("-M", "--diff-filter=R", "--name-status", "-z")
        log = _git(self._root, "log", f"-{_HISTORY}", *form, "--format=", "HEAD")
        staged = _git(self._root, "diff", "--cached", *form, "HEAD")
        steps = [*reversed(_pairs(log or b"")), *_pairs(staged or b"")]
        return prefix.rstrip(b"\n").decode("utf-8", "surrogateescape"), steps


def _pairs(output: bytes) -> list[tuple[str, str]]:
    fields = [field.decode("utf-8", "surrogateescape").strip("\n") for field in output.split(b"\0") if field]
    return [(fields[at + 1], fields[at + 2]) for at in range(0, len(fields) - 2, 3) if fields[at].startswith("R")]


def _git(root: Path, *arguments: str) -> bytes | None:
    try:
        done = run_git(root, *arguments, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def blob_in(root: Path, name: str) -> bytes | None:
    """Return the contents that git in ``root`` keeps under ``name``, the start of a hash; None if it has none."""
    return _git(root, "cat-file", "blob", name) if name else None


def selected(path: str, root: Path, wanted: Sequence[str]) -> bool:
    """Tell whether ``path`` below ``root`` is one of ``wanted``, or below one; all are if nothing is wanted."""
    if not wanted:
        return True
    full = os.path.abspath(root / path)
    places = [os.path.abspath(one) for one in wanted]
    return any(full == place or full.startswith(place.rstrip(os.sep) + os.sep) for place in places)


def try_read(path: str, root: Path, renames: Renames) -> tuple[SourceFile | None, str, str]:
    """Read the file of a patch, under its new name if it was renamed: the file, its path below ``root``, the reason."""
    try:
        return read(path, root), path, ""
    except SourceError as error:
        if (root / path).is_symlink() or (root / path).exists():
            return None, path, error.reason
        now = renames.of(path)
        if now is None:
            return None, path, "is gone, and git knows no new name for it"
    try:
        return read(now, root), now, ""
    except SourceError as error:
        return None, now, error.reason
