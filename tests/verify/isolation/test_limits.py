"""Programs that misbehave: each ends in a clear way and leaves no process behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.verify.isolation.conftest import Place
from verify.isolation import Ending, Limits, folders, process
from verify.isolation.launcher.processes import list_processes


def alive(mark: str) -> list[int]:
    """Processes whose command line names ``mark``."""
    found = []
    for one in list_processes():
        try:
            if mark.encode() in Path(f"/proc/{one.pid}/cmdline").read_bytes():
                found.append(one.pid)
        except OSError:
            continue
    return found


@pytest.fixture
def mark(tmp_path: Path) -> str:
    """An argument by which the processes of one test are found."""
    return f"mark-{tmp_path.name}-{os.getpid()}"


def test_status_and_output_are_those_of_the_program(place: Place) -> None:
    execution = place.run("import sys; print('out'); print('err', file=sys.stderr, flush=True); sys.exit(7)")
    assert (execution.ending, execution.status) == (Ending.EXITED, 7)
    assert sorted(execution.output.split()) == ["err", "out"]
    assert 0 < execution.seconds < 20
    assert execution.peak > 1 << 20


def test_signal_that_is_not_ours(place: Place) -> None:
    execution = place.run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (execution.ending, execution.status) == (Ending.KILLED, -signal.SIGSEGV)


def test_command_that_does_not_exist(place: Place) -> None:
    execution = place.workspace.execute(
        ["no-such-program"],
        cwd=place.root,
        changed={},
        environment=place.environment,
        shared=place.shared,
        limits=Limits(20.0),
    )
    assert execution.ending is Ending.NOT_STARTED
    assert "no-such-program" in execution.notes[-1]


def test_standard_input_is_empty_and_there_is_no_terminal(place: Place) -> None:
    execution = place.run(
        """
        import os, sys
        print(repr(sys.stdin.read()), os.getsid(0) == os.getpid())
        try: os.open("/dev/tty", os.O_RDWR)
        except OSError: print("no terminal")
        print(sorted(os.listdir("/proc/self/fd")))
        """
    )
    assert execution.output.splitlines()[:2] == ["'' True", "no terminal"]
    # The fourth is the listing itself.
    assert execution.output.splitlines()[2] == "['0', '1', '2', '3']"


def test_signals_have_their_defaults(place: Place) -> None:
    execution = place.run(
        "import signal; print([signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGHUP)] == [signal.SIG_DFL] * 2)\n"
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.pthread_sigmask(0, ()))"
    )
    assert execution.output == "True\nTrue set()\n"


@pytest.mark.slow
def test_hang_that_catches_everything(place: Place, mark: str) -> None:
    execution = place.run(
        """
        import signal, time
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        print("ready", flush=True)
        while True:
            try: time.sleep(1000)
            except: pass
        """,
        mark,
        seconds=1.0,
    )
    assert execution.ending is Ending.TIMEOUT
    assert execution.status is None
    assert execution.output == "ready\n"
    assert 1.0 <= execution.seconds < 4.0
    assert alive(mark) == []


@pytest.mark.slow
def test_programs_of_other_threads_end_when_they_are_cancelled(place: Place, mark: str) -> None:
    code = """
        import os, time
        open(os.path.join(os.environ["SHARED"], "begun"), "w").close()
        time.sleep(600)
    """
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(place.run, code, mark, seconds=300.0)
        while not (place.shared / "begun").exists():
            assert not running.done(), running.result()
            time.sleep(0.05)
        place.workspace.cancel()
        assert running.result(60).ending is Ending.NOT_STARTED
    assert place.run("print(1)").ending is Ending.NOT_STARTED
    assert alive(mark) == []


@pytest.mark.slow
def test_daemons_end_with_the_program(place: Place, mark: str) -> None:
    execution = place.run(
        """
        import os, sys, time
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.closerange(0, 100)
                    time.sleep(1000)
                os._exit(0)
        time.sleep(0.2)
        print("left")
        """,
        mark,
    )
    assert (execution.ending, execution.status, execution.output) == (Ending.EXITED, 0, "left\n")
    assert alive(mark) == []


@pytest.mark.slow
def test_program_that_hides_in_a_daemon_cannot_hold_the_output_open(place: Place, mark: str) -> None:
    start = time.monotonic()
    execution = place.run(
        "import subprocess, sys; subprocess.Popen(['sleep', '1000']); print('done'); sys.stdout.flush()", mark
    )
    assert execution.output == "done\n"
    assert time.monotonic() - start < 10


@pytest.mark.slow
def test_memory_limit_counts_all_processes(place: Place, mark: str) -> None:
    execution = place.run(
        """
        import os, time
        for _ in range(3):
            if os.fork() == 0:
                held = bytearray(os.urandom(1 << 20) * 60)
                time.sleep(1000)
        time.sleep(1000)
        """,
        mark,
        memory=150 << 20,
    )
    assert execution.ending is Ending.MEMORY
    assert execution.peak > 150 << 20
    assert execution.seconds < 15
    assert "limit is 150 MiB" in execution.notes[-1]
    assert alive(mark) == []


@pytest.mark.slow
def test_pages_that_workers_share_count_once(place: Place) -> None:
    execution = place.run(
        """
        import os, time
        held = bytearray(os.urandom(1 << 20) * 60)
        children = []
        for _ in range(5):
            child = os.fork()
            if child == 0:
                time.sleep(0.7); os._exit(0)
            children.append(child)
        for child in children: os.waitpid(child, 0)
        """,
        memory=200 << 20,
    )
    assert (execution.ending, execution.status) == (Ending.EXITED, 0), execution
    assert execution.peak > 200 << 20


@pytest.mark.slow
def test_many_megabytes_written_end_it(place: Place) -> None:
    execution = place.run(
        """
        block = bytes(1 << 20)
        for number in range(10_000):
            with open(f"checkpoint-{number}.pt", "wb") as file: file.write(block)
        """,
        disk=100 << 20,
        seconds=60.0,
    )
    assert execution.ending is Ending.DISK, execution
    assert "limit is 100 MiB" in execution.notes[-1]
    assert list(place.root.glob("*.pt")) == []


@pytest.mark.slow
def test_one_huge_file_written_in_spite_of_errors_ends_it(place: Place) -> None:
    execution = place.run(
        """
        block = bytes(1 << 20)
        file = open("huge", "wb")
        while True:
            try: file.write(block)
            except BaseException: pass
        """,
        disk=64 << 20,
        seconds=60.0,
    )
    assert execution.ending is Ending.DISK, execution


#: Where no folder and no process shows what is kept: each statement keeps 16 MiB more.
NAMELESS = {
    "a file in memory": (Ending.MEMORY, "files.append(os.memfd_create('mine')); os.write(files[-1], block)"),
    "shared memory that was removed": (
        Ending.MEMORY,
        "files.append(open(f'/dev/shm/codemod-{os.getpid()}', 'wb', 0)); os.unlink(files[-1].name)\n"
        "    files[-1].write(block)",
    ),
    "a file that was removed": (
        Ending.DISK,
        "files.append(open('mine', 'wb', 0)); os.unlink('mine'); files[-1].write(block)",
    ),
    "a file that is mapped and not open": (
        Ending.DISK,
        "files.append(os.open('mine', os.O_RDWR | os.O_CREAT)); os.unlink('mine'); away(files[-1])",
    ),
    "memory that is mapped and not open": (Ending.MEMORY, "away(os.memfd_create('mine'))"),
    "a temporary file": (Ending.DISK, "files.append(tempfile.TemporaryFile()); files[-1].write(block)"),
}
KEEPING = """import ctypes, os, tempfile, time
block = os.urandom(16 << 20)
files = []
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
def away(file):
    \"\"\"Write the block by way of a mapping, of which then nothing is resident.\"\"\"
    size = ctypes.c_size_t(len(block))
    os.ftruncate(file, len(block))
    at = ctypes.c_void_p(libc.mmap(None, size, 3, 1, file, ctypes.c_long(0)))
    os.close(file)
    ctypes.memmove(at, block, len(block)); libc.msync(at, size, 4); libc.madvise(at, size, 4)
