"""What users can choose about the runs, and the commands that are run."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from verify.errors import VerifyError
from verify.isolation.workspace import Mode

STEPS = 20
#: By shapes alone: the second step is the first that can walk a graph again.
STEPS_BY_SHAPES = 2
TIMEOUT = 120.0
#: The interpreter of an image where nobody names one.
PYTHON_OF_IMAGES = "python3"
DISK = 2 << 30
#: Relative to the largest magnitude beside it: float32 rounds at 6e-8, and a few steps of training amplify that.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Settings:
    """How the runs are made.

    ``steps`` are optimizer steps; ``batches`` is where every DataLoader stops (None: a quarter of the steps, so that
    validation is reached), 0 for no cap. ``timeout`` is in seconds for each run, ``memory`` and ``memory_limit`` (of
    the CUDA device) and ``disk`` in bytes. ``python`` is the interpreter that has torch; with an ``image`` they are run
    in its containers, and it is one of the image. ``device`` is auto, cpu or cuda. ``isolation`` is auto, overlay or
    copy. ``stand_ins`` are what :func:`verify.running.standins.parse` returns.
    ``environment`` are variables that runs get beside those that all runs get; ``expose`` are paths in the home folder
    (absolute) that they can read.
    ``reach`` is how many seconds may be spent on looking for runs that come to what the commands do not reach (None:
    four times ``timeout``); ``within`` after how many no more runs begin (None: no such time). ``shapes``: tensors have
    shapes and no memory, see :mod:`verify.judging.shapes`. ``ahead``: what ``python`` has installed may be imported
    ahead of the runs, outside of any isolation; not where somebody unknown has named it.
    """

    steps: int = STEPS
    batches: int | None = None
    timeout: float = TIMEOUT
    seed: int = 0
    threads: int = 1
    device: str = "auto"
    python: str = sys.executable
    image: str = ""
    memory: int | None = None
    memory_limit: int | None = None
    disk: int = DISK
    network: bool = False
    data: bool = True
    stand_ins: tuple[dict[str, Any], ...] = ()
    tolerance: float = TOLERANCE
    isolation: Mode = "auto"
    environment: dict[str, str] = field(default_factory=dict)
    expose: tuple[str, ...] = ()
    reach: float | None = None
    within: float | None = None
    shapes: bool = False
    ahead: bool = True

    def told(self) -> dict[str, Any]:
        """The settings for reports, by name; of environment variables only the names: their values may be secrets."""
        return {**asdict(self), "environment": sorted(self.environment)}

    @property
    def reach_seconds(self) -> float:
        """How long to look for runs that reach what the commands did not."""
        return 4 * self.timeout if self.reach is None else self.reach

    @property
    def cap(self) -> int | None:
        """The number of batches that a DataLoader yields, None for all."""
        if self.batches is not None:
            return self.batches or None
        return max(2, self.steps // 4)


def interpreter(name: str, folder: Path) -> str:
    """Return the interpreter that ``name`` means in ``folder``: a path becomes absolute, a bare name stays.

    Raises :class:`VerifyError` where there is no executable file of this name.
    """
    path = os.path.expanduser(name)
    if os.path.dirname(path):
        # The link of a virtual environment is what makes its packages be found: it is not followed.
        path = os.path.abspath(folder / path)
    if shutil.which(path) is not None:
        return path
    if not os.path.dirname(path):
        raise VerifyError(f"{name}: no such command; name the interpreter that has torch")
    if os.path.isdir(path):
        raise VerifyError(f"{name}: is a folder; name the interpreter that has torch")
    raise VerifyError(f"{name}: {'cannot be executed' if os.path.exists(path) else 'no such file'}")


def variables(texts: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ``NAME=VALUE`` and ``NAME`` (with its value in ``given``).

    Raises :class:`VerifyError` for an invalid name, or one that ``given`` lacks.
    """
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not name or "\0" in text:
            raise VerifyError(f"--env {text!r}: write NAME or NAME=VALUE")
        if not sign and name not in given:
            raise VerifyError(f"--env {name}: no such variable here; give its value with --env {name}=VALUE")
        found[name] = value if sign else given[name]
    return found


