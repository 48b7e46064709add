"""The user's own editor, opened on the new text of hunks."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence

from codemods.interactive.dialogue import EditorError
from codemods.rewriting.changes import Hunk
from codemods.source.diffs import printable
from codemods.source.errors import os_reason

_MARK = "#| "


def edited(
    proposed: Mapping[Hunk, str], place: Callable[[Hunk], str], environ: Mapping[str, str] = os.environ
) -> dict[Hunk, str]:
    """Return the texts that came back for ``proposed``, with the line ends of the hunks.

    All of them are one file for the editor, each below a line with its ``place``. Raises
    :class:`~codemods.interactive.dialogue.EditorError` if there is no editor, if it fails, or if those lines are gone.
    """
    try:
        command = shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or "vi")
    except ValueError as error:
        raise EditorError(f"VISUAL or EDITOR is not a command: {str(error).lower()}.") from None
    headings = [f"{_MARK}{printable(place(hunk))}" for hunk in proposed]
    with tempfile.TemporaryDirectory(prefix="codemod-") as folder:
        path = os.path.join(folder, "hunk.py")
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(_written(proposed, headings))
        _run([*command, path])
        try:
            with open(path, encoding="utf-8", errors="surrogateescape", newline=None) as file:
                text = file.read()
        except OSError:
            raise EditorError("The editor left no file: nothing was changed.") from None
    return _read(text, proposed, headings)


def _written(proposed: Mapping[Hunk, str], headings: Sequence[str]) -> str:
    head = f"{_MARK}Write these lines as you want them; leave the lines that begin with {_MARK.strip()} alone.\n"
    parts = [head]
    for heading, text in zip(headings, proposed.values(), strict=True):
        body = text.replace("\r\n", "\n")
        parts.append(f"{heading}\n{body}" + ("" if not body or body.endswith("\n") else "\n"))
    return "".join(parts)


def _read(text: str, proposed: Mapping[Hunk, str], headings: Sequence[str]) -> dict[Hunk, str]:
    if not text.strip():
        raise EditorError("Nothing came back from the editor: nothing was changed.")
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    places = [index for index, line in enumerate(lines) if line.startswith(_MARK.strip())]
    kept = [lines[index].rstrip() for index in places[1:]]
    if kept != headings:
        raise EditorError(f"The lines that begin with {_MARK.strip()} came back changed: nothing was done.")
    found = {}
    for hunk, start, end in zip(proposed, places[1:], [*places[2:], len(lines)], strict=True):
        body = "".join(f"{line}\n" for line in lines[start + 1 : end])
        model = "".join(hunk.added or hunk.removed)
        if body and model and not model.endswith("\n"):
            body = body.removesuffix("\n")
        found[hunk] = body.replace("\n", "\r\n") if "\r\n" in model else body
    return found


def _run(command: list[str]) -> None:
    try:
        with _interrupts_are_for_the_editor():
            status = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise EditorError(
            f"The editor {command[0]} could not be started: {os_reason(error)}. Set VISUAL or EDITOR."
        ) from None
    if status:
        raise EditorError(f"The editor ended with status {status}: nothing was changed.")


@contextlib.contextmanager
def _interrupts_are_for_the_editor() -> Iterator[None]:
    # A handler, because a signal that is ignored would be ignored in the editor too.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
