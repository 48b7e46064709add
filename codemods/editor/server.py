"""``codemod lsp``: the Language Server Protocol 3.17 over standard input and output, by pygls.

Texts are sent whole, and analysed in one thread of their own, so that the server goes on listening meanwhile. While
somebody types, it waits for a pause.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls import uris
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from codemods import __version__
from codemods.editor.documents import Diagnosis, Documents, line_edits, lines_of
from codemods.findings import Finding, Promise
from codemods.source.config import ConfigError
from codemods.source.errors import SourceError

PAUSE = 0.3
"""Seconds without a change after which a text is analysed."""

FIX_ALL = "source.fixAll.codemod"
# Simulated code recurses in the simulator; threads are given less room for that than programs.
_STACK = 64 * 1024 * 1024

SEVERITIES = {
    Promise.REPAIR: lsp.DiagnosticSeverity.Error,
    Promise.EXACT: lsp.DiagnosticSeverity.Warning,
    Promise.EQUIVALENT: lsp.DiagnosticSeverity.Warning,
    Promise.BEHAVIOUR: lsp.DiagnosticSeverity.Warning,
    Promise.ADVICE: lsp.DiagnosticSeverity.Information,
}


class Server(LanguageServer):
    """The server and what it knows: by URI, the last diagnosis with the version it is of, and what is under way."""

    def __init__(self) -> None:
        super().__init__("codemod", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.known: dict[str, tuple[int | None, Diagnosis]] = {}
        self.pending: dict[str, asyncio.Task[None]] = {}
        self.was_shut_down = False
        self._complaint = ""
        threading.stack_size(_STACK)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="analysis")

    def documents(self) -> Documents:
        """All that is open, as it is now."""
        opened = self.workspace.text_documents.values()
        return Documents({path: doc.source for doc in opened if (path := path_of(doc.uri)) is not None})

    def document(self, uri: str) -> TextDocument | None:
        """The text that is open as ``uri``."""
        # pygls keeps them by their URIs, since 2.1 with no character quoted.
        opened = self.workspace.text_documents
        found: TextDocument | None = opened.get(unquote(uri)) or opened.get(uri)
        return found

    async def in_worker(self, call: Any, *arguments: Any) -> Any:
        """Return what ``call`` returns, in the analysing thread; None where it fails, which the client is told."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._worker, call, *arguments)
        except ConfigError as error:
            self._complain(str(error))
        except SourceError as error:
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
        document = self.document(uri)
        path = path_of(uri)
        if document is None or path is None:
            return None
        version = document.version
        diagnosis: Diagnosis | None = await self.in_worker(self.documents().diagnose, path)
        now = self.document(uri)
        if diagnosis is None or now is None or now.version != version:
            return None
        self.known[uri] = (version, diagnosis)
        shown = [self.diagnostic(uri, finding) for finding in diagnosis.findings]
        if diagnosis.broken is not None:
            shown = [self._unreadable(uri, diagnosis)]
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, shown, version))
        return diagnosis

    async def diagnosis(self, uri: str) -> Diagnosis | None:
        """What is known of ``uri`` as it is now."""
        document = self.document(uri)
        version, diagnosis = self.known.get(uri, (None, None))
        if document is None or (diagnosis is not None and version == document.version):
            return diagnosis
        return await self.refresh(uri)

    def diagnostic(self, uri: str, finding: Finding) -> lsp.Diagnostic:
        """A finding as the client shows it; of a block the first line only."""
        related = [
            lsp.DiagnosticRelatedInformation(
                lsp.Location(uris.from_fs_path(str(Path(step.path).absolute())) or uri, _line_range(step.line)),
                step.note,
            )
            for step in finding.trail
        ]
        return lsp.Diagnostic(
            self.range_of(uri, finding),
            finding.message,
            severity=SEVERITIES[finding.promise],
            code=finding.rule,
            source="codemod",
            related_information=related,
        )

    def range_of(self, uri: str, finding: Finding) -> lsp.Range:
        """Where ``finding`` is shown, in the units of the client."""
        document = self.document(uri)
        lines = lines_of(document.source if document is not None else "")
        line, column, end_line, end_column = finding.span
        text = lines[line - 1].rstrip("\r\n") if line <= len(lines) else ""
        end = end_column if end_line == line else len(text)
        units = self.workspace.position_codec.client_num_units
        return lsp.Range(
            lsp.Position(line - 1, units(text[:column])), lsp.Position(line - 1, units(text[: max(end, column)]))
        )

    def _unreadable(self, uri: str, diagnosis: Diagnosis) -> lsp.Diagnostic:
        assert diagnosis.broken is not None
        return lsp.Diagnostic(
            _line_range(max(1, diagnosis.broken.line)),
            f"codemod cannot read this file: {diagnosis.broken.reason}",
            severity=lsp.DiagnosticSeverity.Information,
            source="codemod",
        )

    def workspace_edit(self, new: dict[str, str], documents: Documents) -> lsp.WorkspaceEdit:
        """The edit that makes the texts ``new``, by path, of those in ``documents``."""
        opened = {path_of(doc.uri): (doc.uri, doc.version) for doc in self.workspace.text_documents.values()}
        changes: dict[str, list[lsp.TextEdit]] = {}
        versions: dict[str, int | None] = {}
        for path, text in new.items():
            uri, version = opened.get(path) or (uris.from_fs_path(path) or "", None)
            changes[uri] = self._text_edits(documents.text(path), text)
            versions[uri] = version
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


def path_of(uri: str) -> str | None:
    """The path of a file; None for a text that is in no file."""
    return uris.to_fs_path(uri) if uri.startswith("file:") else None


def _line_range(line: int) -> lsp.Range:
    return lsp.Range(lsp.Position(line - 1, 0), lsp.Position(line, 0))


def build() -> Server:
    """Return the server, its features registered."""
    from codemods.editor.features import register

    server = Server()
    register(server)
    return server


def serve() -> int:
    """Serve on standard input and output until the client leaves; return the exit status the protocol asks for."""
    server = build()
    sys.stdout.flush()
    # The protocol has the stream to itself: whatever else might be printed goes to standard error.
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server.start_io(stdout=stream)
    return 0 if server.was_shut_down else 1
