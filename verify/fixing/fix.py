"""The loop of ``codemod fix``: diagnose, try, prove, go on with the repaired program."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.source.diffs import unified
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_source
from codemods.source.options import Options
from codemods.terms.findings import Promise
from verify.diagnosis.diagnose import Telling, diagnose
from verify.diagnosis.model import Diagnosis, Fault, Kind
from verify.fixing.candidates import candidates
from verify.isolation import Workspace
from verify.measured.results import Verdict
from verify.running.against import HandRewriter
from verify.running.rewriting import Rewriter, RuleRewriter
from verify.running.runner import Place
from verify.running.settings import Command, Settings
from verify.verification import Verified, verify

#: Rounds, each of which removes a fault; candidates that are tried for one fault.
_ROUNDS = 4
_TRIALS = 6
#: Faults that a verification shows to be gone.
_PROVABLE = frozenset({Kind.SECOND_BACKWARD, Kind.CHANGED_IN_PLACE, Kind.GROWING_GRAPH})

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Repair:
    """One change that was run and kept: what it does, what it means, the verdicts on it, and its diff."""

    title: str
    meaning: str
    proof: tuple[str, ...]
    diff: str


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
        if _wrong(after):
            after = self._by_rules(after)
        for _ in range(_ROUNDS):
            better = next((d for fault in _wrong(after) if (d := self._mended(fault, after)) is not None), None)
            if better is None:
                break
            after = better
        return Fixed(before, after, tuple(self._repairs), tuple(self._refused), dict(self._files))

    def _diagnosed(self, files: Files) -> Diagnosis:
        return diagnose(
            self._command, self._root, settings=self._settings, tell=self._tell, place=self._place, files=files
        )

    def _by_rules(self, before: Diagnosis) -> Diagnosis:
        """Try what the static half finds, advice that is likely included."""
        rewriter = RuleRewriter(self._sources(before), self._options, root=self._root, jobs=1)
        kept = [one for one in self._verified(rewriter).verification.rewrites if one.verdict is Verdict.KEPT]
        files = rewriter.some(one.key for one in kept).files if kept else {}
        if not files:
            return before
        after = self._diagnosed(files)
        if not _better(before, after):
            return before
        proof = tuple(f"{one.finding.rule} at {one.finding.path}:{one.finding.span.line}: {one.why}" for one in kept)
        self._take("what the rules find and the runs kept", "see each rule", proof, files)
        return after

    def _sources(self, diagnosis: Diagnosis) -> list[SourceFile]:
        found = []
        for path in diagnosis.loaded:
            try:
                found.append(read_source(self._root / path))
            except SourceError:
                # The rules say nothing of what cannot be read.
                continue
        return found

    def _mended(self, fault: Fault, before: Diagnosis) -> Diagnosis | None:
        """The diagnosis after the first candidate for ``fault`` that is proved; None where there is none."""
        for candidate in candidates(fault, self._text)[:_TRIALS]:
            files = {**self._files, **{path: text.encode() for path, text in candidate.files.items()}}
            self._tell(f"trying: {candidate.title}")
            after = self._diagnosed(files)
            if not _better(before, after):
                left = after.faults[0].headline if after.faults else after.reason
                self._refused.append(Refused(candidate.title, f"it does not help: {left}"))
                continue
            proof, trouble = self._proved(files)
            if trouble:
                self._refused.append(Refused(candidate.title, trouble))
                continue
            self._take(candidate.title, candidate.meaning, proof, files)
            return after
        return None

    def _text(self, path: str) -> str:
        if path in self._files:
            return self._files[path].decode()
        return (self._root / path).read_text(encoding="utf-8")

    def _proved(self, files: Files) -> tuple[tuple[str, ...], str]:
        """What a verification says of all that is changed so far; the second is why it is no proof."""
        with tempfile.TemporaryDirectory(prefix="codemod-fix-") as folder:
            for path, data in files.items():
                place = Path(folder) / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
            script = self._command.script
            by_hand = HandRewriter(Path(folder), Promise.REPAIR, root=self._root, script=script, together=True)
            verified = self._verified(by_hand)
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

    def _take(self, title: str, meaning: str, proof: tuple[str, ...], files: Files) -> None:
        diff = b"".join(
            unified(path, self._text(path).encode(), data)
            for path, data in files.items()
            if self._text(path).encode() != data
        )
        self._repairs.append(Repair(title, meaning, proof, diff.decode("utf-8", "replace")))
        self._files = dict(files)


def _wrong(diagnosis: Diagnosis) -> list[Fault]:
    """The faults that a run can show to be mended."""
    return [fault for fault in diagnosis.faults if fault.kind in _PROVABLE]


def _better(before: Diagnosis, after: Diagnosis) -> bool:
    """Whether a fault is gone, none came, and the program goes as far at least."""
    old, new = [fault.kind for fault in before.faults], [fault.kind for fault in after.faults]
    if after.reason and not before.reason:
        return False
    return len(new) < len(old) and not set(new) - set(old) and after.backwards >= before.backwards
