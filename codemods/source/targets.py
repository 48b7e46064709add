"""The files to work on, found and read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, display_path, read_source, source_from_bytes
from codemods.terms.findings import Skipped


class Targets(NamedTuple):
    """The files to work on: those that could be read, and those that could not."""

    sources: list[SourceFile]
    skipped: list[Skipped]


def read_targets(
    paths: Sequence[str], *, exclude: Sequence[str] = (), exclude_root: str | os.PathLike[str] | None = None
) -> Targets:
    """Find and read the files that ``paths`` stand for; see :func:`codemods.source.discovery.discover`.

    Raises :class:`~codemods.source.errors.MissingPath` for a path that does not exist; what exists and cannot be
    read is in the result.
    """
    from codemods.source.discovery import discover

    found = discover(paths, exclude=exclude, exclude_root=exclude_root)
    sources, skipped = [], list(found.problems)
    for path in found.files:
        try:
            sources.append(read_source(path))
        except SourceError as error:
            skipped.append(error.skipped)
    return Targets(sources, skipped)


def text_target(data: bytes, filename: str) -> Targets:
    """Return ``data``, the bytes of standard input, as the one file to work on, under the name ``filename``."""
    try:
        return Targets([source_from_bytes(data, display_path(filename), filename)], [])
    except SourceError as error:
        return Targets([], [error.skipped])
