"""The comment by which a declined change is left alone for good, and why."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterable

_BLANK = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)


def ignore_comment(rules: Iterable[str], reason: str) -> str:
    """Return the comment that suppresses ``rules``, with the reason behind it."""
    return f"# codemod: ignore[{', '.join(sorted(set(rules)))}] -- {' '.join(reason.split())}"


def with_ignore(text: str, line: int, rules: Iterable[str], reason: str) -> str:
    """Return ``text`` with an :func:`ignore_comment` for the statement around ``line`` (from 1).

    It stands where the statement's last line ends (a block's header's), because a comment may stand nowhere before: not
    behind a backslash, not within a string. Text that cannot be read so far is returned as it is.
    """
    comment = ignore_comment(rules, reason)
    first = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            if not first and token.type not in _BLANK:
                first = token.start[0]
            if token.type == tokenize.NEWLINE:
                if first <= line <= token.start[0]:
                    return _appended(text, token.start[0], comment)
                first = 0
    except (tokenize.TokenError, SyntaxError):
        pass
    return text


def _appended(text: str, line: int, comment: str) -> str:
    lines = io.StringIO(text, newline="").readlines()
    body = lines[line - 1].rstrip("\r\n")
    lines[line - 1] = f"{body.rstrip()}  {comment}{lines[line - 1][len(body) :]}"
    return "".join(lines)
