"""The files beside a branch: the patch, the pull request's text, and a report in any form that there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.batch.carrying import encoded
from codemods.reports import Detail, Report, formats, renderer
from codemods.reports.markdown import body
from codemods.rewriting.result import ApplyResult

if TYPE_CHECKING:
    from codemods.rewriting.changes import Evidence

PATCH, PULL_REQUEST = "changes.patch", "pull-request.md"
_NAMES = {"sarif": "codemod.sarif", "markdown": "report.md", "json": "report.json", "html": "report.html"}
_UNPROVEN = """
## Proof

Not verified: these scripts were not run. Every rewrite rests on the source alone.
"""


def unknown(names: Sequence[str]) -> str:
    """Say which of ``names`` is no form of ours; empty if all are."""
    known = ("patch", *formats())
    wrong = next((name for name in names if name not in known), None)
    return f"there is no form {wrong!r}; there are {', '.join(known)}" if wrong is not None else ""


def write(folder: Path, names: Sequence[str], result: ApplyResult, evidence: Evidence | None = None) -> None:
    """Write the forms ``names`` of ``result`` into ``folder``, and the text of a pull request.

    ``evidence`` is what ``verify`` saw, if it was asked.
    """
    report = Report.of_apply(result, evidence)
    for name in names:
        if name == "patch":
            (folder / PATCH).write_bytes(result.diff())
        else:
            _write(folder / _NAMES.get(name, f"report.{name}"), renderer(name)(report, Detail.NORMAL))
    # The request has a title of its own.
    text = body(report)
    _write(folder / PULL_REQUEST, text if evidence else text + _UNPROVEN)


def _write(path: Path, text: str) -> None:
    path.write_bytes(encoded(text))
