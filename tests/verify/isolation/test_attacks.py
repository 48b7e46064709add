"""Ways out of the sandbox: services, other processes, secrets of the user. Each was possible once, or is by design of
the system; the script of each test says what it got."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.verify.isolation.conftest import Place
from verify.isolation import Ending, View
from verify.isolation.launcher import landlock

#: Kinds in which the system lets us close what has a path.
MOUNTED = ("overlay", "warm", "shown copy")
SECRET = "s3cret-of-the-user"

READ = """
    import os, sys
    for path in sys.argv[1:]:
        try:
            with open(path, errors="replace") as file: print(file.read().replace(chr(0), " "))
        except OSError as error: print(path, error.strerror)
        try: print(os.listdir(os.path.dirname(path)))
        except OSError as error: print(path, error.strerror)
"""
ASK = """
    import socket, sys
    for address in sys.argv[1:]:
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        channel.settimeout(3)
        try:
            channel.connect(chr(0) + address[1:] if address[0] == "@" else address)
            print("answer:", channel.recv(100).decode())
        except OSError as error: print(type(error).__name__)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with secrets, caches and an environment of Python."""
    folder = tmp_path / "home"
    for name in (".ssh/id_rsa", ".netrc", ".config/gh/hosts.yml", ".cache/torch/model.pt", "data/x.txt", "bin/tool"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{SECRET} in {name}\n")
    (folder / "bin" / "tool").chmod(0o755)
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Starts a service on a socket, which answers whoever connects; ``@name`` is an abstract one."""
    servers: list[socket.socket] = []
    made: list[str] = []

    def start(address: str) -> str:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind("\0" + address[1:] if address[0] == "@" else address)
        if address[0] != "@":
            os.chmod(address, 0o777)
            made.append(address)
        server.listen()
        servers.append(server)

        def answer() -> None:
            while True:
                try:
                    channel = server.accept()[0]
                except OSError:
                    return
                channel.sendall(b"at your service")
                channel.close()

        threading.Thread(target=answer, daemon=True).start()
        return address

    yield start
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
    for path in made:
        os.unlink(path)


def place_of(opened: Callable[[str], Place], kind: str, home: Path | None = None) -> Place:
    """A place whose programs get the home."""
    place = opened(kind)
    if home is not None:
        place.environment["HOME"] = str(home)
    return place


@pytest.mark.parametrize("kind", [*MOUNTED, "landlock"])
def test_files_of_the_home_cannot_be_read(opened: Callable[[str], Place], kind: str, home: Path) -> None:
    place = place_of(opened, kind, home)
    paths = [str(home / name) for name in (".ssh/id_rsa", ".netrc", ".config/gh/hosts.yml", ".cache/torch/model.pt")]
    execution = place.run(READ, *paths, f"{place.root}/../home/.netrc", f"/proc/self/root{home}/.netrc")
    assert execution.status == 0, execution
    assert SECRET not in execution.output
    assert "id_rsa']" not in execution.output


def test_a_home_that_only_the_system_knows_is_empty_too(
    opened: Callable[[str], Place], home: Path, tmp_path: Path
) -> None:
    place = place_of(opened, "overlay", tmp_path / "elsewhere")
    assert SECRET not in place.run(READ, str(home / ".netrc")).output


@pytest.mark.parametrize("kind", MOUNTED)
def test_empty_home_can_be_written(opened: Callable[[str], Place], kind: str, home: Path) -> None:
    place = place_of(opened, kind, home)
    execution = place.run(
        """
        import os, sys
        for folder in {os.path.expanduser("~"), sys.argv[1]}:
            os.makedirs(folder + "/.cache/new/deep"); open(folder + "/.netrc", "w").write("mine")
            print(open(folder + "/.netrc").read())
        """,
        str(home),
    )
    assert execution.status == 0, execution
    assert SECRET in (home / ".netrc").read_text()
    assert not (home / ".cache" / "new").exists()


