"""``codemod check``: what it says, where, and with which status."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Codemod


def test_a_folder_without_python_is_told(codemod: Codemod, folder: Path) -> None:
    (folder / "notes.txt").write_text("x = WRONG\n")
    ran = codemod("check", ".")
    assert (ran.status, ran.out.decode()) == (0, "0 files, 0 findings, 0 fixable\n")
    assert ran.err == "codemod: no Python file or notebook in .\n"
    assert codemod("check", ".", "-q").err == ""


def test_status_tells_whether_there_are_findings(codemod: Codemod, folder: Path) -> None:
    (folder / "good.py").write_text("x = 1\n")
    (folder / "bad.py").write_text("x = WRONG\n")
    assert codemod("check", "good.py").status == 0
    ran = codemod("check", ".")
    assert (ran.status, ran.err) == (1, "")
    assert ran.out.decode().splitlines() == [
        "bad.py:1:5: wrong [exact] WRONG is here",
        "2 files, 1 finding, 1 fixable",
        "  wrong  1",
        "1 fixable: codemod apply",
    ]


def test_quiet_and_verbose(codemod: Codemod, folder: Path) -> None:
    (folder / "bad.py").write_text("x = WRONG\ny = ADVICE\n")
    quiet = codemod("check", "-q", ".").out.decode().splitlines()
    assert quiet == ["bad.py:1:5: wrong [exact] WRONG is here", "bad.py:2:5: advice [advice] ADVICE is here"]
    verbose = codemod("check", "-v", ".").out.decode()
    assert "    bad.py:1: graph produced here\n    remedy: another word\n" in verbose
    assert "    apply leaves it: advice at bad.py:2 is advice\n" in verbose


def test_json_has_the_promised_shape(codemod: Codemod, folder: Path) -> None:
    (folder / "bad.py").write_text("x = 1\ny = (WRONG, RISKY)\n")
    (folder / "old.py").write_text("x = 1\n\nprint 'x'\n")
    ran = codemod("check", ".", "--format", "json")
    report = json.loads(ran.out)
    assert (ran.status, ran.err) == (1, "")
    assert report["version"] == 1
    first, second = report["findings"]
    promised = {
        "rule": "wrong",
        "path": "bad.py",
        "line": 2,
        "column": 6,
        "end_line": 2,
        "end_column": 11,
        "promise": "exact",
        "fixable": True,
        "message": "WRONG is here",
        "trail": [{"path": "bad.py", "line": 2, "note": "graph produced here"}],
    }
    assert promised.items() <= first.items()
    assert (second["promise"], second["fixable"]) == ("behaviour", False)
    assert report["skipped"] == [{"path": "old.py", "line": 3, "reason": "Python 2 print statement"}]
    assert {"files": 2, "findings": 2, "fixable": 1, "skipped": 1}.items() <= report["summary"].items()
    unsafe = json.loads(codemod("check", ".", "--format", "json", "--unsafe").out)
    assert [finding["fixable"] for finding in unsafe["findings"]] == [True, True]


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_jq_reads_the_json_whatever_the_paths_hold(codemod: Codemod, folder: Path) -> None:
    for name in (b'quote".py', b"gr\xc3\xbcn.py", b"bad\xff.py"):
        with open(os.path.join(os.fsencode(folder), name), "w") as file:
            file.write("x = WRONG\n")
    ran = codemod("check", ".", "--format", "json")
    answer = subprocess.run(["jq", "-r", ".findings[].path"], input=ran.out, capture_output=True, check=True).stdout
    names = answer.decode().splitlines()
    assert len(names) == 3
    assert {'quote".py', "gr\u00fcn.py"} <= set(names)


def test_skipped_files_are_named_with_line_and_reason_and_the_others_go_on(codemod: Codemod, folder: Path) -> None:
    (folder / "broken.py").write_text("x = 1\ny = (\n")
    (folder / "two.py").write_text("x = 1\nprint 'x'\n")
    (folder / "null.py").write_bytes(b"x = 1\n\n\0\n")
    (folder / "latin.py").write_bytes(b"x = 1\ny = '\xe9'\n")
    (folder / "good.py").write_text("x = WRONG\n")
    (folder / "dead.py").symlink_to("nowhere")
    ran = codemod("check", "broken.py", "two.py", "null.py", "latin.py", "good.py")
    lines = ran.out.decode().splitlines()
    assert ran.status == 1
    assert "good.py:1:5: wrong [exact] WRONG is here" in lines
    assert "broken.py:2: skipped: '(' was never closed" in lines
    assert "two.py:2: skipped: Python 2 print statement" in lines
    assert "null.py:3: skipped: null byte: not a text file" in lines
    assert "latin.py:2: skipped: byte 0xe9 is not utf-8" in lines
    assert "5 files, 1 finding, 1 fixable, 4 skipped" in lines


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_named(codemod: Codemod, folder: Path) -> None:
    (folder / "closed.py").write_text("x = WRONG\n")
    (folder / "closed.py").chmod(0)
    ran = codemod("check", ".")
    assert (ran.status, ran.out.decode().splitlines()[0]) == (1, "closed.py: skipped: permission denied")


def test_a_pipe_is_not_waited_for(codemod: Codemod, folder: Path) -> None:
    os.mkfifo(folder / "pipe.py")
    assert "pipe.py: skipped: " in codemod("check", "pipe.py").out.decode()


def test_select_and_ignore(codemod: Codemod, folder: Path) -> None:
    (folder / "a.py").write_text("x = WRONG\ny = RISKY\nz = STUBBORN\n")

    def rules(*arguments: str) -> list[str]:
        report = json.loads(codemod("check", ".", "--format", "json", *arguments).out)
        return [finding["rule"] for finding in report["findings"]]

    assert rules("--select", "wrong,risky") == ["wrong", "risky"]
    assert rules("--select", "wrong", "--select", " risky ,") == ["wrong", "risky"]
    assert rules("--ignore", "wrong") == ["risky", "stubborn"]
    assert rules("--select", "wrong,risky", "--ignore", "wrong") == ["risky"]


def test_suppression_comments(codemod: Codemod, folder: Path) -> None:
    (folder / "a.py").write_text(
        "x = WRONG  # codemod: ignore\ny = WRONG  # codemod: ignore[risky]\nz = WRONG  # codemod: ignore[wrong]\n"
    )
    (folder / "b.py").write_text("# codemod: ignore-file\nx = WRONG\n")
    assert codemod("check", "-q", ".").out == b"a.py:2:5: wrong [exact] WRONG is here\n"
    codemod("apply", ".")
    assert (folder / "a.py").read_text().count("WRONG") == 2
    assert (folder / "b.py").read_text().count("WRONG") == 1


def test_standard_input(codemod: Codemod) -> None:
    ran = codemod("check", "-", "-q", "--stdin-filename", "src/net.py", stdin=b"x = WRONG\n")
    assert (ran.status, ran.out) == (1, b"src/net.py:1:5: wrong [exact] WRONG is here\n")
    assert codemod("check", "-", stdin=b"x = 1\n").status == 0


def test_output_goes_to_a_file(codemod: Codemod, folder: Path) -> None:
    (folder / "a.py").write_text("x = WRONG\n")
    ran = codemod("check", "a.py", "--format", "json", "--output", "report.json")
    assert (ran.status, ran.out, ran.err) == (1, b"", "")
    assert json.loads((folder / "report.json").read_text())["summary"]["findings"] == 1


def test_exclude_and_configuration(codemod: Codemod, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "a.py").write_text("x = WRONG\n")
    (folder / "b.py").write_text("x = WRONG\ny = RISKY\n")
    assert b"b.py:2" in codemod("check", ".", "--exclude", "sub").out
    assert b"sub" not in codemod("check", ".", "--exclude", "sub").out
    (folder / "pyproject.toml").write_text('[tool.codemod]\nexclude = ["sub"]\nselect = ["risky"]\nquiet = true\n')
    assert codemod("check", ".").out == b"b.py:2:5: risky [behaviour] RISKY is here\n"
    # The command line wins.
    assert codemod("check", ".", "--select", "wrong").out == b"b.py:1:5: wrong [exact] WRONG is here\n"
    (folder / "other.toml").write_text('ignore = ["wrong", "risky"]\n')
    assert codemod("check", ".", "--config", "other.toml").status == 0


def test_control_characters_of_a_file_do_not_reach_the_terminal(codemod: Codemod, folder: Path) -> None:
    (folder / "a\x1b[2J.py").write_text("x = WRONG\n")
    assert b"\x1b" not in codemod("check", ".").out


def test_colour_only_where_it_is_asked_for(codemod: Codemod, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.py").write_text("x = WRONG\n")
    assert b"\x1b[" not in codemod("check", ".").out
    assert b"\x1b[" in codemod("check", ".", "--color", "always").out
