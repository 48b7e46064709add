"""Containers of the user's that grow with every step, and what they hold: tensors without a graph, or anything else."""

from __future__ import annotations

import collections
import sys
import time
import typing
from types import FrameType
from typing import Any

from ..graph.holders import variables
from ..lines.sites import Tree
from .names import typed

#: Steps after which a look is taken; a look walks all that the variables lead to.
_LOOKS = frozenset({2, 4, 8, 12, 16, 20, 32, 64, 128})
_FEWEST_LOOKS = 4
_SURE_LOOKS = 5
_SECONDS = 1.0
_SAMPLE = 8
_LOOKED_AT = 100
_MOST = 5
_KINDS = (list, dict, set, collections.deque)


class _Row:
    """A container, which is not held: what dies with it is what growth is told by."""

    __slots__ = ("_weights", "kind", "lengths", "name")

    def __init__(self, name: str, kind: type) -> None:
        self.name = name
        self.kind = kind
        #: (step, length) of each look.
        self.lengths: list[tuple[int, int]] = []
        self._weights = (0.0, 0.0, False)

    def may_be(self, value: typing.Sized) -> bool:
        """Whether ``value``, which has the id of this one, can be this one, and not what came to its place."""
        return type(value) is self.kind and len(value) >= self.lengths[-1][1]

    def looked(self, step: int, value: typing.Sized) -> None:
        self.lengths.append((step, len(value)))
        if len(self.lengths) >= _FEWEST_LOOKS and self.grows:
            self._weights = _weights(value)

    @property
    def grows(self) -> bool:
        """Whether it was longer at each look than at the one before."""
        lengths = [length for _, length in self.lengths]
        return all(lengths[i] > lengths[i - 1] for i in range(1, len(lengths)))

    def told(self) -> dict[str, Any]:
        (first, fewest), (last, length) = self.lengths[0], self.lengths[-1]
        added = (length - fewest) / (last - first)
        tensors, plain, graph = self._weights
        return {
            "name": typed(self.name),
            "kind": self.kind.__name__,
            "length": length,
            "added": added,
            "tensor_bytes": tensors * added,
            "plain_bytes": plain * added,
            "graph": graph,
        }


class Stores:
    """Looks at containers from step to step."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._seen: dict[int, _Row] = {}
        #: By name: (step, bytes, whether it has a graph) of the tensor that a variable held at each look.
        self._tensors: dict[tuple[str, str], list[tuple[int, int, bool]]] = {}
        self._looks: list[int] = []

    def stepped(self, step: int, frame: FrameType | None) -> None:
        """``step`` steps were made; ``frame`` is where."""
        if step in _LOOKS:
            self.look(step, self._tree.frames(frame))

    def look(self, step: int, frames: list[FrameType]) -> None:
        """Note how long each container is."""
        if self._looks and self._looks[-1] >= step:
            return
        if frames:
            # At the end, functions and what they held are gone.
            self._looks.append(step)
        until = time.perf_counter() + _SECONDS
        import torch

        here = set()
        tensors: set[tuple[str, str]] = set()
        for name, value, function in variables(self._tree, frames, until):
            if issubclass(type(value), _KINDS) and id(value) not in here and not name.endswith("__"):
                here.add(id(value))
                row = self._seen.get(id(value))
                if row is None or not row.may_be(value):
                    row = self._seen[id(value)] = _Row(name, type(value))
                row.looked(step, value)
            elif issubclass(type(value), torch.Tensor) and (name, function) not in tensors and value.numel():
                # It is another tensor each time, under the same name.
                tensors.add((name, function))
                self._tensors.setdefault((name, function), []).append((step, _bytes(value), value.grad_fn is not None))
        # Whoever is not found any more was let go, and does not pile up.
        if frames:
            self._seen = {key: row for key, row in self._seen.items() if key in here}

    def event(self) -> dict[str, Any]:
        """The containers that were longer at each look than at the one before."""
        rows: list[dict[str, Any]] = []
        for row in self._seen.values():
            if len(row.lengths) >= _FEWEST_LOOKS and row.grows:
                rows.append(row.told())
        rows += self._longer()
        rows.sort(key=lambda row: -(row["tensor_bytes"] + row["plain_bytes"]))
        return {"what": "stores", "looks": self._looks, "containers": rows[:_MOST]}

    def _longer(self) -> list[dict[str, Any]]:
        """The same for single tensors that were larger each time."""
        rows: list[dict[str, Any]] = []
        for (name, _), sizes in self._tensors.items():
            if len(sizes) < max(_SURE_LOOKS, len(self._looks)):
                continue
            added = (sizes[-1][1] - sizes[0][1]) / (sizes[-1][0] - sizes[0][0])
            pairs = [(sizes[i - 1], sizes[i]) for i in range(1, len(sizes))]
            rates = [(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairs]
            # Batches of varying length grow by chance now and then, and never evenly.
            if added <= 0 or not all(added / 2 <= rate <= 2 * added for rate in rates):
                continue
            row = {"name": typed(name), "kind": "Tensor", "length": sizes[-1][1], "added": added}
            rows.append({**row, "tensor_bytes": added, "plain_bytes": 0.0, "graph": sizes[-1][2]})
        return rows


def _bytes(tensor: Any) -> int:
    return int(tensor.numel()) * int(tensor.element_size())


def _weights(container: Any) -> tuple[float, float, bool]:
    """Bytes of an entry in tensors and in anything else, from the last few; whether tensors have a graph."""
    values = list(dict.values(container)) if isinstance(container, dict) else list(container)
    last = values[-_SAMPLE:]
    tensors = plain = 0.0
    graph = False
    seen: set[int] = set()
    for value in last:
        held, other, attached = _weigh(value, 3, seen)
        tensors += held
        plain += other
        graph = graph or attached
    return tensors / max(1, len(last)), plain / max(1, len(last)), graph


def _weigh(value: Any, depth: int, seen: set[int]) -> tuple[float, float, bool]:
    import torch

    kind = type(value)
    if issubclass(kind, torch.Tensor):
        storage = value.untyped_storage()
        if storage._cdata in seen:
            return 0.0, 0.0, value.grad_fn is not None
        seen.add(storage._cdata)
        return float(storage.nbytes()), 0.0, value.grad_fn is not None
    if depth and issubclass(kind, (list, tuple, dict)):
        parts = list(dict.values(value)) if issubclass(kind, dict) else list(value)
        rows = [_weigh(part, depth - 1, seen) for part in parts[:_LOOKED_AT]]
        # What is not looked at weighs as much as the rest.
        times = max(1.0, len(parts) / _LOOKED_AT)
        tensors, plain = (times * sum(row[place] for row in rows) for place in (0, 1))
        return tensors, plain + sys.getsizeof(value), any(row[2] for row in rows)
    if id(value) in seen:
        return 0.0, 0.0, False
    seen.add(id(value))
    try:
        size = float(getattr(value, "nbytes", 0) or sys.getsizeof(value))
    except Exception:
        size = 0.0
    return 0.0, size, False
