"""Which kinds of sockets a program may make: those that stay in its namespaces. Loads on any system.

Namespaces do not part ``AF_VSOCK`` (the host of a virtual machine), Bluetooth and some others. The filter is a program
of the kernel's packet filter (``linux/filter.h``, ``linux/seccomp.h``); numbers are those of ``asm/unistd.h``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from . import kernel

#: By machine: what the kernel calls its instructions, and the numbers of socket, socketpair and seccomp there.
_MACHINES = {"x86_64": (0xC000003E, (41, 53), 317), "aarch64": (0xC00000B7, (198, 199), 277)}
#: The numbers of shmget, shmat, semget and msgget: memory, locks and messages by keys that programs share.
_SHARED = {"x86_64": (29, 30, 64, 68), "aarch64": (194, 196, 190, 186)}

#: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK and AF_PACKET, of which namespaces have their own; AF_ALG only computes.
_FAMILIES = (1, 2, 10, 16, 17, 38)

#: The calls of io_uring: what is asked of it makes sockets too, and passes by all filters.
_IO_URING = (425, 426, 427)

#: From here on x86-64 has a second number for each call.
_X32 = 0x40000000

_SET_FILTER = 1
_WITHOUT_MITIGATIONS = 4
_RETURN_ALLOW, _RETURN_ERROR = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _NOT_BELOW, _RETURN = 0x20, 0x15, 0x35, 0x06
#: Where a filter finds the number of a call, the machine, and the first argument.
_NUMBER, _MACHINE, _FIRST = 0, 4, 16


def restrict(*, shares: bool) -> bool:
    """From here on this process and its children make no sockets but of the usual families, and no ``io_uring``.

    ``shares``: it has memory by keys (System V's) in common with other programs, and is to use none.
    Programs of 32 bits, whose calls have other numbers, do not run any more. Returns whether the kernel does so. The
    caller must have given up gaining privileges.
    """
    known = _MACHINES.get(os.uname().machine)
    if known is None:
        return False
    machine, sockets, number = known
    instructions = _filter(machine, sockets, (*_IO_URING, *_SHARED[os.uname().machine]) if shares else _IO_URING)
    code = ctypes.create_string_buffer(instructions, len(instructions))
    # struct sock_fprog: how many instructions, and where they are
    program = struct.pack("HP", len(instructions) // 8, ctypes.addressof(code))
    arguments = map(ctypes.c_long, (number, _SET_FILTER, _WITHOUT_MITIGATIONS))
    return bool(kernel.libc().syscall(*arguments, program) == 0)


def _filter(machine: int, sockets: tuple[int, ...], closed: tuple[int, ...]) -> bytes:
    ends = {"family": _RETURN_ERROR | errno.EAFNOSUPPORT, "call": _RETURN_ERROR | errno.ENOSYS, "allow": _RETURN_ALLOW}
    # code, value, where to go if it holds, where if not; the next one where nothing is said
    body: list[tuple[int, int, str, str]] = [
        (_LOAD, _MACHINE, "", ""),
        (_EQUAL, machine, "", "call"),
        (_LOAD, _NUMBER, "", ""),
        (_NOT_BELOW, _X32, "call", ""),
        *((_EQUAL, number, "call", "") for number in closed),
        *((_EQUAL, number, "made", "") for number in sockets[:-1]),
        (_EQUAL, sockets[-1], "made", "allow"),
        (_LOAD, _FIRST, "", ""),
        *((_EQUAL, family, "allow", "") for family in _FAMILIES[:-1]),
        (_EQUAL, _FAMILIES[-1], "allow", "family"),
    ]
    places = {"": None, "made": len(body) - len(_FAMILIES) - 1}
    places |= {name: len(body) + place for place, name in enumerate(ends)}

    def jump(at: int, to: str) -> int:
        place = places[to]
        return 0 if place is None else place - at - 1

    lines = [(code, jump(at, then), jump(at, other), value) for at, (code, value, then, other) in enumerate(body)]
    lines += [(_RETURN, 0, 0, value) for value in ends.values()]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
