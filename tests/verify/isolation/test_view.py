"""What a program sees of the tree, and what stays of what it does."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.verify.isolation.conftest import Place
from verify.isolation import Ending, Limits, View, Workspace
from verify.isolation.launcher import copying


def fingerprint(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Kind and mode, time and contents of everything below ``folder``."""
    seen = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        text = os.readlink(path) if path.is_symlink() else path.read_bytes().hex() if path.is_file() else ""
        seen[str(path)] = (about.st_mode, about.st_mtime_ns, hashlib.sha256(text.encode()).hexdigest())
    return seen


def test_program_sees_changed_files_in_place(place: Place) -> None:
    execution = place.run(
        """
        import inspect, linecache, module, os, pathlib
        print(module.VALUE, inspect.getsource(module), open("module.py").read(), linecache.getline("module.py", 1))
        print(pathlib.Path(module.__file__).parent == pathlib.Path.cwd(), os.getcwd(), os.environ["PWD"])
        """,
        changed={"module.py": b"VALUE = 'changed'\n"},
    )
    assert execution.ending is Ending.EXITED, execution
    assert execution.status == 0, execution.output
    assert execution.output.count("'changed'") == 3
    assert execution.output.startswith("changed ")
    assert "original" not in execution.output
    assert execution.output.split()[-3:] == ["True", *[str(place.workspace.root)] * 2]
    assert (place.root / "module.py").read_text() == "VALUE = 'original'\n"


def test_changed_file_wins_over_a_compiled_one_of_the_same_second(place: Place) -> None:
    source = place.root / "module.py"
    old = source.stat()
    assert place.run("import module, py_compile; print(py_compile.compile('module.py'))").status == 0
    import py_compile

    py_compile.compile(str(source))
    execution = place.run("import module; print(module.VALUE)", changed={"module.py": b"VALUE = 'replaced'\n"})
    assert execution.output == "replaced\n"
    assert source.stat().st_mtime_ns == old.st_mtime_ns


def test_new_folders_and_files_can_be_among_the_changed(place: Place) -> None:
    execution = place.run("import fresh.inner; print(fresh.inner.X)", changed={"fresh/inner.py": b"X = 5\n"})
    assert execution.output == "5\n"
    assert not (place.root / "fresh").exists()


def test_read_only_file_can_be_changed(place: Place) -> None:
    (place.root / "module.py").chmod(0o444)
    assert place.run("import module; print(module.VALUE)", changed={"module.py": b"VALUE = 2"}).output == "2\n"
    assert (place.root / "module.py").stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize("path", ["../module.py", "/etc/hostname", "data/../../x"])
def test_changed_paths_stay_inside_the_tree(place: Place, path: str) -> None:
    with pytest.raises(ValueError, match="not a path inside"):
        place.run("pass", changed={path: b""})


def test_everything_written_to_the_tree_vanishes(place: Place) -> None:
    before = fingerprint(place.root)
    execution = place.run(
        """
        import os, shutil, pathlib
        open("module.py", "w").write("gone")
        open("data/numbers.txt", "r+b").write(b"9")
        os.makedirs("runs/a/b"); open("runs/a/b/model.pt", "wb").write(bytes(100_000))
        os.chmod("data", 0); os.utime("module.py", (0, 0)); os.symlink("/", "everything"); os.link("module.py", "hard")
        os.rename("module.py", "renamed.py"); print(sorted(os.listdir(".")))
        """
    )
    assert execution.status == 0, execution
    assert "'renamed.py', 'runs'" in execution.output
    assert fingerprint(place.root) == before


def test_every_execution_starts_from_the_tree_as_it_is(place: Place) -> None:
    code = "import os; print(os.path.exists('left')); open('left', 'w'); print(open('data/numbers.txt').read())"
    assert place.run(code).output.startswith("False")
    (place.root / "data" / "numbers.txt").write_text("7 8 9")
    assert place.run(code).output == "False\n7 8 9\n"


def test_shared_folder_stays(place: Place) -> None:
    execution = place.run("import os; open(os.environ['SHARED'] + '/record', 'w').write('seen')")
    assert execution.status == 0, execution.output
    assert (place.shared / "record").read_text() == "seen"


