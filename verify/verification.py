"""The whole of ``codemod verify``: originals, rewrites, verdicts.

Every command is run on the original tree twice (once where there is nothing to rewrite), then on the rewritten one;
which files are rewritten follows from what the first run loaded, unless the caller says. The tree stays as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from codemods.apply import Wanted
from codemods.check import Targets, read_targets
from codemods.options import Options
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_source
from codemods.source.project import project_root
from verify.compare import compare
from verify.errors import VerifyError
from verify.faults import symptoms
from verify.isolation import Workspace
from verify.results import Comparison, Entry, Outcome, Rewrite, Run, Verdict, Verification, join
from verify.rewriting import Key, Lines, Rewriter, RuleRewriter, Version
from verify.runner import Place, Runner
from verify.settings import Command, Settings, is_notebook
from verify.stages import Groups, Stages, Tried

#: Told what is being done, for a person who waits.
Telling = Callable[[str], None]


@dataclass
class Verified:
    """A verification, and which rewrites it lets through."""

    verification: Verification

    def kept(self) -> frozenset[Key]:
        """The rewrites that were kept, as ``wanted`` of :func:`codemods.apply.apply` takes them."""
        return frozenset(
            frozenset(finding.key for finding in rewrite.findings)
            for rewrite in self.verification.rewrites
            if rewrite.verdict is Verdict.KEPT
        )


def verify(
    commands: Sequence[Command],
    *,
    options: Options,
    settings: Settings,
    tree: Path | None = None,
    targets: Sequence[SourceFile] | None = None,
    wanted: Wanted | None = None,
    rewriter: Rewriter | None = None,
    exclude: Sequence[str] = (),
    jobs: int | None = None,
    tell: Telling = lambda _: None,
    place: Callable[..., Place] = Workspace,
) -> Verified:
    """Run ``commands`` on the original and the rewritten tree and judge every rewrite.

    ``tree`` is the root of what is copied and rewritten, by default the project around the first command's script.
    ``targets`` are the files that may be rewritten, by default those of the tree that the commands load; ``wanted`` is
    asked which rewrites are made in them, as by :func:`codemods.apply.apply`. A ``rewriter`` makes other changes than
    our rules would; ``place`` is where programs run. Raises :class:`VerifyError` for what the user has to put right
    before anything can be run.
    """
    root = root_of(commands, tree)
    for command in commands:
        if not command.cwd.resolve().is_relative_to(root.resolve()) and not _inside(command, root):
            raise VerifyError(f"{command.text}: lies outside {root}; name the tree with --tree")
    with Runner(root, settings, place) as runner:
        trouble = runner.trouble()
        if trouble:
            return Verified(_unjudged(root, settings, trouble))
        originals = []
        for command in commands:
            tell(f"original: {command.text}")
            originals.append(runner.run("original", command))
        tell("looking for rewrites")
        if rewriter is None:
            chosen = targets if targets is not None else _targets(root, commands, originals, exclude)
            rewriter = RuleRewriter(chosen, options, root=root, jobs=jobs, wanted=wanted)
        version = rewriter.all()
        entries = [
            _entry(runner, rewriter, version, command, original, settings, tell)
            for command, original in zip(commands, originals, strict=True)
        ]
    rewrites = _told(version, join([entry.rewrites for entry in entries]))
    reason, advice = _reason(entries)
    verification = Verification(
        root=str(root),
        entries=tuple(entries),
        rewrites=rewrites,
        diff=version.diff.decode("utf-8", "replace"),
        readable=version.readable,
        judged=not reason,
        reason=reason,
        advice=advice,
        settings=dataclasses.asdict(settings),
        notebooks={path: source for path, source in version.sources.items() if source.notebook is not None},
    )
    return Verified(verification)


def _entry(
    runner: Runner,
    rewriter: Rewriter,
    version: Version,
    command: Command,
    original: Run,
    settings: Settings,
    tell: Telling,
) -> Entry:
    groups = version.groups
    if not groups:
        return Entry(command.argv, original, None, None, None, None, ())
    seeds = original.record.seeds
    before = {group.key: group.touched.before() for group in groups}
    tell(f"original again: {command.text}")
    # The second run is the one to show: it was watched as the rewritten one will be, which costs memory and time.
    again = dataclasses.replace(original, name="original again")
    original = runner.run("original", command, watch=_below(rewriter, before.values()), replay=seeds)
    repeatable = compare(original, again, tolerance=settings.tolerance)

    def execute(some: Groups) -> Tried:
        made = version if len(some) == len(groups) else rewriter.some(group.key for group in some)
        tell(f"rewritten ({len(some)} of {len(groups)} rewrites): {command.text}")
        watched = made.watch(some)
        lines = _below(rewriter, watched.values())
        run = runner.run("rewritten", command, files=made.files, watch=lines, replay=seeds)
        touched = frozenset(line for group in lines for line in group)
        return Tried(run, _reached(rewriter, watched, run), made.made, touched)

    stages = Stages(
        execute,
        original,
        _reached(rewriter, before, original),
        deterministic=repeatable.difference.value == "identical",
        tolerance=settings.tolerance,
        place=version.place,
    )
    outcome = stages.solve(groups)
    final = outcome.final or (outcome.runs[-1][1] if outcome.runs else None)
    comparison: Comparison | None = None
    if final is not None:
        comparison = compare(original, final, tolerance=settings.tolerance)
    staged = tuple((name, run) for name, run in outcome.runs if run is not final)
    return Entry(command.argv, original, again, final, repeatable, comparison, tuple(outcome.rewrites), staged)


def _below(rewriter: Rewriter, watched: Iterable[Lines]) -> list[list[tuple[str, int]]]:
    """The lines to watch, with their paths below the root."""
    places = ([(rewriter.relative(path), line) for path, line in lines] for lines in watched)
    return [[(path, line) for path, line in group if path is not None] for group in places]


def _reached(rewriter: Rewriter, watched: dict[Key, Lines], run: Run) -> frozenset[Key]:
    seen = {place for record in run.records for place in record.reached}
    return frozenset(
        key for key, lines in watched.items() if any((rewriter.relative(path), line) in seen for path, line in lines)
    )


def _told(version: Version, rewrites: tuple[Rewrite, ...]) -> tuple[Rewrite, ...]:
    """Return ``rewrites`` in the order of the diff."""
    order = {group.key: index for index, group in enumerate(version.groups)}
    return tuple(
        sorted(
            rewrites, key=lambda r: (r.finding.path, r.finding.span, order.get(frozenset(f.key for f in r.findings), 0))
        )
    )


def root_of(commands: Sequence[Command], tree: Path | None = None) -> Path:
    """The root of what is run: ``tree``, or the project around the first command's script."""
    if tree is not None:
        if not tree.is_dir():
            raise VerifyError(f"{tree}: no such folder")
        return tree.absolute()
    first = commands[0]
    return project_root(first.script.parent if first.script is not None else first.cwd)


