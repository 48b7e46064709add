"""What findings say of what is not known: who trains too, who may back-propagate, what cannot be seen."""

from __future__ import annotations

from codemods.proofs.observations import Observation
from codemods.terms.edits import DropArgument, Edit

TRAINS_TOO = (
    "this call only evaluates, but the function that it calls also trains: "
    "`with torch.no_grad():` around the call would save the graphs"
)
LEFT_BEHIND = (
    "the code in sight never back-propagates the graphs recorded here, but they outlive the function: "
    "if no caller does, run it under `torch.no_grad()`"
)
OTHER_PHASES = "; another run may need it there"
MAY_BE_WALKED = "; its graphs outlive the function, and callers may back-propagate them"


def drop_volatile(forwards: list[Observation]) -> list[tuple[str, Edit]]:
    calls = dict.fromkeys(v for f in forwards for v in f.facts["dropped"])
    return [(path, DropArgument(span, "volatile")) for path, span in calls]


def doubts_of(forwards: list[Observation], *, doubted: bool = False, handed: bool = False, caught: bool = False) -> str:
    """What code that cannot be seen leaves open, as the end of a message; empty if nothing."""
    doubts = ""
    if all(f.facts["sized"] for f in forwards):
        doubts += "; only the shape of what it gives is asked for: this may be a check, or an example"
    if all(f.facts["presumed"] for f in forwards):
        doubts += "; the code of the model's method cannot be seen: it may compute gradients itself, or record none"
    elif all(f.facts["unseen"] for f in forwards):
        doubts += "; the model's class is not in the tree and may compute gradients itself"
    if doubted or any(f.facts["doubted"] for f in forwards):
        doubts += "; its results go to code that cannot be seen and may back-propagate them"
    if handed or any(f.facts["handed"] for f in forwards):
        doubts += "; the model goes to code that cannot be seen and may compute gradients"
    if caught or any(f.facts["caught"] for f in forwards):
        doubts += "; code here catches an error that only tensors with a graph raise: without one it would not come"
    return doubts
