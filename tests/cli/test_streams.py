"""What stands in the way of a run from outside: full disks, pipes, folders that are closed or gone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Codemod, Ran
from tests.cli.test_errors import ENVIRONMENT

HAS_FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
HAS_PIPES = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")


def _run(*arguments: str, cwd: Path, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tests.cli.fake_codemod", *arguments]
    return subprocess.run(command, cwd=cwd, env=ENVIRONMENT, timeout=60, **streams)


@HAS_FULL
@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--version", "check"],
        ["--help"],
        ["check", "--help"],
        ["batch", "-h"],
        ["batch", "init", "--help"],
        ["--show-completion", "bash"],
    ],
    ids=" ".join,
)
def test_full_standard_output_is_told(tmp_path: Path, arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = _run(*arguments, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE)
    told = b"codemod: cannot write standard output: no space left on device\n"
    assert (done.returncode, done.stderr) == (2, told)


@HAS_FULL
@pytest.mark.parametrize("arguments", [["check", "nowhere"], ["check", "--nope"]], ids=" ".join)
def test_an_error_that_cannot_be_told_keeps_its_status(tmp_path: Path, arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = _run(*arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=full)
    assert (done.returncode, done.stdout) == (2, b"")


@HAS_PIPES
@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "-o", "pipe"],
        ["check", "--also", "json=pipe"],
        ["check", "-o", "link"],
        ["apply", "--dry-run", "--patch", "pipe"],
        ["rules", "-o", "pipe"],
    ],
    ids=" ".join,
)
def test_a_named_pipe_is_no_output(codemod: Codemod, folder: Path, arguments: list[str]) -> None:
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    (folder / "a.py").write_text("x = WRONG\n")
    ran = codemod(*arguments)
    assert ran.status == 2
    assert "a named pipe, which waits for somebody to read it; name a file" in ran.err


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="no /dev/fd")
def test_a_pipe_of_the_shell_takes_a_report(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = WRONG\n")
    for name in ("/dev/stdout", "/dev/fd/1"):
        done = _run("check", "a.py", "-o", name, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert (done.returncode, done.stderr) == (1, b"")
        assert done.stdout.startswith(b"a.py:1:")


@pytest.mark.skipif(sys.platform == "win32", reason="a working directory cannot be removed there")
@pytest.mark.parametrize("command", [["check"], ["apply"], ["clean"], ["explain", "a.py:3"], ["verify", "a.py"]])
def test_a_working_directory_that_is_gone_is_told(codemod: Codemod, folder: Path, command: list[str]) -> None:
    (folder / "gone").mkdir()
    os.chdir("gone")
    (folder / "gone").rmdir()
    ran = codemod(*command)
    assert (ran.status, ran.err) == (
        2,
        "codemod: the working directory is gone; change to a folder that is there\n",
    )


def _closed(folder: Path, ask: Callable[..., Any]) -> Callable[..., Any]:
    lists = ask is os.scandir

    def asked(path: Any = ".", *more: Any, **options: Any) -> Any:
        named = os.path.join(os.getcwd(), path) if isinstance(path, str | os.PathLike) else ""
        if named.startswith(f"{folder}{os.sep}") or (lists and named == str(folder)):
            raise PermissionError(13, os.strerror(13), path)
        return ask(path, *more, **options)

    return asked


def test_a_folder_that_is_closed_to_us_is_skipped(
    codemod: Codemod, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sub").mkdir()
    (folder / "a.py").write_text("x = 1\n")
    # Root may enter any folder.
    for name in ("stat", "lstat", "scandir"):
        monkeypatch.setattr(os, name, _closed(folder / "sub", getattr(os, name)))
    ran = codemod("check", "sub", "--no-cache")
    assert (ran.status, ran.err) == (1, "")
    assert b"sub: skipped: permission denied" in ran.out
    ran = codemod("check", "a.py", "sub", "--no-cache", "--format", "sarif")
    assert (ran.status, ran.err) == (1, "")
    assert "sub" in ran.out.decode()


def test_what_else_is_closed_to_us_is_named(codemod: Codemod, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise PermissionError(13, os.strerror(13), "sub/known.json")

    (folder / "a.py").write_text("x = 1\n")
    monkeypatch.setattr("codemods.checking.scope.load_baseline", refuse)
    ran = codemod("check", "a.py", "--baseline", "known.json")
    assert (ran.status, ran.err) == (2, "codemod: sub/known.json: permission denied\n")


def test_an_error_of_the_system_that_names_nothing_stays_ours(
    codemod: Codemod, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise PermissionError("no")

    (folder / "a.py").write_text("x = 1\n")
    monkeypatch.setattr("codemods.checking.scope.load_baseline", refuse)
    assert "internal error" in codemod("check", "a.py", "--baseline", "known.json").err


@pytest.fixture
def piped(codemod: Codemod, monkeypatch: pytest.MonkeyPatch) -> Codemod:
    """Run ``codemod`` as a process that knows its command line."""

    def run(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "argv", ["codemod", *arguments])
        return codemod(*arguments, stdin=stdin)

    return run


def test_standard_input_is_told_what_fits_it(piped: Codemod) -> None:
    text = b"x = WRONG\ny = RISKY\nz = LEFT\n"
    told = piped("check", "-", stdin=text).out.decode()
    assert "fixable: codemod apply -\n" in told
    assert "codemod apply - --unsafe\n" in told
    assert "explain" not in told
    named = piped("check", "--stdin-filename", "sub/a.py", "-", "-v", stdin=text).out.decode()
    assert "fixable: codemod apply --stdin-filename sub/a.py -\n" in named
    assert "fixable: codemod apply -\n" in piped("check", "-", "--report-unused-ignores", stdin=text).out.decode()
    assert piped("apply", "--dry-run", "-", stdin=text).err.count("codemod apply - prints the new text\n") == 1
    assert "nothing was written" not in piped("apply", "-", stdin=text).err


def test_standard_input_that_cannot_be_read_is_not_to_be_left_out(piped: Codemod) -> None:
    ran = piped("check", "-", stdin=b"x = (\n")
    assert ran.status == 1
    assert b"skipped" in ran.out
    assert b"--exclude" not in ran.out


def test_an_empty_command_is_told_by_the_option_that_was_typed(codemod: Codemod, folder: Path) -> None:
    (folder / "a.py").write_text("x = WRONG\n")
    for given in ("", "'", "python", "none.py"):
        for option, command in (("--verify", ["apply", "a.py"]), ("--entry", ["verify"])):
            ran = codemod(*command, option, given)
            assert ran.status == 2
            assert ran.err.startswith(f"codemod: {option}"), ran.err


@pytest.mark.parametrize(("behind", "named"), [("abc", "'abc'"), ("", "nothing"), ("12x", "'12x'")])
def test_explain_wants_a_number_behind_the_colon(codemod: Codemod, folder: Path, behind: str, named: str) -> None:
    (folder / "a.py").write_text("x = 1\n")
    ran = codemod("explain", f"a.py:{behind}")
    assert (ran.status, ran.err) == (
        2,
        f"codemod: a.py:{behind}: {named} behind the colon; a line is a number: a.py:1\n",
    )
    assert "no rule is called" in codemod("explain", f"gone.py:{behind}").err


def test_what_could_not_be_saved_is_left(codemod: Codemod, folder: Path) -> None:
    (folder / "a.py").write_text("x = WRONG\n")
    (folder / "a.py").chmod(0o444)
    (folder / "b.py").write_text("x = WRONG\n")
    ran = codemod("apply", "a.py", "b.py")
    assert ran.status == 2
    assert b"2 files, 1 finding fixed in 1 file, 1 left, 1 not saved\n" in ran.out
    assert b"wrong  1 left\n" in ran.out
    (folder / "a.py").chmod(0o644)
    assert b"1 finding fixed in 1 file, 0 left\n" in codemod("apply", "a.py", "b.py").out


@pytest.mark.parametrize("format", ["text", "full", "json", "json-lines", "junit", "checkstyle", "rdjson"])
def test_no_report_makes_a_server_do_anything(codemod: Codemod, folder: Path, format: str) -> None:
    said = "##vso[task.setvariable variable=x]"
    (folder / f"{said}.py").write_text("RISKY\n")
    ran = codemod("check", "--format", format, ".")
    assert b"setvariable" in ran.out
    assert "##vso[" not in ran.out.decode() + ran.err
