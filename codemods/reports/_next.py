"""What to type next: the last lines of a report for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from codemods.reports import Report
from codemods.reports._paint import BOLD, Paint
from codemods.terms.findings import Promise

#: The options that mean the same to ``apply``; any other makes the command line one of its own.
_SHARED = frozenset(
    (
        *("--select", "--ignore", "--unsafe", "--no-unsafe", "--hidden-state", "--total-style", "--no-grad-style"),
        *("--target-torch", "--python2", "--no-python2", "--exclude", "--config", "--jobs", "-j", "--since"),
        "--baseline",
    )
)


def next_steps(report: Report, paint: Paint) -> Iterator[str]:
    """Return a line for each thing that can be done about what the report tells."""
    for count, command, what in _steps(report):
        yield f"{count} {paint(BOLD, command)}{what}"


def _steps(report: Report) -> Iterator[tuple[str, str, str]]:
    if report.applied:
        if report.dry_run and report.fixed:
            yield "nothing was written:", "codemod apply", " without --dry-run writes it"
        return
    apply = _apply(report)
    if report.fixable:
        yield f"{report.fixable:,} fixable:", apply, ""
    risky = sum(
        one.finding.promise is Promise.BEHAVIOUR and bool(one.finding.edits) and not one.fixable
        for one in report.findings
    )
    if risky:
        yield f"{risky:,} more, which change what is learned:", f"{apply} --unsafe", ""
    advice = [one.finding for one in report.findings if one.finding.promise is Promise.ADVICE]
    if advice:
        place = f"{advice[0].path}:{advice[0].span.line}"
        yield f"{len(advice):,} for a person to judge:", shlex.join(["codemod", "explain", place]), " says why"
    if report.skipped:
        yield (
            f"{len(report.skipped):,} could not be checked:",
            "--exclude",
            " leaves out what is meant to be so, as does `# codemod: ignore-file` at its top",
        )


def _apply(report: Report) -> str:
    given = list(report.command[2:])
    options = {word.partition("=")[0] for word in given if word.startswith("-") and word != "-"}
    if not options <= _SHARED or report.command[1:2] != ("check",) or "-" in given:
        given = []
    return shlex.join(["codemod", "apply", *given])
