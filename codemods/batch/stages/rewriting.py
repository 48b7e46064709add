"""The second stage: rewrites on a branch of their own, with the files that go with it."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codemods.batch import artifacts
from codemods.batch.campaign.settings import Runs
from codemods.batch.environments import interpreters
from codemods.batch.git import Git
from codemods.batch.stages.cloning import unpack_tree, write_tree
from codemods.batch.stages.committing import bundle, commits_of, write_branch
from codemods.batch.stages.job import Job, Tell
from codemods.batch.stages.steps import run_steps, told
from codemods.batch.tool import digest
from codemods.rewriting.apply import apply
from codemods.rewriting.result import ApplyResult, Dropped, Failure
from codemods.source.config import ConfigError, load_config
from codemods.source.entries import Entry, find_entries, read_readme
from codemods.source.options import Options
from codemods.source.targets import Targets, read_targets
from codemods.terms.findings import Finding, ShownLine, Skipped

if TYPE_CHECKING:
    from codemods.rewriting.changes import Evidence, Key, Proof
    from verify.measured.results import Verification

BUNDLE = "branch.bundle"


@dataclass(frozen=True)
class Tree:
    """A repository's files as they were written out, and what is asked of them."""

    root: Path
    targets: Targets
    options: Options
    notes: tuple[str, ...]


@contextlib.contextmanager
def tree_of(job: Job, folder: Path, git: Git) -> Iterator[Tree]:
    """Write the files of the job's repository and make them the working directory, so that paths are told from there.

    What the repository's own pyproject.toml tells codemod to leave alone is left alone.
    """
    root = folder / "tree"
    if job.packed:
        unpack_tree(git, job.packed, root)
    else:
        write_tree(git, Path(job.clone), root)
    before = os.getcwd()
    os.chdir(root)
    try:
        notes: tuple[str, ...] = ()
        exclude, options = job.exclude, job.options
        try:
            own: dict[str, Any] = load_config(root)
        except ConfigError as error:
            own, notes = {}, (str(error),)
        if own:
            options = replace(options, ignore=tuple(dict.fromkeys((*options.ignore, *own.get("ignore", ())))))
            exclude = (*exclude, *own.get("exclude", ()))
        yield Tree(root, read_targets(["."], exclude=exclude), options, notes)
    finally:
        os.chdir(before)


def rewrite(job: Job, folder: Path, result: Path, git: Git, tell: Tell) -> dict[str, Any]:
    """Rewrite the job's repository; leave branch and artifacts in ``result``, return the facts for the ledger."""
    tell("writing out")
    with tree_of(job, folder, git) as tree:
        tell("rewriting")
        applied = rewritten(tree)
        entries = _entries(job, tree, applied) if applied.rewrites and job.runs.run else []
        job = replace(job, entries=tuple((command, place) for command, place, _ in entries))
        facts = finish(job, tree, result, git, applied, None)
        if applied.rewrites and job.runs.run:
            facts["entries"] = [list(entry) for entry in entries]
        return facts


def rewritten(tree: Tree, **choices: Any) -> ApplyResult:
    """Return what ``apply`` makes of the tree, nothing written.

    In one process: the executor has as many at work as there is room for, and whatever Python starts a pool of its own
    with would look for modules in the working directory first.
    """
    return apply(
        tree.targets.sources, options=tree.options, dry_run=True, jobs=1, skipped=tree.targets.skipped, **choices
    )


