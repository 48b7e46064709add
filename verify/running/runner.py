"""Runs a command on a version of the tree, with the probe inside, and reads what the probe recorded."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import verify.probe
from codemods.source.files import SourceFile
from codemods.source.secrets import Secrets
from codemods.source.targets import read_targets
from verify.errors import OutOfTime, VerifyError
from verify.isolation import Ending, Execution, Limits, Place, Start, Unavailable, View, Workspace, engines, view
from verify.isolation.container import Container
from verify.isolation.environment import passed
from verify.measured.reading import read_records
from verify.measured.records import Record
from verify.measured.results import STOPPED, Outcome, Run
from verify.running import interpreter
from verify.running.ahead import start_of
from verify.running.missing import Instead
from verify.running.notebooks import RUNNER, RunnableNotebook
from verify.running.rewriting import below
from verify.running.settings import Command, Settings, is_notebook

BOOT = Path(verify.probe.__file__).parent / "boot"
#: The probe ends the run a little before the limit, so that there is a census; seconds at most.
GRACE = 10.0
#: The variable that leads the probe to its configuration.
_CONFIGURATION = "CODEMOD_PROBE"
_PAUSES = (1.0, 4.0)
"""Seconds to wait before a program runs again whose port was taken."""

OLDEST_PYTHON = (3, 8)
OLDEST_TORCH = (2, 0)


@dataclass(frozen=True)
class Asked:
    """What a run is to report: ``groups`` of lines and ``parts`` of lines, which it waits for, and lines ``also``."""

    groups: frozenset[frozenset[tuple[str, int]]] = frozenset()
    parts: frozenset[tuple[Any, ...]] = frozenset()
    also: frozenset[tuple[str, int]] = frozenset()

    def __or__(self, other: Asked) -> Asked:
        return Asked(self.groups | other.groups, self.parts | other.parts, self.also | other.also)

    def holds(self, other: Asked) -> bool:
        """Whether a run that is asked for this also answers ``other``."""
        lines = self.also.union(*self.groups)
        return other.groups <= self.groups and other.parts <= self.parts and other.also <= lines

    def seen(self, run: Run) -> bool:
        """Whether all that ``run`` waited for came, so that it did not go on for its sake."""
        parts = {place for record in run.records for place in record.parts_after}
        lines = run.reached
        return all(group & lines for group in self.groups if group) and self.parts <= parts


class Leaving(Protocol):
    """What programs do without: calls in whose place made-up values stand."""

    def over(self, files: Mapping[str, bytes]) -> Mapping[str, bytes] | str:
        """``files``, those that differ from the tree's by path below the root, and all others that do without; or why
        there is no such program."""
        ...

    def configuration(self) -> dict[str, Any]:
        """What the probe has to know of it."""
        ...


class Runner:
    """Runs commands on the tree at ``root``; a context manager that owns the place where they run.

    Entering it raises :class:`VerifyError` where the isolation that was asked for cannot be had.
    """

    def __init__(self, root: Path, settings: Settings, place: Callable[..., Place] = Workspace) -> None:
        self.root = root
        self.settings = settings
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._make_place = place
        self._workspace: Place | None = None
        self._numbers = itertools.count(1)
        #: When the first run began, or as if it had where something else took its time.
        self._began: float | None = None
        #: Not any more once a program was killed and what the probe held back was lost.
        self._hold = True
        self.instead = Instead()
        #: Whether what is in files that are not there may be found by trial; the lines by which a run that does so
        #: tells how far it comes (None: it does not).
        self.tries_files = False
        self.trying: Sequence[tuple[str, int]] | None = None
        #: What every run leaves out; None for nothing.
        self.leaving: Leaving | None = None
        #: Functions, by path below the root and full name, of which the returned values are recorded, and variables.
        self.returning: Sequence[tuple[str, str, list[str]]] = ()
        #: Whether runs may begin with what others have imported; the programs that began, with what they imported.
        self.warm = settings.ahead
        self._begun: dict[Any, tuple[str, ...]] = {}
        self._places: tuple[str, ...] | None = None
        self._sources: dict[tuple[str, ...], list[SourceFile]] = {}
        self.secrets = Secrets((os.environ, settings.environment))

    def __enter__(self) -> Runner:
        try:
            self._workspace = self._made_place()
        except (Unavailable, OSError) as error:
            raise VerifyError(f"cannot isolate a run: {error}") from None
        self._folder = tempfile.TemporaryDirectory(prefix="codemod-verify-", ignore_cleanup_errors=True)
        return self

    def _made_place(self) -> Place:
        settings = self.settings
        if not settings.image:
            return self._make_place(self.root, mode=settings.isolation)
        cuda = settings.device == "cuda"
        return Container(self.root, image=settings.image, python=settings.python, devices=cuda, mode=settings.isolation)

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
        if self._workspace is not None:
            self._workspace.close()
            self._workspace = None

    def take_up(self, other: Runner) -> None:
        """Stand in for what programs lack as ``other`` does."""
        self.instead, self.leaving = other.instead, other.leaving

    def cancel(self) -> None:
        """End the runs that other threads make, and make no more."""
        if self._workspace is not None:
            self._workspace.cancel()

    def trouble(self) -> str:
        """Say in one sentence why the chosen interpreter cannot run anything with torch; empty if it can.

        Raises :class:`VerifyError` for one that is not there or cannot be executed.
        """
        python = self._interpreter
        try:
            answer = self._ask(interpreter.VERSIONS, 60)
            version, torch = answer.stdout.strip().split(";")
        except OSError as error:
            raise VerifyError(f"{python}: {(error.strerror or str(error)).lower()}") from None
        except engines.NoContainers as error:
            raise VerifyError(str(error)) from None
        except subprocess.TimeoutExpired as error:
            return f"{python} cannot be run as a Python interpreter: {error}"
        except ValueError:
            return f"{python} cannot be run as a Python interpreter: {answer.stderr.strip()[-200:] or 'no answer'}"
        if not torch:
            other = "an image" if self.settings.image else "an interpreter"
            option = "--image" if self.settings.image else "--python"
            return f"{python} has no torch: choose {other} that has it with {option}"
        for name, found, oldest in (("Python", version, OLDEST_PYTHON), ("torch", torch, OLDEST_TORCH)):
            if _numbers(found) < oldest:
                return f"{python} has {name} {found}; {name} {'.'.join(map(str, oldest))} or newer is needed"
        return self._no_device() if self.settings.device == "cuda" else ""

    @property
    def _interpreter(self) -> str:
        """What people call it."""
        settings = self.settings
        return f"{settings.python} of the image {settings.image}" if settings.image else settings.python

    def sources(self, exclude: Sequence[str] = ()) -> list[SourceFile]:
        """The files of the tree that can be read, as they were when somebody asked first."""
        known = tuple(exclude)
        if known not in self._sources:
            self._sources[known] = read_targets([str(self.root)], exclude=exclude).sources
        return self._sources[known]

    def _ask(self, question: str, seconds: float) -> subprocess.CompletedProcess[str]:
        return interpreter.answer(self._python, self.settings.image, question, seconds)

    @property
    def _python(self) -> str:
        python = self.settings.python
        bare = self.settings.image or not os.path.dirname(python)
        return python if bare else os.path.join(os.path.abspath(self.root), python)

    def _needed(self) -> tuple[str, ...]:
        """The folders of the interpreter and its packages; nothing where it does not answer."""
        if self._places is None:
            asked = not self.settings.image
            self._places = tuple(interpreter.names_told(self._python, "", view.QUESTION)) if asked else ()
        return self._places

    def lacks(self, names: Collection[str]) -> list[str]:
        """Which of these top-level modules the interpreter lacks, the tree left aside; none where it does not
        answer."""
        return interpreter.lacking_modules(self._python, names, self.settings.image)

    def _no_device(self) -> str:
        try:
            answer = self._ask("import torch; print(torch.cuda.is_available())", 120)
        except subprocess.TimeoutExpired:
            return "torch does not answer whether there is a CUDA device"
        if answer.stdout.strip() != "True":
            return "torch sees no CUDA device here; without --device cuda, the CPU answers for one"
        return ""

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
        """Run ``command`` with ``files`` (by path below the root) in place of the originals.

        ``watch`` are groups of lines (path below the root, number): the run records whether a line of each group ran.
        ``replay`` are the seeds that an earlier run drew, ``also`` lines that are reported but not waited for, and
        ``more`` is added to the probe's configuration. ``anew``: it begins from nothing. Raises
        :class:`OutOfTime` where it is too late for another run.
        """
        self._require_time()
        if self.leaving is not None:
            laid = self.leaving.over(files or {})
            if isinstance(laid, str):
                return Run(name, tuple(command.argv), Outcome.NOT_STARTED, None, 0.0, 0, (Record(),), "", notes=(laid,))
            files, more = laid, {**(more or {}), **self.leaving.configuration()}
        if self.trying is not None:
            also, more = [*also, *self.trying], {"try_files": True, **(more or {})}
        assert self._folder is not None, "a runner is used as a context manager"
        workspace = self._workspace
        assert workspace is not None
        shared = Path(self._folder.name) / str(next(self._numbers))
        records = shared / "records"
        records.mkdir(parents=True)
        settings = self.settings
        configuration = {
            "records": str(records),
            "root": str(workspace.root),
            "steps": settings.steps,
            "seed": settings.seed,
            "threads": settings.threads,
            "deterministic": True,
            "device": settings.device,
            "memory_limit": settings.memory_limit,
            "replay": None if replay is None else [list(seed) for seed in replay],
            "watch": [[list(line) for line in sorted(lines)] for lines in watch],
            "batches": settings.cap,
            "libraries": self.warm,
            "watchdog": settings.timeout - min(GRACE, 0.15 * settings.timeout),
            **self.instead.configuration(workspace.root, settings.stand_ins),
            "data": settings.data,
            "params": not settings.shapes,
            "hold": self._hold,
            "shapes": settings.shapes,
            "also": [list(line) for line in sorted(also)],
            "returning": [list(each) for each in self.returning],
            **(more or {}),
        }
        config = shared / "config.json"
        words = [self._seen(word) for word in command.argv[1:]]
        notebook = self._notebook(command, files or {})
        if notebook is not None:
            program = shared / "notebook.json"
            program.write_text(notebook.program(), encoding="utf-8")
            words = [str(RUNNER), str(program), *words]
        for pause in (*_PAUSES, None):
            config.write_text(json.dumps(configuration), encoding="utf-8")
            execution = workspace.execute(
                [command.argv[0], *words],
                cwd=command.cwd,
                changed=dict(files or {}),
                environment=self._environment(config),
                shared=shared,
                limits=Limits(
                    seconds=settings.timeout, memory=settings.memory, disk=settings.disk, network=settings.network
                ),
                view=View(self._needed(), settings.expose),
                warm=None if anew else self._start(command),
            )
            run = _run(name, command, execution, tuple(read_records(records, self.secrets)), self.secrets)
            seen = self._begun.get(_kind(command), ()), run.record.libraries
            self._begun[_kind(command)] = max(seen, key=len)
            lost = any(record.held and record.end is None for record in run.records)
            if pause is None or not (lost or _port_is_taken(run)):
                break
            self._hold = configuration["hold"] = self._hold and not lost
            shutil.rmtree(records)
            records.mkdir()
            time.sleep(pause)
        if notebook is None:
            return run
        for record in run.records:
            notebook.place(record)
        return replace(run, output=notebook.text(run.output), notes=(*run.notes, *notebook.notes()))

    def _start(self, command: Command) -> Start | None:
        if not self.warm or self.settings.image:
            return None
        kind = _kind(command)
        if kind not in self._begun:
            # Many programs are run once.
            return None
        settings = self.settings
        libraries = self._begun[kind]
        return start_of(command, self._python, self.root, self.sources(), settings.device, _CONFIGURATION, libraries)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """What is done in here takes nothing of the time within which runs begin."""
        began = time.monotonic()
        try:
            yield
        finally:
            if self._began is not None:
                self._began += time.monotonic() - began

    def _require_time(self) -> None:
        now, within = time.monotonic(), self.settings.within
        if self._began is None:
            self._began = now
        if within is not None and now - self._began > within:
            raise OutOfTime(within)

    def _notebook(self, command: Command, files: Mapping[str, bytes]) -> RunnableNotebook | None:
        script = command.script
        if script is None or not is_notebook(script.name):
            return None
        place = below(script, self.root) or script.name
        data = files.get(place)
        try:
            return RunnableNotebook(script.read_bytes() if data is None else data, place)
        except OSError as error:
            raise VerifyError(f"{script}: {(error.strerror or str(error)).lower()}") from None

    def _seen(self, word: str) -> str:
        """A word of the command as the program gets it: in a copy, paths of the tree are elsewhere."""
        assert self._workspace is not None
        if os.path.isabs(word) and Path(word).resolve().is_relative_to(self._workspace.original):
            return str(self._workspace.seen(word))
        return word

    def _environment(self, config: Path) -> dict[str, str]:
        environment = passed(os.environ, self.settings.environment, elsewhere=bool(self.settings.image))
        paths = [str(BOOT), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        environment[_CONFIGURATION] = str(config)
        environment["PYTHONHASHSEED"] = str(self.settings.seed)
        environment["PYTHONUNBUFFERED"] = "1"
        # Plots have no screen here, and a script that waits for a window to be closed would hang.
        environment.setdefault("MPLBACKEND", "Agg")
        # Without it matrix products on CUDA differ from run to run; see torch.use_deterministic_algorithms.
        environment.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        environment["WANDB_MODE"] = environment.get("WANDB_MODE", "offline")
        if self.settings.device == "cpu":
            environment["CUDA_VISIBLE_DEVICES"] = ""
        return environment


def _kind(command: Command) -> Any:
    return command.argv[: 3 if command.argv[1:2] == ("-m",) else 2], command.cwd


def _port_is_taken(run: Run) -> bool:
    """Whether a program ended because its port is in use: where runs share the machine's network, perhaps by a
    parallel run."""
    said = run.error.message if run.error is not None else ""
    return "EADDRINUSE" in said or os.strerror(errno.EADDRINUSE) in said


def _numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version; large ones where it has none, as in some builds of torch."""
    parts = version.split(".")[:2]
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else (999,)


def _run(name: str, command: Command, execution: Execution, records: tuple[Record, ...], secrets: Secrets) -> Run:
    """The result of a run; everything that it printed enters here, and what looks secret is removed."""
    return Run(
        name=name,
        command=tuple(map(secrets.mask, command.argv)),
        outcome=_outcome(execution, records),
        status=execution.status,
        wall=execution.seconds,
        peak=execution.peak,
        records=records,
        output=secrets.mask(execution.output),
        sandbox=execution.sandbox,
        notes=tuple(map(secrets.mask, execution.notes)),
        warm=execution.warm,
    )


def _outcome(execution: Execution, records: tuple[Record, ...]) -> Outcome:
    ends = {record.end for record in records}
    if execution.ending is Ending.EXITED:
        if any(record.error for record in records) or (execution.status != 0 and not ends & STOPPED):
            return Outcome.RAISED
        return Outcome.TIMEOUT if "watchdog" in ends else Outcome.OK
    return Outcome[execution.ending.name]
