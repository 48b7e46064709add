"""Where lines stand now that are no longer quite the same, and a hunk fitted to them by diff-match-patch.

A place is found by words, so that new line breaks, blanks and indentation do not matter: the stretch of the file that
takes the fewest words to be taken out, put in or exchanged to become what the hunk expects. The hunk is then made there
by diff-match-patch, which is given a character for each word, so that it cuts none in two. It is believed only if that
takes out and puts in the very words that it does in the original.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from codemods.patches.pieces import content
from codemods.source.diffs import as_characters, blocks

LEAST = 0.6
"""The share of a hunk's words that has to be there."""
LEAST_UNPROVEN = 0.75
"""The same for a foreign diff, where no analysis can tell whether it mends anything."""
MARGIN = 0.1
"""By how much, as a share of the words, the best place has to be better than the next; two words at least."""
MOST_WORDS = 1500
"""Hunks of more words than this are fitted exactly or not at all."""
_REGIONS = 24

_WORD = re.compile(r"\w+|[^\w\s]")


class Word(NamedTuple):
    text: str
    line: int


class Window(NamedTuple):
    """Lines ``start`` to ``end`` (from 0, exclusive) of a file, ``distance`` words away from what was expected."""

    start: int
    end: int
    distance: int


def words_of(lines: Sequence[str]) -> list[Word]:
    """Return the words of lines and whatever else is no blank, each with the index of its line."""
    return [Word(word, number) for number, line in enumerate(lines) for word in _WORD.findall(line)]


def windows(expected: Sequence[str], text: Sequence[Word], least: float) -> list[Window]:
    """Return the places in ``text`` where the lines ``expected`` may stand, best first, none over another.

    Empty if nothing has ``least`` of the words, and for what is too short or too long to tell.
    """
    pattern = [word.text for word in words_of(expected)]
    if len(pattern) < 4 or len(pattern) > MOST_WORDS or not text:
        return []
    found: list[Window] = []
    for start, end in _regions(pattern, text, least):
        window = _nearest(pattern, text, start, end)
        if window is not None and window.distance <= len(pattern) * (1 - least):
            found.append(window)
    chosen: list[Window] = []
    for window in sorted(found, key=lambda one: (one.distance, one.start)):
        if all(window.end <= other.start or other.end <= window.start for other in chosen):
            chosen.append(window)
    return chosen


def clearly(best: Window, other: Window, expected: Sequence[str]) -> bool:
    """Tell whether ``best`` is better than ``other`` beyond doubt."""
    size = len(words_of(expected))
    return other.distance - best.distance >= max(2, round(MARGIN * size))


