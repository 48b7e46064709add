"""GitHub's Markdown, written so that nothing of a user's code can mean anything in it.

What comes from a program stands in code: there neither markup nor HTML, neither ``@name`` nor ``#1`` nor an emoji's
name means anything. See https://github.github.com/gfm/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from codemods.source.diffs import printable

# Words that are words in any Markdown; whatever else a sentence holds is shown as code.
_PLAIN = re.compile(r"[A-Za-z0-9,.;:'\"()/+=%!?–→×…µ-]+")
_HAZARD = re.compile(
    r"://|\bwww\.|\bGH-\d|:[a-z0-9+-]+:|\b(?=[a-f]*\d)[0-9a-f]{7,40}\b|\.py\b|[a-z]=|[a-z]\.[a-z]|\w\(", re.IGNORECASE
)


def code(text: str) -> str:
    """Return ``text`` as a code span, whatever backticks it holds; line ends become blanks."""
    shown = printable(re.sub(r"[\r\n]+", " ", text)) or " "
    ticks = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    # One blank on either side is taken off again; that needs something beside blanks between them.
    padded = shown.strip(" ") and (shown[0] in "` " or shown[-1] in "` ")
    return f"{ticks} {shown} {ticks}" if padded else f"{ticks}{shown}{ticks}"


def inline(text: str, paths: Iterable[str] = ()) -> str:
    """Return a sentence of ours, in which names of a user's may stand, as inline text.

    What stands between backticks stays code, and a word that Markdown or GitHub could take for something becomes code.
    Of ``paths`` those with blanks in them, which are several words, become code as a whole, with cell and line.
    """
    parts = re.sub(r"\s+", " ", text).strip().split("`")
    if len(parts) % 2 == 0:
        # A backtick without its partner is the user's.
        return " ".join(map(_word, text.split()))
    places = _places(paths)
    told = []
    for index, part in enumerate(parts):
        if index % 2 and part:
            told.append(code(part))
            continue
        for other, words in enumerate(places.split(part) if places else [part]):
            told.append(code(words) if other % 2 else "".join(map(_word, re.split(r"(\s+)", words))))
    return "".join(told)


def _places(paths: Iterable[str]) -> re.Pattern[str] | None:
    """What finds those of ``paths`` that are several words, the longest first, with the place in them."""
    spelled = {" ".join(path.split()) for path in paths if len(path.split()) > 1}
    if not spelled:
        return None
    names = "|".join(map(re.escape, sorted(spelled, key=len, reverse=True)))
    return re.compile(rf"(?<![\w/])((?:{names})(?::cell \d+)?(?::\d+)*)(?!\w)")


def _word(word: str) -> str:
    if not word or word.isspace() or (_PLAIN.fullmatch(word) and not _HAZARD.search(word)):
        return word
    core = word.strip(",.;:'\"!?")
    if not core or core != printable(core):
        return code(word)
    before, _, after = word.partition(core)
    return f"{before}{code(core)}{after}"


def cell(text: str) -> str:
    """Return Markdown ``text`` for a cell of a table: a bar is escaped, which holds inside code spans too."""
    return text.replace("|", "\\|")


def code_cell(text: str) -> str:
    """Return ``text`` as code in a cell of a table."""
    if "|" not in text:
        return code(text)
    # Of a backslash before a bar renderers disagree what it means. Of entities they do not.
    shown = printable(re.sub(r"[\r\n]+", " ", text))
    return f"<code>{''.join(c if c.isascii() and c.isalnum() else f'&#{ord(c)};' for c in shown)}</code>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> list[str]:
    """Return the lines of a table of cells that are Markdown already; the columns ``numbers`` are set to the right."""
    right = set(numbers)
    rule = ["---:" if column in right else "---" for column in range(len(head))]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


def fenced(text: str, language: str = "") -> list[str]:
    """Return ``text`` as the lines of a code block, with a fence longer than any run of backticks in it."""
    fence = "`" * max(3, max(map(len, re.findall("`+", text)), default=0) + 1)
    lines = text[:-1].split("\n") if text.endswith("\n") else text.split("\n")
    return [f"{fence}{language}", *(printable(line.removesuffix("\r")) for line in lines), fence]


def details(summary: str, lines: Sequence[str]) -> list[str]:
    """Return ``lines`` folded behind ``summary``, which is HTML."""
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>"]
