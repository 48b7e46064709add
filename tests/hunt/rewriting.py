"""The static half at work on programs in memory."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path

from codemods.rewriting.apply import Wanted, apply
from codemods.rewriting.result import ApplyResult
from codemods.source.files import source_from_bytes
from codemods.source.options import Options


@functools.cache
def root() -> Path:
    """An empty folder that stands for the project of every program."""
    folder = Path(tempfile.mkdtemp(prefix="hunt-root-"))
    (folder / "pyproject.toml").touch()
    return folder


def rewritten(files: Mapping[str, str], options: Options, wanted: Wanted | None = None) -> ApplyResult:
    """What ``apply`` makes of ``files``; nothing is written."""
    targets = [source_from_bytes(text.encode(), path, root() / path) for path, text in files.items()]
    return apply(targets, options=options, dry_run=True, jobs=1, wanted=wanted)


def files_after(files: Mapping[str, str], result: ApplyResult) -> dict[str, str]:
    """The files of a program with the rewrites of ``result``."""
    return {**files, **{rewrite.source.path: rewrite.new for rewrite in result.rewrites}}
