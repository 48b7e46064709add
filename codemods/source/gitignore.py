"""Which files git would leave out: ignore files, their order, and the files that git tracks all the same.

The facts are those of https://git-scm.com/docs/gitignore, read as git does while it walks: an entry is held against
each pattern by itself, the folders above it having passed before.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from typing import NamedTuple

from codemods.source.git import run_git

_WILD = re.compile(r"[*?\[\\]")
_CLASS = re.compile(r"\[:(\w+):\]")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "lower": "a-z",
    "space": " \t",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
# Set behind a name and behind the pattern held against it: only the last part of a path can then fit, never a folder
# above it, which `pathspec` would count as well.
_END = "\x01"


class _Pattern(NamedTuple):
    """One line of an ignore file. ``by_name`` ones look at the last part of a path, the others at the whole path."""

    negated: bool
    folders_only: bool
    by_name: bool
    regex: re.Pattern[str]

    @property
    def unnamed(self) -> str:
        """The expression without names of groups, to be put beside others."""
        return re.sub(r"\(\?P<\w+>", "(?:", self.regex.pattern)


class IgnoreRules:
    """The patterns of one ignore file, for paths below one folder.

    ``base`` is that folder; ``lines`` are in the syntax of .gitignore.
    """

    def __init__(self, base: str, lines: Iterable[str]) -> None:
        self._start = len(base if base.endswith("/") else base + "/")
        patterns = [pattern for line in lines if (pattern := _pattern(line)) is not None]
        self._patterns = patterns[::-1]
        # One question instead of many: most entries fit none.
        self._any = [
            re.compile("|".join(p.unnamed for p in patterns if p.by_name is by_name) or "(?!)", re.DOTALL)
            for by_name in (False, True)
        ]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def verdict(self, path: str, name: str, is_folder: bool) -> bool | None:
        """True where the last pattern that fits ignores the entry, False where it takes it back, None where none fits.

        ``path`` begins with ``base``; ``name`` is its last part.
        """
        texts = (path[self._start :] + _END, name + _END)
        if self._any[0].match(texts[0]) or self._any[1].match(texts[1]):
            for negated, folders_only, by_name, regex in self._patterns:
                if is_folder >= folders_only and regex.match(texts[by_name]):
                    return not negated
        return None


Chain = tuple[IgnoreRules, ...]


def ignored(chain: Chain, path: str, name: str, is_folder: bool) -> bool:
    """Whether the first of ``chain`` that has a word on the entry ignores it; the nearest folder's rules come first."""
    for rules in chain:
        verdict = rules.verdict(path, name, is_folder)
        if verdict is not None:
            return verdict
    return False


def read_rules(base: str, file: str) -> Chain:
    """The rules of one ignore file below ``base``, as a chain of one, or of none where there is nothing to read.

    As with git a .gitignore that is a link counts for nothing, nor does one that we may not read.
    """
    try:
        if os.path.islink(file) or not os.path.isfile(file):
            return ()
        with open(file, "rb") as stream:
            data = stream.read()
    except OSError:
        return ()
    rules = IgnoreRules(base, os.fsdecode(data.removeprefix(b"\xef\xbb\xbf")).split("\n"))
    return (rules,) if rules else ()


