"""GitLab's report on code quality, which a merge request shows beside its lines.

The form: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import hashlib
import json

from codemods.reports import Detail, Report
from codemods.reports._lines import Lines
from codemods.reports._listed import Fingerprints, listed

_SEVERITIES = {"error": "major", "warning": "minor", "note": "info"}


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return an entry a finding; ``detail`` and ``colour`` change nothing."""
    lines, marks = Lines(report), Fingerprints()
    entries = []
    for one in listed(report):
        # Of all fingerprints of a report none may be twice.
        mark = marks(one.finding, lines.now(one.finding.path)) if one.finding else one.text
        entries.append(
            {
                "description": one.text,
                "check_name": one.rule,
                "fingerprint": hashlib.sha256(f"{one.path}\0{mark}".encode("utf-8", "surrogatepass")).hexdigest(),
                "severity": _SEVERITIES[one.level],
                "location": {"path": one.path, "lines": {"begin": max(1, one.line)}},
            }
        )
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
