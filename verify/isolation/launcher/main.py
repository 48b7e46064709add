"""One request of the caller: isolate, execute, watch, clean up, answer.

The request is one line of JSON on standard input, the answer one on standard output. Standard input stays open: its end
says that the caller is gone, whatever killed it. See :class:`Request` for the fields.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import signal
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import child, kernel, landlock, processes, removal, sandbox, veils
from .copying import Copy, TooLarge
from .places import TERMINALS, find_places
from .reader import Reader
from .watching import Cancelled, Limits, Outcome, Watch


@dataclass(frozen=True)
class Request:
    """What is to be done.

    ``command`` is empty where the caller only wants to know what is possible here. ``root`` is the real path of the
    user's tree, ``target`` where it is copied to (with namespaces it is then seen at its real path all the same), empty
    for overlays. ``folders`` are the caller's temporary folders, best first, ``run`` the name of the one to make in
    each. ``wanted`` are further places where a script writes, ``shared`` the folder that stays writable.
    ``hidden`` are folders that the program finds empty but for ``shown`` and ``exposed``, which it may not write.
    ``inherits``: the program's environment is laid over the launcher's own.
    ``namespaces``, ``own_processes`` and ``landlock``: which means to use. ``changed`` maps paths relative to the tree
    to new contents.
    """

    command: Sequence[str]
    root: str
    target: str
    folder: str
    environment: Mapping[str, str]
    changed: Mapping[str, bytes]
    shared: str
    folders: Sequence[str]
    run: str
    wanted: Sequence[str]
    hidden: Sequence[str]
    shown: Sequence[str]
    exposed: Sequence[str]
    network: bool
    inherits: bool
    namespaces: bool
    own_processes: bool
    landlock: bool
    limits: Limits


def main(*, warm: bool = False) -> int:
    """Serve one request. ``warm``: the program is no other one, but comes back by :class:`child.Begins`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The caller gets these too, and its end is ours.
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    raw = json.loads(_read_line(0))
    changed = {path: base64.b64decode(text) for path, text in raw.pop("changed").items()}
    request = Request(**{**raw, "changed": changed, "limits": Limits(**raw["limits"])})
    answer = json.dumps(Run(request, warm=warm).serve()).encode()
    while answer:
        answer = answer[os.write(1, answer) :]
    return 0


def _read_line(handle: int) -> bytes:
    parts: list[bytes] = []
    while not parts or not parts[-1].endswith(b"\n"):
        part = os.read(handle, 1 << 20)
        if not part:
            sys.exit(0)
        parts.append(part)
    return b"".join(parts)


