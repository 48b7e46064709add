"""A JSON object a line, for programs that read as it comes: findings as ``json`` has them, then unread files."""

from __future__ import annotations

import json

from codemods.reports import Detail, Report
from codemods.reports._listed import UNREADABLE, found
from codemods.reports.json import placed_object, places


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return a line a finding; ``detail`` and ``colour`` change nothing."""
    lines = [placed_object(report.place_now, one.finding, one.fixable) for one in found(report)]
    lines += [{"rule": UNREADABLE, **told} for told in places(report.skipped)]
    return "".join(f"{json.dumps(line)}\n" for line in lines)
