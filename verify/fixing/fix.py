"""The loop of ``codemod fix``: diagnose, try, prove, go on with the repaired program."""

from __future__ import annotations

import contextlib
import functools
import itertools
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from codemods.source.diffs import unified_text
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_source, source_from_bytes
from codemods.source.options import Options
from codemods.terms.findings import Promise
from verify.diagnosis.diagnose import Telling, cut_short, examine, grows, looking, whole_epochs
from verify.diagnosis.model import Diagnosis, Fault
from verify.fixing import showing
from verify.fixing.beside import Beside
from verify.fixing.candidates import candidates
from verify.fixing.clues import Candidate
from verify.fixing.repairs import Files, Fixed, Refused, Repair
from verify.fixing.ruled import Ruled, is_style
from verify.fixing.runs import SharedRunner
from verify.fixing.searching import CHOICES, Kept, Outcome, Search, Trial, Written, apart, no_help
from verify.isolation import Place, Workspace
from verify.measured.results import Run, Verdict, Verification
from verify.measured.values import Site
from verify.running.against import RULE, HandRewriter
from verify.running.rewriting import Rewriter, below
from verify.running.runner import Asked
from verify.running.settings import Command, Settings
from verify.verification import asked_of, verify

_MADE = ", with made-up values"
#: Rounds, each of which removes a fault; candidates that are tried for one fault, and sets of rewrites of the rules.
_ROUNDS = 4
_TRIALS = 6
_RULED = 4
#: How many changes are tried beside what the rules have mended.
_BESIDE = 3
#: Changes that uncover another fault and are followed there; how many may be on one way.
_FOLLOWED = 2
_DEPTH = 2


