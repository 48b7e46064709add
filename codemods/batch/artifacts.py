"""The files beside a branch: the patch, the pull request's text, and a report in any form that there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.apply import ApplyResult
from codemods.diffs import printable
from codemods.reports import Detail, Report, formats, renderer

if TYPE_CHECKING:
    from verify.results import Verification

PATCH, PULL_REQUEST = "changes.patch", "pull-request.md"
_NAMES = {"sarif": "codemod.sarif", "markdown": "report.md", "json": "report.json", "html": "report.html"}


def unknown(names: Sequence[str]) -> str:
    """Say which of ``names`` is no form of ours; empty if all are."""
    known = ("patch", *formats())
    wrong = next((name for name in names if name not in known), None)
    return f"there is no form {wrong!r}; there are {', '.join(known)}" if wrong is not None else ""


def write(folder: Path, names: Sequence[str], result: ApplyResult, verification: Verification | None = None) -> None:
    """Write the forms ``names`` of ``result`` into ``folder``, and the text of a pull request."""
    report = Report.of_apply(result)
    for name in names:
        if name == "patch":
            (folder / PATCH).write_bytes(result.diff())
        else:
            text = renderer(name)(report, Detail.NORMAL)
            _write(folder / _NAMES.get(name, f"report.{name}"), text)
    _write(folder / PULL_REQUEST, pull_request(report, verification, markdown="markdown" in formats()))


def pull_request(report: Report, verification: Verification | None, *, markdown: bool) -> str:
    """Return the text of a pull request: what was found and mended, and what running it has shown."""
    if markdown:
        text = renderer("markdown")(report, Detail.NORMAL)
    else:
        fixed = [
            f"* `{printable(one.path)}:{one.span.line}` {one.rule} ({one.promise.value}): {printable(one.message)}"
            for one in report.fixed
        ]
        text = "\n".join(["What training with PyTorch's autograd gains by these changes:", "", *fixed]) + "\n"
    return text.rstrip("\n") + "\n\n" + _proof(verification)


def _proof(verification: Verification | None) -> str:
    if verification is None:
        return "## Proof\n\nNot verified: these scripts were not run. Every rewrite rests on the source alone.\n"
    from verify.reports import remarks

    lines = ["## Proof", ""]
    commands = ", ".join(f"`{remarks.command_text(entry.command)}`" for entry in verification.entries)
    lines += [f"Original and rewritten were run briefly ({commands}): {remarks.headline(verification)}.", ""]
    lines += ["| verdict | rule | place | promise | why |", "| --- | --- | --- | --- | --- |"]
    for rewrite in verification.rewrites:
        finding = rewrite.finding
        place = f"`{printable(finding.path)}:{finding.span.line}`"
        cells = [rewrite.verdict.value, finding.rule, place, finding.promise.value]
        why = remarks.reason_text(rewrite, verification)
        cells.append(printable(why).replace("|", "\\|"))
        lines.append(f"| {' | '.join(cells)} |")
    limits = remarks.limits(verification)
    if limits:
        lines += ["", "What limits this:", "", *(f"* {printable(limit)}" for limit in limits)]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "backslashreplace"))
