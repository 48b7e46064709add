"""Commands of the campaign's own, run in the sandbox on a repository before and after it is rewritten."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.batch.campaign.settings import Runs, Steps
from codemods.batch.environments import interpreters
from codemods.batch.errors import Failed, Refused
from codemods.reports._gfm import code

if TYPE_CHECKING:
    from verify.isolation import Limits, Workspace


@dataclass(frozen=True)
class Result:
    """How one command ended, before or after rewriting; ``why`` is empty where it came to its end with status 0."""

    command: str
    when: str
    why: str


def run_steps(
    steps: Steps, runs: Runs, root: Path, changed: Mapping[str, bytes], log: Callable[[str], None] = lambda _: None
) -> list[Result]:
    """Run the commands of ``steps`` on the tree ``root``, those after rewriting with ``changed``; nothing is kept.

    ``log`` is told how each ended, and what one printed that failed. Raises :class:`Refused` where one fails after
    rewriting that did not fail before, and :class:`Failed` where there is no sandbox.
    """
    from verify.isolation import Limits, Unavailable

    if not (steps.before or steps.after):
        return []
    limits = Limits(runs.timeout, memory=runs.memory, disk=runs.disk or Limits(0).disk)
    try:
        with _place(root, runs) as place, tempfile.TemporaryDirectory(prefix="codemod-steps-") as shared:

            def run(command: str, when: str, files: Mapping[str, bytes]) -> Result:
                result, output = _run(place, command, when, files, runs, Path(shared), limits)
                log(f"$ {command}  # {when} rewriting: {result.why or 'passed'}")
                if result.why and output:
                    log(output)
                return result

            results = [run(command, "before", {}) for command in steps.before]
            results += [run(command, "after", changed) for command in steps.after]
    except (Unavailable, OSError) as error:
        raise Failed(f"own steps cannot be isolated: {error}") from None
    failed_before = {one.command for one in results if one.why and one.when == "before"}
    for one in results:
        if one.when == "after" and one.why and one.command not in failed_before:
            raise Refused(f"after rewriting {one.command!r} {one.why}")
    return results


def _place(root: Path, runs: Runs) -> Workspace:
    from verify.isolation import Workspace
    from verify.isolation.container import Container

    if not runs.image:
        return Workspace(root)
    return Container(root, image=runs.image, python=interpreters.of(runs), devices=runs.device == "cuda")


def told(results: Sequence[Result]) -> str:
    """The results for a request's text; what the commands printed is not in it."""
    if not results:
        return ""
    lines = [f"- {code(one.command)} {one.when} rewriting: {one.why or 'passed'}" for one in results]
    return "\n## Own steps\n\nRun in a sandbox:\n\n" + "\n".join(lines) + "\n"


def _run(
    place: Workspace,
    command: str,
    when: str,
    changed: Mapping[str, bytes],
    runs: Runs,
    shared: Path,
    limits: Limits,
) -> tuple[Result, str]:
    """How ``command`` ended, and the last of what it printed."""
    from verify.isolation import Ending
    from verify.isolation.environment import passed
    from verify.running.settings import variables

    environment = passed(os.environ, variables(runs.env, os.environ), elsewhere=bool(runs.image))
    if os.path.dirname(runs.python) and not runs.image:
        environment["PATH"] = os.pathsep.join((os.path.dirname(runs.python), environment.get("PATH", os.defpath)))
    folder = place.seen(place.original / runs.folder)
    done = place.execute(
        ["/bin/sh", "-c", command], cwd=folder, changed=changed, environment=environment, shared=shared, limits=limits
    )
    if done.ending is not Ending.EXITED:
        return Result(command, when, f"did not finish ({done.ending.value})"), done.output
    return Result(command, when, f"ended with status {done.status}" if done.status else ""), done.output
