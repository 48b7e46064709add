"""``apply -i``: from a dry run to what is written, with a person between them, whose answers a file may keep."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codemods.checking.check import Progress
from codemods.interactive.dialogue import Answer, Decision, Decisions, Dialogue, Screen
from codemods.interactive.finishing import Outcome, finish
from codemods.interactive.items import Item, Texts, items_of
from codemods.manual.explain import as_text, explain
from codemods.rewriting.changes import Key, Proof
from codemods.rewriting.result import ApplyResult
from codemods.rules import UnknownRule
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, is_there, read_bytes
from codemods.source.options import Options
from codemods.source.writing import write_output
from codemods.terms.counting import plain_count_text
from codemods.terms.errors import UserError


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


_VERSION = 1
_KIND = "codemod-review"


class ReviewError(UserError):
    """A file of answers cannot be used; the text is the one sentence that says why."""


def _marks(items: Sequence[Item]) -> list[str]:
    """Return what each item is known again by: its rule, its file and the lines that it changes, wherever they stand.

    Of several that are alike in all of this, their order tells them apart.
    """
    seen: Counter[str] = Counter()
    found = []
    for item in items:
        parts = [
            item.change.rule,
            item.path,
            *(part for h in item.hunks for part in (h.path, *h.removed, "", *h.added)),
        ]
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:20]
        seen[digest] += 1
        found.append(f"{digest}:{seen[digest]}")
    return found


def load(file: Path, items: Sequence[Item]) -> dict[int, Decision]:
    """Return the answers in ``file`` to those of ``items`` that it knows, by their indices; none if there is no file.

    Raises :class:`ReviewError` for a file that we did not write.
    """
    if not is_there(file):
        return {}
    try:
        content = json.loads(read_bytes(file, str(file)))
        if content[_KIND] != _VERSION:
            raise ReviewError(f"{file}: answers of another codemod (version {content[_KIND]}, this one has {_VERSION})")
        answers: Mapping[str, Any] = content["answers"]
        known = {mark: index for index, mark in enumerate(_marks(items))}
        return {known[mark]: _decision(items[known[mark]], told) for mark, told in answers.items() if mark in known}
    except SourceError as error:
        raise ReviewError(str(error)) from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise ReviewError(f"{file}: not a file of answers that -i wrote") from None


def _decision(item: Item, told: Mapping[str, Any]) -> Decision:
    own = {item.hunks[int(index)]: str(text) for index, text in told.get("own", {}).items()}
    return Decision(Answer(told["answer"]), str(told.get("reason", "")), own)


def save(file: Path, items: Sequence[Item], made: Mapping[int, Decision]) -> None:
    """Write the answers ``made`` to ``file``, as :func:`load` reads them; raises :class:`UserError` if it cannot."""
    known = _marks(items)
    answers = {known[index]: _told(items[index], decision) for index, decision in sorted(made.items())}
    text = json.dumps({_KIND: _VERSION, "answers": answers}, indent=1, ensure_ascii=False) + "\n"
    write_output(file, text)


def _told(item: Item, decision: Decision) -> dict[str, Any]:
    own = {str(item.hunks.index(hunk)): text for hunk, text in decision.own.items() if hunk in item.hunks}
    place = {"change": f"{item.place} {item.change.rule}", "answer": decision.answer.value}
    return {**place, **({"reason": decision.reason} if decision.reason else {}), **({"own": own} if own else {})}
