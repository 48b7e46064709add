"""SARIF 2.1.0, for code-scanning sites and editors, with fixes that make the edit.

The standard: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html; what GitHub expects and how much of it
it takes: https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from codemods import __version__
from codemods.checking.reported import Reported
from codemods.manual.explain import PROMISES, explanation, page, source_of_fact
from codemods.reports import Detail, Report
from codemods.reports._listed import LEVELS, Fingerprints, from_root, in_cell, root
from codemods.rewriting.changes import Hunk, patched
from codemods.rewriting.single_fixes import Fix, fixes
from codemods.source.errors import SourceError
from codemods.source.home import home, shareable_words
from codemods.source.notebooks import Splice
from codemods.terms.counting import plain_count_text
from codemods.terms.findings import Finding, Skipped, TrailStep, capitalised, in_order

_LINE_END = re.compile(r"\r\n?|\n")


class Text:
    """A text as SARIF counts in it: lines end at CR LF or LF, columns are UTF-16 code units, both from 1.

    Python ends lines at a lone CR too, and counts columns in characters.
    """

    def __init__(self, text: str) -> None:
        self.python_lines = _LINE_END.split(text)
        self.lines = text.split("\n")
        self._text = text
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    def place(self, line: int, column: int) -> tuple[int, int]:
        """Return line and column for SARIF of a line and column of ours."""
        if not 0 < line <= len(self._starts):
            return line, 1
        return _position(self._text, self._starts[line - 1] + min(column, len(self.python_lines[line - 1])))


def _position(text: str, offset: int) -> tuple[int, int]:
    """Return line and column for SARIF of the character ``offset`` of ``text``."""
    return text.count("\n", 0, offset) + 1, _units(text[text.rfind("\n", 0, offset) + 1 : offset]) + 1


def _units(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)


def replaced(hunk: Hunk, text: Text) -> dict[str, Any]:
    """Return the hunk as a region of whole lines and what comes in its place."""
    start, end = hunk.old_start, hunk.old_start + len(hunk.removed)
    region = {"startLine": start, "startColumn": 1, "endLine": end, "endColumn": 1}
    last = len(text.lines)
    if end > last:
        # There is no line to begin behind a last one without a line end: the region stops at its end.
        region |= {"endLine": last, "endColumn": _units(text.lines[-1]) + 1}
    if start > last:
        region |= {"startLine": region["endLine"], "startColumn": region["endColumn"]}
    return {"deletedRegion": region, "insertedContent": {"text": "".join(hunk.added)}}


def spliced(content: str, splice: Splice) -> dict[str, Any]:
    """Return a change of the text of a file as a region, no larger than it has to be, and what comes in its place."""
    from diff_match_patch import diff_match_patch

    old, new = content[splice.start : splice.end], splice.new
    head = diff_match_patch().diff_commonPrefix(old, new)
    tail = diff_match_patch().diff_commonSuffix(old[head:], new[head:])
    region: dict[str, int] = {}
    for side, offset in (("start", splice.start + head), ("end", splice.end - tail)):
        line, column = _position(content, offset)
        region |= {f"{side}Line": line, f"{side}Column": column}
    return {"deletedRegion": region, "insertedContent": {"text": new[head : len(new) - tail]}}


#: ``check`` has to find out what ``apply`` would do, for the fixes.
EDITS = True

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: GitHub refuses more results in one run.
MAX_RESULTS = 25_000
_BASE = "%SRCROOT%"
#: GitHub refuses a larger file; its count is of the compressed one.
MAX_BYTES = 10_000_000
_MESSAGE = 1_000  # characters; GitHub takes 1,024 for the texts of a rule


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return the report as SARIF; ``detail`` and ``colour`` change nothing.

    After a dry run, and from ``check``, what can be mended is a result with a fix. After files were written only what
    still stands is a result.
    """
    content = _Log(report).content()
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    if len(text) > MAX_BYTES and len(gzip.compress(text.encode("utf-8", "backslashreplace"), 6)) > MAX_BYTES:
        _shorten(content["runs"][0])
        text = json.dumps(content, ensure_ascii=False) + "\n"
    return text


def _shorten(run: dict[str, Any]) -> None:
    """Leave out of a run that is too large what people can do without: the fixes, and the trails."""
    for result in run["results"]:
        result.pop("fixes", None)
        result.pop("codeFlows", None)
    told = f"fixes and trails are left out: sites take no more than {MAX_BYTES:,} bytes in one file"
    run["invocations"][0]["toolExecutionNotifications"].append({"level": "warning", "message": {"text": told}})


