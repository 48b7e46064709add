"""From the paths that a user names to the files that are read."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from codemods.source.errors import MissingPath, os_reason
from codemods.source.files import display_path
from codemods.source.gitignore import Chain, IgnoreRules, Repository, ignored, read_rules
from codemods.terms.findings import Skipped

SUFFIXES = (".py", ".ipynb")
"""What files found in a folder end with; a file named by itself is read whatever its name."""

_PASSED_OVER = frozenset({"__pycache__", "node_modules", "site-packages", "__pypackages__"})
_ENVIRONMENT_MARKS = frozenset({"pyvenv.cfg", "conda-meta"})
_APPLE_DOUBLE = "._"  # what macOS puts beside each file on foreign disks: resource forks, never Python


class Discovery(NamedTuple):
    """``files``: absolute paths, sorted, each file once. ``problems``: what could not be looked into, and why."""

    files: list[Path]
    problems: list[Skipped]


def discover(
    paths: Iterable[str | os.PathLike[str]],
    *,
    exclude: Sequence[str] = (),
    cwd: str | os.PathLike[str] | None = None,
    exclude_root: str | os.PathLike[str] | None = None,
    projects: Collection[Path] | None = None,
) -> Discovery:
    """The files that ``paths`` stand for: files by name as they are, folders with all below them that is source.

    Of a folder is left out what git ignores (a tracked file it never does), what is hidden, a virtual environment,
    installed packages, and what one of ``exclude`` fits: patterns in the syntax of .gitignore, relative to
    ``exclude_root`` (by default ``cwd``). The folder itself is taken even if git ignores it, because it was named.
    Links to folders are not followed, links to files only within the folder that was named. ``cwd`` is what relative
    paths start from, by default the working directory. With ``projects`` a project that begins below a named folder is
    left out unless its folder is one of these, by its real path.

    Raises `MissingPath` for a path that does not exist.
    """
    base = os.path.abspath(cwd) if cwd is not None else os.getcwd()
    search = _Search(base, exclude, os.path.join(base, exclude_root) if exclude_root is not None else base)
    if projects is not None:
        search.projects = set(map(os.fspath, projects))
    for path in paths:
        search.add(os.fspath(path))
    return Discovery([Path(path) for path in sorted(search.found.values())], sorted(set(search.problems)))


class _Search:
    def __init__(self, cwd: str, exclude: Sequence[str], exclude_root: str) -> None:
        self.found: dict[str, str] = {}
        """By its real path, each file's path as it was reached."""
        self.problems: list[Skipped] = []
        self.projects: set[str] | None = None
        self._cwd = cwd
        self._exclude = ["/" + pattern[2:] if pattern.startswith("./") else pattern for pattern in exclude]
        self._exclude_root = os.path.abspath(exclude_root)

    def add(self, path: str) -> None:
        joined = os.path.join(self._cwd, path)
        try:
            if not path:
                raise FileNotFoundError
            mode = os.stat(joined).st_mode
        except FileNotFoundError:
            why = "broken link" if path and os.path.islink(joined) else "no such file or folder"
            raise MissingPath(f"{path or repr(path)}: {why}") from None
        except ValueError:
            raise MissingPath(f"{path!r}: not a valid file name") from None
        except NotADirectoryError:
            raise MissingPath(f"{path}: no such file or folder") from None
        except OSError as error:
            self._problem(joined, os_reason(error))
            return
        real = os.path.realpath(joined)
        reached = os.path.normpath(joined)
        if os.path.realpath(reached) != real:
            reached = real  # `link/..` is the parent of where the link leads, which the shortened path is not.
        if stat.S_ISDIR(mode):
            self._walk(_Tree(real, reached, self._rules_for(reached)))
        else:
            self._take(real, reached)

    def _rules_for(self, reached: str) -> Chain:
        inside = (reached + "/").startswith(self._exclude_root.rstrip("/") + "/")
        rules = IgnoreRules(self._exclude_root if inside else reached, self._exclude)
        return (rules,) if rules else ()

    def _walk(self, tree: _Tree) -> None:
        if self._excluded_above(tree):
            return
        repository = Repository.around(tree.real)
        chain = repository.chain_above(tree.real) if repository else ()
        stack = [_Folder(tree.real, chain, repository, False)]
        while stack:
            folder = stack.pop()
            try:
                with os.scandir(folder.real) as listing:
                    entries = list(listing)
            except OSError as error:
                self._problem(tree.reached_by(folder.real), os_reason(error))
                continue
            names = {entry.name for entry in entries}
            if folder.real != tree.real:
                if not names.isdisjoint(_ENVIRONMENT_MARKS) or self._is_of_others(folder.real, names):
                    continue
                if ".git" in names and (inner := Repository.at(folder.real)):
                    folder = _Folder(folder.real, inner.chain_above(folder.real), inner, False)
            if ".gitignore" in names and not folder.tracked_only:
                own = read_rules(folder.real, os.path.join(folder.real, ".gitignore"))
                folder = folder._replace(chain=own + folder.chain)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    below = self._enter(tree, folder, entry)
                    if below is not None:
                        stack.append(below)
                elif entry.name.endswith(SUFFIXES):
                    self._consider(tree, folder, entry)

    def _is_of_others(self, folder: str, names: Set[str]) -> bool:
        return self.projects is not None and folder not in self.projects and not names.isdisjoint(_MARKS)

    def _excluded_above(self, tree: _Tree) -> bool:
        """Whether the folder that was named lies in one that the exclude patterns leave out, or is one."""
        place = self._exclude_root.rstrip("/")
        if not tree.exclude or not tree.reached.startswith(place + "/"):
            return False
        for part in tree.reached[len(place) + 1 :].split("/") if tree.reached != "/" else []:
            place = f"{place}/{part}"
            if ignored(tree.exclude, place, part, True):
                return True
        return False

    def _enter(self, tree: _Tree, folder: _Folder, entry: os.DirEntry[str]) -> _Folder | None:
        name = entry.name
        if name.startswith(".") or name in _PASSED_OVER:
            return None
        state = _git_state(folder, entry.path, name, True)
        if state is _LEFT_OUT or (tree.exclude and ignored(tree.exclude, tree.reached_by(entry.path), name, True)):
            return None
        return folder._replace(real=entry.path, tracked_only=state is _TRACKED)

    def _consider(self, tree: _Tree, folder: _Folder, entry: os.DirEntry[str]) -> None:
        path, name = entry.path, entry.name
        if name.startswith(_APPLE_DOUBLE) or _git_state(folder, path, name, False) is _LEFT_OUT:
            return
        reached = tree.reached_by(path)
        if tree.exclude and ignored(tree.exclude, reached, name, False):
            return
        if entry.is_symlink():
            # Editors mark a file that is open by a hidden link to nowhere.
            if not name.startswith("."):
                self._consider_link(tree, path, reached)
        elif entry.is_file(follow_symlinks=False):
            self._take(path, reached)
        else:
            self._problem(reached, "not a regular file")

    def _consider_link(self, tree: _Tree, path: str, reached: str) -> None:
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            self._problem(reached, "broken link" if isinstance(error, FileNotFoundError) else os_reason(error))
            return
        if stat.S_ISDIR(mode):
            return
        real = os.path.realpath(path)
        if not real.startswith(tree.real.rstrip("/") + "/"):
            self._problem(reached, "link to a file outside the folder; name it to have it read")
        elif stat.S_ISREG(mode):
            self._take(real, reached)
        else:
            self._problem(reached, "not a regular file")

    def _take(self, real: str, reached: str) -> None:
        other = self.found.get(real)
        # A file's own name goes before that of a link to it, whichever came first.
        if other is None or (reached != real, reached) < (other != real, other):
            self.found[real] = reached

    def _problem(self, path: str, reason: str) -> None:
        self.problems.append(Skipped(display_path(path, self._cwd), 0, reason))


