"""The loop of ``codemod fix``: diagnose, try, prove, go on with the repaired program."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from codemods.source.diffs import unified_text
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_source, source_from_bytes
from codemods.source.options import Options
from codemods.terms.findings import Promise
from verify.diagnosis.diagnose import Telling, cut_short, examine, grows, whole_epochs
from verify.diagnosis.model import Diagnosis, Fault, Measures
from verify.fixing import showing
from verify.fixing.candidates import candidates
from verify.fixing.clues import Candidate
from verify.fixing.runs import SharedRunner
from verify.isolation import Workspace
from verify.measured.results import Rewrite, Verdict
from verify.measured.values import Site
from verify.running.against import RULE, HandRewriter
from verify.running.rewriting import Rewriter, RuleRewriter
from verify.running.runner import Asked, Place
from verify.running.settings import Command, Settings
from verify.verification import Verified, asked_of, verify

#: Rounds, each of which removes a fault; candidates that are tried for one fault.
_ROUNDS = 4
_TRIALS = 6
#: Changes for one fault that are shown side by side; how many are tried beside what the rules have mended.
_CHOICES = 3
_BESIDE = 3

#: What a rule's rewrite comes to, of the ways of :class:`verify.fixing.clues.Candidate`.
_WAYS = {
    "attached-loss-history": ("values",),
    "attached-loss-total": ("values",),
    "carried-hidden-state": ("cut",),
    "stored-graph": ("cut", "values"),
    "unreset-loss": ("afresh",),
    "loop-invariant-graph": ("rebuild",),
    "repeated-backward": ("sum",),
    "step-between-backwards": ("later",),
}

#: How the names of rules begin that bring old code up to date, and mend nothing.
_STYLE = "legacy-"

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
class _Kept:
    """A proven change, with the resulting program and its diagnosis."""

    repair: Repair
    files: Mapping[str, bytes]
    after: Diagnosis
    ways: frozenset[str] = frozenset()


class _Trial(NamedTuple):
    """A candidate, and the program with it."""

    candidate: Candidate
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Refused:
    """A change that was tried and is not proposed, and why."""

    title: str
    why: str


@dataclass(frozen=True)
class Fixed:
    """The outcome for a program: the diagnoses before and after, repairs in order, the changed files by path."""

    before: Diagnosis
    after: Diagnosis
    repairs: tuple[Repair, ...]
    refused: tuple[Refused, ...]
    files: Files
    sources: Mapping[str, SourceFile] = field(default_factory=dict)
    """What the changed files held when the first run began, by path."""

    @property
    def status(self) -> int:
        """0: nothing is wrong, or no longer; 1: a fault is left; 3: the program could not be run."""
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
        self._first: dict[Path, SourceFile] = {}
        # Looking for other ways to a line takes minutes; the doctor's run has been there.
        self._settings = replace(settings, reach=0.0)
        self._options = replace(options, likely=True)
        self._tell = tell
        self._place = place
        self._runner = SharedRunner(root, self._settings, place)
        self._files: dict[str, bytes] = {}
        self._repairs: list[Repair] = []
        self._refused: list[Refused] = []

    def fix(self) -> Fixed:
        """Repeat until nothing is found or nothing helps. Raises :class:`verify.errors.VerifyError` as `verify`
        does."""
        with self._runner as plain:
            before = self._diagnosed(self._files)
            if cut_short(before, self._settings):
                settings = whole_epochs(self._settings)
                with SharedRunner(self._root, settings, self._place) as self._runner:
                    whole = self._diagnosed(self._files)
                    if grows(whole):
                        self._settings = settings
                        return self._fix(whole)
                self._runner = plain
            return self._fix(before)

    def _fix(self, before: Diagnosis) -> Fixed:
        after = before
        first = None if before.reason and not showing.wrong(before) else self._by_rules(before)
        if first is not None and not showing.wrong(before):
            # No error and no growth: forwards for nobody, surplus flags. The rules know a remedy, and its run was kept.
            self._repairs.append(first.repair)
            self._files = dict(first.files)
            after, first = self._diagnosed(self._files) if first.after.faults else first.after, None
        for _ in range(_ROUNDS):
            faults = showing.wrong(after) or showing.idle(after)
            better = next((d for fault in faults if (d := self._mended(fault, after, first)) is not None), None)
            first = None
            if better is None:
                break
            # What is left is named in full only now: of most changes nobody wants to know it.
            after = self._diagnosed(self._files) if better.faults else better
        return self._fixed(before, after, tuple(self._refused))

    def _fixed(self, before: Diagnosis, after: Diagnosis, refused: tuple[Refused, ...]) -> Fixed:
        sources = {path: self._read(self._root / path) for path in self._files}
        return Fixed(before, after, tuple(self._repairs), refused, dict(self._files), sources)

    def _diagnosed(self, files: Files, *, names: bool = True) -> Diagnosis:
        return examine(self._command, self._runner, tell=self._tell, files=files, names=names)

    def _by_rules(self, before: Diagnosis) -> _Kept | None:
        """The rewrites of the rules, likely advice included, that the runs keep."""
        rewriter = RuleRewriter(self._sources(before), self._options, root=self._root, jobs=1)
        wanted = asked_of(self._runner, rewriter, rewriter.all())
        for fault in showing.wrong(before)[:1]:
            wanted |= self._asked(fault, self._trials(fault)[:_BESIDE])
        self._runner.ahead = wanted
        verification = self._verified(rewriter).verification
        found = self._chosen(before, verification.rewrites, rewriter)
        if found is None:
            return None
        chosen, files, after = found
        proof = []
        for one in chosen:
            cell, line = verification.place(one.finding.path, one.finding.span.line)
            path = rewriter.relative(one.finding.path) or one.finding.path
            proof.append(f"{one.finding.rule} at {Site(path, line, '', cell)}: {one.why}")
        rules = self._kept("what the rules find and the runs kept", "see each rule", tuple(proof), files, after)
        return replace(rules, ways=frozenset(way for each in chosen for way in _WAYS.get(each.finding.rule, ())))

    def _chosen(
        self, before: Diagnosis, rewrites: Sequence[Rewrite], rewriter: RuleRewriter
    ) -> tuple[Sequence[Rewrite], Files, Diagnosis] | None:
        """Choose from the kept rewrites those that concern the fault, or more of them where these are not enough;
        return them with the program and its diagnosis."""
        wrong = bool(showing.wrong(before))
        kept = tuple(one for one in rewrites if one.verdict is Verdict.KEPT)
        telling = tuple(one for one in kept if not one.finding.rule.startswith(_STYLE))
        mending = tuple(one for one in telling if one.finding.rule in _WAYS)
        for chosen in dict.fromkeys((mending, telling, kept) if wrong else (telling,)):
            files = rewriter.some(one.key for one in chosen).files if chosen else {}
            if not files:
                continue
            after = self._diagnosed(files, names=False)
            if showing.better(before, after) if wrong else showing.no_worse(before, after):
                return chosen, files, after
        return None

    def _sources(self, diagnosis: Diagnosis) -> list[SourceFile]:
        found = []
        paths = {self._root / path for path in diagnosis.loaded}
        script = self._command.script
        if script is not None and script.is_file() and script.resolve() not in {path.resolve() for path in paths}:
            # A process that ends early, or a notebook, does not tell of it.
            paths.add(script)
        for path in sorted(paths):
            try:
                found.append(self._read(path))
            except SourceError:
                # The rules skip files that cannot be read.
                continue
        return found

    def _mended(self, fault: Fault, before: Diagnosis, first: _Kept | None) -> Diagnosis | None:
        """The diagnosis after the best proven change for ``fault``, of which ``first`` may be one; None if there is
        none."""
        kept = [] if first is None else [first]
        priced: list[_Kept] = []
        trials = self._trials(fault)
        left = _TRIALS if first is None else _BESIDE
        self._runner.ahead = self._asked(fault, trials[:left])
        for candidate, files in trials:
            if not left or len(kept) + len(priced) == _CHOICES:
                break
            if any(files == one.files or candidate.way in one.ways for one in (*kept, *priced)):
                continue
            left -= 1
            self._tell(f"trying: {candidate.title}")
            proof, trouble = self._proved(files, candidate) if showing.verified(fault, candidate) else ((), "")
            after = self._diagnosed(files, names=False)
            if not showing.helps(fault, before, after):
                proof, trouble = (), f"it does not help: {after.faults[0].headline if after.faults else after.reason}"
            elif not showing.verified(fault, candidate):
                proof, trouble = self._compared(fault, before, after, candidate, kept)
            one = self._kept(candidate.title, candidate.meaning, proof, files, after)
            one = replace(one, ways=frozenset({candidate.way} - {""}))
            if not trouble:
                kept.append(one)
            elif price := showing.price(fault, before, after):
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

    def _trials(self, fault: Fault) -> list[_Trial]:
        return [_Trial(each, files) for each in candidates(fault, self._source) if (files := self._with(each))]

    def _asked(self, fault: Fault, trials: Sequence[_Trial]) -> Asked:
        """What the verifications of ``trials`` will ask of the original, so that one run of it answers all."""
        wanted = Asked()
        for candidate, files in trials:
            if showing.verified(fault, candidate):
                with self._rewriter(files, candidate) as rewriter:
                    wanted |= asked_of(self._runner, rewriter, rewriter.all())
        return wanted

    def _compared(
        self, fault: Fault, before: Diagnosis, after: Diagnosis, candidate: Candidate, kept: Sequence[_Kept]
    ) -> tuple[tuple[str, ...], str]:
        """The proof, by diagnoses, that a change removes ``fault``; the second value says why there is none."""
        if candidate.summed:
            return showing.as_sum([one.after.measures for one in kept], after.measures)
        return showing.shown(fault, before, after)

    def _with(self, candidate: Candidate) -> Files | None:
        """The program with ``candidate`` made; None where a file cannot hold it."""
        try:
            new = {path: self._source(path).encode(text) for path, text in candidate.files.items()}
        except SourceError:
            # A cell of a notebook that would lose a magic, a character that the encoding lacks.
            return None
        return {**self._files, **new}

    def _source(self, path: str) -> SourceFile:
        """A file below the root with the changes made so far."""
        if path in self._files:
            return source_from_bytes(self._files[path], path, self._root / path)
        return replace(self._read(self._root / path), path=path)

    def _read(self, path: Path) -> SourceFile:
        """A file of the tree as first read: it may be edited while programs run."""
        place = path.resolve()
        if place not in self._first:
            self._first[place] = read_source(path)
        return self._first[place]

    @contextlib.contextmanager
    def _rewriter(self, files: Files, candidate: Candidate) -> Iterator[HandRewriter]:
        """Makes all changes so far, and ``candidate``, in the tree as it is."""
        rule = "rebuild" if candidate.fresh and not self._files else RULE
        with tempfile.TemporaryDirectory(prefix="codemod-fix-") as folder:
            for path, data in files.items():
                place = Path(folder) / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
            script = self._command.script
            yield HandRewriter(Path(folder), Promise.REPAIR, root=self._root, script=script, together=True, rule=rule)

    def _proved(self, files: Files, candidate: Candidate) -> tuple[tuple[str, ...], str]:
        """The verdicts of a verification on all changes so far; the second value says why they are not a proof."""
        with self._rewriter(files, candidate) as rewriter:
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
            runner=self._runner,
        )

    def _kept(self, title: str, meaning: str, proof: tuple[str, ...], files: Files, after: Diagnosis) -> _Kept:
        pairs = [(self._source(path), source_from_bytes(data, path)) for path, data in files.items()]
        diff = unified_text(change for old, new in pairs for change in old.shown(old.text, new.text))
        repair = Repair(title, meaning, proof, diff, after.measures)
        return _Kept(repair, dict(files), after)
