"""The third stage: run the rewrites, and make the branch again from those that may be published."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codemods.batch.artifacts import PULL_REQUEST
from codemods.batch.campaign.settings import Campaign, Runs, is_version
from codemods.batch.carrying import encoded, shell
from codemods.batch.environments import interpreters
from codemods.batch.errors import CampaignError, Failed
from codemods.batch.git import Git
from codemods.batch.stages.job import PARTLY, Job, Tell
from codemods.batch.stages.rewriting import finish, rewritten, tree_of

if TYPE_CHECKING:
    from verify.measured.results import Entry, Rewrite, Run, Verification
    from verify.running.settings import Settings


def verify(job: Job, folder: Path, result: Path, git: Git, tell: Tell) -> dict[str, Any]:
    """Verify the job's repository by its entries; leave branch, artifacts and proof in ``result``, return the facts.

    ``verification`` among them is ``kept`` (all that the branch holds), ``partly kept``, ``broken`` or ``not judged``.
    """
    from verify.applying import apply_verified, dropped_of
    from verify.errors import VerifyError
    from verify.reports import render
    from verify.reports.discreet import discreet
    from verify.running.settings import entry_command

    tell("writing out")
    with tree_of(job, folder, git) as tree:
        try:
            settings, environment = in_environment(job, tree.root, tell)
            commands = [
                entry_command(command, settings.python, tree.root / place if place != "." else tree.root)
                for command, place in job.entries
            ]
            applied, verification = apply_verified(
                tree.targets.sources,
                commands,
                options=tree.options,
                settings=settings,
                tree=tree.root,
                dry_run=True,
                jobs=1,
                tell=tell,
            )
        except VerifyError as error:
            raise Failed(str(error)) from None
        verdict = verdict_of(verification)
        if job.require == "not-broken" and verdict != "broken":
            applied = rewritten(tree)
        applied = replace(applied, skipped=(*tree.targets.skipped, *applied.skipped))
        tell("writing down")

        verification = replace(
            verification, settings={**verification.settings, "shell": reproduction(job, verification)}
        )
        shown = verification if job.quote_output else discreet(verification)
        if applied.dropped:
            applied = replace(applied, dropped=dropped_of(shown))

        def told(text: str) -> str:
            # The folder is gone afterwards; texts name paths from its root.
            return text.replace(str(tree.root), job.slug)

        for form in ("json", "html"):
            text = told(render(verification, form))
            (result / f"verification.{form}").write_bytes(encoded(text))
        facts = finish(job, tree, result, git, applied, verification)
        request = result / PULL_REQUEST
        request.write_text(told(request.read_text(encoding="utf-8")), encoding="utf-8")
        if verdict == "kept" and any(row["fate"] == "fixed" and row["proof"] != "kept" for row in facts["findings"]):
            verdict = PARTLY
        if verdict == "not judged":
            # The branch and the texts of the stage before stand, unverified.
            for file in result.iterdir():
                if not file.name.startswith("verification."):
                    file.unlink()
        return facts | {
            "verification": verdict,
            "why": told(_why(shown)),
            "verdicts": [{**row, "why": told(row["why"])} for row in (_verdict(shown, one) for one in shown.rewrites)],
            # For who has the work folder: neither these nor the pages of the proof are published.
            "notes": [*facts["notes"], *environment, *(told(text) for text in verification.advice)],
            "runs": [row for entry in verification.entries for row in _runs(entry)],
        }


def reproduction(job: Job, verification: Verification) -> str:
    """Return what a shell is told to verify the job's repository again, from its root: a line for each folder.

    It is published, and names nothing that lies on this machine.
    """
    from verify.reports.discreet import HERE
    from verify.reports.reproduce import options

    settings = {name: value for name, value in verification.settings.items() if name not in HERE}

    lines = []
    for place in dict.fromkeys(place for _, place in job.entries):
        words = ["codemod", "verify", *options(settings)]
        words += ["--tree", os.path.relpath(os.curdir, place)] if place != "." else []
        words += [word for command, folder in job.entries if folder == place for word in ("--entry", command)]
        lines.append(f"(cd {shell([place])} && {shell(words)})" if place != "." else shell(words))
    return "\n".join(lines)


def in_environment(job: Job, root: Path, tell: Tell) -> tuple[Settings, tuple[str, ...]]:
    """The settings of the job's runs, with an interpreter that has what is required, and what was done about that.

    Raises :class:`Failed` where what the campaign requires cannot be had.
    """
    python, told = interpreters.ready(job.runs, root, Path(job.environments), tell, job.entries)
    settings = settings_of(job.runs)
    # What a repository requires is somebody else's code.
    return replace(settings, python=python, ahead=python == settings.python), told


def settings_of(runs: Runs) -> Settings:
    """Return what ``runs`` come to as settings of ``verify``."""
    from verify.running import settings as defaults
    from verify.running.standins import parse

    return defaults.Settings(
        steps=runs.steps,
        batches=runs.batches,
        timeout=runs.timeout,
        reach=runs.reach,
        within=runs.within,
        device=runs.device,
        python=interpreters.of(runs),
        image=runs.image,
        memory=runs.memory,
        memory_limit=runs.memory_limit,
        disk=runs.disk or defaults.DISK,
        stand_ins=tuple(parse(text) for text in runs.stand_ins),
        environment=defaults.variables(runs.env, os.environ),
        expose=defaults.exposed(runs.expose, Path(os.sep)),
        isolation=runs.isolation,  # type: ignore[arg-type]  # checked when the campaign was read
    )


def require_for_runs(campaign: Campaign) -> None:
    """Raise :class:`CampaignError` where this machine lacks what runs need: interpreters, variables, exposed files."""
    from verify.errors import VerifyError
    from verify.running.settings import exposed, interpreter, variables

    runs = [one.runs for one in campaign.repositories if one.runs.run and not one.skip]
    versions = [one for one in runs if is_version(one.python)]
    if versions or any(one.requirements or one.own_requirements for one in runs):
        from codemods.batch.environments.environments import require_uv

        require_uv()
    for one in versions:
        interpreters.of(one)
    if any(one.image for one in runs):
        _require_containers(campaign)
    here = [one.python for one in runs if one.python and not one.image and one not in versions]
    for python in dict.fromkeys(here):
        try:
            interpreter(python, campaign.file.parent)
        except VerifyError as error:
            raise CampaignError(f"{campaign.file}: python in [verify]: {error}") from None
    try:
        for one in runs:
            variables(one.env, os.environ)
            exposed(one.expose, campaign.file.parent)
    except VerifyError as error:
        raise CampaignError(f"{campaign.file}: [verify]: {str(error).removeprefix('--')}") from None


def _require_containers(campaign: Campaign) -> None:
    from verify.isolation import engines

    try:
        engines.find()
    except engines.NoContainers as error:
        raise CampaignError(f"{campaign.file}: image in [verify]: no container can be had: {error}") from None


def verdict_of(verification: Verification) -> str:
    """``broken`` where any rewrite was; ``kept`` where one was kept; else ``not judged``.

    A broken one is dropped from the branch, and all the same the repository is not published: a promise of ours did
    not hold there, and a person should see why before anybody is sent the rest.
    """
    from verify.measured.results import Verdict

    verdicts = {rewrite.verdict for rewrite in verification.rewrites}
    if Verdict.BROKEN in verdicts:
        return "broken"
    return "kept" if Verdict.KEPT in verdicts else "not judged"


def _why(verification: Verification) -> str:
    from verify.measured.results import Verdict
    from verify.reports import remarks

    if verification.reason:
        return verification.reason
    broken = [rewrite for rewrite in verification.rewrites if rewrite.verdict is Verdict.BROKEN]
    if broken:
        first = broken[0]
        place = verification.place(first.finding.path, first.finding.span.line)
        return f"{first.finding.rule} at {first.finding.path}:{place}: {first.why}"
    return str(remarks.headline(verification))


def _verdict(verification: Verification, rewrite: Rewrite) -> dict[str, Any]:
    at = verification.place(rewrite.finding.path, rewrite.finding.span.line)
    return {
        "rule": rewrite.finding.rule,
        "path": rewrite.finding.path,
        "line": at.line,
        "cell": at.cell,
        "promise": rewrite.finding.promise.value,
        "verdict": rewrite.verdict.value,
        "why": rewrite.why,
    }


def _runs(entry: Entry) -> list[dict[str, Any]]:
    from verify.reports.remarks import command_text

    text = command_text(entry.command)
    pairs = (("original", entry.original), ("rewritten", entry.rewritten))
    return [{"command": text, "version": name, **_figures(run)} for name, run in pairs if run is not None]


def _figures(run: Run) -> dict[str, Any]:
    from verify.reports.figures import figures

    numbers = figures(run)
    return {
        "outcome": run.outcome.value,
        "error": run.error.type if run.error is not None else "",
        "steps": numbers.stepped,
        "backwards": numbers.backwards,
        "nodes": max(numbers.live, default=None),
        "nodes_last": numbers.live[-1] if numbers.live else None,
        "nodes_per_step": numbers.slope,
        "leak": numbers.leak,
        "bytes": numbers.peak,
        "bytes_per_step": numbers.growth,
        "resident": numbers.resident,
        "seconds_per_step": numbers.seconds,
        "wall": run.wall,
    }
