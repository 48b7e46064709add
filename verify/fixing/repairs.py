"""What came of ``codemod fix``, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codemods.source.files import SourceFile
from verify.diagnosis.model import Diagnosis, Measures

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Repair:
    """One change that was run and kept: what it does, what it means, the verdicts on it, and its diff.

    ``measures`` were taken in the run with it; ``others`` remove the same fault and are not made. ``price``: what no
    longer learns with it; a change with a price is shown beside others and never made.
    """

    title: str
    meaning: str
    proof: tuple[str, ...]
    diff: str
    measures: Measures = field(default_factory=Measures)
    others: tuple[Repair, ...] = ()
    price: str = ""


@dataclass(frozen=True)
class Refused:
    """A change that was tried and is not proposed, and why."""

    title: str
    why: str


@dataclass(frozen=True)
class Fixed:
    """The outcome for a program: the diagnoses before and after, repairs in order, the changed files by path.

    ``besides``: what the rules find as well and no repair needs.
    """

    before: Diagnosis
    after: Diagnosis
    repairs: tuple[Repair, ...]
    refused: tuple[Refused, ...]
    files: Files
    sources: Mapping[str, SourceFile] = field(default_factory=dict)
    """What the changed files held when the first run began, by path."""
    besides: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """0: nothing is wrong, or no longer; 1: a fault is left; 3: the program could not be run."""
        return self.after.status
