"""The mistakes that this project began with, as the pages of ``docs/stories`` tell them: a program that runs into its
error, what the doctor says of it, and the repair."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

STORIES = Path(__file__).resolve().parents[3] / "docs" / "stories"


class Seed(NamedTuple):
    """A page, a line of another choice (if there is one), and how many parameters learn with the repair."""

    page: str
    other: str
    learning: int

    def block(self, language: str) -> str:
        """The one block of the page that is written in ``language``."""
        text = (STORIES / f"{self.page}.md").read_text(encoding="utf-8")
        (found,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        assert isinstance(found, str)
        return found


SEEDS = [
    Seed("a-cached-matrix-of-trained-weights", "self.table = self.table.detach()", 5),
    Seed("a-cut-where-two-parameters-meet", "", 4),
    Seed("a-hidden-state-of-another-module", "self.hidden = self.hidden.new_zeros(self.hidden.shape)", 6),
    Seed("a-loss-carried-into-the-next-batch", "smooth = smooth.new_zeros(smooth.shape)", 2),
    Seed("an-encoder-and-a-decoder-in-two-optimizers", "(rebuilt + spread).backward()", 6),
    Seed("an-attribute-that-is-no-buffer", "self.table = self.table.to(x.device)", 2),
]