def _inside(command: Command, root: Path) -> bool:
    return command.script is not None and command.script.resolve().is_relative_to(root.resolve())


def _targets(root: Path, commands: Sequence[Command], runs: Sequence[Run], exclude: Sequence[str]) -> list[SourceFile]:
    """The files of the tree that the runs loaded; all of them where that is not known."""
    loaded = {root / path for run in runs for record in run.records for path in record.loaded}
    # Python does not know of a notebook that it was loaded.
    loaded |= {c.script for c in commands if c.script is not None and is_notebook(c.script.name)}
    if not loaded:
        return _all(root, exclude)
    found = {source.absolute.resolve(): source for source in _all(root, exclude)} if exclude else None
    sources = []
    for path in sorted(loaded | {command.script for command in commands if command.script is not None}):
        try:
            source = read_source(path)
        except SourceError:
            continue
        if found is None or source.absolute.resolve() in found:
            sources.append(source)
    return sources


def _all(root: Path, exclude: Sequence[str]) -> list[SourceFile]:
    targets: Targets = read_targets([str(root)], exclude=exclude)
    return targets.sources


def _reason(entries: Sequence[Entry]) -> tuple[str, tuple[str, ...]]:
    """Return why nothing could be judged and what to do about it; empty if one entry's original ran to some purpose."""
    reasons: list[str] = []
    advice: list[str] = []
    for entry in entries:
        reason, more = _reason_of(entry)
        if not reason:
            return "", ()
        reasons.append(reason)
        advice.extend(more)
    return "; ".join(dict.fromkeys(reasons)), tuple(dict.fromkeys(advice))


def _reason_of(entry: Entry) -> tuple[str, tuple[str, ...]]:
    original = entry.original
    if any(rewrite.verdict in (Verdict.KEPT, Verdict.BROKEN) for rewrite in entry.rewrites):
        return "", ()
    trained = bool(original.record.backwards)
    seen = symptoms(original)
    if seen.other is not None and not trained:
        error = f"{seen.other.type}: {seen.other.message.strip().splitlines()[0] if seen.other.message.strip() else ''}"
        reason = f"the original stops before its first backward: {error[:200]}"
        return reason, _advice(original)
    if original.outcome is Outcome.NOT_STARTED:
        return "; ".join(original.notes) or "the program could not be started", ()
    if original.outcome is Outcome.RAISED and seen.other is None and seen.error is None and not trained:
        status = f" (status {original.status})" if original.status is not None else ""
        return f"the original stops{status} before its first backward", ("look at its output below",)
    if original.outcome in (Outcome.TIMEOUT, Outcome.MEMORY, Outcome.DISK, Outcome.KILLED) and not trained:
        return f"the original {original.outcome.value} before its first backward", (
            "a longer --timeout, fewer --batches or arguments that make the run smaller may help",
        )
    return "", ()


def _advice(run: Run) -> tuple[str, ...]:
    record = next((record for record in run.records if record.error), run.record)
    missing, error = record.missing, record.error
    if missing and error is not None and error.type in ("ModuleNotFoundError", "ImportError"):
        return (f"install {missing} for the interpreter that --python names, or name another one",)
    if missing:
        stand_in = f"--stand-in {missing}=float32:100,3,32,32"
        return (f"give the path of the data as arguments, or let a stand-in be made: {stand_in}",)
    return ("give the arguments that the script needs after --",)


def _unjudged(root: Path, settings: Settings, reason: str) -> Verification:
    return Verification(str(root), (), (), "", "", False, reason, (), dataclasses.asdict(settings))
