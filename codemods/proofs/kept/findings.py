"""From what all runs show of a place to a finding: its edits, its promise and its message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from codemods.proofs.kept.model import HISTORY, TOTAL
from codemods.proofs.observations import Decision, Observation, Shows
from codemods.terms.edits import Edit, WrapExpression
from codemods.terms.findings import Finding, Promise, TrailStep
from codemods.terms.spans import Span


@dataclass(eq=False)
class _Observed:
    """All that was observed at one statement."""

    faults: list[dict[str, Any]] = field(default_factory=list)
    needed: bool = False


def decide(rule: str, promise: Promise, observations: Iterable[Observation], decision: Decision) -> Iterator[Finding]:
    """The findings of one of the two rules, and what they promise where an edit fits."""
    places: dict[tuple[str, Span], _Observed] = defaultdict(_Observed)
    for observation in observations:
        place = places[(observation.path, observation.span)]
        if observation.shows is Shows.FAULT:
            place.faults.append(observation.facts)
        else:
            place.needed = True
    faulty = {key for key, place in places.items() if place.faults and not place.needed}
    further: dict[tuple[str, Span], list[TrailStep]] = defaultdict(list)
    reported: list[tuple[str, Span]] = []
    for key in sorted(faulty):
        causes = {c for f in places[key].faults for c in f["causes"]} & faulty
        if causes:
            for cause in causes:
                further[cause].append(TrailStep(key[0], key[1].line, "and handed on here"))
        else:
            reported.append(key)
    for key in reported:
        known = places[key].faults
        belongs = HISTORY if any(f["belongs"] == HISTORY for f in known) else TOTAL
        if belongs == rule:
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
