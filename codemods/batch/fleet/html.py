"""The fleet report as one page that needs nothing else: no network, no script, light and dark, on paper too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from markupsafe import Markup

from codemods.batch.fleet import burndown, charts
from codemods.batch.fleet.data import Fleet, Saving
from codemods.batch.fleet.markdown import sentence
from codemods.batch.fleet.numbers import change, grouped, share, size, span
from codemods.batch.stages.job import PARTLY
from codemods.reports._markup import environment
from codemods.terms.counting import count_text, noun_text

#: How many rows are drawn or listed before the page says where the rest is.
_PAIRS, _LISTED, _OPEN = 30, 2000, 60
#: Bytes a step, and how many times fewer (or more) afterwards: the allocator's own noise is below.
_GROWTH, _FACTOR = 4 << 10, 2
_TONES = {
    "published": "good",
    "verified": "good",
    "rewritten": "plain",
    "cloned": "faint",
    "planned": "faint",
    "unchanged": "faint",
    "skipped": "faint",
    "refused": "unknown",
    "failed": "bad",
}
_MARKS = {"good": "✓", "plain": "●", "faint": "○", "unknown": "!", "bad": "✗"}


def page(fleet: Fleet, folder: Path) -> str:
    """Return the page as one HTML document, for ``folder``: links to the results of repositories lead from there."""
    templates = environment("codemods.batch.fleet")
    root = os.path.relpath(fleet.work, folder).replace(os.sep, "/")
    templates.filters |= {"size": size, "span": span, "grouped": grouped}
    templates.filters["counted"] = lambda number: "–" if number is None else grouped(number)
    text = templates.get_template("fleet.html").render(
        fleet=fleet,
        sentence=sentence(fleet),
        tiles=_tiles(fleet),
        states=[(state, count, _TONES[state], _MARKS[_TONES[state]]) for state, count in fleet.states.items()],
        charts=_charts(fleet),
        savings=fleet.savings[:_LISTED],
        repositories=[_repository(fleet, row, root) for row in _troubled_first(fleet)[:_LISTED]],
        more=max(0, len(fleet.repositories) - _LISTED),
        opened=len(fleet.repositories) <= _OPEN,
    )
    return text.rstrip("\n") + "\n"


def _tiles(fleet: Fleet) -> list[tuple[str, str, str]]:
    tiles = [
        (
            grouped(len(fleet.repositories)),
            noun_text(len(fleet.repositories), "repository"),
            f"{count_text(fleet.files, 'file')}, {count_text(fleet.lines, 'line')}",
        ),
        (grouped(fleet.fixed), f"of {count_text(fleet.findings, 'finding')} fixed", f"in {fleet.changed} repositories"),
        (
            grouped(fleet.proven),
            "kept by a run",
            f"{share(fleet.proven, fleet.fixed)} of them; {count_text(fleet.verified, 'branch')} whole",
        ),
    ]
    if fleet.repaired:
        count = len(fleet.repaired)
        tiles.append((grouped(count), f"{noun_text(count, 'script')} repaired", "stopped with an error, and run now"))
    factor = fleet.median_factor
    if factor is not None:
        tiles.append((f"{factor:.3g}×", "fewer graph nodes alive", "median of the runs where it fell"))
    pace = fleet.median_pace
    if pace is not None:
        tiles.append((change(pace), "time a step", "median of the short runs"))
    return tiles


def _charts(fleet: Fleet) -> list[tuple[str, str, list[tuple[str, str]], Markup]]:
    """Each chart: its title, what to know, the legend, and the drawing."""
    drawn = []
    if fleet.days:
        last = fleet.days[-1]
        told = f"{count_text(last.left, 'request')} of {grouped(last.total)} not settled on {last.date}: "
        told += f"{grouped(last.merged)} merged, {grouped(last.closed)} closed. As forges told when follow asked last."
        legend = [("fixed", "open"), ("left", "not opened yet")]
        drawn.append(("Pull requests, day by day", told, legend, burndown.chart(fleet.days)))
    if fleet.rules:
        rows = [charts.Bar(row["rule"], _rule_parts(row)) for row in fleet.rules[:40]]
        legend = [
            ("kept", "kept by a run"),
            ("fixed", "fixed, no run reached it"),
            ("unproven", "left, because no run proved it"),
            ("left", "left: advice, or not safe"),
            ("broken", "broken"),
        ]
        drawn.append(("Findings by rule", "", legend, charts.bars(rows, "Findings by rule")))
    fell = sorted((s for s in fleet.savings if s.factor > 1.05), key=lambda s: s.factor, reverse=True)
    if fell:
        told = f"The {_PAIRS} largest of {len(fell)}. " if len(fell) > _PAIRS else ""
        drawn.append(
            (
                "Graph nodes alive, before and after",
                f"{told}Most at any step of a short run; on a full one what grows goes on growing.",
                [("before", "original"), ("after", "rewritten")],
                charts.pairs([_nodes(s) for s in fell[:_PAIRS]], "Graph nodes before and after", _number),
            )
        )
    grew = [
        (s, before or 0.0, after or 0.0) for s in fleet.savings for before, after in [s.growth] if _tells(before, after)
    ]
    grew.sort(key=lambda row: row[1] - row[2], reverse=True)
    if grew:
        rows_of = [
            charts.Pair(s.label, before, after, f"{size(before)} → {size(after)}") for s, before, after in grew[:_PAIRS]
        ]
        drawn.append(
            (
                "Memory that each step adds",
                "Where it changed to more or less than half, in the short run that proved the rewrite, on its batches.",
                [("before", "original"), ("after", "rewritten")],
                charts.pairs(rows_of, "Memory each step adds, before and after", size, 16),
            )
        )
    spent = [(stage, seconds) for stage, seconds in fleet.seconds.items() if seconds]
    if spent:
        rows = [charts.Bar(stage, (charts.Part(seconds, "in all", "fixed"),)) for stage, seconds in spent]
        drawn.append(("Where the time went", "", [], charts.bars(rows, "Time by stage", span)))
    return drawn


def _tells(before: float | None, after: float | None) -> bool:
    """Whether what steps add is worth a row: measured twice, and another amount by more than chance."""
    if before is None or after is None:
        return False
    less, more = sorted((before, after))
    return more > _GROWTH and more > _FACTOR * less


def _rule_parts(row: dict[str, Any]) -> tuple[charts.Part, ...]:
    kept, broken, unproven = row["proven"], row["broken"], row["unproven"]
    return (
        charts.Part(kept, "kept by a run", "kept"),
        charts.Part(row["fixed"] - kept, "fixed, no run reached it", "fixed"),
        charts.Part(unproven, "left, because no run proved it", "unproven"),
        charts.Part(max(row["findings"] - row["fixed"] - unproven - broken, 0), "left", "left"),
        charts.Part(broken, "broken", "broken"),
    )


def _nodes(saving: Saving) -> charts.Pair:
    before, after = saving.nodes
    return charts.Pair(saving.label, before or 0, after or 0, f"{grouped(before or 0)} → {grouped(after or 0)}")


def _number(value: float) -> str:
    return grouped(round(value)) if value >= 1 else f"{value:g}"


def _troubled_first(fleet: Fleet) -> list[dict[str, Any]]:
    order = ["failed", "refused", "published", "verified", "rewritten", "cloned", "planned", "unchanged", "skipped"]
    return sorted(fleet.repositories, key=lambda row: (order.index(row["state"]), -row["fixed"]))


def _repository(fleet: Fleet, row: dict[str, Any], root: str) -> dict[str, Any]:
    links = []
    proven = "verify" if row["verification"] in ("kept", PARTLY) else "rewrite"
    if row["changed"]:
        # Plain texts: of ten thousand repositories paths that are objects take a third of the time.
        for stage, name, label in (
            ("verify", "verification.html", "proof"),
            (proven, "pull-request.md", "text"),
            (proven, "changes.patch", "patch"),
        ):
            place = f"repositories/{row['slug']}/{stage}/{name}"
            if os.path.isfile(f"{fleet.work}/{place}"):
                links.append((label, f"{root}/{place}"))
    tone = _TONES[row["state"]]
    return {**row, "tone": tone, "mark": _MARKS[tone], "links": links}