class Run:
    """One request on its way."""

    def __init__(self, request: Request, *, warm: bool = False) -> None:
        self.request = request
        self.warm = warm
        self.got: dict[str, bool] = {"user": False, "mount": False, "network": False, "ipc": False}
        self.notes: list[str] = []
        self.box: sandbox.Sandbox | None = None
        self.folders = [os.path.join(folder, request.run) for folder in request.folders]
        # Held open: overlays may lie over their paths later.
        self.handles = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for folder in request.folders]

    def serve(self) -> dict[str, Any]:
        """The answer: how it ended, and by which means it was isolated."""
        outcome = Outcome()
        try:
            for folder in self.folders:
                os.mkdir(folder, 0o700)
            outcome = self._execute()
        except Cancelled:
            outcome.ending, outcome.notes = "NOT_STARTED", ["cancelled"]
        except TooLarge as error:
            outcome.ending, outcome.notes = "NOT_STARTED", [str(error)]
        except OSError as error:
            outcome.ending, outcome.notes = "NOT_STARTED", [child.reason(error)]
        except child.Begins:
            # In the program there is nothing to clean, and its handles are others by now.
            self.box, self.handles = None, []
            raise
        finally:
            self._clean()
        if self.box and outcome.status != 0:
            self.notes += self.box.notes
        return {
            "ending": outcome.ending,
            "status": outcome.status,
            "seconds": outcome.seconds,
            "peak": outcome.peak,
            "output": outcome.output.decode("utf-8", errors="replace"),
            "notes": [*outcome.notes, *self.notes],
            "warm": self.warm,
            "got": {**self.got, "processes": self.request.own_processes, "landlock": self.request.landlock},
            "overlaid": self.box.overlaid if self.box else [],
        }

    def _execute(self) -> Outcome:
        request = self.request
        if request.namespaces:
            # Before the namespaces: in one of its own, nobody's files and those of user "nobody" look the same.
            places = [] if request.target else find_places(request.root, request.wanted)
            sockets = veils.bound_sockets()
            self.got, notes = sandbox.enter(network=request.network)
            self.notes += notes
            kept = [request.shared, *([self.folders[0]] if request.target else [])]
            self.box = sandbox.Sandbox(
                self.folders,
                [folder for folder in kept if folder],
                request.limits.disk,
                request.limits.memory,
                user=self.got["user"],
            )
            if not request.target:
                self.box.overlay(places, request.root)
        seen = request.target or request.root
        moved = []
        if request.target and request.command:
            self._copy()
            moved = [(request.target, request.root)]
        if self.box:
            shown = [path for path in request.shown if path not in TERMINALS]
            self.box.curtains.draw(request.hidden, shown, request.exposed, moved)
            self.box.curtains.make(request.folder)
            self.box.close_doors(sockets)
            self.box.protect()
        self._change(seen)
        return self._watch()

    def _copy(self) -> None:
        request = self.request
        for name in ("home", "tmp"):
            os.mkdir(os.path.join(self.folders[0], name), 0o700)
        os.mkdir(os.path.dirname(request.target), 0o700)
        copy = Copy(
            request.root, request.target, protected=request.namespaces or request.landlock, alive=self._check_caller
        )
        copy.make()
        self.notes += copy.notes

    def _check_caller(self) -> None:
        if select.select([0], [], [], 0)[0] and not os.read(0, 1 << 12):
            raise Cancelled

    def _change(self, seen: str) -> None:
        """Replace the old contents by the new ones, as this run sees the tree."""
        for relative, data in self.request.changed.items():
            path = os.path.join(seen, relative)
            real = os.path.realpath(path)
            if self.request.target and not real.startswith(os.path.realpath(seen) + os.sep):
                raise OSError(f"{relative} leads out of the tree, and is not changed")
            os.makedirs(os.path.dirname(real), exist_ok=True)
            before = None
            with contextlib.suppress(FileNotFoundError):
                before = os.stat(real)
            with _unlocked(real if before else os.path.dirname(real)), open(real, "wb") as file:
                file.write(data)
            if before is not None:
                _age(real, before)

    def _watch(self) -> Outcome:
        request = self.request
        output, output_end = os.pipe()
        report, report_end = os.pipe()
        if sys.platform == "linux":
            kernel.adopt_orphans()
        written, disks = self._written()
        reader = Reader()
        pid = child.start(
            self._program(),
            own_processes=request.own_processes,
            guard_proc=os.getuid() == 0,
            output=output_end,
            report=report_end,
        )
        os.close(output_end)
        os.close(report_end)
        proc = f"/proc/{pid}/root/proc" if request.own_processes else None
        return Watch(pid, output, report, reader, request.limits, proc, written, disks).run(0)

    def _written(self) -> tuple[list[str], list[str]]:
        if self.box and not self.request.target:
            return self.box.used(), self.box.used()[: len(self.folders)]
        return self.folders, self.folders

    def _program(self) -> child.Program | None:
        request = self.request
        if not request.command:
            return None
        largest = max(request.limits.disk, request.limits.memory)
        rules = None
        if request.landlock:
            writable = [*self.folders, *([request.shared] if request.shared else [])]
            # What is shown of the tree is the copy; but an environment in it is not copied.
            readable = [*request.shown, *request.exposed, *writable]
            rules = landlock.Rules(writable, request.hidden, readable)
        return child.Program(
            request.command, request.folder, self._environment(), largest, processes.own_threads(), rules, self.warm
        )

    def _environment(self) -> Mapping[str, str]:
        given = self.request.environment
        if not self.request.inherits:
            return given
        paths = [place["PYTHONPATH"] for place in (given, os.environ) if place.get("PYTHONPATH")]
        return {**os.environ, **given, **({"PYTHONPATH": os.pathsep.join(paths)} if paths else {})}

    def _clean(self) -> None:
        if self.box:
            with contextlib.suppress(OSError):
                self.box.close()
        for handle in self.handles:
            try:
                removal.remove(
                    f"/proc/self/fd/{handle}/{self.request.run}" if self.got["mount"] else self._path(handle)
                )
            except OSError as error:
                self.notes.append(f"something was left in {self._path(handle)}: {child.reason(error)}")

    def _path(self, handle: int) -> str:
        return self.folders[self.handles.index(handle)]


@contextlib.contextmanager
def _unlocked(path: str) -> Iterator[None]:
    """Writable for its owner for a while."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if mode & 0o200:
        yield
        return
    os.chmod(path, mode | 0o200)
    try:
        yield
    finally:
        os.chmod(path, mode)


def _age(path: str, before: os.stat_result) -> None:
    """Python trusts compiled files by the second of the source's time and its size: never leave both as they were."""
    now = os.stat(path)
    if int(now.st_mtime) == int(before.st_mtime):
        os.utime(path, (now.st_atime, now.st_mtime + 1))
