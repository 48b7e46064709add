"""Reviewdog's JSON, which it makes comments of on many forges.

The form: https://github.com/reviewdog/reviewdog/tree/master/proto/rdf
"""

from __future__ import annotations

import json
from typing import Any

from codemods.reports import Detail, Report
from codemods.reports._listed import Listed, listed

_SEVERITIES = {"error": "ERROR", "warning": "WARNING", "note": "INFO"}


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return one object with all findings; ``detail`` and ``colour`` change nothing."""
    content = {"source": {"name": "codemod"}, "diagnostics": [_diagnostic(one) for one in listed(report)]}
    return json.dumps(content, indent=1) + "\n"


def _diagnostic(one: Listed) -> dict[str, Any]:
    location: dict[str, Any] = {"path": one.path}
    if one.line:
        start = {"line": one.line} | ({"column": one.column} if one.column else {})
        location["range"] = {"start": start}
    return {
        "message": one.text,
        "location": location,
        "severity": _SEVERITIES[one.level],
        "code": {"value": one.rule},
    }
