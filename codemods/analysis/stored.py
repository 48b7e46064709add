"""What earlier processes have seen of a tree, kept on disk.

Two things are kept. The whole result, for a tree in which nothing changed at all. And what each job has shown, with the
digests of the files that it depends on: after a change only the jobs that depend on it run again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from codemods.analysis import workers
from codemods.analysis.project import Project
from codemods.source.cache import Cache
from codemods.source.files import digest_of
from codemods.source.options import Options

_RESULTS = 8
"""Of how many trees the whole result is kept: other states of this one, other targets and other options."""

_AGE = 8
"""After how many runs that did not ask for it what a job has shown is forgotten."""

_T = TypeVar("_T")


def stored(project: Project, options: Options, run: Callable[[], _T]) -> _T:
    """What ``run`` returns for ``project``, or returned when the project and the options were the same."""
    root = project.root
    if project.overlay or root == root.parent or root == Path.home():
        return run()
    cache = Cache(root)
    name = "result" + digest_of(f"{project.content} {options!r}".encode(errors="replace"))
    known = cache.read(name)
    if isinstance(known, tuple) and len(known) == 1:
        return known[0]  # type: ignore[no-any-return]
    jobs = _Jobs(cache, str(root))
    found = run()
    jobs.write()
    cache.write(name, (found,))
    cache.keep_newest("result", _RESULTS)
    return found


class _Jobs:
    """What the jobs of a tree have shown, each with the number of runs since anybody asked for it."""

    def __init__(self, cache: Cache, root: str) -> None:
        self.cache = cache
        self.root = root
        found = cache.read("jobs")
        self.known: dict[workers.Key, tuple[int, workers.Remembered]] = found if isinstance(found, dict) else {}
        workers.remember({key: one for key, (_, one) in self.known.items() if key[0] == root})
        workers.asked.clear()

    def write(self) -> None:
        """Keep them together with what this process has seen."""
        kept = {}
        for key, one in workers.remembered(self.root).items():
            age = 0 if key in workers.asked or key not in self.known else self.known[key][0] + 1
            if age <= _AGE:
                kept[key] = (age, one)
        self.cache.write("jobs", kept)
