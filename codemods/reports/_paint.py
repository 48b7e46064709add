"""Colours of a terminal, and what each says: how much a finding matters, and what its rewrite promises."""

from __future__ import annotations

from codemods.reports._listed import LEVELS
from codemods.source.diffs import printable
from codemods.terms.findings import Promise

BOLD, DIM, RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
RED, GREEN, YELLOW, BLUE, CYAN = (f"\x1b[{code}m" for code in (31, 32, 33, 34, 36))

#: What each level looks like.
SEVERITY = {promise: {"error": RED, "warning": YELLOW, "note": CYAN}[level] for promise, level in LEVELS.items()}
#: Green is what may be applied without a thought.
PROMISED = {
    Promise.EXACT: GREEN,
    Promise.EQUIVALENT: GREEN,
    Promise.REPAIR: GREEN,
    Promise.BEHAVIOUR: RED,
    Promise.ADVICE: CYAN,
}


class Paint:
    """Puts text into colours, or leaves it as it is; in either case nothing in it can steer the terminal."""

    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def __call__(self, style: str, text: str) -> str:
        """Return ``text`` in a ``style``, one of the sequences above."""
        text = printable(text)
        return f"{style}{text}{RESET}" if self._colour else text
