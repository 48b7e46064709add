"""Which rewrites are tried together: promises told apart by stages, and the one that breaks found by bisecting.

Rewrites that change what happens come first (``repair``, then ``behaviour``), then those that must change nothing
(``exact``, ``equivalent``) on top of them: so an exact rewrite is compared, bit for bit, with a program that runs, even
where the original raises in its second step. Each stage is one run, compared with the stage before. A stage that fails
its check is halved until the rewrites that break it are found; the rest goes on without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from codemods.findings import Promise
from codemods.outcome import Mended
from verify.judge import Check, check
from verify.results import Rewrite, Run, Verdict

ORDER = (Promise.REPAIR, Promise.BEHAVIOUR, Promise.EXACT, Promise.EQUIVALENT)
#: Runs spent on finding out which of several rewrites breaks; what is undecided then counts as broken with them.
MOST_RUNS = 24

Groups = tuple[Mended, ...]
#: Runs the tree with some of the rewrites, and says which of these ran.
Execute = Callable[[Groups], "Tried"]


@dataclass(frozen=True)
class Tried:
    """A run of the tree with some rewrites.

    ``reached`` are those whose lines ran, ``made`` those that were made, ``touched`` the lines of all, by path below
    the root.
    """

    run: Run
    reached: frozenset[frozenset[tuple[str, str, int]]]
    made: frozenset[frozenset[tuple[str, str, int]]]
    touched: frozenset[tuple[str, int]] = frozenset()


@dataclass
class Outcome:
    """What came of all stages: a verdict a rewrite, the runs on the way, and the last run, with all that was kept."""

    rewrites: list[Rewrite] = field(default_factory=list)
    runs: list[tuple[str, Run]] = field(default_factory=list)
    final: Run | None = None


def promise_of(group: Mended) -> Promise:
    """The promise of a group: the weakest of its findings'."""
    return max((finding.promise for finding in group.findings), key=lambda promise: promise.rank)


class Stages:
    """The search. ``before`` is a run of the original, ``watched`` the groups whose original lines ran in it."""

    def __init__(
        self,
        execute: Execute,
        before: Run,
        watched: frozenset[frozenset[tuple[str, str, int]]],
        *,
        deterministic: bool | None,
        tolerance: float,
        place: Callable[[str, int], str] = "{}:{}".format,
    ) -> None:
        self._execute = execute
        self._before = before
        self._watched = watched
        self._deterministic = deterministic
        self._tolerance = tolerance
        self._place = place
        self._memory: dict[frozenset[Mended], Tried] = {}
        self._outcome = Outcome()
        self._left = MOST_RUNS

    def solve(self, groups: Sequence[Mended]) -> Outcome:
        """Judge ``groups``."""
        if not groups:
            return self._outcome
        base: Groups = ()
        before = self._before
        for promise in ORDER:
            mine = tuple(group for group in groups if promise_of(group) is promise)
            if not mine:
                continue
            kept = self._stage(promise, mine, base, before)
            if kept:
                base = (*base, *kept)
                before = self._tried(base).run
        self._outcome.final = before if base else None
        self._outcome.rewrites.sort(key=lambda rewrite: (rewrite.finding.path, rewrite.finding.span))
        return self._outcome

    def _stage(self, promise: Promise, groups: Groups, base: Groups, before: Run) -> Groups:
        tried = self._tried((*base, *groups))
        idle = tuple(group for group in groups if not self._ran(group, tried, promise))
        result = self._check(promise, before, tried)
        if result.held is not False:
            for group in groups:
                self._tell(group, idle, tried, result)
            return groups
        broken = self._search(promise, groups, base, before)
        rest = tuple(group for group in groups if group not in broken)
        if rest:
            # The rest has held already, at the latest as what was left of the search.
            remaining = self._tried((*base, *rest))
            verdict = self._check(promise, before, remaining)
            others = "other rewrite holds" if len(rest) == 1 else f"{len(rest)} other rewrites hold"
            without = f"without it the {others}: {verdict.why}" if verdict.held else ""
            idle = tuple(group for group in rest if not self._ran(group, remaining, promise))
            for group in rest:
                self._tell(group, idle, remaining, verdict)
        else:
            without = ""
        for group, reason in broken.items():
            self._outcome.rewrites.append(Rewrite(group.findings, Verdict.BROKEN, reason, without))
        return rest

    def _tell(self, group: Mended, idle: Groups, tried: Tried, result: Check) -> None:
        if group.key not in tried.made:
            verdict, why = Verdict.NOT_JUDGED, "the rewrite could not be made together with the others"
        elif group in idle:
            verdict, why = Verdict.NOT_REACHED, self._idle(group, tried)
        elif result.held is None:
            verdict, why = Verdict.NOT_JUDGED, result.why
        else:
            verdict, why = (Verdict.KEPT if result.held else Verdict.BROKEN), result.why
        self._outcome.rewrites.append(Rewrite(group.findings, verdict, why))

    def _idle(self, group: Mended, tried: Tried) -> str:
        lines = sorted(group.touched.before())
        place = self._place(*lines[0]) if lines else "its lines"
        if group.key in tried.reached:
            return f"the original stopped before {place} ran, so there is nothing to compare with"
        return f"{place} never ran within these steps; more --steps or other arguments may reach it"

    def _ran(self, group: Mended, tried: Tried, promise: Promise) -> bool:
        if group.key not in tried.reached:
            return False
        if promise in (Promise.EXACT, Promise.EQUIVALENT) and not self._outcome.rewrites:
            # Compared with the original itself, which may have ended before it came to these lines.
            return group.key in self._watched or self._before.error is not None
        return True

    def _search(self, promise: Promise, groups: Groups, base: Groups, before: Run) -> dict[Mended, str]:
        """Return those of ``groups`` that break the check on top of ``base``, with the reason for each."""
        broken: dict[Mended, str] = {}

        def solve(candidates: Groups, context: Groups) -> Groups:
            """Return the candidates that hold on top of ``context``."""
            if not candidates:
                return ()
            if self._left <= 0:
                broken.update(dict.fromkeys(candidates, "not told apart from those that break: too many runs"))
                return ()
            result = self._check(promise, before, self._tried((*context, *candidates)))
            if result.held is not False:
                return candidates
            if len(candidates) == 1:
                broken[candidates[0]] = result.why
                return ()
            middle = len(candidates) // 2
            good = solve(candidates[:middle], context)
            return (*good, *solve(candidates[middle:], (*context, *good)))

        solve(groups, base)
        return broken

    def _check(self, promise: Promise, before: Run, after: Tried) -> Check:
        return check(
            promise,
            before,
            after.run,
            deterministic=self._deterministic,
            tolerance=self._tolerance,
            touched=after.touched,
        )

    def _tried(self, groups: Groups) -> Tried:
        key = frozenset(groups)
        if key not in self._memory:
            self._left -= 1
            self._memory[key] = self._execute(groups)
            self._outcome.runs.append((_name(groups), self._memory[key].run))
        return self._memory[key]


def _name(groups: Groups) -> str:
    rules = sorted({finding.rule for group in groups for finding in group.findings})
    return f"{len(groups)} rewrite{'s' * (len(groups) != 1)}: {', '.join(rules)}"
