"""What else the script changes in its tree: folders that it makes or removes, files that it removes or moves, modes."""

from __future__ import annotations

import os
import stat
from typing import Any

#: What is heard of by Python's own audit.
EVENTS = frozenset({"os.chmod", "os.mkdir", "os.rmdir", "os.remove", "os.rename"})
_MOST = 500
#: What Python makes for itself.
_OWN = "__pycache__"


class Folders:
    """Notes which paths below ``root`` are changed; ``own`` is the folder that the probe itself writes to."""

    def __init__(self, root: str, own: str) -> None:
        self._root = os.path.join(root, "")
        self._own = own
        #: What was there before, None for nothing.
        self._before: dict[str, str | None] = {}

    def heard(self, event: str, arguments: Any) -> None:
        """One of :data:`EVENTS`, before it happens."""
        for path in arguments[: 2 if event == "os.rename" else 1]:
            # A path beside an open folder, and a file that is named by its number, are not followed.
            if isinstance(path, (str, bytes, os.PathLike)) and len(self._before) < _MOST:
                self.note(os.path.abspath(os.fsdecode(path)))

    def note(self, path: str) -> None:
        """``path`` may be changed from here on."""
        inside = path.startswith(self._root) and not path.startswith(self._own) and _OWN not in path
        if inside and path not in self._before:
            self._before[path] = _state(path)

    def changed(self) -> dict[str, str]:
        """What changed, and what is there now, by the path below the root."""
        found = {}
        for path, before in self._before.items():
            now = _state(path)
            if now != before:
                found[path[len(self._root) :].replace(os.sep, "/")] = now or "gone"
        return found


def _state(path: str) -> str | None:
    """Whether ``path`` is a file or a folder, and its mode; None where nothing is."""
    try:
        return stat.filemode(os.lstat(path).st_mode)
    except OSError:
        return None
