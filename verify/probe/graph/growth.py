"""Whether graphs pile up over the steps: looked at while the script runs, and counted in full at the end."""

from __future__ import annotations

import gc
import typing
from types import FrameType
from typing import Any

from ..lines.sites import Tree
from .holders import holders
from .nodes import Graph, leaks, old

#: Numbers of steps after which a look is worth it; at the end of a function its variables are gone, and so is a leak.
_LOOKS = frozenset({8, 12, 16, 32, 64, 128, 256})


class Growth:
    """Counts steps in ``graph`` and keeps the worst that was seen.

    ``full``: whether a look counts graphs that no backward has reached too, which takes a walk over all objects.
    """

    def __init__(self, graph: Graph, tree: Tree, full: bool = False) -> None:
        self._graph = graph
        self._full = full
        self._tree = tree
        #: The census event of the worst look on the way at which graphs piled up.
        self.worst: dict[str, Any] | None = None
        #: Called with the user's frames whenever graphs are seen to pile up.
        self.seen: typing.Callable[[list[FrameType]], None] | None = None

    def cut(self, frame: FrameType | None) -> None:
        """A step ends; ``frame`` is where."""
        graph = self._graph
        graph.cut()
        if self.worst is not None and graph.sliding:
            # What was seen was a window that filled.
            self.worst = None
        count = graph.standing if self._full else graph.ages
        if graph.cuts in _LOOKS and leaks(count(), graph.cuts):
            # Garbage that waits for its collection is no leak.
            gc.collect()
            ages = count()
            if leaks(ages, graph.cuts) and not graph.slides(ages):
                self._keep(self._event(ages, self._tree.frames(frame)))

    def restart(self) -> None:
        """Count steps anew; what was seen with the worse clock is forgotten."""
        self._graph.restart()
        self.worst = None

    def census(self, frames: list[FrameType]) -> dict[str, Any]:
        """The census event: of now, or of an earlier step where graphs piled up that are gone now."""
        event = self._event(self._graph.census(), frames)
        return event if event["leak"] or self.worst is None else self.worst

    def _keep(self, event: dict[str, Any]) -> None:
        known = self.worst
        if known is None or old(event["ages"], event["boundaries"]) > old(known["ages"], known["boundaries"]):
            self.worst = event

    def _event(self, ages: dict[int, int], frames: list[FrameType]) -> dict[str, Any]:
        cuts = self._graph.cuts
        leak = leaks(ages, cuts) and not self._graph.slides(ages)
        names = holders(self._graph, cuts, self._tree, frames) if leak else []
        if leak and self.seen is not None:
            self.seen(frames)
        return {"event": "census", "boundaries": cuts, "ages": ages, "leak": leak, "holders": names}
