"""A loss that the next turn computes with."""

from __future__ import annotations

from tests.hunt.grammar import parts, routes
from tests.hunt.grammar.sketch import Sketch
from tests.hunt.grammar.tasks import Turn, task, trained

_TERMS = (
    ("0.0", "total = loss - 0.1 * {p}"),
    ("torch.zeros(())", "total = loss + ({p} - loss).abs()"),
    ("None", "total = loss if {p} is None else loss + 0.5 * (loss - {p}).pow(2)"),
    ("None", "total = loss\nif {p} is not None:\n    total = total + torch.relu(loss - {p})"),
    ("1.0", "total = loss / {p}"),
    ("None", "total = loss * (1 if {p} is None else {p}.detach())"),
)
"""What the old loss is at first, and what it does to the new one."""


@task("carried loss")
def carried_loss(s: Sketch) -> Turn:
    """The loss of the turn before is a term of this one's, as it is, cut, or as the sum that was walked."""
    trained(s)
    s.add("forward", f"out = {s.forward('x')}")
    s.add("forward", f"loss = {routes.reduced(s, 'out')}")
    first, term = s.choices.one(_TERMS)
    place = s.share("last", first, held=True)
    s.add("forward", term.format(p=place))
    parts.update(s, "total", [s.optimizer], [s.model])
    kept = s.choices.one(("loss", "loss", "loss", "total", "loss.detach()", "(loss)"))
    s.add("turn_end", f"{place} = {kept}")
    return Turn("loss", "out")
