"""Runs that are made once: a request for the same program under the same conditions gets the earlier run.

A diagnosis and a verification watch different things. Here each run watches both, so one run of a change is enough for
both. Of an original two runs are still made: only if they compute the same is it repeatable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codemods.source.files import SourceFile, source_from_bytes
from verify.diagnosis.diagnose import plain_plan
from verify.isolation import Place, Workspace, machine_memory
from verify.measured.results import Run
from verify.running.rewriting import below
from verify.running.runner import Asked, Runner
from verify.running.settings import Command, Settings


@dataclass(frozen=True)
class _Made:
    """A run of a program, and what was asked of it."""

    name: str
    asked: Asked
    replay: tuple[Any, ...] | None
    run: Run


class SharedRunner(Runner):
    """A :class:`Runner` for one diagnosis after another, and the verifications between them."""

    def __init__(self, root: Path, settings: Settings, place: Callable[..., Place] = Workspace) -> None:
        super().__init__(root, settings, place)
        self._made: dict[Any, list[_Made]] = {}
        self._trouble: str | None = None
        self._turns: dict[Any, threading.Lock] = {}
        #: What is about to be asked of a program as it was, by several who do not know of each other.
        self.ahead = Asked()
        #: Files that take the place of the tree's in every run, by path below the root: the program as it was.
        self.base: Mapping[str, bytes] = {}

    def __enter__(self) -> SharedRunner:
        super().__enter__()
        return self

    def sources(self, exclude: Sequence[str] = ()) -> list[SourceFile]:
        """See :meth:`Runner.sources`; of the files in the base what stands there."""
        places = [(each, below(each.absolute, self.root) or "") for each in super().sources(exclude)]
        return [
            source_from_bytes(self.base[place], each.path, each.absolute) if place in self.base else each
            for each, place in places
        ]

    def trouble(self) -> str:
        """See :meth:`Runner.trouble`."""
        if self._trouble is None:
            self._trouble = super().trouble()
        return self._trouble

    def run(
        self,
        name: str,
        command: Command,
        *,
        files: Mapping[str, bytes] | None = None,
        watch: Iterable[Iterable[tuple[str, int]]] = (),
        replay: Iterable[tuple[Any, ...]] | None = None,
        also: Iterable[tuple[str, int]] = (),
        more: Mapping[str, Any] | None = None,
        anew: bool = False,
    ) -> Run:
        """See :meth:`Runner.run`."""
        files = {**self.base, **(files or {})}
        rest = {key: value for key, value in (more or {}).items() if value}
        parts = [tuple(part) for part in rest.pop("parts", ())]
        plain = plain_plan(self.settings)
        if rest.pop("doctor", plain) != plain or rest or self.settings.shapes:
            # It looks closer, or drives the program in another way: nobody asks for that twice.
            return super().run(name, command, files=files, watch=watch, replay=replay, also=also, more=more, anew=anew)
        asked = Asked(
            frozenset(frozenset(group) for group in watch),
            frozenset(parts),
            frozenset(also),
        )
        seeds = None if replay is None else tuple(tuple(seed) for seed in replay)
        program = self._program(command, files)
        made = self._made.setdefault(program, [])

        def make(asked: Asked) -> Run:
            run = super(SharedRunner, self).run(
                name,
                command,
                files=files,
                watch=[sorted(group) for group in sorted(asked.groups, key=sorted)],
                replay=seeds,
                also=asked.also,
                anew=anew,
                more={"doctor": plain, "params": True, "parts": [list(part) for part in sorted(asked.parts, key=repr)]},
            )
            made.append(_Made(name, asked, seeds, run))
            return run

        # Of several threads that ask for one program the first one runs it.
        with self._turns.setdefault(program, threading.Lock()):
            known = self._known(made, name, asked, seeds)
            ahead = files == self.base and bool(asked.groups) and self.ahead != asked and self.ahead.holds(asked)
            if known is None and ahead:
                together, self.ahead = self.ahead, Asked()
                make(together)
                known = self._known(made, name, asked, seeds)
            return replace(make(asked) if known is None else known, name=name)

    def spare(self) -> bool:
        """Whether the machine has room for two of the programs that were run: they are not on a card, need little of
        its memory, and are not near the end of their time."""
        runs = [each.run for made in self._made.values() for each in made]
        return bool(runs) and all(
            all(record.about.get("device") == "cpu" for record in run.records)
            and 4 * run.peak < machine_memory()
            and 4 * run.wall < self.settings.timeout
            for run in runs
        )

    def _program(self, command: Command, files: Mapping[str, bytes]) -> Any:
        made_up = repr((replace(self.instead, more=None), self.leaving))
        return command.argv, command.cwd, tuple(sorted(files.items())), made_up

    def _known(self, made: Sequence[_Made], name: str, asked: Asked, seeds: tuple[Any, ...] | None) -> Run | None:
        """The earlier run that answers: the first one where nothing is watched, else one that was made for the same
        purpose."""
        for each in made:
            if asked == Asked() and seeds is None:
                if each.asked.seen(each.run) or self._short(each.run):
                    return each.run
                continue
            if each.name != name or each.replay != seeds or not each.asked.holds(asked):
                continue
            if each.asked == asked or each.asked.seen(each.run) or self._short(each.run):
                return each.run
        return None

    def _short(self, run: Run) -> bool:
        """Whether ``run`` ended before any run of its program would be stopped, whatever it waits for."""
        steps, record = self.settings.steps, run.record
        return len(record.steps) < steps and len(record.backwards) < steps