def _regions(pattern: Sequence[str], text: Sequence[Word], least: float) -> list[tuple[int, int]]:
    """Return stretches of ``text`` that hold enough words of ``pattern``, in whatever order, those with most first."""
    size = len(pattern)
    wanted = Counter(pattern)
    inside: Counter[str] = Counter()
    shared = 0
    scores: list[int] = []
    for index, word in enumerate(text):
        inside[word.text] += 1
        shared += inside[word.text] <= wanted[word.text]
        if index >= size:
            gone = text[index - size].text
            shared -= inside[gone] <= wanted[gone]
            inside[gone] -= 1
        scores.append(shared)
    order = sorted((-score, index) for index, score in enumerate(scores) if score >= size * least * 0.9)
    taken: list[int] = []
    for _, index in order:
        if all(abs(index - other) > size // 2 for other in taken):
            taken.append(index)
            if len(taken) == _REGIONS:
                break
    slack = size // 2 + 2
    return [(max(0, index - size + 1 - slack), min(len(text), index + 1 + slack)) for index in taken]


def _nearest(pattern: Sequence[str], text: Sequence[Word], start: int, end: int) -> Window | None:
    """Return the part of ``text[start:end]`` that is nearest to ``pattern`` (P. H. Sellers, 1980)."""
    # Of each prefix of the pattern: how far it is from the best text that ends here, and where that text begins.
    costs = [(count, start) for count in range(len(pattern) + 1)]
    best: tuple[int, int, int] | None = None
    for at in range(start, end):
        word = text[at].text
        diagonal = costs[0]
        costs[0] = (0, at + 1)
        for row, expected in enumerate(pattern, 1):
            above = costs[row]
            exchanged = (diagonal[0] + (word != expected), diagonal[1])
            costs[row] = min(
                exchanged, (above[0] + 1, above[1]), (costs[row - 1][0] + 1, costs[row - 1][1]), key=lambda c: c[0]
            )
            diagonal = above
        distance, begin = costs[-1]
        if begin <= at and (best is None or distance < best[0]):
            best = (distance, begin, at)
    if best is None:
        return None
    distance, begin, at = best
    return Window(text[begin].line, text[at].line + 1, distance)


def fitted(expected: Sequence[str], wanted: Sequence[str], window: Sequence[str]) -> list[str] | None:
    """Return the lines of ``window``, without ends, with the change made that turns ``expected`` into ``wanted``.

    None if it does not fit. The change's indentation becomes that of the lines around it.
    """
    indents = _indents(expected, window)
    old = [_indented(content(line), indents) for line in expected]
    new = [_indented(content(line), indents) for line in wanted]
    if old == list(window):
        return new
    before = "\n".join(window)
    after = _patched("\n".join(old), "\n".join(new), before)
    if after is None:
        return None
    gone, come = _exchange(before, after)
    if (gone, come) != _exchange("\n".join(old), "\n".join(new)):
        return None
    result = [line if line.strip() else "" for line in after.split("\n")]
    return result if _alike(old, new, window, result) else None


def _alike(old: Sequence[str], new: Sequence[str], window: Sequence[str], result: Sequence[str]) -> bool:
    """Whether the lines that changed are like those that change in the original, and stand beside like ones."""
    (gone, come), (gone_now, come_now) = _changed(old, new), _changed(window, result)
    if gone:
        return _share(gone_now, gone) >= LEAST and _share(come_now, come) >= LEAST
    if gone_now or come_now != come:
        return False
    sides = zip(_neighbours(old, new), _neighbours(window, result), strict=True)
    return any(_share(before, now) >= LEAST for before, now in sides if before)


def _changed(old: Sequence[str], new: Sequence[str]) -> tuple[Counter[str], Counter[str]]:
    """Return the words of the lines that went, and of those that came."""
    gone: Counter[str] = Counter()
    come: Counter[str] = Counter()
    for block in blocks([line.strip() for line in old], [line.strip() for line in new]):
        if not block.same:
            gone.update(_WORD.findall("\n".join(old[block.old_start : block.old_end])))
            come.update(_WORD.findall("\n".join(new[block.new_start : block.new_end])))
    return gone, come


def _neighbours(old: Sequence[str], new: Sequence[str]) -> tuple[Counter[str], Counter[str]]:
    """Return the words of the nearest lines above and below what was added."""
    added = [block for block in blocks([x.strip() for x in old], [x.strip() for x in new]) if not block.same]
    if not added:
        return Counter(), Counter()
    above = next((line for line in reversed(new[: added[0].new_start]) if line.strip()), "")
    below = next((line for line in new[added[-1].new_end :] if line.strip()), "")
    return Counter(_WORD.findall(above)), Counter(_WORD.findall(below))


def _share(words: Counter[str], others: Counter[str]) -> float:
    """Return how much of ``words`` is in ``others``."""
    total = sum(words.values())
    return sum((words & others).values()) / total if total else 1.0


def _patched(old: str, new: str, text: str) -> str | None:
    from diff_match_patch import diff_match_patch

    matcher = diff_match_patch()
    # The answer must not depend on how busy the machine is.
    matcher.Diff_Timeout = 0
    # Python's integers have no width: no hunk is cut in parts that could be made one without another.
    matcher.Match_MaxBits = 1_000_000
    numbers: dict[str, str] = {}
    before, after, base = (as_characters(side, numbers) for side in (old, new, text))
    differences = matcher.diff_main(before, after, False)
    patches = matcher.patch_make(before, differences)
    made, results = matcher.patch_apply(patches, base)
    if not results or not all(results):
        return None
    tokens = {character: token for token, character in numbers.items()}
    return "".join(tokens[character] for character in made)


def _exchange(old: str, new: str) -> tuple[Counter[str], Counter[str]]:
    before, after = Counter(_WORD.findall(old)), Counter(_WORD.findall(new))
    return before - after, after - before


def _indents(old: Sequence[str], window: Sequence[str]) -> dict[str, str]:
    """Return which indentation of the original is which one now, by the lines that both share."""
    ours, theirs = [content(line) for line in old], list(window)
    matcher = difflib.SequenceMatcher(None, [line.strip() for line in ours], [line.strip() for line in theirs], False)
    votes: dict[str, Counter[str]] = {}
    for i, j, size in matcher.get_matching_blocks():
        for before, now in zip(ours[i : i + size], theirs[j : j + size], strict=True):
            if before.strip():
                votes.setdefault(_indent(before), Counter())[_indent(now)] += 1
    return {before: now.most_common(1)[0][0] for before, now in votes.items()}


def _indented(line: str, indents: dict[str, str]) -> str:
    if not line.strip():
        return line
    indent = _indent(line)
    if indent in indents or not indents:
        return indents.get(indent, indent) + line[len(indent) :]
    # One that no shared line has: so much deeper than the nearest that one has, or so much less deep.
    known = min(indents, key=lambda other: (abs(len(other) - len(indent)), len(other)))
    if indent.startswith(known):
        extra = indent[len(known) :]
        return indents[known] + (extra if "\t" not in indents[known] else _tabs(extra)) + line[len(indent) :]
    missing = len(known) - len(indent)
    return indents[known][: max(0, len(indents[known]) - missing)] + line[len(indent) :]


def _tabs(extra: str) -> str:
    return extra if "\t" in extra else "\t" * max(1, len(extra) // 4)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
