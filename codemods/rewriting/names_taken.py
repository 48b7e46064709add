"""Which names of a file other files of its project take from it, so that no edit removes an import they live on.

Research code does this all the time: ``from utils import *`` brings ``torch`` along. Files are searched, not parsed,
and a module is known by the last part of its name: a name too many costs an unused import, one too few a broken run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from codemods.source.discovery import discover, project_root
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_source

_IMPORT = re.compile(
    r"(?:^|[;:\r\n])[ \t]*"
    r"(?:from[ \t]+(?P<module>[.\w]+)[ \t]*import\b[ \t]*(?P<names>\([^)]*\)|(?:[^\r\n;#\\]|\\\r?\n)*)"
    r"|import[ \t]+(?P<modules>(?:[^\r\n;#\\]|\\\r?\n)+))"
)
_COMMENT = re.compile(r"#[^\r\n]*")
_ITEM = re.compile(r"([\w.*]+)(?:\s+as\s+(\w+))?")


class Exports:
    """The imports of all projects that ``targets`` belong to; a project is read when somebody asks for a file of it."""

    def __init__(self, targets: Iterable[SourceFile]) -> None:
        self._targets = list(targets)
        self._indices: dict[Path, _Index] = {}
        self._answers: dict[Path, frozenset[str]] = {}

    def of(self, source: SourceFile) -> frozenset[str]:
        """Return the names that other files of its project take from ``source``: too many rather than too few."""
        if source.absolute not in self._answers:
            root = project_root(source.absolute)
            if root not in self._indices:
                self._indices[root] = _Index(self._texts(root))
            self._answers[source.absolute] = self._indices[root].taken_from(source)
        return self._answers[source.absolute]

    def _texts(self, root: Path) -> dict[Path, str]:
        texts = {target.absolute: target.text for target in self._targets if target.absolute.is_relative_to(root)}
        for path in discover([root], cwd=root).files:
            if path not in texts:
                try:
                    texts[path] = read_source(path).text
                except SourceError:
                    continue
        return texts


class _Index:
    """Who imports what: by the last part of a module's name, the names taken from it and those it goes by."""

    def __init__(self, texts: dict[Path, str]) -> None:
        self._texts = texts
        self._taken: dict[str, list[tuple[Path, str]]] = defaultdict(list)
        self._known_as: dict[str, list[tuple[Path, str]]] = defaultdict(list)
        for path, text in texts.items():
            for match in _IMPORT.finditer(text):
                self._add(path, match)

    def _add(self, path: Path, match: re.Match[str]) -> None:
        module = match["module"]
        for name, alias in _ITEM.findall(_COMMENT.sub("", match["names"] or match["modules"] or "")):
            last = name.rpartition(".")[2]
            if module is not None:
                self._taken[module.rpartition(".")[2]].append((path, name))
            # What is taken from a package may be a module itself.
            self._known_as[last].append((path, alias or last))

    def taken_from(self, source: SourceFile) -> frozenset[str]:
        is_package = source.absolute.stem == "__init__"
        stem = source.absolute.parent.name if is_package else source.absolute.stem
        taken = self._taken[stem] + (self._taken[""] if is_package else [])
        names = {name for path, name in taken if path != source.absolute}
        if "*" in names:
            return frozenset(re.findall(r"\w+", source.text))
        for path, alias in set(self._known_as[stem]):
            if path != source.absolute:
                names.update(re.findall(rf"\b{re.escape(alias)}\s*\.\s*(\w+)", self._texts[path]))
        return frozenset(names)
