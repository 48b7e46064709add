"""What the script changes in its tree: what it writes to files (tensors, lines of texts, arrays; else a digest), which
folders it makes or removes, which files it removes or moves, and modes."""

from __future__ import annotations

import functools
import gc
import io
import os
import stat
import sys
import time
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from ..guarding.guard import Part, Write
from ..guarding.hooks import when_imported
from ..values.digests import Parameters
from ..values.plain import number_of, tensor_of, text_of
from ..values.tensors import hasher

#: What is heard of by Python's own audit.
EVENTS = frozenset({"os.chmod", "os.mkdir", "os.rmdir", "os.remove", "os.rename", "os.symlink", "os.link"})
#: Which paths each of them changes, of those that it is given; the first one else.
_CHANGED = {"os.rename": slice(0, 2), "os.symlink": slice(1, 2), "os.link": slice(1, 2)}
_MOST = 500
#: What Python makes for itself.
_OWN = "__pycache__"
_TEXTS = (".csv", ".tsv", ".json", ".jsonl", ".txt", ".log", ".yaml", ".yml", ".md")
_ARRAYS = (".npy", ".npz")
_MOST_FILES = 200
_MOST_TEXT = 1 << 18
_LONGEST = 2000
_MOST_BYTES = 1 << 26
_MOST_THINGS = 5000
_DEEPEST = 10
#: How long to look for files that nobody was seen to open.
_SECONDS = 1.0
#: Programs that are started, and which arguments have their words, their folder and their environment.
_STARTED = {
    "os.system": (0, -1, -1),
    "subprocess.Popen": (1, 2, 3),
    "os.posix_spawn": (1, -1, 2),
    "os.exec": (1, -1, 2),
    "os.spawn": (2, -1, 3),
}
_HEARD = EVENTS | _STARTED.keys() | {"open"}
_MOST_STARTED = 100
#: Among the kinds of what a file holds: the function that wrote it, which says who can read it.
FORMAT = "the whole"
_OPEN = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
_NOT_HIS = ("/dev/", "/proc/", "/sys/")


class Folders:
    """Notes which paths below ``root`` are changed; ``own`` is the folder that the probe itself writes to."""

    def __init__(self, root: str, own: str) -> None:
        self._root = os.path.join(root, "")
        self._own = own
        #: What was there before, None for nothing.
        self._before: dict[str, str | None] = {}

    def heard(self, event: str, arguments: Any) -> None:
        """One of :data:`EVENTS`, before it happens."""
        for path in arguments[_CHANGED.get(event, slice(1))]:
            # A path beside an open folder, and a file that is named by its number, are not followed.
            if isinstance(path, (str, bytes, os.PathLike)) and len(self._before) < _MOST:
                self.note(os.path.abspath(os.fsdecode(path)))

    def note(self, path: str) -> None:
        """``path`` may be changed from here on."""
        inside = path.startswith(self._root) and not path.startswith(self._own) and _OWN not in path
        if inside and path not in self._before:
            self._before[path] = self._state(path)

    def changed(self) -> dict[str, str]:
        """What changed, and what is there now, by the path below the root."""
        found = {}
        for path, before in self._before.items():
            now = self._state(path)
            if now != before:
                found[path[len(self._root) :].replace(os.sep, "/")] = now or "gone"
        return found

    def _state(self, path: str) -> str | None:
        """Whether ``path`` is a file, a folder or a link, its mode, and where it leads; None where nothing is."""
        try:
            mode = stat.filemode(os.lstat(path).st_mode)
            return f"{mode} to {os.readlink(path).replace(self._root, '')}" if mode.startswith("l") else mode
        except OSError:
            return None


