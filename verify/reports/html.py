"""One page that needs nothing else: no network, no script, light and dark, on paper and on a phone."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from codemods.reports._markup import environment
from codemods.reports.html import MARKS, TONES
from codemods.source.diffs import printable
from verify.errors import VerifyError
from verify.measured.results import Entry, Rewrite, Verdict, Verification
from verify.reports import patch, remarks, reproduce
from verify.reports.plots import Panel, panels
from verify.reports.table import Table, table

_STATUS = {0: ("good", "✓"), 1: ("bad", "✗"), 3: ("unknown", "?")}
#: More rewrites, or larger diffs, than this are shown folded.
_OPEN_REWRITES, _OPEN_LINES = 8, 400


class _Item(NamedTuple):
    """A rewrite as the page shows it."""

    rewrite: Rewrite
    reason: str
    tone: str
    mark: str


class _Part(NamedTuple):
    """An entry as the page shows it."""

    command: str
    setting: str
    table: Table
    basis: str
    panels: list[Panel]
    breakdowns: list[remarks.Breakdown]
    stages: list[str]


def render(verification: Verification, *, colour: bool = False) -> str:
    """Return the page; ``colour`` changes nothing."""
    return page(verification)


def page(verification: Verification) -> str:
    """Return the page as one HTML document. Where matplotlib is missing it has no plots and says so."""
    return _rendered("page.html", verification, level=2)


def fragment(verification: Verification) -> str:
    """Return ``verification`` as one HTML element, for :attr:`codemods.rewriting.changes.Evidence.html`.

    It brings its own style, which holds for it alone and follows the colour scheme around it. Its headings begin at
    ``h3``; its identifiers are those of the plots.
    """
    return _rendered("fragment.html", verification, level=3)


def _rendered(template: str, verification: Verification, *, level: int) -> str:
    parts, trouble = _parts(verification)
    tone, mark = _STATUS[verification.status]
    files = _marked(patch.parse(verification.readable), verification)
    text = (
        environment("verify.reports")
        .get_template(template)
        .render(
            verification=verification,
            headline=remarks.headline(verification),
            tally=[
                (_tone(verdict), MARKS[verdict.value], verdict.value, count)
                for verdict, count in remarks.tally(verification)
            ],
            tone=tone,
            mark=mark,
            items=[_item(rewrite, verification) for rewrite in verification.rewrites],
            items_open=len(verification.rewrites) <= _OPEN_REWRITES,
            parts=parts,
            plots_trouble=trouble,
            limits=remarks.limits(verification),
            notes=remarks.notes(verification),
            files=files,
            files_open=sum(len(hunk.lines) for file in files for hunk in file.hunks) <= _OPEN_LINES,
            folder=shlex.quote(reproduce.folder(verification)),
            command_line=reproduce.command_line(verification),
            settings=reproduce.settings_shown(verification),
            level=level,
        )
    )
    return text.rstrip("\n") + "\n"


def _marked(files: list[patch.Patched], verification: Verification) -> list[patch.Patched]:
    """``files`` with what broke marked in them, but notebooks: their diff counts in cells, as the verdict does."""
    findings = [
        finding
        for rewrite in verification.rewrites
        if rewrite.verdict is Verdict.BROKEN
        for finding in rewrite.findings
        if finding.path not in verification.notebooks
    ]
    for file in files:
        for hunk in file.hunks:
            mine = (each for each in findings if printable(each.path) == file.name)
            told = [
                f"{each.rule} at line {each.span.line}"
                for each in mine
                if hunk.changes(each.span.line, each.span.end_line)
            ]
            hunk.broken = tuple(dict.fromkeys(told))
    return files


def _item(rewrite: Rewrite, verification: Verification) -> _Item:
    verdict = rewrite.verdict
    return _Item(rewrite, remarks.reason_text(rewrite, verification), _tone(verdict), MARKS[verdict.value])


def _tone(verdict: Verdict) -> str:
    return TONES.get(verdict.value, "unknown")


def _parts(verification: Verification) -> tuple[list[_Part], str]:
    parts, trouble = [], ""
    for index, entry in enumerate(verification.entries):
        try:
            drawn = panels(entry, str(index))
        except VerifyError as error:
            drawn, trouble = [], str(error)
        parts.append(_part(verification, entry, drawn))
    return parts, trouble


def _part(verification: Verification, entry: Entry, drawn: list[Panel]) -> _Part:
    return _Part(
        remarks.title(verification, entry),
        remarks.setting(entry),
        table(entry),
        remarks.basis(entry),
        drawn,
        remarks.breakdowns(entry),
        remarks.stages(entry),
    )
