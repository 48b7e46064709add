"""``verify.watch(report=FILE)``: the doctor in the user's own process, for training that runs for hours.

What a run of ``codemod doctor`` records first is recorded here; nothing is run twice, so names are those of the moment
at which a fault shows, and lines that get slower are not looked for.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from codemods.source.logs import quoted
from verify.diagnosis import allocator, diagnose, learning
from verify.diagnosis.evidence import Sources
from verify.diagnosis.measures import measured
from verify.diagnosis.model import Diagnosis
from verify.diagnosis.reports import html, text
from verify.diagnosis.reports import json as as_json
from verify.live import watching
from verify.live.observer import Observer
from verify.measured.reading import read_record
from verify.measured.results import Outcome, Run
from verify.probe.lines import errors
from verify.probe.process.identity import frames_of, outward

_RENDER = {"html": html.render, "json": as_json.render, "text": text.render}
_WATCHED = diagnose.WATCHED[:-1]


def watch(
    *, root: str | os.PathLike[str] | None = None, report: str | os.PathLike[str] | None = None
) -> watching.Watch:
    """Return a context manager that watches the autograd graph of this process while its block runs.

    ``root``: the folder of the code whose lines and variables are named; by default all code that is not installed.
    ``report``: where to write what is wrong (.html, .json or text), as `codemod doctor` tells it: as soon as the graph
    is seen to grow, and at the end, by an error or without. Where nothing is wrong nothing is written.

    Entering raises ImportError without torch 2.0 or newer, and RuntimeError while another watch is on: both would mark
    the same graph nodes.
    """
    return watching.watch(root=root) if report is None else AttachedWatch(root, Path(report))


class AttachedWatch(watching.Watch):
    """A watch that writes a diagnosis to ``report``, or where it is None to standard error.

    ``form`` is text, json or html; by default the ending of ``report`` says it. ``told`` are the kinds of the faults
    that were written down.
    """

    def __init__(self, root: str | os.PathLike[str] | None, report: Path | None, form: str = "") -> None:
        super().__init__(root)
        self._report = None if report is None else report.absolute()
        suffix = "" if report is None else report.suffix[1:]
        self._render = _RENDER[form or (suffix if suffix in _RENDER else "text")]
        self._events: list[dict[str, Any]] = []
        self.told: list[str] = []
        #: What runs, as people would call it.
        self.command = "this process"

    def _observe(self) -> Observer:
        observer = Observer(self._root, told=self._events)
        observer.noticed = self._grown
        return observer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        observer = self._seen
        more: list[dict[str, Any]] = []
        try:
            more += observer.finish([*frames_of(traceback), *outward(sys._getframe(1))])
            if isinstance(error, Exception):
                more.append({"event": "error", "site": observer.where(traceback), **errors.trouble(error)})
        finally:
            super().__exit__(kind, error, traceback)
        self._write(more)

    def _grown(self, frame: FrameType | None) -> None:
        census = self._seen.worst
        if census is not None:
            self._write([census])

    def _write(self, more: list[dict[str, Any]]) -> None:
        diagnosis = self.diagnosis(more)
        kinds = [fault.kind.value for fault in diagnosis.faults]
        if not kinds:
            return
        if self._report is not None:
            self._report.write_text(self._render(diagnosis), encoding="utf-8")
        elif kinds != self.told:
            # People see it scroll by; the same again at the end would tell them nothing.
            print(quoted(self._render(diagnosis)), file=sys.stderr, flush=True)
        self.told = kinds

    def diagnosis(self, more: list[dict[str, Any]]) -> Diagnosis:
        """Return what is wrong, by what was recorded so far and the events ``more``."""
        observer = self._seen
        # As the parent process would read it: sites and numbers only.
        lines = [json.dumps(event) for event in [*self._events, *map(_step, observer.live), *more]]
        run = Run("watched", (), Outcome.OK, None, 0.0, 0, (read_record("\n".join(lines)),), "")
        sources = Sources(Path(observer.root))
        return Diagnosis(
            command=self.command,
            root=observer.root,
            faults=tuple(diagnose.pictured(fault, run, run, sources) for fault in diagnose.faults(run, sources)),
            remarks=tuple(learning.remarks(run)),
            watched=(*_WATCHED, *(diagnose.ON_A_CARD if allocator.watched(run) else ())),
            unwatched=tuple(observer.notes),
            steps=observer.steps,
            backwards=observer.backwards,
            runs=(),
            measures=measured(run),
        )


def _step(live: int) -> dict[str, Any]:
    """A step that was made, as far as growth is concerned."""
    nothing = {"digest": "", "count": 0, "sums": ""}
    event = {"event": "step", "optimizer": 0, "name": "", "call": 0, "site": None, "time": 0.0, "live": live}
    return {**event, "params": nothing, "bytes": 0, "peak": 0}
