"""The Linux system calls that Python does not wrap; each raises OSError. Loads on any system, works on Linux only.

Constants are those of the kernel's user-space headers (``linux/sched.h``, ``linux/mount.h``, ``linux/prctl.h``,
``linux/capability.h``); they are part of its stable interface.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys
from functools import cache

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION = 0x20080522
_CAP_SYS_ADMIN = 21
_CAP_LAST = 63
# What a script may need to treat files and processes as its own when it runs as root. The others reach past the
# sandbox: mounting, device nodes, kernel modules, raw input and output, immutable files, limits, and priorities: what
# runs in real time goes before whoever is to end it.
_CAPS_KEPT = {0, 1, 2, 3, 4, 5, 6, 7, 10, 13, 14, 15, 18, 19}

#: The number of keyctl by machine (asm/unistd.h).
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}
_JOIN_SESSION_KEYRING = 1

_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1


@cache
def libc() -> ctypes.CDLL:
    """The C library of this process."""
    return ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    """Return ``result`` or raise what ``errno`` says, naming ``what`` failed."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)
    return result


def unshare(flags: int, what: str) -> None:
    """Leave the namespaces of the caller that ``flags`` name (unshare(2))."""
    check(libc().unshare(flags), what)


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    check(
        libc().mount(
            os.fsencode(source),
            os.fsencode(target),
            kind.encode() if kind else None,
            ctypes.c_ulong(flags),
            os.fsencode(options) if options else None,
        ),
        f"mount {kind or 'bind'} on {target}",
    )


def guard_settings() -> None:
    """Make read-only what root could change the kernel with in the /proc of this mount namespace.

    These files ask for a user and not for a capability, so a user namespace alone does not guard them.
    """
    for path in ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"):
        if os.path.exists(path):
            mount(path, path, None, MS_BIND)
            mount("", path, None, MS_BIND | MS_REMOUNT | MS_RDONLY)


def unmount(target: str) -> None:
    """Take the mount away from sight; it ends when nobody uses it any more (umount2(2) with MNT_DETACH)."""
    check(libc().umount2(os.fsencode(target), MNT_DETACH), f"unmount {target}")


def prctl(option: int, value: int) -> int:
    """prctl(2) with one argument."""
    unused = ctypes.c_ulong(0)
    return check(libc().prctl(option, ctypes.c_ulong(value), unused, unused, unused), f"prctl {option}")


def die_with_parent(signal: int) -> None:
    """Have the kernel send ``signal`` to this process when its parent dies."""
    prctl(_PR_SET_PDEATHSIG, signal)


def adopt_orphans() -> None:
    """Make this process the new parent of descendants whose parents die."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def give_up_privileges() -> None:
    """No set-user-id programs from here on, and after the next exec no capability that reaches past the sandbox."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(_CAP_LAST + 1):
        if capability in _CAPS_KEPT:
            continue
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            # Beyond the last one that this kernel knows, or an ordinary user, who has none to lose.
            break


def give_up_as_by_exec() -> None:
    """Take from this process what :func:`give_up_privileges` leaves to it until the next exec, and let it see itself in
    /proc again, as an exec would.
    """
    head = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()
    check(libc().capget(head, sets), "capabilities")
    kept = sum(1 << capability for capability in _CAPS_KEPT) if os.geteuid() == 0 else 0
    # Effective, permitted and inheritable ones, the lower half of each first.
    for half, mask in enumerate((kept & 0xFFFFFFFF, kept >> 32)):
        permitted = sets[3 * half + 1] & mask
        sets[3 * half], sets[3 * half + 1] = permitted, permitted
        sets[3 * half + 2] &= permitted
    check(libc().capset(head, sets), "capabilities")
    prctl(_PR_SET_DUMPABLE, 1)


def forget_keys() -> None:
    """A new and empty keyring of the session: that of the user may hold tickets and passwords."""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        # Kernels without keyrings, and containers that forbid them, give nothing away either.
        libc().syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None)


def may_administrate() -> bool:
    """Whether this process has CAP_SYS_ADMIN, so that it needs no user namespace to mount."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> _CAP_SYS_ADMIN & 1)
    return False


def map_own_ids(user: int, group: int) -> None:
    """After unsharing the user namespace: keep the own ids, so that files and ``getuid`` look as they did."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def stay_local() -> None:
    """After leaving the network: switch the loopback interface on, and take a host name that leads to it.

    Launchers and workers talk over localhost, but some of them ask for the way there by the host's name, and nobody is
    left to answer.
    """
    unshare(CLONE_NEWUTS, "host name")
    name = b"localhost"
    check(libc().sethostname(name, len(name)), "host name")
    if sys.platform != "linux":
        return
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(channel, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(channel, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))
