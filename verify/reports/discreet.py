"""A verification without what the programs said: for texts that go where anybody reads them.

What a program raises or prints is its own to choose: it can hold a variable of the environment or a file of the home
folder. The types of errors stay, and so do our own sentences; of the names that the program gave to things, those whose
words stand in its sources.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from codemods.terms.words import words
from verify.measured.records import Record
from verify.measured.results import Entry, Rewrite, Run, Verification
from verify.measured.values import Trouble, TroubleKind
from verify.reports.names import without_foreign_names

#: What is said for the messages of torch itself that the rewrites are about.
_OURS = {
    TroubleKind.FREED: "Trying to backward through the graph a second time",
    TroubleKind.INPLACE: "a tensor that backward needs was modified in place",
    TroubleKind.MEMORY: "out of memory",
}
#: Types of libraries that scripts stop with, besides those that Python has.
_LIBRARIES = words(
    "AcceleratorError ArgumentError BackendCompilerFailed CalledProcessError DistNetworkError DocoptExit Empty "
    "GatedRepoError HTTPError JSONDecodeError LinAlgError MaxRetryError MissingSchema NoOptionError NoSectionError "
    "OfflineModeIsEnabled OutOfMemoryError ParserError PicklingError RepositoryNotFoundError SSLError ScannerError "
    "TclError TimeoutExpired URLError UnidentifiedImageError UnpicklingError UsageError ValidationError"
)
_SOME = "an exception of its own"
#: Settings that hold paths of this machine.
HERE = ("python", "expose", "command_line", "folder")
#: A path of this machine in a sentence.
_PATH = re.compile(r"(?<![\w.~])~?/[\w.+-]+/[\w./+-]*")
#: An error in a sentence, to its end.
_ERROR = re.compile(r"\b(\w*(?:Error|Exception|NotFound|NotInstalled)): .*", re.DOTALL)
#: A shorter line of a message is found in any sentence.
_SHORTEST = 8


def discreet(verification: Verification) -> Verification:
    """Return ``verification`` without words of the programs that were run, and without paths of this machine."""
    words = _Words(verification)
    shown = replace(
        verification,
        entries=tuple(_entry(entry, words) for entry in verification.entries),
        rewrites=tuple(words.rewrite(rewrite) for rewrite in verification.rewrites),
        reason=words.cleaned(verification.reason),
        # What to do about it is for who runs it, and names what lies here.
        advice=(),
        settings={name: value for name, value in verification.settings.items() if name not in HERE},
    )
    return without_foreign_names(shown)


class _Words:
    """What the programs said, to be taken out of sentences that quote it."""

    def __init__(self, verification: Verification) -> None:
        troubles = {trouble for entry in verification.entries for run in entry.runs for trouble in _troubles(run)}
        self._troubles = sorted(troubles, key=lambda trouble: len(trouble.message), reverse=True)

    def cleaned(self, text: str) -> str:
        """Return ``text`` without them."""
        for kind in dict.fromkeys(trouble.type for trouble in self._troubles):
            text = _without(text, f"{kind}: ", [one for one in self._troubles if one.type == kind])
        for trouble in self._troubles:
            for line in trouble.message.splitlines():
                if len(line.strip()) >= _SHORTEST:
                    text = text.replace(line.strip(), "…")
        return text

    def rewrite(self, rewrite: Rewrite) -> Rewrite:
        """Return ``rewrite`` with its sentences :meth:`cleaned`."""
        return replace(rewrite, why=self.cleaned(rewrite.why), without=self.cleaned(rewrite.without))


def _without(text: str, head: str, troubles: Sequence[Trouble]) -> str:
    """Return ``text`` with a type for each ``head`` that one of ``troubles`` follows, as far as it was not cut off.

    Of several that begin alike it is the one that goes furthest.
    """
    pieces, start = [], 0
    while (place := text.find(head, start)) >= 0:
        end = place + len(head)
        length, trouble = max(((_alike(text[end:], one), one) for one in troubles), key=lambda pair: pair[0])
        ours = _OURS.get(trouble.kind, "")
        shown = f"{_type(trouble)}: {ours}" if ours else _type(trouble)
        pieces += [text[start:place], shown if length else text[place:end]]
        end += length
        start = end + (length > 0 and text[end:].startswith("…"))
    return "".join([*pieces, text[start:]])


def _alike(text: str, trouble: Trouble) -> int:
    """How much of the first line of ``trouble`` stands at the beginning of ``text``."""
    lines = trouble.message.strip().splitlines() or [""]
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, lines[0].strip(), strict=False)))


def _entry(entry: Entry, words: _Words) -> Entry:
    return replace(
        entry,
        original=_run(entry.original),
        again=entry.again and _run(entry.again),
        rewritten=entry.rewritten and _run(entry.rewritten),
        staged=tuple((name, _run(run)) for name, run in entry.staged),
        rewrites=tuple(words.rewrite(rewrite) for rewrite in entry.rewrites),
        notes=tuple(words.cleaned(note) for note in entry.notes if not _PATH.search(note)),
    )


def _run(run: Run) -> Run:
    notes = tuple(note for note in run.notes if not _PATH.search(note))
    return replace(run, output="", records=tuple(map(_record, run.records)), notes=notes)


def _record(record: Record) -> Record:
    changed: dict[str, Any] = {
        "error": record.error and _told(record.error),
        "traceback": "",
        "printed": {},
        "caught": [one._replace(error=_told(one.error)) for one in record.caught],
        "left": [{**one, "why": _typed(one["why"])} for one in record.left],
        "standins": [{**one, "why": _typed(str(one.get("why") or ""))} for one in record.standins],
        "backwards": [
            replace(one, error=_told(one.error)) if one.error is not None else one for one in record.backwards
        ],
    }
    return replace(record, **changed)


def _typed(why: str) -> str:
    """``why`` with the type of an error alone, without what the error says."""
    return _ERROR.sub(lambda found: _type(Trouble(found[1], "", TroubleKind.OTHER)), why)


def _told(trouble: Trouble) -> Trouble:
    return Trouble(_type(trouble), _OURS.get(trouble.kind, ""), trouble.kind)


def _type(trouble: Trouble) -> str:
    # A program can call a class anything while it runs: by what it has read, for one.
    name = trouble.type.rpartition(".")[2]
    known = getattr(builtins, name, None)
    return name if name in _LIBRARIES or (isinstance(known, type) and issubclass(known, BaseException)) else _SOME


def _troubles(run: Run) -> Iterator[Trouble]:
    for record in run.records:
        yield from (trouble for trouble in (record.error,) if trouble is not None)
        yield from (one.error for one in record.caught)
        yield from (one.error for one in record.backwards if one.error is not None)
        yield from (one.error for one in record.driven if one.error is not None)
