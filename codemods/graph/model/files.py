"""The files of a tree, parsed when they are needed, and imports resolved among them."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable
from pathlib import PurePosixPath

from codemods.graph.model.modules import Modules, Quiet
from codemods.graph.model.program import ParsedFile, Tree


class Files:
    """Parsed files by their path below the tree's root; ``read`` gives the text and syntax tree of one, or
    None if it cannot be read or parsed, ``text`` the text alone."""

    room = 3_500_000
    """How many characters of source may be parsed at a time."""

    def __init__(
        self, tree: Tree, read: Callable[[str], tuple[str, ast.Module] | None], text: Callable[[str], str]
    ) -> None:
        self.tree = tree
        self.read = read
        self.text = text
        self.parsed: dict[str, ParsedFile | None] = {}
        self.modules = Modules()
        self.imports: dict[str, list[str]] = {}
        """The files of the tree that a file imports, by its path."""
        self.quiet: dict[str, Quiet] = {}
        """Files whose import is known to change nothing but what they bind themselves, by their paths."""
        self.objects = 0
        """How many objects the garbage collector may count that are syntax trees."""
        self._characters = 0
        self._of_one_run = True
        """Whether all that is parsed was parsed for one run."""
        self._most = 0
        """How many characters one run has needed, where nothing was there before."""

    def file(self, relative: str) -> ParsedFile | None:
        """The parsed file at ``relative``, None if it does not parse."""
        if relative not in self.parsed:
            file = self.parsed[relative] = self._parse(relative)
            if file is not None:
                self._count(file)
        return self.parsed[relative]

    def glance(self, relative: str) -> ParsedFile | None:
        """The same for a file that may not be asked for again: while there is little room it is not kept."""
        if relative in self.parsed or self._characters < self.room // 3:
            return self.file(relative)
        return self._parse(relative)

    def mentions(self, relative: str, word: str) -> bool:
        """Whether ``word`` stands in a file, which is not parsed for that."""
        file = self.parsed.get(relative)
        return word in (file.text if file is not None else self.text(relative))

    def keep(self, file: ParsedFile) -> None:
        """Keep a file that was glanced at: who asks for it from now on gets this one."""
        relative = file.relative.as_posix()
        if self.parsed.get(relative) is not file:
            self.parsed[relative] = file
            self._count(file)

    def _count(self, file: ParsedFile) -> None:
        self._characters += len(file.text)
        self.objects += file.objects

    def _parse(self, relative: str) -> ParsedFile | None:
        before = gc.get_count()[0]
        found = self.read(relative)
        if found is None:
            return None
        file = ParsedFile(self.tree.display.get(relative, relative), PurePosixPath(relative), *found)
        file.objects = max(0, gc.get_count()[0] - before)
        return file

    def trim(self, room: int | None = None) -> bool:
        """Forget what is parsed and loaded, if that is more than ``room``: memory stays bounded in large trees. Not
        while a run goes on, which knows functions by their syntax nodes.

        Where a single run needs more than there is room for, the next one most often needs the same: what is kept is
        bounded by that, and an eighth more.
        """
        if self._of_one_run and self._characters:
            self._most = max(self._most, self._characters)
            self._of_one_run = False
        if self._characters <= (max(self.room, self._most + self._most // 8) if room is None else room):
            return False
        for file in self.parsed.values():
            if file is not None:
                file.forget()
        self.parsed = {}
        self.modules.forget()
        self.modules = Modules()
        self._characters = self.objects = 0
        self._of_one_run = True
        return True

    def import_module(self, module: str, importer: ParsedFile) -> str | None:
        """What ``import module`` means in ``importer``: a file, a folder (with ``/`` after it), None outside the
        tree."""
        return self.tree.resolve(module, importer.relative)

    def package(self, module: str, importer: ParsedFile) -> str | None:
        """The same for a package of which ``importer`` imports a module."""
        return self.tree.package(module, importer.relative)

    def import_relative(self, module: str | None, level: int, importer: ParsedFile) -> str | None:
        """The same for relative imports."""
        return self.tree.resolve_relative(module, level, importer.relative)

    def member_file(self, package: str, name: str) -> str | None:
        """The file or folder ``name`` in a package's folder."""
        return self.tree.at(f"{package}/{name}" if package else name)

    def members(self, package: str) -> dict[str, str]:
        """The modules and packages in a package's folder, by their names."""
        return self.tree.inside(package)