class Files:
    """Notes which files are opened for writing, reads them at the end, and reads along what ``torch.save`` writes.

    ``root`` is the user's tree, by which files are named; ``own`` the folder that the probe itself writes to.
    """

    def __init__(self, root: str, own: str, write: Write, part: Part) -> None:
        self._root = os.path.join(root, "")
        self._own = os.path.realpath(own)
        self._write = write
        self._part = part
        self._pid = os.getpid()
        self._on = True
        self._paths: dict[str, None] = {}
        # Files have the time of the kernel's last tick.
        self._start = time.time() - 0.02
        self._saved: set[str] = set()
        self._reader: Parameters | None = None
        self._folders = Folders(root, self._own)
        self._started = 0

    def install(self) -> None:
        """Call at the start of the process."""
        sys.addaudithook(self._heard)
        when_imported("pickle", lambda: self._wrap("dump", [sys.modules["pickle"]]))

    def torch(self, reader: Parameters) -> None:
        """Call once torch has been imported."""
        import torch

        self._reader = reader
        self._wrap("save", [torch, torch.serialization])

    def _wrap(self, name: str, modules: list[Any]) -> None:
        """Read along what ``name`` of the modules, a function of an object and a file, writes."""
        original = getattr(modules[0], name)

        @functools.wraps(original)
        def save(obj: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(obj, *args, **kwargs)
            file = args[0] if args else kwargs.get("f", kwargs.get("file"))
            if self._on and self._part.on and self._reader is not None and os.getpid() == self._pid:
                with self._part:
                    self._save(obj, file, original.__name__)
            return result

        for module in modules:
            if getattr(module, name, None) is original:
                setattr(module, name, save)

    def _heard(self, event: str, arguments: Any) -> None:
        # Called for all kinds of events: everything else must cost nothing.
        if event not in _HEARD or not self._on:
            return
        try:
            if event in _STARTED:
                if os.getpid() == self._pid:
                    self._starts(*[arguments[place] if place >= 0 else None for place in _STARTED[event]])
                return
            if event != "open":
                if os.getpid() == self._pid:
                    self._folders.heard(event, arguments)
                return
            path, mode, _ = arguments
            writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
            if writes and isinstance(path, (str, bytes)) and os.getpid() == self._pid:
                self._note(os.fsdecode(path))
        except Exception:
            # What fails here would fail in the script.
            self._on = False

    def _starts(self, words: Any, folder: Any, environment: Any) -> None:
        """A program is started with these ``words``, one or many, in a ``folder``, and with an ``environment`` of its
        own where they are given."""
        self._started += 1
        if self._started <= _MOST_STARTED:
            listed = words if isinstance(words, (list, tuple)) else [words]
            text = " ".join([os.fsdecode(word) for word in listed])
            if folder is not None and not os.path.samefile(folder, os.getcwd()):
                text += f" in {self._name(os.fsdecode(folder))}"
            text += "".join([f" with {each}" for each in _settings(environment)])
            self._write({"event": "printed", "stream": "commands", "text": text[:_LONGEST]})

    def _note(self, path: str) -> None:
        path = os.path.abspath(path)
        if path.startswith(_NOT_HIS) or path.startswith(self._own) or len(self._paths) >= _MOST_FILES:
            return
        self._paths[path] = None
        self._folders.note(path)

    def _name(self, path: str) -> str:
        path = os.path.abspath(path)
        inside = path.startswith(self._root)
        return path[len(self._root) :].replace(os.sep, "/") if inside else os.path.basename(path)

    def _save(self, obj: Any, f: Any, form: str) -> None:
        path = getattr(f, "name", f)
        if not isinstance(path, (str, os.PathLike)):
            return
        path = os.path.abspath(os.fspath(path))
        self._saved.add(path)
        names, tensors, numbers, texts = [], [], {}, {}
        kinds = {FORMAT: form}
        for name, value, kind in _things(obj):
            kinds[name] = kind
            if isinstance(value, (bool, int, float)):
                numbers[name] = float(value).hex()
            elif isinstance(value, str):
                texts[name] = value
            elif value is not None:
                names.append(name)
                tensors.append(value)
        assert self._reader is not None
        told = {"kind": "tensors", "names": names, "numbers": numbers, "kinds": kinds, "texts": texts}
        self._tell(path, {**told, **self._reader.read(tensors)})

    def _tell(self, path: str, told: dict[str, Any]) -> None:
        self._write({"event": "file", "path": self._name(path), **told})

    def end(self) -> None:
        """Write ``file`` events of all files that are there, and which modes and folders are others."""
        self._on = False
        if changed := self._folders.changed():
            self._write({"event": "changed", "paths": changed})
        self._flush()
        for path in self._paths:
            if path not in self._saved and os.path.isfile(path) and os.path.getsize(path) <= _MOST_BYTES:
                self._tell(path, self._read(path))
        if os.environ.get("WORLD_SIZE", "1") == "1":
            # Ranks write at their own pace.
            for path in self._others():
                self._tell(path, self._digest(path))

    def _flush(self) -> None:
        """Have files that are still open hold what was written to them: a run may end while they are."""
        for each in gc.get_objects():
            if type(each) in _OPEN and not each.closed:
                try:
                    if os.path.abspath(os.fspath(each.name)) in self._paths:
                        each.flush()
                except (OSError, ValueError, TypeError, AttributeError):
                    # Its name is a number, or it is another thread's at this moment.
                    continue

    def _others(self) -> Iterator[str]:
        """The files of the tree that something else has written since the start: a library, or another program."""
        until = time.monotonic() + _SECONDS
        known = self._paths.keys() | self._saved
        for folder, folders, names in os.walk(self._root):
            folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
            if time.monotonic() > until:
                text = f"The tree has more files than can be looked at in {_SECONDS:g} s for what other programs wrote."
                self._write({"event": "note", "text": text})
                return
            for name in sorted(names):
                path = os.path.join(folder, name)
                if path in known or path.startswith(self._own) or name.endswith((".py", ".pyc", ".ipynb")):
                    continue
                try:
                    status = os.stat(path)
                except OSError:
                    continue
                if stat.S_ISREG(status.st_mode) and status.st_mtime > self._start and status.st_size <= _MOST_BYTES:
                    yield path

    def _read(self, path: str) -> dict[str, Any]:
        if path.endswith((*_TEXTS, *(f"{ending}.gz" for ending in _TEXTS))):
            from .packed import begun

            lines = begun(path, _MOST_TEXT).decode("utf-8", "replace").split("\n")
            # The last line may not be finished, and a text that is cut off is compared so far.
            return {"kind": "text", "lines": lines if path.endswith((".json", ".json.gz")) else lines[:-1]}
        numpy = sys.modules.get("numpy")
        if path.endswith(_ARRAYS) and numpy is not None and self._reader is not None:
            import torch

            loaded = numpy.load(path, allow_pickle=False)
            arrays = {"": loaded} if path.endswith(".npy") else dict(loaded.items())
            kept = {name: array for name, array in arrays.items() if array.dtype.kind in "fiubc"}
            tensors = [torch.from_numpy(numpy.ascontiguousarray(each)) for each in kept.values()]
            kinds = {name: _kind(array) for name, array in kept.items()}
            return {"kind": "tensors", "names": list(kept), "numbers": {}, "kinds": kinds, **self._reader.read(tensors)}
        return self._digest(path)

    @staticmethod
    def _digest(path: str) -> dict[str, Any]:
        from .packed import held

        state = hasher()
        for block in held(path, _MOST_BYTES):
            state.update(block)
        return {"kind": "bytes", "digest": state.hexdigest()[:16]}


def _settings(environment: Any) -> list[str]:
    """What an environment, None for that of this process, has otherwise than this process."""
    if environment is None:
        return []
    given = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    return sorted(
        [f"{name}={value}" for name, value in given.items() if os.environ.get(name) != value]
        + [f"no {name}" for name in os.environ if name not in given]
    )


def _kind(value: Any) -> str:
    """What ``value`` is to those who read it. What is computed by a graph is saved without, and is like any other."""
    name = type(value).__qualname__
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return name
    learns = " that learns" if getattr(value, "requires_grad", False) and value.is_leaf else ""
    return f"{name}{learns} of {value.dtype}, shape {tuple(value.shape)}"


def _things(obj: Any) -> Iterator[tuple[str, Any, str]]:
    """The tensors, numbers and texts in what is saved, each with the way to it and its type; one-element tensors are
    numbers, and of containers and other objects there is None."""
    import torch

    stack = [("", obj, 0)]
    things = 0
    while stack and things < _MOST_THINGS:
        name, value, depth = stack.pop()
        things += 1
        kind = _kind(value)
        if isinstance(value, torch.Tensor):
            if value.numel() == 1 and value.layout is torch.strided and not value.is_complex() and not value.is_meta:
                number = value.detach().item()
                # A number for a tensor of one is what a total comes to when it holds no graph.
                yield name, number, _kind(number) if kind.startswith("Tensor of") else kind
            else:
                yield name, value, kind
            continue
        found = number_of(value)
        found = text_of(value) if found is None else found
        found = tensor_of(value) if found is None else found
        yield name, found, kind
        if found is None and depth < _DEEPEST:
            stack.extend((name + part, child, depth + 1) for part, child in reversed(list(_parts(value))))


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    import torch

    if isinstance(value, dict):
        yield from ((f".{key}", child) for key, child in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{place}]", value[place]) for place in range(min(len(value), _MOST_THINGS)))
    elif isinstance(value, torch.nn.Module):
        for table in ("_parameters", "_buffers", "_modules"):
            yield from ((f".{key}", child) for key, child in vars(value).get(table, {}).items())
    elif not isinstance(value, (type, ModuleType, FunctionType)):
        try:
            attributes = object.__getattribute__(value, "__dict__")
        except AttributeError:
            return
        yield from ((f".{key}", child) for key, child in attributes.items())
