"""Where programs run, as whoever has them run knows it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from verify.isolation.execution import Execution, Limits
from verify.isolation.view import View
from verify.isolation.warm import Start


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
        warm: Start | None = None,
    ) -> Execution:
        """Execute ``command`` in the folder ``cwd``, with ``changed`` in place of the files, and wait for its end."""
        ...

    def cancel(self) -> None:
        """End what other threads execute, and execute no more."""
        ...

    def close(self) -> None:
        """Remove whatever is still there of it."""
        ...
