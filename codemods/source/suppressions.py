"""The comments by which a user says that a finding is to be left alone."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field

_COMMENT = re.compile(r"#\s*codemod\s*:\s*ignore(?P<file>-file)?(?![\w-])\s*(?P<named>\[(?P<rules>[^\]#]*))?", re.I)
_MENTION = re.compile(r"codemod\s*:", re.IGNORECASE)

_EVERY_RULE: frozenset[str] | None = None


@dataclass(frozen=True)
class Suppressions:
    """What the comments of one text suppress: by line, and for the whole file, the rules, or None for all of them."""

    lines: dict[int, tuple[frozenset[str] | None, ...]] = field(default_factory=dict)
    file: tuple[frozenset[str] | None, ...] = ()

    @classmethod
    def of(cls, text: str) -> Suppressions:
        """The suppressions in ``text``: ``# codemod: ignore`` or ``# codemod: ignore[rule, rule]`` on a line, and
        ``# codemod: ignore-file`` likewise.

        A comment counts for every line of the statement that it stands on or within. Empty brackets name no rule. Of
        text that is not Python the comments before the first thing that cannot be read count; nothing is raised.
        """
        if not _MENTION.search(text):
            return cls()
        return _read(text)

    def covers(self, rule: str, first_line: int, last_line: int) -> bool:
        """Whether a finding of ``rule`` at the statement from ``first_line`` to ``last_line`` is to be left alone.

        A comment on the first or on the last line counts, not one on a line between, which for a block belongs to
        another statement.
        """
        said = (*self.file, *self.lines.get(first_line, ()), *self.lines.get(last_line, ()))
        return any(rules is None or rule in rules for rules in said)


def _read(text: str) -> Suppressions:
    import tokenize

    lines: dict[int, tuple[frozenset[str] | None, ...]] = {}
    file: list[frozenset[str] | None] = []
    here: list[frozenset[str] | None] = []
    first = 0  # of the statement being read, 0 between statements

    def close(last: int) -> None:
        for number in range(first, last + 1) if here else ():
            lines[number] = (*lines.get(number, ()), *here)
        here.clear()

    filling = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    row = 0
    try:
        # newline=None: a lone carriage return ends a line for the parser, so it has to end one here.
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            row = token.end[0]
            if token.type == tokenize.COMMENT:
                for match in _COMMENT.finditer(token.string):
                    (file if match["file"] else here).append(_rules(match))
                if not first:
                    here.clear()  # A comment by itself is on no statement's line.
            elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                close(token.start[0])
                first = 0
            elif not first and token.type not in filling:
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        close(row)
    return Suppressions(lines, tuple(file))


def _rules(match: re.Match[str]) -> frozenset[str] | None:
    if match["named"] is None:
        return _EVERY_RULE
    return frozenset(name.lower().replace("_", "-") for name in re.split(r"[,\s]+", match["rules"]) if name)
