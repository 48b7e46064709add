"""The loop of ``codemod fix``: diagnose, try, prove, go on with the repaired program."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from codemods.source.diffs import unified_text
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_source, source_from_bytes
from codemods.source.options import Options
from codemods.terms.findings import Promise
from verify.diagnosis.diagnose import Telling, diagnose
from verify.diagnosis.model import Diagnosis, Fault, Kind, Measures
from verify.fixing.candidates import candidates
from verify.fixing.clues import Candidate
from verify.isolation import Workspace
from verify.measured.records import Site
from verify.measured.results import Verdict
from verify.running.against import RULE, HandRewriter
from verify.running.rewriting import Rewriter, RuleRewriter
from verify.running.runner import Place
from verify.running.settings import Command, Settings
from verify.verification import Verified, verify

#: Rounds, each of which removes a fault; candidates that are tried for one fault.
_ROUNDS = 4
_TRIALS = 6
#: Changes for one fault that are shown side by side; how many are tried beside what the rules have mended.
_CHOICES = 3
_BESIDE = 3
#: Parameters that are named; what the order of a sum makes of a loss.
_SHOWN = 4
_ROUNDING = 1e-4
#: Faults that a verification shows to be gone.
_PROVABLE = frozenset({Kind.SECOND_BACKWARD, Kind.CHANGED_IN_PLACE, Kind.GROWING_GRAPH})
#: Faults that two diagnoses show to be gone.
_SHOWABLE = frozenset({Kind.NO_GRADIENT, Kind.OTHER_DEVICE})

#: What a rule's rewrite comes to, of the ways of :class:`verify.fixing.clues.Candidate`.
_WAYS = {
    "carried-hidden-state": "cut",
    "stored-graph": "cut",
    "unreset-loss": "afresh",
    "loop-invariant-graph": "rebuild",
    "repeated-backward": "sum",
    "step-between-backwards": "later",
}

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Repair:
    """One change that was run and kept: what it does, what it means, the verdicts on it, and its diff.

    ``measures`` is what the run with it comes to; ``others`` are those that mend the same and are not made. ``price``:
    what no longer learns with it; one that has a price is shown beside others and never made.
    """

    title: str
    meaning: str
    proof: tuple[str, ...]
    diff: str
    measures: Measures = field(default_factory=Measures)
    others: tuple[Repair, ...] = ()
    price: str = ""


@dataclass(frozen=True)
class _Kept:
    """A change that was proved, and the program and the diagnosis with it."""

    repair: Repair
    files: Mapping[str, bytes]
    after: Diagnosis
    ways: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Refused:
    """A change that was tried and is not proposed, and why."""

    title: str
    why: str


@dataclass(frozen=True)
class Fixed:
    """What became of a program: the diagnoses before and after, repairs in order, the changed files by path."""

    before: Diagnosis
    after: Diagnosis
    repairs: tuple[Repair, ...]
    refused: tuple[Refused, ...]
    files: Files

    @property
    def status(self) -> int:
        """0: nothing is wrong, or not any more; 1: a fault is left; 3: the program could not be run."""
        return self.after.status


class Fixer:
    """Repairs the program that ``command`` runs on the tree at ``root``; the tree stays as it is."""

    def __init__(
        self,
        command: Command,
        root: Path,
        *,
        settings: Settings,
        options: Options,
        tell: Telling = lambda _: None,
        place: Callable[..., Place] = Workspace,
    ) -> None:
        self._command = command
        self._root = root
        # Looking for other ways to a line takes minutes; the doctor's run has been there.
        self._settings = replace(settings, reach=0.0)
        self._options = replace(options, likely=True)
        self._tell = tell
        self._place = place
        self._files: dict[str, bytes] = {}
        self._repairs: list[Repair] = []
        self._refused: list[Refused] = []

    def fix(self) -> Fixed:
        """Go round until nothing is found or nothing helps. Raises :class:`verify.errors.VerifyError` as `verify`."""
        before = after = self._diagnosed(self._files)
        first = None if before.reason and not _wrong(before) else self._by_rules(before)
        if first is not None and not _wrong(before):
            # No error and no growth: forwards for nobody, surplus flags. The rules know a remedy, and its run was kept.
            self._repairs.append(first.repair)
            self._files = dict(first.files)
            return Fixed(before, first.after, tuple(self._repairs), (), dict(self._files))
        for _ in range(_ROUNDS):
            better = next((d for fault in _wrong(after) if (d := self._mended(fault, after, first)) is not None), None)
            first = None
            if better is None:
                break
            after = better
        return Fixed(before, after, tuple(self._repairs), tuple(self._refused), dict(self._files))

    def _diagnosed(self, files: Files) -> Diagnosis:
        return diagnose(
            self._command, self._root, settings=self._settings, tell=self._tell, place=self._place, files=files
        )

    def _by_rules(self, before: Diagnosis) -> _Kept | None:
        """What the static half finds, advice that is likely included, and the runs keep."""
        rewriter = RuleRewriter(self._sources(before), self._options, root=self._root, jobs=1)
        verification = self._verified(rewriter).verification
        kept = [one for one in verification.rewrites if one.verdict is Verdict.KEPT]
        files = rewriter.some(one.key for one in kept).files if kept else {}
        if not files:
            return None
        after = self._diagnosed(files)
        if not (_better(before, after) if _wrong(before) else _no_worse(before, after)):
            return None
        proof = []
        for one in kept:
            cell, line = verification.place(one.finding.path, one.finding.span.line)
            proof.append(f"{one.finding.rule} at {Site(one.finding.path, line, '', cell)}: {one.why}")
        rules = self._kept("what the rules find and the runs kept", "see each rule", tuple(proof), files, after)
        return replace(rules, ways=frozenset(_WAYS[each.finding.rule] for each in kept if each.finding.rule in _WAYS))

    def _sources(self, diagnosis: Diagnosis) -> list[SourceFile]:
        found = []
        paths = {self._root / path for path in diagnosis.loaded}
        script = self._command.script
        if script is not None and script.is_file() and script.resolve() not in {path.resolve() for path in paths}:
            # A process that ends early, or a notebook, does not tell of it.
            paths.add(script)
        for path in sorted(paths):
            try:
                found.append(read_source(path))
            except SourceError:
                # The rules say nothing of what cannot be read.
                continue
        return found

    def _mended(self, fault: Fault, before: Diagnosis, first: _Kept | None) -> Diagnosis | None:
        """The diagnosis after the best change for ``fault`` that is proved, ``first`` among them; else None."""
        kept = [] if first is None else [first]
        priced: list[_Kept] = []
        left = _TRIALS if first is None else _BESIDE
        for candidate in candidates(fault, self._source):
            files = self._with(candidate)
            if not left or len(kept) + len(priced) == _CHOICES:
                break
            if files is None or any(files == one.files or candidate.way in one.ways for one in kept):
                continue
            left -= 1
            self._tell(f"trying: {candidate.title}")
            after = self._diagnosed(files)
            proof, trouble = self._judged(fault, before, after, files, candidate, kept)
            one = self._kept(candidate.title, candidate.meaning, proof, files, after)
            if not trouble:
                kept.append(replace(one, ways=frozenset({candidate.way} - {""})))
            elif price := _price(fault, before, after):
                gone = "the fault is gone, and the first loss is the same"
                priced.append(replace(one, repair=replace(one.repair, proof=(gone,), price=price)))
            else:
                self._refused.append(Refused(candidate.title, trouble))
        if not kept:
            self._refused += [
                Refused(one.repair.title, f"it mends the fault, but {one.repair.price}") for one in priced
            ]
            return None
        # Of equals the first one: candidates come in the order in which people would want them.
        best = max(kept, key=lambda one: (-len(one.after.faults), one.after.measures.learning))
        others = tuple(one.repair for one in (*kept, *priced) if one is not best)
        self._repairs.append(replace(best.repair, others=others))
        self._files = dict(best.files)
        return best.after

    def _judged(
        self,
        fault: Fault,
        before: Diagnosis,
        after: Diagnosis,
        files: Files,
        candidate: Candidate,
        kept: Sequence[_Kept],
    ) -> tuple[tuple[str, ...], str]:
        """The proof of a change that mends ``fault``; the second is why it is none."""
        if not _better(before, after):
            left = after.faults[0].headline if after.faults else after.reason
            return (), f"it does not help: {left}"
        if candidate.summed:
            return _as_sum([one.after.measures for one in kept], after.measures)
        if fault.kind not in _PROVABLE:
            return _shown(fault, before, after)
        return self._proved(files, "rebuild" if candidate.fresh and not self._files else RULE)

    def _with(self, candidate: Candidate) -> Files | None:
        """The program with ``candidate`` made; None where a file cannot hold it."""
        try:
            new = {path: self._source(path).encode(text) for path, text in candidate.files.items()}
        except SourceError:
            # A cell of a notebook that would lose a magic, a character that the encoding lacks.
            return None
        return {**self._files, **new}

    def _source(self, path: str) -> SourceFile:
        """A file below the root, with what is changed so far."""
        if path in self._files:
            return source_from_bytes(self._files[path], path, self._root / path)
        return read_source(self._root / path, path)

    def _proved(self, files: Files, rule: str) -> tuple[tuple[str, ...], str]:
        """What a verification says of all that is changed so far; the second is why it is no proof."""
        with tempfile.TemporaryDirectory(prefix="codemod-fix-") as folder:
            for path, data in files.items():
                place = Path(folder) / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
            script = self._command.script
            rewriter = HandRewriter(
                Path(folder), Promise.REPAIR, root=self._root, script=script, together=True, rule=rule
            )
            verified = self._verified(rewriter)
        rewrites = verified.verification.rewrites
        lost = next((one for one in rewrites if one.verdict is not Verdict.KEPT), None)
        if lost is not None or not rewrites:
            why = verified.verification.reason if lost is None else f"{lost.verdict.value}: {lost.why}"
            return (), why or "nothing was judged"
        return tuple(f"{one.verdict.value}: {one.why}" for one in rewrites), ""

    def _verified(self, rewriter: Rewriter) -> Verified:
        return verify(
            [self._command],
            options=self._options,
            settings=self._settings,
            tree=self._root,
            rewriter=rewriter,
            tell=self._tell,
            place=self._place,
        )

    def _kept(self, title: str, meaning: str, proof: tuple[str, ...], files: Files, after: Diagnosis) -> _Kept:
        pairs = [(self._source(path), source_from_bytes(data, path)) for path, data in files.items()]
        diff = unified_text(change for old, new in pairs for change in old.shown(old.text, new.text))
        repair = Repair(title, meaning, proof, diff, after.measures)
        return _Kept(repair, dict(files), after)


def _shown(fault: Fault, before: Diagnosis, after: Diagnosis) -> tuple[tuple[str, ...], str]:
    """The same for a fault that no verification knows: it is gone, and the program begins as it did."""
    old, new = before.measures, after.measures
    if old.losses[:1] != new.losses[:1]:
        return (), "the first loss is another one"
    lost = sorted(set(new.idle) - set(old.idle))
    if lost or new.learning < old.learning:
        return (), f"{', '.join(lost) or 'parameters'} no longer learn"
    if fault.kind is Kind.OTHER_DEVICE:
        if old.losses != new.losses[: len(old.losses)]:
            return (), "losses are other ones"
        return ("no tensors of two devices meet any more, and losses are the same",), ""
    if new.learning <= old.learning:
        return (), "no more parameters learn"
    return (f"{new.learning} of {new.meant} parameters learn ({old.learning} before); the first loss is the same",), ""


def _as_sum(others: Sequence[Measures], measures: Measures) -> tuple[tuple[str, ...], str]:
    """The proof of one backward of two losses, by a repair that walks both: each loss is the sum of two of its."""
    for other in others:
        pairs = list(zip(other.losses[::2], other.losses[1::2], strict=False))
        same = len(pairs) == len(measures.losses) and all(
            math.isclose(one + two, whole, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
            for (one, two), whole in zip(pairs, measures.losses, strict=True)
        )
        if same and pairs and measures.learning == other.learning:
            return (f"each of {len(pairs)} losses is the sum of the two that the other repair walks apart",), ""
    return (), "no other repair shows that the sum learns the same"


def _price(fault: Fault, before: Diagnosis, after: Diagnosis) -> str:
    """What does not learn with a change that removes ``fault``; empty where that is not its price."""
    old, new = before.measures, after.measures
    came = {one.kind for one in after.faults} - {one.kind for one in before.faults}
    gone = [one.kind for one in after.faults].count(fault.kind) < [one.kind for one in before.faults].count(fault.kind)
    if not gone or came - {Kind.NO_GRADIENT} or after.reason or after.backwards < before.backwards:
        return ""
    if not new.learning or new.learning >= new.meant or old.losses[:1] != new.losses[:1]:
        return ""
    more = f" and {len(new.idle) - _SHOWN} more" if len(new.idle) > _SHOWN else ""
    return f"{', '.join(new.idle[:_SHOWN]) or 'some parameters'}{more} do not learn"


def _wrong(diagnosis: Diagnosis) -> list[Fault]:
    """The faults that a run can show to be mended."""
    return [fault for fault in diagnosis.faults if fault.kind in _PROVABLE | _SHOWABLE]


def _better(before: Diagnosis, after: Diagnosis) -> bool:
    """Whether a fault is gone, none came, and the program goes as far at least."""
    return len(after.faults) < len(before.faults) and _no_worse(before, after)


def _no_worse(before: Diagnosis, after: Diagnosis) -> bool:
    """Whether no fault came, and the program goes as far at least."""
    old, new = [fault.kind for fault in before.faults], [fault.kind for fault in after.faults]
    if after.reason and not before.reason:
        return False
    return len(new) <= len(old) and not set(new) - set(old) and after.backwards >= before.backwards
