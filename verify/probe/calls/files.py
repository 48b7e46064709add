"""Files and folders of the tree that are not there, made where the program asks for them: what is in them is found by
trial, and given in all runs.

A file comes into being when it is opened, listed or asked about, not before: what the program does about a file that is
missing stays as it is, unless it gets further with one.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..guarding.guard import Write
from ..guarding.hooks import when_imported
from ..lines.sites import OWN, Tree
from . import contents, readers

#: Never made up: code, and what tools look for of themselves.
_CODE = (".py", ".pyc", ".pyi", ".so", ".pyd", ".sh", ".cfg", ".toml", ".ini", ".lock", ".log", ".pth~")
#: Readers that do not say that they open something, by module.
_READERS = {"numpy": ("loadtxt", "genfromtxt"), "cv2": ("imread",)}
_DEEPEST = 80
_KINDS = {"open": "open", "os.listdir": "list", "os.scandir": "list", "glob.glob": "glob", "os.mkdir": "mkdir"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

#: Chooses what a file is made of: its place, its form, and what is told of it.
Choose = Callable[["dict[str, Any]", Callable[[], None]], "Any"]


class MissingFiles:
    """Makes files below ``root``: those that are ``known`` (recipes of an earlier run), and with ``choose`` others.

    ``choose(place, clean)`` gives a recipe, None for none; ``clean`` removes what copies of the process have made.
    Writes ``made`` and ``standin`` events.
    """

    def __init__(self, root: str, known: list[dict[str, Any]], tree: Tree, write: Write, choose: Choose | None) -> None:
        self._root = os.path.realpath(root)
        self._tree = tree
        self._write = write
        self._choose = choose
        self._exact = {(one["kind"], one["path"]): one["recipe"] for one in reversed(known)}
        self._alike = {self._key(one): one["recipe"] for one in reversed(known)}
        self._told: set[Any] = set()
        self._busy: set[int] = set()
        self._pid = os.getpid()
        self._journal: int | None = None
        #: Files that are there for their names alone.
        self._empty: set[str] = set()

    @staticmethod
    def _key(one: dict[str, Any]) -> tuple[str, ...]:
        return (one["kind"], *map(str, one["site"]), one["suffix"])

    def install(self) -> None:
        """Listen to what is opened."""
        with tempfile.TemporaryFile() as file:
            self._journal = os.dup(file.fileno())
        sys.addaudithook(self._heard)
        for name in ("exists", "isfile", "isdir"):
            setattr(os.path, name, self._asking(getattr(os.path, name)))
        for module, functions in _READERS.items():
            when_imported(module, functools.partial(self._around, module, functions))
        when_imported("h5py", self._around_h5)
        when_imported("torch", self._around_save)

    # Who asks.

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        kind = _KINDS.get(event)
        if kind is None or not arguments or not isinstance(arguments[0], (str, bytes)):
            return
        if kind == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES:
            kind = "write"
        if kind in ("write", "mkdir") and os.getpid() != self._pid:
            self._undone(arguments[0])
        if kind == "mkdir":
            return
        try:
            frame = sys._getframe(1)
        except ValueError:
            # The interpreter itself asks, for the script.
            return
        self._asked(kind, arguments[0], frame)

    def _asking(self, function: Callable[[Any], bool]) -> Callable[[Any], bool]:
        @functools.wraps(function)
        def asked(path: Any) -> bool:
            found = function(path)
            if not found and isinstance(path, (str, os.PathLike)):
                frame = sys._getframe(1)
                if self._tree.relative(frame.f_code.co_filename) is not None:
                    self._asked("exists", os.fspath(path), frame)
                    return function(path)
            return found

        return asked

    def _around(self, module: str, functions: tuple[str, ...]) -> None:
        for name in functions:
            function = getattr(sys.modules[module], name)

            def read(*arguments: Any, _function: Any = function, **named: Any) -> Any:
                if arguments and isinstance(arguments[0], (str, os.PathLike)):
                    self._asked("open", os.fspath(arguments[0]), sys._getframe(1), _function.__name__)
                return _function(*arguments, **named)

            setattr(sys.modules[module], name, functools.wraps(function)(read))

    def _around_h5(self) -> None:
        file: Any = sys.modules["h5py"].File
        plain = file.__init__

        @functools.wraps(plain)
        def begin(this: Any, name: Any, *arguments: Any, **named: Any) -> None:
            mode = named.get("mode", arguments[0] if arguments else "r")
            if isinstance(name, (str, os.PathLike)) and mode in ("r", "r+", None):
                self._asked("open", os.fspath(name), sys._getframe(1), "File")
            plain(this, name, *arguments, **named)

        file.__init__ = begin

    def _around_save(self) -> None:
        """What torch writes by itself nobody hears of."""
        library: Any = sys.modules["torch.serialization"]
        plain = library._open_zipfile_writer

        def begin(name: Any) -> Any:
            if isinstance(name, (str, os.PathLike)) and os.getpid() != self._pid:
                self._undone(os.fspath(name))
            return plain(name)

        library._open_zipfile_writer = begin

    # What is done about it.

    def _undone(self, path: Any) -> None:
        """A copy of this process makes ``path``, which the next one is not to find."""
        place = os.path.abspath(os.fsdecode(path))
        if threading.get_ident() not in self._busy and not os.path.lexists(place):
            self._noted(place)

    def _asked(self, kind: str, path: Any, frame: FrameType, reader: str = "") -> None:
        thread = threading.get_ident()
        if thread in self._busy:
            return
        self._busy.add(thread)
        try:
            self._made(kind, os.fsdecode(path), frame, reader)
        except (OSError, ValueError, ImportError, TypeError, RecursionError):
            # The program goes on without it, and says itself what it misses.
            return
        finally:
            self._busy.discard(thread)

    def _made(self, kind: str, path: str, frame: FrameType, reader: str) -> None:
        place = os.path.realpath(path) if kind != "glob" else os.path.abspath(path)
        if not place.startswith(self._root + os.sep) or not self._wants(kind, place):
            return
        frames, between = self._frames(frame)
        if not frames:
            return
        relative = os.path.relpath(place, self._root)
        code = frames[0].f_code
        site = [self._tree.relative(code.co_filename), code.co_name]
        suffix = os.path.splitext(place)[1].lower()
        one: dict[str, Any] = {
            "kind": kind,
            "site": site,
            "suffix": suffix,
            "path": relative,
            "line": frames[0].f_lineno,
        }
        if kind == "write":
            # A log, say, in a folder that people make by hand.
            self._folder(os.path.dirname(place))
            self._tell(one, {"format": "folder", "parts": [{"v": "empty"}], "keys": [], "as": "whole"})
            return
        recipe = self._exact.get((kind, relative)) or self._alike.get(self._key(one))
        if recipe is None and self._choose is not None:
            one["form"] = readers.form_of(kind, place, frames, [*between, *([reader] if reader else [])])
            one["form"]["empty"] = place in self._empty
            recipe = self._choose(one, self._cleaner())
            if recipe is not None:
                self._exact[kind, relative] = self._alike[self._key(one)] = recipe
        if recipe is None or recipe["format"] == "absent":
            return
        self._make(place, recipe)
        self._tell(one, recipe)

    def _tell(self, one: dict[str, Any], recipe: dict[str, Any]) -> None:
        """Write down, once a place, that a file was made."""
        key = self._key(one)
        if key in self._told or os.getpid() != self._pid:
            return
        self._told.add(key)
        event = {name: one[name] for name in ("kind", "site", "suffix", "path")}
        told = contents.told(recipe)
        self._write({"event": "made", **event, "recipe": recipe, "told": told})
        if one["kind"] == "write":
            folder = os.path.dirname(one["path"])
            self._write({"event": "note", "text": f"{folder}: the folder is not there, and is made"})
        else:
            why = f"not there; made up: {told}"
            self._write({"event": "standin", "what": one["path"], "why": why, "shape": None})

    def _wants(self, kind: str, place: str) -> bool:
        """Whether what is asked for is not there, and is something that may be made."""
        parts = place[len(self._root) :].split(os.sep)
        if kind != "write" and place.endswith(_CODE):
            return False
        if any(part == "__pycache__" or part.startswith(".") for part in parts[1:]):
            return False
        if kind == "glob":
            return not self._matches(place)
        if kind == "write":
            return not os.path.lexists(os.path.dirname(place))
        return not os.path.lexists(place) or (kind == "open" and place in self._empty)

    @staticmethod
    def _matches(pattern: str) -> bool:
        import glob

        # What asks first has been heard already.
        return next(glob.iglob(pattern, recursive=True), None) is not None

    def _frames(self, frame: FrameType | None) -> tuple[list[FrameType], list[str]]:
        """The frames of the tree, the innermost first, and the functions of libraries below them; none where it is an
        import that looks for something."""
        found: list[FrameType] = []
        between: list[str] = []
        for _ in range(_DEEPEST):
            if frame is None:
                break
            file = frame.f_code.co_filename
            if self._tree.relative(file) is not None:
                found.append(frame)
            elif not found:
                if "importlib" in file and "_bootstrap" in file:
                    return [], []
                if not file.startswith(OWN):
                    between.append(frame.f_code.co_name)
            frame = frame.f_back
        return found, between

    # The files.

    def _make(self, place: str, recipe: dict[str, Any]) -> None:
        seed = zlib.crc32(os.path.relpath(place, self._root).encode("utf-8", "surrogateescape"))
        if recipe["format"] != "folder":
            if recipe["parts"][0:1] == [{"v": "empty"}]:
                self._empty.add(place)
            self._put(place, contents.content(recipe, seed))
            return
        names = contents.names(recipe, place)
        if not names:
            self._folder(place)
        for name in names:
            suffix = os.path.splitext(name)[1].lower()
            if not suffix:
                self._folder(name)
            elif suffix in contents.IMAGES:
                image = {"format": "image", "parts": [{"v": "image", "shape": [64, 64, 3]}], "keys": [], "as": "whole"}
                self._put(name, contents.content(image, zlib.crc32(name.encode("utf-8", "surrogateescape"))))
            else:
                self._empty.add(name)
                self._put(name, b"")

    def _folder(self, place: str) -> None:
        missing = []
        while place and not os.path.lexists(place):
            missing.append(place)
            place = os.path.dirname(place)
        for each in reversed(missing):
            os.mkdir(each)
            self._noted(each)

    def _put(self, place: str, data: bytes) -> None:
        self._folder(os.path.dirname(place))
        # Workers may ask for it together: each writes its own, and the last one's takes the name.
        partial = f"{place}.{os.getpid()}~"
        with open(partial, "wb") as file:
            file.write(data)
        os.replace(partial, place)
        self._noted(place)

    def _noted(self, place: str) -> None:
        if self._journal is not None:
            os.write(self._journal, os.fsencode(place) + b"\0")

    def _cleaner(self) -> Callable[[], None]:
        """What removes all that was made since now by copies of this process."""
        journal = self._journal
        if journal is None:
            return lambda: None
        start = os.fstat(journal).st_size

        def clean() -> None:
            size = os.fstat(journal).st_size
            for place in reversed(os.pread(journal, size - start, start).split(b"\0")):
                if not place:
                    continue
                try:
                    os.rmdir(place) if os.path.isdir(place) else os.unlink(place)
                except OSError:
                    continue
                if os.fsdecode(place) in self._empty:
                    open(place, "wb").close()
            os.ftruncate(journal, start)
            os.lseek(journal, start, os.SEEK_SET)

        return clean
