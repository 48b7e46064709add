"""``codemod lsp``: the Language Server Protocol 3.17 over standard input and output, by pygls.

Texts are sent whole, and analysed in one thread of their own, so that the server goes on listening meanwhile. While
somebody types, it waits for a pause, and ends what it was doing for the text before.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls import uris
from pygls.lsp.server import LanguageServer

from codemods import __version__
from codemods.editor import opened
from codemods.editor.documents import Diagnosis, Documents, line_edits, lines_of
from codemods.editor.opened import Unit
from codemods.editor.recent import Recent, Stopped
from codemods.reports._listed import LEVELS
from codemods.source.config import ConfigError
from codemods.source.errors import SourceError
from codemods.terms.findings import Finding, Skipped

PAUSE = 0.3
"""Seconds without a change after which a text is analysed."""

FIX_ALL = "source.fixAll.codemod"
# Simulated code recurses in the simulator; threads are given less room for that than programs.
_STACK = 64 * 1024 * 1024

_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}


class Server(LanguageServer):
    """The server and what it knows, by the URI of a text or a notebook: the last diagnosis with the version it is of,
    which texts diagnostics are shown in, and what is under way."""

    def __init__(self) -> None:
        # All cells, also those of text: messages count them.
        notebooks = lsp.NotebookDocumentSyncOptions(
            [lsp.NotebookDocumentFilterWithNotebook("jupyter-notebook")], save=True
        )
        super().__init__(
            "codemod",
            __version__,
            text_document_sync_kind=lsp.TextDocumentSyncKind.Full,
            notebook_document_sync=notebooks,
        )
        self.known: dict[str, tuple[list[int | None], Diagnosis]] = {}
        self.shown: dict[str, set[str]] = {}
        self.pending: dict[str, asyncio.Task[None]] = {}
        self.recent = Recent()
        self.was_shut_down = False
        self._complaint = ""
        threading.stack_size(_STACK)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="analysis")

    def documents(self, stopped: Callable[[], bool] = bool) -> Documents:
        """All that is open, as it is now; work on it ends early once ``stopped`` says so."""
        return opened.documents(self.workspace, self.recent, stopped)

    def unit(self, uri: str) -> Unit | None:
        """What is analysed where ``uri`` is a text, a notebook or a cell, as it is now."""
        return opened.unit_of(self.workspace, uri)

    async def in_worker(self, call: Any, *arguments: Any) -> Any:
        """Return what ``call`` returns, in the analysing thread; None where it fails, which the client is told."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._worker, call, *arguments)
        except Stopped:
            return None
        except (ConfigError, SourceError) as error:
            self._complain(str(error))
        except Exception as error:
            # A file that we stumble over must not end the server.
            self._complain(f"internal error, please report it: {type(error).__name__}: {error}")
        return None

    def _complain(self, text: str) -> None:
        if text != self._complaint:
            self._complaint = text
            message = lsp.ShowMessageParams(lsp.MessageType.Error, f"codemod: {text}")
            self.window_show_message(message)

    def schedule(self, uri: str, delay: float) -> None:
        """Analyse ``uri`` after ``delay`` seconds, unless it is scheduled anew before."""
        self.cancel(uri)
        self.pending[uri] = asyncio.get_running_loop().create_task(self._later(uri, delay))

    def cancel(self, uri: str) -> None:
        """Forget that ``uri`` was to be analysed."""
        task = self.pending.pop(uri, None)
        if task is not None:
            task.cancel()

    async def _later(self, uri: str, delay: float) -> None:
        await asyncio.sleep(delay)
        try:
            await self.refresh(uri)
        except Exception as error:
            # Nobody waits for this task, so nobody else would hear of it.
            self._complain(f"internal error, please report it: {type(error).__name__}: {error}")

    async def refresh(self, uri: str) -> Diagnosis | None:
        """Analyse ``uri`` as it is now, show what was found, and return it; None if it is not open or changed since."""
        unit = self.unit(uri)
        if unit is None:
            return None
        stop = threading.Event()
        diagnosis: Diagnosis | None
        try:
            diagnosis = await self.in_worker(self.documents(stop.is_set).diagnose, unit.path)
        finally:
            # where this task is cancelled, the thread goes on until it asks
            stop.set()
        now = self.unit(uri)
        if diagnosis is None or now is None or now.version != unit.version:
            return None
        self.known[unit.uri] = (unit.version, diagnosis)
        shown: dict[str, list[lsp.Diagnostic]] = {text.uri: [] for text in unit.texts}
        whole = any(entry.cell is None for entry in diagnosis.broken)
        for finding in () if whole else diagnosis.findings:
            shown[self.spot(unit, diagnosis, finding)[0]].append(self.diagnostic(unit, diagnosis, finding))
        for entry in diagnosis.broken:
            shown[unit.text(entry.cell).uri].append(_unreadable(entry))
        versions = {text.uri: text.version for text in unit.texts}
        gone = self.shown.get(unit.uri, set()) - shown.keys()
        self.shown[unit.uri] = set(shown)
        for place, found in [*shown.items(), *((place, []) for place in gone)]:
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(place, found, versions.get(place)))
        return diagnosis

    def forget(self, uri: str) -> None:
        """Show nothing any more of a text or a notebook that is closed."""
        self.cancel(uri)
        self.recent.clear()
        self.known.pop(uri, None)
        for place in self.shown.pop(uri, {uri}):
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(place, []))

    async def diagnosis(self, unit: Unit) -> Diagnosis | None:
        """What is known of ``unit`` as it is now."""
        version, diagnosis = self.known.get(unit.uri, (None, None))
        if diagnosis is not None and version == unit.version:
            return diagnosis
        return await self.refresh(unit.uri)

    def diagnostic(self, unit: Unit, diagnosis: Diagnosis, finding: Finding) -> lsp.Diagnostic:
        """A finding as the client shows it; of a block the first line only."""
        related = []
        for step in finding.trail:
            uri, line = uris.from_fs_path(str(Path(step.path).absolute())) or unit.uri, step.line
            if diagnosis.source is not None and step.path == diagnosis.source.path:
                place = diagnosis.source.place(step.line)
                uri, line = unit.text(place.cell).uri, place.line
            related.append(lsp.DiagnosticRelatedInformation(lsp.Location(uri, _line_range(line)), step.note))
        return lsp.Diagnostic(
            self.spot(unit, diagnosis, finding)[1],
            finding.message,
            severity=_SEVERITIES[LEVELS[finding.promise]],
            code=finding.rule,
            source="codemod",
            related_information=related,
        )

    def spot(self, unit: Unit, diagnosis: Diagnosis, finding: Finding) -> tuple[str, lsp.Range]:
        """In which text ``finding`` is shown, and where, in the units of the client."""
        assert diagnosis.source is not None
        cell, line = diagnosis.source.place(finding.span.line)
        shown = unit.text(cell)
        lines = lines_of(shown.source)
        text = lines[line - 1].rstrip("\r\n") if line <= len(lines) else ""
        column = finding.span.column
        end = finding.span.end_column if finding.span.end_line == finding.span.line else len(text)
        units = self.workspace.position_codec.client_num_units
        start = lsp.Position(line - 1, units(text[:column]))
        return shown.uri, lsp.Range(start, lsp.Position(line - 1, units(text[: max(end, column)])))

    def workspace_edit(self, new: dict[str, str], documents: Documents) -> lsp.WorkspaceEdit:
        """The edit that makes the texts ``new``, by path, of those in ``documents``."""
        units = {unit.path: unit for unit in opened.units(self.workspace)}
        changes: dict[str, list[lsp.TextEdit]] = {}
        versions: dict[str, int | None] = {}
        for path, text in new.items():
            for cell, before, after in documents.changes(path, text):
                unit = units.get(path)
                uri = unit.text(cell).uri if unit is not None else uris.from_fs_path(path) or ""
                changes[uri] = self._text_edits(before, after)
                versions[uri] = unit.text(cell).version if unit is not None else None
        wanted = self.client_capabilities.workspace
        if wanted is not None and wanted.workspace_edit is not None and wanted.workspace_edit.document_changes:
            # With its version, so that the client does not make it in a text that has changed meanwhile.
            return lsp.WorkspaceEdit(
                document_changes=[
                    lsp.TextDocumentEdit(lsp.OptionalVersionedTextDocumentIdentifier(uri, versions[uri]), edits)
                    for uri, edits in changes.items()
                ]
            )
        return lsp.WorkspaceEdit(changes=changes)

    def _text_edits(self, old: str, new: str) -> list[lsp.TextEdit]:
        lines = lines_of(old)
        units = self.workspace.position_codec.client_num_units

        def position(line: int) -> lsp.Position:
            # Behind a last line without an end there is no line to begin with.
            if line == len(lines) and lines and not lines[-1].endswith(("\n", "\r")):
                return lsp.Position(line - 1, units(lines[-1]))
            return lsp.Position(line, 0)

        return [
            lsp.TextEdit(lsp.Range(position(edit.start), position(edit.end)), edit.text)
            for edit in line_edits(old, new)
        ]


def _unreadable(entry: Skipped) -> lsp.Diagnostic:
    return lsp.Diagnostic(
        _line_range(max(1, entry.line)),
        f"codemod cannot read this {'file' if entry.cell is None else 'cell'}: {entry.reason}",
        severity=lsp.DiagnosticSeverity.Information,
        source="codemod",
    )


def _line_range(line: int) -> lsp.Range:
    return lsp.Range(lsp.Position(line - 1, 0), lsp.Position(line, 0))