class _Log:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._root = root()
        self._texts: dict[str, Text] = {}
        self._marks = Fingerprints()
        dry = report.dry_run or not report.applied
        self._fixes = {
            in_order(finding): fix
            for fix in (fixes(report.review) if dry and report.review is not None else ())
            for change in fix.changes
            for finding in change.findings
        }
        ours = [Reported(finding, None) for finding in report.fixed] if report.applied and dry else []
        found = [*ours, *report.findings]
        # Those that matter most are the ones to keep where a site takes no more.
        found.sort(key=lambda one: ["error", "warning", "note"].index(LEVELS[one.finding.promise]))
        self._left_out = max(0, len(found) - MAX_RESULTS)
        kept = found[:MAX_RESULTS]
        self._found = sorted(kept, key=lambda one: in_order(one.finding))
        self._rules = sorted({one.finding.rule for one in self._found})

    def content(self) -> dict[str, Any]:
        """Return the log: one run of one tool."""
        driver = {
            "name": "codemod",
            "version": __version__,
            "semanticVersion": __version__,
            **({"informationUri": address} if (address := home()) else {}),
            "rules": [_rule(name) for name in self._rules],
        }
        invocation: dict[str, Any] = {
            "executionSuccessful": not self._report.unwritten,
            "toolExecutionNotifications": list(self._notifications()),
        }
        if self._report.command:
            invocation["arguments"] = list(shareable_words(self._report.command[1:]))
        run = {
            "tool": {"driver": driver},
            "invocations": [invocation],
            # Where it lies on this machine is nobody else's business, and sites know better.
            "originalUriBaseIds": {_BASE: {"description": {"text": "The root of the repository."}}},
            "columnKind": "utf16CodeUnits",
            "artifacts": [self._artifact(path) for path in dict.fromkeys(one.finding.path for one in self._found)],
            "results": [self._result(one) for one in self._found],
        }
        return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}

    # ------------------------------------------------------------------------------------------------------------------
    # results

    def _result(self, reported: Reported) -> dict[str, Any]:
        finding = reported.finding
        # It may begin with a name of the user's, which has no capital of its own.
        told = f"{finding.message}. Remedy: {finding.remedy}." if finding.remedy else f"{finding.message}."
        result: dict[str, Any] = {
            "ruleId": finding.rule,
            "ruleIndex": self._rules.index(finding.rule),
            "level": LEVELS[finding.promise],
            "message": {"text": self._named(finding.path, finding.span.line, told)},
            "locations": [self._location(finding)],
            "partialFingerprints": {
                "primaryLocationLineHash": self._marks(finding, self._text(finding.path).python_lines)
            },
            "properties": {"promise": finding.promise.value, "fixable": reported.fixable}
            | ({"likely": finding.likely.value} if finding.likely else {}),
        }
        if finding.trail:
            result["codeFlows"] = [{"threadFlows": [{"locations": [self._step(step) for step in finding.trail]}]}]
        related = [
            {
                **self._place(path, line),
                "id": number,
                "message": {"text": f"made together with {rule} here, or not at all"},
            }
            for number, (rule, path, line) in enumerate(finding.partners, 1)
        ]
        if related:
            result["relatedLocations"] = related
        if reported.obstacle:
            result["properties"]["obstacle"] = reported.obstacle
        fix = self._fixes.get(in_order(finding))
        if fix is not None and (made := self._fix(finding, fix)):
            result["fixes"] = [made]
        return result

    def _named(self, path: str, line: int, told: str) -> str:
        """Return the sentence, with the cell where ``path`` is a notebook."""
        return in_cell(self._report.place(path, line, now=True)).capitalize() + told

    def _location(self, finding: Finding) -> dict[str, Any]:
        if self._is_notebook(finding.path):
            return {"physicalLocation": {"artifactLocation": self._artifact_location(finding.path)}}
        line, column, end_line, end_column = finding.span
        text = self._text(finding.path)
        start_line, start_column = text.place(line, column)
        last_line, last_column = text.place(end_line, end_column)
        region = {
            "startLine": start_line,
            "startColumn": start_column,
            "endLine": last_line,
            "endColumn": last_column,
        }
        return {"physicalLocation": {"artifactLocation": self._artifact_location(finding.path), "region": region}}

    def _step(self, step: TrailStep) -> dict[str, Any]:
        note = self._named(step.path, step.line, step.note)
        return {"location": {**self._place(step.path, step.line), "message": {"text": note}}}

    def _place(self, path: str, line: int) -> dict[str, Any]:
        physical: dict[str, Any] = {"artifactLocation": self._artifact_location(path)}
        if line and not self._is_notebook(path):
            physical["region"] = {"startLine": self._text(path).place(line, 0)[0]}
        return {"physicalLocation": physical}

    # ------------------------------------------------------------------------------------------------------------------
    # fixes

    def _fix(self, finding: Finding, fix: Fix) -> dict[str, Any] | None:
        if any(hunk.path in self._report.translated for hunk in fix.hunks):
            return None
        by_path: dict[str, list[Hunk]] = {}
        for hunk in fix.hunks:
            by_path.setdefault(hunk.path, []).append(hunk)
        others = sum(len(change.findings) for change in fix.changes) - 1
        text = finding.remedy or f"apply {finding.rule}"
        if others:
            text += f" (together with {plain_count_text(others, 'other finding')})"
        try:
            changes = [
                {"artifactLocation": self._artifact_location(path), "replacements": self._replacements(path, own)}
                for path, own in by_path.items()
            ]
        except SourceError:
            # The file is another one by now, or cannot hold this.
            return None
        return {"description": {"text": text}, "artifactChanges": changes}

    def _replacements(self, path: str, hunks: Sequence[Hunk]) -> list[dict[str, Any]]:
        if not self._is_notebook(path):
            return [replaced(hunk, self._text(path)) for hunk in hunks]
        source = self._report.sources[path]
        content, splices = source.splices(patched(self._report.base(path), hunks))
        return [spliced(content, splice) for splice in splices]

    # ------------------------------------------------------------------------------------------------------------------
    # files

    def _artifact(self, path: str) -> dict[str, Any]:
        artifact: dict[str, Any] = {"location": self._artifact_location(path), "sourceLanguage": "python"}
        if path in self._report.sources:
            artifact["encoding"] = self._report.sources[path].encoding
        return artifact

    def _artifact_location(self, path: str) -> dict[str, Any]:
        inside = from_root(path, self._root)
        if inside is None:
            return {"uri": "file://" + _quoted(str(Path(path).absolute()))}
        return {"uri": _quoted(inside), "uriBaseId": _BASE}

    def _is_notebook(self, path: str) -> bool:
        return path.endswith(".ipynb") or self._report.place(path, 1, now=True).cell is not None

    def _text(self, path: str) -> Text:
        if path not in self._texts:
            source = self._report.rewritten.get(path) or self._report.sources.get(path)
            self._texts[path] = Text(source.text if source is not None else "")
        return self._texts[path]

    def _notifications(self) -> Iterable[dict[str, Any]]:
        report = self._report
        for entry in report.skipped:
            yield self._notification("warning", f"{in_cell(entry)}skipped: {entry.reason}", entry)
        for failure in report.failures:
            place = Skipped(failure.path, failure.line, failure.reason)
            yield self._notification("warning", f"{failure.rule}: our edit was taken back: {failure.reason}", place)
        for dropped in report.dropped:
            place = Skipped(dropped.path, dropped.line, dropped.why)
            yield self._notification("note", f"{dropped.rule}: not made, {dropped.verdict}: {dropped.why}", place)
        for entry in report.unwritten:
            yield self._notification("error", f"{in_cell(entry)}not saved: {entry.reason}", entry)
        for note in report.notes:
            yield {"level": "note", "message": {"text": note}}
        if self._left_out:
            told = f"{self._left_out:,} more results are left out: sites take no more than {MAX_RESULTS:,} in one run"
            yield {"level": "warning", "message": {"text": told}}

    def _notification(self, level: str, text: str, entry: Skipped) -> dict[str, Any]:
        return {"level": level, "message": {"text": text}, "locations": [self._place(entry.path, entry.line)]}


