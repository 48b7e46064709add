"""What our own reports look like: only these are overwritten, each by a newer one of the same kind."""

from __future__ import annotations

import re
from collections.abc import Collection

from codemods import rules

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
    rb"(?:[Ee]very promise [^\n]*held|[Nn]o promise held|[Tt]he promise (?:held|was broken)"
    rb"|[\d,]+ of [\d,]+ promises? (?:broken|held;)"
    rb"|[Cc]ould not be judged|[Nn]ot all rewritten lines ran|[Tt]he rewritten lines did not run"
    rb"|[Nn]othing was rewritten, so )"
)
_LEFT = rb"[^\n]*: (?:skipped|not saved|unused ignore): "
_COUNTS = rb"\d+ files?, \d+ findings?(?:,| (?:would be )?fixed)"

# By what they begin with: a report that somebody quotes in notes of their own makes no report of these.
_MARKS: dict[str, tuple[bytes, ...]] = {
    "json": (
        rb'\A\{\s*"version": \d+,\s*"findings": \[(?:\]|\s*\{\s*"rule": "[a-z-]+",\s*"path": )',
        rb'\A\{\s*"version": \d+,\s*"(?:root|status)": (?=[\s\S]*"(?:judged|faults|repairs)": )',
        rb'\A\{\s*"version": \d+,\s*"rules": \[\s*\{\s*"name": "[a-z-]+",\s*"promise"',
        rb'\A\{\s*"version": \d+,\s*"hunks": \[(?:\]|\s*\{\s*"hunk")',
    ),
    "sarif": (rb'\A\{\s*"\$schema": "[^"]*sarif[^"]*"',),
    "suggestions": (rb'\A\{\s*"event": "COMMENT",\s*"body": "\d+ suggestions? of codemod',),
    "gitlab": (rb'\A\[(?:\]\s*\Z|\s*\{\s*"description": )',),
    "checkstyle": (rb"\A<\?xml [^\n]*\n<checkstyle version",),
    "junit": (rb"\A<\?xml [^\n]*\n<testsuites ",),
    "rdjson": (rb'\A\{\s*"source": ',),
    "json-lines": (rb"\A\{",),
    "pylint": (rb"",),
    "github": (rb"\A::",),
    "azure": (rb"\A##vso\[",),
    "html": (rb"\A<!DOCTYPE html>\n(?=[\s\S]*^<title>codemod(?: \w+)?: )",),
    "markdown": (
        rb"\A(?:# Fix [^\n]*\n\n)?\*\*(?:[\d,]+ (?:findings?|places?) in |(?:No findings|Nothing to change)\*\* in )",
        rb"\A\*\*" + _VERDICT + rb"[^*\n]*\.\*\*",
    ),
    PICTURE: (
        rb"\A<svg [^>]*aria-label=[^>]*DejaVu Sans Mono, Menlo",
        rb"\A\x89PNG[\s\S]{0,400}Software\x00codemod",
        rb"\A<\?xml [\s\S]{0,2000}<dc:title>codemod</dc:title>",
    ),
    PATCH: (rb"\A# A patch of codemod\.",),
    DIFF: (rb"\A# A diff of codemod\.",),
    REVIEW: (rb'\A\{\s*"codemod-review": ',),
    "text": (
        # A finding, a file with its findings, what became of others, a summary.
        rb"\A[^\n]*:\d+:\d+: [a-z-]+ " + _PROMISE,
        rb"\A[^\n]*:\n  \d+(?::\d+)+ +[a-z-]+ " + _PROMISE,
        rb"\A(?:" + _LEFT + rb"[^\n]*\n)+(?:\Z|[^\n]*: [a-z-]+: |note: |" + _COUNTS + rb")",
        rb"\A[^\n]*: [a-z-]+: (?:our edit was taken back: |not made, |gone from the baseline: )",
        rb"\A(?:note: [^\n]*\n)*" + _COUNTS,
        # Lists of rules; what became of a patch.
        rb"\A[a-z-]+ +(?:exact|equivalent|repair|behaviour|advice) ",
        rb"\A(?:note: [^\n]*\n)*(?:[^\n]*: (?:hunk \d+|all hunks)\b[^\n]*: |\d+ hunks?: )",
        # Verdicts, faults, repairs.
        rb"\A(?:(?:[^\n]+\n)+\n +original\b[\s\S]*^)?" + _VERDICT,
        rb"\A[^\n]+: (?:\d+ faults?\n\n1\. |no diagnosis\n|nothing found in \d+ (?:step|backward))",
        rb"\A(?:fault 1: |repair 1: |tried in vain: |left: |nothing (?:found|is wrong)[^\n]* in \d+ )",
    ),
}

# What other tools write in the same form, and more than one may write into one file: each entry, with the rule or the
# tool that it names. An entry that names none of ours is somebody else's. Without any entry nothing would be lost.
_ENTRIES = {
    "json": rb'\A\{\s*"version": \d+,\s*"findings": \[\s*\{\s*"rule": "([^"]*)"',
    "sarif": rb'"driver":\s*\{(?:\s*"name": "([^"]*)")?',
    "gitlab": rb'^ \{$(?:\s*"description": "[^\n]*",\s*"check_name": "([^"]*)")?',
    "checkstyle": rb'<error\b(?:[^>]* source="codemod\.([^"]*)")?',
    "junit": rb'<testsuites\b(?: name="([^"]*)")?',
    "rdjson": rb'"source":\s*\{(?:\s*"name": "([^"]*)")?',
    "json-lines": rb'^(?:\{"rule": "([^"]*)", "path": )?.+',
    "pylint": rb"^(?:.*?:\d+: \[([^\]]*)\] )?.+",
    "github": rb"^(?:::\w+ (?:[^:\n]*,)?title=([\w-]+)(?: \(\w+\))?::|(?=codemod: \d)(codemod))?.+",
    "azure": rb"^(?:##vso\[task\.logissue [^\]\n]*;code=([^;\]]*);\])?.+",
}


_DIFF_TITLE = b"# A diff of codemod. `git apply` and `patch -p1` take it as it is.\n"


def titled(diff: bytes) -> bytes:
    """Return ``diff`` as it goes to a file: under a title, because one of somebody else looks like ours otherwise."""
    return _DIFF_TITLE + diff if diff else diff


def kind_of(form: str) -> str:
    """Return the kind of a report in the format ``form``."""
    return "text" if form in _TEXT else form


def is_ours(data: bytes, kinds: Collection[str]) -> bool:
    """Whether ``data`` is what one of our commands wrote to a file, of one of ``kinds``; so is nothing at all."""
    plain = _COLOUR.sub(b"", data).lstrip(b"\n")
    return not plain.strip() or any(_is_of(kind, plain) for kind in kinds)


def _is_of(kind: str, plain: bytes) -> bool:
    ends = plain if len(plain) <= 2 * _ENDS else plain[:_ENDS] + b"\n" + plain[-_ENDS:]
    if not any(re.search(mark, ends, re.MULTILINE) for mark in _MARKS[kind]):
        return False
    if kind not in _ENTRIES:
        return True
    from codemods.reports._listed import UNREADABLE

    ours = {name.encode() for name in (*rules.rule_names(), UNREADABLE, "codemod")}
    entries = re.finditer(_ENTRIES[kind], plain, re.MULTILINE)
    return all(entry.lastindex is not None and entry[entry.lastindex] in ours for entry in entries)
