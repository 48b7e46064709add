"""The graph around a fault, folded to the user's lines: for people to look at."""

from __future__ import annotations

import re
import time
import typing
from bisect import bisect_right
from types import FrameType
from typing import Any

from ..graph import origins
from ..graph.holders import variables
from ..lines.sites import Tree
from .names import typed
from .walks import Walks

_MOST_NODES = 50_000
_MOST_BOXES = 2000
_MOST_OPERATIONS = 3
_MOST_HOLDERS = 3
_SECONDS = 2.0
_GRADIENT = re.compile(r"Backward\d*$")
_INDEX = re.compile(r"\[\d+\]")
#: Rows of so few boxes are read as they are; of more, what is repeated becomes one turn.
FEW = 16
#: So many repetitions are worth a fold, first; where there are still too many boxes, two are.
_TURNS = (3, 2)
#: The longest turn that is looked for, in boxes.
_LONGEST = 64
_PASSES = 6


class Picture:
    """Draws nothing: it tells which boxes there are, what leads to what, and who holds them."""

    def __init__(self, walks: Walks, tree: Tree) -> None:
        self._walks = walks
        self._tree = tree

    def event(
        self,
        purpose: str,
        roots: typing.Iterable[Any],
        frames: list[FrameType],
        roles: dict[int, str] | None = None,
        names: dict[int, list[dict[str, str]]] | None = None,
    ) -> dict[str, Any]:
        """The graph behind ``roots``.

        ``roles`` and ``names`` are told of nodes by their numbers: what one is to the fault, and who carries it, where
        that is known better than ``frames`` (the innermost first) would tell now.
        """
        roles, names = roles or {}, names or {}
        nodes, edges, whole = self._nodes(roots)
        # Nodes are made before what is made of them, so this order has no way back.
        nodes.sort(key=self._walks.number)
        numbers = [self._walks.number(node) for node in nodes]
        steps = [bisect_right(self._walks.starts, number) for number in numbers]
        newest = max(steps, default=0)
        keys = [(tuple(origins.site(nodes[i]) or ()), steps[i] == newest) for i in range(len(nodes))]
        places = fold(keys, [i for i in range(len(nodes)) if numbers[i] in roles])
        boxes = [self._box() for _ in range(min(_MOST_BOXES, places[-1] + 1 if places else 0))]
        of = {}
        for i in range(len(nodes)):
            if places[i] < len(boxes):
                of[nodes[i]] = places[i]
                boxes[places[i]]["turns"] += not i or places[i] != places[i - 1]
                self._add(boxes[places[i]], nodes[i], steps[i], roles.get(numbers[i]))
        for box in boxes:
            self._finish(box)
        for number, known in names.items():
            for node in nodes:
                if self._walks.number(node) == number and node in of:
                    boxes[of[node]]["holders"] = [{**name, "tensors": 1} for name in known[:_MOST_HOLDERS]]
        self._hold(boxes, of, frames)
        return {
            "what": "graph",
            "for": purpose,
            "nodes": len(nodes),
            "whole": whole and len(of) == len(nodes),
            "boxes": boxes,
            "edges": self._edges(edges, of),
            "walks": self._walked(of),
        }

    def _nodes(self, roots: typing.Iterable[Any]) -> tuple[list[Any], list[tuple[Any, Any]], bool]:
        """The nodes behind ``roots``, the edges between them as (made, used), and whether these are all."""
        stack = list(roots)
        seen = set(stack)
        edges: list[tuple[Any, Any]] = []
        while stack:
            node = stack.pop()
            for child, _ in node.next_functions:
                # Leaves have no line and no number.
                if child is None or not child.next_functions:
                    continue
                if child not in seen:
                    if len(seen) >= _MOST_NODES:
                        return list(seen), edges, False
                    seen.add(child)
                    stack.append(child)
                edges.append((child, node))
        return list(seen), edges, True

    def _box(self) -> dict[str, Any]:
        return {
            "site": None,
            "nodes": 0,
            "turns": 0,
            "steps": set(),
            "operations": {},
            "freed": None,
            "roles": [],
            "holders": [],
        }

    def _add(self, box: dict[str, Any], node: Any, step: int, role: str | None) -> None:
        box["site"] = origins.site(node)
        box["nodes"] += 1
        box["steps"].add(step)
        name = _GRADIENT.sub("", node.name().rpartition("::")[2])
        box["operations"][name] = box["operations"].get(name, 0) + 1
        walked = self._walks.of(node)
        if walked is not None and walked.freed:
            box["freed"] = walked.index
        if role is not None and role not in box["roles"]:
            box["roles"].append(role)

    def _finish(self, box: dict[str, Any]) -> None:
        ranked = sorted(box["operations"].items(), key=lambda row: -row[1])
        box["operations"] = [list(row) for row in ranked[:_MOST_OPERATIONS]]
        box["steps"] = len(box["steps"])

    def _edges(self, edges: list[tuple[Any, Any]], of: dict[Any, int]) -> list[list[int]]:
        """[made, used, how many, how many of them lead from one step to a later one] of boxes."""
        starts = self._walks.starts
        found: dict[tuple[int, int], list[int]] = {}
        for child, node in edges:
            if child not in of or node not in of:
                continue
            later = bisect_right(starts, self._walks.number(child)) < bisect_right(starts, self._walks.number(node))
            if of[child] != of[node] or later:
                row = found.setdefault((of[child], of[node]), [0, 0])
                row[0] += 1
                row[1] += later
        return [[*key, *counts] for key, counts in sorted(found.items())]

    def _walked(self, of: dict[Any, int]) -> list[dict[str, Any]]:
        """The backwards that began in these boxes and are still to be seen there: the last of all is the first row."""
        marks: dict[int, Any] = {}
        for node in of:
            mark = self._walks.of(node)
            if mark is not None:
                marks[mark.index] = mark
        if self._walks.last is not None:
            marks[self._walks.last.index] = self._walks.last
        places = {self._walks.number(node): place for node, place in of.items()}
        rows = []
        for index in sorted(marks, reverse=True)[:_MOST_HOLDERS]:
            mark = marks[index]
            begins = sorted({places[number] for number in mark.roots if number in places})
            rows.append({"index": index, "site": mark.site, "boxes": begins, "freed": mark.freed})
        return rows

    def _hold(self, boxes: list[dict[str, Any]], of: dict[Any, int], frames: list[FrameType]) -> None:
        """Add who holds what: elements of one container count as one holder."""
        import torch

        given = {place for place in range(len(boxes)) if boxes[place]["holders"]}
        found: dict[tuple[int, str, str], list[str]] = {}
        known: set[int] = set()
        for name, value, function in variables(self._tree, frames, time.perf_counter() + _SECONDS):
            if not issubclass(type(value), torch.Tensor) or id(value) in known or value.grad_fn not in of:
                continue
            known.add(id(value))
            place = of[value.grad_fn]
            if place not in given:
                found.setdefault((place, _INDEX.sub("[*]", name), function), []).append(name)
        for (place, name, function), each in found.items():
            if len(boxes[place]["holders"]) < _MOST_HOLDERS:
                shown = typed(each[0] if len(each) == 1 else name)
                boxes[place]["holders"].append({"name": shown, "function": function, "tensors": len(each)})