def finish(
    job: Job, tree: Tree, result: Path, git: Git, applied: ApplyResult, verification: Verification | None
) -> dict[str, Any]:
    """Commit ``applied`` on the job's branch and write what goes with it; return the facts for the ledger."""
    evidence = _evidence(verification, quoted=job.quote_output)
    proofs = evidence.proofs if evidence else None
    commits = commits_of(applied, job.commits.style, options=tree.options, proofs=proofs)
    head = tree_id = ""
    if commits:
        head = write_branch(git, tree.root, job.commits.branch, job.base, commits, job.identity, job.when)
        bundle(git, tree.root, job.commits.branch, job.base, result / BUNDLE)
        tree_id = git.run("rev-parse", f"{head}^{{tree}}", cwd=tree.root).decode().strip()
    artifacts.write(result, job.artifacts, applied, evidence)
    if commits:
        changed = {rewrite.source.path: rewrite.encoded for rewrite in applied.rewrites}
        own = told(run_steps(job.steps, _runs_of_steps(job, tree.root), tree.root, changed, git.log))
        with open(result / artifacts.PULL_REQUEST, "a", encoding="utf-8") as request:
            request.write(own)
    fixed = {finding.key for finding in applied.fixed}
    unproven = unproven_of(proofs or {})
    seen = {finding: proof.verdict for key, proof in (proofs or {}).items() for finding in key}
    return {
        "head": head,
        "tree": tree_id,
        "tool": digest(),
        "commits": len(commits),
        "files": applied.files,
        "lines": sum(source.text.count("\n") for source in tree.targets.sources),
        "changed": len(applied.rewrites),
        "findings": [
            *(_finding(applied, finding, "fixed", "", seen.get(finding.key, "")) for finding in applied.fixed),
            *(
                _finding(applied, one.finding, "left", one.obstacle or unproven.get(one.finding.key, ""))
                for one in applied.remaining
                if one.finding.key not in fixed
            ),
        ],
        "dropped": [_problem(applied, dropped) for dropped in applied.dropped],
        "failures": [_problem(applied, failure) for failure in applied.failures],
        "skipped": [[entry.path, entry.line, _reason(entry)] for entry in applied.skipped],
        "notes": [*tree.notes, *applied.notes],
    }


def _runs_of_steps(job: Job, root: Path) -> Runs:
    """The settings of own steps: with the interpreter that the repository's scripts are run with."""
    if not (job.steps.before or job.steps.after):
        return job.runs
    python, _ = interpreters.ready(job.runs, root, Path(job.environments), lambda _: None, job.entries)
    return replace(job.runs, python=python)


def _evidence(verification: Verification | None, *, quoted: bool) -> Evidence | None:
    if verification is None:
        return None
    from verify.reports.evidence import evidence_of

    return evidence_of(verification, quoted=quoted)


def unproven_of(proofs: Mapping[Key, Proof]) -> dict[tuple[str, str, int], str]:
    """Return what the run said of findings that are left for want of a proof only, by rule, path and line.

    It is the ``obstacle`` of docs/batch-schema.md.
    """
    return {
        finding: f"verify: {proof.verdict}"
        for key, proof in proofs.items()
        if proof.verdict != "kept"
        for finding in key
    }


def _reason(entry: Skipped) -> str:
    return entry.reason if entry.cell is None else f"cell {entry.cell}: {entry.reason}"


def _place(applied: ApplyResult, path: str, line: int) -> ShownLine:
    source = next((source for source in applied.sources if source.path == path), None)
    return ShownLine(None, line) if source is None else source.place(line)


def _problem(applied: ApplyResult, problem: Failure | Dropped) -> list[str | int]:
    """Rule, path, line and what else there is, at last the reason, which names the cell of a notebook."""
    rule, path, line, *more, why = problem
    at = _place(applied, path, line)
    return [rule, path, at.line, *more, why if at.cell is None else f"cell {at.cell}: {why}"]


def _finding(applied: ApplyResult, finding: Finding, fate: str, obstacle: str, proof: str = "") -> dict[str, Any]:
    at = _place(applied, finding.path, finding.span.line)
    return {
        "rule": finding.rule,
        "path": finding.path,
        "line": at.line,
        "cell": at.cell,
        "promise": finding.promise.value,
        "fate": fate,
        "obstacle": obstacle,
        "message": finding.message,
        "proof": proof,
    }


def _entries(job: Job, tree: Tree, applied: ApplyResult) -> list[tuple[str, str, str]]:
    """What to run to verify the rewrites: command, folder, why; configured ones where their script exists."""
    if job.runs.commands:
        place = tree.root / job.runs.folder
        # The name of a notebook, spaces and all, is one word.
        commands = [shlex.quote(one) if (place / one).is_file() else one for one in job.runs.commands]
        return [(one, job.runs.folder, "configured") for one in commands if _can_be_run(one, place)]
    files = {source.path: source.text for source in tree.targets.sources}
    concerned = [rewrite.source.path for rewrite in applied.rewrites]
    found: list[Entry] = find_entries(files, read_readme(tree.root), concerned, most=job.runs.entries)
    return [(entry.command, entry.folder, entry.why) for entry in found]


def _can_be_run(command: str, place: Path) -> bool:
    """Whether a script that ``command`` names is in the folder ``place``, or it names none."""
    try:
        words = shlex.split(command)
    except ValueError:
        return True
    scripts = [word for word in words if word.endswith((".py", ".ipynb"))]
    return not scripts or any((place / script).is_file() for script in scripts)
