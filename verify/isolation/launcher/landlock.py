"""Landlock: a process gives up reading and writing some folders, where it may not have namespaces (Linux 5.13, and
2021's containers on). Numbers are those of ``linux/landlock.h``.

It does not cover what ``chmod``, ``chown`` and ``utime`` change, nor connecting to a socket that has a path.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import kernel
from .mounts import inside, opened
from .places import devices

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_FOLDER = 1 << 3
_REMOVE_FILE, _MAKE_FILE = 1 << 5, 1 << 8
# Removing (4, 5) and making (6 to 12) entries of folders.
_ENTRIES = sum(1 << bit for bit in range(4, 13))
_REFER = 1 << 13  # since version 2; without it nothing may be moved between folders, not even inside
_TRUNCATE = 1 << 14  # since version 3
_SCOPE_ABSTRACT, _SCOPE_SIGNAL = 1 << 0, 1 << 1  # since version 6


def version() -> int:
    """The version of Landlock that this kernel offers, 0 where it has none."""
    with contextlib.suppress(OSError, AttributeError):
        return _call(_CREATE_RULESET, None, 0, _VERSION)
    return 0


@dataclass(frozen=True)
class Rules:
    """The only folders below which a program may write, and those below which it may read nothing but ``readable``."""

    writable: Sequence[str]
    hidden: Sequence[str]
    readable: Sequence[str]


def restrict(rules: Rules | None) -> None:
    """From here on this process and its children keep to ``rules``, and to themselves. Raises OSError.

    They reach no abstract socket of others and send no signal out, and cannot look into processes outside (memory, open
    files, environments). Without ``rules`` that is all, where the kernel can do it. The caller must have given up
    gaining privileges. Terminals and what else :func:`devices` has stay writable. Of shared memory they get what the C
    library needs for it: files directly in its folder. Which are there they cannot list, so that they find none of
    others but by a name that they know; a folder of their own would take a mount.
    """
    known = version()
    scopes = _SCOPE_ABSTRACT | _SCOPE_SIGNAL if known >= 6 else 0
    if rules is None and not scopes:
        return
    writing = _WRITE_FILE | _ENTRIES | (_REFER if known >= 2 else 0) | (_TRUNCATE if known >= 3 else 0)
    reading = _READ_FILE | _READ_FOLDER
    fields = (
        [0 if rules is None else writing | reading] + ([0] if known >= 4 else []) + ([scopes] if known >= 6 else [])
    )
    packed = struct.pack(f"={len(fields)}Q", *fields)
    handle = _call(_CREATE_RULESET, packed, len(packed), 0)
    try:
        if rules is not None:
            memory = os.path.realpath("/dev/shm")
            for folder in rules.writable:
                _allow(handle, folder, writing | reading)
            _allow(handle, memory, _READ_FILE | _WRITE_FILE | _REMOVE_FILE | _MAKE_FILE | (writing & _TRUNCATE))
            # Not /proc: to root it holds the kernel's settings too.
            for path in devices():
                _allow(handle, path, _WRITE_FILE | (writing & _TRUNCATE))
            for path in [*_beside([*rules.hidden, memory]), *rules.readable]:
                if os.path.realpath(path) != memory:
                    _allow(handle, path, reading)
        _call(_RESTRICT_SELF, handle, 0)
    finally:
        os.close(handle)


def _beside(hidden: Sequence[str], folder: str = "/") -> Iterator[str]:
    """The paths that together hold all but ``hidden``; of a folder with such a one in it the entries alone."""
    if folder in hidden:
        return
    if not any(inside(one, folder) for one in hidden):
        yield folder
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_symlink():
                yield from _beside(hidden, entry.path)


def _allow(rules: int, path: str, rights: int) -> None:
    if inside(path, "/dev") and inside(os.path.realpath(path), "/proc"):
        # The standard streams have names in /dev, and may be pipes, for which there are no rules.
        return
    with contextlib.suppress(FileNotFoundError, PermissionError), opened(path) as handle:
        if not os.path.isdir(path):
            # A rule for a file must not speak of what folders have.
            rights &= _WRITE_FILE | _READ_FILE | _TRUNCATE
        _call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, handle), 0)


def _call(number: int, *arguments: object) -> int:
    # As long: the C library takes what a variadic function gets as it is in the registers.
    passed = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return kernel.check(kernel.libc().syscall(ctypes.c_long(number), *passed), "landlock")
