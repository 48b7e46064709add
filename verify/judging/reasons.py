"""Why nothing could be judged, and what the user can do about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from verify.judging.faults import symptoms
from verify.measured.results import Entry, Outcome, Run, Verdict
from verify.running import missing
from verify.running.runner import Runner
from verify.running.settings import Command, Settings

#: Why, and what to do; the first is empty where there was something to judge.
Reason = tuple[str, tuple[str, ...]]

_LIMITS = {
    Outcome.TIMEOUT: "a longer --timeout, fewer --batches or arguments that make the run smaller may help",
    Outcome.MEMORY: "a larger --memory, or arguments that make model and batches smaller, may help",
    Outcome.DISK: "a larger --disk, or arguments that have it write less, may help",
    Outcome.KILLED: "arguments that make the run smaller may help, where memory was short",
}


def joined(found: Sequence[Reason]) -> Reason:
    """Return why nothing could be judged and what to do about it; empty if the original of one entry trained."""
    if not all(reason for reason, _ in found):
        return "", ()
    reasons, advice = [reason for reason, _ in found], [text for _, texts in found for text in texts]
    return "; ".join(dict.fromkeys(reasons)), tuple(dict.fromkeys(advice))


def noted(entry: Entry, reason: str, advice: tuple[str, ...]) -> Entry:
    """Return ``entry`` with the reason why it shows nothing, if other entries show something."""
    if not reason or entry.plan:
        return entry
    return dataclasses.replace(entry, notes=(*entry.notes, reason, *advice))


def reason_of(entry: Entry, command: Command | None, runner: Runner) -> Reason:
    """Return why ``entry`` could not be judged and what to do about it; empty if its original trained.

    ``command`` is what the user had run; None for an entry that the search added.
    """
    original = entry.original
    if any(rewrite.verdict in (Verdict.KEPT, Verdict.BROKEN) for rewrite in entry.rewrites):
        return "", ()
    trained = bool(original.record.backwards)
    seen = symptoms(original)
    lacking = missing.ended_by(original)
    advice: tuple[str, ...] = ()
    if lacking is not None and command is not None:
        advice = missing.advice(lacking, command, runner.root, runner.settings, runner.lacks)
    if seen.other is not None and not trained:
        error = f"{seen.other.type}: {seen.other.message.strip().splitlines()[0] if seen.other.message.strip() else ''}"
        reason = f"the original stops before its first backward: {error[:200]}"
        return reason, advice or ("give the arguments that the script needs after --",)
    if original.outcome is Outcome.NOT_STARTED:
        return "; ".join(original.notes) or "the program could not be started", ()
    if original.outcome is Outcome.RAISED and seen.other is None and seen.error is None and not trained:
        status = f" (status {original.status})" if original.status is not None else ""
        return f"the original stops{status} before its first backward", advice or ("what it printed may tell why",)
    if original.outcome in _LIMITS and not trained:
        limit = _limit(original, runner.settings)
        return f"the original {limit} before its first backward", (_LIMITS[original.outcome],)
    return "", ()


def _limit(run: Run, settings: Settings) -> str:
    """Say which limit ended ``run``, by the option that sets it."""
    said = next((note for note in run.notes if note.startswith(("stopped", "killed"))), "")
    # Where the probe ends a run that takes too long, it does so a little before.
    late = f", within --timeout {settings.timeout:g}" if run.outcome is Outcome.TIMEOUT and not said else ""
    return f"{run.outcome.value}{late}" + (f" ({said})" if said else "")
