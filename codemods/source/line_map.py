"""Where lines of a text went in a later one."""

from __future__ import annotations

import bisect
import re

from codemods.source.diffs import Block, blocks

_LINE_END = re.compile(r"\r\n?|\n")


class LineMap:
    """Where the lines of ``new`` come from in ``old``; both count from 1, in the lines that Python sees.

    Indentation does not count, so that a block which moved under a ``with`` is still the block it was.
    """

    def __init__(self, old: str, new: str) -> None:
        self.old = [line.strip() for line in _LINE_END.split(old)]
        self.new = [line.strip() for line in _LINE_END.split(new)]
        #: The stretches that are the same but for indentation, and those that are not, in order; places from 0.
        self.blocks = blocks(self.old, self.new)
        self._starts = [block.new_start for block in self.blocks]

    def origins(self, line: int) -> range:
        """Return the old lines that the new ``line`` may stand for: one, several, or none if it was added."""
        block, shift = self._block(line)
        if block.old_end - block.old_start == block.new_end - block.new_start:
            return range(block.old_start + shift + 1, block.old_start + shift + 2)
        return range(block.old_start + 1, block.old_end + 1)

    def origin(self, line: int) -> int:
        """Return the one old line to show for the new ``line``: its own, or the nearest for an added one."""
        found = self.origins(line)
        if not found:
            return max(1, min(found.start, len(self.old)))
        return found[min(self._block(line)[1], len(found) - 1)]

    def _block(self, line: int) -> tuple[Block, int]:
        # Of blocks that begin at one line, only the last has lines of its own there.
        block = self.blocks[max(0, bisect.bisect_right(self._starts, line - 1) - 1)]
        return block, line - 1 - block.new_start
