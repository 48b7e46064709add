"""The way of the faulty walk as a short tree for the terminal, from the backward up to what it meets."""

from __future__ import annotations

from verify.diagnosis.folded import Box, Graph

_MOST = 9


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
