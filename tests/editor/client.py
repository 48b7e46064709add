"""A client of the Language Server Protocol, as small as can be: JSON-RPC over the pipes of a process."""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0

CAPABILITIES: dict[str, Any] = {
    "notebookDocument": {"synchronization": {"dynamicRegistration": False}},
    "workspace": {"workspaceEdit": {"documentChanges": True}},
    "textDocument": {"codeAction": {"resolveSupport": {"properties": ["edit"]}, "dataSupport": True}},
}


class Client:
    """Starts ``codemod lsp`` in ``folder`` and speaks with it."""

    def __init__(self, folder: Path, capabilities: dict[str, Any] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "codemods", "lsp", "--stdio"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self._numbers = itertools.count(1)
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._kept: list[dict[str, Any]] = []
        self._versions: dict[str, int] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        given = CAPABILITIES if capabilities is None else capabilities
        self.server = self.request(
            "initialize", {"processId": os.getpid(), "rootUri": folder.as_uri(), "capabilities": given}
        )
        self.notify("initialized", {})

    def _read(self) -> None:
        out = self.process.stdout
        assert out is not None
        while line := out.readline():
            size = 0
            while line.strip():
                name, _, value = line.decode().partition(":")
                size = int(value) if name.lower() == "content-length" else size
                line = out.readline()
            self._messages.put(json.loads(out.read(size)))
        self._messages.put(None)

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def request(self, method: str, params: Any) -> Any:
        number = next(self._numbers)
        self._send({"id": number, "method": method, "params": params})
        answer = self._next(lambda message: message.get("id") == number and "method" not in message)
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self, wanted: Any) -> dict[str, Any]:
        for message in self._kept:
            if wanted(message):
                self._kept.remove(message)
                return message
        while True:
            message = self._messages.get(timeout=PATIENCE)
            assert message is not None, "the server has left"
            if wanted(message):
                return message
            self._kept.append(message)

    def open(self, path: Path, text: str) -> None:
        self._versions[path.as_uri()] = 1
        document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, path: Path, text: str) -> None:
        self._versions[path.as_uri()] += 1
        document = {"uri": path.as_uri(), "version": self._versions[path.as_uri()]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def open_notebook(self, path: Path, *cells: tuple[str, str]) -> list[str]:
        """Open a notebook of cells, each a language and a text; return the URIs of the cells."""
        places = [f"vscode-notebook-cell:{path.as_uri().removeprefix('file://')}#W{at}" for at in range(len(cells))]
        self._versions |= dict.fromkeys(places, 1) | {path.as_uri(): 1}
        items = [notebook_cell(place, *cell) for place, cell in zip(places, cells, strict=True)]
        whole = {"uri": path.as_uri(), "notebookType": "jupyter-notebook", "version": 1}
        params = {
            "notebookDocument": whole | {"cells": [cell for cell, _ in items]},
            "cellTextDocuments": [text for _, text in items],
        }
        self.notify("notebookDocument/didOpen", params)
        return places

    def change_notebook(self, path: Path, cells: dict[str, Any]) -> None:
        """Tell of a change of cells, as the protocol has it."""
        self._versions[path.as_uri()] += 1
        document = {"uri": path.as_uri(), "version": self._versions[path.as_uri()]}
        self.notify("notebookDocument/didChange", {"notebookDocument": document, "change": {"cells": cells}})

    def type_in_cell(self, path: Path, place: str, *changes: dict[str, Any]) -> None:
        """Change the text of a cell."""
        self._versions[place] += 1
        document = {"uri": place, "version": self._versions[place]}
        self.change_notebook(path, {"textContent": [{"document": document, "changes": list(changes)}]})

    def shown(self, uri: str) -> list[dict[str, Any]]:
        """The next diagnostics that are shown in a text."""
        method = "textDocument/publishDiagnostics"
        told = self._next(lambda message: message.get("method") == method and message["params"]["uri"] == uri)
        return told["params"]["diagnostics"]  # type: ignore[no-any-return]

    def diagnostics(self, path: Path) -> list[dict[str, Any]]:
        """Those of the present version, waited for."""
        uri = path.as_uri()

        def wanted(message: dict[str, Any]) -> bool:
            params = message.get("params")
            return (
                message.get("method") == "textDocument/publishDiagnostics"
                and params["uri"] == uri
                and params.get("version") in (None, self._versions[uri])
            )

        return self._next(wanted)["params"]["diagnostics"]  # type: ignore[no-any-return]

    def message(self) -> str:
        """The next thing that the server shows to the user."""
        return str(self._next(lambda message: message.get("method") == "window/showMessage")["params"]["message"])

    def actions(self, path: Path | str, line: int, only: list[str] | None = None) -> list[dict[str, Any]]:
        place = {"line": line, "character": 0}
        context: dict[str, Any] = {"diagnostics": []} | ({"only": only} if only else {})
        document = {"uri": path if isinstance(path, str) else path.as_uri()}
        params = {"textDocument": document, "range": {"start": place, "end": place}, "context": context}
        return self.request("textDocument/codeAction", params)  # type: ignore[no-any-return]

    def hover(self, path: Path | str, line: int) -> Any:
        place = {"line": line, "character": 3}
        document = {"uri": path if isinstance(path, str) else path.as_uri()}
        return self.request("textDocument/hover", {"textDocument": document, "position": place})

    def close(self) -> int:
        """Shut the server down as the protocol asks for, and return its exit status."""
        self.request("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def notebook_cell(place: str, language: str, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A cell of a notebook and the text in it, as they are sent."""
    kind = 1 if language == "markdown" else 2
    return {"kind": kind, "document": place}, {"uri": place, "languageId": language, "version": 1, "text": text}


def edited(text: str, edits: list[dict[str, Any]]) -> str:
    """What a client makes of ``text`` by edits, whose columns count UTF-16 units."""
    lines = text.split("\n")

    def offset(position: dict[str, int]) -> int:
        before = sum(len(line.encode("utf-16-le")) + 2 for line in lines[: position["line"]])
        return before + 2 * position["character"]

    data = text.encode("utf-16-le")
    for edit in sorted(edits, key=lambda edit: offset(edit["range"]["start"]), reverse=True):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        data = data[:start] + edit["newText"].encode("utf-16-le") + data[end:]
    return data.decode("utf-16-le")
