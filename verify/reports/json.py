"""One JSON object for programs. Its shape is a promise, kept in docs/verify-json.md: versioned, it only grows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from codemods.reports.json import placed_object
from verify.records import Backward, Record, Site, Step, Trouble
from verify.reports import remarks
from verify.reports.figures import Figures, figures
from verify.results import Comparison, Entry, Rewrite, Run, Verification

VERSION = 1


def render(verification: Verification, *, colour: bool = False) -> str:
    """Return the verification as JSON; ``colour`` changes nothing."""
    content = {
        "version": VERSION,
        "root": verification.root,
        "status": verification.status,
        "judged": verification.judged,
        "verdict": remarks.headline(verification),
        "reason": verification.reason,
        "advice": list(verification.advice),
        "settings": dict(verification.settings),
        "summary": {verdict.value.replace(" ", "_"): count for verdict, count in remarks.tally(verification)},
        "limits": remarks.limits(verification),
        "notes": remarks.notes(verification),
        "rewrites": [_rewrite(rewrite, verification) for rewrite in verification.rewrites],
        "entries": [_entry(entry, verification) for entry in verification.entries],
        "diff": verification.diff,
    }
    return json.dumps(_plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: object) -> Any:
    """Return ``value`` in what JSON has; of numbers, it has those that are finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def _rewrite(rewrite: Rewrite, verification: Verification) -> dict[str, Any]:
    return {
        "verdict": rewrite.verdict.value,
        "why": rewrite.why,
        "without": rewrite.without,
        "promise": rewrite.finding.promise.value,
        "findings": [placed_object(verification, finding, True) for finding in rewrite.findings],
    }


def _entry(entry: Entry, verification: Verification) -> dict[str, Any]:
    return {
        "command": list(entry.command),
        "deterministic": entry.deterministic,
        "original": _run(entry.original),
        "again": _run(entry.again),
        "rewritten": _run(entry.rewritten),
        "repeatable": _comparison(entry.repeatable),
        "comparison": _comparison(entry.comparison),
        "rewrites": [_rewrite(rewrite, verification) for rewrite in entry.rewrites],
        "staged": [{"name": name, "run": _run(run)} for name, run in entry.staged],
        "notes": list(entry.notes),
    }


def _comparison(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    return {**vars(comparison), "difference": comparison.difference.value}


def _run(run: Run | None) -> dict[str, Any] | None:
    if run is None:
        return None
    return {
        "name": run.name,
        "command": list(run.command),
        "outcome": run.outcome.value,
        "status": run.status,
        "wall": run.wall,
        "peak": run.peak,
        "output": run.output,
        "sandbox": run.sandbox,
        "notes": list(run.notes),
        "error": _trouble(run.error),
        "figures": _figures(figures(run)),
        "records": [_record(record) for record in run.records],
    }


def _figures(numbers: Figures) -> dict[str, Any]:
    return {
        "backwards": numbers.backwards,
        "raised": numbers.raised,
        "steps": numbers.steps,
        "losses": [
            {"site": _site(series.site), "first": series.first, "last": series.last, "values": series.values}
            for series in numbers.losses
        ],
        "unit": numbers.unit,
        "live": numbers.live,
        "leak": numbers.leak,
        "nodes_per_step": numbers.slope,
        "holders": [holder._asdict() for holder in numbers.holders],
        "wasted": [_forwards(site) for site in numbers.wasted],
        "bytes": numbers.bytes,
        "peak": numbers.peak,
        "bytes_per_step": numbers.growth,
        "resident": numbers.resident,
        "seconds_per_step": numbers.seconds,
        "device": numbers.device,
        "caught": numbers.caught,
    }


def _record(record: Record) -> dict[str, Any]:
    census = record.census
    return {
        "process": record.process,
        "about": record.about,
        "end": record.end,
        "status": record.status,
        "error": _trouble(record.error),
        "error_site": _site(record.error_site),
        "traceback": record.traceback,
        "missing": record.missing,
        "loaded": record.loaded,
        "backwards": [_backward(backward) for backward in record.backwards],
        "steps": [_step(step) for step in record.steps],
        "reached": [{"path": path, "line": line} for path, line in sorted(record.reached)],
        "seeds": [{"generator": generator, "value": value} for generator, value in record.seeds],
        "standins": record.standins,
        "devices": record.devices,
        "capped": record.capped,
        "caught": [{"site": _site(site), "error": _trouble(trouble)} for site, trouble in record.caught],
        "forwards": [_forwards(site) for site in record.forwards],
        "census": None if census is None else {
            "boundaries": census.boundaries,
            "ages": census.ages,
            "leak": census.leak,
            "holders": [holder._asdict() for holder in census.holders],
        },
        "overhead": record.overhead,
        "notes": record.notes,
    }  # fmt: skip


def _backward(backward: Backward) -> dict[str, Any]:
    return {
        **vars(backward),
        "site": _site(backward.site),
        "losses": [loss._asdict() for loss in backward.losses],
        "error": _trouble(backward.error),
    }


def _step(step: Step) -> dict[str, Any]:
    return {**vars(step), "site": _site(step.site)}


def _forwards(forwards: Any) -> dict[str, Any]:
    return {**forwards._asdict(), "site": _site(forwards.site), "wasted": forwards.wasted}


def _site(site: Site | None) -> dict[str, Any] | None:
    return None if site is None else {key: told for key, told in site._asdict().items() if told is not None}


def _trouble(trouble: Trouble | None) -> dict[str, Any] | None:
    return None if trouble is None else trouble._asdict()
