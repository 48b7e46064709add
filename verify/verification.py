"""The whole of ``codemod verify``: originals, rewrites, verdicts.

Every command is run on the original tree twice (once where there is nothing to rewrite), then on the rewritten one;
which files are rewritten follows from what the first run loaded, unless the caller says. The tree stays as it is.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path

from codemods.rewriting.apply import Wanted
from codemods.source.discovery import project_root
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_source
from codemods.source.options import Options
from verify.errors import OutOfTime, VerifyError
from verify.isolation import Place, Workspace
from verify.judging.bench import Telling, asked, judge
from verify.judging.leaving import cautious
from verify.judging.reasons import joined, noted, reason_of
from verify.judging.returns import returning
from verify.judging.search import Search
from verify.judging.shapes import judge_by_shapes
from verify.measured.results import Entry, Rewrite, Run, Verdict, Verification, join
from verify.running import missing
from verify.running.pieces import brought_past
from verify.running.rewriting import Rewriter, RuleRewriter, Version, below
from verify.running.runner import Asked, Runner
from verify.running.settings import Command, Settings


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
    runner: Runner | None = None,
) -> Verification:
    """Run ``commands`` on the original and the rewritten tree and judge every rewrite.

    ``tree`` is the root of what is copied and rewritten, by default the project around the first command's script.
    ``targets`` are the files that may be rewritten, by default those of the tree that the commands load; ``wanted`` is
    asked which rewrites are made in them, as by :func:`codemods.rewriting.apply.apply`. A ``rewriter`` makes other
    changes than our rules would; ``place`` is where programs run; a ``runner`` that is open already has a place, a tree
    and settings of its own. Raises :class:`VerifyError` for what the user has to put right before anything can be run.
    """
    root = root_of(commands, tree)
    for command in commands:
        if not command.cwd.resolve().is_relative_to(root.resolve()) and not _inside(command, root):
            raise VerifyError(f"{command.text}: lies outside {root}; name the tree with --tree")
    with contextlib.nullcontext(runner) if runner is not None else Runner(root, settings, place) as runner:
        trouble = runner.trouble()
        if trouble:
            return Verification(str(root), (), (), "", "", False, trouble, (), settings.told())
        if rewriter is not None:
            runner.returning = returning(rewriter, rewriter.all(), lambda: _texts(runner, exclude))

        ruled: dict[tuple[Path, ...], RuleRewriter] = {}

        def rules(files: Sequence[SourceFile]) -> RuleRewriter:
            """What rewrites ``files`` by rule: they are analysed once, however often they are asked for."""
            known = tuple(source.absolute for source in files)
            return ruled.setdefault(known, RuleRewriter(files, options, root=root, jobs=jobs, wanted=wanted))

        def mended(command: Command, run: Run) -> bool:
            """Whether ``run`` of ``command`` ends at a line that is rewritten."""
            where = run.record.error_site
            if where is None or run.record.error is None:
                return False
            by = rewriter
            with runner.aside():
                if by is None:
                    files = targets if targets is not None else _targets(runner, [command], [run], exclude)
                    by = rules(files)
                findings = [finding for group in by.all().groups for finding in group.findings]
            return any((where.path, where.line) == (each.path, each.span.line) for each in findings)

        originals = []
        lacked = []
        given = runner.instead
        late: tuple[str, ...] = ()
        for number, command in enumerate(commands):
            tell(f"original: {command.text}")
            # What one command lacks may be there for another, which goes its way with it.
            runner.instead = given
            try:
                originals.append(_first(runner, command, tell, functools.partial(mended, command)))
                lacked.append(runner.instead)
            except OutOfTime as error:
                late = tuple(f"{command.text} was not run: {error}" for command in commands[number:])
                commands = commands[:number]
                break
        tell("looking for rewrites")
        with runner.aside():
            if rewriter is None:
                rewriter = rules(targets if targets is not None else _targets(runner, commands, originals, exclude))
            version = rewriter.all()
        runs = list(zip(commands, originals, lacked, strict=True))
        entries = _entries(runner, rewriter, version, runs, exclude, tell)
        # Who goes on with the runner goes on with what was found.
        runner.instead = lacked[-1] if lacked else given
        # After those of the commands come the entries that were found on the way.
        found = [reason_of(entry, command, runner) for entry, command in zip_longest(entries, commands)]
    if not all(reason for reason, _ in found):
        entries = [noted(entry, *told) for entry, told in zip(entries, found, strict=True)]
    rewrites = _told(version, join([entry.rewrites for entry in entries]))
    reason, advice = joined(found)
    return Verification(
        root=str(root),
        entries=tuple(entries),
        rewrites=rewrites,
        diff=version.diff.decode("utf-8", "replace"),
        readable=version.readable,
        judged=not reason,
        reason=reason,
        advice=(*advice, *late),
        settings=settings.told(),
        notebooks={path: source for path, source in version.sources.items() if source.notebook is not None},
    )


def _texts(runner: Runner, exclude: Sequence[str]) -> dict[str, str]:
    """The texts of the tree by path below the root, notebooks left out."""
    sources = [source for source in runner.sources(exclude) if source.notebook is None]
    return {place: source.text for source in sources if (place := below(source.absolute, runner.root)) is not None}


def _entries(
    runner: Runner,
    rewriter: Rewriter,
    version: Version,
    runs: Sequence[tuple[Command, Run, missing.Instead]],
    exclude: Sequence[str],
    tell: Telling,
) -> list[Entry]:
    """Judge the rewrites of ``version`` by each command, and by what else reaches them; of ``runs`` each has what stood
    in for what it lacked."""
    search = None if runner.settings.shapes else _search(runner, rewriter, version, exclude, tell)
    entries = []
    for command, original, instead in runs:
        runner.instead = instead
        if search is None:
            entries.append(judge_by_shapes(runner, rewriter, version, command, original, tell))
        else:
            entries.append(_judged(runner, rewriter, version, command, original, tell, search.also))
    if search is None:
        return entries
    return search.run([(command, instead) for command, _, instead in runs], entries)


def _judged(
    runner: Runner,
    rewriter: Rewriter,
    version: Version,
    command: Command,
    original: Run,
    tell: Telling,
    also: frozenset[tuple[str, int]],
) -> Entry:
    try:
        # Of what a run leaves out the runner may know before.
        return cautious(judge(runner, rewriter, version, command, original, tell, also=also))
    except OutOfTime as error:
        rewrites = tuple(Rewrite(group.findings, Verdict.NOT_JUDGED, str(error)) for group in version.groups)
        return Entry(original.command, original, rewrites=rewrites)


def _search(runner: Runner, rewriter: Rewriter, version: Version, exclude: Sequence[str], tell: Telling) -> Search:
    # Where nothing is rewritten, nothing is to be reached.
    sources = [each for each in runner.sources(exclude) if each.notebook is None] if version.groups else []
    return Search(runner, rewriter, version, sources, tell)


def asked_of(runner: Runner, rewriter: Rewriter, version: Version) -> Asked:
    """What a run of the original has to tell of before ``version`` can be judged."""
    groups, parts = asked(rewriter, version)
    also = _search(runner, rewriter, version, (), lambda _: None).also
    return Asked(
        frozenset(frozenset(group) for group in groups), frozenset(tuple(part) for part in parts), frozenset(also)
    )


def _first(runner: Runner, command: Command, tell: Telling, mended: Callable[[Run], bool]) -> Run:
    """Run the original; once more, where it died for the lack of what can be made up. ``mended``: whether a run ends
    where a rewrite mends it."""

    def again(how: str) -> Run:
        tell(f"original, {how}: {command.text}")
        return runner.run("original", command)

    runner.tries_files = True
    return brought_past(runner, command, runner.run("original", command), again, mended)


def _told(version: Version, rewrites: tuple[Rewrite, ...]) -> tuple[Rewrite, ...]:
    """Return ``rewrites`` in the order of the diff."""
    order = {group.key: index for index, group in enumerate(version.groups)}
    return tuple(sorted(rewrites, key=lambda r: (r.finding.path, r.finding.span, order.get(r.key, 0))))


def root_of(commands: Sequence[Command], tree: Path | None = None) -> Path:
    """The root of the tree that is run: ``tree``, or the project around the first command's script."""
    if tree is not None:
        if not tree.is_dir():
            raise VerifyError(f"{tree}: no such folder")
        return tree.absolute()
    first = commands[0]
    return project_root(first.script.parent if first.script is not None else first.cwd)


def _inside(command: Command, root: Path) -> bool:
    return command.script is not None and command.script.resolve().is_relative_to(root.resolve())


def _targets(
    runner: Runner, commands: Sequence[Command], runs: Sequence[Run], exclude: Sequence[str]
) -> list[SourceFile]:
    """The files of the tree that the runs loaded; all of them where that is not known, or where a run stopped for the
    lack of something: it would have loaded more."""
    loaded = {runner.root / path for run in runs for record in run.records for path in record.loaded}
    if any(missing.ended_by(run) is not None for run in runs):
        loaded = set()
    # Python does not know of a notebook that it was loaded.
    loaded |= {c.script for c in commands if c.script is not None and c.notebook}
    if not loaded:
        return runner.sources(exclude)
    found = {source.absolute.resolve(): source for source in runner.sources(exclude)} if exclude else None
    sources = []
    for path in sorted(loaded | {command.script for command in commands if command.script is not None}):
        try:
            source = read_source(path)
        except SourceError:
            continue
        if found is None or source.absolute.resolve() in found:
            sources.append(source)
    return sources
