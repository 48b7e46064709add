"""Which lines belong to the user: a file under the root of the tree that no package manager put there."""

from __future__ import annotations

import os
import sys
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    #: ``[path, line, function]`` as records.py has it.
    Site = list[str | int]

_INSTALLED = ("site-packages", "dist-packages", ".git", "__pypackages__")
_STANDARD = os.path.dirname(os.__file__) + os.sep
OWN = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep


class Tree:
    """The user's tree; ``root`` is its absolute real path."""

    def __init__(self, root: str) -> None:
        self._root = root.rstrip(os.sep) + os.sep
        # Python before 3.9 compiles `python train.py` under its relative name, which stops being true after a chdir.
        self._start = os.getcwd()
        self._known: dict[str, str | None] = {}
        self._packages: dict[str, bool] = {}
        self._among_packages = any(part in _INSTALLED for part in self._root.split(os.sep))
        self._main: str | None = None

    def relative(self, filename: str) -> str | None:
        """The path with ``/`` relative to the root, or None where ``filename`` (a code object's) is not the user's."""
        try:
            return self._known[filename]
        except KeyError:
            known = self._known[filename] = self._relative(filename)
            return known

    def _relative(self, filename: str) -> str | None:
        if not filename or filename.startswith("<") or self._is_installed(filename):
            return None
        path = os.path.realpath(os.path.join(self._start, filename))
        if not path.startswith(self._root) or path.startswith(OWN):
            return None
        if not os.path.isabs(filename) and not os.path.isfile(path):
            # Compiled code tells where it was compiled: numpy/random/mtrand.pyx.
            return None
        parts = path[len(self._root) :].split(os.sep)
        return None if any(part in _INSTALLED for part in parts) else "/".join(parts)

    def _is_installed(self, filename: str) -> bool:
        """Whether a file is seen to be of Python or of an installed package, without a look at each of its folders.

        A program has thousands of them, and where its main thread computes, each call of the system takes the
        interpreter's lock away for long.
        """
        if self._among_packages:
            return False
        if filename.startswith(_STANDARD) and not self._root.startswith(_STANDARD):
            inside = filename[len(_STANDARD) :]
            if not inside.startswith(_INSTALLED):
                return True
        parts = filename.split(os.sep)
        place = next((place for place, part in enumerate(parts[:-1]) if part in _INSTALLED), None)
        if place is None or not os.path.isabs(filename):
            return False
        package = os.sep.join(parts[: place + 2])
        if package not in self._packages:
            # it may be a link to the tree
            real = os.path.realpath(package).split(os.sep)
            self._packages[package] = any(part in _INSTALLED for part in real)
        return self._packages[package]

    def note_main(self) -> None:
        """Keep the script's name: Python takes it off ``__main__`` when the script is over, and a notebook has none."""
        main = sys.modules.get("__main__")
        self._main = getattr(main, "__file__", None) or getattr(main, "__codemod_file__", None)

    @property
    def main(self) -> str | None:
        """The file of the script, as it was when :meth:`note_main` was called."""
        return self._main

    def loaded(self) -> list[str]:
        """The Python files of the tree that were imported or run in this process, relative to the root, in order."""
        files = [(name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items())]
        files.append(("__main__", self._main))
        found = {
            self.relative(file)
            for name, file in files
            # Some modules make up a file of their name; that of the script may be relative, see above.
            if isinstance(file, str) and file.endswith(".py") and (os.path.isabs(file) or name == "__main__")
        }
        return sorted(path for path in found if path is not None)

    def libraries(self) -> list[str]:
        """The modules outside of the tree that are no part of Python, in the order in which they were begun."""
        found = []
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            spec = getattr(module, "__spec__", None)
            installed = isinstance(file, str) and not {*_INSTALLED[:2]}.isdisjoint(file.split(os.sep))
            if installed and getattr(spec, "name", None) == name and not name.startswith("_codemod"):
                found.append(name)
        # Those that Python 3.8 and 3.9 cannot tell begin no other run.
        standard = getattr(sys, "stdlib_module_names", None)
        return [] if standard is None else [name for name in found if name.partition(".")[0] not in standard]

    def site(self, frame: FrameType | None) -> Site | None:
        """The innermost line of the tree at or outside ``frame``."""
        known = self._known
        while frame is not None:
            file = frame.f_code.co_filename
            path = known[file] if file in known else self.relative(file)
            if path is not None:
                return [path, frame.f_lineno, frame.f_code.co_name]
            frame = frame.f_back
        return None

    def frames(self, frame: FrameType | None) -> list[FrameType]:
        """All frames of the tree at or outside ``frame``, from the inside out."""
        found = []
        while frame is not None:
            if self.relative(frame.f_code.co_filename) is not None:
                found.append(frame)
            frame = frame.f_back
        return found

    def traceback_site(self, traceback: TracebackType | None) -> Site | None:
        """The innermost line of the tree in ``traceback``."""
        found: Site | None = None
        while traceback is not None:
            code = traceback.tb_frame.f_code
            path = self.relative(code.co_filename)
            if path is not None:
                found = [path, traceback.tb_lineno, code.co_name]
            traceback = traceback.tb_next
        return found


def key(site: Site | None) -> tuple[str | int, ...]:
    """``site`` as something that can be looked up in a dictionary."""
    return () if site is None else tuple(site)