class Repository:
    """A git working tree: its own ignore rules, and what it tracks."""

    def __init__(self, root: str, git_dir: str) -> None:
        self.root = root
        self._git_dir = git_dir
        self._tracked: tuple[frozenset[str], frozenset[str]] | None = None

    @classmethod
    def at(cls, folder: str) -> Repository | None:
        """The repository whose working tree begins at ``folder``, or None."""
        git = os.path.join(folder, ".git")
        if os.path.isfile(git):
            try:
                with open(git, encoding="utf-8", errors="surrogateescape") as file:
                    target = file.read(4096).strip()
            except OSError:
                return None
            if not target.startswith("gitdir:"):
                return None
            git = os.path.join(folder, target.removeprefix("gitdir:").strip())
        return cls(folder, git) if os.path.isfile(os.path.join(git, "HEAD")) else None

    @classmethod
    def around(cls, folder: str) -> Repository | None:
        """The repository whose working tree holds ``folder``, or None."""
        while True:
            found = cls.at(folder)
            parent = os.path.dirname(folder)
            if found or parent == folder:
                return found
            folder = parent

    def chain_above(self, folder: str) -> Chain:
        """The rules that hold in ``folder`` of this tree before its own .gitignore is read."""
        common = self._git_dir
        try:
            with open(os.path.join(self._git_dir, "commondir"), encoding="utf-8") as file:
                common = os.path.join(self._git_dir, file.read().strip())
        except (OSError, UnicodeDecodeError):
            pass  # Only a linked work tree has its settings elsewhere.
        chain = read_rules(self.root, os.path.join(common, "info", "exclude"))
        chain += read_rules(self.root, _users_ignore_file(self.root))
        inner = folder[len(self.root) :].strip("/")
        above = self.root
        for part in inner.split("/") if inner else []:
            chain = read_rules(above, os.path.join(above, ".gitignore")) + chain
            above = os.path.join(above, part)
        return chain

    def tracks(self, path: str, is_folder: bool) -> bool:
        """Whether git has the file, or anything in the folder, in its index: such files are never ignored."""
        if self._tracked is None:
            files = frozenset(map(os.fsdecode, _git_output(self.root, "ls-files", "-z").split(b"\0"))) - {""}
            folders = set()
            for name in files:
                while (name := name.rpartition("/")[0]) and name not in folders:
                    folders.add(name)
            # A submodule stands in the index of its parent like a file.
            self._tracked = files, frozenset(folders) | files
        return path[len(self.root) :].lstrip("/") in self._tracked[is_folder]


def _pattern(line: str) -> _Pattern | None:
    text = line.removesuffix("\r")
    if text.startswith("#"):
        return None
    # Git takes blanks off the end, and only blanks, up to one that a backslash protects.
    text = re.sub(r"(?<!\\)((?:\\\\)*) +$", r"\1", text)
    negated = text.startswith("!")
    text = text[negated:]
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    by_name = "/" not in text
    text = text.removeprefix("/")
    if not text or re.search(r"(?<!\\)(?:\\\\)*\\$", text):
        return None
    tail = text.removeprefix("*") if by_name else text
    if not _WILD.search(tail):
        any_start = "" if tail == text else ".*"
        return _Pattern(
            negated, folders_only, by_name, re.compile(rf"{any_start}{re.escape(tail + _END)}\Z", re.DOTALL)
        )
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    everything_below = not by_name and (text == "**" or text.endswith("/**"))
    text = _CLASS.sub(lambda match: _CLASSES.get(match[1], match[0]), text)
    try:
        with warnings.catch_warnings():
            # A bracket within brackets is fine with git, but `re` warns of plans for it.
            warnings.simplefilter("ignore")
            # The slash anchors the pattern, and keeps a first `#` or `!` from meaning something a second time.
            regex = GitIgnoreSpecPattern("/" + text + ("/*" if everything_below else "") + _END).regex
    except (ValueError, re.error):
        return None
    return None if regex is None else _Pattern(negated, folders_only, by_name, regex)


def _users_ignore_file(root: str) -> str:
    """The file that core.excludesFile names for the repository in ``root``, else git's default."""
    named = _git_output(root, "config", "--type=path", "--get", "core.excludesFile").removesuffix(b"\n")
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.fsdecode(named) or os.path.join(settings, "git", "ignore")


def _git_output(root: str, *arguments: str) -> bytes:
    """What git prints; nothing where it cannot be run, or refuses: then only patterns count."""
    try:
        done = run_git(root, *arguments)
    except OSError:
        return b""
    return done.stdout if done.returncode == 0 else b""
