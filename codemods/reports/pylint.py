"""Lines as pylint writes them, which many editors and build servers read: ``path:line: [rule] message``."""

from __future__ import annotations

from codemods.reports import Detail, Report
from codemods.reports._listed import listed
from codemods.source.diffs import printable


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return a line a finding; ``detail`` and ``colour`` change nothing."""
    return "".join(f"{printable(f'{one.path}:{one.line or 1}: [{one.rule}] {one.text}')}\n" for one in listed(report))
