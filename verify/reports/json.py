"""One JSON object for programs. Its shape is a promise, kept in docs/verify-json.md: versioned, it only grows."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from codemods.reports.json import placed_object
from verify.measured.records import Backward, Caught, Census, Forwards, Output, Record, Step, Waiting, Written
from verify.measured.results import Comparison, Entry, Rewrite, Run, Verification
from verify.measured.values import Site, Values
from verify.reports import remarks
from verify.reports.figures import Figures, LossSeries, figures

VERSION = 2


def render(verification: Verification, *, colour: bool = False) -> str:
    """Return the verification as JSON; ``colour`` changes nothing."""
    content = {
        "version": VERSION,
        "root": verification.root,
        "status": verification.status,
        "judged": verification.judged,
        "verdict": remarks.headline(verification),
        "reason": verification.reason,
        "advice": verification.advice,
        "settings": verification.settings,
        "summary": {verdict.value.replace(" ", "_"): count for verdict, count in remarks.tally(verification)},
        "limits": remarks.limits(verification),
        "notes": remarks.notes(verification),
        "rewrites": [_rewrite(rewrite, verification) for rewrite in verification.rewrites],
        "entries": [_entry(entry, verification) for entry in verification.entries],
        "diff": verification.diff,
    }
    return json.dumps(_plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _rewrite(rewrite: Rewrite, verification: Verification) -> dict[str, Any]:
    return {
        "verdict": rewrite.verdict.value,
        "why": rewrite.why,
        "without": rewrite.without,
        "alone": rewrite.alone,
        "made": rewrite.made,
        "run": rewrite.run,
        "promise": rewrite.finding.promise.value,
        "findings": [placed_object(verification.place, finding, True) for finding in rewrite.findings],
    }


def _entry(entry: Entry, verification: Verification) -> dict[str, Any]:
    return {
        "command": entry.command,
        "deterministic": entry.deterministic,
        "original": entry.original,
        "again": entry.again,
        "rewritten": entry.rewritten,
        "repeatable": entry.repeatable,
        "comparison": entry.comparison,
        "rewrites": [_rewrite(rewrite, verification) for rewrite in entry.rewrites],
        "staged": [{"name": name, "run": run} for name, run in entry.staged],
        "notes": entry.notes,
        "plan": entry.plan,
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "name": run.name,
        "command": run.command,
        "outcome": run.outcome,
        "status": run.status,
        "wall": run.wall,
        "peak": run.peak,
        "output": run.output,
        "sandbox": run.sandbox,
        "notes": run.notes,
        "error": run.error,
        "figures": figures(run),
        "records": run.records,
    }


#: What figures are called here, where that is not the name of their field.
_NAMES = {
    "slope": "nodes_per_step",
    "growth": "bytes_per_step",
    "seconds": "seconds_per_step",
    "spread": "seconds_spread",
}
#: The fields of a process, in this order.
_OF_RECORD = (
    *("process", "about", "end", "status", "error", "error_site", "traceback", "missing", "loaded", "backwards"),
    *("steps", "reached", "seeds", "standins", "devices", "capped", "knobs", "left", "driven", "stack", "caught"),
    *("forwards", "outputs", "precision", "printed", "files", "census", "overhead", "notes"),
)


def _record(record: Record) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _OF_RECORD} | {
        "reached": [{"path": path, "line": line} for path, line in sorted(record.reached)],
        "seeds": [{"generator": generator, "value": value} for generator, value in record.seeds],
        "left": [{"place": each["place"], "why": each["why"], "told": each["told"]} for each in record.left],
    }


def _step(step: Step) -> dict[str, Any]:
    told = {**vars(step), "digest": step.digest, "count": step.count}
    del told["params"], told["tensors"], told["buffer_names"]
    return told


def _values(values: Values) -> dict[str, Any]:
    return {"digest": values.digest, "count": values.count, "missing": values.missing}


#: How what is no plain value is written down; of what is not here all fields are, by their names.
_FORMS: dict[type, Callable[[Any], dict[str, Any]]] = {
    Run: _run,
    Record: _record,
    Step: _step,
    Values: _values,
    Backward: vars,
    Census: vars,
    Comparison: vars,
    Figures: lambda numbers: {_NAMES.get(name, name): value for name, value in vars(numbers).items()},
    LossSeries: lambda one: {"site": one.site, "first": one.first, "last": one.last, "values": one.values},
    Site: lambda site: {key: told for key, told in site._asdict().items() if told is not None},
    Waiting: lambda one: {"made": one.made, "name": one.name, **_values(one.values)},
    Forwards: lambda one: {**one._asdict(), "wasted": one.wasted},
    Caught: lambda one: {"site": one.site, "error": one.error},
    Output: lambda one: {"site": one.site, "line": one.line, "call": one.call, **_values(one.values)},
    Written: lambda one: {"path": one.path, "kind": one.kind, **_values(one.tensors)},
}


def _plain(value: Any) -> Any:
    """Return ``value`` in what JSON has; of numbers, it has those that are finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if type(value) in _FORMS:
        value = _FORMS[type(value)](value)
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, (list, tuple)) else str(value)
