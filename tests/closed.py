"""Folders that are closed, to tests that run as root too."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def as_nobody(work: Callable[[], object]) -> object:
    """The result of ``work`` done by a user whom permission bits bind; tests often run as root."""
    if os.geteuid() != 0:
        return work()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.setgid(65534)
        os.setuid(65534)
        try:
            result: object = work()
        except Exception as error:
            result = repr(error)
        os.write(writer, pickle.dumps(result))
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as stream:
        return pickle.loads(stream.read())


@contextmanager
def closed_folder() -> Iterator[Path]:
    """A folder that nobody may look into, in one that everybody may; to be closed by ``chmod(0)``."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        Path(name).chmod(0o755)
        folder = Path(name) / "closed"
        folder.mkdir()
        try:
            yield folder
        finally:
            folder.chmod(0o755)
