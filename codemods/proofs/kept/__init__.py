"""Attached values that are only kept: in a sum, in a list, as the best so far.

What the rules ``attached-loss-total`` and ``attached-loss-history`` share: both read the same facts of a run, and which
of them a place belongs to is decided here, so that one cause gives one finding.

A value is *kept* if what holds it still does when the next step has begun, if the graph behind it served a ``backward``
(a graph that never did is evaluation, which another rule mends) and if no ``backward`` ever comes through what holds
it.

``places.py`` finds what is kept and whether it outlives its step, ``judging.py`` says whether its graph is needed, and
``findings.py`` makes findings and edits of what all runs showed. ``uses.py``, ``run.py`` and ``model.py`` answer what
these ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from codemods.graph.model.trace import Trace
from codemods.proofs.kept.findings import decide
from codemods.proofs.kept.model import HISTORY, TOTAL, Result
from codemods.proofs.kept.places import Places
from codemods.proofs.observations import Observation

__all__ = ["HISTORY", "TOTAL", "decide", "observe"]

_RESULTS: WeakKeyDictionary[Trace, list[Result]] = WeakKeyDictionary()
"""What was read of a run: two rules ask for it."""


def observe(rule: str, trace: Trace) -> Iterator[Observation]:
    """What one run shows about the places that keep attached values, as observations of the rule of that name."""
    results = _RESULTS.get(trace)
    if results is None:
        results = _RESULTS[trace] = list(Places(trace).read())
    for path, span, shows, seen in results:
        yield Observation(rule, path, span, shows, facts=seen)
