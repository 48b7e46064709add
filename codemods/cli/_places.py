"""Where outputs may go: never over a file that somebody wrote, nor over one of the same run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from codemods.cli._ours import NO_REPORTS, is_ours, kind_of
from codemods.reports import formats
from codemods.source.files import is_there
from codemods.terms.errors import UserError

SOURCES = frozenset({".py", ".pyi", ".pyw", ".ipynb", ".toml", ".cfg", ".ini"})
"""Suffixes of what people write themselves: no report, patch or list replaces such a file."""


def require_place(output: Path | None, *kinds: str) -> None:
    """Raise :class:`UserError` if the file ``output`` cannot be written, or is there and is nothing of ours of one of
    ``kinds`` (see :mod:`codemods.cli._ours`), before anything is done or changed."""
    if output is None:
        return
    if str(output) == "-":
        problem = "leave the option out for standard output"
    elif output.is_dir():
        problem = "is a directory"
    elif _is_named_pipe(output):
        problem = "a named pipe, which waits for somebody to read it; name a file"
    elif output.exists() and _is_source(output):
        problem = "it is there already and looks like source; name another file"
    elif output.is_file() and not _was_ours(output, kinds):
        problem = f"it is there already and is no {_told(kinds)} of codemod; name another file, or remove it"
    elif not is_there(output.parent) or output.parent.is_file():
        problem = "no such file or directory"
    elif not os.access(output if output.exists() else output.parent, os.W_OK):
        problem = "permission denied"
    else:
        return
    raise UserError(f"cannot write {output}: {problem}")


def further_place(given: str) -> tuple[str, Path]:
    """Return the format and the file of an ``--also``.

    Raises :class:`UserError` where it names none, or a file that :func:`require_place` refuses.
    """
    name, mark, file = given.partition("=")
    if name not in formats() or not mark or not file:
        raise UserError(f"--also {given}: must be FORMAT=FILE, with one of {', '.join(formats())}")
    require_place(Path(file), kind_of(name))
    return name, Path(file)


def require_apart(outputs: Mapping[str, Path | None], inputs: Iterable[Path] = ()) -> None:
    """Raise :class:`UserError` for one of ``outputs``, by their options, that is one of ``inputs`` or another one."""
    given = {option: file for option, file in outputs.items() if file is not None and _is_kept(file)}
    read = set(map(_identity, inputs)) if given else set()
    taken: dict[object, str] = {}
    for option, file in given.items():
        which = _identity(file)
        if which in read:
            raise UserError(f"cannot write {file}: it is read by the same run; name another file")
        if which in taken:
            raise UserError(f"{taken[which]} and {option} name the same file, {file}")
        taken[which] = option


def _is_kept(file: Path) -> bool:
    """Whether what is written to ``file`` stays there: a device or a shell's pipe takes all that comes."""
    return file.is_file() or not file.exists()


def _identity(file: Path) -> object:
    """What is the same for all names of one file, links of both kinds among them."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return os.path.realpath(file)
    return found.st_dev, found.st_ino


def _is_named_pipe(output: Path) -> bool:
    # A pipe that a shell put there, /dev/fd/63 or /dev/stdout, is read already.
    target = os.path.realpath(output)
    return not target.startswith("/dev/") and Path(target).is_fifo()


def _told(kinds: Iterable[str]) -> str:
    names = {"text": "report", **{kind: kind for kind in NO_REPORTS}}
    return " or ".join(names.get(kind, f"{kind} report") for kind in kinds)


def _is_source(output: Path) -> bool:
    # A link to a source replaces what it leads to.
    return any(path.suffix.lower() in SOURCES for path in (output, Path(os.path.realpath(output))))


def _was_ours(output: Path, kinds: Iterable[str]) -> bool:
    try:
        return is_ours(output.read_bytes(), tuple(kinds))
    except OSError:
        # Whether it may be written is asked next; what cannot be read is nothing that we wrote.
        return not os.access(output, os.W_OK)
