"""A program through the static half and then through torch: which promises were broken."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from codemods.rewriting.result import ApplyResult, Mended
from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.hunt import comparing
from tests.hunt.rewriting import files_after, rewritten
from tests.hunt.running import Run, run

Files = Mapping[str, str]

HARMLESS = ("refused", "flat")
"""Kinds of violation that break nothing: an edit was taken back in time, or another holder of a graph was not seen."""


@dataclass(frozen=True)
class Violation:
    """A broken promise: what ``kind`` it is, whose rewrites were made, and the program with them."""

    kind: str
    rules: tuple[str, ...]
    why: str
    after: Files

    @property
    def group(self) -> str:
        """What it is counted under."""
        return f"{self.kind}: {' + '.join(self.rules)}"


@dataclass
class Verdict:
    """What came of one program."""

    violations: list[Violation] = field(default_factory=list)
    fired: Counter[str] = field(default_factory=Counter)
    """Rules with the promises under which they rewrote."""
    advised: Counter[str] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    before: Run | None = None
    """The run of the original, if anything was rewritten."""
    after: Files | None = None
    """The program as rewritten by default."""

    @property
    def ungrammatical(self) -> bool:
        """Whether the original stopped for a reason that is none of ours."""
        run = self.before
        return run is not None and run.error is not None and not run.graph_error


class Checker:
    """Checks one program; runs of the same text are made once."""

    def __init__(self, files: Files, *, rules: tuple[str, ...] = ()) -> None:
        self.files = files
        self.options = Options(select=rules)
        self.verdict = Verdict()
        self._runs: dict[tuple[tuple[str, str], ...], Run] = {}

    def check(self) -> Verdict:
        """Hold all rewrites to their promises: the default ones, each rule's alone, and the unsafe ones."""
        default = self._apply(self.options)
        if default is None:
            return self.verdict
        found = self.verdict
        for finding in default.fixed:
            found.fired[f"{finding.rule} {finding.promise.value}"] += 1
            found.edits.update(type(edit).__name__ for _, edit in finding.edits)
        found.advised.update(f"{one.finding.rule} {one.finding.promise.value}" for one in default.remaining)
        behaviour = any(one.finding.promise is Promise.BEHAVIOUR for one in default.remaining)
        if not default.rewrites and not behaviour:
            return found
        self.verdict.before = self._run(self.files)
        if default.rewrites:
            self.verdict.after = files_after(self.files, default)
            self._hold(self.options, default)
            rules = sorted({finding.rule for finding in default.fixed})
            for rule in rules if len(rules) > 1 else ():
                alone = replace(self.options, select=(rule,))
                result = self._apply(alone)
                if result is not None and result.rewrites:
                    self._hold(alone, result)
        if behaviour:
            unsafe = replace(self.options, unsafe=True)
            result = self._apply(unsafe)
            if result is not None and result.rewrites:
                for finding in result.fixed:
                    if finding.promise is Promise.BEHAVIOUR:
                        found.fired[f"{finding.rule} {finding.promise.value}"] += 1
                after = files_after(self.files, result)
                self._note("behaviour", comparing.behaviour(self._run(self.files), self._run(after)), result, after)
                self._settled(unsafe, result, after)
        return found

    def _apply(self, options: Options) -> ApplyResult | None:
        try:
            result = rewritten(self.files, options)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            self.verdict.violations.append(Violation("crash", options.select, why, self.files))
            return None
        for failure in result.failures:
            self.verdict.violations.append(
                Violation("refused", (failure.rule,), failure.reason, files_after(self.files, result))
            )
        return result

    def _hold(self, options: Options, result: ApplyResult) -> None:
        """Hold ``result`` to the promises of what it mended: repairs against the original, then the rest on top."""
        after = files_after(self.files, result)
        promises = {_promise(group) for group in result.mended}
        before, new = self._run(self.files), self._run(after)
        strict = promises & {Promise.EXACT, Promise.EQUIVALENT}
        if Promise.REPAIR in promises:
            # what another mistake raises, or an old form, stays
            graphs = any(walk == before.site for finding in result.fixed for walk, _ in finding.mends)
            if len(before.losses) < 2 and "inplace-on-detached" not in {finding.rule for finding in result.fixed}:
                # no backward came before that could have freed anything: it is another mistake that raises
                graphs = False
            why = comparing.repair(before, new, graphs=graphs)
            self._note("repair", "" if why and self._raised_anyway(new) else why, result, after)
            if strict:
                self._on_top(options, result, after, strict)
        elif strict:
            self._strict(strict, self.files, result, after, whole=options == self.options)
        self._settled(options, result, after)

    def _raised_anyway(self, after: Run) -> bool:
        """Whether a loss without a graph is a mistake of its own: the original has it as soon as its graphs last."""
        if "does not require grad" not in after.message:
            return False
        kept = run(self.files, retain=True)
        return (kept.message, kept.where) == (after.message, after.where)

    def _on_top(self, options: Options, result: ApplyResult, after: Files, strict: set[Promise]) -> None:
        repairs = {group.key for group in result.mended if _promise(group) is Promise.REPAIR}
        part = rewritten(self.files, options, lambda group: frozenset(f.key for f in group) in repairs)
        if {group.key for group in part.mended} == repairs:
            base = files_after(self.files, part)
            self._strict(strict, base, result, after, whole=options == self.options)

    def _strict(
        self, promises: set[Promise], original: Files, result: ApplyResult, after: Files, *, whole: bool
    ) -> None:
        before, new = self._run(original), self._run(after)
        if Promise.EQUIVALENT in promises:
            why = comparing.equivalent(before, new)
            self._note("equivalent", why and self._in_double(original, after, why), result, after)
            return
        self._note("exact", comparing.exact(before, new), result, after)
        # Somebody else may hold the same graphs, of whom nothing is proven, or whom a rule finds that was not asked.
        if whole and comparing.grows(new) and new.alive == before.alive and not result.remaining:
            totals = {"attached-loss-total", "attached-loss-history"}
            if {finding.rule for finding in result.fixed} <= totals:
                self._note("flat", f"still grows: {before.alive}", result, after)

    def _in_double(self, original: Files, after: Files, why: str) -> str:
        """``why`` two programs are not equivalent, unless more digits show that it was rounding.

        An optimizer that divides by the size of the gradient makes whole updates of gradients that are zero but for
        rounding; of those of 64 bits it makes none that count.
        """
        single, before, new = self._run(original), run(original, double=True), run(after, double=True)
        # a program that 64 bits end in another way, or earlier, proves nothing of its rounding
        if (before.error, before.where) != (single.error, single.where) or len(before.steps) < len(single.steps):
            return why
        if (new.error, new.where) != (before.error, before.where):
            return why
        return comparing.equivalent(before, new, least=1e-6)

    def _settled(self, options: Options, result: ApplyResult, after: Files) -> None:
        """After ``apply`` there is nothing left that it would change, and its text is Python."""
        try:
            for text in after.values():
                ast.parse(text)
            again = rewritten(after, options)
        except SyntaxError as error:
            self._note("syntax", str(error), result, after)
            return
        if again.rewrites:
            rules = sorted({finding.rule for finding in again.fixed})
            self._note("second apply", f"changes something: {rules}", result, after)

    def _note(self, kind: str, why: str, result: ApplyResult, after: Files) -> None:
        if why:
            rules = tuple(sorted({f"{finding.rule}" for finding in result.fixed}))
            self.verdict.violations.append(Violation(kind, rules, why, after))

    def _run(self, files: Files) -> Run:
        key = tuple(sorted(files.items()))
        if key not in self._runs:
            self._runs[key] = run(files)
        return self._runs[key]


def _promise(group: Mended) -> Promise:
    return max((finding.promise for finding in group.findings), key=lambda promise: promise.rank)


Still = Callable[[Files], bool]


def check(files: Files, rules: tuple[str, ...] = ()) -> Verdict:
    """Check a program; ``rules`` are those selected, by default all that are not opt-in."""
    return Checker(files, rules=rules).check()
