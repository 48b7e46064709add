"""What the scripts of a repository lack to be run, read without running them: modules, arguments, data."""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.batch.campaign.settings import Runs
from codemods.batch.environments import interpreters
from codemods.source.entries import Entry

#: What becomes of a repository's verification, as far as its text tells, the best first.
READY, STOOD_IN, DOUBTFUL, LACKING = "can be run", "can be run with stand-ins", "may be run in part", "cannot be run"
NO_SCRIPT, UNSEEN, UNREAD = "has no script", "not seen yet", "cannot be read"
#: What the ledger has of it.
PROVEN, UNJUDGED, UNCHANGED, STOPPED = "is proven", "was not judged", "has nothing to change", "has stopped"


@dataclass(frozen=True)
class Prospect:
    """What one script asks for: modules from elsewhere, arguments that it is not given, files that are not there."""

    command: str
    modules: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def outlook(self) -> str:
        """How far it comes by what is seen. Data do not count: for many, stand-ins are made."""
        from verify.running.missing import NEVER_MADE_UP, STOOD_IN_FOR

        if self.arguments or not NEVER_MADE_UP.isdisjoint(self.modules):
            return LACKING
        # Every module gets a stand-in; where the program computes with it, little can be judged.
        return READY if not self.modules else STOOD_IN if STOOD_IN_FOR.issuperset(self.modules) else DOUBTFUL

    def missing(self) -> list[str]:
        """What would bring it further, piece by piece; not what only tells people something."""
        from verify.running.missing import STOOD_IN_FOR

        modules = [f"module {name}" for name in self.modules if name not in STOOD_IN_FOR]
        return [*(f"argument {name}" for name in self.arguments), *modules]

    def text(self) -> str:
        """What is missing, for people; empty if nothing is."""
        parts = []
        if self.modules:
            parts.append(f"modules {', '.join(self.modules)}")
        if self.arguments:
            parts.append(f"arguments {', '.join(self.arguments)}")
        if self.files:
            parts.append(f"files {', '.join(self.files[:3])}" + (" and more" if len(self.files) > 3 else ""))
        return "; ".join(parts)


def prospects(
    files: Mapping[str, str], paths: Collection[str], entries: Sequence[Entry], runs: Runs
) -> tuple[Prospect, ...]:
    """Return what each of ``entries`` asks for. ``files`` are the Python files by path, ``paths`` all of the tree.

    Its modules are all that come from elsewhere: :func:`without` leaves those that an interpreter lacks.
    """
    from verify.errors import VerifyError
    from verify.running.asking import wants_of
    from verify.running.settings import entry_command

    found = []
    folders = {folder for path in paths for folder in _parents(path)}
    with tempfile.TemporaryDirectory(prefix="codemod-plan-") as name:
        root = Path(name).resolve()
        _write(root, files)
        for entry in entries:
            try:
                command = entry_command(entry.command, interpreters.of(runs), root / entry.folder)
            except VerifyError:
                continue
            if command.script is None or not command.script.is_file():
                found.append(Prospect(entry.command))
                continue
            wants = wants_of(command.script, root, command.cwd)
            given = {word.partition("=")[0] for word in command.argv}
            there = folders | set(paths) | {stand_in.partition("=")[0] for stand_in in runs.stand_ins}
            found.append(
                Prospect(
                    entry.command,
                    tuple(sorted(wants.modules)),
                    tuple(name for name in wants.required if name not in given),
                    tuple(path for path in wants.files if not _is_there(path, entry.folder, there)),
                )
            )
    return tuple(found)


def without(found: Sequence[Prospect], lacking: Collection[str]) -> tuple[Prospect, ...]:
    """Return prospects with those modules only that the interpreter is ``lacking``."""
    return tuple(replace(one, modules=tuple(name for name in one.modules if name in lacking)) for one in found)


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]


def _write(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        # Nothing of a tree was looked at yet: what leads out of it, or is a file and a folder, is left out.
        if path.startswith("/") or {"", ".", ".."} & set(path.split("/")) or "\\" in path:
            continue
        try:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8", errors="surrogateescape")
        except OSError:
            continue


def _is_there(path: str, folder: str, there: Collection[str]) -> bool:
    if os.path.isabs(path):
        return os.path.exists(path)
    return posixpath.normpath(posixpath.join(folder, path)) in there
