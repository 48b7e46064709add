"""Which parameters learn in a run: those that receive a gradient before their optimizer steps.

Optimizers are identified by their class and the number of their values: a script may create a new one every epoch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from codemods.terms.counting import listed
from verify.measured.records import Record
from verify.measured.results import Run

#: After so many steps without a gradient a parameter is said to have stopped learning.
FEWEST = 3
_SHOWN = 3

Kind = tuple[str, int]


class Parameter(NamedTuple):
    """A tensor of an optimizer: the kind of optimizer, and its index in it."""

    kind: Kind
    place: int


@dataclass
class Learning:
    """What learns in a process.

    ``gradients`` has for each parameter the numbers of the steps, of all optimizers together, in which it got one,
    ``steps`` those of each kind of optimizer; ``names`` are the names of the parameters of each kind.
    """

    gradients: dict[Parameter, list[int]] = field(default_factory=lambda: defaultdict(list))
    steps: dict[Kind, list[int]] = field(default_factory=lambda: defaultdict(list))
    names: dict[Kind, list[str]] = field(default_factory=dict)

    def name(self, parameter: Parameter) -> str:
        """The name of ``parameter``; empty where it is unknown."""
        names = self.names.get(parameter.kind, [])
        return names[parameter.place] if parameter.place < len(names) else ""


class Loss(NamedTuple):
    """What no longer learns. ``never``: at all; ``later``: after the end of the original, or from some step on, and
    ``nothing``: that is all that there is to learn."""

    never: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    nothing: bool = False

    @property
    def text(self) -> str:
        """What no longer learns, as a clause; empty where nothing is lost."""
        if self.never:
            return f"{listed(self.never, _SHOWN)} no longer learn{'s' * (len(self.never) == 1)}"
        if self.nothing:
            return "after that nothing is learned any more"
        if self.later:
            return f"after that {listed(self.later, _SHOWN)} no longer learn{'s' * (len(self.later) == 1)}"
        return ""


def learning(record: Record) -> Learning:
    """Return what learns in the process of ``record``."""
    found = Learning()
    for number, step in enumerate(record.steps):
        kind = step.name, step.count
        found.steps[kind].append(number)
        rows = step.grads.rows() if step.grads is not None else []
        names = step.tensors.names if step.tensors is not None else ()
        found.names.setdefault(kind, [names[place] if place < len(names) else "" for place in range(len(rows))])
        for place, row in enumerate(rows):
            if any(row):
                found.gradients[Parameter(kind, place)].append(number)
    return found


def lost(before: Run, after: Run, *, died: bool) -> Loss:
    """Return what learns in ``before`` and not in ``after``; ``died``: ``before`` ended badly, and may have had
    gradients that no step has used yet."""
    never: dict[str, None] = {}
    later: dict[str, None] = {}
    nothing = False
    for record, partner in before.beside(after):
        if partner is None or not partner.steps:
            continue
        mine, other = learning(record), learning(partner)
        waiting = dict.fromkeys(_waiting(record, other)) if died else {}
        for parameter in {**mine.gradients, **waiting}:
            name = mine.name(parameter) or other.name(parameter) or f"a parameter of {parameter.kind[0]}"
            had, has = mine.gradients.get(parameter, []), other.gradients.get(parameter, [])
            if not has and parameter.kind in other.steps:
                never[name] = None
            elif has and _stops(had, has, other.steps[parameter.kind], len(record.steps) if died else None):
                later[name] = None
        beyond = range(len(record.steps) + 1, len(partner.steps))
        if died and mine.gradients and len(beyond) >= FEWEST:
            nothing = nothing or not any(number in beyond for steps in other.gradients.values() for number in steps)
    return Loss(tuple(never), tuple(later), nothing)


def idle_optimizers(before: Record, after: Record, *, resized: bool = False) -> tuple[str, ...]:
    """Return the optimizers that step in ``before``, but not in equally many steps of ``after``.

    The last quarter does not count: an optimizer that first steps there may step a little later. With ``resized`` an
    optimizer may have got more parameters, or fewer.
    """
    mine = {(step.name, step.count) for step in before.steps[: len(after.steps) * 3 // 4]}
    theirs = {(step.name, step.count) for step in after.steps}
    if resized:
        lost = Counter(name for name, _ in mine) - Counter(name for name, _ in theirs)
        return tuple(sorted(lost))
    return tuple(name for name, _ in sorted(mine - theirs))


def _waiting(record: Record, other: Learning) -> Iterator[Parameter]:
    """The parameters with gradients that no step has used, of optimizers that have not stepped yet."""
    told = [entry for backward in record.backwards for entry in backward.waiting]
    told += [entry for step in record.steps for entry in step.waiting]
    told += () if record.state is None else record.state.waiting
    for entry in told:
        rows = entry.values.rows()
        # How many values it has was not asked; there is no doubt where one of this class has as many tensors.
        kinds = [kind for kind in other.steps if kind[0] == entry.name]
        if len(kinds) == 1 and len(other.names[kinds[0]]) == len(rows):
            yield from (Parameter(kinds[0], place) for place, row in enumerate(rows) if any(row))


def _stops(had: list[int], has: list[int], steps: list[int], end: int | None) -> bool:
    """Whether a parameter that got gradients in the steps ``had`` gets none after those in ``has``."""
    if end is not None:
        beyond = [number for number in steps if number > end]
        return len(beyond) >= FEWEST and has[-1] < beyond[0]
    return sum(number > has[-1] for number in had if number <= steps[-1]) >= FEWEST
