"""A verification in GitHub's Markdown: the verdicts, a table a command, what limits them; for a pull request."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import quote

from codemods.reports._gfm import cell, code, code_cell, details, fenced, inline, table
from codemods.terms.findings import capitalised
from verify.measured.results import Entry, Rewrite, Verdict, Verification
from verify.reports import remarks, reproduce
from verify.reports.table import Mood
from verify.reports.table import table as table_of
from verify.running.settings import is_notebook

_MARKS = {
    Verdict.KEPT: "✅",
    Verdict.BROKEN: "❌",
    Verdict.PARTLY_REACHED: "➗",
    Verdict.NOT_REACHED: "➖",
    Verdict.NOT_JUDGED: "❔",
}
_MOODS = {Mood.GOOD: "**{}**", Mood.BAD: "**{}**", Mood.PLAIN: "{}", Mood.FAINT: "{}"}
#: More rewrites than this are folded.
_OPEN = 12
_DIFF = 20_000  # characters of it that a page shows


def render(verification: Verification, *, colour: bool = False) -> str:
    """Return the report as Markdown; ``colour`` changes nothing."""
    out = section(verification).rstrip("\n").split("\n")
    if verification.readable and len(verification.readable) <= _DIFF:
        out += ["", *details("The diff that was verified", fenced(verification.readable, "diff"))]
    return "\n".join(out) + "\n"


def _teller(verification: Verification) -> Callable[[str], str]:
    """Return the function that renders a sentence; it knows which paths may be named."""
    paths = {step.path for rewrite in verification.rewrites for found in rewrite.findings for step in found.trail}
    paths |= {found.path for rewrite in verification.rewrites for found in rewrite.findings}
    for entry in verification.entries:
        paths.update(path for run in (entry.original, entry.rewritten) if run for path in run.record.loaded)
        paths.update(word for word in entry.command if is_notebook(word))
    return partial(inline, paths=paths | verification.notebooks.keys())


def section(verification: Verification, *, plot: str = "") -> str:
    """Return all but the diff, without a heading, for a page that has these; ``plot`` is where the picture lies."""
    headline = remarks.headline(verification)
    told = _teller(verification)
    out = [f"**{capitalised(headline)}.**"]
    if counts := remarks.tally_text(verification):
        out[0] += f" {counts}."
    if verification.reason:
        out += ["", told(verification.reason)]
    out += ["", *(f"- {told(advice)}" for advice in verification.advice)] if verification.advice else []
    if verification.rewrites:
        out += ["", *_rewrites(verification, told)]
    for entry in verification.entries:
        out += ["", *_entry(verification, entry, told)]
    if plot:
        out += ["", f"![Graph nodes, memory and loss over the steps, before and after](<{quote(plot)}>)"]
    for title, texts in (("Limits", remarks.limits(verification)), ("Notes", remarks.notes(verification))):
        if texts:
            out += ["", f"{title}:", "", *(f"- {told(text)}" for text in texts)]
    if line := reproduce.command_line(verification):
        out += ["", *details("How this was run", fenced(line, "sh"))]
    return "\n".join(out) + "\n"


def _rewrites(verification: Verification, told: Callable[[str], str]) -> list[str]:
    rows = [_row(rewrite, verification, told) for rewrite in verification.rewrites]
    lines = table(["verdict", "rule", "place", "promise", "what was seen"], rows)
    if len(rows) <= _OPEN:
        return lines
    return details(f"{len(rows):,} rewrites, each with its verdict", lines)


def _row(rewrite: Rewrite, verification: Verification, told: Callable[[str], str]) -> list[str]:
    finding = rewrite.finding
    return [
        f"{_MARKS[rewrite.verdict]} {rewrite.shown}",
        code_cell(finding.rule),
        code_cell(f"{finding.path}:{verification.place(finding.path, finding.span.line)}"),
        finding.promise.value,
        cell(told(remarks.reason_text(rewrite, verification))),
    ]


def _entry(verification: Verification, entry: Entry, told: Callable[[str], str]) -> list[str]:
    out = [f"{code(remarks.title(verification, entry))}"]
    if about := remarks.setting(entry):
        out[0] += f" ({told(about)})"
    content = table_of(entry)
    rows = []
    for row in content.rows:
        cells = []
        for each in row.cells:
            # A cell of several lines stays one: the breaks are ours.
            words = "<br>".join(cell(told(line)) for line in each.text.split("\n"))
            cells.append(_MOODS[each.mood].format(words) if words and "<br>" not in words else words)
        rows.append([row.label, *cells])
    out += ["", *table(["", *content.columns], rows)]
    if left_out := remarks.basis(entry):
        out += ["", f"{told(left_out)}."]
    for breakdown in remarks.breakdowns(entry):
        words = f"{breakdown.run}: {breakdown.summary}"
        if breakdown.expected or not breakdown.details:
            out += ["", told(words)]
        else:
            out += ["", told(words), "", *details("What it said", fenced(breakdown.details))]
    return out
