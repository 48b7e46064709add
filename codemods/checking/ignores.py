"""Suppression comments as a piece of work: those that do nothing found and taken out, those that are missing put in."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import codemods.rules as rules
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.source.suppressing import ToSuppress, with_comments, without_rules
from codemods.source.suppressions import IgnoreComment, Suppressions
from codemods.source.writing import write_atomically
from codemods.terms.findings import Finding, Skipped


@dataclass(frozen=True)
class UnusedIgnore:
    """A suppression comment that does nothing, or names rules in vain: ``rules``, or with None all of it."""

    path: str
    comment: IgnoreComment
    rules: tuple[str, ...] | None
    reason: str


class Ignored(NamedTuple):
    """What became of comments: the ``paths`` that changed, the ``number`` of findings or comments concerned, and the
    files in which not all could be done, with reasons."""

    paths: tuple[str, ...]
    number: int
    unwritten: tuple[Skipped, ...]


def unused_ignores(findings: Sequence[Finding], texts: Mapping[str, str], options: Options) -> list[UnusedIgnore]:
    """Return the suppression comments in ``texts``, by path, that suppress none of ``findings``.

    ``findings`` are all that were made in these texts, suppressed or not. Nothing is said of a rule that ``options``
    leave out, here or everywhere, nor of a comment for all rules while some are left out: it may be needed with them.
    """
    by_path: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_path[finding.path].append(finding)
    found: list[UnusedIgnore] = []
    for path, text in sorted(texts.items()):
        said = Suppressions.of(text)
        if not said.comments:
            continue
        used: dict[IgnoreComment, set[str]] = defaultdict(set)
        for finding in by_path[path]:
            for comment in said.covering(finding.rule, finding.span.line, finding.span.end_line):
                used[comment].add(finding.rule)
        judged = _judged(path, options)
        for comment in said.comments:
            verdict = _verdict(comment, used[comment], judged, options)
            if verdict is not None:
                found.append(UnusedIgnore(path, comment, *verdict))
    return found


def _judged(path: str, options: Options) -> frozenset[str]:
    """The rules that would have found something in the file ``path`` if there were something to be found."""
    from codemods.analysis.analyse import selected_rules

    return frozenset(rule.name for rule in selected_rules(options)) - options.per_file_ignores.rules(path)


def _verdict(
    comment: IgnoreComment, used: set[str], judged: frozenset[str], options: Options
) -> tuple[tuple[str, ...] | None, str] | None:
    if not comment.file and not comment.first:
        return None, "is not on a statement and suppresses nothing; put it on the line of the finding"
    if comment.rules is None:
        whole = not options.select and not options.ignore and not options.per_file_ignores.entries
        return (None, "suppresses nothing") if whole and not used else None
    if not comment.rules:
        return None, "names no rule and suppresses nothing"
    known = rules.rule_names()
    unknown = tuple(name for name in comment.rules if name not in known)
    idle = tuple(name for name in comment.rules if name in judged and name not in used)
    needless = tuple(name for name in comment.rules if name in unknown or name in idle)
    if not needless:
        return None
    told = [_unknown(name, known) for name in unknown]
    if idle:
        told.append(f"{' and '.join(idle)} {'is' if len(idle) == 1 else 'are'} not found here")
    return (None if len(needless) == len(comment.rules) else needless), "; ".join(told)


def _unknown(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"no rule is called {name}" + (f", did you mean {near[0]}?" if near else "")


def add_ignores(findings: Iterable[Finding], sources: Iterable[SourceFile], reason: str = "") -> Ignored:
    """Put comments into the files ``sources`` that suppress ``findings``, which were made in their present texts.

    A file is written wholly or not at all, and never over somebody else's edit; see
    :func:`codemods.source.suppressing.with_comments` for where the comments go. Raises nothing for a file of the user.
    """
    places: dict[str, list[ToSuppress]] = defaultdict(list)
    for finding in findings:
        places[finding.path].append(ToSuppress(finding.rule, finding.span.line, finding.span.end_line))
    changes: dict[str, tuple[SourceFile, str]] = {}
    done: dict[str, int] = {}
    unplaced: list[Skipped] = []
    known = {source.path: source for source in sources}
    for path, wanted in sorted(places.items()):
        source = known[path]
        new, failed = with_comments(source.text, wanted, reason)
        unplaced += [_unplaced(source, place) for place in failed]
        changes[path] = (source, new)
        done[path] = sum(place not in failed for place in wanted)
    paths, unwritten = _write(changes.values())
    return Ignored(paths, sum(done[path] for path in paths), tuple(sorted([*unplaced, *unwritten])))


def _unplaced(source: SourceFile, place: ToSuppress) -> Skipped:
    at = source.place(place.line)
    return Skipped(source.path, at.line, f"{place.rule}: no comment fits there", at.cell)


def remove_unused_ignores(unused: Iterable[UnusedIgnore], sources: Iterable[SourceFile]) -> Ignored:
    """Take what ``unused`` names out of the files ``sources``, in whose present texts it was found.

    Raises nothing for a file of the user.
    """
    needless: dict[str, dict[IgnoreComment, tuple[str, ...] | None]] = defaultdict(dict)
    for one in unused:
        needless[one.path][one.comment] = one.rules
    known = {source.path: source for source in sources}
    changes = [(known[path], without_rules(known[path].text, what)) for path, what in sorted(needless.items())]
    paths, unwritten = _write(changes)
    return Ignored(paths, sum(len(needless[path]) for path in paths), unwritten)


def _write(changes: Iterable[tuple[SourceFile, str]]) -> tuple[tuple[str, ...], tuple[Skipped, ...]]:
    written: list[str] = []
    unwritten: list[Skipped] = []
    for source, new in changes:
        if new == source.text:
            continue
        try:
            write_atomically(source, new)
            written.append(source.path)
        except SourceError as error:
            unwritten.append(error.skipped)
    return tuple(written), tuple(unwritten)
