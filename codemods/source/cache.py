"""The folder ``.codemod_cache`` at the root of a project: what earlier runs have found, for the next one.

Whoever writes into a tree could put anything there, also a commit that somebody else made. So each entry is signed with
a key that only this user has, outside of all trees, and what is not signed with it is not there: foreign, damaged and
half-written entries alike. Entries are replaced as a whole, so that two processes may write at a time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import os
import pickle
import secrets
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import codemods
from codemods.source.discovery import project_root

FOLDER = ".codemod_cache"
_TAG = "CACHEDIR.TAG"
_MARK = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by codemod; `codemod clean` removes it.\n"
"""As https://bford.info/cachedir/ has it: programs that make backups pass such a folder over."""
_SIGNATURE = 32


class Cache:
    """The entries of one project, by names of letters and digits; everything about it fails in silence."""

    def __init__(self, root: Path) -> None:
        self.folder = root / FOLDER

    def read(self, name: str) -> Any:
        """What was written as ``name`` by this user, this codemod and this Python; None if there is nothing such."""
        key = _key()
        try:
            data = (self.folder / name).read_bytes() if key and _is_folder(self.folder) else b""
        except OSError:
            return None
        signature, packed = data[:_SIGNATURE], data[_SIGNATURE:]
        if not data or not hmac.compare_digest(signature, _signature(key, name, packed)):
            return None
        try:
            return pickle.loads(zlib.decompress(packed))
        except Exception:
            # signed by us, and yet of a class that is another one by now
            return None

    def write(self, name: str, value: object) -> None:
        """Keep ``value``, plain data of our own classes, as ``name``."""
        key = _key()
        if not key or not self._made():
            return
        packed = zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), 1)
        with contextlib.suppress(OSError):
            _replace(self.folder / name, _signature(key, name, packed) + packed)

    def keep_newest(self, prefix: str, count: int) -> None:
        """Remove all but the ``count`` newest entries whose names begin with ``prefix``."""
        with contextlib.suppress(OSError):
            found = [entry for entry in os.scandir(self.folder) if entry.name.startswith(prefix)]
            for entry in sorted(found, key=lambda entry: entry.stat().st_mtime)[:-count]:
                os.unlink(entry.path)

    def _made(self) -> bool:
        """Whether the folder is there, and ours."""
        if _is_folder(self.folder):
            return True
        try:
            self.folder.mkdir()
            (self.folder / ".gitignore").write_text("*\n")
            (self.folder / _TAG).write_text(_MARK)
        except OSError:
            return _is_folder(self.folder)
        return True


def clean(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Remove what is kept for the projects that ``paths`` are in, and return the folders that are gone. Raises
    ``OSError`` for one that cannot be removed."""
    gone = []
    for root in dict.fromkeys(project_root(path) for path in paths):
        folder = root / FOLDER
        if _is_folder(folder) and (folder / _TAG).is_file():
            shutil.rmtree(folder)
            gone.append(folder)
    return gone


def _is_folder(path: Path) -> bool:
    """Whether it is a folder, and no link to one: that could lead anywhere."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _replace(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix="_")
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


# who signs


def _signature(key: bytes, name: str, packed: bytes) -> bytes:
    signed = hashlib.blake2b(key=key, digest_size=_SIGNATURE)
    signed.update(f"{name}\0{_edition()}\0".encode())
    signed.update(packed)
    return signed.digest()


@functools.cache
def _edition() -> str:
    """This codemod and this Python: what another one wrote may mean something else."""
    folder = Path(codemods.__file__).parent
    parts = [codemods.__version__, sys.version]
    for path in sorted(folder.rglob("*.py")):
        with contextlib.suppress(OSError):
            known = path.stat()
            parts.append(f"{path.relative_to(folder).as_posix()} {known.st_size} {known.st_mtime_ns}")
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=20).hexdigest()


@functools.cache
def _key() -> bytes:
    """The key of this user; empty where none can be kept."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = Path(home) / "codemod" / "key"
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # a link is refused where one is there: of two processes that begin at a time, the first one's key counts
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix="_") if not path.exists() else (-1, "")
        if temporary:
            with open(handle, "wb") as file:
                file.write(secrets.token_bytes(32))
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
            os.unlink(temporary)
        key = path.read_bytes()
        return key if len(key) == 32 else b""
    return b""
