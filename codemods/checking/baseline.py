"""A baseline: the findings of one day, written down so that from then on only new ones are reported.

A finding is known again by its rule, its file, the function it is in and the text of its statement, however the lines
around it move; of several that are alike in all of this, as many are known as were written down. The text is that of
the statement without comments and line breaks, and of a block that of its head.

What was written down for a file that is there no more stands for the same finding in another file: a file that is
renamed brings no new findings.
"""

from __future__ import annotations

import ast
import json
import os
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from codemods.edits.positions import split_lines
from codemods.source.errors import SourceError, Unreadable
from codemods.source.files import is_there, read_bytes
from codemods.source.suppressions import tokens
from codemods.source.syntax import parse
from codemods.source.writing import create_atomically, write_atomically
from codemods.terms.errors import UserError
from codemods.terms.findings import Finding

VERSION = 1

MOST = 1_000_000
"""So often the same statement may be found in one function: more is a slip that would fill the memory."""

_KIND = "codemod-baseline"
_ANEW = "delete the file: --update-baseline writes another"


class BaselineError(UserError):
    """A baseline cannot be used; the text is the one sentence that says why."""


class Fingerprint(NamedTuple):
    """What a finding is known by: ``path`` is relative to the baseline's folder, ``function`` empty outside all."""

    path: str
    rule: str
    function: str
    statement: str


@dataclass(frozen=True)
class Baseline:
    """What was written down in ``file``: how many findings of each fingerprint."""

    file: Path
    entries: Mapping[Fingerprint, int]

    @property
    def count(self) -> int:
        """How many findings were written down."""
        return sum(self.entries.values())


class Compared(NamedTuple):
    """Findings held against a baseline: those that are ``new``, how many are ``known``, and what is ``gone``, each
    fingerprint as often as it is missed; ``after`` is the baseline of today's findings."""

    new: tuple[Finding, ...]
    known: int
    gone: tuple[Fingerprint, ...]
    after: Baseline


def load_baseline(file: Path) -> Baseline:
    """Return the baseline in ``file``; raises :class:`BaselineError` for one that is not there or none of ours."""
    try:
        content = json.loads(read_bytes(file, str(file)).decode("utf-8-sig"))
    except Unreadable as error:
        if not is_there(file):
            raise BaselineError(f"{file}: no such baseline; --update-baseline writes one") from None
        raise BaselineError(str(error)) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BaselineError(f"{file}: not a baseline: {error}") from None
    except (ValueError, RecursionError):
        # Python's own words on digits and depth are of no use here.
        raise BaselineError(f"{file}: not a baseline: a number is too long, or the nesting too deep") from None
    version = content.get(_KIND) if isinstance(content, dict) else None
    if type(version) is not int:
        raise BaselineError(f'{file}: not a baseline of codemod, which begins with {{"{_KIND}": {VERSION}')
    if version > VERSION:
        raise BaselineError(f"{file}: written by a newer codemod (version {version}, this one reads {VERSION})")
    entries: Counter[Fingerprint] = Counter()
    listed = content.get("findings")
    if not isinstance(listed, list):
        raise BaselineError(f"{file}: the baseline has no list of findings; {_ANEW}")
    for number, entry in enumerate(listed, 1):
        entries[_fingerprint(file, number, entry)] += entry.get("count", 1)
    return Baseline(file, dict(entries))


def _fingerprint(file: Path, number: int, entry: Any) -> Fingerprint:
    if isinstance(entry, dict):
        values = [entry.get(name) for name in Fingerprint._fields]
        count = entry.get("count", 1)
        if all(isinstance(value, str) for value in values) and type(count) is int and 0 < count <= MOST:
            return Fingerprint(*map(str, values))
    raise BaselineError(f"{file}: entry {number} of the baseline is not a finding; {_ANEW}")


def save_baseline(baseline: Baseline) -> bool:
    """Write ``baseline`` to its file, wholly or not at all, and tell whether that changed the file.

    Raises :class:`BaselineError` if it cannot be written.
    """
    from codemods.source.files import read_source

    text = _rendered(baseline.entries)
    try:
        if not is_there(baseline.file):
            create_atomically(baseline.file, text.encode("utf-8", "backslashreplace"))
            return True
        source = read_source(baseline.file, str(baseline.file))
        text = text.encode("utf-8", "backslashreplace").decode()
        write_atomically(source, text)
        return source.text != text
    except SourceError as error:
        raise BaselineError(f"{baseline.file}: {error.reason}") from None


def _rendered(entries: Mapping[Fingerprint, int]) -> str:
    # A line an entry, so that a line of a diff is a finding that came or went.
    lines = [
        json.dumps(mark._asdict() | ({"count": count} if count > 1 else {}), ensure_ascii=False)
        for mark, count in sorted(entries.items())
    ]
    body = "".join(f"\n  {line}," for line in lines).rstrip(",")
    return f'{{\n "{_KIND}": {VERSION},\n "findings": [{body}{chr(10) + " " if lines else ""}]\n}}\n'


