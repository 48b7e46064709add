"""The record of a review: a diff that ``git apply`` takes as it is, with what it takes to fit it to other files.

What git passes over are lines that begin with ``#``. Those with ``#codemod`` hold an object of JSON each: one for the
whole (``version``), one for each change, and before each file one that tells of its hunks.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codemods import __version__
from codemods.patches.parsing import DiffHunk, FileDiff, Parsed, PatchError, parse_diff
from codemods.patches.pieces import NEAR, WIDE, Piece, digest
from codemods.patches.placing import Base
from codemods.rewriting.changes import Hunk, Key, Proof, review
from codemods.rewriting.result import ApplyResult
from codemods.source.diffs import header_name, lines_of, printable, unified
from codemods.source.enclosing import Outline
from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.source.writing import write_output
from codemods.terms.errors import UserError
from codemods.terms.findings import Finding, Promise

VERSION = 1
_NOTE = "#codemod "
_IGNORE = "# codemod: ignore"
_OPTIONS = ("hidden_state", "total_style", "no_grad_style", "target_torch")


class BundleError(UserError):
    """A review that cannot be recorded; says why."""


@dataclass(frozen=True)
class Wanted:
    """A finding that a change mends: its rule and path, and its statement as it was."""

    rule: str
    path: str
    line: int
    statement: str
    function: str


@dataclass(frozen=True)
class RecordedChange:
    """A change of a bundle; ``own`` if its text is the user's own, which promises nothing."""

    rule: str
    promise: Promise
    message: str
    findings: tuple[Wanted, ...]
    own: bool


@dataclass(frozen=True)
class RecordedHunk:
    """What a bundle says of lines that it changes: how many go, and ``about``, all but the lines themselves."""

    removed: int
    about: Piece


@dataclass(frozen=True)
class RecordedFile:
    path: str
    blob: str
    encoding: str
    hunks: tuple[RecordedHunk, ...]


@dataclass(frozen=True)
class Bundle:
    """A patch that was read: the diff, and if it is one of ours the changes and files it records."""

    diff: tuple[FileDiff, ...]
    ours: bool
    options: Options
    changes: tuple[RecordedChange, ...] = ()
    files: Mapping[str, RecordedFile] | None = None


