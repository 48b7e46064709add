"""Suppression comments written into a text, and taken out of it; no other byte changes.

One form is written: ``# codemod: ignore[rule-a, rule-b] -- reason``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from codemods.source.suppressions import COMMENT, NEXT, IgnoreComment, Suppressions, tokens

_LINES = re.compile(r"(\r\n?|\n)")
# What most formatters allow; a file with longer lines has lines as long as its longest.
_WIDTH = 88


class ToSuppress(NamedTuple):
    """A finding to be suppressed: its rule, and the first and last line of its statement."""

    rule: str
    line: int
    end_line: int


def comment_text(rules: Collection[str], reason: str = "") -> str:
    """The comment that suppresses ``rules``, in alphabetical order, for ``reason``."""
    return f"# codemod: ignore[{', '.join(sorted(rules))}]" + (f" -- {reason}" if reason else "")


def is_reason(text: str) -> bool:
    """Whether ``text`` can stand after ``--``: one line, not blank, that cannot be read as another comment."""
    return bool(text.strip()) and text.isprintable() and not COMMENT.search(text) and not NEXT.search(f" {text}")


def with_comments(text: str, places: Iterable[ToSuppress], reason: str = "") -> tuple[str, list[ToSuppress]]:
    """``text`` with comments that suppress ``places``, and those for which no comment could be put.

    A comment goes after the first line from the finding's on that has room for it in the statement, or if none has
    after the first that can take one at all, after whatever comment stands there. One that a statement has already
    takes further rules in, if ``reason`` is none or its own. What is suppressed already is left as it is.
    """
    import tokenize

    wanted = sorted(set(places))
    try:
        found = list(_statements(text))
    except (tokenize.TokenError, SyntaxError):
        return text, wanted
    said = Suppressions.of(text)
    rules: dict[int, list[ToSuppress]] = defaultdict(list)
    unplaced: list[ToSuppress] = []
    for place in wanted:
        if said.covers(*place):
            continue
        index = next((i for i, one in enumerate(found) if one.first <= place.line <= one.last), None)
        if index is None or not found[index].ends:
            unplaced.append(place)
        else:
            rules[index].append(place)
    lines = _LINES.split(text)
    width = max([_WIDTH, *(len(line.rstrip()) for line in lines[::2])])
    for index, here in rules.items():
        _suppress(lines, found[index], said, here, reason, width)
    new = "".join(lines)
    after = Suppressions.of(new)
    failed = [place for place in wanted if place not in unplaced and not after.covers(*place)]
    return new, sorted([*unplaced, *failed])


def without_rules(text: str, needless: Mapping[IgnoreComment, Collection[str] | None]) -> str:
    """``text`` without what ``needless`` says of its comments: these rules, or with None the whole comment.

    A line that held nothing else goes with its comment.
    """
    lines = _LINES.split(text)
    gone: set[int] = set()
    for comment in sorted(needless, key=lambda one: (one.line, one.column), reverse=True):
        names = needless[comment]
        at = 2 * (comment.line - 1)
        line = lines[at]
        kept = () if names is None else tuple(rule for rule in comment.rules or () if rule not in names)
        if kept:
            lines[at] = (
                line[: comment.column] + _renamed(line[comment.column : comment.end], kept) + line[comment.end :]
            )
            continue
        before, behind = line[: comment.column], line[comment.end :]
        if not behind.strip():
            lines[at] = before.rstrip()
        elif before.strip():
            lines[at] = before.rstrip() + behind
        else:
            lines[at] = before + behind.lstrip()
        if not lines[at]:
            gone.add(at)
    return "".join(part for at, part in enumerate(lines) if at not in gone and at - 1 not in gone)


@dataclass
class _Statement:
    """A statement, or the head of a block; ``ends`` are its lines that can take a comment."""

    first: int
    last: int
    ends: list[int]


def _statements(text: str) -> Iterator[_Statement]:
    """The statements of ``text``. A line that ends within a string or with a backslash can take no comment."""
    import tokenize

    filling = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.NEWLINE, tokenize.ENDMARKER)
    # Since Python 3.12 a string with expressions in it is several tokens.
    kinds = {name: getattr(tokenize, name) for name in dir(tokenize) if re.fullmatch(r"[FT]STRING_(START|END)", name)}
    opening = {kind for name, kind in kinds.items() if name.endswith("START")}
    within = 0
    current: _Statement | None = None
    end = 1 + len(_LINES.findall(text))
    for token in tokens(text):
        # The end of a text without a last line end is told to be on a line of its own.
        row = min(token.start[0], end)
        if token.type in kinds.values():
            within += 1 if token.type in opening else -1
        if current is None:
            if token.type not in filling:
                current = _Statement(token.start[0], token.end[0], [])
        elif token.type in (tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER) and not within:
            if row not in current.ends:
                current.ends.append(row)
            if token.type != tokenize.NL:
                current.last = row
                yield current
                current = None


def _suppress(
    lines: list[str], statement: _Statement, said: Suppressions, places: list[ToSuppress], reason: str, width: int
) -> None:
    names = {place.rule for place in places}
    for comment in said.comments:
        own = comment.first == statement.first and not comment.file and comment.rules is not None
        if own and (not reason or reason == comment.reason):
            at = 2 * (comment.line - 1)
            line = lines[at]
            new = _renamed(line[comment.column : comment.end], (*(comment.rules or ()), *sorted(names)))
            lines[at] = line[: comment.column] + new + line[comment.end :]
            return
    text = comment_text(names, reason)
    first = min(place.line for place in places)
    ends = [2 * (row - 1) for row in sorted(statement.ends, key=lambda row: (row < first, row))]
    room = [at for at in ends if len(lines[at].rstrip()) + 2 + len(text) <= width]
    at = (room or ends)[0]
    lines[at] = f"{lines[at].rstrip()}  {text}"


def _renamed(comment: str, rules: Iterable[str]) -> str:
    """``comment`` with ``rules`` in its brackets."""
    match = COMMENT.match(comment)
    assert match is not None
    return f"{comment[: match.start('named')]}[{', '.join(dict.fromkeys(rules))}]{comment[match.end() :]}"