def fold(keys: typing.Sequence[typing.Hashable], apart: typing.Iterable[int] = ()) -> list[int]:
    """The box of each of ``keys``, numbered in their order.

    Neighbours with equal keys share a box. Where that leaves many boxes, a row of boxes that comes again and again, at
    once behind itself, is folded to one such row. The boxes of the places ``apart`` are like no others.
    """
    boxes, left = _runs(keys)
    for place in apart:
        left[boxes[place]] = (left[boxes[place]], boxes[place])
    for turns in _TURNS:
        for _ in range(_PASSES):
            if len(left) <= FEW:
                return boxes
            places = _repeated(left, turns)
            if places is None:
                break
            merged, shorter = places
            # Two rows that met may begin and end with the same line.
            again, left = _runs(shorter)
            boxes = [again[merged[box]] for box in boxes]
    return boxes


def _runs(keys: typing.Sequence[typing.Hashable]) -> tuple[list[int], list[typing.Hashable]]:
    boxes: list[int] = []
    left: list[typing.Hashable] = []
    for key in keys:
        if not left or left[-1] != key:
            left.append(key)
        boxes.append(len(left) - 1)
    return boxes, left


def _repeated(keys: list[typing.Hashable], turns: int) -> tuple[list[int], list[typing.Hashable]] | None:
    """The new place of each of ``keys`` and the keys that are left; None where nothing is repeated ``turns`` times."""
    count = len(keys)
    covers = [0] * count
    periods = [0] * count
    for period in range(2, min(_LONGEST, count // turns) + 1):
        equal = 0
        for place in range(count - period - 1, -1, -1):
            equal = equal + 1 if keys[place] == keys[place + period] else 0
            times = equal // period + 1
            if times >= turns and times * period > covers[place]:
                covers[place], periods[place] = times * period, period
    if not any(covers):
        return None
    places: list[int] = []
    left: list[typing.Hashable] = []
    at = 0
    while at < count:
        period = periods[at] or 1
        first = len(left)
        left += keys[at : at + period]
        places += [first + offset % period for offset in range(covers[at] or 1)]
        at += covers[at] or 1
    return places, left