def exposed(paths: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return ``paths``, relative to ``folder``, as absolute ones. Raises :class:`VerifyError` for one that does not
    exist."""
    found = [os.path.normpath(folder / os.path.expanduser(path)) for path in paths]
    for path in found:
        if not os.path.exists(path):
            raise VerifyError(f"--expose {path}: no such file or folder")
    return tuple(found)


@dataclass(frozen=True)
class Command:
    """A command on a tree: what is started (``argv``), where (``cwd``), as the user would write it (``text``)."""

    argv: tuple[str, ...]
    cwd: Path
    text: str
    script: Path | None = None

    @property
    def notebook(self) -> bool:
        """Whether what it runs is a notebook."""
        return self.script is not None and is_notebook(self.script.name)


def script_command(script: str, arguments: Sequence[str], python: str, *, module: bool = False) -> Command:
    """Return the command that runs ``script`` (with ``module``: the module of that name) with ``arguments``.

    It is started in the working directory, as the user would. Raises :class:`VerifyError` for a missing script.
    """
    cwd = Path.cwd()
    if module:
        words = ["-m", script, *arguments]
        return Command((python, *words), cwd, shlex.join(words), _script_in(words, cwd))
    path = Path(script)
    if not path.exists():
        raise VerifyError(f"{script}: no such file")
    if path.is_fifo():
        raise VerifyError(f"{script}: a named pipe; it is run several times, which only a file can be")
    if is_notebook(script):
        # Jupyter starts a notebook in its own folder.
        text = shlex.join([script, *arguments])
        return Command((python, path.name, *arguments), path.absolute().parent, text, path.absolute())
    if path.is_dir() and not (path / "__main__.py").is_file():
        raise VerifyError(f"{script}: is a folder; name the script to run")
    return Command((python, script, *arguments), cwd, shlex.join([script, *arguments]), path.absolute())


def entry_command(text: str, python: str, cwd: Path, *, option: str = "--entry") -> Command:
    """Return the command that ``text`` describes, as a user would type it in ``cwd``.

    ``train.py --epochs 1``, ``-m package.train``, ``python train.py`` and launchers such as ``torchrun train.py``: a
    script, ``-m`` and any ``python`` are run by ``python``, everything else as it stands. Raises :class:`VerifyError`
    where there is nothing to run; it names ``option``, where ``text`` was given.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise VerifyError(f"{option} {text!r}: {error}") from None
    if not words:
        raise VerifyError(f"{option}: an empty command")
    interpreted = _is_python(words[0], python)
    if interpreted:
        words = words[1:]
        if not words:
            raise VerifyError(f"{option} {text!r}: no script to run")
    if is_notebook(words[0]) and (cwd / words[0]).is_file():
        path = cwd / words[0]
        return Command((python, path.name, *words[1:]), path.parent, text, path)
    if not interpreted and not (words[0].endswith((".py", ".ipynb")) or words[0] == "-m"):
        return Command((_launcher(words[0], python), *words[1:]), cwd, text, _script_in(words, cwd))
    script = _script_in(words, cwd)
    if script is None and words[0].endswith((".py", ".ipynb")):
        raise VerifyError(f"{option} {text!r}: {words[0]}: no such file")
    return Command((python, *words), cwd, text, script)


def starts_a_program(word: str, python: str) -> bool:
    """Whether ``word`` is a launcher rather than a script: python, torchrun, pytest, as a user would type it."""
    if word == python:
        return True
    if os.path.dirname(word) or os.path.exists(word) or word.endswith((".py", ".ipynb")):
        return False
    return _is_python(word, python) or shutil.which(_launcher(word, python)) is not None


def _is_python(word: str, python: str) -> bool:
    """Whether ``word`` asks for an interpreter: it is run by ``python``."""
    return word == python or os.path.basename(word) in ("python", "python3")


def _launcher(word: str, python: str) -> str:
    """The launcher that belongs to ``python``, if it has one of that name."""
    beside = Path(python).parent / word
    return str(beside) if beside.is_file() else word


def is_notebook(name: str) -> bool:
    """Whether a file of this name is a notebook."""
    return name.lower().endswith(".ipynb")


def _script_in(words: Sequence[str], cwd: Path) -> Path | None:
    """The file of the module that ``words`` start, or the first of them that names an existing script."""
    if words[0] == "-m" and len(words) > 1:
        place = cwd.joinpath(*words[1].split("."))
        source = next((path for path in (place.with_suffix(".py"), place / "__main__.py") if path.is_file()), None)
        if source is not None:
            return source
    # pytest names a test behind its file.
    files = (word.partition("::")[0] for word in words)
    return next((cwd / file for file in files if file.endswith(".py") and (cwd / file).is_file()), None)