for _ in range({count}):
    {keep}
    time.sleep(0.1)
time.sleep({after})
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["overlay", "landlock"])
@pytest.mark.parametrize("keep", NAMELESS)
def test_what_has_no_name_counts(opened: Callable[[str], Place], kind: str, keep: str) -> None:
    ending, code = NAMELESS[keep]
    execution = opened(kind).run(KEEPING.format(count=10, keep=code, after=1000), memory=140 << 20, disk=100 << 20)
    # Shared memory of its own is full before that.
    full = "shared memory" in keep and kind == "overlay" and "No space left" in execution.output
    assert execution.ending is ending or full, execution


@pytest.mark.slow
@pytest.mark.parametrize("keep", NAMELESS)
def test_a_little_without_a_name_is_no_trouble(opened: Callable[[str], Place], keep: str) -> None:
    code = KEEPING.format(count=3, keep=NAMELESS[keep][1], after=0.8)
    execution = opened("overlay").run(code, memory=140 << 20, disk=100 << 20)
    assert (execution.ending, execution.status) == (Ending.EXITED, 0), execution


@pytest.mark.slow
def test_memory_that_keys_hold_counts(opened: Callable[[str], Place]) -> None:
    """Pieces that no process has in its own memory."""
    execution = opened("overlay").run(
        """
        import ctypes, time
        libc = ctypes.CDLL(None)
        libc.shmat.restype = ctypes.c_void_p
        libc.shmdt.argtypes = [ctypes.c_void_p]
        for _ in range(8):
            place = libc.shmat(libc.shmget(0, 32 << 20, 0o1600), None, 0)
            ctypes.memset(place, 1, 32 << 20)
            libc.shmdt(place)
        time.sleep(1000)
        """,
        memory=150 << 20,
    )
    assert execution.ending is Ending.MEMORY, execution


