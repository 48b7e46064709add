"""Counts live graph nodes, and tells in which step they were born.

Before a backward every node that it will walk gets a mark in its ``metadata``. The mark is one object for all nodes of
a step, so the object's reference count is the number of such nodes alive: no callback when a node dies, no weak
reference, nothing that changes what autograd saves or frees.
"""

from __future__ import annotations

import gc
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any

# Named after this module: `codemod verify` may run a script that calls verify.watch, a second copy of this one.
BIRTH = __name__ + ".birth"
FORWARD = __name__ + ".forward"

#: A graph of more nodes is marked up to here; the walk would take longer than the step.
MOST_NODES = 500_000
#: Nodes without a place in the order (AccumulateGrad) have the largest number there is.
_NO_ORDER = 2**62
#: Steps at both ends of which nodes may be alive for good reasons: what is set up first, what is in use now.
_EDGE = 2


class _Mark:
    __slots__ = ()


class Graph:
    """The graph nodes of this process. Steps are counted by ``cut``; a node born before the first cut has birth 0."""

    def __init__(self) -> None:
        import torch

        functions: Any = torch._C._functions
        self._accumulate = functions.AccumulateGrad
        self._sequence = getattr(torch.autograd, "_get_sequence_nr", None)
        self._marks: list[_Mark] = [_Mark()]
        self._births: list[int] = [0]
        self._own = next(iter([sys.getrefcount(mark) for mark in self._marks]))
        self._bounds: list[int] = []
        #: The oldest marked node alive at each of the last cuts, without those of the first steps; None for none.
        self._oldest: list[int | None] = []
        self.cuts = 0

    def walk(self, outputs: Iterable[Any]) -> int:
        """Mark all unmarked nodes that a backward from ``outputs`` (tensors or graph edges) reaches; how many.

        Forwards whose outputs are reached (see forwards.py) are told that they were used.
        """
        mark = self._marks[-1]
        accumulate = self._accumulate
        stack = roots(outputs)
        pop, push = stack.pop, stack.append
        fresh = 0
        while stack:
            node = pop()
            metadata = node.metadata
            if BIRTH in metadata:
                if FORWARD in metadata:
                    _use(metadata)
                continue
            metadata[BIRTH] = mark
            fresh += 1
            if len(metadata) > 1 and FORWARD in metadata:
                _use(metadata)
            if fresh >= MOST_NODES:
                break
            for child, _ in node.next_functions:
                if child is not None and type(child) is not accumulate:
                    push(child)
        return fresh

    def live(self) -> int:
        """How many marked nodes are alive."""
        own = self._own
        return sum([sys.getrefcount(mark) - own for mark in self._marks])

    def ages(self) -> dict[int, int]:
        """The marked nodes alive by the step in which a backward first reached them."""
        own = self._own
        counts = [sys.getrefcount(mark) - own for mark in self._marks]
        ages: dict[int, int] = {}
        for i in range(len(counts)):
            if counts[i] > 0:
                ages[self._births[i]] = ages.get(self._births[i], 0) + counts[i]
        return ages

    def cut(self) -> None:
        """A step ends here: what is made from now on is one younger."""
        self.cuts += 1
        if self._sequence is not None:
            self._bounds.append(self._sequence())
        own = self._own
        alive = [sys.getrefcount(mark) > own for mark in self._marks]
        self._marks = [self._marks[i] for i in range(len(alive)) if alive[i]]
        self._births = [self._births[i] for i in range(len(alive)) if alive[i]]
        self._oldest = [*self._oldest[-2:], next((birth for birth in self._births if birth > _EDGE), None)]
        self._marks.append(_Mark())
        self._births.append(self.cuts)

    def slides(self, ages: Iterable[int]) -> bool:
        """Whether the old nodes in ``ages`` are a window that moves along, such as a ``deque`` of the last five.

        With each step its oldest went; what grows keeps it.
        """
        middle = [birth for birth in ages if _EDGE < birth < self.cuts - _EDGE]
        oldest = self._oldest[-1] if self.sliding else None
        return oldest is not None and bool(middle) and min(middle) >= oldest

    @property
    def sliding(self) -> bool:
        """Whether the oldest of several steps' nodes went with each of the last steps."""
        seen = [birth for birth in self._oldest if birth is not None]
        return len(seen) == 3 and seen[0] + 2 == seen[1] + 1 == seen[2] < self.cuts - _EDGE

    def restart(self) -> None:
        """Count steps anew, because a better clock was found; all nodes so far have birth 0."""
        self.cuts = 0
        self._bounds = []
        self._oldest = []
        self._births = [0] * len(self._births)

    def birth(self, node: Any) -> int | None:
        """The step in which ``node`` was made, or None where nothing tells."""
        if self._sequence is not None and hasattr(node, "_sequence_nr"):
            number = node._sequence_nr()
            return bisect_right(self._bounds, number) if number < _NO_ORDER else None
        mark = node.metadata.get(BIRTH)
        for i in range(len(self._marks)):
            if self._marks[i] is mark:
                return self._births[i]
        return None

    def census(self) -> dict[int, int]:
        """All graph nodes that tensors of this process keep alive, by birth. Collects garbage first."""
        gc.collect()
        return self.standing()

    def standing(self) -> dict[int, int]:
        """The same without collecting: what only waits for its collection counts too."""
        return self.ages_of(reached(roots(live_tensors())))

    def ages_of(self, nodes: Iterable[Any]) -> dict[int, int]:
        """``nodes`` counted by birth."""
        ages: dict[int, int] = {}
        for node in nodes:
            birth = self.birth(node)
            if birth is not None:
                ages[birth] = ages.get(birth, 0) + 1
        return ages


