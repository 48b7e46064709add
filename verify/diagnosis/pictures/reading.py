"""From what the probe tells of a graph to a :class:`Graph`, and from a large one to what is near the fault."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from verify.diagnosis.evidence import Sources, site_of
from verify.diagnosis.folded import Box, Edge, Graph, Held, Walk

#: Of a graph with more boxes only those around the fault are drawn, where nothing better than our own layout is there.
MOST = 50


def graph_of(event: Mapping[str, Any], sources: Sources) -> Graph:
    """Return the graph of a ``graph`` event (:mod:`verify.diagnosis.evidence`)."""
    boxes = tuple(_box(row, sources) for row in event["boxes"])
    edges = [Edge(made, used, count) for made, used, count, _ in event["edges"]]
    later = {(made, used) for made, used, _, crossing in event["edges"] if crossing}
    walks = tuple(
        Walk(
            row["index"] + 1,
            site_of(row["site"]),
            sources.text(site_of(row["site"])),
            tuple(row["boxes"]),
            number == 0 and event["for"] in ("second", "inplace"),
        )
        for number, row in enumerate(event["walks"])
    )
    if event["for"] == "growth":
        again = later
    else:
        ends = {"second": ("cause",), "inplace": ("saved by",)}.get(event["for"], ())
        again = _between(walks, edges, {i for i, box in enumerate(boxes) if set(ends) & set(box.roles)})
    edges = [replace(edge, again=(edge.made, edge.used) in again) for edge in edges]
    return Graph(boxes, tuple(edges), walks, event["nodes"], event["whole"])


def _box(row: Mapping[str, Any], sources: Sources) -> Box:
    site = site_of(row["site"])
    return Box(
        site,
        sources.text(site),
        row["nodes"],
        row["turns"],
        row["steps"],
        tuple((str(name), int(count)) for name, count in row["operations"]),
        None if row["freed"] is None else row["freed"] + 1,
        tuple(Held(each["name"], each["function"], each["tensors"]) for each in row["holders"]),
        tuple(row["roles"]),
    )


def _between(walks: Iterable[Walk], edges: Sequence[Edge], ends: set[int]) -> set[tuple[int, int]]:
    """The edges on the ways from where the faulty walk begins to the boxes ``ends``."""
    begins = {box for walk in walks if walk.faulty for box in walk.boxes}
    inward: dict[int, set[int]] = {}
    outward: dict[int, set[int]] = {}
    for edge in edges:
        inward.setdefault(edge.used, set()).add(edge.made)
        outward.setdefault(edge.made, set()).add(edge.used)
    # The walk ends where it meets the fault.
    walked = _reached(begins, inward, ends)
    leading = _reached(ends, outward, begins)
    return {
        (edge.made, edge.used)
        for edge in edges
        if edge.used in walked and edge.used in leading and edge.made in leading and edge.used not in ends
    }


def _reached(start: set[int], onward: Mapping[int, set[int]], stop: set[int]) -> set[int]:
    seen = set(start)
    queue = deque(start)
    while queue:
        box = queue.popleft()
        if box in stop and box not in start:
            continue
        for other in onward.get(box, ()):
            if other not in seen:
                seen.add(other)
                queue.append(other)
    return seen


def around(graph: Graph, most: int = MOST) -> Graph:
    """Return the boxes nearest to the fault, ``most`` at most, and what runs between them."""
    if len(graph.boxes) <= most:
        return graph
    near: dict[int, set[int]] = {}
    for edge in graph.edges:
        near.setdefault(edge.made, set()).add(edge.used)
        near.setdefault(edge.used, set()).add(edge.made)
    chosen: dict[int, None] = {}
    for start in (_red(graph), _named(graph), [len(graph.boxes) - 1]):
        queue = deque(box for box in start if box not in chosen)
        chosen.update(dict.fromkeys(list(queue)[: most - len(chosen)]))
    queue = deque(chosen)
    while queue and len(chosen) < most:
        for other in sorted(near.get(queue.popleft(), ()), reverse=True):
            if other not in chosen and len(chosen) < most:
                chosen[other] = None
                queue.append(other)
    return _part(graph, sorted(chosen))


def _red(graph: Graph) -> list[int]:
    """The boxes that the fault is about, and the way between them."""
    roles = [i for i, box in enumerate(graph.boxes) if box.roles]
    begins = [box for walk in graph.walks if walk.faulty for box in walk.boxes]
    way = [box for edge in graph.edges if edge.again for box in (edge.used, edge.made)]
    return list(dict.fromkeys([*roles, *begins, *way]))


def _named(graph: Graph) -> list[int]:
    return [i for i, box in enumerate(graph.boxes) if box.held]


def _part(graph: Graph, chosen: Sequence[int]) -> Graph:
    place = {box: number for number, box in enumerate(chosen)}
    return Graph(
        tuple(graph.boxes[box] for box in chosen),
        tuple(
            replace(edge, made=place[edge.made], used=place[edge.used])
            for edge in graph.edges
            if edge.made in place and edge.used in place
        ),
        tuple(replace(walk, boxes=tuple(place[box] for box in walk.boxes if box in place)) for walk in graph.walks),
        graph.nodes,
        graph.whole,
        len(graph.boxes) - len(chosen),
    )
