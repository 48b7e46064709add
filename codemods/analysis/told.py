"""What single files say, remembered by their content.

An analysis most often follows another one of nearly the same tree: that of the text before an edit, or before a key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from codemods.analysis.project import Project
from codemods.source.files import digest_of
from codemods.source.syntax import plainly_readable

_MEMORY = 200_000

_memory: dict[tuple[Any, ...], Any] = {}

_Answer = TypeVar("_Answer")


def told(ask: Callable[[Project, str], _Answer], project: Project, relative: str) -> _Answer:
    """What ``ask`` says of the file at ``relative``.

    It may look at nothing but the bytes of the file and the names of all files of the tree.
    """
    key = (ask, project.names, relative, project.digest(relative))
    if key not in _memory:
        _keep(key, ask(project, relative))
    return _memory[key]  # type: ignore[no-any-return]


def readable(text: str) -> bool:
    """Whether Python takes a text as it stands: :func:`~codemods.source.syntax.plainly_readable`."""
    key = _of_text(text)
    if key not in _memory:
        _keep(key, plainly_readable(text))
    return _memory[key]  # type: ignore[no-any-return]


def was_read(text: str) -> bool:
    """Whether it is known of a text whether it is readable."""
    return _of_text(text) in _memory


def found_readable(text: str, answer: bool) -> None:
    """Remember what another process found of a text."""
    _keep(_of_text(text), answer)


def forget() -> None:
    """Forget all that is remembered."""
    _memory.clear()


def _of_text(text: str) -> tuple[Any, ...]:
    return (plainly_readable, digest_of(text.encode("utf-8", "surrogatepass")))


def _keep(key: tuple[Any, ...], answer: object) -> None:
    if len(_memory) >= _MEMORY:
        _memory.clear()
    _memory[key] = answer
