"""The diff of a notebook, which is one of JSON, as a diff of the program that its cells are.

Lines of JSON are nothing to look for in a notebook that has changed: they are spelled as the file spells them. So the
notebook is found as it was when the patch was made, and the patch made there; what this does to its program can be
fitted to the program that it is today.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from codemods.patches.bundle import blob_of
from codemods.patches.files import blob_in
from codemods.patches.parsing import DiffHunk, FileDiff, parse_diff
from codemods.source.diffs import lines_of, unified
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_bytes, source_from_bytes

CHANGED = (
    "the notebook is another one than it was made for, which git does not have either: "
    "run codemod apply --patch on the notebook as it is"
)
MORE = "it changes more of the notebook than the code of its cells, and only that is changed"


def is_notebook(path: str) -> bool:
    """Whether a file of that name is read as one."""
    return path.lower().endswith(".ipynb")


def of_program(file: FileDiff, now: SourceFile, root: Path) -> tuple[FileDiff, SourceFile] | str:
    """Return ``file``, the diff of a notebook, as one of its program, and the notebook that it was made for.

    ``now`` is the notebook as it is, below the folder ``root``. Where there is no such diff, says why.
    """
    try:
        data = read_bytes(now.absolute, now.path)
        sides = _sides(file, data, root)
        if sides is None:
            return CHANGED
        before, after = (source_from_bytes(side, now.path, now.absolute) for side in sides)
        if before.encode(after.text) != sides[1]:
            return MORE
    except SourceError as error:
        return error.reason
    programs = (one.text.encode("utf-8", "surrogatepass") for one in (before, after))
    parsed = parse_diff(unified("program", *programs)).files
    hunks = parsed[0].hunks if parsed else []
    return replace(file, blob=blob_of(sides[0]), hunks=hunks), before


def _sides(file: FileDiff, data: bytes, root: Path) -> tuple[bytes, bytes] | None:
    """The notebook before and after the diff, if one of them is ``data``, what it holds now, or git has the former."""
    made = _patched(data, file.hunks, "-")
    if made is not None:
        return data, made
    unmade = _patched(data, file.hunks, "+")
    if unmade is not None:
        return unmade, data
    old = blob_in(root, file.blob)
    made = None if old is None else _patched(old, file.hunks, "-")
    return None if old is None or made is None else (old, made)


def _patched(data: bytes, hunks: Sequence[DiffHunk], goes: str) -> bytes | None:
    """``data`` with ``hunks`` made, or unmade where ``+`` is what goes; None where they are not at their very lines."""
    lines = lines_of(data)
    out: list[bytes] = []
    at = 0
    for hunk in hunks:
        own = [text for sign, text in hunk.body if sign in (" ", goes)]
        start = (hunk.old_start if goes == "-" else hunk.new_start) - 1
        if start < at or lines[start : start + len(own)] != own:
            return None
        out += [*lines[at:start], *(text for sign, text in hunk.body if sign != goes)]
        at = start + len(own)
    return b"".join([*out, *lines[at:]])