@pytest.mark.slow
def test_files_below_the_disk_limit_are_no_trouble(place: Place) -> None:
    execution = place.run("open('model.pt', 'wb').write(bytes(20 << 20)); print('saved')", disk=64 << 20)
    assert (execution.ending, execution.output) == (Ending.EXITED, "saved\n")


@pytest.mark.slow
def test_endless_output_keeps_its_tail(place: Place) -> None:
    execution = place.run(
        """
        import os
        block = b"x" * 65535 + b"\\n"
        for _ in range(4000): os.write(1, block)
        os.write(2, b"the end")
        """,
        seconds=60.0,
    )
    assert execution.status == 0
    assert len(execution.output) == 64 << 10
    assert execution.output.endswith("x\nthe end")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["overlay", "bare copy"])
def test_fork_bomb(opened: Callable[[str], Place], kind: str, mark: str) -> None:
    place = opened(kind)
    # It stops at 1024: where nothing stops it before, this test should fail and the machine go on.
    execution = place.run(
        """
        import os, sys
        for _ in range(int(sys.argv[1])):
            try: os.fork()
            except OSError: pass
        while True: pass
        """,
        "10",
        mark,
        seconds=60.0,
        processes=150,
    )
    assert execution.ending is Ending.MEMORY, execution
    assert execution.seconds < 50
    assert alive(mark) == []


