"""The trees around the files that a user names: what an import can reach, and who else may call a function."""

from __future__ import annotations

import ast
import functools
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from codemods.graph.model.files import Files
from codemods.graph.model.program import ParsedFile, Tree
from codemods.source.discovery import begins_project, discover, project_root
from codemods.source.errors import SourceError, Unparsable
from codemods.source.files import SourceFile, digest_of, display_path, read_source
from codemods.source.syntax import parse
from codemods.terms.findings import Skipped

_LONE_RETURN = re.compile(rb"\r(?!\n)")


@dataclass
class Project:
    """One tree: its ``root``, its files below that by relative path, the ``targets`` among them by display path.

    ``overlay`` holds texts by display path that are to be taken instead of what is on disk; it pickles, so that worker
    processes can look at the same tree.
    """

    root: Path
    paths: dict[str, Path]
    display: dict[str, str]
    targets: dict[str, SourceFile]
    overlay: dict[str, str]
    broken: dict[str, Skipped] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    """Digests of the files' bytes, by path below the root, where they were asked for."""
    readable: set[str] = field(default_factory=set)
    """The files that are known to parse, by the path that is shown."""
    _files: Files | None = None
    _relative: dict[str, str] | None = None

    @functools.cached_property
    def names(self) -> str:
        """A digest of the paths of all files, as they are and as they are shown: imports depend on them."""
        pairs = sorted(self.display.items())
        return digest_of(
            "\0".join(part for pair in (("", self.root.name), *pairs) for part in pair).encode(errors="replace")
        )

    def digest(self, relative: str) -> str:
        """A digest of a file's contents."""
        if relative not in self.digests:
            self.digests[relative] = digest_of(self._bytes(relative))
        return self.digests[relative]

    @property
    def content(self) -> str:
        """A digest of all files in the tree and of the targets among them."""
        files = "".join(self.digest(relative) for relative in sorted(self.paths))
        return digest_of("\0".join([str(self.root), self.names, files, *sorted(self.targets)]).encode(errors="replace"))

    @property
    def files(self) -> Files:
        """The parsed files."""
        if self._files is None:
            self._files = Files(Tree(self.paths, self.display, self.root.name), self._read, self._plain)
        return self._files

    def parsed(self, shown: str) -> ParsedFile | None:
        """The parsed file that is shown as ``shown``; None if it is not in the tree or does not parse."""
        if self._relative is None:
            self._relative = {display: relative for relative, display in self.display.items()}
        relative = self._relative.get(shown)
        return self.files.file(relative) if relative is not None else None

    def raw(self, relative: str) -> bytes:
        """The bytes of a file, to be searched for words and lines; empty where it cannot be read."""
        data = self._bytes(relative)
        # The parser ends a line there too, patterns do not.
        return _LONE_RETURN.sub(b"\n", data) if b"\r" in data else data

    def _bytes(self, relative: str) -> bytes:
        shown = self.display[relative]
        if shown in self.overlay:
            return self.overlay[shown].encode("utf-8", "surrogatepass")
        if shown in self.targets:
            return self.targets[shown].text.encode("utf-8", "surrogatepass")
        try:
            return self.paths[relative].read_bytes()
        except OSError:
            return b""

    def text(self, relative: str) -> str:
        """The text of a file. Raises :class:`~codemods.source.errors.Unreadable`."""
        shown = self.display[relative]
        if shown in self.overlay:
            return self.overlay[shown]
        target = self.targets.get(shown)
        return target.text if target is not None else read_source(self.paths[relative], shown).text

    def _plain(self, relative: str) -> str:
        try:
            return self.text(relative)
        except SourceError:
            return ""

    def target_text(self, shown: str) -> str:
        """The text of a target by the path that is shown."""
        return self.overlay[shown] if shown in self.overlay else self.targets[shown].text

    def _read(self, relative: str) -> tuple[str, ast.Module] | None:
        shown = self.display[relative]
        try:
            text = self.text(relative)
            tree = parse(text, shown)
            self.readable.add(shown)
            return text, tree
        except Unparsable as problem:
            self.broken[shown] = problem.skipped
        except SourceError:
            pass
        return None

    def for_worker(self) -> Project:
        """The same tree without what is parsed, to be sent to another process."""
        return Project(self.root, self.paths, self.display, self.targets, self.overlay)


def projects_of(targets: Sequence[SourceFile], overlay: Mapping[str, str]) -> list[Project]:
    """The trees that ``targets`` stand in: most often one, the project that holds all of them."""
    return [_project(root, members, overlay) for root, members in _by_root(targets)]


def _project(root: Path, members: list[SourceFile], overlay: Mapping[str, str]) -> Project:
    known = {member.absolute: member for member in members}
    paths: dict[str, Path] = {}
    display: dict[str, str] = {}
    for path in {*_around(root, members), *known}:
        try:
            relative = path.relative_to(root).as_posix()
        except ValueError:
            relative = path.name
        paths[relative] = path
        display[relative] = known[path].path if path in known else display_path(path)
    return Project(root, paths, display, {m.path: m for m in members}, dict(overlay))


def _around(root: Path, members: list[SourceFile]) -> list[Path]:
    if root in (Path.home(), Path(tempfile.gettempdir()), root.parent):
        # A file that lies directly there is alone: everything below is no project.
        return [path for path in root.glob("*.py") if path.is_file()]
    if not root.is_dir():
        return []
    # Below a folder that is no project the projects of others are no part of its tree.
    above = {folder for member in members for folder in member.absolute.parents}
    own = None if begins_project(root) else {folder.resolve() for folder in above}
    # Nobody imports a notebook, and those that nobody named are large to read.
    return [path for path in discover([root], cwd=root, projects=own).files if path.suffix == ".py"]


def _by_root(targets: Sequence[SourceFile]) -> list[tuple[Path, list[SourceFile]]]:
    if not targets:
        return []
    common = Path(os.path.commonpath([target.absolute.parent for target in targets]))
    root = project_root(common)
    if len(root.parts) > 2 or len(targets) == 1:
        return [(root, list(targets))]
    by_root: dict[Path, list[SourceFile]] = {}
    for target in targets:
        by_root.setdefault(project_root(target.absolute), []).append(target)
    return list(by_root.items())