def compare(
    findings: Sequence[Finding],
    texts: Mapping[str, str],
    baseline: Baseline,
    *,
    left_out: Collection[str] = (),
    unread: Collection[str] = (),
) -> Compared:
    """Hold ``findings``, all that there are in ``texts`` (by path), against ``baseline``.

    ``left_out`` are rules that were not looked for, ``unread`` files that could not be read. Nothing is gone that was
    not looked for: of such a rule, or in a file that is there and not among ``texts``.
    """
    folder = os.path.abspath(baseline.file.parent)
    marks = fingerprints(findings, texts, folder)
    left = Counter(dict(baseline.entries))
    new: list[int] = []
    for index, mark in enumerate(marks):
        if left[mark] > 0:
            left[mark] -= 1
        else:
            new.append(index)
    # What is left of files that are there no more, under all but the path.
    moved: dict[tuple[str, ...], list[Fingerprint]] = defaultdict(list)
    for mark in sorted(left.elements()):
        if not is_there(os.path.join(folder, mark.path)):
            moved[mark[1:]].append(mark)
    really_new = []
    for index in new:
        if moved[marks[index][1:]]:
            left[moved[marks[index][1:]].pop(0)] -= 1
        else:
            really_new.append(index)
    seen = {_relative(path, folder) for path in texts} - {_relative(path, folder) for path in unread}

    def judged(mark: Fingerprint) -> bool:
        there = is_there(os.path.join(folder, mark.path))
        return mark.rule not in left_out and (mark.path in seen or not there)

    gone = tuple(mark for mark in sorted(left.elements()) if judged(mark))
    kept = Counter(mark for mark in left.elements() if not judged(mark))
    after = Baseline(baseline.file, dict(Counter(marks) + kept))
    return Compared(tuple(findings[index] for index in really_new), len(findings) - len(really_new), gone, after)


def fingerprints(findings: Iterable[Finding], texts: Mapping[str, str], folder: str) -> list[Fingerprint]:
    """Return what each of ``findings``, made in ``texts`` (by path), is known by in a baseline in ``folder``."""
    outlines: dict[str, _Outline] = {}
    marks = []
    for finding in findings:
        if finding.path not in outlines:
            outlines[finding.path] = _Outline(texts[finding.path], finding.path)
        function, statement = outlines[finding.path].around(finding)
        marks.append(Fingerprint(_relative(finding.path, folder), finding.rule, function, statement))
    return marks


def _relative(path: str, folder: str) -> str:
    full = os.path.abspath(path)
    try:
        return os.path.relpath(full, folder).replace(os.sep, "/")
    except ValueError:  # another drive
        return full.replace(os.sep, "/")


class _Outline:
    """The statements of a text, and what function each is in."""

    def __init__(self, text: str, path: str) -> None:
        self._lines = split_lines(text)
        try:
            self._tree: ast.Module | None = parse(text, path)
        except SourceError:
            self._tree = None

    def around(self, finding: Finding) -> tuple[str, str]:
        """The qualified name of the function or class around ``finding``, and the text of its statement."""
        line = finding.span.line
        names: list[str] = []
        found: ast.stmt | None = None
        suite: Sequence[ast.stmt] = self._tree.body if self._tree is not None else ()
        while True:
            inner = next((s for s in suite if _first_line(s) <= line <= (s.end_lineno or s.lineno)), None)
            if inner is None:
                break
            if found is not None and isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.append(found.name)
            found = inner
            suite = list(_statements_in(inner))
        if found is None:
            return "", _normalised(self._lines[line - 1] if line <= len(self._lines) else "")
        body = getattr(found, "body", None)
        last = found.end_lineno or found.lineno
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            first = _first_line(body[0])
            last = first - 1 if first > found.lineno else first
        return ".".join(names), _normalised("\n".join(self._lines[found.lineno - 1 : last]))


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _statements_in(statement: ast.stmt) -> Iterable[ast.stmt]:
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            yield from child.body


def _normalised(code: str) -> str:
    """``code`` in one line: no comments, one blank for many, none within brackets, no comma before a closing one, and
    one kind of quote. (The same for every version of Python, and for the styles of formatters.)"""
    lines = code.split("\n")
    try:
        for token in tokens(code):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column]
    except (tokenize.TokenError, SyntaxError):
        pass  # The head of a block is no program, and its tokens were read by then.
    text = " ".join(" ".join(line.rstrip("\\") for line in lines).split()).replace("'", '"')
    text = re.sub(r"([(\[{]) ", r"\1", text)
    return re.sub(r"[, ]*([)\]}])", r"\1", text)
