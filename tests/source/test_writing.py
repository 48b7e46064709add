from __future__ import annotations

import errno
import multiprocessing
import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codemods.source import writing
from codemods.source.errors import ChangedSinceRead, SourceError, Unencodable, Unwritable
from codemods.source.files import SourceFile, read_source
from codemods.source.writing import write_atomically

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_bytes(b"x = 1\n")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


def refused(source: SourceFile, text: str, kind: type[SourceError]) -> str:
    """The reason of the refusal, after which the folder is as it was."""
    folder = Path(os.path.realpath(source.absolute)).parent
    before = contents(folder)
    with pytest.raises(kind) as caught:
        write_atomically(source, text)
    assert caught.value.path == source.path
    assert contents(folder) == before
    return caught.value.reason


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\r\ny = 2\rz = 3\n",
        b"\xef\xbb\xbfx = 1\r\n",
        "# coding: gbk\r\nx = '中文'\r\n".encode("gbk"),
        "# coding: latin-1\nx = 'ä'".encode("latin-1"),
    ],
)
def test_every_other_byte_stays(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    source = read_source(file, "a.py")
    write_atomically(source, source.text + "# new")
    assert file.read_bytes() == data + b"# new"
    assert os.listdir(file.parent) == ["a.py"]


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o775, 0o4755])
def test_mode_stays(file: Path, mode: int) -> None:
    file.chmod(mode)
    old = os.umask(0o077)
    try:
        write_atomically(read_source(file), "y\n")
    finally:
        os.umask(old)
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert file.read_bytes() == b"y\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_owner_stays(file: Path) -> None:
    os.chown(file, 1234, 4321)
    file.chmod(0o640)
    write_atomically(read_source(file), "y\n")
    now = file.stat()
    assert (now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)) == (1234, 4321, 0o640)


def test_extended_attributes_stay(file: Path) -> None:
    try:
        os.setxattr(file, "user.note", b"mine")
    except (AttributeError, OSError):
        pytest.skip("no extended attributes here")
    write_atomically(read_source(file), "y\n")
    assert os.getxattr(file, "user.note") == b"mine"


def test_goes_through_links_and_leaves_them(tmp_path: Path, file: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "one.py").symlink_to("../a.py")
    (tmp_path / "links" / "two.py").symlink_to("one.py")
    write_atomically(read_source(tmp_path / "links" / "two.py"), "y\n")
    assert file.read_bytes() == b"y\n"
    assert os.readlink(tmp_path / "links" / "two.py") == "one.py"
    assert os.readlink(tmp_path / "links" / "one.py") == "../a.py"
    assert sorted(os.listdir(tmp_path / "links")) == ["one.py", "two.py"]


def test_the_same_bytes_are_not_written(file: Path) -> None:
    source = read_source(file)
    before = file.stat()
    write_atomically(source, source.text)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_refuses_a_file_that_changed(tmp_path: Path, file: Path) -> None:
    source = read_source(file, "a.py")
    file.write_bytes(b"x = 2\n")
    assert "changed since it was read" in refused(source, "y\n", ChangedSinceRead)
    file.write_bytes(b"x = 1\n")
    os.utime(file, (1, 1))
    write_atomically(source, "y\n")  # The bytes decide, not the time.
    assert "changed" in refused(source, "z\n", ChangedSinceRead)
    file.unlink()
    assert "removed" in refused(source, "z\n", ChangedSinceRead)
    file.mkdir()
    assert "regular file" in refused(source, "z\n", ChangedSinceRead)


