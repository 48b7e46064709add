"""What each backward walks, which backward freed a node, and the explanation of the two errors that this ends in."""

from __future__ import annotations

import re
import typing
from typing import Any

from ..graph import origins
from ..graph.backward import Call
from ..graph.nodes import behind, roots

_MARK = __name__ + ".walked"
_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")
#: Saved tensors that were changed, of one backward.
_MOST_HITS = 8
#: Backwards whose beginnings are known; a training of days has millions.
_MOST_STARTS = 100_000


class _Walked:
    """One backward: ``sequence`` is the number of the next node when it began; ``freed`` once its graph is.

    ``roots`` are the numbers of the nodes in which it began.
    """

    __slots__ = ("freed", "index", "roots", "sequence", "site", "steps")

    def __init__(self, index: int, site: Any, sequence: int) -> None:
        self.index = index
        self.site = site
        self.sequence = sequence
        self.freed = False
        self.roots: list[int] = []
        #: How many optimizer steps and evaluations of closures were made before it.
        self.steps = 0


class Walks:
    """Marks what backwards walk. ``origin`` is the first number of a node: all numbers told are relative to it."""

    def __init__(self) -> None:
        import torch

        self._accumulate = torch._C._functions.AccumulateGrad  # type: ignore[attr-defined]
        self.sequence: typing.Callable[[], int] = getattr(torch.autograd, "_get_sequence_nr", lambda: 0)
        self.origin = self.sequence()
        self.count = 0
        #: The backward that began last.
        self.last: _Walked | None = None
        #: The number of the next node when each backward began.
        self.starts: list[int] = []
        #: By site, where the backward before the last one began.
        self._earlier: dict[tuple[Any, ...], int] = {}
        self._begun: dict[tuple[Any, ...], int] = {}
        #: id of each leaf that a backward came to.
        self.leaves: set[int] = set()

    def before(self, call: Call, site: Any, steps: int = 0) -> tuple[int, int, set[int]]:
        """Mark what ``call`` will walk: how many nodes are new, how many were walked before, and the leaves' ids."""
        mark = self.last = _Walked(self.count, site, self.sequence() - self.origin)
        self.count += 1
        place = tuple(site or ())
        self._earlier[place] = self._begun.get(place, 0)
        self._begun[place] = mark.sequence
        self.starts.append(mark.sequence)
        if len(self.starts) > _MOST_STARTS:
            del self.starts[: _MOST_STARTS // 2]
        fresh = again = 0
        leaves: set[int] = set()
        seen: set[Any] = set()
        stack = roots(call.outputs)
        mark.steps = steps
        mark.roots = [self.number(node) for node in stack]
        while stack:
            node = stack.pop()
            metadata = node.metadata
            known = metadata.get(_MARK)
            if known is mark or (known is not None and known.freed):
                continue
            fresh, again = (fresh + 1, again) if known is None else (fresh, again + 1)
            metadata[_MARK] = mark
            for child, _ in node.next_functions:
                if child is None:
                    continue
                if type(child) is not self._accumulate:
                    stack.append(child)
                elif child not in seen:
                    seen.add(child)
                    leaves.add(id(child.variable))
        self.leaves |= leaves
        return fresh, again, leaves

    def after(self, call: Call) -> None:
        """Note what ``call`` freed."""
        if self.last is not None and call.error is None:
            self.last.freed = not call.retain

    def number(self, node: Any) -> int:
        """The place of ``node`` in the order in which nodes are made."""
        return int(node._sequence_nr()) - self.origin

    def of(self, node: Any) -> _Walked | None:
        """The last backward that walked ``node``."""
        mark: _Walked | None = node.metadata.get(_MARK)
        return mark

    def second(self, call: Call) -> dict[str, Any] | None:
        """Explain a backward through a graph that another one freed; None where no such graph is there."""
        parents, stale = self._stale(call)
        culprit = next((node for node in stale if self._empty(node)), None)
        if culprit is None:
            return None
        freed = culprit.metadata[_MARK]
        above, below = parents.get(culprit), culprit
        while above is not None and self.number(above) < freed.sequence and parents.get(above) is not None:
            above, below = parents[above], above
        crosses = above is not None and self.number(above) >= freed.sequence
        if not crosses:
            # Nothing was built on the graph since: two losses of one graph, or one loss twice.
            above, below = parents.get(culprit), culprit
        return {
            "index": self.count - 1,
            "freed": freed.site,
            "freed_index": freed.index,
            "producer": origins.site(below),
            "consumer": origins.site(above),
            "operation": below.name(),
            "crosses": crosses,
            "twice": above is None,
            "stepped": self.last is not None and self.last.steps > freed.steps,
            "fresh": self.last is not None and self.number(below) >= self._earlier.get(tuple(self.last.site or ()), 0),
            "number": self.number(below),
            "user": None if above is None else self.number(above),
        }

    def _stale(self, call: Call) -> tuple[dict[Any, Any], list[Any]]:
        stack = roots(call.outputs)
        parents: dict[Any, Any] = dict.fromkeys(stack)
        stale = []
        while stack:
            node = stack.pop()
            mark = node.metadata.get(_MARK)
            if mark is not None and mark.freed:
                stale.append(node)
                continue
            for child, _ in node.next_functions:
                if child is not None and type(child) is not self._accumulate and child not in parents:
                    parents[child] = node
                    stack.append(child)
        return parents, stale

    def _empty(self, node: Any) -> bool:
        """Whether what ``node``, or a node behind it that was freed with it, had saved is gone."""

        def freed(child: Any) -> bool:
            mark = None if type(child) is self._accumulate else child.metadata.get(_MARK)
            return mark is not None and mark.freed

        errors = (error for each in behind([node], freed) for _, error in _errors(each))
        return any("been freed" in str(error) for error in errors)

    def changed(self, call: Call, site: Any) -> list[tuple[dict[str, Any], Any]]:
        """The saved tensors that were changed in place since, each with what is left of it, in the order of reading."""
        found: list[tuple[dict[str, Any], Any]] = []
        for node in behind(roots(call.outputs)):
            for name, error in _errors(node):
                match = _VERSIONS.search(str(error))
                if match is not None and (raw := getattr(node, "_raw" + name, None)) is not None:
                    hit = self._hit(node, name, match)
                    hit["old"] = hit["number"] < self._earlier.get(tuple(site or ()), 0)
                    found.append((hit, getattr(raw, "data", None)))
            if len(found) >= _MOST_HITS:
                break
        return found

    def _hit(self, node: Any, name: str, match: Any) -> dict[str, Any]:
        return {
            "reader": origins.site(node),
            "operation": node.name(),
            "operand": name[len("_saved_") :],
            "number": self.number(node),
            "version": int(match[1]),
            "expected": int(match[2]),
        }


_ATTRIBUTES: dict[type, list[str]] = {}


def saved_names(node: Any) -> list[str]:
    """The attributes of ``node`` that give what it saved."""
    kind = type(node)
    names = _ATTRIBUTES.get(kind)
    if names is None:
        found = [name for name in dir(kind) if name.startswith("_saved_") or name == "saved_tensors"]
        names = _ATTRIBUTES[kind] = found
    return names


def _errors(node: Any) -> list[tuple[str, RuntimeError]]:
    found: list[tuple[str, RuntimeError]] = []
    for name in saved_names(node):
        try:
            getattr(node, name)
        except RuntimeError as error:
            found.append((name, error))
        except Exception:
            # Values of a kind that Python has no form of.
            continue
    return found
