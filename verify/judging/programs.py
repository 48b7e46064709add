"""The programs that are tried, each with some of the rewrites: run once, remembered, and held side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from codemods.rewriting.parts import Part
from codemods.rewriting.result import Mended
from codemods.terms.findings import Promise
from verify.judging.faults import died
from verify.judging.judge import Check, check
from verify.measured.results import Run
from verify.running.against import RULE

#: Runs spent on finding out which of several rewrites breaks; what is undecided then counts as broken with them.
MOST_RUNS = 24
#: Runs spent on finding out what gets past the end of the original, and which repair mends something; what is undecided
#: then is not judged.
MOST_OWN_RUNS = 24

Groups = tuple[Mended, ...]
Key = frozenset[tuple[str, str, int]]
Line = tuple[str, int]
#: Runs the tree with some of the rewrites, and says which ran, and which of the lines of the original that are named.
Execute = Callable[[Groups, frozenset[Line]], "Tried"]


@dataclass(frozen=True)
class Tried:
    """A run of the tree with some rewrites.

    ``reached`` are the rewrites whose lines ran: of those ``made`` the rewritten ones, of others those of the original.
    ``touched`` are the lines of those made, by path below the root. ``died_at`` are lines of the original that the
    place of its error stands for, ``near`` the rewrites that concern them; ``ran`` the lines of the original that were
    asked for and ran. ``statements`` are those that a rewrite changes (of one that was not made: takes away), each by
    its first line, with the number of steps that were complete when it ran first, None where it did not run; ``parts``
    are what of them may not run although their lines do, the same way.
    """

    run: Run
    reached: frozenset[Key]
    made: frozenset[Key] = frozenset()
    touched: Mapping[Key, frozenset[Line]] = field(default_factory=dict)
    died_at: frozenset[Line] = frozenset()
    near: frozenset[Key] = frozenset()
    ran: frozenset[Line] = frozenset()
    statements: Mapping[Key, Mapping[Line, int | None]] = field(default_factory=dict)
    parts: Mapping[Key, Mapping[Part, int | None]] = field(default_factory=dict)


def promise_of(group: Mended) -> Promise:
    """The promise of a group: the weakest among its findings."""
    return max((finding.promise for finding in group.findings), key=lambda promise: promise.rank)


#: A run with more rewrites than these is named by how many, and by their rules.
_NAMED = 3


class Programs:
    """Runs programs, each once; ``original`` is one without any rewrite, ``runs`` are all that were made, by name.

    ``place`` names a line for people.
    """

    def __init__(
        self,
        execute: Execute,
        original: Tried,
        *,
        deterministic: bool | None,
        tolerance: float,
        place: Callable[[str, int], str] = "{}:{}".format,
    ) -> None:
        self.place = place
        self._execute = execute
        self.deterministic = deterministic
        self.tolerance = tolerance
        self.runs: list[tuple[str, Run]] = []
        self._memory: dict[frozenset[Mended], tuple[Tried, frozenset[Line]]] = {frozenset(): (original, frozenset())}
        self._left = {"search": MOST_RUNS, "own": MOST_OWN_RUNS}
        self._purpose = "search"

    def check(
        self, promise: Promise, before: Groups, after: Groups, groups: Groups, *, alone: bool | None = None
    ) -> Check:
        """Check ``groups`` against ``promise``: compare the program with ``after`` to the one with ``before``."""
        made = self.tried(after)
        return check(
            promise,
            self.tried(before).run,
            made.run,
            deterministic=self.deterministic,
            tolerance=self.tolerance,
            touched=frozenset(line for group in groups for line in made.touched.get(group.key, ())),
            alone=len(groups) == 1 if alone is None else alone,
            # Each of several is asked for itself.
            by_hand=len(groups) == 1 and all(finding.rule == RULE for finding in groups[0].findings),
        )

    def tried(self, groups: Groups, asked: frozenset[Line] = frozenset()) -> Tried:
        """The run with ``groups``. A run that died must have recorded whether the lines ``asked`` ran."""
        key = frozenset(groups)
        known = self._memory.get(key)
        if known is None or (key and died(known[0].run) and not asked <= known[1]):
            asked = asked.union(*(asked_for for _, asked_for in self._memory.values())) if asked else asked
            self._left[self._purpose] -= 1
            known = self._memory[key] = self._execute(groups, asked), asked
            self.runs.append((self._name(groups), known[0].run))
        return known[0]

    def _name(self, groups: Groups) -> str:
        if len(groups) > _NAMED:
            rules = sorted({finding.rule for group in groups for finding in group.findings})
            return f"{len(groups)} rewrites: {', '.join(rules)}"
        firsts = [group.findings[0] for group in groups]
        return ", ".join(f"{each.rule} at {self.place(each.path, each.span.line)}" for each in firsts)

    def room(self) -> bool:
        """Whether there is time for another run."""
        return self._left[self._purpose] > 0

    @contextmanager
    def own(self) -> Iterator[None]:
        """Do not count runs made in here as runs of the search."""
        purpose, self._purpose = self._purpose, "own"
        try:
            yield
        finally:
            self._purpose = purpose


def without(groups: Groups, others: Groups) -> Groups:
    """``groups`` minus ``others``."""
    return tuple(group for group in groups if group not in others)


def steps_of(run: Run) -> int:
    """The steps of the process that made the most."""
    return max((len(record.steps) for record in run.records), default=0)
