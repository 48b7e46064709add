"""A graph as an SVG picture: a box for each line, who holds it, and the faulty walk in red."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import escape as _escape

from codemods.reports._markup import visible
from codemods.terms.counting import plain_count_text
from verify.diagnosis.folded import Box, Graph, Walk
from verify.diagnosis.model import Diagnosis
from verify.diagnosis.pictures import graphviz, layout
from verify.diagnosis.pictures.layout import Placed, Point
from verify.diagnosis.pictures.reading import MOST, around

#: Graphs of more boxes than this are nobody's to read, and not drawn whole by Graphviz either.
_MOST_DRAWN = 400
_LETTER, _LINE, _PAD = 7.8, 17.0, 10.0
_LONGEST = 46
_MARGIN = 24.0
_ARROW = 10.0
_RED, _GREY, _INK, _HELD = "#c62828", "#8a94a3", "#1d2733", "#8a4b00"
_FILL = {"plain": "#f3f7fd", "freed": "#e9e9ec", "fault": "#fdecea"}
_STROKE = {"plain": "#4a6fa5", "freed": "#8a8a93", "fault": _RED}
_LEGEND = (
    ("a box is neighbouring nodes of one line; data flows downward, a backward walks upward", _INK),
    ("red: the walk that meets the fault", _RED),
    ("grey, dashed: freed by a backward", "#5f5f68"),
    ("brown: who holds it", _HELD),
)


def of(diagnosis: Diagnosis) -> str | None:
    """Return the picture of the first fault that has one, else of an ordinary step; None where no graph was seen."""
    first = next((fault for fault in diagnosis.faults if fault.graph is not None), None)
    if first is not None and first.graph is not None:
        return draw(first.graph, f"{diagnosis.command}: {first.headline}")
    return None if diagnosis.graph is None else draw(diagnosis.graph, f"{diagnosis.command}: the graph of a step")


def draw(graph: Graph, title: str) -> str:
    """Return the picture as the text of an SVG file."""
    drawn, placed, rows = _laid_out(graph)
    parts = [_edge(placed.curves[i], edge.again, edge.count) for i, edge in enumerate(drawn.edges)]
    parts += [_box(box, corner, lines) for box, corner, lines in zip(drawn.boxes, placed.corners, rows, strict=False)]
    begun = [walk for walk in drawn.walks if walk.boxes]
    offset = len(drawn.boxes)
    for number, walk in enumerate(begun):
        corner = placed.corners[offset + number]
        parts.append(_walk(walk, corner, rows[offset + number]))
        first = len(drawn.edges) + sum(len(each.boxes) for each in begun[:number])
        parts += [_edge(curve, walk.faulty, 1, dashed=True) for curve in placed.curves[first : first + len(walk.boxes)]]
    return _page(parts, placed, title, _caption(drawn))


def _laid_out(graph: Graph) -> tuple[Graph, Placed, list[list[str]]]:
    """What is drawn of it, where, and the lines of text of each box."""
    if len(graph.boxes) > MOST and graphviz.installed():
        larger = around(graph, _MOST_DRAWN)
        rows, sizes, edges = _measured(larger)
        placed = graphviz.place(sizes, edges)
        if placed is not None:
            return larger, placed, rows
    smaller = around(graph)
    rows, sizes, edges = _measured(smaller)
    return smaller, layout.place(sizes, edges), rows


def _measured(graph: Graph) -> tuple[list[list[str]], list[Point], list[tuple[int, int]]]:
    """Lines of text, sizes and edges of the boxes, with a box below for each backward."""
    begun = [walk for walk in graph.walks if walk.boxes]
    freeing = {walk.number: f" at {walk.site}" for walk in graph.walks if walk.site is not None}
    rows = [_lines(box, freeing) for box in graph.boxes] + [_walk_lines(walk) for walk in begun]
    sizes = [(_wide(lines), len(lines) * _LINE + _PAD) for lines in rows]
    edges = [(edge.made, edge.used) for edge in graph.edges]
    edges += [(box, len(graph.boxes) + number) for number, walk in enumerate(begun) for box in walk.boxes]
    return rows, sizes, edges


def _wide(lines: Sequence[str]) -> float:
    return max(len(line) for line in lines) * _LETTER + 2 * _PAD


def _lines(box: Box, freeing: Mapping[int, str]) -> list[str]:
    where = str(box.site) if box.site is not None else "library code"
    role = f"   {', '.join(box.roles)}" if box.roles else ""
    made = ", ".join(name for name, _ in box.operations)
    nodes = plain_count_text(box.nodes, "node") + (f" in {box.turns} turns" if box.turns > 1 else "")
    nodes += f" of {box.steps} steps" if box.steps > 1 else ""
    lines = [where + role, _short(box.source), _short(f"{nodes}: {made}")]
    if box.freed is not None:
        lines.append(f"freed by backward {box.freed}{freeing.get(box.freed, '')}")
    # Of two functions of one name each may hold it.
    held = dict.fromkeys(_short(f"held by {one}") for one in box.held)
    return [*(line for line in lines if line), *held]


def _walk_lines(walk: Walk) -> list[str]:
    lines = [f"backward {walk.number}" + (f"   {walk.site}" if walk.site is not None else ""), _short(walk.source)]
    return [line for line in lines if line]


def escape(text: str) -> str:
    """``text`` for a picture: escaped, without what no file of this kind may hold."""
    return str(_escape(visible(text)))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _box(box: Box, corner: Point, lines: Sequence[str]) -> str:
    kind = "fault" if box.roles else "freed" if box.freed is not None else "plain"
    dash = ' stroke-dasharray="5 3"' if box.freed is not None else ""
    weight = 2.2 if box.roles else 1.2
    told = "\n".join([str(box.site or ""), box.source, *(f"{name}: {count}" for name, count in box.operations)])
    colours = [_text_colour(line, number) for number, line in enumerate(lines)]
    return _card(corner, lines, colours, _FILL[kind], f'{_STROKE[kind]}" stroke-width="{weight}"{dash} rx="5', told)


def _text_colour(line: str, number: int) -> str:
    if line.startswith("held by "):
        return _HELD
    return _INK if number < 2 else "#5a6675"


def _walk(walk: Walk, corner: Point, lines: Sequence[str]) -> str:
    colour = _RED if walk.faulty else "#5f5f68"
    fill = "#ffffff"
    return _card(corner, lines, [colour] * len(lines), fill, f'{colour}" stroke-width="1.6" rx="14', walk.source)


def _card(corner: Point, lines: Sequence[str], colours: Sequence[str], fill: str, stroke: str, told: str) -> str:
    x, y = corner
    parts = [
        f"<g><title>{escape(told)}</title>",
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{_wide(lines):.1f}" height="{len(lines) * _LINE + _PAD:.1f}" '
        f'fill="{fill}" stroke="{stroke}"/>',
    ]
    for number, (line, colour) in enumerate(zip(lines, colours, strict=True)):
        weight = ' font-weight="bold"' if number == 0 else ""
        at = y + _PAD / 2 + number * _LINE + 12.5
        parts.append(
            f'<text x="{x + _PAD:.1f}" y="{at:.1f}" fill="{colour}"{weight} xml:space="preserve">{escape(line)}</text>'
        )
    return "".join(parts) + "</g>"


def _edge(curve: Sequence[Point], again: bool, count: int, *, dashed: bool = False) -> str:
    first, *rest = [f"{x:.1f},{y:.1f}" for x, y in curve]
    colour = _RED if again else _GREY
    width = 2.4 if again else min(3.0, 1.0 + count / 8)
    dash = ' stroke-dasharray="6 4"' if dashed else ""
    path = f'<path d="M{first} C{" ".join(rest)}" fill="none" stroke="{colour}" stroke-width="{width:.1f}"{dash}/>'
    # A walk goes from what was made last to what was made first.
    return path + _head(curve[0], curve[1], colour) if again or dashed else path


def _head(tip: Point, behind: Point, colour: str) -> str:
    """An arrowhead at ``tip``; drawn, not a marker, which many programs turn the wrong way."""
    away = math.atan2(behind[1] - tip[1], behind[0] - tip[0])
    sides = [
        (tip[0] + _ARROW * math.cos(away + turn), tip[1] + _ARROW * math.sin(away + turn)) for turn in (-0.45, 0.45)
    ]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, *sides))
    return f'<polygon points="{points}" fill="{colour}"/>'


def _caption(graph: Graph) -> str:
    count = len(graph.boxes)
    text = f"{graph.nodes} node{'s' * (graph.nodes != 1)} in {count} box{'es' * (count != 1)}"
    text += "" if graph.whole else ", and more behind them"
    return text + (f", those around the fault; {graph.left_out} more are not drawn" if graph.left_out else "")


def _page(parts: Sequence[str], placed: Placed, title: str, caption: str) -> str:
    heads = [title, caption]
    top = _MARGIN + len(heads) * 20.0
    below = top + placed.height + _MARGIN
    width = max(placed.width, *(len(text) * _LETTER for text in [*heads, *(text for text, _ in _LEGEND)])) + 2 * _MARGIN
    height = below + len(_LEGEND) * 16.0 + _MARGIN / 2
    left = (width - placed.width) / 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(title)}" '
        'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="12">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{_MARGIN}" y="{_MARGIN}" font-size="14" font-weight="bold" fill="{_INK}">{escape(title)}</text>',
        f'<text x="{_MARGIN}" y="{_MARGIN + 18}" fill="#5a6675">{escape(caption)}</text>',
        f'<g transform="translate({left:.1f} {top:.1f})">',
        *parts,
        "</g>",
    ]
    for number, (text, colour) in enumerate(_LEGEND):
        lines.append(
            f'<text x="{_MARGIN}" y="{below + number * 16.0:.0f}" font-size="11" fill="{colour}">{escape(text)}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"
