"""The files of a tree, parsed when they are needed, and imports resolved among them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import PurePosixPath

from codemods.graph.modules import Modules
from codemods.graph.program import ParsedFile, Tree


class Files:
    """Parsed files by their path below the tree's root; ``read`` gives the text and syntax tree of one, or
    None if it cannot be read or parsed."""

    def __init__(self, tree: Tree, read: Callable[[str], tuple[str, ast.Module] | None]) -> None:
        self.tree = tree
        self.read = read
        self.parsed: dict[str, ParsedFile | None] = {}
        self.modules = Modules()
        self._characters = 0

    def file(self, relative: str) -> ParsedFile | None:
        """The parsed file at ``relative``, None if it does not parse."""
        if relative not in self.parsed:
            found = self.read(relative)
            self._characters += len(found[0]) if found is not None else 0
            self.parsed[relative] = (
                None
                if found is None
                else ParsedFile(self.tree.display.get(relative, relative), PurePosixPath(relative), *found)
            )
        return self.parsed[relative]

    def trim(self, characters: int = 6_000_000) -> bool:
        """Forget what is parsed and loaded, if that is more source than ``characters``: memory stays bounded in large
        trees. Not while a run goes on, which knows functions by their syntax nodes."""
        if self._characters <= characters:
            return False
        self.parsed = {}
        self.modules = Modules()
        self._characters = 0
        return True

    def import_module(self, module: str, importer: ParsedFile) -> str | None:
        """What ``import module`` means in ``importer``: a file, a folder (with ``/`` behind it), None outside the
        tree."""
        return self.tree.resolve(module, importer.relative)

    def import_relative(self, module: str | None, level: int, importer: ParsedFile) -> str | None:
        """The same for relative imports."""
        return self.tree.resolve_relative(module, level, importer.relative)

    def member_file(self, package: str, name: str) -> str | None:
        """The file or folder ``name`` in a package's folder."""
        return self.tree.at(f"{package}/{name}" if package else name)
