"""Steps for which no backward left a gradient: what they were to train is cut off from its loss."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

from codemods.graph.model.nodes import Node, all_descendants
from codemods.graph.model.trace import Step, Trace
from codemods.proofs.marks import changes_gradients
from codemods.proofs.unseen import Way, leaves_sight

MAY_WALK = (Way.ESCAPED, Way.STORED, Way.CALL)
"""How a graph gets to where a backward may go through it that nobody sees."""


def idle_steps(trace: Trace) -> Iterator[tuple[Step, int]]:
    """Each step that finds no gradient of a parameter that it owns, with the moment from which on it found none: that
    of the last step of one of them, or the beginning. Steps of unseen parameters are no such, nor are those before
    which gradients are assigned."""
    given: dict[Node, list[int]] = defaultdict(list)
    for walk in trace.walks:
        for node in walk.seen:
            if node.leaf:
                given[node].append(walk.place.clock)
    by_hand = [m for m in trace.marks if changes_gradients(m) and not isinstance(m.place.node, ast.Call)]
    last: dict[Node, int] = {}
    for step in sorted(trace.steps, key=lambda step: step.place.clock):
        clock, leaves = step.place.clock, step.leaves or ()
        since = max((last.get(leaf, 0) for leaf in leaves), default=0)
        walked = any(bisect_left(given[leaf], clock) > bisect_right(given[leaf], since) for leaf in leaves)
        if leaves and not walked and not any(since < m.place.clock < clock for m in by_hand):
            yield step, since
        last.update(dict.fromkeys(leaves, clock))


def meant_for_idle_steps(trace: Trace) -> Iterator[Node]:
    """What was computed of the parameters of an idle step since the one before it; nothing where code that cannot be
    seen got some of it, and may have gone back through it."""
    for step, since in idle_steps(trace):
        made = [n for n in all_descendants(step.leaves or ()) if since < n.birth < step.place.clock]
        if not leaves_sight(made, MAY_WALK):
            yield from made
