"""The place where a program sees the user's tree, for as many runs as one likes."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from verify.isolation.execution import Ending, Execution, Limits
from verify.isolation.folders import TemporaryFolder, make_folders
from verify.isolation.launcher import landlock
from verify.isolation.launcher.mounts import inside
from verify.isolation.process import Launched, LauncherFailed
from verify.isolation.view import Veil, View, veil
from verify.isolation.warm import Start, Unready, Warm

Mode = Literal["auto", "overlay", "copy"]

_TRIAL_SECONDS = 30.0
# Where the tree is seen there, the path must be known before and the same in every run.
_ONLY_RUN = "run"
_NOTHING = View()
#: Processes that are kept waiting to be forked from; each has its modules in memory.
_MOST_STARTS = 2


class Unavailable(Exception):
    """This machine does not offer the kind of isolation that was asked for; the text says why."""


class Workspace:
    """A view of the tree ``root`` for programs. Use it as a context manager, or call ``close``.

    Programs see it at its real path where the system has mount namespaces, else as a copy elsewhere (the property
    ``root``). ``sandbox`` says to people how programs are isolated. Several threads may execute in it at once, but
    where the tree is seen elsewhere they take turns.
    """

    #: Whether programs get the environment of their launcher below their own, as that of an image.
    _inherits = False

    def __init__(self, root: Path, *, mode: Mode = "auto") -> None:
        """Raises NotADirectoryError for ``root`` that is no folder, Unavailable for a ``mode`` that cannot be had."""
        self.original = Path(os.path.realpath(root))
        if not self.original.is_dir():
            raise NotADirectoryError(str(root))
        if sys.platform == "win32":
            raise Unavailable("programs can be isolated on Linux and macOS only; use WSL")
        self._runs = itertools.count(1)
        self._turn = threading.Lock()
        self._folders: list[TemporaryFolder] = []
        self._running: set[Launched] = set()
        self._cancelled = False
        self._warming = threading.Lock()
        self._starts: dict[Any, Warm | None] = {}
        #: Modules that cannot be imported ahead.
        self._unfit: set[str] = set()
        self.mode: Mode = "copy"
        self.sandbox = ""
        self.notes: tuple[str, ...] = ()
        self._means = {"namespaces": False, "own_processes": False, "landlock": False}
        try:
            self._folders = make_folders()
            self._choose(mode)
        except BaseException:
            self.close()
            raise

    @property
    def root(self) -> Path:
        """The path at which programs see the tree."""
        return self._elsewhere if self._moved else self.original

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove whatever is still there of it."""
        for started in filter(None, self._starts.values()):
            started.close()
        self._starts = {}
        for folder in self._folders:
            folder.remove()
        self._folders = []

    def cancel(self) -> None:
        """End the programs that other threads execute, and start no more."""
        self._cancelled = True
        for launched in list(self._running):
            launched.end()

    def seen(self, path: str | os.PathLike[str]) -> Path:
        """The path at which programs see ``path``: in the copy for what is in the tree, else unchanged."""
        real = Path(os.path.realpath(path))
        if self._moved and real.is_relative_to(self.original):
            return self._elsewhere / real.relative_to(self.original)
        return Path(path)

    def execute(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        changed: Mapping[str, bytes],
        environment: Mapping[str, str],
        shared: Path,
        limits: Limits,
        view: View = _NOTHING,
        warm: Start | None = None,
    ) -> Execution:
        """Execute ``command`` in the folder ``cwd`` of the tree, and wait for its end.

        ``changed`` maps paths relative to the tree to the contents that the program sees there; every execution starts
        from the tree as it is now. ``shared`` is the one folder where what it writes stays. Home folders and those of
        services are empty but for the tree, what the environment names of programs, and ``view``. Paths of the tree in
        PYTHONPATH are those of the copy where there is one; ``command`` is taken as it is, see ``seen``. The program
        has no terminal, an empty standard input and a session of its own. With ``warm`` it begins as a fork of a
        process that has made this start, where there can be one; that is kept for others that make the same.

        Returns NOT_STARTED where the command cannot be executed or the tree cannot be shown. KeyboardInterrupt ends
        the program too.
        """
        for relative in changed:
            if os.path.isabs(relative) or ".." in Path(relative).parts:
                raise ValueError(f"not a path inside the tree: {relative}")
        run = f"run-{next(self._runs)}"
        with contextlib.ExitStack() as turn:
            if self._moved:
                run = _ONLY_RUN
                turn.enter_context(self._turn)
            folder = self.seen(os.path.realpath(cwd))
            drawn = self._veil(command, environment, view, limits)
            given = self._environment(run, environment, folder, limits, drawn)
            answer = self._launch(
                run,
                self._warm(warm, folder, given)
                if warm and tuple(command[: len(warm.command)]) == warm.command
                else None,
                command=list(command),
                folder=str(folder),
                environment=given,
                changed={path: base64.b64encode(data).decode() for path, data in changed.items()},
                shared=os.path.realpath(shared),
                wanted=self._wanted(environment, folder),
                drawn=drawn,
                limits=limits,
                **self._means,
            )
            return Execution(
                Ending[answer["ending"]],
                answer["status"],
                answer["seconds"],
                answer["peak"],
                answer["output"],
                self._described(answer["got"], limits),
                (*self.notes, *answer["notes"]),
                answer.get("warm", False),
            )

    def _described(self, got: Mapping[str, bool], limits: Limits) -> str:
        return _describe(self.mode, got, network=limits.network)

    @property
    def _moved(self) -> bool:
        """Whether programs see the tree at another path than its own."""
        return self.mode == "copy" and not self._means["namespaces"]

    @property
    def _elsewhere(self) -> Path:
        return self._target(_ONLY_RUN)

    def _target(self, run: str) -> Path:
        # The last part is the tree's own name: programs print it, and packages are named after it.
        return self._folders[0].path / run / "tree" / (self.original.name or "root")

    def _veil(self, command: Sequence[str], environment: Mapping[str, str], view: View, limits: Limits) -> Veil:
        # Overlays close the sockets and pipes in temporary folders; a copy has temporary folders of its own.
        return veil(
            str(self.original), command, environment, view, network=limits.network, temporary=self.mode == "copy"
        )

    def _environment(
        self, run: str, given: Mapping[str, str], folder: Path, limits: Limits, drawn: Veil
    ) -> dict[str, str]:
        environment = {**given, "PWD": str(folder)}
        for name in ("TMPDIR", "TEMP", "TMP"):
            # A folder that is not there any more is no place for temporary files; there is another by default.
            if any(inside(os.path.realpath(given.get(name, "/")), folder) for folder in drawn.hidden):
                del environment[name]
        if self.mode == "copy":
            private = self._folders[0].path / run
            if home := given.get("HOME"):
                # What was installed for this user alone must still be found.
                environment.setdefault("PYTHONUSERBASE", str(Path(home, ".local")))
            environment |= {"HOME": str(private / "home")}
            environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(private / "tmp"))
            if path := given.get("PYTHONPATH"):
                environment["PYTHONPATH"] = os.pathsep.join(str(self.seen(part)) for part in path.split(os.pathsep))
        if not limits.network and self._means["namespaces"]:
            # The host's name leads to an interface that is not there any more.
            for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME"):
                environment[name] = "lo"
        return environment

    def _wanted(self, environment: Mapping[str, str], folder: Path) -> list[str]:
        """Places that scripts write to, whether or not they are found by looking for what this user can write."""
        named = [environment.get(name) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "TORCH_HOME", "HF_HOME")]
        places = [str(folder), "/tmp", "/var/tmp", *(name for name in named if name)]
        real = dict.fromkeys(os.path.realpath(place) for place in places)
        return [place for place in real if os.path.isdir(place) and os.access(place, os.W_OK)]

    def _choose(self, mode: Mode) -> None:
        """Try, without a program, what this machine allows."""
        reasons: list[str] = []
        if mode != "copy":
            self.mode = "overlay"
            if self._try(reasons):
                return
            if mode == "overlay":
                raise Unavailable(f"no overlay works here: {'; '.join(reasons)}")
        self.mode = "copy"
        if reasons:
            self.notes = (f"the tree was copied, because no overlay works here ({reasons[0]})",)
        if not self._try(reasons):
            self._means = {"namespaces": False, "own_processes": False, "landlock": landlock.version() > 0}
            self.sandbox = _describe("copy", {**self._got(), **self._means}, network=False)

    def _got(self) -> dict[str, bool]:
        return dict.fromkeys(("user", "mount", "network", "ipc", "processes"), False)

    def _try(self, reasons: list[str]) -> bool:
        if sys.platform != "linux":
            reasons.append("this system has no namespaces")
            return False
        for own_processes in (True, False):
            means = {"namespaces": True, "own_processes": own_processes, "landlock": False}
            limits = Limits(_TRIAL_SECONDS)
            answer = self._launch(
                "trial",
                None,
                command=[],
                folder="/",
                environment={},
                changed={},
                shared="",
                wanted=self._wanted(os.environ, self.original),
                drawn=self._veil((), os.environ, _NOTHING, limits),
                limits=limits,
                **means,
            )
            if answer["ending"] == "EXITED":
                self._means = means
                self.sandbox = _describe(self.mode, answer["got"], network=False)
                return True
            reasons += answer["notes"]
        return False

    @contextlib.contextmanager
    def _known(self, launched: Launched) -> Iterator[None]:
        self._running.add(launched)
        try:
            if self._cancelled:
                launched.end()
            yield
        finally:
            self._running.discard(launched)

    def _launch(self, run: str, warm: Warm | None, *, limits: Limits, drawn: Veil, **fields: Any) -> dict[str, Any]:
        request = {
            **fields,
            **asdict(drawn),
            "root": str(self.original),
            "target": str(self._target(run)) if self.mode == "copy" else "",
            "folders": [str(folder.path) for folder in self._folders[: 1 if self.mode == "copy" else None]],
            "run": run,
            "network": limits.network,
            "inherits": self._inherits,
            "limits": {
                "seconds": limits.seconds,
                "memory": limits.memory_bytes,
                "disk": limits.disk,
                "processes": limits.processes,
            },
        }
        try:
            with self._launcher(fields["shared"], drawn, limits, warm) as launched, self._known(launched):
                answer: dict[str, Any] = json.loads(launched.ask(json.dumps(request), limits.seconds))
        except LauncherFailed as error:
            return {
                "ending": "NOT_STARTED",
                "status": None,
                "seconds": 0.0,
                "peak": 0,
                "output": "",
                "notes": [str(error)],
                "got": self._got(),
            }
        return answer

    def _launcher(self, shared: str, drawn: Veil, limits: Limits, warm: Warm | None) -> Launched:
        """Start a launcher, whose program may write to ``shared`` (empty for none)."""
        return Launched([folder.lock for folder in self._folders], warm=warm)

    def _warm(self, start: Start, folder: Path, environment: Mapping[str, str]) -> Warm | None:
        """The process that has made this start; None where there is none to be had."""
        if self.mode != "overlay" or not self._means["own_processes"]:
            # Its program could see it, or has temporary folders that it knows nothing of.
            return None
        start = start.with_modules(tuple(itertools.takewhile(lambda name: name not in self._unfit, start.modules)))
        given = {name: value for name, value in environment.items() if name != start.own}
        known = start, folder, tuple(sorted(given.items()))
        with self._warming:
            if known not in self._starts:
                oldest = next(iter(self._starts), None) if len(self._starts) >= _MOST_STARTS else None
                if oldest is not None and (ended := self._starts.pop(oldest)) is not None:
                    ended.close()
                self._starts[known] = None
                try:
                    self._starts[known] = Warm(start, folder, given)
                except Unready as error:
                    self._unfit.update(start.modules[error.first : error.first + 1])
            warm = self._starts[known]
        if warm is not None and not warm.imports & start.names:
            return warm
        if start.modules == start.least:
            return None
        cut = warm is None and not self._unfit.isdisjoint(start.modules[: -len(start.least)])
        return self._warm(start.with_modules(start.modules if cut else ()), folder, environment)


def _describe(mode: str, got: Mapping[str, bool], *, network: bool) -> str:
    """One sentence for people on how a program was isolated."""
    if mode == "overlay":
        what = "overlays at the real paths in a mount namespace"
    elif got.get("mount") or got.get("namespaces"):
        what = "a copy of the tree at its real path, all other files read-only (mount namespace)"
    elif got.get("landlock"):
        what = "a copy of the tree in a temporary folder, no writing elsewhere (Landlock)"
    else:
        what = "a copy of the tree in a temporary folder; files outside it that the program names are not guarded"
    kept = "with network" if network else "the network could not be cut off"
    reach = "no network" if got.get("network") else kept
    return f"{what}, {reach}"
