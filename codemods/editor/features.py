"""What the client may ask of the server: diagnostics, quick fixes, hovers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from lsprotocol import types as lsp

from codemods.check import Group
from codemods.editor.documents import Diagnosis, hover, title
from codemods.editor.server import FIX_ALL, PAUSE, Server, path_of
from codemods.findings import Finding, Promise


def register(server: Server) -> None:
    """Have ``server`` answer."""
    server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)(opened)
    server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)(changed)
    server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)(saved)
    server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)(closed)
    server.feature(lsp.TEXT_DOCUMENT_HOVER)(hovered)
    kinds: list[lsp.CodeActionKind | str] = [lsp.CodeActionKind.QuickFix, FIX_ALL]
    server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(kinds, resolve_provider=True))(code_actions)
    server.feature(lsp.CODE_ACTION_RESOLVE)(resolve)
    server.feature(lsp.SHUTDOWN)(shut_down)


def opened(server: Server, params: lsp.DidOpenTextDocumentParams) -> None:
    """Analyse a text as it is opened."""
    server.schedule(params.text_document.uri, 0)


def changed(server: Server, params: lsp.DidChangeTextDocumentParams) -> None:
    """Analyse a text once nothing was typed for a while."""
    server.schedule(params.text_document.uri, PAUSE)


def saved(server: Server, params: lsp.DidSaveTextDocumentParams) -> None:
    """Analyse a text as it is saved, and all other open ones, which may call what is in it."""
    uri = params.text_document.uri
    server.schedule(uri, 0)
    for other in server.workspace.text_documents.values():
        if other.uri != uri:
            server.schedule(other.uri, 0)


def closed(server: Server, params: lsp.DidCloseTextDocumentParams) -> None:
    """Show nothing of a text that is closed."""
    uri = params.text_document.uri
    server.cancel(uri)
    server.known.pop(uri, None)
    server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))


def shut_down(server: Server, *_: Any) -> None:
    """Note that the client asked to end, as the exit status tells."""
    server.was_shut_down = True
    for uri in list(server.pending):
        server.cancel(uri)


async def hovered(server: Server, params: lsp.HoverParams) -> lsp.Hover | None:
    """Tell what was found at a place, and all about the rule."""
    uri, line = params.text_document.uri, params.position.line
    diagnosis = await server.diagnosis(uri)
    here = [finding for finding in diagnosis.findings if _on(server, uri, finding, line, line)] if diagnosis else []
    if not here:
        return None
    text = "\n\n---\n\n".join(hover(finding) for finding in here)
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), server.range_of(uri, here[0]))


async def code_actions(server: Server, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """Offer the rewrites of what was found in a range, a comment that suppresses it, and all rewrites of the file."""
    uri = params.text_document.uri
    path = path_of(uri)
    diagnosis = await server.diagnosis(uri)
    if diagnosis is None or path is None:
        return []
    only = params.context.only
    first, last = params.range.start.line, params.range.end.line
    here = [finding for finding in diagnosis.findings if _on(server, uri, finding, first, last)]
    actions = []
    if _asked(lsp.CodeActionKind.QuickFix.value, only):
        actions += [_fix(server, uri, group) for group in _fixable(diagnosis, here)]
        actions += _ignores(server, uri, path, here)
    every = [group for group in _fixable(diagnosis, diagnosis.findings) if not _unsafe(group)]
    if every:
        text = f"codemod: fix all that is safe in this file ({len(every)})"
        data = {"uri": uri, "version": server.known[uri][0], "keys": None}
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
    uri, keys = data["uri"], data["keys"]
    document = server.document(uri)
    path = path_of(uri)
    if document is None or path is None or document.version != data["version"]:
        return action
    documents = server.documents()
    wanted = None if keys is None else {(rule, file, int(line)) for rule, file, line in keys}
    new = await server.in_worker(documents.mended, path, wanted)
    now = server.document(uri)
    if new and now is not None and now.version == data["version"]:
        action.edit = server.workspace_edit(new, documents)
    return action


def _fix(server: Server, uri: str, group: Group) -> lsp.CodeAction:
    keys = [list(finding.key) for finding in group.findings]
    return lsp.CodeAction(
        title(group),
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[server.diagnostic(uri, finding) for finding in group.findings if _of(uri, finding)],
        is_preferred=not _unsafe(group),
        data={"uri": uri, "version": server.known[uri][0], "keys": keys},
    )


def _ignores(server: Server, uri: str, path: str, here: Collection[Finding]) -> Iterator[lsp.CodeAction]:
    documents = server.documents()
    for finding in here:
        new = documents.ignored(path, finding)
        if new is not None:
            yield lsp.CodeAction(
                f"codemod: ignore {finding.rule} here",
                kind=lsp.CodeActionKind.QuickFix,
                diagnostics=[server.diagnostic(uri, finding)],
                edit=server.workspace_edit({path: new}, documents),
            )


def _fixable(diagnosis: Diagnosis, findings: Collection[Finding]) -> list[Group]:
    groups = dict.fromkeys(diagnosis.group(finding) for finding in findings)
    return [group for group in groups if group.obstacle is None]


def _unsafe(group: Group) -> bool:
    return any(finding.promise is Promise.BEHAVIOUR for finding in group.findings)


def _of(uri: str, finding: Finding) -> bool:
    from codemods.source.files import display_path

    return finding.path == display_path(path_of(uri) or "")


def _on(server: Server, uri: str, finding: Finding, first: int, last: int) -> bool:
    """Whether ``finding`` is shown on one of the lines, which count from 0."""
    shown = server.range_of(uri, finding)
    return shown.start.line <= last and first <= shown.end.line


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
