"""What to type next: the last lines of a report for people."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from codemods.checking.groups import NEEDS_UNSAFE
from codemods.reports import Report
from codemods.reports._paint import BOLD, Paint
from codemods.terms.findings import Promise
from codemods.terms.words import words

#: Options of ``check`` that mean the same to ``apply``, with a value behind them and without.
_SHARED = words(
    "--select --ignore --hidden-state --total-style --no-grad-style --target-torch --exclude --config --jobs -j "
    "--since --baseline --stdin-filename"
)
_SHARED_FLAGS = frozenset(("--unsafe", "--no-unsafe", "--python2", "--no-python2"))
#: Options about what is told, and whether anything is written.
_TOLD = words("--format --output-format --output -o --also --color --patch --plot --resume")
_TOLD_FLAGS = frozenset(("--dry-run", "--exit-code", "--exit-zero", "-q", "--quiet", "-v", "--verbose", "--no-cache"))


def next_steps(report: Report, paint: Paint) -> Iterator[str]:
    """Return a line for each thing that can be done about what the report tells."""
    for count, command, what in _steps(report):
        yield f"{count} {paint(BOLD, command)}{what}"


def _steps(report: Report) -> Iterator[tuple[str, str, str]]:
    apply = apply_again(report)
    piped = _is_piped(report)
    if report.applied and report.dry_run and report.fixed and not (piped and "--dry-run" not in report.command):
        # What comes in by a pipe goes out by one.
        yield "nothing was written:", apply, " prints the new text" if piped else " writes it"
    if report.fixable and not report.applied:
        yield f"{report.fixable:,} fixable:", apply, ""
    risky = sum(NEEDS_UNSAFE in (one.obstacle or "") for one in report.findings)
    if risky:
        changes = "changes" if risky == 1 else "change"
        yield f"{risky:,} more, which {changes} what is learned:", f"{apply} --unsafe", ""
    likely = sum(one.finding.likely is not None for one in report.findings)
    # Where runs were made already, those that they did not hold are told one by one.
    if likely and not piped and not any(word.startswith("--verify") for word in report.command):
        yield f"{likely:,} likely:", f"{apply} --verify SCRIPT", " makes those that a run holds"
    left = [one.finding for one in report.findings if one.finding.likely is None]
    advice = [finding for finding in left if finding.promise is Promise.ADVICE]
    if advice and not piped:
        place = report.told(advice[0].path, advice[0].span.line, now=True)
        yield f"{len(advice):,} for a person to judge:", shlex.join(["codemod", "explain", place]), " says why"
    if report.skipped and not piped:
        yield (
            f"{len(report.skipped):,} could not be checked:",
            "--exclude",
            " leaves out what is meant to be so, as does `# codemod: ignore-file` at its top",
        )


def apply_again(report: Report) -> str:
    """Return the command line that would write what ``report`` is about: with its paths and its options, unless one of
    them makes it another thing."""
    kept: list[str] = []
    words = iter(report.command[2:])
    for word in words:
        name, equals, _ = word.partition("=")
        if name in _TOLD_FLAGS:
            continue
        valued = name in _SHARED or name in _TOLD
        value = [next(words, "")] if valued and not equals else []
        if name in _TOLD:
            continue
        if name in _SHARED or name in _SHARED_FLAGS or not word.startswith("-") or word == "-" or report.applied:
            kept += [word, *value]
        else:
            return "codemod apply -" if _is_piped(report) else "codemod apply"
    return shlex.join(["codemod", "apply", *kept])


def _is_piped(report: Report) -> bool:
    """Whether what was looked at came in by standard input, where there is no file to run, name or leave out."""
    return "-" in report.command[2:]
