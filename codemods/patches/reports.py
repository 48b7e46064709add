"""What became of a patch, for people and for programs."""

from __future__ import annotations

import json
from collections import Counter

from codemods.patches.results import FittedHunk, PatchResult, State
from codemods.reports import Detail
from codemods.source.diffs import printable
from codemods.terms.counting import plain_count_text
from codemods.terms.findings import ShownLine

VERSION = 1
_COLOUR = {State.REFUSED: "\x1b[31m", State.FUZZY: "\x1b[33m"}
_RESET = "\x1b[0m"


def as_text(result: PatchResult, detail: Detail, *, colour: bool = False) -> str:
    """Return a line for each hunk, and a summary; if quiet only what was refused."""
    lines = [f"note: {note}" for note in result.notes if detail >= Detail.NORMAL]
    for hunk in result.hunks:
        if detail >= Detail.NORMAL or hunk.state is State.REFUSED:
            told = _told(hunk, dry_run=result.dry_run)
            paint = _COLOUR.get(hunk.state, "") if colour else ""
            lines.append(f"{paint}{printable(told)}{_RESET if paint else ''}")
    if detail >= Detail.NORMAL:
        counts = Counter(hunk.state for hunk in result.hunks)
        parts = [f"{counts[state]} {state.value}" for state in State if counts[state]]
        verb = "would be changed" if result.dry_run else "changed"
        files = plain_count_text(len(result.rewrites), "file")
        lines.append(
            f"{plain_count_text(len(result.hunks), 'hunk')}: {', '.join(parts) or 'nothing to do'}; {files} {verb}"
        )
    return "".join(f"{line}\n" for line in lines)


def _told(hunk: FittedHunk, *, dry_run: bool) -> str:
    path, line = hunk.now
    was, at = ShownLine(hunk.cell, hunk.line), ShownLine(hunk.now_cell, line)
    head = f"{path}:{at}" if line else f"{hunk.path}:{was}" if hunk.line else hunk.path
    rules = f" ({', '.join(hunk.rules)})" if hunk.rules else ""
    name = f"hunk {hunk.number}" if hunk.number else "all hunks"
    text = f"{head}: {name}{rules}: {hunk.state.value}"
    if hunk.state is State.MOVED or (hunk.state is State.FUZZY and at != was):
        text += f" from {'line ' if was.cell is None else ''}{was} to {at}"
    return text + (f": {hunk.reason}" if hunk.reason else "")


def as_json(result: PatchResult) -> str:
    """Return one object; its shape is a promise, versioned, and only grows."""
    content = {
        "version": VERSION,
        "hunks": [
            {
                "hunk": hunk.number,
                "path": hunk.path,
                "line": hunk.line,
                **({} if hunk.cell is None else {"cell": hunk.cell}),
                "state": hunk.state.value,
                "now": {
                    "path": hunk.now[0],
                    "line": hunk.now[1],
                    **({} if hunk.now_cell is None else {"cell": hunk.now_cell}),
                },
                "rules": list(hunk.rules),
                "reason": hunk.reason,
            }
            for hunk in result.hunks
        ],
        "changed": [rewrite.source.path for rewrite in result.rewrites],
        "unwritten": [entry._asdict() for entry in result.unwritten],
        "notes": list(result.notes),
        "summary": {
            "hunks": len(result.hunks),
            **{state.value: sum(hunk.state is state for hunk in result.hunks) for state in State},
        },
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
