"""What a hostile program reaches for: devices, other processes, mounts, the kernel. Each script tells what it got."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.verify.isolation.conftest import Place
from verify.isolation import Ending
from verify.isolation.launcher.places import devices

#: Kinds in which something can be kept from a program.
CLOSED = ("overlay", "warm", "shown copy", "landlock")
MOUNTED = CLOSED[:2]

LIBC = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
def told(what, result): print(what, "done" if result >= 0 else os.strerror(ctypes.get_errno()), flush=True)
def tried(what, do):
    try: do()
    except OSError as error: print(what, error.strerror, flush=True)
    else: print(what, "done", flush=True)
"""


def others() -> list[str]:
    """The devices of this machine that no program needs."""
    kept = devices()
    found = [str(path) for path in Path("/dev").rglob("*") if stat.S_IFMT(os.lstat(path).st_mode) in (0o20000, 0o60000)]
    return [path for path in found if not any(path == one or path.startswith(one + "/") for one in kept)]


@pytest.mark.parametrize("kind", CLOSED)
def test_disks_machines_and_networks_are_no_devices_of_a_program(opened: Callable[[str], Place], kind: str) -> None:
    paths = others() or ["/dev/mem"]
    execution = opened(kind).run(
        LIBC + "for path in sys.argv[1:]:\n"
        "    for flags in (os.O_RDONLY, os.O_RDWR):\n"
        "        tried(path, lambda: os.open(path, flags | os.O_NONBLOCK))\n",
        *paths,
    )
    assert execution.status == 0, execution
    assert len(execution.output.splitlines()) == 2 * len(paths)
    assert "done" not in execution.output, execution


@pytest.mark.parametrize("kind", CLOSED)
def test_devices_that_programs_use_work(opened: Callable[[str], Place], kind: str) -> None:
    execution = opened(kind).run(
        """
        import multiprocessing, os, pty, subprocess, sys, tempfile
        from multiprocessing import shared_memory
        open("/dev/null", "w").write("x"); open("/dev/null", "ab").write(b"x")
        assert open("/dev/null").read() == ""
        assert len(open("/dev/urandom", "rb").read(8)) == len(os.urandom(8)) == 8
        assert open("/dev/zero", "rb").read(4) == bytes(4)
        try: open("/dev/full", "wb", buffering=0).write(b"x")
        except OSError as error: print(error.strerror, flush=True)
        one, other = pty.openpty(); print(os.ttyname(other).startswith("/dev/pts/"), flush=True)
        os.write(one, b"typed\\n"); assert os.read(other, 6) == b"typed\\n"
        with multiprocessing.Lock(): pass
        memory = shared_memory.SharedMemory(create=True, size=10); memory.close(); memory.unlink()
        open("/dev/shm/mine", "w").write("x"); os.unlink("/dev/shm/mine")
        subprocess.run(["true"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        open("/dev/stdout", "w").write("out\\n"); open("/dev/fd/1", "w").write("fd\\n")
        """
    )
    assert execution.status == 0, execution
    assert execution.output.split("\n") == ["No space left on device", "True", "out", "fd", ""]


@pytest.mark.parametrize("kind", MOUNTED)
def test_terminals_of_others_are_not_there(opened: Callable[[str], Place], kind: str) -> None:
    one, other = os.openpty()
    try:
        name = os.ttyname(other)
        execution = opened(kind).run(LIBC + "tried('terminal', lambda: os.open(sys.argv[1], os.O_WRONLY))", name)
        assert execution.output == "terminal No such file or directory\n"
    finally:
        os.close(one)
        os.close(other)


@pytest.mark.parametrize("kind", CLOSED)
def test_others_are_not_looked_into_and_get_no_signal(opened: Callable[[str], Place], kind: str) -> None:
    """Neither whoever runs it nor its init; all that it can end is itself."""
    execution = opened(kind).run(
        LIBC
        + """
class Vector(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(8)
mine, theirs = Vector(ctypes.addressof(buffer), 8), Vector(0x400000, 8)
for pid in {os.getppid(), 1, int(sys.argv[1])}:
    told("attach", libc.ptrace(16, pid, 0, 0))
    told("read", libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0))
    for name in ("mem", "environ", "root/etc/passwd"):
        tried(name, lambda: open(f"/proc/{pid}/{name}", "rb").read(1))
    for name in ("fd/0", "cwd", "exe"):
        tried(name, lambda: os.readlink(f"/proc/{pid}/{name}"))
print("end")
""",
        str(os.getpid()),
    )
    assert execution.status == 0, execution
    lines = execution.output.splitlines()
    assert lines[-1] == "end"
    assert not [line for line in lines if line.endswith("done")], execution


