"""The comments by which a user says that a finding is to be left alone."""

from __future__ import annotations

import functools
import io
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tokenize

COMMENT = re.compile(r"#\s*codemod\s*:\s*ignore(?P<file>-file)?(?![\w-])\s*(?P<named>\[(?P<rules>[^\]#]*)\]?)?", re.I)
_MENTION = re.compile(r"codemod\s*:", re.IGNORECASE)
_REASON = re.compile(r"\s*--\s*(?P<reason>.*)")
# A number after a hash is an issue; a word after one is the comment of another tool.
NEXT = re.compile(r"\s+#\s*[A-Za-z]")


@dataclass(frozen=True)
class IgnoreComment:
    """One such comment: where it stands, what it names, and the lines of the statement that it counts for.

    ``column`` to ``end`` is its part of the line, the reason included; other comments may stand on either side.
    ``rules`` are as they were named, spelled as rules are, or None for all of them. ``first`` and ``last`` are 0 for
    one that stands by itself and therefore counts for no statement.
    """

    line: int
    column: int
    end: int
    rules: tuple[str, ...] | None
    reason: str
    file: bool
    first: int = 0
    last: int = 0

    def names(self, rule: str) -> bool:
        """Whether it speaks of ``rule``."""
        return self.rules is None or rule in self.rules


@dataclass(frozen=True)
class Suppressions:
    """What the comments of one text suppress."""

    comments: tuple[IgnoreComment, ...] = ()

    @classmethod
    def of(cls, text: str) -> Suppressions:
        """The suppressions in ``text``: ``# codemod: ignore`` or ``# codemod: ignore[rule, rule]`` on a line, and
        ``# codemod: ignore-file`` likewise.

        A comment counts for every line of the statement that it stands on or within. Empty brackets name no rule. What
        follows ``--`` is the reason. Of text that is not Python the comments before the first thing that cannot be read
        count; nothing is raised.
        """
        if not _MENTION.search(text):
            return cls()
        return cls(tuple(_read(text)))

    @functools.cached_property
    def _by_line(self) -> dict[int, list[IgnoreComment]]:
        lines: dict[int, list[IgnoreComment]] = defaultdict(list)
        for comment in self.comments:
            if comment.first and not comment.file:
                for number in range(comment.first, comment.last + 1):
                    lines[number].append(comment)
        return lines

    def covers(self, rule: str, first_line: int, last_line: int) -> bool:
        """Whether a finding of ``rule`` at the statement from ``first_line`` to ``last_line`` is to be left alone.

        A comment on the first or on the last line counts, not one on a line between, which for a block belongs to
        another statement.
        """
        return bool(self.comments) and bool(self.covering(rule, first_line, last_line))

    def covering(self, rule: str, first_line: int, last_line: int) -> list[IgnoreComment]:
        """The comments that say so; see :meth:`covers`."""
        lines = dict.fromkeys((first_line, last_line))
        said = [comment for comment in self.comments if comment.file]
        said += [comment for line in lines for comment in self._by_line.get(line, ())]
        return [comment for comment in dict.fromkeys(said) if comment.names(rule)]


def tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of ``text``; raises ``tokenize.TokenError`` or SyntaxError where it is no Python."""
    import tokenize

    # newline=None: a lone carriage return ends a line for the parser, so it has to end one here.
    return tokenize.generate_tokens(io.StringIO(text, newline=None).readline)


def _read(text: str) -> list[IgnoreComment]:
    import tokenize

    found: list[IgnoreComment] = []
    here: list[IgnoreComment] = []
    first = 0  # of the statement being read, 0 between statements

    def close(last: int) -> None:
        for comment in here:
            found.append(replace(comment, first=first, last=last))
        here.clear()

    filling = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    row = 0
    try:
        for token in tokens(text):
            row = token.end[0]
            if token.type == tokenize.COMMENT:
                (here if first else found).extend(_parts(token.string, *token.start))
            elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                close(token.start[0])
                first = 0
            elif not first and token.type not in filling:
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        close(row)
    return found


def _parts(comment: str, line: int, column: int) -> Iterator[IgnoreComment]:
    """The ignore comments within one comment token that starts at ``line`` and ``column``."""
    for match in COMMENT.finditer(comment):
        behind = NEXT.search(comment, match.end())
        end = behind.start() if behind else len(comment.rstrip())
        said = _REASON.match(comment[match.end() : end])
        reason = said["reason"].strip() if said else ""
        rules = None if match["named"] is None else _rules(match["rules"])
        yield IgnoreComment(line, column + match.start(), column + end, rules, reason, bool(match["file"]))


def _rules(named: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.lower().replace("_", "-") for name in re.split(r"[,\s]+", named) if name))
