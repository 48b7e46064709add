"""A stand-in for docker or podman: it writes down how it was called, and runs what it is to run in place.

In place is enough, because whatever a container sees of this machine it sees at its own path. It shows that the words
are those that were meant, and that runs work with them; not that a container program takes them.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Of ``run``, those that have no value.
_FLAGS = ("--rm", "--interactive", "--read-only")
#: What an image says of the environment.
_OF_THE_IMAGE = {"PATH": os.defpath, "OF_THE_IMAGE": "yes", "PYTHONPATH": "/of/the/image"}


@dataclass(frozen=True)
class StandIn:
    """One that is installed in ``folder``, under ``name``."""

    folder: Path
    name: str = "docker"

    def install(self, images: Sequence[str] = (), says: str = "", *, dead: bool = False) -> StandIn:
        """Have it on this machine, with ``images``; it ``says`` its version, and, where ``dead``, nothing works."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "images.json").write_text(json.dumps(list(images)))
        command = [sys.executable, "-S", __file__, str(self.folder), says or self.name, *["dead"] * dead, "--"]
        program = self.folder / self.name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)
        return self

    def calls(self, first: str) -> list[list[str]]:
        """The words of each call that began with ``first``."""
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [words for words in map(json.loads, lines) if words[0] == first]


def options(words: Sequence[str]) -> dict[str, list[str]]:
    """The options of a call of ``run`` with their values, and under ``""`` the image and its arguments."""
    found: dict[str, list[str]] = {}
    rest = list(words[1:])
    while rest and rest[0].startswith("--"):
        name = rest.pop(0)
        found.setdefault(name, []).append("" if name in _FLAGS else rest.pop(0))
    return {**found, "": rest}


def _main(folder: Path, says: str, dead: bool, words: list[str]) -> int:
    if words == ["--version"]:
        print(f"{says} version 1")
        return 0
    with (folder / "calls").open("a") as stream:
        stream.write(json.dumps(words) + "\n")
    images = json.loads((folder / "images.json").read_text())
    if dead:
        print("Cannot connect to the daemon", file=sys.stderr)
        return 1
    if words[0] == "info":
        print('28.1 ["name=seccomp"]')
        return 0
    if words[0] in ("image", "pull"):
        image = words[-1]
        if words[0] == "pull" and "nowhere" not in image:
            (folder / "images.json").write_text(json.dumps([*images, image]))
            return 0
        print(f"sha256:{len(image):04}" if image in images else "", end="")
        print("" if image in images else f"no such image: {image}", file=sys.stderr)
        return image not in images
    asked = options(words)
    image, *arguments = asked[""]
    if image not in images:
        print(f"no such image: {image}", file=sys.stderr)
        return 125
    program = asked["--entrypoint"][0]
    os.chdir(asked["--workdir"][0])
    try:
        os.execvpe(program, [program, *arguments], _OF_THE_IMAGE)
    except OSError as error:
        print(f"exec: {program}: {error.strerror}", file=sys.stderr)
        return 127


if __name__ == "__main__":
    _ahead, _words = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
    sys.exit(_main(Path(_ahead[0]), _ahead[1], _ahead[2:] == ["dead"], _words))
