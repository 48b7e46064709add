"""Trees to run programs in, and every kind of isolation to run them with."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from verify.isolation import Execution, Limits, Start, Unavailable, View, Workspace
from verify.isolation.environment import passed
from verify.isolation.launcher import landlock
from verify.running.runner import BOOT

#: Overlays; the same as a fork of a process that is there already; a copy shown at the real path; a copy elsewhere with
#: writing forbidden outside; a copy and nothing else.
KINDS = ("overlay", "warm", "shown copy", "landlock", "bare copy")

NOTHING = View()


@dataclass
class Place:
    """A tree with one way of isolating, and what programs get from it."""

    workspace: Workspace
    root: Path
    shared: Path
    kind: str
    warm: Start | None = None
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def run(
        self,
        code: str,
        *arguments: str,
        changed: Mapping[str, bytes] | None = None,
        view: View = NOTHING,
        **limits: object,
    ) -> Execution:
        """Execute ``code`` as ``script.py`` of the tree (which is not in the user's tree)."""
        merged = {"script.py": textwrap.dedent(code).encode(), **(changed or {})}
        execution = self.workspace.execute(
            [sys.executable, "script.py", *arguments],
            cwd=self.root,
            changed=merged,
            environment={**passed(self.environment, {}), **self.boot, "SHARED": str(self.shared)},
            shared=self.shared,
            limits=self.limits(**limits),
            view=view,
            warm=self.warm,
        )
        # What could import modules of the tree is not begun outside.
        outside = str(self.root) not in self.environment.get("PYTHONPATH", "")
        assert execution.warm == (self.warm is not None and outside) or execution.ending.name == "NOT_STARTED"
        assert [os.listdir(folder) for folder in self.folders] == [[".lock"]] * len(self.folders)
        return execution

    @property
    def boot(self) -> dict[str, str]:
        """What a process needs to be forked from."""
        paths = filter(None, (str(BOOT), self.environment.get("PYTHONPATH")))
        return {"PYTHONPATH": os.pathsep.join(paths)} if self.warm else {}

    def limits(self, **given: object) -> Limits:
        """The limits of a run; twenty seconds by default."""
        return Limits(**{"seconds": 20.0, **given})  # type: ignore[arg-type]

    @property
    def folders(self) -> list[Path]:
        """The temporary folders behind it."""
        return [folder.path for folder in self.workspace._folders]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree of a user."""
    root = tmp_path / "tree"
    (root / "data").mkdir(parents=True)
    (root / "module.py").write_text("VALUE = 'original'\n")
    (root / "data" / "numbers.txt").write_text("1 2 3\n")
    return root


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The folder where writing stays."""
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tree: Path, shared: Path) -> Iterator[Callable[[str], Place]]:
    """Opens a place of one of KINDS; skips where this machine does not have it."""
    places: list[Place] = []

    def open_place(kind: str) -> Place:
        if kind in ("landlock", "bare copy"):
            monkeypatch.setattr(Workspace, "_try", lambda self, reasons: False)
        if kind == "bare copy":
            monkeypatch.setattr(landlock, "version", lambda: 0)
        try:
            workspace = Workspace(tree, mode="overlay" if kind in ("overlay", "warm") else "copy")
        except Unavailable as error:
            pytest.skip(str(error))
        start = Start((sys.executable, "script.py"), ("decimal",), ("decimal",), str(tree), "SHARED", frozenset())
        places.append(Place(workspace, tree, shared, kind, start if kind == "warm" else None))
        needed = {"shown copy": "at its real path", "landlock": "Landlock"}.get(kind, "")
        if needed not in workspace.sandbox:
            pytest.skip(f"only {workspace.sandbox} here")
        return places[-1]

    yield open_place
    for place in places:
        folders = place.folders
        place.workspace.close()
        assert not any(folder.exists() for folder in folders)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, opened: Callable[[str], Place]) -> Place:
    """A place of every kind, one after the other."""
    return opened(request.param)