@pytest.mark.parametrize("kind", [*MOUNTED, "landlock"])
def test_what_is_exposed_can_be_read_and_not_written(opened: Callable[[str], Place], kind: str, home: Path) -> None:
    place = place_of(opened, kind, home)
    (home / "link").symlink_to("data")
    view = View(exposed=(str(home / ".cache" / "torch"), str(home / "link"), str(home / ".netrc")))
    execution = place.run(
        """
        import os, sys
        home = sys.argv[1]
        for name in (".cache/torch/model.pt", "link/x.txt", "data/x.txt", ".netrc"):
            print(open(f"{home}/{name}").read())
            try: open(f"{home}/{name}", "w"); print("written")
            except OSError as error: pass
        try: open(f"{home}/data/new", "w"); print("written")
        except OSError as error: pass
        print(os.path.exists(home + "/.ssh/id_rsa") and open(home + "/.ssh/id_rsa").read())
        """,
        str(home),
        view=view,
    )
    assert execution.output.count(SECRET) == 4, execution
    assert "written" not in execution.output
    assert ("False" in execution.output) == (kind != "landlock")
    assert SECRET in (home / "data" / "x.txt").read_text()


@pytest.mark.parametrize("kind", MOUNTED)
def test_programs_in_the_home_run(opened: Callable[[str], Place], kind: str, home: Path) -> None:
    """An interpreter by a link, packages of the user, what is on the PATH, a tree that lies in the home."""
    (home / "envs").mkdir()
    (home / "envs" / "python").symlink_to(sys.executable)
    (home / "packages").mkdir()
    (home / "packages" / "mine.py").write_text("print('mine')")
    (home / "bin" / "tool").write_text("#!/bin/sh\necho tool\n")
    place = place_of(opened, kind, home)
    place.environment |= {"PATH": f"{home}/bin:{os.environ['PATH']}", "PYTHONPATH": f"{home}/packages"}
    execution = place.workspace.execute(
        [str(home / "envs" / "python"), "-c", "import mine, os; os.system('tool')"],
        cwd=place.root,
        changed={},
        environment=place.environment,
        shared=place.shared,
        limits=place.limits(),
    )
    assert sorted(execution.output.split()) == ["mine", "tool"], execution


@pytest.mark.parametrize("kind", MOUNTED)
def test_tree_in_the_home_is_seen_as_it_is(
    opened: Callable[[str], Place], kind: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tree.parent))
    (tree.parent / "beside.txt").write_text(SECRET)
    place = place_of(opened, kind, tree.parent)
    execution = place.run(
        "import module, os; print(module.VALUE, open('data/numbers.txt').read(), os.listdir('..'))\n"
        "open('new', 'w').write('x'); os.rename('new', 'data/moved'); print(open('../beside.txt').read())",
        changed={"module.py": b"VALUE = 'changed'\n"},
    )
    assert "changed 1 2 3" in execution.output
    assert "No such file" in execution.output
    assert SECRET not in execution.output


def test_tree_that_is_the_home_is_seen_whole(
    opened: Callable[[str], Place], tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tree))
    place = place_of(opened, "overlay", tree)
    assert place.run("print(open('data/numbers.txt').read())").output == "1 2 3\n\n"