class _Tree(NamedTuple):
    """A folder that was named: where it lies, the path that was given for it, what is excluded in it."""

    real: str
    reached: str
    exclude: Chain

    def reached_by(self, real: str) -> str:
        return self.reached.rstrip("/") + real[len(self.real.rstrip("/")) :]


class _Folder(NamedTuple):
    """A folder still to be looked into; of an ignored one only the ``tracked`` files count."""

    real: str
    chain: Chain
    repository: Repository | None
    tracked_only: bool


_FREE, _TRACKED, _LEFT_OUT = "free", "tracked", "left out"


def _git_state(folder: _Folder, path: str, name: str, is_folder: bool) -> str:
    if not folder.tracked_only and not ignored(folder.chain, path, name, is_folder):
        return _FREE
    tracked = folder.repository is not None and folder.repository.tracks(path, is_folder)
    return _TRACKED if tracked else _LEFT_OUT


_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""What a folder holds that begins a project."""


def project_root(path: str | os.PathLike[str]) -> Path:
    """The nearest folder at or above ``path`` that holds .git, pyproject.toml, setup.py or setup.cfg.

    Without one it is the folder of the file (``path`` itself where that is a folder). The home directory and ``/`` are
    no projects, whatever they hold: a root there would make all of somebody's files one tree. (A file that lies
    directly in one of them still has that folder.) Links are not resolved, and nothing need exist.
    """
    start = os.path.abspath(path)
    if not os.path.isdir(start):
        start = os.path.dirname(start)
    home = os.path.expanduser("~")
    homes = (home, os.path.realpath(home))
    folder = start
    while folder not in homes and folder != os.path.dirname(folder):
        if begins_project(folder):
            return Path(folder)
        folder = os.path.dirname(folder)
    return Path(start)


def begins_project(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds .git, pyproject.toml, setup.py or setup.cfg."""
    return any(os.path.exists(os.path.join(folder, mark)) for mark in _MARKS)
