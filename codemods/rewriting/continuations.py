"""Which finding after an edit is which before it: lines and findings followed from one text to the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from codemods.source.line_map import LineMap
from codemods.terms.findings import Finding


def continuations(
    before: Sequence[Finding],
    after: Sequence[Finding],
    *,
    old: Mapping[str, str],
    new: Mapping[str, str],
    mended: Collection[int],
) -> list[int | None]:
    """Return, for each finding of ``after``, the index of that in ``before`` which it continues, or None if it is new.

    ``old`` and ``new`` are the texts by path; ``mended`` are the indices of those that an edit should have removed,
    which are taken for continued only where no other could be.
    """
    maps: dict[str, LineMap] = {}
    at_line: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for index, finding in enumerate(before):
        at_line[finding.key].append(index)
    found: list[int | None] = [None] * len(after)

    def text_before(finding: Finding) -> str:
        return _line_of(maps[finding.path].old, finding)

    def text_after(finding: Finding) -> str:
        return _line_of(maps[finding.path].new, finding)

    for position, finding in enumerate(after):
        path = finding.path
        if path not in maps:
            maps[path] = LineMap(old[path], new[path])
        origins = maps[path].origins(finding.span.line)
        fitting = [index for line in origins for index in at_line.get((finding.rule, path, line), ())]
        if fitting:
            same_text = text_after(finding)
            best = min(
                fitting,
                key=lambda index: (
                    index in mended,
                    text_before(before[index]) != same_text,
                    before[index].message != finding.message,
                    abs(before[index].span.column - finding.span.column),
                ),
            )
            found[position] = best
            at_line[before[best].key].remove(best)
    left: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index in sorted(set(range(len(before))).difference(mended, found)):
        left[before[index].rule, before[index].path].append(index)
    for position, finding in enumerate(after):
        if found[position] is None:
            # A statement that an edit moved elsewhere took its finding with it.
            pool = left[finding.rule, finding.path]
            moved = [index for index in pool if text_before(before[index]) == text_after(finding)]
            if moved:
                found[position] = moved[0]
                pool.remove(moved[0])
    return found


def _line_of(lines: Sequence[str], finding: Finding) -> str:
    index = finding.span.line - 1
    return lines[index] if 0 <= index < len(lines) else ""
