"""Parts of the launcher that can be looked at alone, and the users and systems that are not the one at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from verify.isolation import Limits, machine_memory
from verify.isolation.folders import TemporaryFolder
from verify.isolation.launcher import processes
from verify.isolation.launcher.mounts import Mount, inside
from verify.isolation.launcher.places import writable_places
from verify.isolation.launcher.processes import Process, descendants, list_processes
from verify.isolation.launcher.removal import remove
from verify.isolation.launcher.watching import Limits as Limited
from verify.isolation.launcher.watching import Watch, size_of

PROJECT = Path(__file__).parents[3]


def test_half_of_the_memory_is_the_default() -> None:
    assert Limits(1.0).memory_bytes == machine_memory() // 2
    assert Limits(1.0, memory=5).memory_bytes == 5


@pytest.mark.parametrize(
    ("resident", "looks", "ending"),
    [
        # It may be that processes share what each of them has.
        (900, (1.0, 10.5), ""),
        # But a look that does not come back must not let memory run out.
        (900, (1.0, 10.5, 11.5), "MEMORY"),
        (90, (1.0, 10.5, 11.5), ""),
    ],
)
def test_a_look_into_processes_is_not_waited_for_without_end(
    resident: int, looks: tuple[float, ...], ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "list_processes", lambda *_: [Process(5, os.getpid(), 5, resident, 1)])
    reader: Any = SimpleNamespace(busy=False, pid=6)
    reader.ask = lambda *_, **__: setattr(reader, "busy", True)
    watch = Watch(5, 0, 0, reader, Limited(60.0, 500, 1 << 40, 100), None, [], [])
    for now in looks:
        watch._look(now)
    assert watch.outcome.ending == ending


def test_inside_goes_by_names_and_not_by_letters() -> None:
    assert inside("/a/b", "/a")
    assert inside("/a", "/a")
    assert inside("/a", "/")
    assert not inside("/ab", "/a")
    assert not inside("/a", "/a/b")


def test_descendants_by_parent_and_by_group() -> None:
    listed = [Process(*row, resident=1, threads=1) for row in ((2, 1, 2), (3, 2, 3), (4, 3, 3), (5, 1, 3), (6, 1, 6))]
    assert {process.pid for process in descendants(listed, 2)} == {3, 4}
    assert {process.pid for process in descendants(listed, 2, frozenset({3}))} == {3, 4, 5}


@pytest.mark.skipif(shutil.which("ps") is None, reason="no ps here")
def test_ps_sees_what_the_proc_file_system_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen(["sleep", "1000"])
    try:
        time.sleep(0.1)
        shown = next(process for process in list_processes() if process.pid == child.pid)
        monkeypatch.setattr(sys, "platform", "darwin")
        listed = next(process for process in list_processes() if process.pid == child.pid)
        assert listed.parent == shown.parent == os.getpid()
        assert listed.group == shown.group
        assert listed.resident == pytest.approx(shown.resident, rel=0.5, abs=1 << 20)
    finally:
        child.kill()
        child.wait()


def test_memory_of_a_process_in_proportion() -> None:
    total, shared = processes.proportional([os.getpid()])
    assert 1 << 20 < total < 1 << 34
    assert 0 <= shared <= total
    assert processes.proportional([2**30]) == (0, 0)


def test_writable_places_are_the_topmost_and_what_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "mine" / "inner").mkdir(parents=True)
    point = str(tmp_path / "mine")
    mounts = [Mount(1, "/", frozenset({"ro"}), "ext4", "x"), Mount(2, point, frozenset({"rw"}), "ext4", "x")]
    assert writable_places(mounts, [], owned=False) == [point]
    assert writable_places(mounts, [f"{point}/inner"], owned=False) == [point]
    other = tmp_path / "other"
    other.mkdir()
    assert writable_places(mounts, [str(other)], owned=False) == [point, str(other)]
    read_only = [mount._replace(options=frozenset({"ro"})) for mount in mounts]
    assert writable_places(read_only, [], owned=False) == []


def test_removal_takes_everything_and_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    top = tmp_path / "top"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "file").touch()
    (top / "a" / "link").symlink_to(outside)
    os.mkfifo(top / "pipe")
    (top / "a" / "b").chmod(0)
    (top / "a").chmod(0)
    remove(str(top))
    assert not top.exists()
    assert (outside / "kept").exists()
    remove(str(top))


def test_size_counts_blocks_and_no_links(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100_000))
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert 100_000 <= size_of(str(tmp_path)) < 1 << 20


def test_folder_in_use_is_not_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from verify.isolation import folders

    monkeypatch.setattr(folders, "_YOUNG", 0.0)
    used = TemporaryFolder(tmp_path)
    folders._remove_stale(tmp_path)
    assert used.path.exists()
    os.close(used.lock)
    folders._remove_stale(tmp_path)
    assert not used.path.exists()


PROGRAM = """
    import os, sys
    from pathlib import Path
    from verify.isolation import Limits, Workspace
    base = Path(sys.argv[1]); root = base / "tree"; shared = base / "shared"
    root.mkdir(); shared.mkdir(); (root / "module.py").write_text("X = 1")
    code = "import module, os; open('out', 'w'); open('module.py', 'a').write('y'); " \\
           "open(os.environ['SHARED'] + '/record', 'w'); print(module.X, os.getuid(), os.getcwd())"
    with Workspace(root, mode=sys.argv[2]) as workspace:
        done = workspace.execute([sys.executable, "-c", code], cwd=root, changed={"module.py": b"X = 2"}, shared=shared,
                                 environment={**os.environ, "SHARED": str(shared)}, limits=Limits(30.0))
    assert done.output == f"2 {os.getuid()} {root}\\n", done
    assert os.listdir(root) == ["module.py"] and (root / "module.py").read_text() == "X = 1"
    assert os.listdir(shared) == ["record"]
    print("fine", done.sandbox)
    """


def run_as(prefix: list[str], python: str, base: Path, mode: str) -> str:
    """Execute PROGRAM behind ``prefix`` and return what it printed."""
    done = subprocess.run(
        [*prefix, python, "-c", textwrap.dedent(PROGRAM), str(base), mode],
        cwd="/",
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(base),
            "PYTHONPATH": str(PROJECT),
            "TMPDIR": str(base),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("mode", ["overlay", "copy"])
def test_ordinary_user(mode: str) -> None:
    python = next((path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if os.access(path, os.X_OK)), "")
    become = ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups"]
    ask = [*become, python, "-c", "import sys, os; os.listdir(sys.argv[1]); sys.exit(sys.version_info < (3, 10))"]
    usable = python and shutil.which("setpriv")
    if not usable or subprocess.run([*ask, str(PROJECT / "verify")], capture_output=True, check=False).returncode:
        pytest.skip("no Python 3.10 that another user can start, or the project is closed to it")
    if subprocess.run([*become, "unshare", "-Urm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("ordinary users have no namespaces here")
    # In the system's temporary folder: the way to that of the test is closed to others.
    base = Path(subprocess.run([*become, "mktemp", "-d", "-p", "/tmp"], capture_output=True, text=True).stdout.strip())
    try:
        assert "real path" in run_as(become, python, base, mode)
        assert sorted(os.listdir(base)) == ["shared", "tree"]
    finally:
        remove(str(base))


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root can build a container's file system")
def test_container_whose_root_is_an_overlay(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        set -e
        mount -t tmpfs none "$1"; mkdir "$1/upper" "$1/work" "$1/root"
        mount -t overlay none -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
        cd "$1/root"; for each in proc sys dev; do mount --rbind /$each $each; done
        mkdir -p old; pivot_root . old; umount -l /old; mkdir -p "$2"; cd /; shift 2; exec "$@"
        """
    )
    (tmp_path / "container").mkdir()
    base = tmp_path / "base"
    prefix = ["unshare", "-m", "bash", "-c", script, "-", str(tmp_path / "container"), str(base)]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no such container can be built here")
    assert run_as(prefix, sys.executable, base, "overlay").startswith("fine overlays")


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root can give it up")
def test_root_without_the_right_to_mount(tmp_path: Path) -> None:
    prefix = ["setpriv", "--bounding-set", "-sys_admin"]
    if not shutil.which("setpriv") or subprocess.run([*prefix, "unshare", "-Urm", "true"], check=False).returncode:
        pytest.skip("no user namespaces here")
    assert "real path" in run_as(prefix, sys.executable, tmp_path, "auto")
