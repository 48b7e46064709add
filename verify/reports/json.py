"""One JSON object for programs. Its shape is a promise, kept in docs/verify-json.md: versioned, it only grows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from codemods.reports.json import placed_object
from verify.measured.records import Backward, Record, Step, Waiting
from verify.measured.results import Comparison, Entry, Rewrite, Run, Verification
from verify.measured.steered import Driven
from verify.measured.values import Site, Trouble, Values
from verify.reports import remarks
from verify.reports.figures import Figures, figures

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
        "alone": rewrite.alone,
        "made": list(rewrite.made),
        "run": rewrite.run,
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
        "plan": entry.plan,
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


#: What figures are called here, where that is not the name of their field.
_NAMES = {
    "slope": "nodes_per_step",
    "growth": "bytes_per_step",
    "seconds": "seconds_per_step",
    "spread": "seconds_spread",
}


def _figures(numbers: Figures) -> dict[str, Any]:
    told = {_NAMES.get(name, name): value for name, value in vars(numbers).items()}
    losses = [
        {"site": _site(series.site), "first": series.first, "last": series.last, "values": series.values}
        for series in numbers.losses
    ]
    holders = [holder._asdict() for holder in numbers.holders]
    return {**told, "losses": losses, "holders": holders, "wasted": [_forwards(site) for site in numbers.wasted]}


#: The fields of a process, in this order.
_OF_RECORD = (
    *("process", "about", "end", "status", "error", "error_site", "traceback", "missing", "loaded", "backwards"),
    *("steps", "reached", "seeds", "standins", "devices", "capped", "knobs", "left", "driven", "stack", "caught"),
    *("forwards", "outputs", "precision", "printed", "files", "census", "overhead", "notes"),
)


def _record(record: Record) -> dict[str, Any]:
    census = record.census
    return {name: getattr(record, name) for name in _OF_RECORD} | {
        "error": _trouble(record.error),
        "error_site": _site(record.error_site),
        "backwards": [_backward(backward) for backward in record.backwards],
        "steps": [_step(step) for step in record.steps],
        "reached": [{"path": path, "line": line} for path, line in sorted(record.reached)],
        "seeds": [{"generator": generator, "value": value} for generator, value in record.seeds],
        "knobs": [knob._asdict() for knob in record.knobs],
        "left": [{"place": each["place"], "why": each["why"], "told": each["told"]} for each in record.left],
        "driven": [_driven(driven) for driven in record.driven],
        "stack": [_site(site) for site in record.stack],
        "caught": [{"site": _site(each.site), "error": _trouble(each.error)} for each in record.caught],
        "forwards": [_forwards(site) for site in record.forwards],
        "outputs": [
            {"site": _site(each.site), "line": each.line, "call": each.call, **(_values(each.values) or {})}
            for each in record.outputs
        ],
        "files": [{"path": each.path, "kind": each.kind, **(_values(each.tensors) or {})} for each in record.files],
        "census": census and {**vars(census), "holders": [holder._asdict() for holder in census.holders]},
    }


def _backward(backward: Backward) -> dict[str, Any]:
    return {
        **vars(backward),
        "site": _site(backward.site),
        "losses": [loss._asdict() for loss in backward.losses],
        "error": _trouble(backward.error),
        "waiting": _waiting(backward.waiting),
    }


def _step(step: Step) -> dict[str, Any]:
    told = {**vars(step), "site": _site(step.site), "digest": step.digest, "count": step.count}
    del told["params"], told["tensors"], told["buffer_names"]
    told.update(grads=_values(step.grads), buffers=_values(step.buffers), waiting=_waiting(step.waiting))
    return told


def _values(values: Values | None) -> dict[str, Any] | None:
    return None if values is None else {"digest": values.digest, "count": values.count, "missing": values.missing}


def _waiting(waiting: Iterable[Waiting]) -> list[dict[str, Any]]:
    return [{"made": entry.made, "name": entry.name, **(_values(entry.values) or {})} for entry in waiting]


def _forwards(forwards: Any) -> dict[str, Any]:
    return {**forwards._asdict(), "site": _site(forwards.site), "wasted": forwards.wasted}


def _site(site: Site | None) -> dict[str, Any] | None:
    return None if site is None else {key: told for key, told in site._asdict().items() if told is not None}


def _driven(driven: Driven) -> dict[str, Any]:
    return {**driven._asdict(), "error": _trouble(driven.error), "site": _site(driven.site)}


def _trouble(trouble: Trouble | None) -> dict[str, Any] | None:
    return None if trouble is None else trouble._asdict()
