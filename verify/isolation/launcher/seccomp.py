"""Which kinds of sockets a program may make: those that stay in its namespaces; and, where it has none, what it may
not do to processes beside it. Loads on any system.

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

#: The numbers of prlimit64 and setpriority, which reach all processes of a user.
_OTHERS = {"x86_64": (302, 141), "aarch64": (261, 140)}

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
#: Where a filter finds the number of a call, the machine, and the halves of its arguments.
_NUMBER, _MACHINE, _FIRST, _THIRD = 0, 4, 16, (32, 36)


def restrict(*, alone: bool) -> bool:
    """From here on this process and its children make no sockets but of the usual families, and no ``io_uring``.

    Unless it is ``alone`` in namespaces of its own, it uses no memory by keys (System V's), which programs share, sets
    no limits of processes that it names by their number (the kernel would end them), and the priority of single ones
    only. Programs of 32 bits, whose calls have other numbers, do not run any more. Returns whether the kernel does so.
    The caller must have given up gaining privileges.
    """
    name = os.uname().machine
    known = _MACHINES.get(name)
    if known is None:
        return False
    machine, sockets, number = known
    if alone:
        instructions = _filter(machine, sockets, _IO_URING, ())
    else:
        instructions = _filter(machine, sockets, (*_IO_URING, *_SHARED[name]), _OTHERS[name])
    code = ctypes.create_string_buffer(instructions, len(instructions))
    # struct sock_fprog: how many instructions, and where they are
    program = struct.pack("HP", len(instructions) // 8, ctypes.addressof(code))
    arguments = map(ctypes.c_long, (number, _SET_FILTER, _WITHOUT_MITIGATIONS))
    return bool(kernel.libc().syscall(*arguments, program) == 0)


def _filter(machine: int, sockets: tuple[int, ...], closed: tuple[int, ...], others: tuple[int, ...]) -> bytes:
    # Code, value, where to go if it holds, where if not; the next one where nothing is said
    body: list[tuple[int, int, str, str]] = [
        (_LOAD, _MACHINE, "", ""),
        (_EQUAL, machine, "", "call"),
        (_LOAD, _NUMBER, "", ""),
        (_NOT_BELOW, _X32, "call", ""),
        *((_EQUAL, number, "call", "") for number in closed),
        *((_EQUAL, number, place, "") for number, place in zip(others, ("limit", "priority"), strict=False)),
        *((_EQUAL, number, "made", "") for number in sockets[:-1]),
        (_EQUAL, sockets[-1], "made", "allow"),
    ]
    places = {"made": len(body)}
    body += [
        (_LOAD, _FIRST, "", ""),
        *((_EQUAL, family, "allow", "") for family in _FAMILIES[:-1]),
        (_EQUAL, _FAMILIES[-1], "allow", "family"),
    ]
    # Its own limits it names by 0, and who sets none only asks.
    places["limit"] = len(body)
    body += [
        (_LOAD, _FIRST, "", ""),
        (_EQUAL, 0, "allow", ""),
        (_LOAD, _THIRD[0], "", ""),
        (_EQUAL, 0, "", "rights"),
        (_LOAD, _THIRD[1], "", ""),
        (_EQUAL, 0, "allow", "rights"),
    ]
    # 0 is a single process; else it is a group, or all of a user.
    places["priority"] = len(body)
    body += [(_LOAD, _FIRST, "", ""), (_EQUAL, 0, "allow", "rights")]
    errors = {"family": errno.EAFNOSUPPORT, "call": errno.ENOSYS, "rights": errno.EPERM}
    ends = {**{name: _RETURN_ERROR | error for name, error in errors.items()}, "allow": _RETURN_ALLOW}
    places.update({name: len(body) + place for place, name in enumerate(ends)})
    lines = [
        (code, *(places[to] - at - 1 if to else 0 for to in (then, other)), value)
        for at, (code, value, then, other) in enumerate(body)
    ]
    lines += [(_RETURN, 0, 0, value) for value in ends.values()]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
