"""``apply -i`` as a person at a terminal meets it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.interactive.terminals import ROOT, Person
from tests.patches.drift import SCRIPT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")

WIDE = SCRIPT.replace("total += loss\n", "total += loss  # \u635f\u5931 \x1b[2J\n")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def person(script: Path, *arguments: str, **named: object) -> Person:
    return Person(script.parent, "apply", "-i", "train.py", *arguments, **named)  # type: ignore[arg-type]


def test_yes_no_yes(script: Path) -> None:
    with person(script) as someone:
        first = someone.answer("y")
        assert "1/3 grad-in-evaluation [exact] train.py:10" in first
        assert "+@torch.no_grad()" in first
        assert b"\x1b[35mdef" in someone.seen
        second = someone.answer("n")
        assert "-        loss.backward(retain_graph=True)\n+        loss.backward()" in second
        assert script.read_text() == SCRIPT
        someone.answer("y")
        status, rest = someone.end()
    assert status == 0
    assert "3 changes: 2 accepted, 1 declined." in rest
    assert "2 findings fixed in 1 file, 1 left" in rest
    after = script.read_text()
    assert "loss.item()" in after
    assert "@torch.no_grad()" in after
    assert "retain_graph=True" in after


@pytest.mark.parametrize(
    "environ",
    [
        {"TERM": "dumb"},
        {"NO_COLOR": "1"},
        {"TERM": "dumb", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_plain_terminals_of_forty_columns(script: Path, environ: dict[str, str]) -> None:
    script.write_text(WIDE)
    dumb = environ.get("TERM") == "dumb"
    # Without -q a slow machine shows its progress bar, which is no part of the dialogue.
    with Person(script.parent, "apply", "-i", "-q", "train.py", columns=40, **environ) as someone:
        shown = someone.answer("n\n" if dumb else "n")
        shown += someone.answer("n\n" if dumb else "n")
        shown += someone.answer("y\n" if dumb else "y")
        status, _ = someone.end()
    assert status == 0
    assert b"\x1b" not in someone.seen
    body = [line for line in shown.split("\n") if "Make it?" not in line]
    assert max(map(cell_len, body)) < 40
    assert "^[[2J" in shown
    assert ("\u635f\u5931" in shown) is ("LC_ALL" not in environ)
    assert script.read_text() == WIDE.replace("total += loss ", "total += loss.item() ")


def test_ctrl_c_writes_nothing_and_leaves_the_terminal_as_it_was(script: Path) -> None:
    with person(script) as someone:
        before = someone.settings
        someone.answer("y")
        someone.answer("\x03")
        status, rest = someone.end()
        assert someone.settings == before
    assert status == 130
    assert "interrupted, nothing was written" in rest
    assert "Traceback" not in rest
    assert script.read_text() == SCRIPT


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_ctrl_d_is_quit_and_keeps_what_was_accepted(script: Path, term: str) -> None:
    with person(script, TERM=term) as someone:
        someone.answer("n\n" if term == "dumb" else "n")
        someone.answer("y\n" if term == "dumb" else "y")
        someone.answer("\x04")
        assert "Write 1 accepted? (yes, no, continue asking)" in someone.answer("\x04")
        status, rest = someone.end()
    assert status == 0
    assert "3 changes: 1 accepted, 1 declined, 1 not answered." in rest
    assert script.read_text() == SCRIPT.replace("retain_graph=True", "")


def test_quit_without_writing(script: Path) -> None:
    with person(script) as someone:
        for key in ("y", "q", "n"):
            someone.answer(key)
        status, rest = someone.end()
    assert status == 0
    assert "Aborted: nothing is written." in rest
    assert script.read_text() == SCRIPT


def test_resized_while_asking(script: Path) -> None:
    with person(script) as someone:
        wide = someone.prompt()
        assert max(map(len, wide.split("\n"))) > 50
        someone.resize(40, 10)
        someone.press("n")
        narrow = someone.prompt()
        # What follows the answer is as wide as the terminal is now.
        assert max(map(len, narrow.split("\n"))) < 40
        someone.press("e")
        assert someone.answer("q").endswith("more? [Y,n] ")
        someone.answer("q")
        assert someone.end()[0] == 0


def test_arrows_and_other_keys_answer_nothing(script: Path) -> None:
    with person(script) as someone:
        someone.answer("\x1b[A")
        assert "y  make this change" in someone.answer("\u00fc")
        assert "y  make this change" in someone.answer("\n")
        someone.answer("q")
        assert someone.end()[0] == 0
    assert script.read_text() == SCRIPT


def test_own_text_reason_and_undo(script: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i 's/loss.backward()/loss.backward()  # mine/' \"$1\"\n")
    editor.chmod(0o755)
    with person(script, VISUAL=str(editor)) as someone:
        someone.answer("y")
        someone.answer("u")
        someone.answer("n")
        someone.answer("E")
        someone.answer("i")
        assert "Why?" in someone.answer("read below \u2603\n")
        status, rest = someone.end()
    assert status == 0
    assert "1 declined, 1 in your own words, 1 declined for good" in rest
    expected = SCRIPT.replace("loss.backward(retain_graph=True)", "loss.backward()  # mine")
    ignored = "total += loss  # codemod: ignore[attached-loss-total] -- read below \u2603\n"
    assert script.read_text() == expected.replace("total += loss\n", ignored)
    checked = subprocess.run(
        [sys.executable, "-m", "codemods", "check", "train.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "attached-loss-total" not in checked.stdout


def test_the_diff_of_a_dry_run_goes_to_standard_output(script: Path, tmp_path: Path) -> None:
    out = tmp_path / "accepted.diff"
    with person(script, "--dry-run", out=out) as someone:
        for key in ("n", "y", "n"):
            someone.answer(key)
        status, rest = someone.end()
    assert status == 0
    assert "1 finding would be fixed in 1 file, 2 left" in rest
    assert script.read_text() == SCRIPT
    subprocess.run(["git", "apply", str(out)], cwd=tmp_path, check=True)
    assert script.read_text() == SCRIPT.replace("retain_graph=True", "")


def test_a_bundle_of_what_was_accepted(script: Path, tmp_path: Path) -> None:
    with person(script, "--dry-run", "--patch", "reviewed.patch", out=tmp_path / "x.diff") as someone:
        for key in ("i", "on purpose\n", "y", "n"):
            someone.answer(key)
        assert someone.end()[0] == 0
    bundle = (tmp_path / "reviewed.patch").read_text()
    assert "# 1. train.py:23 surplus-retain-graph (exact)\n" in bundle
    script.write_text("# new\n" + SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "codemods", "patch", "reviewed.patch"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    comment = "def validate(batches):  # codemod: ignore[grad-in-evaluation] -- on purpose\n"
    expected = ("# new\n" + SCRIPT).replace("retain_graph=True", "")
    assert script.read_text() == expected.replace("def validate(batches):\n", comment)


def test_a_closed_terminal_writes_nothing(script: Path) -> None:
    with person(script) as someone:
        someone.answer("y")
        someone.prompt()
    assert script.read_text() == SCRIPT


def test_stopped_and_continued(script: Path) -> None:
    with person(script) as someone:
        someone.prompt()
        os.kill(someone.pid, signal.SIGSTOP)
        os.waitpid(someone.pid, os.WUNTRACED)
        someone.cook()
        os.kill(someone.pid, signal.SIGCONT)
        os.waitpid(someone.pid, os.WCONTINUED)
        someone.until_raw()
        someone.press("n")
        assert "2/3 " in someone.prompt()


def test_without_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, "-m", "codemods", "apply", "-i", "train.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "codemod: -i asks questions: standard input and standard error must be a terminal\n"


def test_standard_input_cannot_be_asked_about(tmp_path: Path) -> None:
    with Person(tmp_path, "apply", "-i", "-") as someone:
        status, rest = someone.end()
    assert (status, rest) == (2, "codemod: -i works on files; it cannot be combined with -\n")


def test_nothing_to_ask(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("x = 1\n")
    with Person(tmp_path, "apply", "-i", "train.py") as someone:
        status, rest = someone.end()
    assert status == 0
    assert "There is nothing to ask about." in rest


@pytest.mark.slow
def test_verdicts_stand_beside_the_changes_and_the_person_decides(script: Path) -> None:
    never = SCRIPT.replace("    print(validate(data))\n", "")
    script.write_text(never)
    with person(script, "--verify", "train.py", "--steps", "5") as someone:
        first = someone.answer("y")
        assert "codemod: rewritten (3 of 3 rewrites): train.py\n" in first
        assert first.index("every promise") < first.index("1/3 grad-in-evaluation")
        assert "Verdict: kept" in first
        assert "Verdict: kept" in someone.answer("n")
        assert script.read_text() == never
        assert "Verdict: kept" in someone.answer("y")
        status, rest = someone.end()
    assert status == 0
    assert "3 changes: 2 accepted, 1 declined." in rest
    assert "surplus-retain-graph  1 left" in rest
    expected = never.replace("def validate", "@torch.no_grad()\ndef validate").replace("+= loss", "+= loss.item()")
    assert script.read_text() == expected


@pytest.mark.slow
def test_what_could_not_be_judged_is_asked_about_too(script: Path) -> None:
    broken = SCRIPT.replace("model = ", "import os\nif os.getpid():\n    raise SystemExit(1)\nmodel = ")
    script.write_text(broken)
    with person(script, "--verify", "train.py") as someone:
        assert "could not be judged" in someone.answer("n")
        assert "Verdict: not " in someone.answer("y")
        someone.answer("q")
        someone.answer("y")
        status, rest = someone.end()
    assert status == 3
    assert "1 accepted" in rest
    assert script.read_text() == broken.replace("retain_graph=True", "")


@pytest.mark.slow
def test_interrupted_while_the_script_runs(script: Path) -> None:
    sleepy = SCRIPT + "import time\ntime.sleep(600)\n"
    script.write_text(sleepy)
    with person(script, "--verify", "train.py", "--timeout", "300") as someone:
        someone.wait_for(b"original: train.py")
        before = {path.name for path in script.parent.iterdir()}
        someone.press("\x03")
        status, rest = someone.end()
    assert status == 130
    assert "Traceback" not in rest
    assert script.read_text() == sleepy
    assert {path.name for path in script.parent.iterdir()} == before


def test_answers_outlive_a_kill_and_are_taken_up(script: Path) -> None:
    kept = ("--resume", "answers.json")
    with person(script, *kept) as someone:
        someone.answer("y")
        someone.prompt()
        os.kill(someone.pid, signal.SIGKILL)
        assert someone.end()[0] == -signal.SIGKILL
    assert script.read_text() == SCRIPT
    with person(script, *kept) as someone:
        assert "2/3" in someone.answer("n")
        assert b"1 of 3 changes were answered before" in someone.seen
        someone.answer("n")
        status, rest = someone.end()
    assert (status, "3 changes: 1 accepted, 2 declined." in rest) == (0, True)
    assert script.read_text() != SCRIPT


def test_answers_go_over_no_other_file(script: Path) -> None:
    for name, content in {"notes.json": "{}", "train.py": SCRIPT}.items():
        script.with_name(name).write_text(content)
        with person(script, "--resume", name) as someone:
            assert someone.end()[0] == 2
        assert script.with_name(name).read_text() == content
