"""What goes into a call that is left out, or into a module that is not there, is looked at: nobody else reads it."""

from __future__ import annotations

import os
import typing
from collections.abc import Callable
from typing import Any

from ..guarding.guard import Part, Write
from ..state import returned
from ..values.digests import Parameters

_UNREAD: typing.Dict[str, Any] = {"form": [], "graphs": "", "digest": "", "count": 0, "sums": ""}  # noqa: UP006
#: So many calls of one place are looked at, and of so many the gradients, too.
_MOST, _MOST_GRADIENTS = 2000, 200
_MOST_ELEMENTS = 1 << 22


class Observer:
    """Writes ``observed`` events. ``backwards`` is what counts backwards that are not the script's (``running``)."""

    def __init__(self, write: Write, part: Part, begun: Callable[[], bool], backwards: Callable[[], Any]) -> None:
        self._write = write
        self._part = part
        self._begun = begun
        self._backwards = backwards
        self._reader = Parameters()
        self._calls: dict[str, int] = {}
        self._inside = False
        self._pid = os.getpid()
        self._blind: set[str] = set()

    def see(self, place: str, values: Any, *, deep: bool = False, graphs: bool = True) -> None:
        """``values`` go into ``place``. ``deep``: it reads more than these; ``graphs``: they are compared, too."""
        backwards = self._backwards()
        if os.getpid() != self._pid:
            self._unseen(place)
            return
        if self._inside or backwards is None or not self._part.on:
            return
        call = self._calls[place] = self._calls.get(place, 0) + 1
        if call > _MOST + 1:
            return
        self._inside = True
        # A backward of ours is none of the script's.
        backwards.running += 1
        try:
            with self._part:
                event = {"event": "observed", "place": place, "call": call, "begun": self._begun(), "whole": False}
                event.update(_UNREAD)
                if call <= _MOST:
                    event.update(self._read(values, graphs, call))
                    event["whole"] = bool(event["whole"]) and not deep
                self._write(event)
        finally:
            backwards.running -= 1
            self._inside = False

    def _unseen(self, place: str) -> None:
        """In a worker of a loader nothing is looked at; that is told, once, of what is left out there."""
        if self._begun() and place not in self._blind and place[:1].isdigit():
            self._blind.add(place)
            self._write({"event": "observed", "place": place, "call": 1, "begun": True, "whole": False, **_UNREAD})

    def _read(self, values: Any, graphs: bool, call: int) -> dict[str, Any]:
        import torch

        parts = returned.Parts(values)
        if parts.size > _MOST_ELEMENTS:
            return {"whole": False}
        numbers = [torch.tensor(number, dtype=torch.float64) for number in parts.numbers]
        behind = returned.gradients(parts.outputs) if graphs and call <= _MOST_GRADIENTS else []
        whole = parts.whole and (call <= _MOST_GRADIENTS or not parts.outputs or not graphs)
        carried = "".join(parts.graphs) if graphs else ""
        if behind is None:
            # It may be this very walk that fails: then by what the graph is made of.
            carried += returned.structure(parts.outputs)
        fields = {"form": parts.form, "graphs": carried, "whole": whole}
        return {**fields, **self._reader.read([*parts.tensors, *(behind or ()), *numbers])}