def _quoted(path: str) -> str:
    return quote(path.encode("utf-8", "surrogateescape"), safe="/-._~")


# ----------------------------------------------------------------------------------------------------------------------
# rules


def _rule(name: str) -> dict[str, Any]:
    told = explanation(name)
    if told is None:
        short = {"text": name}
        return {"id": name, "shortDescription": short, "fullDescription": short, "help": short}
    promise = f"Promise: {told.promise.value}. The rewritten program {PROMISES[told.promise]}."
    level = LEVELS[told.promise]
    paragraphs = told.documentation.split("\n\n")
    described: dict[str, Any] = {
        "id": told.name,
        "name": "".join(part.capitalize() for part in told.name.split("-")),
        "shortDescription": {"text": f"{capitalised(told.summary)}."},
        "fullDescription": {"text": _plain(" ".join(paragraphs[:1]))[:_MESSAGE]},
        "help": {
            "text": f"{_plain(told.documentation)}\n\n{promise}",
            "markdown": f"{_markdown(paragraphs)}\n\n**{promise.split('. ', 1)[0]}.** {promise.split('. ', 1)[1]}",
        },
        "defaultConfiguration": {"level": level},
        "properties": {
            "promise": told.promise.value,
            "tags": ["pytorch", "autograd", told.promise.value],
            "precision": "high",
            "problem.severity": "recommendation" if level == "note" else level,
        },
    }
    if address := page(told) or source_of_fact(told):
        described["helpUri"] = address
    return described


def _plain(text: str) -> str:
    return text.replace("``", "`")


def _markdown(paragraphs: Sequence[str]) -> str:
    # Docstrings are reStructuredText; what they use of it is Markdown too, addresses but for their brackets.
    return re.sub(r"(?<![(<])(https?://[^\s,]+)", r"<\1>", "\n\n".join(paragraphs))
