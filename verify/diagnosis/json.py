"""A diagnosis as one JSON object. Its shape is a promise, kept in docs/doctor.md: versioned, it only grows."""

from __future__ import annotations

import json
from typing import Any

from verify.diagnosis.model import Clue, Diagnosis, Fault
from verify.measured.records import Site

VERSION = 1


def render(diagnosis: Diagnosis, *, colour: bool = False) -> str:
    """Return the diagnosis as JSON; ``colour`` changes nothing."""
    return json.dumps(content(diagnosis), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def content(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return what JSON has of it."""
    return {
        "version": VERSION,
        "status": diagnosis.status,
        "command": diagnosis.command,
        "root": diagnosis.root,
        "steps": diagnosis.steps,
        "backwards": diagnosis.backwards,
        "faults": [_fault(fault) for fault in diagnosis.faults],
        "remarks": list(diagnosis.remarks),
        "watched": list(diagnosis.watched),
        "unwatched": list(diagnosis.unwatched),
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
    }


def _clue(clue: Clue) -> dict[str, Any]:
    return {
        "role": clue.role,
        "site": _site(clue.site),
        "source": clue.source,
        "name": clue.name,
        "function": clue.function,
        "text": clue.text,
    }


def _site(site: Site | None) -> dict[str, Any] | None:
    return None if site is None else {"path": site.path, "line": site.line, "function": site.function}
