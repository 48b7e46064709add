"""What our own reports look like: only these are replaced by newer ones."""

from __future__ import annotations

import re

_ENDS = 65_536

_MARKS = (
    # Reports for programs, by what they begin with: JSON of check, apply, patch, verify, doctor, fix and rules.
    rb'\A\{\s*"version": \d+,\s*"(?:findings|root|status|rules|written|hunks)"',
    rb'\A\{\s*"\$schema": "[^"]*sarif[^"]*"',
    rb'\A\{\s*"event": "COMMENT",\s*"body": "\d+ suggestions? of codemod',
    rb'\A\[(?:\]|\s*\{\s*"description": "[^\n]*",\s*"check_name": )',
    rb'\A<\?xml [^\n]*\n<(?:checkstyle version|testsuites name="codemod")',
    rb'\A\{\s*"source": \{\s*"name": "codemod"',
    rb'\A\{"rule": "[a-z-]+", "path": ',
    rb"\A[^\n]*:\d+: \[[a-z-]+\] ",
    rb"\A(?:::(?:error|warning|notice) |##vso\[task\.logissue )",
    # Pages and pictures.
    rb"\A<!DOCTYPE html>\n(?=[\s\S]*codemod)",
    rb"\A<svg [^>]*aria-label=[^>]*DejaVu Sans Mono, Menlo",
    rb"\A\x89PNG[\s\S]{0,400}Matplotlib",
    rb"\A<\?xml [\s\S]{0,2000}Matplotlib",
    # Patches and diffs.
    rb"\A# A patch of codemod\.",
    rb"\A(?:diff --git [^\n]*\n(?:[^-\n][^\n]*\n)*)?--- [^\n]+\n\+\+\+ [^\n]+\n@@ ",
    # Text: a finding, a summary, a verdict, a fault.
    rb"(?m)^[^\n]*:\d+:\d+: [a-z-]+ \[(?:exact|equivalent|repair|behaviour|advice)\] ",
    rb"(?m)^\d+ files?, \d+ findings?(?:,| (?:would be |were )?fixed)",
    rb"(?m)^[a-z-]+ +(?:exact|equivalent|repair|behaviour|advice) ",
    rb"(?m)^\d+ hunks?: ",
    rb"(?m)^(?:[^\n]+: \d+ faults?|nothing found in \d+ steps?|fault 1: |nothing (?:is wrong|was found))",
    rb"(?m)^(?:every promise held|not judged|a promise was broken|\d+ (?:kept|broken))",
    rb"(?m)^cpu, torch |^watched: ",
    rb"\A\*\*(?:\d+ (?:findings?|places?) in |(?:No findings|Nothing to change|Nothing changed)\*\* in )",
    rb"\A\*\*(?:Every promise held|[^*\n]+\.\*\* \d+ )",
)

_OURS = tuple(re.compile(mark) for mark in _MARKS)


def is_ours(data: bytes) -> bool:
    """Whether ``data`` is what one of our commands wrote to a file, in any of its formats; so is nothing at all."""
    if len(data) > 2 * _ENDS:
        data = data[:_ENDS] + b"\n" + data[-_ENDS:]
    return not data.strip() or any(mark.search(data) for mark in _OURS)
