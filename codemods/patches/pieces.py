"""A hunk to be fitted: the lines that go and come, and all that tells where they belong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codemods.source.files import digest_of

NEAR = 3
"""Lines of context on either side that have to be there, as in a diff."""
WIDE = 10
"""Lines on either side that are kept to tell equal places apart."""

_CELL = "# %% [codemod, cell "


@dataclass(frozen=True)
class Piece:
    """Lines with their ends: ``removed`` become ``added`` between ``above`` and ``below``; ``line`` is where, from 1.

    ``function`` is the dotted name of what was around it. ``before`` and ``after`` are digests of all that stood above
    and below, and of what stands there once the other hunks are made, as ``above_later`` and ``below_later`` do next to
    it; empty where nobody knows. ``single``: nothing like it stood anywhere else; ``fresh``: nothing like what it makes
    stood in the function. ``changes`` are indices of changes that it belongs to.
    """

    number: int
    path: str
    line: int
    above: tuple[str, ...]
    removed: tuple[str, ...]
    added: tuple[str, ...]
    below: tuple[str, ...]
    function: str | None = None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    single: bool = True
    fresh: bool = False
    changes: tuple[int, ...] = ()
    above_later: tuple[str, ...] | None = None
    below_later: tuple[str, ...] | None = None

    @property
    def contexts(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """The near context above and below: as it was, and as it is where hunks next to it are made already."""
        aboves = dict.fromkeys(
            (self.above[-NEAR:], (self.above if self.above_later is None else self.above_later)[-NEAR:])
        )
        belows = dict.fromkeys(
            (self.below[:NEAR], (self.below if self.below_later is None else self.below_later)[:NEAR])
        )
        return [(above, below) for above in aboves for below in belows]

    @property
    def needs_import_only(self) -> bool:
        """Whether it adds imports and nothing else: several changes may need it, and each can do with it alone."""
        return not self.removed and all(
            line.lstrip().startswith(("import ", "from ")) or not line.strip() for line in self.added
        )


def content(line: str) -> str:
    """Return a line without its end. What tells a cell of a notebook is the same for all: a cell put above moves it."""
    bare = _bare(line)
    return _CELL if bare.startswith(_CELL) else bare


def ending(line: str) -> str:
    """Return the end of a line; empty for the last one of a file without one."""
    return line[len(_bare(line)) :]


def _bare(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def digest(lines: Sequence[str]) -> str:
    """Return a fingerprint of lines, whatever their ends."""
    return digest_of("\n".join(map(content, lines)).encode("utf-8", "surrogatepass"))
