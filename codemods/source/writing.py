"""Text back to disk: wholly or not at all, and never over somebody else's edit."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from codemods.source.errors import ChangedSinceRead, Unreadable, Unwritable, os_reason
from codemods.source.files import SourceFile, digest_of, read_bytes
from codemods.terms.errors import UserError

_LOCK_PATIENCE = 30.0  # seconds; a write takes milliseconds, so whoever holds the lock longer hangs
_SYNC_ONLY = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def write_atomically(source: SourceFile, text: str) -> None:
    """Replace the file that was read as ``source`` by ``text``; whenever this is stopped, the file is old or new.

    The bytes go to a new file in the same folder, which then replaces the old one and has its mode, its owner and its
    extended attributes as far as we may set them. A link is left as it is, the file that it leads to changes. (Of a
    file with several hard links only this name gets the new text.) Nothing is written where the bytes stay the same.

    Raises `Unencodable` for text that the file's encoding lacks; `ChangedSinceRead` where the bytes on disk are no
    longer those of ``source``; `Unwritable` for a file or folder that is read-only, even to a user whom that would not
    stop, for a file whose encoding does not give back its own bytes, and for whatever the system refuses. No file is
    left behind by any of them.
    """
    if digest_of(source.encode(source.text)) != source.digest:
        raise Unwritable(
            source.path, 0, f"reading it as {source.encoding} and writing it back would change other bytes"
        )
    data = source.encode(text)
    if digest_of(data) == source.digest:
        return
    target = os.path.realpath(source.absolute)
    folder = os.path.dirname(target)
    try:
        with _locked(folder, source.path) as locked:
            old = _writable(source, target, folder)
            _replace(source, target, data, old, locked)
    except FileNotFoundError:
        raise ChangedSinceRead(source.path, 0, "was removed since it was read") from None
    except OSError as error:
        raise Unwritable(source.path, 0, os_reason(error)) from None


def create_atomically(path: Path, data: bytes) -> None:
    """Make the file ``path`` of ``data``; whenever it is stopped, the file is not there or whole.

    Raises `ChangedSinceRead` where something of that name is there by now, `Unwritable` for what the system refuses.
    """
    shown = str(path)
    temporary = os.path.join(path.parent, f".codemod-{digest_of(os.fsencode(path.name))[:16]}-{os.getpid()}.tmp")
    try:
        if not os.stat(path.parent).st_mode & 0o222:
            raise Unwritable(shown, 0, "read-only folder")
        descriptor = os.open(temporary, _NEW_FILE, 0o666)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            if os.path.lexists(path):
                raise ChangedSinceRead(shown, 0, "was created meanwhile; run again")
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise Unwritable(shown, 0, os_reason(error)) from None
    _sync_folder(os.fspath(path.parent))


def replace_file(path: Path, data: bytes) -> None:
    """Make ``data`` the content of the file ``path``, wholly, or leave what was there; for our own outputs.

    Of a link the file that it leads to changes; a device or a pipe takes what it takes. Raises ``OSError``.
    """
    target = Path(os.path.realpath(path))
    if path.exists() and not (path.is_file() and os.access(target.parent, os.W_OK)):
        path.write_bytes(data)
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(data)
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)


def write_output(path: Path, content: str | bytes) -> None:
    """Make ``content`` that of an output that was asked for, as :func:`replace_file` does; raises `UserError`."""
    data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
    try:
        replace_file(path, data)
    except OSError as error:
        raise UserError(f"cannot write {path}: {os_reason(error)}") from None


def _writable(source: SourceFile, target: str, folder: str) -> os.stat_result:
    """What is known of the file to replace; the mode bits count for everybody, as an editor would have them count."""
    old = os.stat(target)
    if not stat.S_ISREG(old.st_mode):
        raise ChangedSinceRead(source.path, 0, "is no longer a regular file")
    for name, mode, path, need in (
        ("file", old.st_mode, target, os.W_OK),
        ("folder", os.stat(folder).st_mode, folder, os.W_OK | os.X_OK),
    ):
        if not mode & 0o222:
            raise Unwritable(source.path, 0, f"read-only {name}")
        if not os.access(path, need):
            raise Unwritable(source.path, 0, f"no permission to write the {name}")
    return old


def _replace(source: SourceFile, target: str, data: bytes, old: os.stat_result, locked: bool) -> None:
    folder = os.path.dirname(target)
    # Under the lock nobody else writes here, so one name for each target suffices, and what a killed run left is found.
    mark = digest_of(os.fsencode(os.path.basename(target)))[:16] + ("" if locked else f"-{os.getpid()}")
    temporary = os.path.join(folder, f".codemod-{mark}.tmp")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    try:
        descriptor = os.open(temporary, _NEW_FILE, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            _copy_attributes(target, temporary, old, descriptor)
            os.fsync(descriptor)
        _require_unchanged(source, target)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _copy_attributes(target: str, temporary: str, old: os.stat_result, descriptor: int) -> None:
    if hasattr(os, "fchown"):
        new = os.fstat(descriptor)
        for owner, group in ((old.st_uid, -1), (-1, old.st_gid)):
            if (owner, group) in ((new.st_uid, -1), (-1, new.st_gid)):
                continue
            with contextlib.suppress(OSError):
                os.fchown(descriptor, owner, group)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(target):
                with contextlib.suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(target, name))
    # Last, because a change of owner takes bits away.
    os.chmod(temporary, stat.S_IMODE(old.st_mode))


def _require_unchanged(source: SourceFile, target: str) -> None:
    if os.path.realpath(source.absolute) != target:
        raise ChangedSinceRead(source.path, 0, "is a link that was changed since it was read")
    try:
        now = read_bytes(target, source.path)
    except Unreadable as error:
        raise ChangedSinceRead(source.path, 0, f"changed since it was read: {error.reason}") from None
    if digest_of(now) != source.digest:
        raise ChangedSinceRead(source.path, 0, "changed since it was read; run again")


@contextlib.contextmanager
def _locked(folder: str, shown: str) -> Iterator[bool]:
    """Keep other runs of ours from writing in ``folder``; yields False where its file system knows no locks.

    The lock is on the folder itself: nothing to create, nothing to clean up, and it goes with the process.
    """
    if sys.platform == "win32":
        yield False
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | _SYNC_ONLY)
    except PermissionError:
        # A folder may be written to that may not be listed.
        yield False
        return
    try:
        yield _lock(descriptor, shown)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, shown: str) -> bool:
    import fcntl

    deadline = time.monotonic() + _LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Unwritable(shown, 0, "another program keeps the folder locked") from None
            time.sleep(0.002)
        except OSError:
            return False
        else:
            return True


def _sync_folder(folder: str) -> None:
    # The new text stands in its place already: a file system that cannot sync a folder is no reason to say otherwise.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | _SYNC_ONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