@pytest.mark.parametrize("kind", MOUNTED)
def test_signals_stay_inside(opened: Callable[[str], Place], kind: str) -> None:
    execution = opened(kind).run(
        LIBC
        + """
for pid in {os.getppid(), 1, int(sys.argv[1]), -1}:
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
        tried("kill", lambda: os.kill(pid, number))
print("end")
""",
        str(os.getpid()),
    )
    # Its own process may be the one of our number; whoever waits for it goes on all the same.
    assert execution.ending is Ending.EXITED, execution
    assert "done" not in execution.output, execution


@pytest.mark.parametrize("kind", CLOSED)
def test_the_kernel_and_the_machine_stay_as_they_are(opened: Callable[[str], Place], kind: str) -> None:
    execution = opened(kind).run(
        LIBC
        + """
class Time(ctypes.Structure): _fields_ = [("seconds", ctypes.c_long), ("rest", ctypes.c_long)]
told("clock", libc.clock_settime(0, ctypes.byref(Time(1, 0))))
told("host name", libc.sethostname(b"evil", 4))
told("reboot", libc.reboot(0x89abcdef))
told("swap", libc.swapoff(b"/swapfile"))
told("accounting", libc.acct(b"/tmp/acct"))
told("mount", libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
told("unmount", libc.umount2(os.path.expanduser("~").encode(), 2))
told("quota", libc.quotactl(0x80000700, b"/", 0, 0))
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", "/sys/power/state",
             "/proc/sys/kernel/modprobe", "/proc/self/oom_score_adj/x", "/sys/fs/cgroup/memory.max"):
    tried(path, lambda: open(path, "r+b").close())
for kind, number in ((0o60666, os.makedev(8, 0)), (0o20666, os.makedev(1, 1))):
    tried("device", lambda: os.mknod("mine", kind, number))
tried("group", lambda: os.mkdir("/sys/fs/cgroup/mine"))
""",
    )
    assert execution.status == 0, execution
    assert "done" not in execution.output, execution


@pytest.mark.parametrize("kind", MOUNTED)
def test_namespaces_of_its_own_show_no_more(opened: Callable[[str], Place], kind: str, tmp_path: Path) -> None:
    """Where it may make some, it gets rights in them, and none over what lies under its view."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("s3cret")
    place = opened(kind)
    place.environment["HOME"] = str(home)
    execution = place.run(
        LIBC
        + """
home = sys.argv[1]
libc.unshare(0x10000000 | 0x20000)
for point in (home, "/run", "/dev", "/proc", os.getcwd(), "/"):
    libc.umount2(point.encode(), 2)
libc.mount(b"/", b"/mnt", None, 4096 | 16384, None)
libc.mount(b"", home.encode(), None, 32 | 4096, None)
for root in ("", "/mnt", "/proc/self/root", "/proc/1/root"):
    tried("home", lambda: print(open(f"{root}{home}/.ssh/id").read()))
    tried("user", lambda: open(f"{root}{home}/mine", "w").close())
