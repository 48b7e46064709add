"""Slips of the hand that must not cost a file, or hang."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codemods.cli import main
from codemods.cli._terminal import complain
from codemods.reports import formats
from codemods.source.cache import Cache
from tests.cli.conftest import Codemod

ROOT = str(Path(__file__).parents[2])
TEXT = "import torch\nx = 1\n"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "other.py", "book.ipynb", "pyproject.toml"):
        (tmp_path / name).write_text(TEXT if name.endswith("py") else "")
    return tmp_path / "train.py"


@pytest.mark.parametrize("name", ["train.py", "other.py", "book.ipynb", "pyproject.toml"])
@pytest.mark.parametrize(
    "command",
    [["check", "train.py", "-o"], ["apply", "train.py", "--dry-run", "-o"], ["apply", "train.py", "--patch"]],
    ids=["check -o", "apply -o", "apply --patch"],
)
def test_no_output_replaces_a_source(codemod: Codemod, source: Path, command: list[str], name: str) -> None:
    before = Path(name).read_bytes()
    ran = codemod(*command, name)
    assert ran.status == 2
    assert "name another file" in ran.err
    assert Path(name).read_bytes() == before


def test_a_report_is_written_over_an_older_one_and_a_new_file_has_any_name(codemod: Codemod, source: Path) -> None:
    for name in ("report.txt", "new.py"):
        assert codemod("check", "train.py", "-o", name).status == 0
    assert codemod("check", "train.py", "-o", "report.txt").status == 0
    assert Path("new.py").read_text().startswith("1 file")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.pt", b"PK\x03\x04\x80\x02"),
        ("conf.yaml", b"lr: 0.1\n"),
        ("LICENSE", b"MIT License\n"),
        ("data.csv", b"a,b\n1,2\n"),
        ("package.json", b'{"name": "x", "version": "1.0.0"}'),
        ("annotations.json", b'[{"image": 1}]'),
        ("notes.md", b"# Notes on codemod\n"),
        ("logo.svg", b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'),
        ("script", TEXT.encode()),
    ],
)
@pytest.mark.parametrize(
    "command",
    [["check", "-o"], ["check", "--format", "json", "-o"], ["apply", "--patch"], ["doctor", "--graph"]],
    ids=lambda command: " ".join(command),
)
def test_no_output_replaces_what_is_no_report(
    codemod: Codemod, source: Path, command: list[str], name: str, content: bytes
) -> None:
    Path(name).write_bytes(content)
    ran = codemod(command[0], "train.py", *command[1:], name)
    assert (ran.status, Path(name).read_bytes()) == (2, content)
    assert re.search(r"is no (json report|report|patch|picture) of codemod; name another file, or remove it", ran.err)


@pytest.mark.parametrize(
    ("name", "content", "command"),
    [
        ("notes.md", b"# Notes\n\ntrain.py:1:5: wrong [exact] WRONG is here\n", ["check", "-o"]),
        ("notes.md", b"It said\n1 file, 2 findings, 2 fixable\n", ["check", "--format", "full", "-o"]),
        ("my.diff", b"diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", ["apply", "-o"]),
        ("my.patch", b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", ["apply", "--patch"]),
        ("by-hand.diff", b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", ["apply", "-o"]),
        ("review.patch", b"# A patch of codemod. `git apply` takes it as it is\n", ["check", "-o"]),
        ("answers.json", b'{\n "codemod-review": 1}', ["check", "--format", "json", "-o"]),
        ("report.json", b'{\n "version": 1,\n "findings": []}', ["check", "-o"]),
    ],
)
def test_what_quotes_us_or_is_of_another_kind_stays(
    codemod: Codemod, source: Path, name: str, content: bytes, command: list[str]
) -> None:
    Path(name).write_bytes(content)
    ran = codemod(command[0], "train.py", *(["--dry-run"] if command[0] == "apply" else []), *command[1:], name)
    assert (ran.status, Path(name).read_bytes()) == (2, content)


@pytest.mark.parametrize(
    "command",
    [
        ["check", "train.py", "-o", "-"],
        ["check", "train.py", "--also", "json=-"],
        ["apply", "train.py", "--dry-run", "--patch", "./-"],
        ["rules", "-o", "-"],
    ],
    ids=" ".join,
)
def test_a_dash_makes_no_file_of_that_name(codemod: Codemod, source: Path, command: list[str]) -> None:
    ran = codemod(*command)
    assert (ran.status, os.path.lexists("-")) == (2, False)
    assert "cannot write -: " in ran.err


def test_a_diff_in_a_file_has_a_title_gives_way_and_can_be_applied(source: Path, capfdbinary: Any) -> None:
    before = "import torch\nw = torch.ones(1, requires_grad=True)\n(w * w).sum().backward(retain_graph=True)\n"
    source.write_text(before)
    assert main(["apply", "train.py", "--dry-run", "--patch", "mine.patch"]) == 0
    diff = capfdbinary.readouterr().out
    for command in (["apply", "train.py"], ["patch", "mine.patch"]):
        for _ in range(2):
            assert main([*command, "--dry-run", "-o", "out.diff"]) == 0
        title, _, rest = Path("out.diff").read_bytes().partition(b"\n")
        assert title == b"# A diff of codemod. `git apply` and `patch -p1` take it as it is."
        assert rest == diff
    after = before.replace("retain_graph=True", "")
    for taking in (["git", "apply"], ["patch", "-p1", "-i"], [sys.executable, "-m", "codemods", "patch"]):
        source.write_text(before)
        subprocess.run([*taking, "out.diff"], check=True, env={**os.environ, "PYTHONPATH": ROOT})
        assert source.read_text() == after, taking
    assert main(["apply", "train.py", "--dry-run", "-o", "none.diff"]) == 0
    assert Path("none.diff").read_bytes() == b""


def test_no_output_replaces_an_input_or_another_output(codemod: Codemod, source: Path) -> None:
    # Neither a suffix nor its text says that it is a source.
    Path("empty").touch()
    Path("said").write_text("1 file, 0 findings, 0 fixable\n")
    Path("same.txt").hardlink_to("empty")
    for read, written in (("empty", "empty"), ("said", "said"), ("empty", "same.txt")):
        assert "is read by the same run" in codemod("check", read, "-o", written).err
    assert Path("said").stat().st_size
    twice = ["--also", "json=a.json"], ["--also", "sarif=./a.json"]
    for further in (["-o", "a.json", *twice[0]], [*twice[0], *twice[1]]):
        assert "name the same file" in codemod("check", "train.py", *further).err
    assert "name the same file" in codemod("apply", "train.py", "--patch", "a", "-o", "a").err
    assert not Path("a.json").exists()
    # What is thrown away may be thrown away twice, and what is apart is written.
    assert codemod("check", "train.py", "-o", os.devnull, "--also", f"json={os.devnull}").status == 0
    assert codemod("check", "train.py", "-o", "b.txt", *twice[0]).status == 0
    assert codemod("apply", "train.py", "--dry-run", "--patch", "c", "-o", "d").status == 0


@pytest.mark.parametrize("typed", ["--format", "--output-format"])
def test_a_wrong_format_is_told_by_the_name_that_was_typed(codemod: Codemod, source: Path, typed: str) -> None:
    for words in ([typed, "xml"], [f"{typed}=xml"]):
        assert codemod("check", "train.py", *words).err.startswith(f"codemod: {typed} xml: must be one of ")
    assert codemod("check", "train.py", typed, "json").status == 0


def test_no_output_replaces_a_source_through_a_link(codemod: Codemod, source: Path) -> None:
    Path("link.txt").symlink_to("train.py")
    Path("same.txt").hardlink_to("train.py")
    for name in ("link.txt", "same.txt"):
        assert codemod("check", "train.py", "-o", name).status == 2
    assert source.read_text() == TEXT


# These tell about the rule from its own page, which no fake rule has.
WITH_PAGES = {"html", "markdown", "sarif"}


@pytest.mark.parametrize("name", sorted({*formats()} - WITH_PAGES))
@pytest.mark.parametrize("text", ["x = WRONG\n", "x = 1\n"], ids=["findings", "none"])
def test_a_report_of_any_format_gives_way_to_a_newer_one(codemod: Codemod, source: Path, name: str, text: str) -> None:
    source.write_text(text)
    for command in (["check", "train.py"], ["apply", "train.py", "--dry-run"]):
        Path("report").unlink(missing_ok=True)
        for _ in range(2):
            ran = codemod(*command, "--format", name, "-o", "report")
            assert ran.status < 2, ran.err
    for _ in range(2):
        assert codemod("apply", "train.py", "--dry-run", "--patch", "my.patch").status == 0


@pytest.mark.parametrize("name", sorted(WITH_PAGES))
@pytest.mark.parametrize("flag", ["retain_graph=True", ""], ids=["findings", "none"])
def test_so_does_one_with_pages_of_rules(source: Path, name: str, flag: str) -> None:
    source.write_text(f"import torch\nw = torch.ones(1, requires_grad=True)\n(w * w).sum().backward({flag})\n")
    for command in (["check", "train.py"], ["apply", "train.py", "--dry-run"]):
        Path("report").unlink(missing_ok=True)
        for _ in range(2):
            assert main([*command, "--format", name, "-o", "report"]) < 2
            assert Path("report").stat().st_size


@pytest.mark.parametrize("form", ["text", "json"])
def test_so_does_a_list_of_rules(source: Path, form: str) -> None:
    for _ in range(2):
        assert main(["rules", "--format", form, "-o", "rules.out"]) == 0
    Path("LICENSE").write_text("MIT License")
    assert main(["rules", "--format", form, "-o", "LICENSE"]) == 2


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_closed_stream_is_told_or_done_without(source: Path, monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    monkeypatch.setattr(sys, stream, None)
    assert main(["check", "train.py"]) == (2 if stream == "stdout" else 0)


@pytest.mark.parametrize("option", ["--baseline", "--config"])
def test_a_pipe_that_nobody_writes_to_does_not_hang(codemod: Codemod, source: Path, option: str) -> None:
    os.mkfifo("pipe")
    ran = codemod("check", "train.py", option, "pipe")
    assert (ran.status, "not a regular file but a named pipe" in ran.err) == (2, True)


@pytest.mark.parametrize("command", ["verify", "doctor", "fix"])
def test_a_script_that_is_a_pipe_does_not_hang(codemod: Codemod, source: Path, command: str) -> None:
    os.mkfifo("pipe")
    ran = codemod(command, "pipe")
    assert (ran.status, ran.err) == (
        2,
        "codemod: pipe: a named pipe; it is run several times, which only a file can be\n",
    )


def test_clean_keeps_the_cache_of_a_project_that_was_not_named(codemod: Codemod, source: Path) -> None:
    Cache(Path.cwd()).write("one", 1)
    ran = codemod("clean", "gone")
    assert (ran.status, ran.err) == (2, "codemod: gone: no such file or folder\n")
    assert Cache(Path.cwd()).read("one") == 1
    assert codemod("clean").status == 0
    assert Cache(Path.cwd()).read("one") is None


def test_a_count_that_no_file_can_have_is_refused(codemod: Codemod, source: Path) -> None:
    entry = {"path": "train.py", "rule": "stored-graph", "function": "", "statement": "x", "count": 10**10}
    Path("known.json").write_text(json.dumps({"codemod-baseline": 1, "findings": [entry]}))
    ran = codemod("check", "train.py", "--baseline", "known.json")
    assert ran.status == 2
    assert "entry 1 of the baseline is not a finding" in ran.err


def test_a_full_disk_leaves_the_old_report(codemod: Codemod, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = "1 file, 0 findings, 0 fixable\n"
    Path("report.txt").write_text(old)

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:1])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    ran = codemod("check", "train.py", "-o", "report.txt")
    assert (ran.status, "cannot write report.txt: no space left" in ran.err) == (2, True)
    assert Path("report.txt").read_text() == old
    assert sorted(os.listdir()) == ["book.ipynb", "other.py", "pyproject.toml", "report.txt", "train.py"]


def test_a_report_goes_through_a_link_and_to_a_device(codemod: Codemod, source: Path) -> None:
    Path("link.txt").symlink_to("real.txt")
    assert codemod("check", "train.py", "-o", "link.txt").status == 0
    assert Path("link.txt").is_symlink()
    assert Path("real.txt").read_text().startswith("1 file")
    assert codemod("check", "train.py", "-o", os.devnull).status == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("command", [["check", "-"], ["patch", "-"]])
def test_without_standard_input_it_is_told(command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(command) == 2
    assert capsys.readouterr().err == "codemod: standard input is closed\n"


def test_a_rule_that_there_is_not_is_named_with_the_file_that_names_it(codemod: Codemod, source: Path) -> None:
    for key, text in {
        "select": 'select = ["wrogn"]',
        "per-file-ignores": '[tool.codemod.per-file-ignores]\n"a/" = ["wrogn"]',
    }.items():
        Path("pyproject.toml").write_text(f"[tool.codemod]\n{text}\n")
        ran = codemod("check", "train.py")
        assert ran.status == 2
        assert f"pyproject.toml: {key}: no rule is called 'wrogn'; did you mean wrong?" in ran.err


def test_the_lines_of_a_message_stay_lines(capsys: Any) -> None:
    complain("git commit failed: \x1b[31mthe hook\nsays no\n")
    err = capsys.readouterr().err
    assert err.splitlines()[1:] == ["says no"]
    assert "\x1b" not in err
    assert "^J" not in err


def test_what_cannot_be_checked_fails_the_check(codemod: Codemod, source: Path) -> None:
    Path("old.py").write_text("print 'x'\n")
    assert codemod("check", "old.py").status == 1
    assert codemod("check", "old.py", "--exit-zero").status == 0
    assert codemod("check", ".", "--exclude", "old.py", "--exclude", "book.ipynb").status == 0
    Path("train.py").write_text("x = WRONG\n")
    assert codemod("check", "train.py", "--exit-zero").status == 0


def test_a_file_may_say_that_it_is_meant_to_be_so(codemod: Codemod, source: Path) -> None:
    Path("old.py").write_text("# codemod: ignore-file -- kept for Python 2\nprint 'x'\n")
    ran = codemod("check", "old.py")
    assert (ran.status, ran.out) == (0, b"1 file, 0 findings, 0 fixable\n")
    assert b"old.py" not in codemod("apply", "old.py", "--dry-run").out
    # A rule that is left out is not all of them, and a comment elsewhere says nothing of the file.
    for comment in ("# codemod: ignore-file[wrong]", "# codemod: ignore"):
        Path("old.py").write_text(f"{comment}\nprint 'x'\n")
        assert codemod("check", "old.py").status == 1


def test_check_and_apply_look_at_the_folder_by_default(codemod: Codemod, source: Path) -> None:
    Path("book.ipynb").unlink()
    Path("train.py").write_text("x = WRONG\n")
    assert codemod("check").out == codemod("check", ".").out
    assert codemod("apply", "--dry-run").out.startswith(b"--- a/train.py")
    codemod("apply")
    assert Path("train.py").read_text() == "x = right\n"


def test_the_same_report_in_further_formats(codemod: Codemod, source: Path) -> None:
    Path("train.py").write_text("x = WRONG\n")
    plain = codemod("check", "train.py", "--format", "json")
    ran = codemod("check", "train.py", "--format", "concise", "--also", "json=a.json", "--also", "gitlab=b.json")
    assert (ran.status, ran.out.decode().splitlines()[0]) == (1, "train.py:1:5: wrong [exact] WRONG is here")
    assert Path("a.json").read_bytes() == plain.out
    assert json.loads(Path("b.json").read_text())[0]["check_name"] == "wrong"
    plain = codemod("apply", "train.py", "--dry-run", "--format", "json")
    ran = codemod("apply", "train.py", "--dry-run", "--also", "json=c.json")
    assert (ran.status, Path("c.json").read_bytes()) == (0, plain.out)
    assert ran.out.startswith(b"--- a/train.py")
    assert codemod("apply", "train.py", "--also", "concise=d.txt").status == 0
    assert " fixed: " in Path("d.txt").read_text()
    for bad in ("json", "json=", "yaml=a", "json=train.py"):
        assert codemod("check", "train.py", "--also", bad).status == 2


def test_alone_it_says_what_to_type(codemod: Codemod, source: Path) -> None:
    ran = codemod()
    assert (ran.status, ran.out) == (2, b"")
    assert len(ran.err.splitlines()) == 5
    for name in ("check", "apply --dry-run", "verify", "explain"):
        assert f"codemod {name}" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train.py"], "codemod: a path comes behind a command: codemod check train.py\n"),
        (["."], "codemod: a path comes behind a command: codemod check .\n"),
        (["check", ".", "--fix"], "codemod: codemod apply makes the rewrites\n"),
        (["check", "--diff"], "codemod: codemod apply --dry-run shows the diff\n"),
        (["apply", "--unsafe-fixes"], "codemod: codemod apply --unsafe makes those of promise behaviour too\n"),
        (["check", "train.py:1"], "train.py:1: a line of a file; codemod explain tells about it, "),
        (["apply", "train.py:1:5:"], "train.py:1:5:: a line of a file; "),
    ],
)
def test_what_somebody_means_is_told(codemod: Codemod, source: Path, words: list[str], said: str) -> None:
    ran = codemod(*words)
    assert (ran.status, said in ran.err) == (2, True), ran.err
    assert source.read_text() == TEXT


@pytest.mark.parametrize("words", [["gone.py"], ["chekc"], ["rules", "--fix"], ["check", "--wrong"], ["check", "a:1"]])
def test_where_nobody_can_know_no_more_is_said(codemod: Codemod, source: Path, words: list[str]) -> None:
    ran = codemod(*words)
    assert ran.status == 2
    assert not re.search(r"^codemod: (a path|codemod )|a line of a file", ran.err, re.MULTILINE)


def test_a_file_whose_name_looks_like_a_line_is_checked(codemod: Codemod, source: Path) -> None:
    Path("train.py:1").write_text("x = WRONG\n")
    assert codemod("check", "train.py:1").status == 1


def test_help_of_what_runs_scripts_is_in_groups_too_and_lists_leave_room(codemod: Codemod, source: Path) -> None:
    for command in ("verify", "doctor", "fix", "apply", "patch", "explain"):
        told = codemod(command, "--help").out.decode()
        *_, rest = told.split("\nOthers:\n")
        assert [line.split()[0] for line in rest.splitlines()] == ["-h,"], command
        assert not re.search(r"x>=|<=x", told)
    told = " ".join(codemod("check", "--help").out.decode().split())
    assert "--format, --output-format NAME Report in this format: text, azure, " in told
    shown = codemod("--help").out.decode()
    names = re.findall(r"^  (\w+)  +\S.*", shown.partition("\nCommands:\n")[2], re.MULTILINE)
    assert names == sorted(names)
    assert len(names) > 9
    assert shown.count("...") == 1, "a summary was cut off"


def test_help_groups_the_options_and_names_no_types_of_python(codemod: Codemod, source: Path) -> None:
    told = codemod("check", "--help").out.decode()
    assert "<list" not in told
    headings = [line for line in told.splitlines() if re.fullmatch(r"\w[\w ]*:", line)]
    assert headings == [
        "Arguments:",
        "Where to look:",
        "What to look for:",
        "How to rewrite:",
        "What to leave alone:",
        "How to report:",
        "Others:",
    ]
    for option in ("--since", "--exclude", "--output-format", "--add-ignores", "--total-style", "--exit-zero"):
        assert told.count(option) >= 1