@pytest.mark.slow
def test_a_process_that_cannot_be_looked_into_ends_at_its_limits(
    opened: Callable[[str], Place], tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who forks without end holds the lock on its memory nearly always: what is read of that comes late, or never."""
    launcher = tmp_path / "launcher.py"
    launcher.write_text(
        textwrap.dedent(f"""
        import sys, time
        sys.path.append({str(process.LAUNCHER.parent)!r})
        from launcher import main, processes
        processes.nameless = processes.proportional = lambda *_: time.sleep(1000)
        sys.exit(main.main())
        """)
    )
    monkeypatch.setattr(process, "LAUNCHER", launcher)
    place = opened("overlay")
    execution = place.run("import time; time.sleep(1000)", mark, seconds=2.0)
    assert execution.ending is Ending.TIMEOUT
    execution = place.run(
        "import os, time\nfor _ in range(6): os.fork()\ntime.sleep(1000)", mark, seconds=60.0, processes=30
    )
    assert execution.ending is Ending.MEMORY
    assert execution.seconds < 50
    assert alive(mark) == []


@pytest.mark.slow
def test_hundreds_of_processes_are_no_trouble(place: Place, mark: str) -> None:
    execution = place.run(
        "import subprocess; p = [subprocess.Popen(['sleep', '1000']) for _ in range(300)]; print(len(p))", mark
    )
    assert (execution.ending, execution.output) == (Ending.EXITED, "300\n")


@pytest.mark.parametrize("kind", ["overlay", "shown copy"])
def test_network_is_cut_off_and_localhost_works(opened: Callable[[str], Place], kind: str) -> None:
    place = opened(kind)
    with socket.socket() as outside:
        outside.bind(("127.0.0.1", 0))
        outside.listen()
        code = f"""
            import socket
            with socket.socket() as server:
                server.bind(("localhost", 0)); server.listen()
                socket.create_connection(server.getsockname(), 5).close(); print("localhost")
            for address in (("127.0.0.1", {outside.getsockname()[1]}), ("192.0.2.1", 80)):
                try: socket.create_connection(address, 1); print("reached")
                except OSError as error: print(error.strerror)
            """
        execution = place.run(code)
        assert execution.output == "localhost\nConnection refused\nNetwork is unreachable\n"
        assert execution.sandbox.endswith("no network")
        assert place.run(code, network=True).output.split()[:2] == ["localhost", "reached"]


def test_shared_memory_is_private(opened: Callable[[str], Place]) -> None:
    place = opened("overlay")
    execution = place.run(
        """
        import os, sys
        from multiprocessing.shared_memory import SharedMemory
        memory = SharedMemory("codemod-test-memory", create=True, size=1 << 20)
        memory.buf[:5] = b"hello"
        print(os.listdir("/dev/shm")); memory.close()
        sys.stdout.flush(); os._exit(0)  # past the tracker that would remove it
        """
    )
    assert execution.output == "['codemod-test-memory']\n"
    assert "codemod-test-memory" not in os.listdir("/dev/shm")


@pytest.mark.slow
def test_caller_that_is_killed_leaves_nothing(
    tree: Path, shared: Path, mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, other = tmp_path / "temporary", tmp_path / "other"
    temporary.mkdir()
    other.mkdir()
    inner = "import os, time; open('big', 'wb').write(bytes(1 << 20)); open(os.environ['ON'], 'w'); time.sleep(1000)"
    program = textwrap.dedent(
        f"""
        import os, sys
        from pathlib import Path
        from verify.isolation import Limits, Workspace, folders
        folders._OTHERS = ({str(other)!r},)
        with Workspace(Path({str(tree)!r})) as workspace:
            workspace.execute([sys.executable, "-c", {inner!r}, {mark!r}], cwd=Path({str(tree)!r}), changed={{}},
                              environment={{**os.environ, "ON": {str(shared / "on")!r}}},
                              shared=Path({str(shared)!r}), limits=Limits(100.0))
        """
    )
    for number in (signal.SIGINT, signal.SIGKILL):
        (shared / "on").unlink(missing_ok=True)
        caller = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "TMPDIR": str(temporary)},
            stderr=subprocess.DEVNULL,
        )
        wait_for((shared / "on").exists)
        assert alive(mark) != []
        caller.send_signal(number)
        caller.wait()
        wait_for(lambda: alive(mark) == [])
        left = [*temporary.iterdir(), *other.iterdir()]
        if number is signal.SIGINT:
            assert left == []
    # A killed caller leaves two folders, emptied by the launcher; the next one removes them.
    assert len(left) == 2
    wait_for(lambda: [os.listdir(folder) for folder in left] == [[".lock"]] * 2)
    monkeypatch.setattr(folders, "_OTHERS", (str(other),))
    monkeypatch.setattr(folders, "_YOUNG", 0.0)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def removed() -> bool:
        # The launcher holds its locks for a moment after it has emptied the folders.
        for folder in folders.make_folders():
            folder.remove()
        return [*temporary.iterdir(), *other.iterdir()] == []

    wait_for(removed)


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until ``condition`` holds, ten seconds at most."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.05)
