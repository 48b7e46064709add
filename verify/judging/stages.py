"""Which rewrites are tried together: promises told apart by stages, and the one that breaks found by bisecting.

Where the original dies, what gets past that goes first: as few rewrites as do it, and nothing with them, so that all
others are compared with a program that goes on. Then come those that change what happens (``repair``, ``behaviour``),
then those that must change nothing (``exact``, ``equivalent``). Each stage is one run, compared with the stage before.
A stage that fails its check is halved until the rewrites that break it are found; the rest goes on without them. A
repair that fails is tried on top of all others before it counts as broken, because what is still wrong may be theirs to
mend; and of several repairs each is left out alone, to see whether it is the one that mends anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from codemods.rewriting.parts import Part
from codemods.rewriting.result import Mended
from codemods.terms.findings import Promise
from verify.comparing.compare import compare
from verify.judging.faults import died
from verify.judging.judge import Check, check, fault_text, gets_past, progress
from verify.measured.results import Difference, Rewrite, Run, Verdict
from verify.running.against import RULE

ORDER = (Promise.REPAIR, Promise.BEHAVIOUR, Promise.EXACT, Promise.EQUIVALENT)
#: Runs spent on finding out which of several rewrites breaks; what is undecided then counts as broken with them.
MOST_RUNS = 24
#: Runs spent on finding out what gets past the end of the original, and which repair mends something; what is undecided
#: then is not judged.
MOST_OWN_RUNS = 24

Groups = tuple[Mended, ...]
Key = frozenset[tuple[str, str, int]]
Line = tuple[str, int]
Place = TypeVar("Place")
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


class _Link(NamedTuple):
    """The rewrites ``groups`` get past the bad end of the program with ``base``."""

    base: Groups
    groups: Groups


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
    """The search. ``original`` is a run without any rewrite; ``constants`` says which constants a change
    alters if it alters nothing else."""

    def __init__(
        self,
        execute: Execute,
        original: Tried,
        *,
        deterministic: bool | None,
        tolerance: float,
        place: Callable[[str, int], str] = "{}:{}".format,
        constants: Mapping[Key, str] | None = None,
    ) -> None:
        self._constants = constants or {}
        self._execute = execute
        self._deterministic = deterministic
        self._tolerance = tolerance
        self._place = place
        self._memory: dict[frozenset[Mended], tuple[Tried, frozenset[Line]]] = {frozenset(): (original, frozenset())}
        self._outcome = Outcome()
        self._left = {"search": MOST_RUNS, "own": MOST_OWN_RUNS}
        self._purpose = "search"
        #: What was kept so far, what nothing was said of so far, and what got past a bad end.
        self._base: Groups = ()
        self._pending: Groups = ()
        self._links: list[_Link] = []

    def solve(self, groups: Sequence[Mended]) -> Outcome:
        """Judge ``groups``."""
        self._pending = tuple(groups)
        self._go_past()
        for promise in ORDER:
            while mine := tuple(group for group in self._pending if promise_of(group) is promise):
                self._stage(promise, mine)
        self._outcome.final = self._tried(self._base).run if self._base else None
        self._outcome.rewrites.sort(key=lambda rewrite: (rewrite.finding.path, rewrite.finding.span))
        return self._outcome

    # What gets past the bad end of a program.

    def _go_past(self) -> None:
        """Put what gets past the bad end of the program so far, and past those that follow, into the base."""
        base, pending = self._base, self._pending
        links: list[_Link] = []
        while pending and died(self._tried(base).run):
            with self._own():
                found, pool = self._unblocking(base, pending)
                useless = self._useless(base, found, pool)
            if useless:
                self._tell_broken(useless, (), None)
                self._go_past()
                return
            if not found:
                break
            links.append(_Link(base, found))
            base, pending = (*base, *found), _without(pending, found)
        checks: dict[Mended, Check] = {}
        for link in links:
            for group in link.groups:
                result = self._check_link(link, promise_of(group), base, pending)
                if result.held is False:
                    for each in link.groups:
                        self._settle(each, Verdict.BROKEN, result.why)
                    # Without these the program may end elsewhere, or others get past.
                    self._go_past()
                    return
                checks[group] = result
        for link in links:
            for group in link.groups:
                # What is written has to have run where the program without it came to.
                self._tell(group, None, self._tried(base), checks[group], _steps(self._tried(link.base).run))
        self._base = base
        self._links.extend(links)

    def _check_link(self, link: _Link, promise: Promise, base: Groups, others: Groups) -> Check:
        result = self._check(promise, link.base, base, link.groups, alone=True)
        if result.held:
            return result
        return self._on_top(promise, link.base, base, link.groups, others, result, alone=True)[0]

    def _unblocking(self, base: Groups, pending: Groups) -> tuple[Groups, Groups]:
        """Return as few of ``pending`` as get past the bad end of the program with ``base``, and of which they were
        chosen; none if they do not."""
        dead = self._tried(base)
        near = tuple(group for group in pending if group.key in dead.near)
        repairs = tuple(group for group in pending if promise_of(group) is Promise.REPAIR)
        for pool in dict.fromkeys([*((group,) for group in near), near, repairs, pending]):
            if pool and self._room() and self._beyond(dead, (*base, *pool)):
                return self._fewest(dead, base, pool), pool
        return (), ()

    def _useless(self, base: Groups, found: Groups, pool: Groups) -> dict[Mended, str]:
        """Return the one of ``found`` that changes what is computed, although others of ``pool`` get past without it.

        It may hide what they mend.
        """
        dead, every = self._tried(base), (*base, *pool)
        for group in found if len(pool) > len(found) else ():
            without = _without(every, (group,))
            if not self._room() or not gets_past(dead.run, self._tried(without, dead.died_at).run):
                continue
            comparison = compare(self._tried(without).run, self._tried(every).run, tolerance=self._tolerance)
            if self._deterministic and comparison.difference is Difference.DIFFERENT:
                told = f"without it the others get past the same ({fault_text(dead.run)})"
                return {group: f"{told}, and with it something else is computed: {comparison.first}"}
        return {}

    def _fewest(self, dead: Tried, base: Groups, pool: Groups) -> Groups:
        """Return as few of ``pool``, which gets past, as still do."""
        found: Groups = ()
        rest = pool
        while rest and not (found and self._beyond(dead, (*base, *found))):
            low, high = 1, len(rest)
            while low < high:
                if not self._room():
                    return ()
                middle = (low + high) // 2
                if self._beyond(dead, (*base, *found, *rest[:middle])):
                    high = middle
                else:
                    low = middle + 1
            found, rest = (*found, rest[low - 1]), rest[: low - 1]
        return found

    def _beyond(self, dead: Tried, groups: Groups) -> bool:
        """Whether the program with ``groups`` comes further than ``dead``."""
        after = self._tried(groups, dead.died_at)
        if gets_past(dead.run, after.run):
            return True
        here, there = progress(dead.run), progress(after.run)
        if here != there:
            return there > here
        # Which of two places comes first nothing tells, but that one was passed on the way to the other.
        elsewhere = bool(after.died_at) and not dead.died_at & after.died_at
        return elsewhere and bool(dead.died_at & after.ran)

    # One stage.

    def _stage(self, promise: Promise, groups: Groups) -> None:
        result, context = self._judge(promise, groups)
        rest = groups
        if result.held is False:
            broken = self._search(promise, groups)
            rest = _without(groups, tuple(broken))
            if rest:
                result, context = self._judge(promise, rest)
                if result.held is False:
                    broken.update(dict.fromkeys(rest, result.why))
                    rest = ()
            self._tell_broken(broken, rest, result)
            if broken and rest and died(self._tried(self._base).run):
                # What breaks may have hidden what gets past.
                self._go_past()
                return
        if not rest:
            return
        own: dict[Mended, Check] = {}
        if promise is Promise.REPAIR:
            with self._own():
                own, useless = self._earn(rest, context, result)
            if useless:
                # What the others do is judged again without them.
                self._tell_broken(useless, _without(rest, tuple(useless)), result)
                return
        elif promise is Promise.BEHAVIOUR and len(rest) > 1:
            with self._own():
                own = self._each(rest, context, result)
        before = None if promise in (Promise.REPAIR, Promise.BEHAVIOUR) else self._tried(self._base)
        for group in rest:
            self._tell(group, before, self._tried((*self._base, *context, *rest)), own.get(group, result))
        self._base = (*self._base, *rest)

    def _judge(self, promise: Promise, groups: Groups) -> tuple[Check, Groups]:
        """Hold ``groups`` to ``promise`` on top of the base, and where that fails on top of all others too.

        Growth that is left may be theirs. Return the check, and on top of which others it was made.
        """
        result = self._check(promise, self._base, (*self._base, *groups), groups)
        if result.held is not False or promise not in (Promise.REPAIR, Promise.BEHAVIOUR):
            return result, ()
        others = _without(self._pending, groups)
        return self._on_top(promise, self._base, (*self._base, *groups), groups, others, result)

    def _on_top(
        self,
        promise: Promise,
        before: Groups,
        after: Groups,
        groups: Groups,
        others: Groups,
        plain: Check,
        *,
        alone: bool | None = None,
    ) -> tuple[Check, Groups]:
        """Return the check of ``groups``, which fails as ``plain``, where it holds on top of ``others``, and of which.

        On top of all, then of each one: among them may be such as hide what ``groups`` mend, or do worse.
        """
        with self._own():
            for context in dict.fromkeys([others, *((other,) for other in others)]):
                if not context or not self._room():
                    break
                result = self._check(promise, (*before, *context), (*after, *context), groups, alone=alone)
                if result.held:
                    return result, context
        return plain, ()

    def _search(self, promise: Promise, groups: Groups) -> dict[Mended, str]:
        """Return those of ``groups`` that break the check on top of the base, with the reason for each."""
        broken: dict[Mended, str] = {}

        def solve(candidates: Groups, context: Groups) -> Groups:
            """Return the candidates that hold on top of ``context``."""
            if not candidates:
                return ()
            if not self._room():
                broken.update(dict.fromkeys(candidates, "not told apart from those that break: too many runs"))
                return ()
            result = self._check(promise, self._base, (*self._base, *context, *candidates), candidates)
            if result.held is not False:
                return candidates
            if len(candidates) == 1:
                if promise in (Promise.REPAIR, Promise.BEHAVIOUR):
                    others = _without(self._pending, (*candidates, *broken))
                    after = (*self._base, *candidates)
                    if self._on_top(promise, self._base, after, candidates, others, result)[0].held:
                        return candidates
                broken[candidates[0]] = result.why
                return ()
            middle = len(candidates) // 2
            good = solve(candidates[:middle], context)
            return (*good, *solve(candidates[middle:], (*context, *good)))

        solve(groups, ())
        return broken

    # Each repair by itself.

    def _earn(self, groups: Groups, context: Groups, whole: Check) -> tuple[dict[Mended, Check], dict[Mended, str]]:
        """Leave each of several repairs out alone. Return what that says of each, and those that mend nothing and yet
        change what is computed: of these one at a time, because without it the others have to be judged again."""
        own: dict[Mended, Check] = {}
        every = (*self._base, *context, *groups)
        here = self._tried(every)
        ran = tuple(group for group in groups if group.key in here.reached and group.key in here.made)
        if len(groups) > 1 and whole.held:
            for group in ran:
                if not self._room():
                    own[group] = Check(None, "too many runs to try it by itself", whole.comparison)
                    continue
                without = _without(every, (group,))
                result = self._check(Promise.REPAIR, without, every, (group,))
                if result.held is False:
                    return {}, {group: result.why}
                back = fault_text(self._tried(without).run)
                own[group] = replace(result, why=f"{whole.why}; without it alone: {back}") if result.held else result
        idle = tuple(group for group in ran if (own.get(group) or whole).held is None)
        for group in idle:
            # Of two that mend the same, neither is missed; each may do it alone.
            bases = [_without(every, idle), (*self._base, *context), *(link.base for link in self._links)]
            by_itself = self._alone(group, bases)
            if by_itself is not None:
                own[group] = replace(by_itself, why=f"{by_itself.why}; others mend the same")
        return own, {}

    def _each(self, groups: Groups, context: Groups, whole: Check) -> dict[Mended, Check]:
        """Try each of several rewrites that change what is learned by itself: what it does is said of it alone."""
        own: dict[Mended, Check] = {}
        for group in groups:
            if not self._room():
                own[group] = Check(None, "too many runs to try it by itself", whole.comparison)
                continue
            result = self._check(Promise.BEHAVIOUR, (*self._base, *context), (*self._base, *context, group), (group,))
            if result.held is False:
                # The others need not be wanted as well.
                result = replace(result, held=None, why=f"holds only together with the others; without: {result.why}")
            own[group] = result
        return own

    def _alone(self, group: Mended, bases: Sequence[Groups]) -> Check | None:
        """Return the check by which ``group`` alone is a repair on top of one of ``bases``."""
        for base in dict.fromkeys(bases):
            if group not in base and fault_text(self._tried(base).run) and self._room():
                result = self._check(Promise.REPAIR, base, (*base, group), (group,))
                if result.held:
                    return result
        return None

    # What is said.

    def _tell_broken(self, broken: Mapping[Mended, str], rest: Groups, result: Check | None) -> None:
        without = ""
        if rest and result is not None and result.held:
            others = "other rewrite holds" if len(rest) == 1 else f"{len(rest)} other rewrites hold"
            without = f"without it the {others}: {result.why}"
        for group, reason in broken.items():
            self._settle(group, Verdict.BROKEN, reason, without)

    def _tell(
        self, group: Mended, before: Tried | None, tried: Tried, result: Check, compared: int | None = None
    ) -> None:
        """Settle the verdict on ``group``; its lines must have run in ``tried``, and in ``before`` if there is one.

        ``compared``: after so many steps there was nothing to compare with.
        """
        if group.key not in tried.made:
            verdict, why = Verdict.NOT_JUDGED, "the rewrite could not be made together with the others"
        elif group.key not in tried.reached or (before is not None and group.key not in before.reached):
            verdict, why = Verdict.NOT_REACHED, self._idle(group, tried)
        elif result.held is None:
            verdict, why = Verdict.NOT_JUDGED, result.why
        else:
            verdict, why = (Verdict.KEPT if result.held else Verdict.BROKEN), result.why
            missed = (self._missed(group, before, tried, compared) or result.unseen) if result.held else ""
            constants = self._constants.get(group.key, "") if result.held and before is not None else ""
            if missed:
                verdict, why = Verdict.PARTLY_REACHED, f"{missed}; else {result.why}"
            elif constants and result.comparison.difference is Difference.IDENTICAL:
                verdict = Verdict.NOT_JUDGED
                why = f"{result.why}, but what is changed is a constant ({constants}), and here that made no difference"
        self._settle(group, verdict, why)

    def _missed(self, group: Mended, before: Tried | None, tried: Tried, compared: int | None) -> str:
        """Say which statements that ``group`` changes did not run while the programs were compared."""
        steps = min((_steps(each.run) for each in (before, tried) if each is not None), default=0)
        # What runs after the last step belongs to it, unless the program went on to steps without a counterpart.
        last = steps - (_steps(tried.run) > steps) if compared is None else compared
        path = next(iter(group.touched.before()), ("", 0))[0]
        told = ""
        for each, title in ((tried, ""), (before, "as it was, ")):
            if each is not None and not told:
                lines = [f"line {line}" for _, line in sorted(_late(each.statements.get(group.key, {}), steps, last))]
                parts = sorted(_late(each.parts.get(group.key, {}), steps, last))
                missed = [*lines, *(str(part) for part in parts if f"line {part.line}" not in lines)]
                told = f"{title}{', '.join(missed)} of {path}" if missed else ""
        if not told:
            return ""
        if compared is not None:
            return f"{told} did not run before the end of the original, so nothing is known of it"
        return f"not all that it changes ran within the steps that were compared: {told}"

    def _settle(self, group: Mended, verdict: Verdict, why: str, without: str = "") -> None:
        self._outcome.rewrites.append(Rewrite(group.findings, verdict, why, without))
        self._pending = _without(self._pending, (group,))

    def _idle(self, group: Mended, tried: Tried) -> str:
        lines = sorted(group.touched.before())
        place = self._place(*lines[0]) if lines else "its lines"
        if group.key in tried.reached:
            return f"the program without it did not come to {place}, so there is nothing to compare with"
        return f"{place} never ran within these steps; more --steps or other arguments may reach it"

    # What it all stands on.

    def _check(
        self, promise: Promise, before: Groups, after: Groups, groups: Groups, *, alone: bool | None = None
    ) -> Check:
        made = self._tried(after)
        return check(
            promise,
            self._tried(before).run,
            made.run,
            deterministic=self._deterministic,
            tolerance=self._tolerance,
            touched=frozenset(line for group in groups for line in made.touched.get(group.key, ())),
            alone=len(groups) == 1 if alone is None else alone,
            # Each of several is asked for itself.
            by_hand=len(groups) == 1 and all(finding.rule == RULE for finding in groups[0].findings),
        )

    def _tried(self, groups: Groups, asked: frozenset[Line] = frozenset()) -> Tried:
        """The run with ``groups``. Where it died, it has to tell of the lines ``asked`` whether they ran."""
        key = frozenset(groups)
        known = self._memory.get(key)
        if known is None or (key and died(known[0].run) and not asked <= known[1]):
            asked = asked.union(*(asked_for for _, asked_for in self._memory.values())) if asked else asked
            self._left[self._purpose] -= 1
            known = self._memory[key] = self._execute(groups, asked), asked
            self._outcome.runs.append((_name(groups), known[0].run))
        return known[0]

    def _room(self) -> bool:
        return self._left[self._purpose] > 0

    @contextmanager
    def _own(self) -> Iterator[None]:
        """Runs in here do not count as those of the search."""
        purpose, self._purpose = self._purpose, "own"
        try:
            yield
        finally:
            self._purpose = purpose


def _steps(run: Run) -> int:
    return max((len(record.steps) for record in run.records), default=0)


def _late(places: Mapping[Place, int | None], steps: int, last: int) -> list[Place]:
    """Those of ``places`` that did not run, or only after ``last`` of ``steps``."""
    return [place for place, after in places.items() if after is None or (steps and after > last)]


def _without(groups: Groups, others: Groups) -> Groups:
    return tuple(group for group in groups if group not in others)


def _name(groups: Groups) -> str:
    rules = sorted({finding.rule for group in groups for finding in group.findings})
    return f"{len(groups)} rewrite{'s' * (len(groups) != 1)}: {', '.join(rules)}"
