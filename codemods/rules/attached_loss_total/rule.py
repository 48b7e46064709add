"""The rule ``attached-loss-total``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from codemods.graph.model.trace import Trace
from codemods.proofs.observations import Decision, Observation, sites
from codemods.rules.attached_loss_total.needs import HISTORY, TOTAL, Result
from codemods.rules.attached_loss_total.places import Places
from codemods.rules.base import Rule
from codemods.terms.edits import Edit, ReplaceExpression, WrapExpression
from codemods.terms.findings import Finding, Promise, TrailStep
from codemods.terms.spans import Span

_RESULTS: WeakKeyDictionary[Trace, list[Result]] = WeakKeyDictionary()
"""What was read of a run: two rules ask for it."""


class AttachedLossTotal(Rule):
    """A total for people that keeps the graphs of all the losses it was summed from.

    Why it hurts: ``total_loss += loss`` makes the total a part of the graph. As long as it lives it holds the graphs of
    every step that went into it, and memory grows with each batch until the epoch ends or the memory does. Of a graph
    that a ``backward`` has been through that is its nodes; of one that no backward used, the activations too. Nobody
    back-propagates the total, so nobody needs any of it. The same holds for the parts of a loss that are summed beside
    it (``kl``, ``bce``), for running means of it, and for a lowest loss that is kept from one step to the next.

    The rewrite: ``total_loss += loss.item()`` takes the number; factors stay outside (``running += loss.item() * n``).
    Where the total is used as a tensor (``.item()``, ``torch.stack``), compared, handed to a scheduler or to code that
    cannot be seen, divided by a count that may be 0, or where its number goes anywhere but to people (a seed, a weight
    of the next loss) or the loss has several elements, it stays a tensor without its graph: ``total_loss +=
    loss.detach()``. Where the value is sometimes a plain number, which has no ``item``, only ``float()`` fits.

    ``item`` neither warns nor costs more than the other forms. Run with torch 2.13 on a CPU, for a loss with a graph:
    ``loss.item()`` takes 0.34 microseconds, ``float(loss)`` 0.42, ``loss.detach()`` 0.82 and ``float(loss.detach())``
    1.40; only ``float(loss)`` warns, once a process ("Converting a tensor with requires_grad=True to a scalar"), which
    is an error under ``-W error``. It does so in 2.8.0, 2.9.1, 2.10.0, 2.11.0, 2.12.0, 2.13.0 and 2.14.1, and does not
    in 2.0.1 to 2.7.1 (one release of each minor version, on a CPU); ``item`` warns in none of them and costs about the
    same as ``float`` (``tests/benchmarks/total_forms.py``). On a GPU both wait for the device.

    Left alone: totals that are back-propagated, here or in a caller (several tasks, accumulated gradients, sequences);
    sums that are rebuilt in every step; values that are numbers or detached already; code under ``no_grad``; and sums
    in evaluation code, where ``grad-in-evaluation`` mends the cause.

    Promise: exact. The parameters are updated bit for bit as before; the last printed digits of totals may change,
    because a Python float adds in double precision.

    Options: ``--total-style auto|float|item|detach`` prefers one form wherever it is sound; ``auto`` takes ``.item()``
    where it can.

    Source: https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
    https://github.com/pytorch/pytorch/pull/143261
    """

    name = TOTAL
    promise = Promise.EXACT
    since = "0.4"
    summary = "a total that is only reported keeps the graph of every step"
    gate = (b".backward(", b"manual_backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        results = _RESULTS.get(trace)
        if results is None:
            results = _RESULTS[trace] = list(Places(trace).read())
        for path, span, shows, seen in results:
            yield Observation(self.name, path, span, shows, facts=seen)

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        faulty = {
            (site.path, site.span): [o.facts for o in site.observations] for site in sites(observations) if site.faulty
        }
        further: dict[tuple[str, Span], list[TrailStep]] = defaultdict(list)
        for key, known in faulty.items():
            for cause in {c for facts in known for c in facts["causes"]} & faulty.keys():
                further[cause].append(TrailStep(key[0], key[1].line, "and handed on here"))
        for key, known in faulty.items():
            belongs = HISTORY if any(facts["belongs"] == HISTORY for facts in known) else TOTAL
            if belongs == self.name and faulty.keys().isdisjoint(c for facts in known for c in facts["causes"]):
                yield self._finding(key, known, further[key], decision.options.total_style)

    def _finding(
        self, key: tuple[str, Span], known: list[dict[str, Any]], further: list[TrailStep], wanted: str
    ) -> Finding:
        promise = self.promise
        path, span = key
        first = known[0]
        tensor = any(f["tensor"] for f in known)
        parts: dict[tuple[str, Span], tuple[bool, bool]] = {}
        for seen in known:
            for where, part, number, scalar in seen["parts"]:
                before = parts.get((where, part), (False, True))
                parts[(where, part)] = (before[0] or number, before[1] and scalar)
        edits: list[tuple[str, Edit]] = []
        texts = []
        for (where, part), (number, scalar) in sorted(parts.items()):
            style = _style(wanted, tensor=tensor, number=number, scalar=scalar)
            if style is None:
                promise = Promise.ADVICE
                continue
            prefix, suffix = {"float": ("float(", ")"), "item": ("", ".item()"), "detach": ("", ".detach()")}[style]
            edits.append((where, WrapExpression(part, prefix, suffix)))
            texts.append(f"`{prefix}{first['value']}{suffix}`" if len(parts) == 1 else f"`{prefix}...{suffix}`")
        graph = "every step's graph stays in memory"
        if first["verb"] == "holds on to":
            graph = "it stays in memory during later steps"
        keeps = f"{first['name']} {first['verb']} {first['value']} with its graph"
        message = f"{keeps}: {graph}, though no backward needs it again"
        copies = _copies(known)
        edits += copies
        texts += ["a copy whose values are detached"] * len(copies)
        if not parts and not copies:
            promise = Promise.ADVICE
            message += "; they come in a container that other code may need unchanged"
            remedy = "detach them where the container is made, or store what is read of them"
        elif promise is Promise.ADVICE:
            edits = []
            message += "; it is not always a tensor, and no single form fits every use"
            remedy = ""
        else:
            remedy = f"keep {' and '.join(dict.fromkeys(texts))} instead"
        trail = tuple(dict.fromkeys([TrailStep(*step) for step in first["trail"]] + further))[:6]
        return Finding(self.name, path, span, promise, message, remedy, trail, tuple(edits))


def _copies(known: list[dict[str, Any]]) -> list[tuple[str, Edit]]:
    """How copies of containers come to hold no graphs, if that can be told of all runs."""
    if not all(facts["copies"] or facts["parts"] for facts in known):
        return []
    found = [copy for facts in known for copy in facts["copies"]]
    edits: dict[tuple[str, Span], Edit] = {}
    for path, span, pairs, source, _ in dict.fromkeys(copy._replace(mixed=False) for copy in found):
        mixed = any(copy.mixed for copy in found if copy.span == span)
        value = "value.detach()" + (" if {torch}.is_tensor(value) else value" if mixed else "")
        before, after = (
            (f"{{name: {value} for name, value in ", ".items()}") if pairs else (f"[{value} for value in ", "]")
        )
        if (path, span) in edits:
            return []
        whole = ReplaceExpression(span, before + source + after)
        edits[path, span] = whole if source else WrapExpression(span, before, after)
    return [(path, edit) for (path, _), edit in edits.items()]


def _style(wanted: str, *, tensor: bool, number: bool, scalar: bool) -> str | None:
    """``float``, ``item`` or ``detach``; None where no form fits.

    What is read as a tensor, or is not proven to have one element, stays one whatever the user prefers: a number would
    break its readers. What is sometimes a number has no ``detach`` and no ``item``. ``item`` is the default because
    newer versions of PyTorch warn when ``float`` gets what has a graph.
    """
    if number:
        return "float" if scalar and not tensor else None
    if tensor or not scalar:
        return "detach"
    return "item" if wanted == "auto" else wanted


RULE = AttachedLossTotal
