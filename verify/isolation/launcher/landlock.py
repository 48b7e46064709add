"""Landlock: a process gives up writing outside some folders, where it may not have namespaces (Linux 5.13, and 2021's
containers on). Numbers are those of ``linux/landlock.h``.

It does not cover what ``chmod``, ``chown`` and ``utime`` change.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Sequence

from . import kernel
from .mounts import opened

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_WRITE_FILE = 1 << 1
# Removing (4, 5) and making (6 to 12) entries of folders.
_ENTRIES = sum(1 << bit for bit in range(4, 13))
_REFER = 1 << 13  # since version 2; without it nothing may be moved between folders, not even inside
_TRUNCATE = 1 << 14  # since version 3
_SCOPE_SIGNAL = 1 << 1  # since version 6


def version() -> int:
    """The version of Landlock that this kernel offers, 0 where it has none."""
    with contextlib.suppress(OSError, AttributeError):
        return _call(_CREATE_RULESET, None, 0, _VERSION)
    return 0


def forbid_writing(except_below: Sequence[str]) -> None:
    """From here on this process and its children write below these folders only. Raises OSError.

    The caller must have given up gaining privileges. Devices and terminals stay writable, and so does shared memory.
    """
    known = version()
    rights = _WRITE_FILE | _ENTRIES | (_REFER if known >= 2 else 0) | (_TRUNCATE if known >= 3 else 0)
    fields = [rights] + ([0] if known >= 4 else []) + ([_SCOPE_SIGNAL] if known >= 6 else [])
    packed = struct.pack(f"={len(fields)}Q", *fields)
    rules = _call(_CREATE_RULESET, packed, len(packed), 0)
    try:
        for folder in [*except_below, "/dev/shm"]:
            _allow(rules, folder, rights)
        # Not /proc: to root it holds the kernel's settings too.
        _allow(rules, "/dev", _WRITE_FILE | (rights & _TRUNCATE))
        _call(_RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, folder: str, rights: int) -> None:
    if not os.path.isdir(folder):
        return
    with opened(folder) as handle:
        _call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, handle), 0)


def _call(number: int, *arguments: object) -> int:
    # As long: the C library takes what a variadic function gets as it is in the registers.
    passed = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return kernel.check(kernel.libc().syscall(ctypes.c_long(number), *passed), "landlock")
