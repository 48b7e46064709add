"""What trying changes for one fault came to so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from verify.diagnosis.model import Diagnosis, Fault, Kind
from verify.fixing.beside import Beside
from verify.fixing.clues import Candidate
from verify.fixing.repairs import Files, Refused, Repair

#: Changes for one fault that are shown side by side.
CHOICES = 3


@dataclass(frozen=True)
class Kept:
    """A proven change, with the resulting program and its diagnosis."""

    repair: Repair
    files: Files
    after: Diagnosis
    ways: frozenset[str] = frozenset()
    parts: int = 1
    same: bool = False


class Trial(Protocol):
    """A candidate, its ways, and the program with it."""

    @property
    def candidate(self) -> Candidate: ...
    @property
    def ways(self) -> frozenset[str]: ...
    @property
    def files(self) -> Files: ...


class Written(NamedTuple):
    """A candidate made at the doctor's lines."""

    candidate: Candidate
    files: Files
    ways: frozenset[str]


class Outcome(NamedTuple):
    """What a run of a candidate showed: the proof of a verification or why there is none, and what is wrong now."""

    proof: tuple[str, ...]
    trouble: str
    after: Diagnosis


@dataclass
class Search:
    """The changes for one fault of one program: those that were kept, that were kept at a price, that were not, and
    that uncover another fault. ``doubted`` are those that hold and after which an optimizer learns nothing of some
    parameters."""

    fault: Fault
    before: Diagnosis
    tries: Beside[Trial, Outcome]
    kept: list[Kept] = field(default_factory=list)
    priced: list[Kept] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    uncovering: list[tuple[Trial, Diagnosis]] = field(default_factory=list)
    doubted: list[Kept] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether there are as many choices as are shown."""
        return len(self.kept) + len(self.priced) >= CHOICES

    def excuse(self) -> None:
        """Keep what was doubted, where optimizers learn no more of a graph that is built again: nothing was cut off."""
        built = [one.after.measures.starved for one in self.kept if "rebuild" in one.ways]
        excused = [
            one
            for one in self.doubted
            if one not in self.kept and any(set(one.after.measures.starved) <= set(starved) for starved in built)
        ]
        self.kept[:0] = excused
        self.priced = [one for one in self.priced if all(one.files != each.files for each in excused)]

    def best(self) -> Kept:
        """The one of those that were kept with which most is well; of equals the first, as candidates come in the order
        in which people would want them. A graph that is built again and again counts less where its values stay."""

        def rank(one: Kept) -> tuple[int, int, bool, int]:
            # After a cut, a forward whose result was learned from in vain shows as one that nobody uses.
            harm = [fault for fault in one.after.faults if fault.kind is not Kind.UNUSED_FORWARDS]
            return -len(harm), one.after.measures.learning, one.same, -one.parts

        best = max(self.kept, key=rank)
        if "rebuild" not in best.ways or best.same:
            return best
        losses = best.after.measures.losses
        same = [one for one in self.kept if rank(one) == rank(best) and one.after.measures.losses == losses]
        cut = [one for one in same if "rebuild" not in one.ways]
        return cut[0] if cut and len(losses) > 1 else best

    def refuse(self, candidate: Candidate, why: str) -> None:
        """Note why ``candidate`` is not proposed; of several forms of one change, why the first is not."""
        if all(candidate.title != one.title for one in self.refused):
            self.refused.append(Refused(candidate.title, why))


def no_help(after: Diagnosis) -> str:
    return f"it does not help: {after.faults[0].headline if after.faults else after.reason}"


def apart(trial: Trial, others: Sequence[Trial]) -> list[Trial]:
    """Those of ``others`` that are tried whatever ``trial`` shows."""
    return [other for other in others if other.files != trial.files and not other.ways & trial.ways]
