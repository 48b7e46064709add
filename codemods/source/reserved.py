"""``async`` as the keyword of an argument, as PyTorch had it before 0.4: ``x.cuda(async=True)``.

Python reserves the word since 3.7 and refuses such files. They are read all the same: in the text that is parsed
another word of the same length stands in its place, so that every position is that of the file.
"""

from __future__ import annotations

import ast
import io
import itertools
import re
import string
import tokenize

WORD = "async"
_ARGUMENT = re.compile(r"\basync\s*=(?!=)")
_LINE_END = re.compile(r"\r\n|\r|\n")


def stand_in(text: str) -> tuple[str, str] | None:
    """``text`` with another word for each ``async`` that is the keyword of an argument, and that word; None if there is
    no such argument, or the text cannot be cut into tokens."""
    if not _ARGUMENT.search(text):
        return None
    places = _places(text)
    if not places:
        return None
    word = next(w for w in _words() if w not in text)
    lines = _with_ends(text)
    for row, column in places:
        line = lines[row]
        lines[row] = line[:column] + word + line[column + len(WORD) :]
    return "".join(lines), word


def restore(tree: ast.AST, word: str) -> None:
    """Give the keywords in a tree the name that stands in the file.

    Raises SyntaxError if it is a parameter somewhere: that is more than a call.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == word:
            node.arg = WORD
        elif isinstance(node, ast.arg) and node.arg == word:
            raise SyntaxError("invalid syntax", (None, node.lineno, node.col_offset + 1, None))


def _places(text: str) -> list[tuple[int, int]]:
    """Row (from 0) and column of each, found by Python's own tokenizer, so that strings and comments are passed by."""
    found: list[tuple[int, int]] = []
    depth = 0
    before = ""
    open_name: tuple[int, int] | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(_LINE_END.sub("\n", text)).readline):
            if token.type in (tokenize.NL, tokenize.COMMENT):
                continue
            if open_name is not None and token.string == "=":
                found.append(open_name)
            open_name = None
            if token.type == tokenize.OP:
                depth += (token.string in "([{") - (token.string in ")]}")
            if token.string == WORD and depth and before in ("(", ","):
                open_name = (token.start[0] - 1, token.start[1])
            before = token.string
    except (tokenize.TokenError, SyntaxError, ValueError):
        # what the tokenizer cannot read the parser will name
        return []
    return found


def _with_ends(text: str) -> list[str]:
    ends = [match.end() for match in _LINE_END.finditer(text)]
    return [text[start:end] for start, end in itertools.pairwise([0, *ends, len(text)])]


def _words() -> itertools.chain[str]:
    return itertools.chain.from_iterable((f"as{a}n{b}" for a in string.ascii_lowercase) for b in string.ascii_lowercase)
