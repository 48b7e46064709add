"""An analyser and an editor of a dozen lines, which know words instead of autograd graphs.

What the pipeline around them does with findings can so be tested to the corners: edits that help, that do nothing, that
make things worse, that break the file, that come in pairs, that overlap. A word in capitals is a finding of the rule of
that name; its edit puts another word there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from codemods.analysis.analyse import Analysis
from codemods.proofs.soundness import Conduct
from codemods.source.errors import Unparsable
from codemods.source.files import SourceFile, source_from_bytes
from codemods.source.options import Options
from codemods.source.syntax import parse
from codemods.terms.edits import Edit, EditError, InsertStatements, ReplaceExpression
from codemods.terms.findings import Finding, Promise, Skipped, TrailStep
from codemods.terms.spans import Span

REMEDIES = {
    "WRONG": "right",
    "STUBBORN": "STUBBORN",
    "WORSE": "NEW",
    "NEW": "NEW",
    "ODD": "even",
    "COVER": "open",
    "COVERED": "right",
    "ADVISED": "ADVICE",
    "BROKEN": "1 +* 2",
    "REFUSED": "",
    "RISKY": "safe",
    "LEFT": "left",
    "RIGHTHAND": "righthand",
    "CHAIN": "LINK",
    "FOREIGN": "'\u20ac'",
}
_WORD = re.compile(rf"\b(?:{'|'.join(REMEDIES)}|ADVICE|ACROSS|RIVAL|LINK|NEST\([^()]*\))(?!\w)")


def source(path: str, text: str | bytes, folder: Path | None = None) -> SourceFile:
    """A file of that name and content; on disk if ``folder`` says where."""
    data = text if isinstance(text, bytes) else text.encode()
    if folder is None:
        return source_from_bytes(data, path)
    (folder / path).write_bytes(data)
    return source_from_bytes(data, path, folder / path)


class Analyser:
    """The fake of ``analyse``; counts its ``calls``."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(
        self,
        targets: Sequence[SourceFile],
        *,
        options: Options,
        jobs: int | None = None,
        overlay: Mapping[str, str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Analysis:
        self.calls += 1
        found: list[Finding] = []
        skipped: list[Skipped] = []
        texts = {target.path: (overlay or {}).get(target.path, target.text) for target in targets}
        for done, (path, text) in enumerate(texts.items()):
            if progress is not None:
                progress(done, len(texts))
            try:
                parse(text, path)
            except Unparsable as error:
                skipped.append(error.skipped)
                continue
            for number, line in enumerate(re.split(r"\r\n?|\n", text), 1):
                code = line.split("#")[0]
                found.extend(_finding(path, number, match, texts) for match in _WORD.finditer(code))
        return Analysis(_without_moot(found, texts), skipped, ["a note"] if "note" in texts else [], Conduct())


def _finding(path: str, line: int, match: re.Match[str], texts: Mapping[str, str]) -> Finding:
    word = match[0].partition("(")[0]
    span = Span(line, match.start(), line, match.end())
    promise = {"RISKY": Promise.BEHAVIOUR, "ADVICE": Promise.ADVICE}.get(word, Promise.EXACT)
    edits: tuple[tuple[str, Edit], ...] = ()
    partners: tuple[tuple[str, str, int], ...] = ()
    if word in REMEDIES:
        edits = ((path, ReplaceExpression(span, REMEDIES[word])),)
    if word == "NEST":
        edits = ((path, ReplaceExpression(span, match[0].lower())),)
    if word in ("LEFT", "RIGHTHAND"):
        other = "RIGHTHAND" if word == "LEFT" else "LEFT"
        partners = tuple((other.lower(), p, n) for p, n in _lines_with(other, texts))
    if word == "ACROSS":
        edits = (
            (path, ReplaceExpression(span, "over")),
            ("other.py", InsertStatements(Span(1, 0, 1, 1), "before", "y")),
        )
    if word == "RIVAL":
        edits = tuple((p, ReplaceExpression(s, "y")) for p, s in ((path, span), ("other.py", Span(1, 0, 1, 1))))
    trail = (TrailStep(path, line, "graph produced here"),)
    return Finding(word.lower(), path, span, promise, f"{word} is here", "another word", trail, edits, partners)


def _lines_with(word: str, texts: Mapping[str, str]) -> list[tuple[str, int]]:
    return [
        (path, number)
        for path, text in texts.items()
        for number, line in enumerate(text.split("\n"), 1)
        if re.search(rf"\b{word}\b", line)
    ]


def _without_moot(found: list[Finding], texts: Mapping[str, str]) -> list[Finding]:
    # LINK is only wrong where CHAIN is gone, which is how one edit makes room for the next mistake; so is COVERED
    # where COVER is gone, and that one can be mended.
    hidden = {"link": "CHAIN", "covered": "COVER "}
    return [f for f in found if f.rule not in hidden or hidden[f.rule] not in texts[f.path]]


def edit(text: str, edits: Sequence[Edit], *, exported: Collection[str] = ()) -> str:
    """The fake of ``apply_edits``: replaces on one line, inserts before; raises EditError for overlaps and REFUSED."""
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    taken: set[tuple[int, int]] = set()
    inserts = []
    for change in sorted(edits, key=_position, reverse=True):
        if isinstance(change, InsertStatements):
            inserts.append((change.anchor.line, change.code))
            continue
        assert isinstance(change, ReplaceExpression)
        line, start, _, end = change.target
        if not change.code:
            raise EditError(f"nothing to put at line {line}")
        cells = {(line, column) for column in range(start, end)}
        if cells & taken:
            raise AssertionError("overlapping edits were handed over together")
        taken |= cells
        before = lines[line - 1]
        lines[line - 1] = before[:start] + change.code + before[end:]
    for number, code in sorted(inserts, reverse=True):
        lines.insert(number - 1, f"{code}\n")
    return "".join(lines)


def _position(change: Edit) -> tuple[int, int]:
    span = change.target if isinstance(change, ReplaceExpression) else Span(0, 0, 0, 0)
    return span.line, span.column