def test_refuses_a_link_that_leads_elsewhere_now(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b.py").write_bytes(b"x = 1\n")
    link = tmp_path / "link.py"
    link.symlink_to("a.py")
    source = read_source(link)
    copied = writing._copy_attributes

    def relink(*arguments: object) -> None:
        link.unlink()
        link.symlink_to("b.py")
        copied(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(writing, "_copy_attributes", relink)
    assert "link" in refused(source, "y\n", ChangedSinceRead)


def test_a_change_at_the_last_moment_is_seen(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = read_source(file)
    synced = os.fsync

    def edit_meanwhile(descriptor: int) -> None:
        synced(descriptor)
        file.write_bytes(b"edited\n")

    monkeypatch.setattr(os, "fsync", edit_meanwhile)
    with pytest.raises(ChangedSinceRead):
        write_atomically(source, "y\n")
    assert contents(file.parent) == {"a.py": b"edited\n"}


def test_refuses_what_is_read_only_even_for_root(file: Path) -> None:
    source = read_source(file)
    file.chmod(0o444)
    assert refused(source, "y\n", Unwritable) == "read-only file"
    file.chmod(0o644)
    file.parent.chmod(0o555)
    try:
        assert refused(source, "y\n", Unwritable) == "read-only folder"
    finally:
        file.parent.chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_refuses_what_belongs_to_others() -> None:
    def reason(path: Path) -> str:
        reader, writer = os.pipe()
        source = read_source(path)
        child = os.fork()
        if not child:
            os.setgid(65534)
            os.setuid(65534)
            try:
                write_atomically(source, "y\n")
                answer = "written"
            except BaseException as error:
                answer = error.reason if isinstance(error, Unwritable) else repr(error)
            os.write(writer, answer.encode())
            os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader) as stream:
            return stream.read()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        path = folder / "a.py"
        path.write_bytes(b"x\n")
        assert reason(path) == "no permission to write the file"
        path.chmod(0o666)
        assert reason(path) == "no permission to write the folder"
        # Of a folder that may not be listed there is no lock, of a file of another owner no way to keep the owner.
        folder.chmod(0o733)
        assert reason(path) == "written"
        assert path.stat().st_uid == 65534
        assert stat.S_IMODE(path.stat().st_mode) == 0o666
        assert contents(folder) == {"a.py": b"y\n"}


@pytest.mark.parametrize("step", ["open", "fsync", "replace", "chmod"])
@pytest.mark.parametrize(
    ("number", "reason"), [(errno.ENOSPC, "no space left on device"), (errno.EROFS, "read-only file system")]
)
def test_whatever_the_system_refuses_leaves_nothing_behind(
    file: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int, reason: str
) -> None:
    source = read_source(file)
    real = getattr(os, step)

    def refuse(path: object, *arguments: object) -> object:
        if step == "open" and ".tmp" not in str(path):
            return real(path, *arguments)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, step, refuse)
        with pytest.raises(Unwritable, match=reason):
            write_atomically(source, "y\n")
    assert contents(file.parent) == {"a.py": b"x = 1\n"}


def test_an_interrupt_leaves_nothing_behind(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = read_source(file)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(source, "y\n")
    assert contents(file.parent) == {"a.py": b"x = 1\n"}


def test_a_folder_that_cannot_be_synced_is_no_failure(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = read_source(file)
    real = os.fsync

    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    write_atomically(source, "y\n")
    assert contents(file.parent) == {"a.py": b"y\n"}


def test_file_and_then_folder_are_synced(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = read_source(file)
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def note_sync(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        sync(descriptor)

    def note_replace(old: str, new: str) -> None:
        done.append("replace")
        assert Path(old).read_bytes() == b"y\n"
        replace(old, new)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    write_atomically(source, "y\n")
    assert done == ["file", "replace", "folder"]


def test_refuses_text_and_encodings_that_would_damage_the_file(file: Path) -> None:
    file.write_bytes(b"# coding: latin-1\n")
    assert "latin" in read_source(file).encoding or read_source(file).encoding == "iso-8859-1"
    assert "cannot be written" in refused(read_source(file), "# 中\n", Unencodable)
    file.write_bytes(b"# coding: utf-7\nx = '+AGE-'\n")  # reads as 'a', which would be written plainly
    assert "writing it back would change other bytes" in refused(read_source(file), "y\n", Unwritable)


def test_what_a_killed_run_left_is_cleared_away(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = read_source(file)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: os._exit(9))
        child = os.fork()
        if not child:
            write_atomically(source, "half\n")
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert len(contents(file.parent)) == 2
    write_atomically(source, "y\n")
    assert contents(file.parent) == {"a.py": b"y\n"}


def test_a_planted_link_is_not_written_through(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "sub" / "victim"
    victim.parent.mkdir()
    victim.write_bytes(b"precious")
    made: list[str] = []
    real = os.open

    def note(path: str, *arguments: int) -> int:
        made.append(str(path))
        return real(path, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", note)
        write_atomically(read_source(file), "y\n")
    (temporary,) = (path for path in made if path.endswith(".tmp"))
    os.symlink(victim, temporary)
    write_atomically(read_source(file), "z\n")
    assert victim.read_bytes() == b"precious"
    assert contents(tmp_path) == {"a.py": b"z\n"}


def test_without_locks_it_still_writes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    write_atomically(read_source(file), "y\n")
    assert contents(file.parent) == {"a.py": b"y\n"}


def test_a_lock_that_is_never_given_back_is_not_waited_for_for_ever(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr(writing, "_LOCK_PATIENCE", 0.02)
    descriptor = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert "locked" in refused(read_source(file), "y\n", Unwritable)
    finally:
        os.close(descriptor)


def test_between_the_check_and_the_replacing_nobody_gets_in(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = read_source(file)
    results: list[str] = []
    real = os.replace

    def slowly(old: str, new: str) -> None:
        time.sleep(0.05)
        real(old, new)

    def write(text: str) -> None:
        try:
            write_atomically(source, text)
        except ChangedSinceRead:
            results.append("refused")
        else:
            results.append(text)

    monkeypatch.setattr(os, "replace", slowly)
    threads = [threading.Thread(target=write, args=(f"{number}\n",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = [text for text in results if text != "refused"]
    assert len(results) == 4
    assert contents(file.parent) == {"a.py": written[0].encode()}
    assert len(written) == 1


def in_processes(count: int, work: Callable[[int], None]) -> None:
    processes = [FORK.Process(target=work, args=(number,)) for number in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0


def test_of_two_processes_the_second_is_refused(file: Path) -> None:
    both_have_read = FORK.Barrier(2)

    def work(number: int) -> None:
        source = read_source(file)
        both_have_read.wait(30)
        try:
            write_atomically(source, f"{source.text}{number}\n")
            outcome = "written"
        except ChangedSinceRead:
            outcome = "refused"
        (file.parent / f"outcome-{number}").write_text(outcome)

    in_processes(2, work)
    outcomes = [(file.parent / f"outcome-{number}").read_text() for number in (0, 1)]
    assert sorted(outcomes) == ["refused", "written"]
    assert file.read_text() == f"x = 1\n{outcomes.index('written')}\n"


def test_processes_that_try_again_lose_no_edit(file: Path) -> None:
    def work(number: int) -> None:
        for turn in range(15):
            while True:
                source = read_source(file)
                try:
                    write_atomically(source, f"{source.text}# {number} {turn}\n")
                except ChangedSinceRead:
                    continue
                break

    in_processes(3, work)
    lines = file.read_text().splitlines()
    assert sorted(lines) == sorted(["x = 1", *(f"# {number} {turn}" for number in range(3) for turn in range(15))])
    assert os.listdir(file.parent) == ["a.py"]


KILLED = """
import sys
from codemods.source.files import read_source
from codemods.source.writing import write_atomically
path, size = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
turn = 0
while True:
    turn += 1
    write_atomically(read_source(path), f"# {turn % 10}\\n" * size)
"""


@pytest.mark.slow
def test_killed_at_any_moment_the_file_is_old_or_new(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    size = 20_000
    file.write_text("# 0\n" * size)
    file.chmod(0o751)
    chance = random.Random(0)
    seen = set()
    for _ in range(60):
        child = subprocess.Popen([sys.executable, "-c", KILLED, file, str(size)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(chance.uniform(0, 0.03))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        lines = file.read_text().splitlines()
        assert len(lines) == size
        assert len(set(lines)) == 1
        assert stat.S_IMODE(file.stat().st_mode) == 0o751
        assert len(os.listdir(tmp_path)) <= 2
        seen.add(lines[0])
    assert len(seen) > 1
    write_atomically(read_source(file), "done\n")
    assert contents(tmp_path) == {"a.py": b"done\n"}
