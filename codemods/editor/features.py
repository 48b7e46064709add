"""What the client may ask of the server: diagnostics, quick fixes, hovers."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from lsprotocol import types as lsp

from codemods.checking.groups import Group
from codemods.editor.documents import Diagnosis, hover, title
from codemods.editor.opened import Unit, adopt_cells, units
from codemods.editor.server import FIX_ALL, PAUSE, Server
from codemods.source.line_map import LineMap
from codemods.terms.findings import Finding, Promise


def register(server: Server) -> None:
    """Have ``server`` answer."""
    server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)(opened)
    server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)(changed)
    server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)(saved)
    server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)(closed)
    server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)(notebook_opened)
    server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)(notebook_changed)
    server.feature(lsp.NOTEBOOK_DOCUMENT_DID_SAVE)(notebook_saved)
    server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)(notebook_closed)
    server.feature(lsp.TEXT_DOCUMENT_HOVER)(hovered)
    kinds: list[lsp.CodeActionKind | str] = [lsp.CodeActionKind.QuickFix, FIX_ALL]
    server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(kinds, resolve_provider=True))(code_actions)
    server.feature(lsp.CODE_ACTION_RESOLVE)(resolve)
    server.feature(lsp.SHUTDOWN)(shut_down)


def opened(server: Server, params: lsp.DidOpenTextDocumentParams) -> None:
    """Analyse a text as it is opened."""
    server.recent.clear()
    server.schedule(params.text_document.uri, 0)


def changed(server: Server, params: lsp.DidChangeTextDocumentParams) -> None:
    """Analyse a text once nothing was typed for a while."""
    server.schedule(params.text_document.uri, PAUSE)


def saved(server: Server, params: lsp.DidSaveTextDocumentParams) -> None:
    """Analyse a text as it is saved, and all else that is open, which may call what is in it."""
    _all_again(server, params.text_document.uri)


def closed(server: Server, params: lsp.DidCloseTextDocumentParams) -> None:
    """Show nothing of a text that is closed."""
    server.forget(params.text_document.uri)


def notebook_opened(server: Server, params: lsp.DidOpenNotebookDocumentParams) -> None:
    """Analyse a notebook as it is opened."""
    adopt_cells(server.workspace, params.notebook_document)
    server.schedule(params.notebook_document.uri, 0)


def notebook_changed(server: Server, params: lsp.DidChangeNotebookDocumentParams) -> None:
    """Analyse a notebook once nothing was typed, and no cell came or went, for a while."""
    notebook = server.workspace.get_notebook_document(notebook_uri=params.notebook_document.uri)
    if notebook is not None:
        adopt_cells(server.workspace, notebook)
        server.schedule(notebook.uri, PAUSE)


def notebook_saved(server: Server, params: lsp.DidSaveNotebookDocumentParams) -> None:
    """Analyse a notebook as it is saved, and all else that is open."""
    _all_again(server, params.notebook_document.uri)


def notebook_closed(server: Server, params: lsp.DidCloseNotebookDocumentParams) -> None:
    """Show nothing of a notebook that is closed."""
    server.forget(params.notebook_document.uri)


def _all_again(server: Server, first: str) -> None:
    server.recent.clear()
    server.schedule(first, 0)
    for unit in units(server.workspace):
        if unit.uri != first:
            server.schedule(unit.uri, 0)


def shut_down(server: Server, *_: Any) -> None:
    """Note that the client asked to end, as the exit status tells."""
    server.was_shut_down = True
    for uri in list(server.pending):
        server.cancel(uri)


async def hovered(server: Server, params: lsp.HoverParams) -> lsp.Hover | None:
    """Tell what was found at a place, and all about the rule."""
    uri, line = params.text_document.uri, params.position.line
    early = _told_before(server, uri, line)
    if early is not None:
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, early)) if early else None
    seen = await _seen(server, uri)
    here = seen.on(uri, line, line) if seen is not None else []
    if seen is None or not here:
        return None
    text = "\n\n---\n\n".join(hover(finding) for finding in here)
    _, place = server.spot(seen.unit, seen.diagnosis, here[0])
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), place)


def _told_before(server: Server, uri: str, line: int) -> str | None:
    """What was told of a line, empty for nothing, where the text has changed since; None where that is not known."""
    unit = server.unit(uri)
    version, diagnosis = server.known.get(uri, (None, None))
    if unit is None or unit.cells is not None or diagnosis is None or diagnosis.source is None:
        return None
    if version == unit.version:
        return None
    lines = LineMap(diagnosis.source.text, unit.texts[0].source)
    before = lines.origins(line + 1)
    if len(before) != 1 or line >= len(lines.new) or lines.old[before.start - 1] != lines.new[line]:
        return None
    here = [f for f in diagnosis.findings if f.span.line <= before.start <= f.span.end_line]
    return "\n\n---\n\n".join(map(hover, here))


async def code_actions(server: Server, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """Offer the rewrites of the findings in a range, a comment that suppresses them, and all rewrites of the file."""
    uri = params.text_document.uri
    seen = await _seen(server, uri)
    if seen is None:
        return []
    only = params.context.only
    here = seen.on(uri, params.range.start.line, params.range.end.line)
    actions = []
    if _asked(lsp.CodeActionKind.QuickFix.value, only):
        actions += [_fix(seen, group) for group in _fixable(seen.diagnosis, here)]
        actions += _ignores(seen, here)
    every = [group for group in _fixable(seen.diagnosis, seen.diagnosis.findings) if not _unsafe(group)]
    if every:
        kind = "file" if seen.unit.cells is None else "notebook"
        text = f"codemod: fix all that is safe in this {kind} ({len(every)})"
        data = {"uri": seen.unit.uri, "version": seen.unit.version}
        if _asked(FIX_ALL, only):
            actions.append(lsp.CodeAction(text, kind=FIX_ALL, data=data))
        if here and len(every) > 1 and _asked(lsp.CodeActionKind.QuickFix.value, only):
            actions.append(lsp.CodeAction(text, kind=lsp.CodeActionKind.QuickFix, data=data))
    if _resolves(server):
        return actions
    made = [await resolve(server, action) if action.edit is None else action for action in actions]
    return [action for action in made if action.edit is not None]


async def resolve(server: Server, action: lsp.CodeAction) -> lsp.CodeAction:
    """Make the edit of an action that was chosen: the rewrite itself, of the text as it is now."""
    data: Any = action.data
    if not isinstance(data, dict) or action.edit is not None:
        return action
    # Neovim sends no key whose value is null.
    uri, keys, version = data.get("uri", ""), data.get("keys"), data.get("version")
    unit = server.unit(uri)
    if unit is None or unit.version != version:
        return action
    documents = server.documents()
    wanted = None if keys is None else {(rule, file, int(line)) for rule, file, line in keys}
    new = await server.in_worker(documents.mended, unit.path, wanted)
    now = server.unit(uri)
    if new and now is not None and now.version == version:
        action.edit = server.workspace_edit(new, documents)
    return action


class _Seen(NamedTuple):
    """What is open at a place, and what was found in it."""

    server: Server
    unit: Unit
    diagnosis: Diagnosis

    def on(self, uri: str, first: int, last: int) -> list[Finding]:
        """The findings that are shown on one of the lines of the text ``uri``, which count from 0."""
        found = []
        for finding in self.diagnosis.findings:
            place, shown = self.server.spot(self.unit, self.diagnosis, finding)
            if unquote(place) == unquote(uri) and shown.start.line <= last and first <= shown.end.line:
                found.append(finding)
        return found

    def told(self, findings: Collection[Finding]) -> list[lsp.Diagnostic]:
        """Those of ``findings`` that stand here, as the client shows them."""
        source = self.diagnosis.source
        return [
            self.server.diagnostic(self.unit, self.diagnosis, finding)
            for finding in findings
            if source is not None and finding.path == source.path
        ]


async def _seen(server: Server, uri: str) -> _Seen | None:
    unit = server.unit(uri)
    diagnosis = await server.diagnosis(unit) if unit is not None else None
    now = server.unit(uri)
    if now is None or diagnosis is None or diagnosis.source is None:
        return None
    if server.known.get(now.uri, (None, None))[0] != now.version:
        return None
    return _Seen(server, now, diagnosis)


def _fix(seen: _Seen, group: Group) -> lsp.CodeAction:
    keys = [list(finding.key) for finding in group.findings]
    return lsp.CodeAction(
        title(group),
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=seen.told(group.findings),
        is_preferred=not _unsafe(group),
        data={"uri": seen.unit.uri, "version": seen.unit.version, "keys": keys},
    )


def _ignores(seen: _Seen, here: Collection[Finding]) -> Iterator[lsp.CodeAction]:
    documents = seen.server.documents()
    for finding in here:
        new = documents.ignored(seen.unit.path, finding)
        if new is not None:
            yield lsp.CodeAction(
                f"codemod: ignore {finding.rule} here",
                kind=lsp.CodeActionKind.QuickFix,
                diagnostics=seen.told([finding]),
                edit=seen.server.workspace_edit({seen.unit.path: new}, documents),
            )


def _fixable(diagnosis: Diagnosis, findings: Collection[Finding]) -> list[Group]:
    groups = dict.fromkeys(diagnosis.group(finding) for finding in findings)
    return [group for group in groups if group.obstacle is None]


def _unsafe(group: Group) -> bool:
    return any(finding.promise is Promise.BEHAVIOUR for finding in group.findings)


def _asked(kind: str, only: Collection[lsp.CodeActionKind | str] | None) -> bool:
    if not only:
        return True
    wanted = [one.value if isinstance(one, lsp.CodeActionKind) else one for one in only]
    return any(kind == one or kind.startswith(f"{one}.") for one in wanted)


def _resolves(server: Server) -> bool:
    """Whether the client asks for an edit only once it is to be made."""
    document = server.client_capabilities.text_document
    support = document.code_action.resolve_support if document and document.code_action else None
    return support is not None and "edit" in support.properties


def serve() -> int:
    """Serve on standard input and output until the client leaves; return the exit status the protocol asks for."""
    server = Server()
    register(server)
    sys.stdout.flush()
    # The protocol has the stream to itself: whatever else might be printed goes to standard error.
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server.start_io(stdout=stream)
    return 0 if server.was_shut_down else 1
