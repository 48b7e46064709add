"""Runs somebody's program on their tree so that it cannot change a file of theirs.

The program sees the tree at its own path, with some files replaced, writes whatever it likes, and when it is over every
process of it is dead and every byte of it gone. A launcher process does this (:mod:`verify.isolation.launcher`); this
package is what stays with the caller.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from verify.isolation.execution import Ending, Execution, Limits, machine_memory
from verify.isolation.view import View
from verify.isolation.workspace import Unavailable, Workspace

__all__ = ["Ending", "Execution", "Limits", "Place", "Unavailable", "View", "Workspace", "machine_memory"]


class Place(Protocol):
    """Where programs see the tree; :class:`verify.isolation.Workspace` is the one for other people's programs."""

    original: Path

    @property
    def root(self) -> Path:
        """The path at which programs see the tree."""
        ...

    def seen(self, path: str | os.PathLike[str]) -> Path:
        """The path at which programs see ``path``."""
        ...

    def execute(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        changed: Mapping[str, bytes],
        environment: Mapping[str, str],
        shared: Path,
        limits: Limits,
        view: View,
    ) -> Execution:
        """Execute ``command`` in the folder ``cwd``, with ``changed`` in place of the files, and wait for its end."""
        ...

    def cancel(self) -> None:
        """End what other threads execute, and execute no more."""
        ...

    def close(self) -> None:
        """Remove whatever is still there of it."""
        ...