class Fixer:
    """Repairs the program that ``command`` runs on the tree at ``root``; the tree stays as it is.

    ``jobs`` changes are tried at a time, where the program leaves room for that.
    """

    def __init__(
        self,
        command: Command,
        root: Path,
        *,
        settings: Settings,
        options: Options,
        tell: Telling = lambda _: None,
        place: Callable[..., Place] = Workspace,
        jobs: int = 1,
    ) -> None:
        self._jobs = jobs
        self._command = command
        self._root = root
        self._first: dict[Path, SourceFile] = {}
        # Looking for other ways to a line takes minutes; the doctor's run has been there.
        self._settings = replace(settings, reach=0.0)
        self._reach = looking(settings)
        self._options = replace(options, likely=True)
        self._tell = tell
        self._place = place
        self._runner = SharedRunner(root, self._settings, place)
        self._files: dict[str, bytes] = {}
        #: Those of ``_files`` that are proved: what the next changes are held against.
        self._base: dict[str, bytes] = {}
        self._repairs: list[Repair] = []
        self._refused: list[Refused] = []
        #: Of the changes in ``_files`` the last ones, which nothing has proved so far.
        self._unproved: list[Candidate] = []

    def fix(self) -> Fixed:
        """Repeat until nothing is found or nothing helps. Raises :class:`verify.errors.VerifyError` as `verify`
        does."""
        with self._runner as plain:
            before = self._diagnosed(self._files)
            if cut_short(before, self._settings):
                settings = whole_epochs(self._settings)
                with SharedRunner(self._root, settings, self._place) as self._runner:
                    self._runner.take_up(plain)
                    whole = self._diagnosed(self._files)
                    if grows(whole):
                        self._settings = settings
                        return self._fix(whole)
                self._runner = plain
            return self._fix(before)

    def _fix(self, before: Diagnosis) -> Fixed:
        after = self._past(before)
        if not after.reason or showing.wrong(after):
            for _ in range(_ROUNDS):
                faults = self._to_mend(after)
                better = next((d for fault in faults if (d := self._mended(fault, after)) is not None), None)
                if not faults and not self._repairs and self._runner.leaving is None:
                    better = self._by_rules(before)
                if better is None:
                    break
                # What is left is named in full only now: of most changes nobody wants to know it.
                after = self._diagnosed(self._files) if better.faults else better
        besides = self._ruled(after.loaded).besides() if self._repairs or showing.wrong(before) else ()
        sources = {path: self._read(self._root / path) for path in self._files}
        return Fixed(before, after, tuple(self._repairs), tuple(self._refused), dict(self._files), sources, besides)

    def _to_mend(self, diagnosis: Diagnosis) -> list[Fault]:
        """The faults whose removal runs can show: with made-up values only a verification can."""
        faults = showing.wrong(diagnosis) or showing.idle(diagnosis)
        made_up = self._runner.leaving is not None
        return [fault for fault in faults if fault.kind in showing.PROVABLE] if made_up else faults

    def _diagnosed(self, files: Files, *, names: bool = True) -> Diagnosis:
        return examine(
            self._command,
            self._runner,
            tell=self._tell,
            files=files,
            names=names,
            mended=self._stops_at_old_code,
            reach=self._reach,
        )

    def _stops_at_old_code(self, run: Run) -> bool:
        """Whether ``run`` ends at a line that the rules mend."""
        where = run.record.error_site
        return where is not None and self._ruled(run.record.loaded).at(where) is not None

    def _past(self, before: Diagnosis) -> Diagnosis:
        """Go on with what the rules make of the lines at which the program stops, one after the other, where the doctor
        does not know why; the diagnosis then."""
        after = before
        for _ in range(_ROUNDS):
            better = None if after.stop is None else self._got_past(after, after.stop)
            if better is None:
                break
            after = better
        return after

    def _got_past(self, before: Diagnosis, stop: Site) -> Diagnosis | None:
        chosen = self._ruled(before.loaded).at(stop)
        if chosen is None:
            return None
        self._tell(f"trying: {chosen.candidate.title}")
        after = self._diagnosed(chosen.files)
        proof, trouble = self._proved(chosen.files, chosen.candidate)
        if trouble and chosen.candidate.known:
            # A fault that shows behind it says nothing against it.
            proof, trouble = showing.past(before, after)
        if trouble:
            self._refused.append(Refused(chosen.candidate.title, trouble))
            return None
        self._repairs.append(self._kept(chosen.candidate, proof, chosen.files, after, ()).repair)
        self._go_on_with(chosen.files)
        return after

    def _by_rules(self, before: Diagnosis) -> Diagnosis | None:
        """Make the rewrites of the rules that the runs keep, where nothing is wrong; the diagnosis with them."""
        ruled = self._ruled(before.loaded)
        rewriter = ruled.rewriter
        if not ruled.besides():
            return None
        self._runner.ahead = asked_of(self._runner, rewriter, rewriter.all())
        verification = self._verified(rewriter)
        kept = [one for one in verification.rewrites if one.verdict is Verdict.KEPT and not is_style(one)]
        files = {**self._files, **rewriter.some(one.key for one in kept).files} if kept else {}
        after = self._diagnosed(files, names=False) if files else None
        if after is None or not showing.no_worse(before, after):
            return None
        proof = []
        for one in kept:
            cell, line = verification.place(one.finding.path, one.finding.span.line)
            path = rewriter.relative(one.finding.path) or one.finding.path
            proof.append(f"{one.finding.rule} at {Site(path, line, '', cell)}: {one.why}")
        together = Candidate("what the rules find and the runs kept", "see each rule", {})
        self._repairs.append(self._kept(together, tuple(proof), files, after, ()).repair)
        self._files = dict(files)
        return after

    def _ruled(self, loaded: Collection[str], files: Files | None = None) -> Ruled:
        """What the rules find in the files that were ``loaded``, with ``files``, by default the changes made so far."""
        files = self._files if files is None else files
        return Ruled(self._sources(loaded, files), self._options, self._root, files)

    def _sources(self, loaded: Collection[str], files: Files) -> list[SourceFile]:
        paths = set(loaded)
        script = self._command.script
        if script is not None and script.is_file() and (place := below(script, self._root)) is not None:
            # A process that ends early, or a notebook, does not tell of it.
            paths.add(place)
        found = []
        for path in sorted(paths):
            try:
                found.append(self._source(path, files))
            except SourceError:
                # The rules skip files that cannot be read.
                continue
        return found

    def _mended(self, fault: Fault, before: Diagnosis) -> Diagnosis | None:
        """The diagnosis after the best proven change for ``fault``; None if there is none."""
        jobs = self._jobs if self._runner.spare() else 1
        attempt: Callable[[Trial], Outcome] = functools.partial(self._tried, fault)
        with Beside(attempt, jobs, self._runner.cancel) as tries:
            return self._searched(Search(fault, before, tries))

    def _searched(self, search: Search) -> Diagnosis | None:
        fault, before = search.fault, search.before
        trials = self._trials(fault, before.loaded)
        ruled = self._ruled(before.loaded)
        chosen = itertools.islice(ruled.trials(fault), _RULED)
        first = list(itertools.islice(chosen, 1))
        self._runner.ahead = self._asked(fault, [*first, *trials[: _BESIDE if first else _TRIALS]])
        for some in itertools.chain(first, chosen):
            self._judge(search, some, soon=apart(some, trials[:1]), by_rules=True)
            if search.kept:
                fewest = ruled.fewest(some, lambda files: self._helps(search, files)) if len(some.groups) > 1 else some
                if len(fewest.groups) < len(some.groups):
                    search.kept.clear()
                    self._judge(search, fewest, by_rules=True)
                break
            if search.uncovering and (mended := self._behind(search, *search.uncovering.pop())) is not None:
                return mended
        left = _BESIDE if search.kept or self._unproved else _TRIALS
        for number, written in enumerate(trials, 1):
            if not left or search.full:
                break
            if any(written.files == one.files or written.ways & one.ways for one in (*search.kept, *search.priced)):
                continue
            left -= 1
            # Where this one may be the last choice, the next one may be of no use.
            more = left and len(search.kept) + len(search.priced) + 1 < CHOICES
            self._judge(search, written, soon=apart(written, trials[number : number + 1] if more else []))
        for trial, after in search.uncovering[:_FOLLOWED]:
            if not search.kept and (mended := self._behind(search, trial, after)) is not None:
                return mended
        return self._picked(search)

    def _helps(self, search: Search, files: Files) -> bool:
        return showing.helps(search.fault, search.before, self._diagnosed(files, names=False))

    def _tried(self, fault: Fault, trial: Trial) -> Outcome:
        """Run the program with ``trial``; several threads may do that at once."""
        self._tell(f"trying: {trial.candidate.title}")
        verified = showing.verified(fault, trial.candidate)
        proof, trouble = self._proved(trial.files, trial.candidate) if verified else ((), "")
        return Outcome(proof, trouble, self._diagnosed(trial.files, names=False))

    def _judge(self, search: Search, trial: Trial, *, soon: Sequence[Trial] = (), by_rules: bool = False) -> None:
        """Run the program with ``trial``, and file it under what that shows; ``soon`` follow. Of what ``by_rules`` is
        tried it is not said that it does not help: it may never have been meant to."""
        fault, before, candidate = search.fault, search.before, trial.candidate
        proof, trouble, after = search.tries.outcome(trial, soon)
        helps = showing.helps(fault, before, after)
        if not helps and (further := self._mending_its_stop(trial, before, after)) is not None:
            self._judge(search, further, by_rules=by_rules)
            return
        verified = showing.verified(fault, candidate)
        if not helps:
            if verified and showing.uncovers(fault, before, after):
                search.uncovering.append((trial, after))
            proof, trouble = (), no_help(after)
        elif not verified:
            # What went before it is proved only by a verification.
            why = "it cannot be verified with what went before it"
            proof, trouble = ((), why) if self._unproved else self._compared(search, after, candidate)
        one = self._kept(candidate, proof, trial.files, after, trial.ways)
        starved = showing.cut_from(fault, before, after)
        if not trouble and starved:
            search.doubted.append(one)
        if not trouble and (not starved or "rebuild" in trial.ways):
            # What is built again is cut from nothing.
            search.kept.append(one)
        elif not self._unproved and (price := showing.price(fault, before, after)):
            gone = "the fault is gone, and the first loss is the same"
            search.priced.append(replace(one, repair=replace(one.repair, proof=(gone,), price=price)))
        elif helps or not by_rules:
            search.refuse(candidate, trouble)

    def _mending_its_stop(self, trial: Trial, before: Diagnosis, after: Diagnosis) -> Trial | None:
        """``trial`` with what the rules make of the line at which the program stops further on; None for nothing."""
        if after.stop is None or after.stop == before.stop or after.backwards < before.backwards:
            return None
        mended = self._ruled(after.loaded, trial.files).at(after.stop)
        if mended is None:
            return None
        title = f"{trial.candidate.title}; {mended.candidate.title}"
        candidate = replace(trial.candidate, title=title, parts=trial.candidate.parts + 1)
        return Written(candidate, mended.files, trial.ways)

    def _picked(self, search: Search) -> Diagnosis | None:
        """Go on with the best of the changes that were kept."""
        search.excuse()
        self._refused += search.refused
        if not search.kept:
            # What a form of a change costs says more than that another form of it does not help.
            priced = {one.repair.title: f"it mends the fault, but {one.repair.price}" for one in search.priced}
            self._refused = [one for one in self._refused if one.title not in priced]
            self._refused += [Refused(title, why) for title, why in priced.items()]
            return None
        best = search.best()
        others = tuple(one.repair for one in (*search.kept, *search.priced) if one is not best)
        self._repairs.append(replace(best.repair, others=others))
        self._go_on_with(best.files)
        return best.after

    def _go_on_with(self, files: Files) -> None:
        """Take ``files``, changes that are proved, for the program."""
        self._files, self._base = dict(files), dict(files)
        self._runner.base = self._base

    def _behind(self, search: Search, trial: Trial, after: Diagnosis) -> Diagnosis | None:
        """Go on with ``trial``, which removes the fault and uncovers another: the diagnosis once that is mended too,
        and both are proved together; None, and nothing is changed, where that fails."""
        if len(self._unproved) == _DEPTH:
            return None
        files, repairs, refused = self._files, list(self._repairs), list(self._refused)
        seen = (
            f"proved together with the next repair: the fault is gone, and behind it shows: {after.faults[0].headline}"
        )
        self._repairs.append(self._kept(trial.candidate, (seen,), trial.files, after, trial.ways).repair)
        self._files = dict(trial.files)
        self._unproved.append(trial.candidate)
        named = self._diagnosed(self._files)
        came = [fault for fault in showing.came(search.before, named) if fault.kind in showing.PROVABLE]
        mended = self._mended(came[0], named) if came else None
        self._unproved.pop()
        if mended is None:
            self._files, self._repairs, self._refused = files, repairs, refused
            search.refuse(trial.candidate, no_help(after))
        return mended

    def _trials(self, fault: Fault, loaded: Collection[str]) -> list[Written]:
        found = ((each, self._with(each)) for each in candidates(fault, self._source, loaded))
        return [Written(each, files, frozenset({each.way} - {""})) for each, files in found if files]

    def _asked(self, fault: Fault, trials: Sequence[Trial]) -> Asked:
        """What the verifications of ``trials`` will ask of the original, so that one run of it answers all."""
        wanted = Asked()
        for trial in trials:
            if showing.verified(fault, trial.candidate):
                with self._rewriter(trial.files, trial.candidate) as rewriter:
                    wanted |= asked_of(self._runner, rewriter, rewriter.all())
        return wanted

    def _compared(self, search: Search, after: Diagnosis, candidate: Candidate) -> tuple[tuple[str, ...], str]:
        """The proof, by diagnoses, that a change removes the fault; the second value says why there is none."""
        if candidate.summed:
            return showing.as_sum([one.after.measures for one in search.kept], after.measures)
        return showing.shown(search.fault, search.before, after)

    def _with(self, candidate: Candidate) -> Files | None:
        """The program with ``candidate`` made; None where a file cannot hold it."""
        try:
            new = {path: self._source(path).encode(text) for path, text in candidate.files.items()}
        except SourceError:
            # A cell of a notebook that would lose a magic, a character that the encoding lacks.
            return None
        return {**self._files, **new}

    def _source(self, path: str, files: Files | None = None) -> SourceFile:
        """A file below the root with ``files``, by default the changes made so far."""
        files = self._files if files is None else files
        if path in files:
            return source_from_bytes(files[path], path, self._root / path)
        return replace(self._read(self._root / path), path=path)

    def _read(self, path: Path) -> SourceFile:
        """A file of the tree as first read: it may be edited while programs run."""
        place = path.resolve()
        if place not in self._first:
            self._first[place] = read_source(path)
        return self._first[place]

    @contextlib.contextmanager
    def _rewriter(self, files: Files, candidate: Candidate) -> Iterator[HandRewriter]:
        """Makes ``files``, of which the last is ``candidate``, in the program as far as it is proved."""
        rule = "rebuild" if any(each.fresh for each in (*self._unproved, candidate)) else RULE
        known = {path: source_from_bytes(data, path, self._root / path) for path, data in self._base.items()}
        with tempfile.TemporaryDirectory(prefix="codemod-fix-") as folder:
            for path, data in files.items():
                place = Path(folder) / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
            script = self._command.script
            yield HandRewriter(
                Path(folder),
                Promise.REPAIR,
                root=self._root,
                script=script,
                together=True,
                rule=rule,
                known=known,
                meant=True,
            )

    def _proved(self, files: Files, candidate: Candidate) -> tuple[tuple[str, ...], str]:
        """The verdicts of a verification on all that is not proved so far; the second value says why they are not a
        proof."""
        with self._rewriter(files, candidate) as rewriter:
            verified = self._verified(rewriter)
        rewrites = verified.rewrites
        enough = {Verdict.KEPT, *([Verdict.PARTLY_REACHED] if candidate.known else [])}
        lost = next((one for one in rewrites if one.verdict not in enough), None)
        if lost is not None or not rewrites:
            why = verified.reason if lost is None else f"{lost.verdict.value}: {lost.why}"
            return (), why or "nothing was judged"
        return tuple(f"{one.verdict.value}{_MADE if one.made else ''}: {one.why}" for one in rewrites), ""

    def _verified(self, rewriter: Rewriter) -> Verification:
        return verify(
            [self._command],
            options=self._options,
            settings=self._settings,
            tree=self._root,
            rewriter=rewriter,
            tell=self._tell,
            runner=self._runner,
        )

    def _kept(
        self, candidate: Candidate, proof: tuple[str, ...], files: Files, after: Diagnosis, ways: Collection[str]
    ) -> Kept:
        pairs = [(self._source(path), source_from_bytes(data, path)) for path, data in files.items()]
        diff = unified_text(change for old, new in pairs for change in old.shown(old.text, new.text))
        repair = Repair(candidate.title, candidate.meaning, proof, diff, after.measures)
        return Kept(repair, dict(files), after, frozenset(ways), candidate.parts, candidate.same)
