"""What a probed process wrote down, and how it is read back: the one contract between the probe and everything else.

The probe (:mod:`verify.probe`) runs in the user's interpreter and knows nothing of this module; it writes one JSON
object a line, each flushed at once, so that what a killed process saw is not lost. The first word of every line is
``event``. A file holds one process; its name is ``<process>-<pid>.jsonl``. Unknown events and unknown fields are
ignored, so that an older reader copes with a newer probe.

A *site* is ``[path, line, function]``, the innermost frame that belongs to the user's tree; ``path`` is relative to the
root of the tree with ``/``, and the whole is null where no frame of the tree was on the stack. Times are seconds since
the probe started, memory is in bytes, and floats that must be compared bit for bit are ``float.hex()`` strings
(``"nan"``, ``"inf"``, ``"-inf"`` for those).

The events and their fields:

* ``start``: version (of this contract, 1), pid, process (``main``, ``rank-1``, ``SpawnProcess-2``), python, torch,
  device (``cpu`` or the card's name), cuda (version or null), threads, argv
* ``backward``: index (from 0), site, call (k-th call at that site, from 1), time, losses (list of {value, digest,
  numel} for each output, value null unless one element), rng (fingerprint of the generators), retain, create, grad
  (true where ``autograd.grad`` was called), nodes (new graph nodes walked), live (graph nodes alive before it),
  seconds (that it took), bytes, peak, error (null or {type, message, kind})
* ``step``: optimizer (index in order of first step), name (its class), call (k-th step of it, from 1), site, time,
  live (graph nodes alive), params ({digest, count, sample: [float.hex, ...]}), bytes, peak
* ``reached``: path, line: a watched line ran for the first time
* ``seed``: generator (torch, random, numpy), value: what the script seeded with; replayed by later runs
* ``standin``: what (the data set or file), why, shape: data of ours took the place of missing data
* ``device``: what: a request for a device that this machine lacks was answered by the CPU (once a kind of request)
* ``capped``: site, length, cap: a DataLoader that stopped after ``cap`` of ``length`` batches (once a site)
* ``caught``: site, error: an exception that came out of a backward; the script may have caught it
* ``error``: type, message, kind, site, traceback (text, user frames and the last frames of libraries), missing (null,
  or the path or module that is not there)
* ``forwards``: sites: list of {site, calls, used, peak}: root-module forwards with gradients on; ``used`` were
  reached by a backward, ``peak`` unused ones were alive at once
* ``loaded``: paths: the Python files of the tree that were imported or run, relative to the root
* ``census``: boundaries (number of steps or backwards that cut time), ages ({birth: nodes alive}), leak (bool),
  holders (list of {name, function, nodes, births})
* ``overhead``: seconds: what the probe itself took
* ``note``: text: something that limits what may be claimed, for people
* ``end``: reason: steps, backwards, completed, exit (with ``status``), raised, watchdog

``kind`` of an error is ``freed`` (a second time through a graph), ``inplace``, ``memory`` (out of memory), ``missing``
(module or file), or ``other``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

VERSION = 1


class Site(NamedTuple):
    """A line of the user's tree and the function that it stands in; of a notebook the line in its ``cell``."""

    path: str
    line: int
    function: str
    cell: int | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.cell is None else f"{self.path}:cell {self.cell}:{self.line}"


class Trouble(NamedTuple):
    """An exception: its type's name, its message and what kind of trouble it is (see the module's docstring)."""

    type: str
    message: str
    kind: str


class Loss(NamedTuple):
    """One output of a backward: its value if it has one element, and a digest of its bytes."""

    value: float | None
    digest: str
    numel: int


@dataclass(frozen=True)
class Backward:
    """One call of ``backward`` or ``autograd.grad``."""

    index: int
    site: Site | None
    call: int
    time: float
    losses: tuple[Loss, ...]
    rng: str
    retain: bool
    create: bool
    grad: bool
    nodes: int
    live: int
    seconds: float
    bytes: int
    peak: int
    error: Trouble | None
    #: How many optimizer steps, of all optimizers together, were complete when it was called.
    steps_before: int


@dataclass(frozen=True)
class Step:
    """One optimizer step that was made: who, when, and the parameters after it."""

    optimizer: int
    name: str
    call: int
    site: Site | None
    time: float
    live: int
    digest: str
    count: int
    sample: tuple[float, ...]
    bytes: int
    peak: int


class Forwards(NamedTuple):
    """Forwards of root modules at one site while gradients were on."""

    site: Site | None
    calls: int
    used: int
    peak: int

    @property
    def wasted(self) -> bool:
        """Whether graphs are built here that no backward ever uses; fewer than three calls say nothing."""
        return self.used == 0 and self.calls >= 3


