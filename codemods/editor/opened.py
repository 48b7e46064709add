"""What a client has open, as the server looks at it: texts, and notebooks with the texts of their cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls import uris
from pygls.workspace import TextDocument, Workspace

from codemods.editor.cells import Cell
from codemods.editor.documents import Documents, lines_of
from codemods.editor.recent import Recent


class Unit(NamedTuple):
    """What is analysed as one: a text, or all ``texts`` of the cells of a notebook, in order."""

    uri: str
    path: str
    texts: tuple[TextDocument, ...]
    cells: tuple[Cell, ...] | None
    version: list[int | None]

    def text(self, cell: int | None) -> TextDocument:
        """The text of a cell, counted from 1; of a plain text with None."""
        return self.texts[0 if cell is None else cell - 1]


class CellText(TextDocument):
    """The text of a cell: clients send what changed in it, whatever was agreed on for other texts."""

    def __init__(self, text: TextDocument) -> None:
        super().__init__(
            text.uri,
            text.source,
            text.version,
            text.language_id,
            sync_kind=lsp.TextDocumentSyncKind.Incremental,
            position_codec=text.position_codec,
        )

    @property
    def lines(self) -> Sequence[str]:
        """As the protocol counts them: a form feed ends none."""
        return tuple(lines_of(self.source))


def adopt_cells(workspace: Workspace, notebook: lsp.NotebookDocument) -> None:
    """Have the texts of the cells of ``notebook`` take the changes that clients send."""
    opened = workspace.text_documents
    for cell in notebook.cells:
        text = document(workspace, cell.document)
        if text is not None and not isinstance(text, CellText):
            opened[unquote(cell.document)] = CellText(text)


def document(workspace: Workspace, uri: str) -> TextDocument | None:
    """The text that is open as ``uri``."""
    # pygls keeps them by their URIs, since 2.1 with no character quoted.
    opened = workspace.text_documents
    found: TextDocument | None = opened.get(unquote(uri)) or opened.get(uri)
    return found


def unit_of(workspace: Workspace, uri: str) -> Unit | None:
    """What is analysed where ``uri`` is a text, a notebook or a cell; None for what is not open or in no file."""
    notebook = workspace.get_notebook_document(notebook_uri=uri) or workspace.get_notebook_document(cell_uri=uri)
    if notebook is None:
        text = document(workspace, uri)
        path = path_of(uri)
        return Unit(uri, path, (text,), None, [text.version]) if text is not None and path is not None else None
    path = path_of(notebook.uri)
    texts = [document(workspace, cell.document) for cell in notebook.cells]
    known = tuple(text for text in texts if text is not None)
    if path is None or len(known) < len(texts):
        return None
    cells = tuple(_cell(cell, text) for cell, text in zip(notebook.cells, known, strict=True))
    return Unit(notebook.uri, path, known, cells, [notebook.version, *(text.version for text in known)])


def units(workspace: Workspace) -> list[Unit]:
    """All that is open and in a file."""
    every = [*workspace.notebook_documents.values(), *workspace.text_documents.values()]
    found = {unit.uri: unit for one in every if (unit := unit_of(workspace, one.uri)) is not None}
    return list(found.values())


def documents(workspace: Workspace, recent: Recent, stopped: Callable[[], bool]) -> Documents:
    """All that is open, as it is now; see :class:`~codemods.editor.documents.Documents` for the rest."""
    texts: dict[str, str] = {}
    notebooks: dict[str, tuple[Cell, ...]] = {}
    for unit in units(workspace):
        if unit.cells is None:
            texts[unit.path] = unit.texts[0].source
        else:
            notebooks[unit.path] = unit.cells
    return Documents(texts, notebooks, recent, stopped)


def path_of(uri: str) -> str | None:
    """The path of a file; None for a text that is in no file."""
    return uris.to_fs_path(uri) if uri.startswith("file:") else None


def _cell(cell: lsp.NotebookCell, text: TextDocument) -> Cell:
    metadata: Any = cell.metadata
    tags = metadata.get("tags") if isinstance(metadata, Mapping) else None
    named = tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, (list, tuple)) else ()
    is_python = cell.kind == lsp.NotebookCellKind.Code and (text.language_id or "python") in ("python", "ipython")
    return Cell(text.source, is_python, named)
