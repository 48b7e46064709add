"""A forge with repositories and a campaign over them, run once for all tests of a module and put back before each."""

from __future__ import annotations

import contextlib
import copy
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codemods.batch.campaign.settings import Campaign, read
from codemods.batch.ledger.ledger import Ledger, Row
from codemods.batch.requests.bulk import Manner, close, merge
from codemods.batch.requests.following import follow
from codemods.batch.requests.publishing import publish
from codemods.batch.requests.updating import outdated, update
from tests.batch.forge import Forge, served
from tests.batch.inline import run_inline, verified
from tests.batch.tools import TRAIN, commit, git

PUBLISH = """
[publish]
client = "{client}"
throttle = 0
reviewers = ["ada"]
labels = ["codemod"]
"""


class World:
    """A forge with repositories ``o/one`` and ``o/two`` that have findings, and a campaign over them."""

    def __init__(self, folder: Path, client: str = "gh") -> None:
        self.folder = folder
        self.client = client
        self.forge = Forge(folder / "forge")
        self.work = {
            name: self.forge.origin(f"o/{name}", {"train.py": TRAIN + f"print('{name}')\n"}, "127.0.0.1")
            for name in ("one", "two")
        }
        self.said: list[str] = []

    def enter(self, patch: pytest.MonkeyPatch) -> None:
        """Have the stand-ins of its forge found."""
        for name, value in self.forge.environment().items():
            patch.setenv(name, value)

    def begin(self, address: str, more: str = "") -> None:
        """Write the campaign's file and run it."""
        urls = json.dumps([f"http://{address}/o/{name}" for name in ("one", "two")])
        self.file = self.folder / "campaign.toml"
        self.file.write_text(
            f'[campaign]\nwork = "work"\nartifacts = ["patch"]\n[repositories]\nurls = {urls}\n[verify]\nsteps = 6\n'
            f'[commit]\nauthor = "A Person <person@example.org>"\n{PUBLISH.format(client=self.client)}{more}'
        )
        self.campaign: Campaign = read(self.file)
        run_inline(self.campaign, verified("kept"))

    def publish(self, **choices: Any) -> int:
        self.said.clear()
        return publish(self.campaign, self.said.append, sleep=lambda _: None, **choices)

    def follow(self) -> str:
        said: list[str] = []
        follow(self.campaign, said.append)
        return said[-1]

    def update(self, verdict: str = "kept", **choices: Any) -> tuple[int, dict[str, str]]:
        """Look for what is out of date and redo it; return how much failed, and the reasons."""
        self.said.clear()
        found = outdated(self.campaign, self.said.append, **choices)
        if not found.reasons:
            return found.failures, {}

        def run(again: Any, slugs: list[str]) -> None:
            run_inline(self.campaign, verified(verdict), only=slugs, again=again)

        def push(slugs: list[str]) -> int:
            return publish(self.campaign, self.said.append, only=slugs, sleep=lambda _: None)

        return update(self.campaign, found, run, push, self.said.append) + found.failures, found.reasons

    def close(self, **choices: Any) -> int:
        self.said.clear()
        return close(self.campaign, self.said.append, Manner(lambda _: True, sleep=lambda _: None), **choices)

    def merge(self, confirmed: bool = True, **choices: Any) -> int:
        self.said.clear()
        return merge(self.campaign, self.said.append, Manner(lambda _: confirmed, sleep=lambda _: None), **choices)

    def row(self, name: str) -> Row:
        ledger = Ledger.read(self.campaign.work)
        assert ledger is not None
        with ledger:
            return next(row for row in ledger.repositories() if row["slug"] == f"o+{name}")

    def request(self, name: str) -> dict[str, Any]:
        return self.forge.request(f"127.0.0.1/o/{name}")

    def change(self, name: str, **values: Any) -> None:
        self.forge.change(f"127.0.0.1/o/{name}", **values)

    def at_remote(self, name: str, ref: str = "codemod") -> str:
        return git(self.forge.root / "o" / f"{name}.git", "for-each-ref", "--format=%(objectname)", f"refs/heads/{ref}")

    def moves(self, name: str, text: str) -> str:
        """Somebody commits to the repository's main branch."""
        made = commit(self.work[name], {"train.py": text})
        git(self.work[name], "push", "-q", "origin", "main")
        return made

    def review(self, name: str) -> str:
        """A reviewer adds a commit to the branch of our request."""
        work = self.work[name]
        git(work, "fetch", "-q", "origin", "codemod")
        git(work, "checkout", "-q", "-B", "review", "FETCH_HEAD")
        made = commit(work, {"notes.md": "looked at\n"})
        git(work, "push", "-q", "origin", "review:codemod")
        git(work, "checkout", "-q", "main")
        return made

    def events(self, stage: str) -> list[tuple[str, str]]:
        with Ledger.open(self.campaign.work) as ledger:
            rows = ledger.query("SELECT after, reason FROM events WHERE stage=? ORDER BY id", stage)
        return [(row["after"], row["reason"]) for row in rows]


class Kept:
    """A folder as it is now. Paths stand in clones and ledgers, so that it is put back where it was."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copy = folder.with_name(f"{folder.name}-kept")
        shutil.copytree(folder, self._copy, symlinks=True)

    def back(self) -> None:
        """Have the folder as it was."""
        shutil.rmtree(self._folder)
        shutil.copytree(self._copy, self._folder, symlinks=True)


Rewound = Callable[[pytest.MonkeyPatch], World]


@contextlib.contextmanager
def rewound(
    folder: Path,
    client: str,
    more: str = "",
    *,
    before: Callable[[World], None] = lambda _: None,
    ready: Callable[[World], None] = lambda _: None,
) -> Iterator[Rewound]:
    """What gives each test a world as it is after ``before``, a run of its campaign, and ``ready``."""
    world = World(folder, client)
    before(world)
    with served(world.forge.root) as address:
        with pytest.MonkeyPatch.context() as patch:
            world.enter(patch)
            world.begin(address, more)
            ready(world)
        kept = Kept(folder)

        def again(patch: pytest.MonkeyPatch) -> World:
            kept.back()
            fresh = copy.copy(world)
            fresh.said = []
            fresh.enter(patch)
            return fresh

        yield again
