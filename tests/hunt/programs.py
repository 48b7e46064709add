"""From a seed, or a record of choices, to a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tests.hunt.choices import Choices
from tests.hunt.grammar import (
    byproducts,
    called_before,
    carrying,
    extras,
    forgotten,
    growing,
    layouts,
    neighbours,
    parts,
    structures,
    surroundings,
    switched,
    tasks,
)
from tests.hunt.grammar.sketch import Sketch

MOST_EXTRAS = 4
SUBJECTS = (
    tasks,
    byproducts,
    called_before,
    structures,
    neighbours,
    carrying,
    switched,
    extras,
    surroundings,
    growing,
    forgotten,
)
"""The modules that register something when they are imported."""


@dataclass(frozen=True)
class Program:
    """The files by path, ``main.py`` among them, which features they have, and the choices that made them."""

    files: dict[str, str]
    features: tuple[str, ...]
    choices: tuple[int, ...]


class Make(Protocol):
    """What makes a program of a seed, or of a record of choices."""

    def __call__(self, seed: int = 0, record: Sequence[int] | None = None) -> Program:
        """The program."""


def program(seed: int = 0, record: Sequence[int] | None = None) -> Program:
    """The program of ``seed``, or that of a ``record`` of choices."""
    choices = Choices(seed, record)
    sketch = Sketch(choices, choices.one(layouts.LAYOUTS))
    name = choices.one(tuple(tasks.TASKS))
    sketch.features += [f"layout {sketch.layout}", f"task {name}"]
    parts.data(sketch)
    turn = tasks.TASKS[name](sketch)
    for kind in choices.subset(tuple(extras.EXTRAS), MOST_EXTRAS):
        sketch.features.append(f"extra {kind}")
        extras.EXTRAS[kind](sketch, turn)
    return Program(layouts.files_of(sketch), tuple(sketch.features), tuple(choices.made))
