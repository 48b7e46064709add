"""The rule ``attached-loss-total``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codemods.graph.model.trace import Trace
from codemods.proofs import kept
from codemods.proofs.observations import Decision, Observation
from codemods.rules.base import Rule
from codemods.terms.findings import Finding, Promise


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

    name = kept.TOTAL
    promise = Promise.EXACT
    since = "0.4"
    summary = "a total that is only reported keeps the graph of every step"
    gate = (b".backward(", b"manual_backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        return kept.observe(self.name, trace)

    def decide(self, observations: list[Observation], decision: Decision) -> Iterator[Finding]:
        return kept.decide(self.name, self.promise, observations, decision)


RULE = AttachedLossTotal
