"""What our own reports look like: only these are overwritten, each by a newer one of the same kind."""

from __future__ import annotations

import re
from collections.abc import Collection

PATCH, DIFF, PICTURE, REVIEW = "patch", "diff", "picture", "review"
"""Kinds of what is written to files, beside the formats of reports: what ``apply --patch`` and ``--dry-run`` write,
drawings, and the answers that ``apply -i --resume`` keeps."""
NO_REPORTS = frozenset({PATCH, DIFF, PICTURE, REVIEW})

#: Formats that are one kind: text for people.
_TEXT = frozenset({"text", "full", "concise", "grouped"})

_ENDS = 65_536
_COLOUR = re.compile(rb"\x1b\[[\d;]*m")
_PROMISE = rb"\[(?:exact|equivalent|repair|behaviour|advice)\] "
_VERDICT = (
    rb"(?:every promise [^\n]*held|no promise held|the promise (?:held|was broken)"
    rb"|[\d,]+ of [\d,]+ promises? (?:broken|held;)"
    rb"|could not be judged|not all rewritten lines ran|the rewritten lines did not run|nothing was rewritten, so )"
)

# By what they begin with: a report that somebody quotes in notes of their own makes no report of these.
_MARKS: dict[str, tuple[bytes, ...]] = {
    "json": (rb'\A\{\s*"version": \d+,\s*"(?:findings|root|status|rules|written|hunks)"',),
    "sarif": (rb'\A\{\s*"\$schema": "[^"]*sarif[^"]*"[\s\S]*"name": "codemod"',),
    "suggestions": (rb'\A\{\s*"event": "COMMENT",\s*"body": "\d+ suggestions? of codemod',),
    "gitlab": (rb'\A\[(?:\]|\s*\{\s*"description": "[^\n]*",\s*"check_name": )',),
    "checkstyle": (rb"\A<\?xml [^\n]*\n<checkstyle version",),
    "junit": (rb'\A<\?xml [^\n]*\n<testsuites name="codemod"',),
    "rdjson": (rb'\A\{\s*"source": \{\s*"name": "codemod"',),
    "json-lines": (rb'\A\{"rule": "[a-z-]+", "path": ',),
    "pylint": (rb"\A[^\n]*:\d+: \[[a-z-]+\] ",),
    "github": (rb"\A::(?:error|warning|notice) ",),
    "azure": (rb"\A##vso\[task\.logissue ",),
    "html": (rb"\A<!DOCTYPE html>\n(?=[\s\S]*codemod)",),
    "markdown": (
        rb"\A(?:# Fix [^\n]*\n\n)?\*\*(?:[\d,]+ (?:findings?|places?) in |(?:No findings|Nothing to change)\*\* in )",
        rb"\A\*\*(?:Every promise held|[^*\n]+\.\*\* \d+ )",
    ),
    PICTURE: (
        rb"\A<svg [^>]*aria-label=[^>]*DejaVu Sans Mono, Menlo",
        rb"\A\x89PNG[\s\S]{0,400}Matplotlib",
        rb"\A<\?xml [\s\S]{0,2000}Matplotlib",
    ),
    PATCH: (rb"\A# A patch of codemod\.",),
    DIFF: (rb"\A# A diff of codemod\.",),
    REVIEW: (rb'\A\{\s*"codemod-review": ',),
    "text": (
        # A finding, a file with its findings, what became of others, a summary.
        rb"\A[^\n]*:\d+:\d+: [a-z-]+ " + _PROMISE,
        rb"\A[^\n]*:\n  \d+(?::\d+)+ +[a-z-]+ " + _PROMISE,
        rb"\A[^\n]*: (?:skipped|not saved|unused ignore|gone from the baseline): ",
        rb"\A[^\n]*: [a-z-]+: (?:our edit was taken back: |not made, |gone from the baseline: )",
        rb"\Anote: ",
        rb"\A\d+ files?, \d+ findings?(?:,| (?:would be )?fixed)",
        # Lists of rules; what became of a patch.
        rb"\A[a-z-]+ +(?:exact|equivalent|repair|behaviour|advice) ",
        rb"\A(?:[^\n]*: (?:hunk \d+|all hunks)\b[^\n]*: |\d+ hunks?: )",
        # Verdicts, faults, repairs.
        rb"\A(?:[^\n]+\n(?:[^\n]*, torch [^\n]*\n)?\n[\s\S]*^)?" + _VERDICT,
        rb"\A[^\n]+: (?:\d+ faults?|no diagnosis|nothing found in \d+ \w+)\n",
        rb"\A(?:fault 1: |repair 1: |tried in vain: |left: |nothing (?:found|is wrong)[^\n]* in \d+ )",
    ),
}

_OURS = {kind: tuple(re.compile(mark, re.MULTILINE) for mark in marks) for kind, marks in _MARKS.items()}


_DIFF_TITLE = b"# A diff of codemod. `git apply` and `patch -p1` take it as it is.\n"


def titled(diff: bytes) -> bytes:
    """Return ``diff`` as it goes to a file: under a title, because one of somebody else looks like ours otherwise."""
    return _DIFF_TITLE + diff if diff else diff


def kind_of(form: str) -> str:
    """Return the kind of a report in the format ``form``."""
    return "text" if form in _TEXT else form


def is_ours(data: bytes, kinds: Collection[str]) -> bool:
    """Whether ``data`` is what one of our commands wrote to a file, of one of ``kinds``; so is nothing at all."""
    if len(data) > 2 * _ENDS:
        data = data[:_ENDS] + b"\n" + data[-_ENDS:]
    plain = _COLOUR.sub(b"", data).lstrip(b"\n")
    return not plain.strip() or any(mark.search(plain) for kind in kinds for mark in _OURS[kind])