def old(ages: Iterable[int], boundaries: int) -> int:
    """How many steps in the middle of the run have nodes alive."""
    return sum(1 for birth in ages if _EDGE < birth < boundaries - _EDGE)


def leaks(ages: Iterable[int], boundaries: int) -> bool:
    """Whether graphs pile up: nodes of at least half of the middle steps, and of three, are alive."""
    return old(ages, boundaries) >= max(3, (boundaries - 2 * _EDGE - 1) // 2)


def roots(outputs: Iterable[Any]) -> list[Any]:
    """The nodes that made ``outputs``: tensors, or GradientEdge pairs that name a node."""
    found = []
    for output in outputs:
        node = getattr(output, "grad_fn", None) if hasattr(output, "grad_fn") else getattr(output, "node", None)
        if node is not None and node.next_functions:
            found.append(node)
    return found


def behind(nodes: Iterable[Any], follow: Callable[[Any], bool] = lambda node: True) -> Iterator[Any]:
    """``nodes`` and every node behind them, each once, where ``follow`` does not end the way."""
    stack = list(nodes)
    seen = set(stack)
    while stack:
        node = stack.pop()
        yield node
        for child, _ in node.next_functions:
            if child is not None and child not in seen and follow(child):
                seen.add(child)
                stack.append(child)


def reached(nodes: Iterable[Any]) -> set[Any]:
    """``nodes`` and every node behind them."""
    return set(behind(nodes))


def live_tensors() -> list[Any]:
    """Every tensor with a graph that the garbage collector knows, gradients with a graph included."""
    import torch

    found = []
    # There are hundreds of thousands of objects, of few types.
    tensors: dict[type, bool] = {}
    for thing in gc.get_objects():
        # Not isinstance: proxies answer it by running code of their own.
        kind = type(thing)
        if kind not in tensors:
            tensors[kind] = issubclass(kind, torch.Tensor)
        if not tensors[kind]:
            continue
        try:
            if not thing.is_leaf:
                found.append(thing)
            elif thing.grad is not None and not thing.grad.is_leaf:
                found.append(thing.grad)
        except Exception:
            # Half-made or wrapped tensors (fake, functorch) answer in their own ways.
            continue
    return found


def _use(metadata: dict[str, Any]) -> None:
    for forward in metadata[FORWARD]:
        forward.use()
