"""A diagnosis as one JSON object. Its shape is a promise, told in schema.json beside this: versioned, it only grows."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from verify.diagnosis.folded import Graph
from verify.diagnosis.model import Clue, Diagnosis, Fault
from verify.diagnosis.pictures.reading import around
from verify.measured.values import Site

VERSION = 1


def schema() -> dict[str, Any]:
    """Return the JSON schema of :func:`render`."""
    text = (resources.files("verify.diagnosis.reports") / "schema.json").read_text(encoding="utf-8")
    told: dict[str, Any] = json.loads(text)
    return told


def render(diagnosis: Diagnosis, *, colour: bool = False) -> str:
    """Return the diagnosis as JSON; ``colour`` changes nothing."""
    return json.dumps(content(diagnosis), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def content(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return what JSON has of it."""
    return {
        "version": VERSION,
        **_fields(diagnosis, "status command root steps backwards"),
        "faults": [_fault(fault) for fault in diagnosis.faults],
        "remarks": list(diagnosis.remarks),
        "watched": list(diagnosis.watched),
        "unwatched": list(diagnosis.unwatched),
        "limits": list(diagnosis.limits),
        "runs": [{"name": run.name, "ending": run.ending, "seconds": round(run.seconds, 3)} for run in diagnosis.runs],
        "reason": diagnosis.reason,
        "advice": list(diagnosis.advice),
        "traceback": diagnosis.traceback,
    }


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "kind": fault.kind.value,
        "headline": fault.headline,
        "site": _site(fault.site),
        "clues": [_clue(clue) for clue in fault.clues],
        "remedy": fault.remedy,
        "figures": dict(fault.figures),
        "graph": None if fault.graph is None else _graph(around(fault.graph)),
    }


def _graph(graph: Graph) -> dict[str, Any]:
    return {
        **_fields(graph, "nodes whole left_out"),
        "boxes": [
            {
                "site": _site(box.site),
                **_fields(box, "source nodes turns steps"),
                "operations": [{"name": name, "count": count} for name, count in box.operations],
                "freed_by": box.freed,
                "held": [_fields(one, "name function tensors") for one in box.held],
                "roles": list(box.roles),
            }
            for box in graph.boxes
        ],
        "edges": [_fields(edge, "made used count again") for edge in graph.edges],
        "walks": [
            {"backward": walk.number, "site": _site(walk.site), "boxes": list(walk.boxes), "faulty": walk.faulty}
            for walk in graph.walks
        ],
    }


def _clue(clue: Clue) -> dict[str, Any]:
    return {**_fields(clue, "role site source name function text"), "site": _site(clue.site)}


def _fields(value: object, names: str) -> dict[str, Any]:
    """The fields of ``value`` that JSON has as they are."""
    return {name: getattr(value, name) for name in names.split()}


def _site(site: Site | None) -> dict[str, Any] | None:
    if site is None:
        return None
    return _fields(site, "path line function" if site.cell is None else "path line function cell")
