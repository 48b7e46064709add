"""The user's git repository, asked and changed by git itself: its hooks, its identity, its configuration.

Nothing here decides what is committed; see :mod:`codemods.commits.making`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from codemods.terms.counting import listed
from codemods.terms.errors import UserError

#: What git leaves in its folder while something is under way, and what that is called.
_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase, or git am,",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
}
_LINES = 20
_FEW = 5


class CommitError(UserError):
    """Nothing was committed, and everything is as before; the text says why, in one sentence."""


class _State(NamedTuple):
    head: str
    staged: bytes


class Repository:
    """A repository with a working tree, all of whose paths are relative to ``top``, with ``/``."""

    def __init__(self, folder: Path) -> None:
        """Find the repository around ``folder``; raises :class:`CommitError` where there is none to commit to."""
        self.top = folder
        inside = self._ask("rev-parse", "--is-inside-work-tree", check=False)
        if inside is None or inside.strip() != "true":
            bare = (self._ask("rev-parse", "--is-bare-repository", check=False) or "").strip() == "true"
            if inside is None and not bare:
                raise CommitError(f"{folder} is not in a git repository{self._trouble()}")
            raise CommitError(f"{folder}: a {'bare repository' if bare else 'folder of git'} has no files to commit")
        self.top = Path(os.path.realpath(self._told("rev-parse", "--show-toplevel").rstrip("\n")))

    # ------------------------------------------------------------------------------------------------------------------
    # questions

    def require_ready(self) -> None:
        """Raise :class:`CommitError` where nothing should be committed now."""
        if self._ask("rev-parse", "--verify", "--quiet", "HEAD", check=False) is None:
            raise CommitError(f"{self.top} has no commit yet; make the first one yourself")
        for name, what in _UNDER_WAY.items():
            if self._git_path(name).exists():
                raise CommitError(f"{what} is under way in {self.top}; finish or abort it first")
        if self._git_path("index.lock").exists():
            raise CommitError(f"another git holds {self._git_path('index.lock')}; remove it if that is long gone")
        for who in ("AUTHOR", "COMMITTER"):
            if self._ask("var", f"GIT_{who}_IDENT", check=False) is None:
                raise CommitError("git does not know who you are; set user.name and user.email")

    def require_tracked(self, files: Sequence[Path]) -> dict[Path, str]:
        """Return the names of ``files``, links followed; raises :class:`CommitError` for those git does not track."""
        tracked: dict[str, str] = {}
        for entry in self._told("ls-files", "-z", "--stage").split("\0")[:-1]:
            about, _, name = entry.partition("\t")
            tracked[name] = about.split(" ")[0]
        names: dict[Path, str] = {}
        bad: list[str] = []
        for file in files:
            real = Path(os.path.realpath(file))
            name = real.relative_to(self.top).as_posix() if real.is_relative_to(self.top) else ""
            if name in tracked:
                names[file] = name
            else:
                bad.append(f"{file} ({self._why_untracked(name, tracked)})")
        if bad:
            raise CommitError(f"git does not track {listed(bad, _FEW)}; add it first, or leave it out with --exclude")
        return names

    def require_clean(self, names: Iterable[str], *, allow_dirty: bool) -> None:
        """Raise :class:`CommitError` for uncommitted changes: any, or with ``allow_dirty`` any in ``names``.

        Files that git does not track are no changes.
        """
        dirty = self._dirty()
        if not dirty:
            return
        if not allow_dirty:
            raise CommitError(
                f"uncommitted changes in {listed(dirty, _FEW)}; commit or stash them, or give --allow-dirty"
            )
        ours = sorted(set(names) & set(dirty))
        if ours:
            raise CommitError(
                f"{listed(ours, _FEW)} would be changed and has uncommitted changes already; commit them first"
            )

    def _dirty(self) -> list[str]:
        fields = iter(self._told("status", "--porcelain", "-z", "--untracked-files=no").split("\0"))
        found = []
        for field in fields:
            if not field:
                continue
            found.append(field[3:])
            if field[0] in "RC":
                found.append(next(fields, ""))
        return found

    def _why_untracked(self, name: str, tracked: dict[str, str]) -> str:
        if not name:
            return f"outside {self.top}"
        for folder in Path(name).parents:
            if tracked.get(folder.as_posix()) == "160000":
                return f"in the submodule {folder}"
            if folder != Path(".") and (self.top / folder / ".git").exists():
                return f"in another repository, {folder}"
        ignored = self._run(["check-ignore", "--quiet", "-z", "--stdin"], input=f"{name}\0").returncode == 0
        return "ignored" if ignored else "untracked"

    def _git_path(self, name: str) -> Path:
        return self.top / self._told("rev-parse", "--git-path", name).rstrip("\n")

    # ------------------------------------------------------------------------------------------------------------------
    # changes

    def state(self) -> _State:
        """Return what :meth:`restore` needs to bring branch and index back to where they are now."""
        return _State(self._told("rev-parse", "HEAD").strip(), self._git_path("index").read_bytes())

    def commit(self, names: Sequence[str], message: str, *, author: str | None, hooks: bool) -> str:
        """Commit ``names`` as they stand on disk, and nothing else, and return the hash.

        Raises :class:`CommitError` with what git or a hook said.
        """
        # Names are names, not patterns.
        command = ["--literal-pathspecs", "commit", "--quiet", "--cleanup=whitespace", "--only", f"--message={message}"]
        command += [f"--author={author}"] if author else []
        command += [] if hooks else ["--no-verify"]
        command += ["--pathspec-from-file=-", "--pathspec-file-nul"]
        done = self._run(command, input="".join(f"{name}\0" for name in names))
        if done.returncode:
            raise CommitError(f"git commit failed: {_tail(done)}")
        return self._told("rev-parse", "HEAD").strip()

    def restore(self, state: _State) -> None:
        """Bring branch and index back to ``state``."""
        head = (self._ask("rev-parse", "HEAD", check=False) or "").strip()
        if head != state.head:
            self._told("update-ref", "-m", "codemod: commits taken back", "HEAD", state.head, head)
        index = self._git_path("index")
        if index.read_bytes() == state.staged:
            return
        lock = index.with_name(index.name + ".lock")
        # As git does it: who has the lock may replace the index.
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with open(descriptor, "wb") as file:
                file.write(state.staged)
            os.replace(lock, index)
        except BaseException:
            with contextlib.suppress(OSError):
                lock.unlink()
            raise

    # ------------------------------------------------------------------------------------------------------------------

    def _told(self, *words: str) -> str:
        found = self._ask(*words)
        assert found is not None
        return found

    def _ask(self, *words: str, check: bool = True) -> str | None:
        """Return what git answers; if it fails None, or with ``check`` an error."""
        done = self._run(words)
        self._last = done
        if done.returncode == 0:
            return done.stdout
        if check:
            raise CommitError(f"git {words[0]} failed: {_tail(done)}")
        return None

    def _trouble(self) -> str:
        """What git said beyond that there is none: a repository of somebody else's, for one."""
        said = self._last.stderr.strip()
        return "" if not said or "not a git repository" in said.lower() else f": {_tail(self._last)}"

    def _run(self, words: Sequence[str], input: str = "") -> subprocess.CompletedProcess[str]:
        # Who only asks takes no lock from others.
        command = ["git", "--no-optional-locks", *words]
        try:
            return subprocess.run(
                command,
                cwd=self.top,
                input=input,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="surrogateescape",
                check=False,
            )
        except FileNotFoundError:
            if not self.top.is_dir():
                raise CommitError(f"{self.top}: no such folder") from None
            raise CommitError("git is not installed") from None
        except OSError as error:
            raise CommitError(f"git cannot be started: {error.strerror or error}") from None


def _tail(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.rstrip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    shown = [*(["..."] if len(lines) > _LINES else []), *lines[-_LINES:]]
    return "\n".join(shown) or f"status {done.returncode}"


def merged(ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """Return how git merges three versions of a file; None for a conflict."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for name, data in (("ours", ours), ("base", base), ("theirs", theirs)):
            (Path(folder) / name).write_bytes(data)
        command = ["git", "merge-file", "--stdout", "--quiet", "ours", "base", "theirs"]
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None
