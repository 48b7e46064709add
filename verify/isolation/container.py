"""A place for programs in containers of an image."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from verify.isolation import engines
from verify.isolation.engines import Bind, NoContainers
from verify.isolation.execution import Limits
from verify.isolation.process import LAUNCHER, Launched
from verify.isolation.view import Veil, View
from verify.isolation.warm import Warm
from verify.isolation.workspace import Mode, Unavailable, Workspace

#: The launcher and the probe.
_OURS = Path(__file__).parents[1]


class Container(Workspace):
    """A workspace whose programs run in containers of ``image``, each in a new one.

    The launcher is what a container executes: it copies the tree, which it can only read, watches the limits, and ends
    with us. ``python`` is the interpreter of the image that it needs; ``devices``: with the GPUs of this machine.
    """

    _inherits = True

    def __init__(self, root: Path, *, image: str, python: str, devices: bool = False, mode: Mode = "auto") -> None:
        """Raises NotADirectoryError for ``root`` that is no folder, Unavailable where no container can be had."""
        self._image, self._python, self._devices = image, python, devices
        super().__init__(root, mode=mode)

    def _choose(self, mode: Mode) -> None:
        if mode == "overlay":
            raise Unavailable("in a container the tree is copied: no overlay can be had")
        self.mode = "copy"
        try:
            self._engine = engines.find()
            self._engine.fetch(self._image)
        except (NoContainers, subprocess.TimeoutExpired) as error:
            raise Unavailable(str(error)) from None
        done = self._engine.ask(self._image, self._python, "import sys; sys.exit(sys.version_info < (3, 8))", 120)
        if done.returncode:
            said = " ".join(done.stderr.split())[:300]
            raise Unavailable(
                f"{self._python} of the image {self._image} cannot run anything: {said}"
                if said
                else f"{self._python} of the image {self._image} is older than Python 3.8"
            )
        self.sandbox = self._described({}, Limits(0))

    def _veil(self, command: Sequence[str], environment: Mapping[str, str], view: View, limits: Limits) -> Veil:
        # Nothing of this machine is there, so that there is nothing to hide.
        return Veil((), (), tuple(view.exposed))

    def _described(self, got: Mapping[str, bool], limits: Limits) -> str:
        network = "with network" if limits.network else "no network"
        return f"a copy of the tree in a container of {self._image} ({self._engine.name}), {network}"

    def _launcher(self, shared: str, drawn: Veil, limits: Limits, warm: Warm | None) -> Launched:
        written = [self._folders[0].path, *([Path(shared)] if shared else [])]
        binds = [Bind(path) for path in (self.original, _OURS, *map(Path, drawn.exposed))]
        binds += [Bind(path, writable=True) for path in written]
        command = [self._python, "-I", "-S", str(LAUNCHER)]
        locks = [folder.lock for folder in self._folders]
        return Launched(locks, self._engine.words(self._image, command, limits, binds, devices=self._devices))