""",
        str(home),
    )
    assert "s3cret" not in execution.output, execution
    assert os.listdir(home) == [".ssh"]


@pytest.mark.parametrize("kind", CLOSED)
def test_no_program_gives_it_more_rights(opened: Callable[[str], Place], kind: str) -> None:
    execution = opened(kind).run(
        """
        import shutil, subprocess
        shutil.copy(shutil.which("id"), "mine"); subprocess.run(["chmod", "4755", "mine"])
        print(subprocess.run(["./mine", "-u"], capture_output=True, text=True).stdout.strip())
        print([line.split()[1] for line in open("/proc/self/status") if line.startswith("NoNewPrivs")])
        """
    )
    assert execution.output.split() == [str(os.getuid()), "['1']"], execution


@pytest.mark.parametrize("kind", CLOSED)
def test_who_stops_himself_is_ended(opened: Callable[[str], Place], kind: str) -> None:
    execution = opened(kind).run("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", seconds=1.0)
    assert execution.ending is Ending.TIMEOUT


@pytest.mark.skipif(not Path("/proc/sys/kernel/seccomp/actions_avail").exists(), reason="the kernel has no filters")
@pytest.mark.parametrize("kind", CLOSED)
def test_sockets_that_no_namespace_parts_are_not_made(opened: Callable[[str], Place], kind: str) -> None:
    execution = opened(kind).run(
        LIBC + "import socket\n"
        "for family in (40, 31, 42, 30):\n"
        "    for made in (socket.socket, socket.socketpair):\n"
        "        tried(family, lambda: made(family, socket.SOCK_STREAM))\n"
        "told('ring', libc.syscall(425, 1, ctypes.create_string_buffer(200)))\n"
    )
    assert execution.status == 0, execution
    *sockets, ring = execution.output.splitlines()
    assert len(sockets) == 8
    assert all(line.endswith("Address family not supported by protocol") for line in sockets), execution
    assert ring == "ring Function not implemented"


@pytest.mark.parametrize("kind", CLOSED)
def test_sockets_of_the_program_s_own_work(opened: Callable[[str], Place], kind: str) -> None:
    execution = opened(kind).run(
        """
        import multiprocessing, socket, subprocess, sys
        one, other = socket.socketpair()
        one.send(b"here"); assert other.recv(4) == b"here"
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_UNIX, "own.sock")):
            server = socket.socket(family)
            server.bind((address, 0) if family == socket.AF_INET else address)
            server.listen()
            client = socket.socket(family)
            client.connect(server.getsockname())
        socket.if_nameindex()
        with multiprocessing.get_context("fork").Manager() as manager:
            assert manager.list([1])[0] == 1
        assert subprocess.run([sys.executable, "-c", "import socket; socket.socketpair()"]).returncode == 0
        print("worked")
        """
    )
    assert execution.output.strip().endswith("worked"), execution


@pytest.mark.parametrize("kind", CLOSED)
def test_limits_and_priorities_of_others_stay(opened: Callable[[str], Place], kind: str) -> None:
    """The kernel ends who is over his limits; of one user everybody may set those of everybody."""
    before = resource.getrlimit(resource.RLIMIT_CPU), os.getpriority(os.PRIO_PROCESS, 0)
    execution = opened(kind).run(
        LIBC
        + """
import resource
pid, group = int(sys.argv[1]), int(sys.argv[2])
soft, hard = resource.prlimit(0, resource.RLIMIT_CPU)
for which in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE):
    tried("limit", lambda: resource.prlimit(pid, which, resource.prlimit(pid, which)))
tried("group", lambda: os.setpriority(os.PRIO_PGRP, group, os.getpriority(os.PRIO_PGRP, group)))
if pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    tried("user", lambda: os.setpriority(os.PRIO_USER, os.getuid(), os.getpriority(os.PRIO_USER, os.getuid())))
# Its own are its own.
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
resource.prlimit(0, resource.RLIMIT_CPU, (soft, hard))
os.nice(1)
os.setpriority(os.PRIO_PROCESS, os.getpid(), 3)
print(resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE), os.getpriority(os.PRIO_PROCESS, 0))
""",
        str(os.getppid()),
        str(os.getpgrp()),
    )
    assert execution.status == 0, execution
    *others, own = execution.output.splitlines()
    assert len(others) >= 3
    assert not [line for line in others if line.endswith("done")], execution
    assert own == "(100, 100) 3", execution
    assert before == (resource.getrlimit(resource.RLIMIT_CPU), os.getpriority(os.PRIO_PROCESS, 0))


@pytest.mark.parametrize("kind", CLOSED)
def test_nobody_goes_before_whoever_ends_it(opened: Callable[[str], Place], kind: str) -> None:
    """A program in real time, or with a better priority, would leave its watcher no time."""
    execution = opened(kind).run(
        LIBC
        + """
for policy in (os.SCHED_FIFO, os.SCHED_RR):
    tried("real time", lambda: os.sched_setscheduler(0, policy, os.sched_param(50)))
tried("priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) - 5))
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
os.sched_setaffinity(0, os.sched_getaffinity(0))
print("end")
"""
    )
    assert execution.output.splitlines() == [
        "real time Operation not permitted",
        "real time Operation not permitted",
        "priority Permission denied",
        "end",
    ], execution