def blob_of(data: bytes) -> str:
    """Return the name under which git keeps ``data``."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def save(
    result: ApplyResult,
    file: Path,
    *,
    options: Options,
    proofs: Mapping[Key, Proof] | None = None,
    own: Collection[Key] = (),
) -> None:
    """Write what ``result`` changes as a bundle to ``file``, wholly or not at all; ``own`` are the user's own texts.

    Raises :class:`BundleError` where a file is outside the working directory, and where one was translated from
    Python 2, and :class:`UserError` where the bundle cannot be written.
    """
    write_output(file, dump(result, options=options, proofs=proofs, own=own))


def dump(
    result: ApplyResult,
    *,
    options: Options,
    proofs: Mapping[Key, Proof] | None = None,
    own: Collection[Key] = (),
) -> bytes:
    """Return the bundle that :func:`save` writes."""
    if result.translations:
        path = result.translations[0].source.path
        raise BundleError(f"--patch records no translation from Python 2, as of {path}: write that first")
    found = review(result, proofs)
    outlines = {rewrite.source.path: Outline(rewrite.source.text) for rewrite in result.rewrites}
    sources = {source.path: source for source in result.sources}
    lines = [
        "# A patch of codemod. `git apply` takes it as it is; `codemod patch` fits it to files that changed since.",
        "#",
    ]
    notes: list[dict[str, Any]] = [
        {"version": VERSION, "by": __version__, "options": {name: getattr(options, name) for name in _OPTIONS}}
    ]
    for number, change in enumerate(found.changes, 1):
        finding = change.finding
        mine = change.key in own
        verdict = f", {change.proof.verdict}" if change.proof else ""
        line = finding.span.line
        place = f"{finding.path}:{sources[finding.path].place(line) if finding.path in sources else line}"
        told = ", in the reviewer's own words" if mine else ""
        lines.append(printable(f"# {number}. {place} {finding.rule} ({change.promise.value}{verdict}{told})"))
        lines.append(printable(f"#    {finding.message}"))
        notes.append(
            {
                "rule": change.rule,
                "promise": change.promise.value,
                "message": finding.message,
                "verdict": change.proof._asdict() if change.proof else None,
                "own": mine,
                "findings": [_wanted(one, outlines) for one in change.findings],
            }
        )
    out = ["\n".join(lines).encode("utf-8", "backslashreplace"), b"\n", *map(_note, notes)]
    for source, new in sorted(result.rewrites, key=lambda rewrite: rewrite.source.path):
        hunks = [hunk for hunk in found.hunks if hunk.path == source.path]
        out += _file(source, new, hunks)
    return b"".join(out)


def _note(content: Mapping[str, Any]) -> bytes:
    return f"{_NOTE}{json.dumps(content)}\n".encode("ascii")


def _wanted(finding: Finding, outlines: Mapping[str, Outline]) -> dict[str, Any]:
    outline = outlines.get(finding.path)
    line = finding.span.line
    return {
        "rule": finding.rule,
        "path": finding.path,
        "line": line,
        "statement": outline.statement_at(line) if outline else "",
        "function": outline.function_at(line) if outline else "",
    }


def _file(source: SourceFile, new: str, hunks: Sequence[Hunk]) -> Iterator[bytes]:
    path = source.path
    if os.path.isabs(path) or path.startswith("../"):
        raise BundleError(f"{path} is outside the working directory: --patch writes paths that are relative to it")
    old_data, new_data = source.encode(source.text), source.encode(new)
    if old_data == new_data:
        return
    base, new_lines = Base(source.text), lines_of(new)
    yield _note(
        {
            "path": path,
            "blob": blob_of(old_data),
            "encoding": source.encoding,
            "hunks": [_recorded(hunk, base, new_lines) for hunk in hunks],
        }
    )
    names = [header_name(side, path).removesuffix(b"\t") for side in "ab"]
    yield b"diff --git %s %s\n" % (names[0], names[1])
    yield f"index {blob_of(old_data)}..{blob_of(new_data)}\n".encode("ascii")
    yield unified(path, old_data, new_data)


def _recorded(hunk: Hunk, base: Base, new_lines: Sequence[str]) -> dict[str, Any]:
    lines, outline = base.lines, base.outline
    start, new_start = hunk.old_start - 1, hunk.new_start - 1
    end, new_end = start + len(hunk.removed), new_start + len(hunk.added)
    function = outline.function_at(min(hunk.old_start, max(1, len(lines))))
    made = new_lines[max(0, new_start - NEAR) : new_end + NEAR]
    return {
        "line": hunk.old_start,
        "removed": len(hunk.removed),
        "new_line": hunk.new_start,
        "added": len(hunk.added),
        "changes": [] if _is_comment(hunk) else list(hunk.changes),
        "function": function,
        "above": list(lines[max(0, start - WIDE) : start]),
        "below": list(lines[end : end + WIDE]),
        "above_later": list(new_lines[max(0, new_start - NEAR) : new_start]),
        "below_later": list(new_lines[new_end : new_end + NEAR]),
        "before": [digest(lines[:start]), digest(new_lines[:new_start])],
        "after": [digest(lines[end:]), digest(new_lines[new_end:])],
        "fresh": not any(outline.function_at(at + 1) == function for at in base.found(made)),
        "single": len(base.found(lines[max(0, start - NEAR) : end + NEAR])) == 1,
    }


def _is_comment(hunk: Hunk) -> bool:
    """Whether it only adds comments that suppress: these belong to no change that is made."""
    pairs = list(zip(hunk.removed, hunk.added, strict=False))
    return len(hunk.removed) == len(hunk.added) and all(
        new.startswith(old.rstrip()) and _IGNORE in new[len(old.rstrip()) :] for old, new in pairs
    )


def load(data: bytes) -> Bundle:
    """Read a bundle, or any unified diff. Raises :class:`~codemods.patches.parsing.PatchError` for anything else."""
    if b"\0" in data[:8000] and not data.lstrip().startswith((b"diff ", b"--- ")):
        raise PatchError("not a patch: it holds null bytes")
    parsed = parse_diff(data)
    if not parsed.notes:
        if not parsed.files:
            raise PatchError("it contains no diff")
        return Bundle(tuple(parsed.files), ours=False, options=Options())
    return _ours(parsed)


def _ours(parsed: Parsed) -> Bundle:
    head, *notes = [(line, _json(line, text)) for line, text in parsed.notes]
    version = head[1].get("version")
    if not isinstance(version, int):
        raise PatchError(f"line {head[0]}: not the head of a bundle: no version")
    if version > VERSION:
        raise PatchError(f"a bundle of version {version}, made by a newer codemod; this one reads {VERSION}")
    changes: list[RecordedChange] = []
    files: dict[str, RecordedFile] = {}
    line = head[0]
    try:
        chosen = {name: str(head[1]["options"][name]) for name in _OPTIONS}
        options = replace(Options(), **chosen)  # type: ignore[arg-type]
        for number, note in notes:
            line = number
            if "path" in note:
                files[note["path"]] = _recorded_file(note)
            else:
                changes.append(_recorded_change(note))
        for file in files.values():
            for hunk in file.hunks:
                if any(not 0 <= index < len(changes) for index in hunk.about.changes):
                    raise PatchError(f"{file.path}: a hunk names a change that the bundle does not record")
    except (KeyError, TypeError, ValueError) as error:
        raise PatchError(f"line {line}: the bundle is damaged: {type(error).__name__} {error}") from None
    return Bundle(tuple(parsed.files), True, options, tuple(changes), files)


def _json(line: int, text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise PatchError(f"line {line}: the bundle is damaged: not an object of JSON") from None
    if not isinstance(content, dict):
        raise PatchError(f"line {line}: the bundle is damaged: not an object of JSON")
    return content


def _recorded_change(note: Mapping[str, Any]) -> RecordedChange:
    findings = tuple(
        Wanted(str(one["rule"]), str(one["path"]), int(one["line"]), str(one["statement"]), str(one["function"]))
        for one in note["findings"]
    )
    return RecordedChange(
        str(note["rule"]), Promise(note["promise"]), str(note["message"]), findings, bool(note.get("own"))
    )


def _recorded_file(note: Mapping[str, Any]) -> RecordedFile:
    path = str(note["path"])
    hunks = tuple(_recorded_hunk(path, one) for one in note["hunks"])
    return RecordedFile(path, str(note["blob"]), str(note["encoding"]), hunks)


def _recorded_hunk(path: str, told: Mapping[str, Any]) -> RecordedHunk:
    texts = {name: tuple(map(str, told[name])) for name in _TEXTS}
    about = Piece(
        number=0,
        path=path,
        line=int(told["line"]),
        removed=(),
        added=(),
        function=str(told["function"]),
        single=bool(told["single"]),
        fresh=bool(told["fresh"]),
        changes=tuple(map(int, told["changes"])),
        **texts,
    )
    return RecordedHunk(int(told["removed"]), about)


#: Of a hunk: its surroundings, and digests of what lies beyond.
_TEXTS = ("above", "below", "above_later", "below_later", "before", "after")


def sides(hunk: DiffHunk) -> Iterator[tuple[int, int, list[bytes], list[bytes]]]:
    """Yield the changed stretches of a hunk: where they stood on either side, from 1, what went and what came."""
    old, new = hunk.old_start, hunk.new_start
    removed: list[bytes] = []
    added: list[bytes] = []
    for sign, text in (*hunk.body, (" ", b"")):
        if sign == " ":
            if removed or added:
                yield old - len(removed), new - len(added), removed, added
                removed, added = [], []
            old, new = old + 1, new + 1
        elif sign == "-":
            removed.append(text)
            old += 1
        else:
            added.append(text)
            new += 1
