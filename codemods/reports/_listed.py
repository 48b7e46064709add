"""What formats for other programs list: findings that matter most first, and what could not be done, alike.

Each with the name of its file from the root of the repository, and a fingerprint that outlives edits above it.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from codemods.checking.reported import Reported
from codemods.reports import Report
from codemods.terms.findings import Finding, Promise, ShownLine, Skipped, in_order

#: What raises or grows without bound is an error. What costs memory and time is a warning, and advice may be wrong.
LEVELS = {
    Promise.REPAIR: "error",
    Promise.BEHAVIOUR: "warning",
    Promise.EQUIVALENT: "warning",
    Promise.EXACT: "warning",
    Promise.ADVICE: "note",
}
#: What a file that cannot be parsed is listed as, among the rules.
UNREADABLE = "not-checked"


class Listed(NamedTuple):
    """A finding, or with ``finding`` None a file that could not be checked: ``path`` is from the root of the
    repository, ``line`` and ``column`` count from 1 (0: the whole file), in a notebook in the cell that ``text``
    names."""

    path: str
    line: int
    column: int
    rule: str
    level: str
    text: str
    finding: Finding | None


def listed(report: Report) -> Iterator[Listed]:
    """Return what ``report`` finds, in order of path and line, then the files that could not be checked.

    After a dry run what would be fixed is found too; after files were written only what still stands.
    """
    base = root()
    for one in found(report):
        finding = one.finding
        place = report.place(finding.path, finding.span.line, now=True)
        told = in_cell(place) + finding.message + (f"; {finding.remedy}" if finding.remedy else "")
        line, column = (0, 0) if place.cell is not None else (place.line, finding.span.column + 1)
        path = from_root(finding.path, base) or finding.path
        yield Listed(path, line, column, finding.rule, LEVELS[finding.promise], told, finding)
    for entry in report.skipped:
        path = from_root(entry.path, base) or entry.path
        line = 0 if entry.cell is not None else entry.line
        yield Listed(path, line, 0, UNREADABLE, "error", f"{in_cell(entry)}{entry.reason}", None)


def found(report: Report) -> list[Reported]:
    """Return what ``report`` finds, in order of path and line: after a dry run also what would be fixed."""
    all_found = [*report.findings]
    if report.applied and report.dry_run:
        all_found += [Reported(finding, None) for finding in report.fixed]
    return sorted(all_found, key=lambda one: in_order(one.finding))


def in_cell(place: ShownLine | Skipped) -> str:
    """Return how a sentence on ``place`` begins: with the cell, where it is in one."""
    return "" if place.cell is None else f"cell {place.cell}, line {place.line}: "


class Fingerprints:
    """Fingerprints of the findings of one report, each asked for once, in their order."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()

    def __call__(self, finding: Finding, lines: Sequence[str]) -> str:
        """Return the mark of ``finding`` among those of its file, of which ``lines`` are the text: rule and statement.

        Of equal statements in one file only their order tells them apart.
        """
        words = " ".join(" ".join(lines[finding.span.line - 1 : finding.span.end_line]).split())
        digest = hashlib.sha256(f"{finding.rule}\0{words}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._seen[finding.path, digest] += 1
        return f"{digest}:{self._seen[finding.path, digest]}"


def root() -> Path:
    """Return the root of the repository around the working directory, or that directory where there is none.

    On a runner of GitHub's it is what ``GITHUB_WORKSPACE`` says, if we are inside of it.
    """
    here = Path.cwd()
    workspace = os.environ.get("GITHUB_WORKSPACE")
    if workspace and here.is_relative_to(workspace):
        return Path(workspace)
    return next((folder for folder in (here, *here.parents) if os.path.exists(folder / ".git")), here)


def from_root(path: str, base: Path) -> str | None:
    """Return the name from ``base`` of a file that is shown as ``path``, with ``/``; None if it lies elsewhere."""
    full = Path(os.path.abspath(path))
    return full.relative_to(base).as_posix() if full.is_relative_to(base) else None


def in_repository(path: str) -> str:
    """Return the name of a file from the root of the repository that it is in, or from its folder if it is in none."""
    full = Path(os.path.abspath(path))
    base = next((folder for folder in full.parents if os.path.exists(folder / ".git")), full.parent)
    return full.relative_to(base).as_posix()
