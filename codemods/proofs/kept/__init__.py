"""Attached values that are only kept: in a sum, in a list, as the best so far.

What the rules ``attached-loss-total`` and ``attached-loss-history`` share: both read the same facts of a run, and which
of them a place belongs to is decided here, so that one cause gives one finding.

A value is *kept* if what holds it still does when the next step has begun, if the graph behind it served a ``backward``
(a graph that never did is evaluation, which another rule mends) and if no ``backward`` ever comes through what holds
it.

``places.py`` finds what is kept and whether it outlives its step, ``judging.py`` says whether its graph is needed.
What all runs showed becomes findings and edits here. ``uses.py`` and ``model.py`` answer what these ask.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from codemods.graph.model.trace import Trace
from codemods.proofs.kept.model import HISTORY, TOTAL, Result
from codemods.proofs.kept.places import Places
from codemods.proofs.observations import Decision, Observation, sites
from codemods.terms.edits import Edit, WrapExpression
from codemods.terms.findings import Finding, Promise, TrailStep
from codemods.terms.spans import Span

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


def decide(rule: str, promise: Promise, observations: Iterable[Observation], decision: Decision) -> Iterator[Finding]:
    """The findings of one of the two rules, and what they promise where an edit fits."""
    faulty = {
        (site.path, site.span): [o.facts for o in site.observations] for site in sites(observations) if site.faulty
    }
    further: dict[tuple[str, Span], list[TrailStep]] = defaultdict(list)
    for key, known in faulty.items():
        for cause in {c for facts in known for c in facts["causes"]} & faulty.keys():
            further[cause].append(TrailStep(key[0], key[1].line, "and handed on here"))
    for key, known in faulty.items():
        belongs = HISTORY if any(facts["belongs"] == HISTORY for facts in known) else TOTAL
        if belongs == rule and faulty.keys().isdisjoint(c for facts in known for c in facts["causes"]):
            yield _finding(rule, promise, key, known, further[key], decision)


def _finding(
    rule: str,
    promise: Promise,
    key: tuple[str, Span],
    known: list[dict[str, Any]],
    further: list[TrailStep],
    decision: Decision,
) -> Finding:
    path, span = key
    first = known[0]
    tensor = any(f["tensor"] for f in known)
    parts: dict[tuple[str, Span], tuple[bool, bool, bool]] = {}
    for seen in known:
        for where, part, number, scalar, odd in seen["parts"]:
            before = parts.get((where, part), (False, True, False))
            parts[(where, part)] = (before[0] or number, before[1] and scalar, before[2] or odd)
    edits: list[tuple[str, Edit]] = []
    texts = []
    for (where, part), (number, scalar, odd) in sorted(parts.items()):
        style = None if odd else _style(decision.options.total_style, tensor=tensor, number=number, scalar=scalar)
        if style is None:
            promise = Promise.ADVICE
            continue
        prefix, suffix = {"float": ("float(", ")"), "item": ("", ".item()"), "detach": ("", ".detach()")}[style]
        edits.append((where, WrapExpression(part, prefix, suffix)))
        texts.append(f"`{prefix}{first['value']}{suffix}`" if len(parts) == 1 else f"`{prefix}...{suffix}`")
    message = (
        f"{first['name']} {first['verb']} {first['value']} attached: the graph of every step stays in memory, "
        "though no backward needs it again"
    )
    if first["verb"] == "holds on to":
        message = (
            f"{first['name']} holds on to {first['value']} attached: its graph stays in memory during later steps, "
            "though no backward needs it again"
        )
    if not parts:
        promise = Promise.ADVICE
        message += "; they come in a container, and it cannot be seen that nobody else needs it as it is"
        remedy = "detach them where the container is made, or store what is read of them"
    elif promise is Promise.ADVICE:
        edits = []
        message += "; it is not always a tensor, and no one form fits all that is read of it"
        remedy = ""
    else:
        remedy = f"keep {' and '.join(dict.fromkeys(texts))} instead"
    trail = tuple(dict.fromkeys([TrailStep(*step) for step in first["trail"]] + further))[:6]
    return Finding(rule, path, span, promise, message, remedy, trail, tuple(edits))


def _style(wanted: str, *, tensor: bool, number: bool, scalar: bool) -> str | None:
    """``float``, ``item`` or ``detach``; None where no form fits.

    What is read as a tensor, or is not proven to have one element, stays one whatever the user prefers: a number would
    break its readers. A value that is sometimes a number has no ``detach`` and no ``item``. ``item`` is the default
    because newer versions of PyTorch warn when ``float`` gets what has a graph.
    """
    if number:
        return "float" if scalar and not tensor else None
    if tensor or not scalar:
        return "detach"
    return "item" if wanted == "auto" else wanted
