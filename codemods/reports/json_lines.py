"""A JSON object a line, for programs that read as it comes: findings as ``json`` has them, then unread files."""

from __future__ import annotations

import json

from codemods.reports import Detail, Report
from codemods.reports._listed import UNREADABLE, found
from codemods.reports.json import Now, placed_object


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return a line a finding; ``detail`` and ``colour`` change nothing."""
    lines = [placed_object(Now(report), one.finding, one.fixable) for one in found(report)]
    for entry in report.skipped:
        told = {key: value for key, value in entry._asdict().items() if value is not None}
        lines.append({"rule": UNREADABLE, **told})
    return "".join(f"{json.dumps(line)}\n" for line in lines)
