"""``apply -i``: from a dry run to what is to be written, with a person between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from codemods.checking.check import Progress
from codemods.interactive.dialogue import Answer, Decision, Decisions, Dialogue, Screen
from codemods.interactive.finishing import Outcome, finish
from codemods.interactive.items import Texts, items_of
from codemods.interactive.keeping import load, save
from codemods.manual.explain import as_text, explain
from codemods.rewriting.changes import Key, Proof
from codemods.rewriting.result import ApplyResult
from codemods.rules import UnknownRule
from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.terms.counting import plain_count_text


def ask(
    before: ApplyResult,
    targets: Sequence[SourceFile],
    screen: Screen,
    texts: Texts,
    *,
    options: Options,
    jobs: int | None = None,
    proofs: Mapping[Key, Proof] | None = None,
    progress: Progress | None = None,
    resume: Path | None = None,
) -> Outcome:
    """Ask on ``screen`` about each change of ``before``, a dry run over ``targets``, and make what was accepted.

    No source is written. The file ``resume`` keeps the answers, whatever ends the asking, and those that it has are
    taken up. Raises KeyboardInterrupt if the user interrupts, and :class:`~codemods.terms.errors.UserError` if
    ``resume`` is no such file, or cannot be written.
    """
    items = items_of(before, proofs)
    if not items:
        screen.say("There is nothing to ask about.")
    known = load(resume, items) if resume else {}
    if known:
        screen.say(f"{len(known)} of {len(items)} changes were answered before; k goes back to them.")

    def keep(made: Mapping[int, Decision]) -> None:
        # At once: a window that is closed, or a machine that goes down, leaves no time for it.
        if resume is not None:
            save(resume, items, made)

    keep(known)
    decisions = Dialogue(items, screen, texts, _page, made=known, keep=keep).run()
    outcome = finish(decisions, texts, targets, options=options, jobs=jobs, progress=progress, before=before)
    for place, rule, text in outcome.remarks:
        screen.say(f"{place}: {rule}: {text}.")
    if items:
        screen.say(summary(decisions))
    return outcome


def summary(decisions: Decisions) -> str:
    """Return in one sentence what was answered."""
    if not decisions.write:
        return "Aborted: nothing is written."
    parts = [f"{len(found)} {kind.value}" for kind in Answer if (found := decisions.of(kind))]
    left = len(decisions.items) - len(decisions.made)
    if left:
        parts.append(f"{left} not answered")
    return f"{plain_count_text(len(decisions.items), 'change')}: {', '.join(parts)}."


def _page(rule: str) -> str:
    try:
        return _unfilled(as_text(explain(rule)))
    except UnknownRule as error:
        return f"{error}\n"


def _unfilled(text: str) -> str:
    """Return ``text`` with each paragraph of prose on one line, which the terminal folds to its own width."""
    lines: list[str] = []
    for line in text.split("\n"):
        prose = line[:1].isalpha() or line[:1] in "`("
        if lines and prose and (lines[-1][:1].isalpha() or lines[-1][:1] in ("`", "(")):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return "\n".join(lines)
