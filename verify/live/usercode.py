"""Which code of this process is the user's: what nobody installed, notebook cells included."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from typing import Any

from verify.probe.lines.sites import Tree

#: Names that interpreters and notebooks give to what was typed in.
_TYPED = re.compile(r"<(stdin|string|console|ipython-input|python-input|command)\b")
#: What ipykernel calls a cell: a file that it never writes.
_CELL = re.compile(r"[/\\]ipykernel_\d+[/\\]\d+\.py$")
_INSTALLED = ("site-packages", "dist-packages", "__pypackages__")
#: The whole of this package: what runs a script for a diagnosis is not the script.
_OWN = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


class UserCode(Tree):
    """All files under ``root``, or, where it is None, all that are neither installed nor Python's; and notebook cells.

    Paths are told relative to ``root`` or the current folder where they lie below it, cells as ``In[3]``.
    """

    def __init__(self, root: str | os.PathLike[str] | None) -> None:
        self.folder = os.path.realpath(os.getcwd() if root is None else root)
        super().__init__(self.folder)
        self._anywhere = root is None
        self._foreign: list[str] = []
        if self._anywhere:
            paths = sysconfig.get_paths()
            folders = {_OWN, *(paths[name] for name in ("stdlib", "platstdlib"))}
            # Built from source and used in place, torch lies in no site-packages.
            folders.update(getattr(sys.modules.get("torch"), "__path__", ()))
            self._foreign = [os.path.realpath(folder) + os.sep for folder in folders]

    def _relative(self, filename: str) -> str | None:
        if filename.startswith("<string>") and not self._anywhere:
            # What `python -c` runs, which starts workers as often as it is the user's.
            return None
        if _TYPED.match(filename) or _CELL.search(filename):
            return _cell(filename)
        if not self._anywhere or not filename or filename.startswith("<"):
            return super()._relative(filename)
        path = os.path.realpath(os.path.join(self._start, filename))
        if any(path.startswith(folder) for folder in self._foreign):
            return None
        if any(part in _INSTALLED for part in path.split(os.sep)):
            return None
        below = self.folder.rstrip(os.sep) + os.sep
        return path[len(below) :].replace(os.sep, "/") if path.startswith(below) else path


def _cell(filename: str) -> str:
    """``In[3]``, as IPython shows it, or ``filename`` outside of IPython."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    try:
        kind, name = shell.compile.format_code_name(filename)
    except Exception:
        # No shell, one without that method, or a name that it did not give.
        return filename
    return str(name) if kind == "Cell" else filename
