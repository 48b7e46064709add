"""How a change looks on a terminal: lines of rich's ``Text``, folded to its width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text

from codemods.interactive.items import Item, Texts
from codemods.manual.explain import PROMISES
from codemods.rewriting.changes import Hunk
from codemods.source.diffs import Pieces, changed_words, printable
from codemods.source.enclosing import Outline

CONTEXT = 3
# Beyond this many characters only the lines that are shown are looked at; a string that began before looks like code.
_WHOLE = 200_000
_SIGN = {"-": "bold red", "+": "bold green", " ": ""}
_VERDICT = {"kept": "green", "broken": "bold red"}


def _theme() -> ANSISyntaxTheme:
    from pygments.token import Comment, Keyword, Name, Number, Operator, String, Token

    # Red and green say what goes and what comes, so that code has the other colours of a terminal.
    return ANSISyntaxTheme(
        {
            Token: Style(),
            Comment: Style(color="bright_black"),
            Keyword: Style(color="magenta"),
            Operator.Word: Style(color="magenta"),
            Name.Function: Style(color="blue"),
            Name.Class: Style(color="blue"),
            Name.Decorator: Style(color="yellow"),
            Name.Builtin: Style(color="cyan"),
            String: Style(color="yellow"),
            Number: Style(color="cyan"),
        }
    )


class View:
    """Renders changes of ``texts`` for a terminal; ``encoding`` is what it can show, ``colour`` whether it has any."""

    def __init__(self, texts: Texts, *, colour: bool, encoding: str = "utf-8") -> None:
        self._texts = texts
        self._colour = colour
        self._encoding = encoding
        self._code: dict[tuple[str, str], list[Text]] = {}
        self._outlines: dict[str, Outline] = {}

    def change(self, item: Item, number: int, total: int, width: int) -> Iterator[Text]:
        """Yield the lines that tell and show the change ``item``."""
        finding = item.change.finding
        head = Text.assemble(
            (f"{number}/{total} ", "bold"), self._plain(finding.rule, "bold"), f" [{item.change.promise.value}] "
        )
        yield from fold(head.append_text(self._plain(item.place, "bold")), width)
        for one in item.findings:
            place = "" if one.key == finding.key else f"{self._texts.place(one.path, one.span.line)}: {one.rule}: "
            yield from fold(self._plain(place + one.message), width)
        promise = f"Promise: the rewritten program {PROMISES[item.change.promise]}."
        yield from fold(self._plain(promise, "dim"), width)
        if item.change.proof is not None:
            verdict, why = item.change.proof
            told = Text.assemble("Verdict: ", (self._safe(verdict), _VERDICT.get(verdict, "yellow")))
            yield from fold(told.append_text(self._plain(f": {why}" if why else "")), width)
        for place in sorted({one.path for one in item.findings} & self._texts.translated):
            yield from fold(self._plain(f"{place} is Python 2 and will be written with its translation."), width)
        yield from self._trail(item, width)
        for hunk in item.hunks:
            yield from self._hunk(item, hunk, width)

    def _trail(self, item: Item, width: int) -> Iterator[Text]:
        for step in dict.fromkeys(step for finding in item.findings for step in finding.trail):
            yield from fold(
                self._plain(f"  {self._texts.place(step.path, step.line)}: {step.note}", "dim"), width, "    "
            )
            code = self._texts.line(step.path, step.line)
            if code.strip():
                yield from fold(Text("    ").append_text(self._lines(step.path, "old", [code.strip()], 0)[0]), width)

    def _hunk(self, item: Item, hunk: Hunk, width: int) -> Iterator[Text]:
        old, new = (self._shown(self._texts.lines(hunk.path, new=new)) for new in (False, True))
        start, first = hunk.old_start - 1, hunk.new_start - 1
        lead, follow = self._texts.around(hunk, CONTEXT)
        function = self._outline(hunk.path).function_at(hunk.old_start)
        place = self._texts.start(hunk) + (f" in {function}" if function else "")
        yield Text("")
        yield from fold(self._plain(f"@@ {place} @@", "cyan"), width)
        if len(hunk.changes) > 1 and item.shares:
            others = ", ".join(str(index + 1) for index in item.shares)
            yield from fold(self._plain(f"   (these lines are shared with {others})", "dim"), width)
        removed, added = old[start : start + len(hunk.removed)], new[first : first + len(hunk.added)]
        gone, come = changed_words(removed, added)
        code = self._file(hunk.path, "old", old, lead.start, follow.stop)
        for at in lead:
            yield from self._line(" ", code[at - lead.start], (), width)
        for offset in range(len(hunk.removed)):
            yield from self._line("-", code[start + offset - lead.start], gone[offset], width)
        shown = self._file(hunk.path, "new", new, first, first + len(hunk.added))
        for offset in range(len(hunk.added)):
            yield from self._line("+", shown[offset], come[offset], width)
        for at in follow:
            yield from self._line(" ", code[at - lead.start], (), width)

    def _line(self, sign: str, code: Text, pieces: Pieces, width: int) -> Iterator[Text]:
        code = code.copy()
        spans = _marked(pieces)
        for begin, stop in spans:
            code.stylize("reverse", begin, stop)
        at = 0
        for piece in fold(code, max(8, width - 1), marks=False):
            yield Text.assemble((sign, _SIGN[sign])).append_text(piece)
            if spans and not self._colour:
                # Without colours a line below points at the changed words, as difflib's does.
                carets = "".join(
                    ("^" if any(b <= at + i < e for b, e in spans) else " ") * cell_len(c)
                    for i, c in enumerate(piece.plain)
                )
                if carets.strip():
                    yield Text("?" + carets.rstrip())
            at += len(piece.plain)

    def _file(self, path: str, side: str, lines: Sequence[str], start: int, end: int) -> list[Text]:
        if sum(map(len, lines)) > _WHOLE:
            return self._lines(path, side, lines[start:end], start)
        if (path, side) not in self._code:
            self._code[path, side] = self._lines(path, side, lines, 0)
        return self._code[path, side][start:end]

    def _lines(self, path: str, side: str, lines: Sequence[str], start: int) -> list[Text]:
        """Return ``lines`` with their colours, as they are, whatever the lexer makes of them."""
        safe = [self._safe(line) for line in lines]
        if self._colour:
            syntax = Syntax("", "python", theme=_theme())
            found = list(syntax.highlight("\n".join(safe)).split("\n", allow_blank=True))
            if [text.plain for text in found[: len(safe)]] == safe:
                return found[: len(safe)]
        return [Text(line) for line in safe]

    def _outline(self, path: str) -> Outline:
        if path not in self._outlines:
            self._outlines[path] = Outline(self._texts.old[path])
        return self._outlines[path]

    def _shown(self, lines: Sequence[str]) -> list[str]:
        return [self._safe(line.rstrip("\r")) for line in lines]

    def _plain(self, text: str, style: str = "") -> Text:
        return Text(self._safe(text), style)

    def _safe(self, text: str) -> str:
        shown = printable(text).expandtabs(4)
        return shown.encode(self._encoding, "backslashreplace").decode(self._encoding)


def _marked(pieces: Pieces) -> list[tuple[int, int]]:
    """Return where the marked ``pieces`` of a line begin and end."""
    spans, at = [], 0
    for text, marked in pieces:
        if marked:
            spans.append((at, at + len(text)))
        at += len(text)
    return spans


def fold(text: Text, width: int, indent: str = "  ", *, marks: bool = True) -> Iterator[Text]:
    """Yield ``text`` in lines of at most ``width`` cells: prose between words, with ``indent`` from the second line on;
    code (``marks`` False) wherever the width ends."""
    width = max(width, 8)
    if not marks:
        offsets, at = [], 0
        for piece in chop_cells(text.plain, width)[:-1]:
            at += len(piece)
            offsets.append(at)
        yield from text.divide(offsets) if offsets else [text]
        return
    line_start, first = 0, True
    cuts = []
    room, used, space = width, 0, -1
    plain = text.plain
    for at, character in enumerate(plain):
        cells = cell_len(character)
        if used + cells > room:
            cut = space + 1 if space >= line_start else at
            cuts.append(cut)
            line_start, room = cut, width - len(indent)
            used = cell_len(plain[cut:at])
            space = -1
        used += cells
        if character == " ":
            space = at
    for part in text.divide(cuts) if cuts else [text]:
        part.rstrip()
        yield part if first else Text(indent).append_text(part)
        first = False
