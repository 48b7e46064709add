"""Many programs, one after the other: what is counted, and what is written down of those that break a promise."""

from __future__ import annotations

import json
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.hunt import covering
from tests.hunt.checking import HARMLESS, Verdict, Violation, check
from tests.hunt.crossed import programs as crossed
from tests.hunt.programs import Make, Program, program
from tests.hunt.running import warm
from tests.hunt.shrinking import shrunk
from tests.hunt.verifying import disagreements

KEPT = 6
"""So many programs of a group of violations are written down by each worker."""


@dataclass(frozen=True)
class Hunt:
    """How to hunt: see the options of the command."""

    rules: tuple[str, ...] = ()
    out: Path | None = None
    verify: int = 0
    coverage: int = 0
    shrink: float = 20.0
    crossed: bool = False

    @property
    def make(self) -> Make:
        """What makes the programs."""
        return crossed.program if self.crossed else program


@dataclass
class Findings:
    """What came of many programs."""

    programs: int = 0
    rewritten: int = 0
    ungrammatical: int = 0
    verified: int = 0
    fired: Counter[str] = field(default_factory=Counter)
    advised: Counter[str] = field(default_factory=Counter)
    edits: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    suspects: Counter[str] = field(default_factory=Counter)
    """The same for programs that broke a promise."""
    lines: dict[str, set[int]] = field(default_factory=dict)

    def add(self, other: Findings) -> None:
        """Count ``other`` in."""
        for name in ("programs", "rewritten", "ungrammatical", "verified"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("fired", "advised", "edits", "violations", "broken", "errors", "features", "suspects"):
            getattr(self, name).update(getattr(other, name))
        for path, lines in other.lines.items():
            self.lines.setdefault(path, set()).update(lines)

    def line(self) -> str:
        """Where the hunt stands."""
        return f"{self.programs} programs, {self.rewritten} rewritten, {sum(self.broken.values())} broken"

    def table(self) -> str:
        """All that was counted, for people."""
        parts = [
            f"{self.programs} programs, {self.rewritten} rewritten, {self.verified} sent through verify, "
            f"{self.ungrammatical} stop for reasons of their own; {sum(self.broken.values())} broke a promise"
        ]
        for title, counts in (
            ("violations", self.violations),
            ("rules by promise", self.fired),
            ("not changed", self.advised),
            ("edits", self.edits),
            ("originals that stop", self.errors),
        ):
            parts.append(f"\n{title}:")
            parts += [f"{count:8} {name}" for name, count in counts.most_common(60)] or ["       0"]
        parts.append(f"\nfeatures: {len(self.features)} seen; with the most that broke a promise:")
        shares = ((self.suspects[name] / count, count, name) for name, count in self.features.items() if count > 4)
        parts += [f"{share:8.0%} of {count:5} {name}" for share, count, name in sorted(shares, reverse=True)[:25]]
        if self.lines:
            parts += ["\nlines of the static half that were reached:", *covering.table(self.lines)]
        return "\n".join(parts)


_kept: Counter[str] = Counter()


def hunted(portion: tuple[Hunt, int, int]) -> Findings:
    """Look at the programs of the seeds from one number up to another."""
    hunt, start, end = portion
    warm()
    found = Findings()
    for seed in range(start, end):
        try:
            _one(hunt, seed, found)
        except Exception:
            found.broken["the hunt itself"] += 1
            found.violations[f"the hunt itself: {traceback.format_exc(limit=-2)}"] += 1
    return found


def _one(hunt: Hunt, seed: int, found: Findings) -> None:
    made = hunt.make(seed)
    found.programs += 1
    found.features.update(set(made.features))
    with covering.lines(found.lines, on=bool(hunt.coverage) and seed % hunt.coverage == 0):
        verdict = check(made.files, hunt.rules)
    _count(verdict, found)
    violations = list(verdict.violations)
    if hunt.verify and verdict.after is not None and not verdict.ungrammatical and found.rewritten % hunt.verify == 0:
        found.verified += 1
        violations += disagreements(made.files, verdict)
    groups = {violation.group: violation for violation in reversed(violations)}
    if hunt.out is not None and groups:
        hunt.out.mkdir(parents=True, exist_ok=True)
        with open(hunt.out / "violations.jsonl", "a") as log:
            for group, violation in groups.items():
                log.write(json.dumps([seed, group, violation.why, made.features]) + "\n")
    if any(violation.kind not in HARMLESS for violation in violations):
        found.suspects.update(set(made.features))
    for group, violation in groups.items():
        found.violations[group] += 1
        if violation.kind not in HARMLESS:
            found.broken[violation.kind] += 1
        if hunt.out is not None and _kept[group] < KEPT:
            _kept[group] += 1
            _write(hunt, seed, made, violation)


def _count(verdict: Verdict, found: Findings) -> None:
    found.rewritten += verdict.after is not None
    found.ungrammatical += verdict.ungrammatical
    found.fired.update(verdict.fired)
    found.advised.update(verdict.advised)
    found.edits.update(verdict.edits)
    if verdict.before is not None and verdict.before.error is not None:
        found.errors[f"{verdict.before.error}: {verdict.before.message[:60]}"] += 1


def _write(hunt: Hunt, seed: int, made: Program, violation: Violation) -> None:
    """Write a violation down, as small as it gets."""
    assert hunt.out is not None
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in violation.group)[:90]
    folder = hunt.out / name / str(seed)
    files, after, why = dict(made.files), dict(violation.after), violation.why
    if hunt.shrink and violation.kind not in ("verify",):

        def fails(candidate: object) -> bool:
            assert isinstance(candidate, dict)
            return _again(candidate, violation, hunt.rules) is not None

        files = shrunk(made.choices, fails, hunt.shrink, hunt.make)
        small = _again(files, violation, hunt.rules)
        if small is not None:
            after, why = dict(small.after), small.why
    for kind, texts in (("before", files), ("after", after), ("original", made.files)):
        for path, text in texts.items():
            target = folder / kind / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    (folder / "why.txt").write_text(f"{violation.group}\n{why}\nwas: {violation.why}\nseed {seed}\n")
    (folder / "choices.json").write_text(json.dumps([*made.choices]))


def _again(files: dict[str, str], violation: Violation, rules: tuple[str, ...]) -> Violation | None:
    """The same violation in a smaller program, if it is there."""
    try:
        verdict = check(files, rules)
    except Exception:
        return None
    if verdict.ungrammatical and violation.kind not in ("crash", "syntax"):
        return None
    for found in verdict.violations:
        if (
            found.kind == violation.kind
            and found.why.split()[:1] == violation.why.split()[:1]
            and set(found.rules) <= set(violation.rules)
        ):
            return found
    return None
