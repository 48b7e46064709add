"""What results depend on besides a repository's code and the campaign's settings: our own analysis."""

from __future__ import annotations

import functools
import hashlib
from importlib import metadata
from pathlib import Path

#: What decides which rewrites are made; the rest of the project words, shows and hands on.
_PARTS = ("analysis", "edits", "graph", "proofs", "rewriting", "rules", "source", "terms")


@functools.cache
def digest() -> str:
    """A digest of the analysis and its rules: of another one, a repository may come out otherwise.

    It is of the sources, as a release that only words its reports otherwise makes no finished work stale.
    """
    root = Path(__file__).parents[1]
    made = hashlib.sha256(metadata.version("libcst").encode())
    for part in _PARTS:
        for file in sorted((root / part).rglob("*.py")):
            made.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return made.hexdigest()[:16]
