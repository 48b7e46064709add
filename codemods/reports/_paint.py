"""Colours of a terminal, and what each says: how much a finding matters, and what its rewrite promises."""

from __future__ import annotations

from codemods.source.diffs import printable
from codemods.terms.findings import Promise

BOLD, DIM, RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
RED, GREEN, YELLOW, BLUE, CYAN = (f"\x1b[{code}m" for code in (31, 32, 33, 34, 36))

#: What raises or grows without bound is an error, what costs a warning, what may be wrong a note.
SEVERITY = {
    Promise.EXACT: YELLOW,
    Promise.EQUIVALENT: YELLOW,
    Promise.REPAIR: RED,
    Promise.BEHAVIOUR: YELLOW,
    Promise.ADVICE: CYAN,
}
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
