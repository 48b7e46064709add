"""Rules that a project leaves out of some of its files: ``[tool.codemod.per-file-ignores]``."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass

from codemods.source.gitignore import IgnoreRules, ignored


def fits(patterns: Sequence[str], root: str, path: str) -> bool:
    """Whether the file ``path`` (absolute), or a folder that it is in, fits ``patterns``, in the syntax of .gitignore.

    They are relative to the folder ``root``; a file outside it fits none. The last pattern that fits counts, and one
    that begins with ``!`` takes back what those before it say.
    """
    folder = root.rstrip("/" + os.sep)
    if not path.startswith(folder + os.sep):
        return False
    rules = (IgnoreRules(folder, ["/" + pattern[2:] if pattern.startswith("./") else pattern for pattern in patterns]),)
    parts = path[len(folder) + 1 :].split(os.sep)
    place = folder
    for number, part in enumerate(parts, 1):
        place = f"{place}/{part}"
        if ignored(rules, place, part, number < len(parts)):
            return True
    return False


@dataclass(frozen=True)
class PerFileIgnores:
    """Patterns of files, relative to the folder ``root``, each with the rules that are skipped in matching files."""

    root: str = ""
    entries: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def rules(self, path: str) -> frozenset[str]:
        """The rules that are left out of the file ``path``, which if relative is so to the working directory."""
        if not self.entries:
            return frozenset()
        return _rules(self, os.path.abspath(path))


@functools.lru_cache(maxsize=4096)
def _rules(given: PerFileIgnores, path: str) -> frozenset[str]:
    return frozenset(rule for pattern, rules in given.entries if fits((pattern,), given.root, path) for rule in rules)
