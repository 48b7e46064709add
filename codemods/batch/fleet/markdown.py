"""The fleet report as text that reads well as it is, and in any forge's issue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codemods.batch.fleet.data import Fleet
from codemods.batch.fleet.numbers import change, share, size, span
from codemods.reports._gfm import cell, code_cell, inline, table
from codemods.source.diffs import printable
from codemods.terms.counting import count_text

#: Of more repositories the tables are for programs.
_MOST = 300
_DAYS = 30


def text(fleet: Fleet) -> str:
    """Return the report."""
    lines = [f"# {printable(fleet.name)}", "", f"{sentence(fleet)} {fleet.at}.", ""]
    lines += ["## Where the repositories stand", ""]
    total = len(fleet.repositories)
    lines += _table(
        ("state", "repositories", "share"),
        [(state, str(count), share(count, total)) for state, count in fleet.states.items()],
    )
    if fleet.days:
        lines += ["## Pull requests, day by day", ""]
        rows = [(day.date, *map(str, (day.opened, day.merged, day.closed, day.open, day.left))) for day in fleet.days]
        lines += _table(("day", "opened", "merged", "closed", "open", "left"), rows[-_DAYS:])
    if fleet.rules:
        lines += ["## By rule", ""]
        verdicts = ("kept", "broken", "partly reached", "not reached", "not judged")
        head = ("rule", "repositories", "findings", "fixed", *verdicts)
        keys = [title.replace(" ", "_") for title in head]
        lines += _table(head, [[str(row[key]) for key in keys] for row in fleet.rules])
        told = ", ".join(f"*{verdict}*" for verdict in verdicts)
        lines += [f"{told} are verdicts of runs, where there were any.", ""]
    if fleet.savings:
        lines += ["## What verified runs saved", ""]
        lines += _table(
            ("repository", "command", "graph nodes", "memory a step", "peak", "time a step", "before"),
            [
                (
                    _told(saving.slug),
                    code_cell(saving.command),
                    _change(*(None if n is None else str(n) for n in saving.nodes)),
                    _change(*map(size, saving.growth)),
                    _change(*map(size, saving.peak)),
                    _change(*map(span, saving.seconds)),
                    _told(saving.told),
                )
                for saving in fleet.savings[:_MOST]
            ],
        )
        if fleet.median_pace is not None:
            lines += [
                f"Time a step: {change(fleet.median_pace)} (median of those timed before and after, in short runs).",
                "",
            ]
    if fleet.reasons:
        lines += ["## What came no further, and why", ""]
        lines += _table(
            ("repositories", "what", "stage", "why"),
            [(str(count), what, stage, _told(reason)) for what, stage, reason, count in fleet.reasons[:_MOST]],
        )
    lines += ["## Repositories", ""]
    repositories = fleet.repositories
    lines += _table(
        ("repository", "outcome", "findings", "fixed", "kept", "pull request"),
        [
            (
                _told(row["slug"]),
                _told(row["outcome"]),
                str(row["findings"]),
                str(row["fixed"]),
                str(row["proven"]),
                row["pull_request"],
            )
            for row in repositories[:_MOST]
        ],
    )
    if len(repositories) > _MOST:
        lines += [f"{len(repositories) - _MOST} more stand in repositories.csv.", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def sentence(fleet: Fleet) -> str:
    """The whole of it in one sentence or two."""
    told = (
        f"{count_text(len(fleet.repositories), 'repository')} with {count_text(fleet.files, 'Python file')} "
        f"({count_text(fleet.lines, 'line')}): {count_text(fleet.findings, 'finding')}, {fleet.fixed} fixed on "
        f"branches of {count_text(fleet.changed, 'repository')}, {fleet.proven} of them kept by a run; all that is "
        f"on the branch was kept in {count_text(fleet.verified, 'repository')}."
    )
    if fleet.held_back:
        are = "is" if fleet.held_back == 1 else "are"
        told += f" {fleet.held_back} of the fixed {are} in refused repositories, of which nothing is published."
    if fleet.requests:
        told += f" {fleet.requests[:1].upper()}{fleet.requests[1:]}."
    if fleet.repaired:
        told += f" {count_text(len(fleet.repaired), 'script')} that stopped with an error now run."
    return told


def _change(before: str | None, after: str | None) -> str:
    return f"{before or '–'} → {after or '–'}" if before or after else "–"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [*table(head, rows), ""]


def _told(text: str) -> str:
    """A sentence in which a program, a forge or git may have had a word, for a cell."""
    return cell(inline(text))
