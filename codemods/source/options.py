"""What a user can choose, for every command alike; the command line and ``[tool.codemod]`` fill it in."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

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


#: How changes become commits.
STYLES = ("per-rule", "per-file", "one")
#: Where programs of the user's run, and how files are kept from them; the default first.
DEVICES = ("auto", "cpu", "cuda")
ISOLATIONS = ("auto", "overlay", "copy")
#: What an option may be that is one of a few words, its default first.
CHOICES = {
    "color": ("auto", "always", "never"),
    "hidden_state": ("auto", "reinit", "detach"),
    "total_style": ("auto", "float", "item", "detach"),
    "no_grad_style": ("auto", "decorator", "with"),
}


@dataclass(frozen=True)
class Options:
    """Choices that change what is found or how it is mended.

    ``select`` and ``ignore`` are rule names (an empty ``select`` means every rule that is not opt-in). What the styles
    may be stands in :data:`CHOICES`.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    likely: bool = field(default=False, metadata={"set by": "what runs the program"})
    """Whether findings that are likely are mended, too; set by what runs the program and keeps only what held."""
    hidden_state: str = "auto"
    total_style: str = "auto"
    no_grad_style: str = "auto"
    target_torch: str = "current"
    """The oldest PyTorch that the rewritten code has to run on."""
    python2: bool = False
    """Whether files of Python 2 are translated before anything else."""
    per_file_ignores: PerFileIgnores = field(default_factory=PerFileIgnores)
    """Rules that are left out of some files."""
    cache: bool = field(default=False, metadata={"set by": "--no-cache"})
    """Whether what earlier runs have found is used, and what this one finds is kept in the project."""
