"""A diagnosis for the terminal: one screen."""

from __future__ import annotations

import textwrap

from codemods.source.diffs import printable_lines
from codemods.terms.counting import plain_count_text
from verify.diagnosis.folded import Box, Graph
from verify.diagnosis.model import Clue, Diagnosis

_WIDTH = 118
_ROLE = 12
_BOLD, _RED, _GREEN, _DIM, _END = "\033[1m", "\033[31m", "\033[32m", "\033[2m", "\033[0m"
_MOST = 9


def render(diagnosis: Diagnosis, *, colour: bool = False) -> str:
    """Return the diagnosis as text that ends with a newline."""

    def paint(text: str, code: str) -> str:
        shown = printable_lines(text)
        return f"{code}{shown}{_END}" if colour else shown

    lines = [paint(headline(diagnosis), _BOLD)]
    for number, fault in enumerate(diagnosis.faults, 1):
        at = f"  ({fault.site})" if fault.site is not None else ""
        lines += ["", paint(f"{number}. {fault.headline}{at}", _RED)]
        plain = [line for clue in fault.clues for line in _clue(clue)]
        if fault.remedy:
            plain += _rows("remedy", fault.remedy)
        if fault.graph is not None:
            plain += [_row("graph" if number == 0 else "", row) for number, row in enumerate(tree(fault.graph))]
        lines += map(printable_lines, plain)
    if diagnosis.reason:
        told = [diagnosis.traceback.rstrip(), ""] if diagnosis.traceback else []
        told += [diagnosis.reason, *(f"  {text}" for text in diagnosis.advice)]
        lines += ["", *map(printable_lines, told)]
    lines += ["", *(paint(line, _DIM) for line in _foot(diagnosis))]
    return "\n".join(lines) + "\n"


def headline(diagnosis: Diagnosis) -> str:
    """Return what was run and what came of it, in a line."""
    if diagnosis.faults:
        count = len(diagnosis.faults)
        return f"{diagnosis.command}: {plain_count_text(count, 'fault')}"
    if diagnosis.reason:
        return f"{diagnosis.command}: no diagnosis"
    steps = diagnosis.steps or diagnosis.backwards
    unit = "step" if diagnosis.steps else "backward"
    return f"{diagnosis.command}: nothing found in {steps} {unit}{'s' if steps != 1 else ''}"


def _foot(diagnosis: Diagnosis) -> list[str]:
    lines = [f"remark: {remark}" for remark in diagnosis.remarks]
    if diagnosis.watched and (diagnosis.backwards or not diagnosis.reason):
        lines.append(f"watched: {', '.join(diagnosis.watched)}")
    lines += [f"not watched: {text}" for text in diagnosis.unwatched]
    lines += [f"limit: {text}" for text in diagnosis.limits]
    if diagnosis.runs:
        runs = ", ".join(f"{run.name} ({run.seconds:.0f} s)" for run in diagnosis.runs)
        lines.append(f"runs: {runs}")
    return lines


def _clue(clue: Clue) -> list[str]:
    parts = []
    if clue.name:
        inside = f" in {clue.function}" if clue.function not in ("", "<module>") else ""
        parts.append(f"{clue.name}{inside}")
    if clue.site is not None:
        parts.append(f"{clue.site}  {clue.source}".rstrip())
    rows = [_row(clue.role, "  ".join(parts))] if parts else []
    return rows + ([_row("" if rows else clue.role, clue.text)] if clue.text else [])


def _rows(role: str, text: str) -> list[str]:
    """A paragraph, over as many lines as it takes."""
    rows = textwrap.wrap(text, _WIDTH - _ROLE - 3)
    return [_row(role if number == 0 else "", row) for number, row in enumerate(rows)]


def _row(role: str, text: str) -> str:
    line = f"   {role:<{_ROLE}}{text}"
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def tree(graph: Graph) -> list[str]:
    """Return the lines of the tree; none where no walk of the graph is at fault."""
    walk = next((each for each in graph.walks if each.faulty and each.boxes), None)
    if walk is None:
        return []
    lines = [f"backward {walk.number}" + (f"  {walk.site}" if walk.site is not None else "") + f"  {walk.source}"]
    way = _way(graph, walk.boxes[0])
    # The ends say what it is about; what is between them may be long.
    between = len(way) - _MOST
    shown = [*way[: _MOST // 2], *way[_MOST // 2 + between :]] if between > 0 else way
    for depth, box in enumerate(shown):
        if between > 0 and depth == _MOST // 2:
            lines.append(f"{'   ' * depth}└─ over {between} more lines")
        others = {edge.made for edge in graph.edges if edge.used == box and edge.made != box} - set(way)
        aside = f"  (+{len(others)} beside it)" if others and box != way[-1] else ""
        lines.append(f"{'   ' * depth}└─ {_told(graph.boxes[box])}{aside}")
    return lines


def _way(graph: Graph, begin: int) -> list[int]:
    """The boxes from ``begin`` along the faulty walk, to its end; where it parts, by what was made last."""
    way = [begin]
    while True:
        nearer = [edge.made for edge in graph.edges if edge.again and edge.used == way[-1] and edge.made not in way]
        if not nearer:
            return way
        way.append(max(nearer))


def _told(box: Box) -> str:
    where = f"{box.site}  {box.source}" if box.site is not None else "library code"
    notes = [*box.roles]
    if box.freed is not None:
        notes.append(f"freed by backward {box.freed}")
    notes += [f"held by {held}" for held in box.held[:1]]
    return where + (f"  [{', '.join(notes)}]" if notes else "")
