"""The rule ``attached-loss-history``."""

from __future__ import annotations

from codemods.rules.attached_loss_total.needs import HISTORY
from codemods.rules.attached_loss_total.rule import AttachedLossTotal


class AttachedLossHistory(AttachedLossTotal):
    """A list, a dict or a meter of losses that keeps the graph of each of them.

    Why it hurts: ``losses.append(loss)`` stores the loss together with the graph that computed it. For as long as the
    list lives, one graph more stays in memory with every step, although the list is only printed, averaged or plotted
    in the end. Of a graph that a ``backward`` has been through that is its nodes; of one that no backward used, as in a
    validation loop, the activations too. A meter (``meter.update(loss, n)``) that adds up what it gets does the same;
    there the call that hands it an attached value is what changes, because other calls of the same meter hand it
    numbers.

    The rewrite: ``losses.append(loss.item())`` stores the number. Where an element is used as a tensor later
    (``.item()``, ``torch.stack``), compared, handed to code that cannot be seen, or where the stored loss is changed in
    place afterwards (``loss /= 4``), the tensor is stored without its graph: ``losses.append(loss.detach())``. Where
    the value is sometimes a plain number, only ``float()`` fits. A list or dict that is made element by element for it,
    ``losses.append([term for term in terms])``, is made of such values. A copy of one, ``losses.append(dict(parts))``,
    becomes a copy whose values are detached.

    Left alone: lists whose elements are back-propagated, here or in a caller (``sum(losses).backward()``, a returned
    ``{"loss": loss}``); lists that are made again or emptied in every step; values that are numbers or detached
    already; meters that detach by themselves; code under ``no_grad``; and a total that is stored, where
    ``attached-loss-total`` mends the cause.

    Promise: exact. The parameters are updated bit for bit as before; the last printed digits of means may change.

    Options: ``--total-style auto|float|item|detach`` prefers one form wherever it is sound; ``auto`` takes ``.item()``
    where it can (what was measured of them stands with ``attached-loss-total``).

    Source: https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory
    """

    name = HISTORY
    summary = "a list or meter of losses keeps the graph of every step"


RULE = AttachedLossHistory
