"""Only what changed: the lines of files that were touched since a revision in git.

The revision is meant as in ``git diff REV...``: what counts is everything since the commit where the present branch and
the revision parted (https://git-scm.com/docs/git-merge-base), so that what others did on theirs does not count. To that
comes what is not committed yet, staged or not, and files that git does not track, which are new from end to end. A
renamed file is compared with what it was under its old name.

A line was touched if it is not the line it was, its end aside; where lines were taken out, those on either side were.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from codemods.edits.positions import split_lines
from codemods.source.diffs import blocks
from codemods.source.errors import Unreadable, os_reason
from codemods.source.files import SourceFile, source_from_bytes
from codemods.source.git import blobs_in, run_git
from codemods.terms.errors import UserError
from codemods.terms.findings import Finding

_SUBMODULE = b"160000"


class SinceError(UserError):
    """What changed cannot be told; the text is the one sentence that says why."""


@dataclass(frozen=True)
class Changes:
    """The lines that were touched since the commit ``base``, by path; None for all lines of a file."""

    base: str
    lines: Mapping[str, frozenset[int] | None] = field(repr=False)

    def touch(self, finding: Finding) -> bool:
        """Whether a line of the statement or block of ``finding`` was touched; those of its trail do not count."""
        return self.touches(finding.path, finding.span.line, finding.span.end_line)

    def touches(self, path: str, first: int, last: int) -> bool:
        """Whether one of the lines from ``first`` to ``last`` of the file ``path`` was touched."""
        if path not in self.lines:
            return False
        lines = self.lines[path]
        return lines is None or not lines.isdisjoint(range(first, last + 1))


def changes_since(revision: str, targets: Sequence[SourceFile]) -> Changes:
    """Return which lines of ``targets`` were touched since ``revision``; see the head of this module.

    Raises :class:`SinceError` where there is no git, no repository, no such revision or no common history (as in a
    shallow clone), and for files in more than one repository, as a submodule is.
    """
    places = {os.path.realpath(target.absolute): target for target in targets}
    top = _repository([os.path.dirname(place) for place in places] or [os.getcwd()])
    base = _base(top, revision)
    changed = {change.path: change for change in _changed(top, base)}
    tracked = set(_names(_git(top, "ls-files", "-z")))
    lines: dict[str, frozenset[int] | None] = {}
    compared: dict[str, tuple[SourceFile, str]] = {}
    for place, target in places.items():
        name = os.path.relpath(place, top).replace(os.sep, "/")
        change = changed.get(name)
        if name not in tracked or (change is not None and change.blob is None):
            lines[target.path] = None
        elif change is not None and change.blob is not None:
            compared[target.path] = (target, change.blob)
    contents = _blobs(top, [blob for _, blob in compared.values()])
    for path, (target, blob) in compared.items():
        lines[path] = _touched(contents.get(blob), target)
    return Changes(base, lines)


class _Change(NamedTuple):
    """A file by its path below the top of the repository; ``blob`` is what it was, None where it is new."""

    path: str
    blob: str | None


def _repository(folders: Iterable[str]) -> str:
    """The top of the one working tree that holds all ``folders``."""
    tops: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        # Of folders in one tree git need be asked about the first only, but for trees within it.
        known = next((top for top in tops if _within(folder, top) and not _inner(folder, top)), None)
        if known is None:
            tops[_top(folder)] = folder
    if len(tops) > 1:
        first, second, *_ = sorted(tops, key=len)
        inner = _within(second, first)
        raise SinceError(
            f"--since looks at one git repository at a time, and {second} is another one than {first}"
            + (f" (a submodule?); leave it out with --exclude {os.path.relpath(second, first)}" if inner else "")
        )
    return next(iter(tops))


def _within(folder: str, top: str) -> bool:
    return folder == top or folder.startswith(top.rstrip(os.sep) + os.sep)


def _inner(folder: str, top: str) -> bool:
    """Whether another repository begins between ``top`` and ``folder``."""
    while len(folder) > len(top):
        if os.path.exists(os.path.join(folder, ".git")):
            return True
        folder = os.path.dirname(folder)
    return False


def _top(folder: str) -> str:
    done = _run(folder, "rev-parse", "--show-toplevel")
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        if "not a git repository" in said:
            raise SinceError(f"--since needs a git repository, and {folder} is in none")
        raise SinceError(f"--since: {folder}: {_first_line(said)}")
    top = os.fsdecode(done.stdout).rstrip("\n")
    if not top:
        raise SinceError(f"--since needs a working tree, and {folder} is in a repository without one")
    return os.path.realpath(top)


def _base(top: str, revision: str) -> str:
    shallow = _git(top, "rev-parse", "--is-shallow-repository").strip() == b"true"
    hint = "; this is a shallow clone: fetch more of its history (git fetch --unshallow)" if shallow else ""
    wanted = revision.strip()
    # What begins with a hyphen would be an option of git's, which no revision is.
    possible = wanted.isprintable() and not wanted.startswith("-") and wanted
    found = _run(top, "rev-parse", "--verify", "--quiet", f"{wanted}^{{commit}}") if possible else None
    if found is None or found.returncode:
        raise SinceError(f"--since {revision}: no such revision in {top}{hint}")
    if _run(top, "rev-parse", "--verify", "--quiet", "HEAD").returncode:
        raise SinceError(f"--since {revision}: {top} has no commit yet")
    commit = found.stdout.decode().strip()
    base = _run(top, "merge-base", commit, "HEAD").stdout.decode().split()
    if not base:
        raise SinceError(f"--since {revision}: it has no history in common with what is checked out{hint}")
    return base[0]


def _changed(top: str, base: str) -> Iterator[_Change]:
    """The files that differ between the commit ``base`` and the working tree, submodules left out."""
    options = ("--raw", "-z", "--no-abbrev", "--find-renames", "--no-ext-diff", "--no-relative", "--ignore-submodules")
    parts = iter(_git(top, "diff", *options, base, "--").split(b"\0"))
    for entry in parts:
        if not entry.startswith(b":"):
            continue
        old_mode, _, blob, _, status = entry[1:].split(b" ")
        path = next(parts)
        if status[:1] in b"RC":
            path = next(parts)
        new = status[:1] in b"ACU" or not blob.strip(b"0") or old_mode == _SUBMODULE
        yield _Change(os.fsdecode(path), None if new else blob.decode())


def _touched(old: bytes | None, target: SourceFile) -> frozenset[int] | None:
    if old is None:
        return None
    try:
        before = split_lines(source_from_bytes(old, target.path).text)
    except Unreadable:
        return None
    touched: set[int] = set()
    for block in blocks(before, split_lines(target.text)):
        if block.same:
            continue
        if block.new_start == block.new_end:
            touched.update((block.new_start, block.new_start + 1))
        else:
            touched.update(range(block.new_start + 1, block.new_end + 1))
    return frozenset(touched)


def _blobs(top: str, wanted: Collection[str]) -> dict[str, bytes]:
    """The contents of blobs by their names; one that is not at hand is missing."""
    if not wanted:
        return {}
    request = "".join(f"{blob}\n" for blob in dict.fromkeys(wanted)).encode()
    return blobs_in(_run(top, "cat-file", "--batch", stdin=request).stdout)


def _names(data: bytes) -> list[str]:
    return [os.fsdecode(name) for name in data.split(b"\0") if name]


def _git(folder: str, *arguments: str) -> bytes:
    done = _run(folder, *arguments)
    if done.returncode:
        raise SinceError(f"--since: git {arguments[0]}: {_first_line(done.stderr.decode(errors='replace'))}")
    return done.stdout


def _run(folder: str, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return run_git(folder, *arguments, stdin=stdin)
    except FileNotFoundError:
        raise SinceError("--since needs git, which is not on the PATH") from None
    except OSError as error:
        raise SinceError(f"--since: git cannot be run: {os_reason(error)}") from None


def _first_line(said: str) -> str:
    lines = [line.removeprefix("fatal: ").strip() for line in said.splitlines() if line.strip()]
    return lines[0] if lines else "failed without a word"
