"""Which rewrites are tried together: promises told apart by stages, and the one that breaks found by bisecting.

Where the original dies, what gets past that goes first: as few rewrites as do it, and nothing with them, so that all
others are compared with a program that goes on. Then come those that change what happens (``repair``, ``behaviour``),
then those that must change nothing (``exact``, ``equivalent``). Each stage is one run, compared with the stage before.
A stage that fails its check is halved until the rewrites that break it are found; the rest goes on without them. A
repair that fails is tried on top of all others before it counts as broken, because what is still wrong may be theirs to
mend; and of several repairs each is left out alone, to see whether it is the one that mends anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from codemods.rewriting.result import Mended
from codemods.terms.findings import Promise
from verify.errors import OutOfTime
from verify.judging.faults import died
from verify.judging.judge import Check, fault_text, progress
from verify.judging.past import unblocking, useless
from verify.judging.programs import Groups, Key, Programs, Tried, promise_of, steps_of, without
from verify.judging.said import verdict_of
from verify.measured.results import Difference, Rewrite, Run, Verdict

ORDER = (Promise.REPAIR, Promise.BEHAVIOUR, Promise.EXACT, Promise.EQUIVALENT)


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


class Stages:
    """The search. ``unproved`` says what a change does of which no difference is no proof."""

    def __init__(self, programs: Programs, unproved: Mapping[Key, str] | None = None) -> None:
        self._unproved = unproved or {}
        self._programs = programs
        self._outcome = Outcome(runs=programs.runs)
        #: What was kept so far, what nothing was said of so far, and what got past a bad end.
        self._base: Groups = ()
        self._pending: Groups = ()
        self._links: list[_Link] = []

    def solve(self, groups: Sequence[Mended]) -> Outcome:
        """Judge ``groups``."""
        self._pending = tuple(groups)
        try:
            self._go_past()
            for promise in ORDER:
                while mine := tuple(group for group in self._pending if promise_of(group) is promise):
                    self._stage(promise, mine)
            self._outcome.final = self._programs.tried(self._base).run if self._base else None
        except OutOfTime as error:
            for group in self._pending:
                self._settle(group, Verdict.NOT_JUDGED, str(error))
        self._outcome.rewrites.sort(key=lambda rewrite: (rewrite.finding.path, rewrite.finding.span))
        return self._outcome

    # What gets past the bad end of a program.

    def _go_past(self) -> None:
        """Add to the base what gets past the crash of the program so far, and past the crashes that follow."""
        base, pending = self._base, self._pending
        links: list[_Link] = []
        while pending and died(self._programs.tried(base).run):
            with self._programs.own():
                found, pool = unblocking(self._programs, base, pending)
                hiding = useless(self._programs, base, found, pool)
            if hiding:
                self._tell_broken(hiding, (), None)
                self._go_past()
                return
            if not found:
                break
            links.append(_Link(base, found))
            base, pending = (*base, *found), without(pending, found)
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
                self._tell(
                    group,
                    None,
                    self._programs.tried(base),
                    checks[group],
                    steps_of(self._programs.tried(link.base).run),
                )
        self._base = base
        self._links.extend(links)

    def _check_link(self, link: _Link, promise: Promise, base: Groups, others: Groups) -> Check:
        result = self._programs.check(promise, link.base, base, link.groups, alone=True)
        if result.held:
            return result
        return self._on_top(promise, link.base, base, link.groups, others, result, alone=True)[0]

    # One stage.

    def _stage(self, promise: Promise, groups: Groups) -> None:
        result, context = self._judge(promise, groups)
        rest = groups
        suspects = self._suspects(promise, groups, result) if result.held is False else ()
        if suspects:
            broken = self._search(promise, suspects)
            rest = without(groups, tuple(broken))
            if rest:
                result, context = self._judge(promise, rest)
                if result.held is False:
                    broken.update(dict.fromkeys(self._suspects(promise, rest, result), result.why))
                    rest = without(groups, tuple(broken))
            self._tell_broken(broken, rest, result)
            if broken and rest and died(self._programs.tried(self._base).run):
                # What breaks may have hidden what gets past.
                self._go_past()
                return
        if not rest:
            return
        own: dict[Mended, Check] = {}
        if promise is Promise.REPAIR:
            with self._programs.own():
                own, idle = self._earn(rest, context, result)
            if idle:
                # What the others do is judged again without them.
                self._tell_broken(idle, without(rest, tuple(idle)), result)
                return
        elif promise is Promise.BEHAVIOUR and len(rest) > 1:
            with self._programs.own():
                own = self._each(rest, context, result)
        before = None if promise in (Promise.REPAIR, Promise.BEHAVIOUR) else self._programs.tried(self._base)
        for group in rest:
            self._tell(group, before, self._programs.tried((*self._base, *context, *rest)), own.get(group, result))
        self._base = (*self._base, *rest)

    def _judge(self, promise: Promise, groups: Groups) -> tuple[Check, Groups]:
        """Hold ``groups`` to ``promise`` on top of the base, and where that fails on top of all others too.

        Growth that is left may be theirs. Return the check, and on top of which others it was made.
        """
        result = self._programs.check(promise, self._base, (*self._base, *groups), groups)
        if result.held is not False or promise not in (Promise.REPAIR, Promise.BEHAVIOUR):
            return result, ()
        if not self._suspects(promise, groups, result):
            return result, ()
        others = without(self._pending, groups)
        return self._on_top(promise, self._base, (*self._base, *groups), groups, others, result)

    def _suspects(self, promise: Promise, groups: Groups, result: Check) -> Groups:
        """Those of ``groups`` that can have failed as ``result`` says.

        What is wrong may be wrong in both programs, where a repair is asked for. If they do the same, only what ran can
        have been meant to mend it.
        """
        before, after = (self._programs.tried(each) for each in (self._base, (*self._base, *groups)))
        if promise not in (Promise.REPAIR, Promise.BEHAVIOUR) or not _same_end(before.run, after.run, result):
            return groups
        return tuple(group for group in groups if group.key in before.reached | after.reached)

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
        with self._programs.own():
            for context in dict.fromkeys([others, *((other,) for other in others)]):
                if not context or not self._programs.room():
                    break
                result = self._programs.check(promise, (*before, *context), (*after, *context), groups, alone=alone)
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
            if not self._programs.room():
                broken.update(dict.fromkeys(candidates, "too many runs to separate it from those that break"))
                return ()
            result = self._programs.check(promise, self._base, (*self._base, *context, *candidates), candidates)
            if result.held is not False:
                return candidates
            if len(candidates) == 1:
                if promise in (Promise.REPAIR, Promise.BEHAVIOUR):
                    others = without(self._pending, (*candidates, *broken))
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
        """Leave out each of several repairs in turn, and return what that shows of each, and which of them fix
        nothing although they change what is computed: these one at a time, because without one the others have to be
        judged again."""
        own: dict[Mended, Check] = {}
        every = (*self._base, *context, *groups)
        here = self._programs.tried(every)
        ran = tuple(group for group in groups if group.key in here.reached and group.key in here.made)
        if len(groups) > 1 and whole.held:
            for group in ran:
                if not self._programs.room():
                    own[group] = Check(None, "too many runs to try it by itself", whole.comparison)
                    continue
                rest = without(every, (group,))
                result = self._programs.check(Promise.REPAIR, rest, every, (group,))
                if result.held is False:
                    return {}, {group: result.why}
                back = fault_text(self._programs.tried(rest).run)
                own[group] = replace(result, why=f"{whole.why}; without it alone: {back}") if result.held else result
        idle = tuple(group for group in ran if (own.get(group) or whole).held is None)
        for group in idle:
            # Of two that mend the same, neither is missed; each may do it alone.
            bases = [without(every, idle), (*self._base, *context), *(link.base for link in self._links)]
            by_itself = self._alone(group, bases)
            if by_itself is not None:
                own[group] = replace(by_itself, why=f"{by_itself.why}; others fix the same")
        return own, {}

    def _each(self, groups: Groups, context: Groups, whole: Check) -> dict[Mended, Check]:
        """Try each of several rewrites that change what is learned on its own, because the claim is about it alone."""
        own: dict[Mended, Check] = {}
        for group in groups:
            if not self._programs.room():
                own[group] = Check(None, "too many runs to try it by itself", whole.comparison)
                continue
            result = self._programs.check(
                Promise.BEHAVIOUR, (*self._base, *context), (*self._base, *context, group), (group,)
            )
            if result.held is False:
                # The others need not be wanted as well.
                result = replace(result, held=None, why=f"holds only together with the others; without: {result.why}")
            own[group] = result
        return own

    def _alone(self, group: Mended, bases: Sequence[Groups]) -> Check | None:
        """Return the check by which ``group`` on its own is a repair on top of one of ``bases``."""
        for base in dict.fromkeys(bases):
            if group not in base and fault_text(self._programs.tried(base).run) and self._programs.room():
                result = self._programs.check(Promise.REPAIR, base, (*base, group), (group,))
                if result.held:
                    return result
        return None

    # What is said.

    def _tell_broken(self, broken: Mapping[Mended, str], rest: Groups, result: Check | None) -> None:
        alone = ""
        if rest and result is not None and result.held:
            others = "other rewrite holds" if len(rest) == 1 else f"{len(rest)} other rewrites hold"
            alone = f"without it the {others}: {result.why}"
        for group, reason in broken.items():
            self._settle(group, Verdict.BROKEN, reason, alone)

    def _tell(
        self, group: Mended, before: Tried | None, tried: Tried, result: Check, compared: int | None = None
    ) -> None:
        """Settle the verdict on ``group``; its lines must have run in ``tried``, and in ``before`` if there is one.

        ``compared``: after so many steps there was nothing to compare with.
        """
        unproved = self._unproved.get(group.key, "")
        verdict, why = verdict_of(group, before, tried, result, compared, unproved, self._programs.place)
        self._settle(group, verdict, why)

    def _settle(self, group: Mended, verdict: Verdict, why: str, alone: str = "") -> None:
        self._outcome.rewrites.append(Rewrite(group.findings, verdict, why, alone))
        self._pending = without(self._pending, (group,))


def _same_end(before: Run, after: Run, result: Check) -> bool:
    """Whether two programs did the same, as far as was seen, and ended in the same way."""
    one, other = ((progress(run), run.outcome, run.error) for run in (before, after))
    return one == other and result.comparison.difference is Difference.IDENTICAL