@pytest.mark.parametrize("kind", MOUNTED)
def test_environment_in_the_tree_is_there(opened: Callable[[str], Place], kind: str, tree: Path) -> None:
    """A copy leaves environments out; the one that runs the script must be there all the same."""
    (tree / ".venv" / "bin").mkdir(parents=True)
    (tree / ".venv" / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
    (tree / ".venv" / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    place = opened(kind)
    execution = place.workspace.execute(
        [str(tree / ".venv" / "bin" / "python"), "-c", "import sys, module; print(sys.prefix, module.VALUE)"],
        cwd=tree,
        changed={"module.py": b"VALUE = 'changed'"},
        environment={**place.environment, "PYTHONPATH": str(tree)},
        shared=place.shared,
        limits=place.limits(),
        view=View(needed=(str(tree / ".venv"), str(tree))),
    )
    assert execution.output == f"{tree / '.venv'} changed\n", execution


@pytest.mark.parametrize("kind", MOUNTED)
def test_services_are_not_reached(
    opened: Callable[[str], Place], kind: str, serve: Callable[[str], str], tmp_path: Path
) -> None:
    """A daemon's socket, as that of containers, wherever it listens."""
    if os.getuid() != 0:
        pytest.skip("needs the right to write to /run")
    addresses = [f"{folder}/codemod-{os.getpid()}.sock" for folder in ("/run", "/tmp", "/var/tmp", "/var/lib", "/dev")]
    for address in [*addresses, f"{tmp_path}/tree/near.sock"]:
        serve(address)
    place = opened(kind)
    addresses += [f"/var/run/{Path(addresses[0]).name}", f"/proc/self/root{addresses[0]}", f"{place.root}/near.sock"]
    execution = place.run(ASK, *addresses)
    assert execution.status == 0, execution
    assert "answer" not in execution.output
    assert len(execution.output.split()) == len(addresses)


@pytest.mark.parametrize("kind", MOUNTED)
def test_socket_that_is_mounted_by_itself_is_closed(
    opened: Callable[[str], Place], kind: str, serve: Callable[[str], str], tmp_path: Path
) -> None:
    """So containers get the socket of the daemon that runs them; the kernel does not list it in theirs."""
    from verify.isolation.launcher import kernel

    if os.getuid() != 0:
        pytest.skip("mounting needs root")
    point = Path(f"/opt/codemod-{os.getpid()}.sock")
    point.touch()
    try:
        try:
            kernel.mount(serve(str(tmp_path / "outer.sock")), str(point), None, kernel.MS_BIND)
        except OSError as error:
            pytest.skip(f"nothing can be mounted here: {error}")
        try:
            assert "answer" not in opened(kind).run(ASK, str(point)).output
        finally:
            kernel.unmount(str(point))
    finally:
        point.unlink()


@pytest.mark.parametrize("kind", [*MOUNTED, "landlock"])
@pytest.mark.parametrize("network", [False, True])
def test_abstract_sockets_are_not_reached(
    opened: Callable[[str], Place], kind: str, serve: Callable[[str], str], network: bool
) -> None:
    if landlock.version() < 6 and (network or kind == "landlock"):
        pytest.skip("this kernel cannot close them where the network is left open")
    execution = opened(kind).run(ASK, serve(f"@codemod-{os.getpid()}"), network=network)
    assert execution.output.split() in (["ConnectionRefusedError"], ["PermissionError"])


@pytest.mark.parametrize("kind", MOUNTED)
def test_sockets_of_its_own_work(opened: Callable[[str], Place], kind: str) -> None:
    execution = opened(kind).run(
        """
        import multiprocessing, os, socket, tempfile
        def ask(address, name):
            with multiprocessing.connection.Client(address, authkey=b"x") as client: client.send(name)
        import multiprocessing.connection
        for family in (None, "AF_UNIX"):
            with multiprocessing.connection.Listener(family=family, authkey=b"x") as listener:
                other = multiprocessing.get_context("fork").Process(target=ask, args=(listener.address, "hello"))
                other.start()
                print(listener.accept().recv())
                other.join()
        for place in ("/tmp/mine", tempfile.mkdtemp() + "/s", "/run/mine", os.path.expanduser("~/mine")):
            try:
                server = socket.socket(socket.AF_UNIX); server.bind(place); server.listen()
                client = socket.socket(socket.AF_UNIX); client.connect(place); print("own")
            except OSError as error: print(place, error)
        with multiprocessing.Manager() as manager: print(manager.list([1]))
        """
    )
    assert execution.output.split() == ["hello", "hello", "own", "own", "own", "own", "[1]"], execution


@pytest.mark.parametrize("kind", [*MOUNTED, "landlock"])
def test_pipes_lead_nowhere(opened: Callable[[str], Place], kind: str) -> None:
    """A pipe in a temporary folder, which somebody reads."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            execution = opened(kind).run(
                "import os, sys\n"
                "try: os.write(os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK), b'command')\n"
                "except OSError as error: print(error.strerror)",
                pipe,
            )
            assert execution.ending is Ending.EXITED
            assert os.read(reading, 10) == b""
        finally:
            os.close(reading)


@pytest.mark.parametrize("kind", [*MOUNTED, "landlock"])
def test_environments_of_other_processes_cannot_be_read(
    opened: Callable[[str], Place], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the sandbox's own first process, of the launcher, and of the one that called us."""
    if kind == "landlock" and landlock.version() < 1:
        pytest.skip("needs Landlock")
    monkeypatch.setenv("A_SERVICE_TOKEN", SECRET)
    import subprocess

    # An environment shows in /proc as it was at the start of a process.
    other = subprocess.Popen(["sleep", "60"], env={**os.environ})
    try:
        place = opened(kind)
        execution = place.run(
            """
            import os
            for name in os.listdir("/proc"):
                if name.isdigit():
                    for file in ("environ", "cmdline"):
                        try: print(name, file, open(f"/proc/{name}/{file}").read())
                        except OSError as error: pass
            print("done", os.environ.get("A_SERVICE_TOKEN"))
            """
        )
        assert execution.output.rstrip().endswith("done None"), execution
        assert SECRET not in execution.output
    finally:
        other.kill()
        other.wait()


def test_no_file_of_ours_is_open_in_it(place: Place) -> None:
    with open(place.shared / "of-ours", "w"):
        execution = place.run(
            """
            import os
            found = {}
            for name in os.listdir("/proc/self/fd"):
                try: found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
                except OSError: pass
            print(sorted(found), "of-ours" in str(found))
            for name in ("1", str(os.getppid())):
                for number in range(20):
                    try: print(os.write(os.open(f"/proc/{name}/fd/{number}", os.O_WRONLY), b'{"status": 0}\\n'))
                    except OSError: pass
            os._exit(7)
            """
        )
    assert execution.output.splitlines()[0] in ("[0, 1, 2] False", "[0, 1, 2, 3] False")
    if place.kind != "bare copy":
        assert execution.output.count("\n") == 1
    assert execution.status == 7


def test_what_a_service_gave_to_the_container_is_hidden(opened: Callable[[str], Place]) -> None:
    """Where containers find their secrets and tokens."""
    if os.getuid() != 0:
        pytest.skip("needs the right to write to /run")
    folder = Path(f"/run/secrets-{os.getpid()}")
    folder.mkdir()
    (folder / "token").write_text(SECRET)
    try:
        for kind in (*MOUNTED, "landlock"):
            assert SECRET not in opened(kind).run(READ, str(folder / "token")).output
    finally:
        (folder / "token").unlink()
        folder.rmdir()


KEYS = """
    import ctypes, sys
    libc, found = ctypes.CDLL(None), []
    for ring in (-1, -2, -3, -4, -5):
        key = libc.syscall(250, 10, ring, b"user", sys.argv[1].encode(), 0)
        text = ctypes.create_string_buffer(50)
        if key > 0 and libc.syscall(250, 11, key, text, 50) > 0:
            found.append(text.value.decode())
    print(found)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the script has the numbers of x86-64")
def test_keys_of_the_session_cannot_be_read(place: Place) -> None:
    """Tickets and passwords that the user's session keeps in the kernel."""
    libc = ctypes.CDLL(None, use_errno=True)
    name = f"codemod-test-{os.getpid()}"
    key = libc.syscall(248, b"user", name.encode(), SECRET.encode(), len(SECRET), ctypes.c_int(-3))
    if key < 0:
        pytest.skip("no keyrings here")
    try:
        execution = place.run(KEYS, name)
    finally:
        libc.syscall(250, 9, key, -3)
    assert execution.output.strip() == "[]"


def test_shared_memory_of_others_is_not_found_where_nothing_can_be_mounted(opened: Callable[[str], Place]) -> None:
    """Memory and locks of its own work; what others keep there has names that nobody tells it, and no other kind of
    file is made there."""
    if landlock.version() < 1:
        pytest.skip("needs Landlock")
    place = opened("landlock")
    with tempfile.NamedTemporaryFile(dir="/dev/shm"):
        execution = place.run(
            """
            import contextlib, multiprocessing, os, socket
            from multiprocessing.shared_memory import SharedMemory
            memory, lock = SharedMemory(create=True, size=1 << 16), multiprocessing.Lock()
            again = SharedMemory(memory.name); again.buf[0] = 7
            with lock: print("own", memory.buf[0])
            again.close(); memory.close(); memory.unlink()
            for name, make in {
                "list": os.listdir,
                "folder": lambda path: os.mkdir(f"{path}/codemod-folder"),
                "link": lambda path: os.symlink("/etc/passwd", f"{path}/codemod-link"),
                "pipe": lambda path: os.mkfifo(f"{path}/codemod-pipe"),
                "socket": lambda path: socket.socket(socket.AF_UNIX).bind(f"{path}/codemod-socket"),
            }.items():
                with contextlib.suppress(PermissionError): print(name, make("/dev/shm"))
            print("end")
            """
        )
        assert execution.output.split("\n") == ["own 7", "end", ""], execution


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["overlay", "landlock"])
def test_workers_of_loaders_run(opened: Callable[[str], Place], kind: str) -> None:
    """They hand batches on by shared memory."""
    execution = opened(kind).run(
        """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        for sharing in ("file_descriptor", "file_system"):
            torch.multiprocessing.set_sharing_strategy(sharing)
            loader = DataLoader(TensorDataset(torch.arange(64.0)), batch_size=16, num_workers=2)
            print(sum(batch.sum().item() for batch, in loader))
        """,
        view=View(needed=[path for path in sys.path if os.path.isabs(path)]),
        seconds=120.0,
    )
    assert execution.output.split() == ["2016.0", "2016.0"], execution


#: System V's memory, under a key that both know.
_KEY = 0x0C0DE30D
SHARED = f"""
    import ctypes, mmap, multiprocessing
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget({_KEY}, 4096, 0o666)
    print(ctypes.string_at(libc.shmat(number, None, 0), 5) if number >= 0 else "closed")
    print("semaphores", libc.semget({_KEY}, 1, 0o666) >= 0, "messages", libc.msgget({_KEY}, 0o666) >= 0)
    mmap.mmap(-1, 4096).write(b"own")
    with multiprocessing.Lock(): print("own")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="keys of System V as Linux has them")
@pytest.mark.parametrize("kind", [*MOUNTED, "landlock"])
def test_memory_under_a_known_key_is_not_shared(opened: Callable[[str], Place], kind: str) -> None:
    if kind == "landlock" and (landlock.version() < 1 or os.uname().machine not in ("x86_64", "aarch64")):
        pytest.skip("needs Landlock, and a filter of system calls")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    create = 0o1000
    memory = libc.shmget(_KEY, 4096, create | 0o666)
    locks, messages = libc.semget(_KEY, 1, create | 0o666), libc.msgget(_KEY, create | 0o666)
    assert min(memory, locks, messages) >= 0
    try:
        ctypes.memmove(libc.shmat(memory, None, 0), b"known", 5)
        execution = opened(kind).run(SHARED)
    finally:
        libc.shmctl(memory, 0, None)
        libc.semctl(locks, 0, 0)
        libc.msgctl(messages, 0, None)
    assert execution.output.split("\n") == ["closed", "semaphores False messages False", "own", ""], execution
