"""Answers kept in a file, so that a long review can be put down and taken up again."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codemods.interactive.dialogue import Answer, Decision
from codemods.interactive.items import Item
from codemods.source.errors import SourceError
from codemods.source.files import is_there, read_bytes
from codemods.source.writing import write_output
from codemods.terms.errors import UserError

VERSION = 1
_KIND = "codemod-review"


class ReviewError(UserError):
    """A file of answers cannot be used; the text is the one sentence that says why."""


def marks(items: Sequence[Item]) -> list[str]:
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
        if content[_KIND] != VERSION:
            raise ReviewError(f"{file}: answers of another codemod (version {content[_KIND]}, this one has {VERSION})")
        answers: Mapping[str, Any] = content["answers"]
        known = {mark: index for index, mark in enumerate(marks(items))}
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
    known = marks(items)
    answers = {known[index]: _told(items[index], decision) for index, decision in sorted(made.items())}
    text = json.dumps({_KIND: VERSION, "answers": answers}, indent=1, ensure_ascii=False) + "\n"
    write_output(file, text)


def _told(item: Item, decision: Decision) -> dict[str, Any]:
    own = {str(item.hunks.index(hunk)): text for hunk, text in decision.own.items() if hunk in item.hunks}
    place = {"change": f"{item.place} {item.change.rule}", "answer": decision.answer.value}
    return {**place, **({"reason": decision.reason} if decision.reason else {}), **({"own": own} if own else {})}