class Holder(NamedTuple):
    """Who keeps old graph nodes alive: a variable's name, the function or module it stands in, nodes and births."""

    name: str
    function: str
    nodes: int
    births: int


@dataclass(frozen=True)
class Census:
    """The graph nodes alive at the end, by the step in which they were made."""

    boundaries: int
    ages: Mapping[int, int]
    leak: bool
    holders: tuple[Holder, ...]


@dataclass
class Record:
    """One process of one run, as far as it came."""

    process: str = "main"
    about: dict[str, Any] = field(default_factory=dict)
    backwards: list[Backward] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    reached: set[tuple[str, int]] = field(default_factory=set)
    seeds: list[tuple[str, Any]] = field(default_factory=list)
    standins: list[dict[str, Any]] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    capped: list[dict[str, Any]] = field(default_factory=list)
    caught: list[tuple[Site | None, Trouble]] = field(default_factory=list)
    error: Trouble | None = None
    error_site: Site | None = None
    traceback: str = ""
    missing: str | None = None
    loaded: tuple[str, ...] = ()
    forwards: list[Forwards] = field(default_factory=list)
    census: Census | None = None
    overhead: float = 0.0
    notes: list[str] = field(default_factory=list)
    end: str | None = None
    status: int | None = None


def read_records(folder: Path) -> list[Record]:
    """Read all records in ``folder``: the main process first, then by the process's name.

    A last line that was cut off by a kill is left out. Raises OSError where the folder cannot be read.
    """
    records = [read_record(path.read_text(encoding="utf-8", errors="replace")) for path in folder.glob("*.jsonl")]
    return sorted(records, key=lambda record: (record.process != "main", record.process))


def read_record(text: str) -> Record:
    """Read the lines of one process."""
    record = Record()
    for event in _events(text.splitlines()):
        kind = event.pop("event", "")
        match kind:
            case "start":
                record.about = event
                record.process = str(event.get("process", "main"))
            case "backward":
                record.backwards.append(_backward(event, len(record.steps)))
            case "step":
                record.steps.append(_step(event))
            case "reached":
                record.reached.add((event["path"], event["line"]))
            case "seed":
                record.seeds.append((event["generator"], event["value"]))
            case "standin":
                record.standins.append(event)
            case "device":
                record.devices.append(event["what"])
            case "capped":
                record.capped.append(event)
            case "caught":
                record.caught.append((_site(event.get("site")), _trouble(event["error"])))
            case "error":
                record.error = _trouble(event)
                record.error_site = _site(event.get("site"))
                record.traceback = event.get("traceback", "")
                record.missing = event.get("missing")
            case "forwards":
                record.forwards = [Forwards(_site(f["site"]), f["calls"], f["used"], f["peak"]) for f in event["sites"]]
            case "loaded":
                record.loaded = tuple(event["paths"])
            case "census":
                record.census = Census(
                    event["boundaries"],
                    {int(birth): nodes for birth, nodes in event["ages"].items()},
                    event["leak"],
                    tuple(Holder(h["name"], h["function"], h["nodes"], h["births"]) for h in event["holders"]),
                )
            case "overhead":
                record.overhead = event["seconds"]
            case "note":
                record.notes.append(event["text"])
            case "end":
                record.end, record.status = event["reason"], event.get("status")
            case _:
                pass
    return record


def _events(lines: Iterable[str]) -> Iterable[dict[str, Any]]:
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _backward(event: Mapping[str, Any], steps_before: int) -> Backward:
    error = event.get("error")
    return Backward(
        index=event["index"],
        site=_site(event.get("site")),
        call=event["call"],
        time=event["time"],
        losses=tuple(
            Loss(None if loss["value"] is None else float.fromhex(loss["value"]), loss["digest"], loss["numel"])
            for loss in event["losses"]
        ),
        rng=event["rng"],
        retain=event["retain"],
        create=event["create"],
        grad=event["grad"],
        nodes=event["nodes"],
        live=event["live"],
        seconds=event["seconds"],
        bytes=event["bytes"],
        peak=event["peak"],
        error=None if error is None else _trouble(error),
        steps_before=steps_before,
    )


def _step(event: Mapping[str, Any]) -> Step:
    params = event["params"]
    return Step(
        optimizer=event["optimizer"],
        name=event["name"],
        call=event["call"],
        site=_site(event.get("site")),
        time=event["time"],
        live=event["live"],
        digest=params["digest"],
        count=params["count"],
        sample=tuple(float.fromhex(value) for value in params["sample"]),
        bytes=event["bytes"],
        peak=event["peak"],
    )


def _site(value: Any) -> Site | None:
    return None if value is None else Site(value[0], value[1], value[2])


def _trouble(value: Mapping[str, Any]) -> Trouble:
    return Trouble(value["type"], value["message"], value.get("kind", "other"))
