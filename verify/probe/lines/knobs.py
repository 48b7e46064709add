"""What the run's own knobs are at run time: loops that end early and bounds that count as met.

The host writes calls of these into the programs (:mod:`verify.reaching.knobs`), into the original and the rewritten one
alike. They stand among the builtins, because a program may be made of any number of modules.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from ..guarding.guard import Write

_CALL = re.compile(r"__codemod_(?:turns|turn|bound)__\(\((.*?)\), (?:'[^'\n]*'|\"[^\"\n]*\"), \w+\)")
TURNS, TURN, BOUND = "__codemod_turns__", "__codemod_turn__", "__codemod_bound__"


def plain(text: str) -> str:
    """``text``, lines of a program, without what was written into them."""
    return _CALL.sub(r"\1", text)


def install(write: Write) -> None:
    """Make the three functions known to every module; each knob that does something writes one ``knob`` event."""
    told = set()

    def tell(kind: str, place: str, turns: int) -> None:
        if (kind, place) not in told:
            told.add((kind, place))
            path, _, line = place.rpartition(":")
            write({"event": "knob", "kind": kind, "path": path, "line": int(line), "turns": turns})

    def turns(iterable: Iterable[Any], place: str, most: int) -> Iterator[Any]:
        """``iterable``, which ends after ``most`` turns; what comes after them is not even asked for."""
        for count, item in enumerate(iterable, 1):
            yield item
            if count == most:
                tell("loop", place, most)
                return

    counts: dict[str, list[Any]] = {}

    def turn(test: Any, place: str, most: int) -> Any:
        """``test``, until it was asked ``most`` times in one call of its function."""
        frame = id(sys._getframe(1))
        known = counts.get(place)
        if known is None or known[0] != frame:
            known = counts[place] = [frame, 0]
        known[1] += 1
        if not test:
            del counts[place]
            return test
        if known[1] > most:
            tell("loop", place, most)
            del counts[place]
            return False
        return test

    def bound(test: Any, place: str, wanted: bool) -> Any:
        """``wanted`` instead of a plain truth value."""
        if not isinstance(test, bool) or test is wanted:
            return test
        tell("bound", place, int(wanted))
        return wanted

    for name, function in ((TURNS, turns), (TURN, turn), (BOUND, bound)):
        setattr(builtins, name, function)
