"""From the hunks of a diff, and what a bundle says of them, to pieces that can be fitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from codemods.patches.bundle import Bundle, RecordedFile, RecordedHunk, sides
from codemods.patches.parsing import DiffHunk, FileDiff, PatchError
from codemods.patches.pieces import Piece

BOM = "\ufeff"


def pieces_of(file: FileDiff, bundle: Bundle, number: int, encoding: str) -> tuple[list[Piece], set[int]]:
    """Return the pieces of a file, numbered from ``number``, and the indices of changes that miss a hunk in the diff.

    ``encoding`` is that of the file as it is now; a bundle's own record of it goes first. Raises
    :class:`~codemods.patches.parsing.PatchError` for lines that are not in it.
    """
    recorded = (bundle.files or {}).get(file.path)
    encoding = recorded.encoding if recorded else encoding
    pieces: list[Piece] = []
    seen: set[RecordedHunk] = set()
    for hunk in file.hunks:
        known = list(_known(hunk, recorded, encoding)) if recorded else []
        stretches = {old for old, *_ in sides(hunk)}
        if recorded and stretches <= {start for start, _, _ in known}:
            seen |= {one for _, one, _ in known}
            pieces += [piece for _, _, piece in known]
        else:
            pieces.append(_plain(hunk, file.path, encoding))
    missing = {index for one in (recorded.hunks if recorded else ()) if one not in seen for index in one.about.changes}
    return [replace(piece, number=at) for at, piece in enumerate(pieces, number)], missing


def _known(hunk: DiffHunk, recorded: RecordedFile, encoding: str) -> Iterable[tuple[int, RecordedHunk, Piece]]:
    """Yield the start of each changed stretch that the bundle knows, with what it says of it, whole or in parts."""
    for start, _, gone, come in sides(hunk):
        removed, added = _text(gone, encoding, hunk), _text(come, encoding, hunk)
        if start == 1:
            removed, added = _unmarked(removed), _unmarked(added)
        end = start + len(removed)
        inside = [one for one in recorded.hunks if start <= one.about.line and one.about.line + one.removed <= end]
        whole = [one for one in inside if (one.about.line, one.removed) == (start, len(removed))]
        if whole:
            yield start, whole[0], replace(whole[0].about, removed=tuple(removed), added=tuple(added))
        elif len(removed) == len(added) and sum(one.removed for one in inside) == len(removed):
            for one in inside:
                part = slice(one.about.line - start, one.about.line - start + one.removed)
                yield start, one, replace(one.about, removed=tuple(removed[part]), added=tuple(added[part]))


def _plain(hunk: DiffHunk, path: str, encoding: str) -> Piece:
    signs = [sign for sign, _ in hunk.body]
    changed = [index for index, sign in enumerate(signs) if sign != " "] or [0]
    first, last = changed[0], changed[-1] + 1

    def side(part: Sequence[tuple[str, bytes]], without: str) -> tuple[str, ...]:
        lines = _text([text for sign, text in part if sign != without], encoding, hunk)
        return tuple(_unmarked(lines))

    return Piece(
        number=0,
        path=path,
        line=hunk.old_start + first,
        above=side(hunk.body[:first], "+"),
        removed=side(hunk.body[first:last], "+"),
        added=side(hunk.body[first:last], "-"),
        below=side(hunk.body[last:], "+"),
    )


def _text(lines: Sequence[bytes], encoding: str, hunk: DiffHunk) -> list[str]:
    try:
        return [line.decode(encoding) for line in lines]
    except UnicodeDecodeError:
        raise PatchError(f"line {hunk.line}: the hunk holds bytes that are not {encoding}") from None
    except (ValueError, LookupError):
        raise PatchError(f"line {hunk.line}: its file has an unknown encoding, {encoding!r}") from None


def _unmarked(lines: Sequence[str]) -> list[str]:
    return [line.removeprefix(BOM) if index == 0 else line for index, line in enumerate(lines)]
