"""Commits of a rewritten tree, made without a checkout, a hook or an index: one stream for ``git fast-import``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codemods.analysis.analyse import analyse
from codemods.batch.carrying import encoded
from codemods.batch.git import Git
from codemods.commits.making import Wording, message
from codemods.commits.repository import merged
from codemods.commits.splitting import Looking, partition
from codemods.rewriting.changes import Key, Proof
from codemods.rewriting.result import ApplyResult
from codemods.source.options import Options


class Commit(NamedTuple):
    """A commit to be made: its message, and the contents of the files that it changes, by path."""

    message: str
    files: Mapping[str, bytes]


def commits_of(
    result: ApplyResult, style: str, *, options: Options, proofs: Mapping[Key, Proof] | None = None
) -> list[Commit]:
    """Return the commits that lead from the files as they were read to ``result``, which is a dry run.

    ``style`` is one of :data:`codemods.source.options.STYLES`; they are the commits that ``apply --commit`` with
    ``options`` would make. ``proofs`` are what ``verify`` said.
    """
    sources = {rewrite.source.path: rewrite.source for rewrite in result.rewrites}
    looking = None if style == "one" else Looking(result.sources, options, analyse, 1)
    parts = partition(result, style, merge=merged, looking=looking, proofs=proofs) if sources else ()
    return [
        Commit(
            message(part, Wording(), sources), {path: sources[path].encode(text) for path, text in part.texts.items()}
        )
        for part in parts
    ]


def write_branch(
    git: Git, tree: Path, branch: str, base: str, commits: Sequence[Commit], identity: tuple[str, str], when: int
) -> str:
    """Make ``commits`` on top of ``base`` in the repository of ``tree``; return the id of the last."""
    modes = _modes(git, tree, {path for commit in commits for path in commit.files})
    stream: list[bytes] = []
    person = f"{identity[0]} <{identity[1]}> {when} +0000".encode()
    for number, commit in enumerate(commits):
        message = encoded(commit.message)
        stream += [b"commit refs/heads/", branch.encode(), b"\nauthor ", person, b"\ncommitter ", person]
        stream += [b"\ndata %d\n" % len(message), message]
        if number == 0:
            stream += [b"from ", base.encode(), b"\n"]
        for path, data in sorted(commit.files.items()):
            raw = path.encode("utf-8", "surrogateescape")
            stream += [b"M ", modes.get(raw, b"100644"), b" inline ", _quoted(raw), b"\ndata %d\n" % len(data), data]
            stream.append(b"\n")
    git.run("fast-import", "--quiet", "--force", "--date-format=raw", cwd=tree, input=b"".join(stream))
    return git.run("rev-parse", f"refs/heads/{branch}", cwd=tree).decode().strip()


def _quoted(path: bytes) -> bytes:
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'


def _modes(git: Git, tree: Path, paths: set[str]) -> dict[bytes, bytes]:
    names = sorted(path.encode("utf-8", "surrogateescape") for path in paths)
    out = git.run("ls-tree", "-r", "-z", "--full-tree", "HEAD", cwd=tree)
    modes = {}
    for record in out.split(b"\0"):
        head, _, path = record.partition(b"\t")
        if path:
            modes[path] = head.split()[0]
    return {name: modes[name] for name in names if name in modes}


def bundle(git: Git, tree: Path, branch: str, base: str, file: Path) -> None:
    """Write ``branch``, as far as ``base`` does not have it, to a file that ``git fetch`` takes."""
    git.run("bundle", "create", "--quiet", str(file), f"refs/heads/{branch}", f"^{base}", cwd=tree)


def fetch_bundle(git: Git, clone: Path, branch: str, file: Path) -> str:
    """Replace the clone's ``branch`` by the one in a bundle; return its commit."""
    spec = f"+refs/heads/{branch}:refs/heads/{branch}"
    git.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-head-ok", str(file), spec, cwd=clone)
    return git.run("rev-parse", f"refs/heads/{branch}", cwd=clone).decode().strip()
