"""The colours of Python: which words of a text are of which kind, line by line."""

from __future__ import annotations

from collections.abc import Sequence

from codemods.source.diffs import Piece, printable

#: A run of characters of one kind: its length, and its class, empty for what has no colour.
Run = tuple[int, str]


#: A longer text is data, and not read for its colours.
LONGEST = 500_000


def colours(text: Sequence[str]) -> list[list[Run]]:
    """Return for each line of ``text``, as shown, its runs: keywords ``k``, strings ``s``, comments ``c``, numbers
    ``n``, names that are being defined ``f``; nothing for a text that is too long."""
    if sum(map(len, text)) > LONGEST:
        return []
    from pygments import lex
    from pygments.lexers.python import PythonLexer
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    kinds = (
        (Comment, "c"),
        (String, "s"),
        (Keyword, "k"),
        (Operator.Word, "k"),
        (Number, "n"),
        (Name.Function, "f"),
        (Name.Class, "f"),
        (Name.Decorator, "f"),
    )
    known: dict[object, str] = {}
    lines: list[list[Run]] = [[]]
    shown = "\n".join(printable(line.rstrip("\r\n")) for line in text)
    for token, value in lex(shown, PythonLexer(stripnl=False, ensurenl=False)):
        if token not in known:
            known[token] = next((name for kind, name in kinds if token in kind), "")
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part and lines[-1] and lines[-1][-1][1] == known[token]:
                lines[-1][-1] = (lines[-1][-1][0] + len(part), known[token])
            elif part:
                lines[-1].append((len(part), known[token]))
    return lines


def divided(pieces: Sequence[Piece], runs: Sequence[Run]) -> list[tuple[str, bool, str]]:
    """Return ``pieces`` of a line (text, whether it is marked) cut further where the kind changes, with the kind."""
    found: list[tuple[str, bool, str]] = []
    left = list(runs)
    for text, marked in pieces:
        while text:
            length, kind = left.pop(0) if left else (len(text), "")
            found.append((text[:length], marked, kind))
            if length > len(text):
                left.insert(0, (length - len(text), kind))
            text = text[length:]
    return found
