"""What is drawn of a graph: which boxes, where, what is red, and that nobody's text breaks the picture."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from verify.diagnosis.evidence import Sources
from verify.diagnosis.folded import Box, Edge, Graph, Held, Walk
from verify.diagnosis.pictures import graphviz, layout, svg
from verify.diagnosis.pictures.reading import MOST, around, graph_of
from verify.diagnosis.reports.text import tree
from verify.measured.values import Site
from verify.probe.doctor.picture import fold


def box(line: int, **fields: Any) -> Box:
    return Box(Site("t.py", line, "f"), f"x{line} = f(x)", 3, 1, 1, (("Add", 3),), **fields)


def drawn_at_random(count: int, seed: int) -> Graph:
    draw = random.Random(seed)
    edges = {(max(0, i - 1 - int(draw.expovariate(0.5))), i) for i in range(1, count) for _ in range(2)}
    boxes = tuple(box(i + 1, held=(Held("kept[*]", "f", 2),) if i % 7 == 0 else ()) for i in range(count))
    walks = (Walk(2, Site("t.py", 99, "f"), "loss.backward()", (count - 1,), True),)
    return Graph(boxes, tuple(Edge(a, b, 1) for a, b in sorted(edges)), walks, 3 * count)


EVENT: dict[str, Any] = {
    "what": "graph",
    "for": "second",
    "nodes": 6,
    "whole": True,
    "boxes": [
        {"site": ["t.py", line, "f"], "nodes": 2, "turns": 1, "steps": 1, "operations": [["Add", 2]], "freed": freed}
        | {"roles": roles, "holders": [{"name": "z", "function": "f", "tensors": 1}]}
        for line, freed, roles in ((1, 0, []), (2, 0, ["cause"]), (3, None, []), (4, None, ["consumer"]))
    ],
    "edges": [[0, 1, 1, 0], [1, 3, 2, 1], [2, 3, 1, 0]],
    "walks": [{"index": 1, "site": ["t.py", 5, "f"], "boxes": [3], "freed": False}],
}


def test_red_is_the_way_from_the_backward_to_what_was_freed(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("a\nb\nc\nd\nloss.backward()\n")
    graph = graph_of(EVENT, Sources(tmp_path))
    assert [(edge.made, edge.used) for edge in graph.edges if edge.again] == [(1, 3)]
    assert tree(graph) == [
        "backward 2  t.py:5  loss.backward()",
        "└─ t.py:4  d  [consumer, held by z in f]  (+1 beside it)",
        "   └─ t.py:2  b  [cause, freed by backward 1, held by z in f]",
    ]
    grown = graph_of({**EVENT, "for": "growth"}, Sources(tmp_path))
    assert [(edge.made, edge.used) for edge in grown.edges if edge.again] == [(1, 3)]
    assert tree(grown) == []


def test_turns_of_a_loop_are_folded_once_there_are_many() -> None:
    assert fold("aabbc") == [0, 0, 1, 1, 2]
    assert fold("xyz" * 3) == list(range(9))
    long = fold("s" + "xyz" * 30 + "q")
    assert long == [0, *[1, 2, 3] * 30, 4]
    nested = fold("".join("a" + "bc" * 20 + "d" for _ in range(50)) + "q")
    assert max(nested) == 4
    kept = fold("s" + "xyz" * 30 + "q", apart=[40])
    assert kept.count(kept[40]) == 1


def test_ten_thousand_nodes_of_a_loop_become_a_handful_of_boxes() -> None:
    assert max(fold([line for _ in range(2500) for line in (3, 3, 4, 5)])) == 2


@pytest.mark.parametrize("seed", range(4))
def test_no_box_lies_on_another_and_what_is_used_lies_below(seed: int) -> None:
    graph = drawn_at_random(MOST, seed)
    sizes = [(150.0 + 10 * (i % 9), 60.0) for i in range(MOST)]
    placed = layout.place(sizes, [(edge.made, edge.used) for edge in graph.edges])
    for (i, (x, y)), (j, (u, v)) in itertools.combinations(enumerate(placed.corners), 2):
        assert y != v or x + sizes[i][0] <= u or u + sizes[j][0] <= x
    for edge, curve in zip(graph.edges, placed.curves, strict=True):
        assert placed.corners[edge.made][1] < placed.corners[edge.used][1]
        assert len(curve) % 3 == 1
    assert all(-1e-6 <= x <= placed.width and 0 <= y <= placed.height for x, y in placed.corners)


def test_a_chain_is_drawn_straight_and_a_way_back_is_drawn() -> None:
    placed = layout.place([(100.0, 40.0)] * 4, [(0, 1), (1, 2), (2, 3), (2, 1), (3, 3)])
    assert len({round(x, 1) for x, _ in placed.corners}) == 1
    assert placed.curves[3][0][1] > placed.curves[3][-1][1]


def test_a_way_back_between_boxes_of_one_height_is_not_drawn_behind_them() -> None:
    placed = layout.place([(100.0, 40.0)] * 4, [(0, 1), (0, 2), (1, 3), (2, 1), (2, 3)])
    # What a later box hands to an earlier one runs upward from it, in the room between them.
    assert placed.corners[2][1] >= placed.corners[1][1] + 40.0
    assert placed.curves[3][0][1] > placed.curves[3][-1][1]


def test_of_two_functions_of_one_name_that_hold_it_one_is_told() -> None:
    twice = Box(None, "x", 1, 1, 1, (), held=(Held("m", "forward", 1), Held("m", "forward", 1), Held("n", "f", 1)))
    assert svg.draw(Graph((twice,), (), (), 1), "t").count("held by m in forward") == 1


def test_of_a_large_graph_what_is_near_the_fault_is_drawn() -> None:
    large = drawn_at_random(300, 1)
    marked = [*large.boxes]
    marked[120] = box(121, roles=("cause",))
    small = around(Graph(tuple(marked), large.edges, large.walks, large.nodes))
    assert len(small.boxes) == MOST
    assert small.left_out == 300 - MOST
    assert any(each.roles for each in small.boxes)
    assert around(small) is small


def test_what_graphviz_answers_is_read() -> None:
    told = 'graph 1 2 3\nnode 0 1 2.5 1 1 "" solid box black grey\nnode 1 1 0.5 1 1 "" solid box black grey\n'
    edge = "edge 0 1 4 1 2 1 1.8 1 1.2 1 1 solid black\nstop\n"
    placed = graphviz.parsed(told + edge, [(72.0, 72.0)] * 2, [(0, 1)])
    assert placed is not None
    assert placed.corners == [(36.0, 0.0), (36.0, 144.0)]
    assert placed.curves[0] == [
        pytest.approx(point) for point in [(72.0, 72.0), (72.0, 86.4), (72.0, 129.6), (72.0, 144.0)]
    ]
    assert graphviz.parsed(told, [(72.0, 72.0)] * 2, [(0, 1)]) is None


def test_a_picture_is_well_formed_whatever_the_source_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphviz, "installed", lambda: False)
    graph = drawn_at_random(80, 2)
    hostile = Box(
        None, "</text><script>\x00\u202e & \"'", 1, 2, 3, (("<b>", 1),), 1, (Held("a<b", "f", 2),), ("cause",)
    )
    text = svg.draw(Graph((*graph.boxes, hostile), graph.edges, graph.walks, 241), "a <title> & more")
    root = ElementTree.fromstring(text)
    assert not root.findall(".//{*}script")
    assert len(root.findall(".//{*}rect")) == MOST + 2
    assert "31 more are not drawn" in text