@pytest.mark.parametrize("kind", ["overlay", "shown copy", "landlock"])
def test_files_outside_are_the_same_afterwards(
    opened: Callable[[str], Place], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    for folder in (home / ".cache", other):
        folder.mkdir(parents=True)
        (folder / "kept").write_text("kept")
    monkeypatch.setenv("HOME", str(home))
    place = opened(kind)
    place.environment["HOME"] = str(home)
    before = {folder: fingerprint(folder) for folder in (home, other, place.root)}
    execution = place.run(
        """
        import os, pathlib, shutil, sys
        def attempt(what):
            try: what()
            except OSError as error: print(type(error).__name__, error.strerror)
        home = pathlib.Path.home()
        attempt(lambda: (home / "written").write_text("x"))
        for folder in map(pathlib.Path, sys.argv[1:]):
            attempt(lambda: (folder / "kept").write_text("overwritten"))
            attempt(lambda: (folder / "new").write_text("new"))
            attempt(lambda: (folder / "kept").unlink())
            attempt(lambda: os.rename(folder, str(folder) + "-moved"))
            attempt(lambda: shutil.rmtree(folder))
        attempt(lambda: open("/tmp/codemod-test-stray", "w"))
        """,
        str(home / ".cache"),
        str(other),
    )
    assert execution.status == 0, execution.output
    assert {folder: fingerprint(folder) for folder in (home, other, place.root)} == before
    assert not Path("/tmp/codemod-test-stray").exists()


def test_home_and_temporary_folder_can_be_written(place: Place) -> None:
    execution = place.run(
        """
        import os, pathlib, tempfile
        for folder in (pathlib.Path.home(), pathlib.Path(tempfile.gettempdir())):
            (folder / "codemod-test-stray").write_text("x")
        """
    )
    assert execution.status == 0, execution.output
    assert not Path.home().joinpath("codemod-test-stray").exists()
    assert not Path("/tmp/codemod-test-stray").exists()


def test_hard_links_do_not_carry_writes_out(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("precious")
    os.link(outside, place.root / "linked.txt")
    assert place.run("open('linked.txt', 'w').write('lost'); print(open('linked.txt').read())").output == "lost\n"
    assert outside.read_text() == "precious"


def test_links_out_of_the_tree_do_not_carry_writes_out(place: Place, tmp_path: Path) -> None:
    store = tmp_path / "store"
    (store / "inner").mkdir(parents=True)
    (store / "file").write_text("precious")
    (store / "inner" / "file").write_text("precious")
    (store / "back").symlink_to(store)
    (place.root / "folder").symlink_to(store)
    (place.root / "file").symlink_to(store / "file")
    (place.root / "relative").symlink_to("../store/file")
    (place.root / "dangling").symlink_to("/nowhere/at/all")
    execution = place.run(
        """
        paths = ("folder/file", "folder/inner/file", "file", "relative")
        print([open(path).read() for path in paths])
        for path in paths:
            try: open(path, "w").write("lost")
            except OSError as error: print(error.strerror)
        """,
        # A copy has a temporary folder of its own, and this one lies in that of everybody.
        view=View(exposed=(str(store),)),
    )
    assert execution.status == 0, execution.output
    assert execution.output.startswith(str(["precious"] * 4))
    for path in ("file", "inner/file"):
        assert (store / path).read_text() == "precious"


def test_links_inside_the_tree_lead_to_the_same_copy(place: Place) -> None:
    (place.root / "near").symlink_to("data/numbers.txt")
    (place.root / "far").symlink_to(place.root / "data" / "numbers.txt")
    (place.root / "folder").symlink_to(place.root / "data")
    execution = place.run(
        "open('data/numbers.txt', 'w').write('0')\n"
        "for path in ('near', 'far', 'folder/numbers.txt'): print(open(path).read(), end=' ')"
    )
    assert execution.output == "0 0 0 "
    assert (place.root / "data" / "numbers.txt").read_text() == "1 2 3\n"


def test_read_only_tree_can_be_run(place: Place) -> None:
    (place.root / "data").chmod(0o555)
    place.root.chmod(0o555)
    try:
        execution = place.run("import module; print(module.VALUE, open('data/numbers.txt').read())")
        assert execution.output == "original 1 2 3\n\n"
    finally:
        place.root.chmod(0o755)
        (place.root / "data").chmod(0o755)


def test_program_that_deletes_its_own_folder(place: Place) -> None:
    before = fingerprint(place.root)
    execution = place.run(
        "import os, shutil; shutil.rmtree(os.getcwd(), ignore_errors=True); print(os.listdir('/')[:0])"
    )
    assert execution.ending is Ending.EXITED
    assert fingerprint(place.root) == before


def test_unreadable_and_very_deep_folders_are_cleaned_up(place: Place) -> None:
    execution = place.run(
        """
        import os
        os.makedirs("closed/inner"); open("closed/inner/file", "w").close()
        os.chmod("closed/inner", 0); os.chmod("closed", 0)
        for _ in range(1500):
            os.mkdir("deeper-and-deeper"); os.chdir("deeper-and-deeper")
        print("done")
        """
    )
    assert execution.output == "done\n"


def test_names_of_any_bytes(place: Place) -> None:
    odd = os.fsdecode(b"n\xff:,\\ \n.py")
    (place.root / odd).write_text("1")
    execution = place.run(f"import os; print(open({odd!r}).read())", changed={odd: b"2"})
    assert execution.output == "2\n"


def test_tree_whose_path_has_characters_that_mount_options_use(tmp_path: Path, shared: Path) -> None:
    root = tmp_path / "a:b,c\\d e\tf"
    root.mkdir()
    with Workspace(root) as workspace:
        execution = workspace.execute(
            [sys.executable, "-c", "import os; print(os.getcwd()); open('x', 'w')"],
            cwd=root,
            changed={},
            environment=dict(os.environ),
            shared=shared,
            limits=Limits(20.0),
        )
    assert execution.output == f"{root}\n", execution
    assert list(root.iterdir()) == []


def test_two_at_once_on_the_same_tree_do_not_meet(place: Place) -> None:
    from concurrent.futures import ThreadPoolExecutor

    code = (
        "import os, sys, time; open(sys.argv[1], 'w'); time.sleep(0.3); "
        "print(sorted(set(os.listdir('.')) & {'1', '2'}))"
    )

    def run(name: str) -> str:
        return place.workspace.execute(
            [sys.executable, "-c", code, name],
            cwd=place.root,
            changed={},
            environment=place.environment,
            shared=place.shared,
            limits=Limits(20.0),
        ).output

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(run, "12")) == ["['1']\n", "['2']\n"]


def test_seen_leads_to_the_tree_and_leaves_other_paths(place: Place) -> None:
    inner = place.workspace.seen(place.root / "data" / "numbers.txt")
    execution = place.run(f"print(open({str(inner)!r}).read())")
    assert execution.output == "1 2 3\n\n"
    assert place.workspace.seen(sys.executable) == Path(sys.executable)


def test_python_path_leads_into_the_tree_that_is_seen(place: Place) -> None:
    place.environment["PYTHONPATH"] = str(place.root / "data")
    execution = place.run("import extra; print(extra.__file__)", changed={"data/extra.py": b""})
    assert execution.output == f"{place.workspace.root}/data/extra.py\n"


def test_no_such_tree(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError):
        Workspace(tmp_path / "nowhere")


def test_copy_too_large_is_refused(opened: Callable[[str], Place], monkeypatch: pytest.MonkeyPatch) -> None:
    place = opened("bare copy")
    for number in range(300):
        (place.root / "data" / str(number)).touch()
    # The launcher is another process and reads its own constant.
    monkeypatch.setattr(copying, "MOST_ENTRIES", 100)
    copy = copying.Copy(str(place.root), str(place.shared / "copy"), protected=False, alive=lambda: None)
    with pytest.raises(copying.TooLarge, match="too large to copy"):
        copy.make()


def test_more_bytes_than_are_copied_are_refused(opened: Callable[[str], Place]) -> None:
    place = opened("bare copy")
    with open(place.root / "data.bin", "wb") as data, open(place.shared / "other", "wb") as other:
        if copying._shared(data.fileno(), other.fileno()):
            pytest.skip("the file system shares data between copies")
        data.truncate(copying.MOST_BYTES + 1)
    execution = place.run("pass")
    assert execution.ending is Ending.NOT_STARTED
    assert "too large to copy" in execution.notes[-1]


def test_version_control_caches_and_environments_are_not_copied(opened: Callable[[str], Place]) -> None:
    place = opened("bare copy")
    for path in (".git/config", "env/pyvenv.cfg", "__pycache__/x.pyc", "kept/__init__.py"):
        (place.root / path).parent.mkdir()
        (place.root / path).touch()
    assert (
        place.run("import os; print(sorted(os.listdir('.')))").output == "['data', 'kept', 'module.py', 'script.py']\n"
    )
