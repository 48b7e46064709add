"""``apply --commit``: commits that stand alone and go alone, and no trace where they cannot be made."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codemods.commits.making import Commit, Wording, commit_result
from codemods.commits.repository import CommitError
from codemods.rewriting.apply import apply, written
from codemods.rewriting.changes import Proof
from codemods.rewriting.result import ApplyResult
from codemods.source.options import STYLES, Options
from codemods.source.targets import read_targets
from tests.fakes import Analyser, edit
from tests.repositories import alone, fails, git, repository, snapshot

FILES = {
    "one.py": b"a = WRONG\n\nb = 1\nc = LEFT\n\nd = WRONG\n",
    "two.py": b"e = RIGHTHAND\r\n\r\nf = ODD\r\n\r\ng = WRONG",
    "sub/three.py": b"# coding: latin-1\n# \xe9\nh = WRONG\n\n\ni = ODD\n",
    "clean.py": b"x = 1\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    alone(monkeypatch)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def planned(*paths: str, **options: Any) -> ApplyResult:
    targets = read_targets(paths or (".",)).sources
    return apply(targets, options=Options(**options), dry_run=True, analyse=Analyser(), editor=edit)


def committed(result: ApplyResult, **given: Any) -> tuple[Commit, ...]:
    return commit_result(result, **{"options": Options(), "analyse": Analyser(), **given})


def refused(result: ApplyResult, folder: Path, **given: Any) -> str:
    """The sentence that says why nothing was committed, once it is shown that nothing was."""
    before = snapshot(folder)
    with pytest.raises(CommitError) as error:
        committed(result, **given)
    assert snapshot(folder) == before
    return str(error.value)


def require_revertible(folder: Path, commits: tuple[Commit, ...]) -> None:
    """Revert each commit, alone: git must do it without a conflict, and what is left must parse."""
    tip = git(folder, "rev-parse", "HEAD").strip()
    for commit in commits:
        git(folder, "revert", "--no-edit", commit.hash)
        for path in commit.paths:
            ast.parse((folder / path).read_bytes())
        git(folder, "reset", "-q", "--hard", tip)


@pytest.mark.parametrize("style", STYLES)
def test_commits_come_to_what_apply_writes_and_each_can_be_reverted_alone(folder: Path, style: str) -> None:
    repository(folder, FILES)
    result = planned()
    commits = committed(result, style=style)
    assert {r.source.path: r.encoded for r in result.rewrites} == {
        path: (folder / path).read_bytes() for path in FILES if path != "clean.py"
    }
    assert git(folder, "status", "--porcelain") == ""
    assert int(git(folder, "rev-list", "--count", "HEAD")) == 1 + len(commits)
    assert len(commits) == {"per-rule": 3, "per-file": 2, "one": 1}[style]
    require_revertible(folder, commits)


def test_partners_and_what_they_hang_together_with_are_one_commit(folder: Path) -> None:
    repository(folder, FILES)
    by_rules = {frozenset(f.rule for c in one.changes for f in c.findings): one for one in committed(planned())}
    assert set(by_rules) == {
        frozenset({"wrong"}),
        frozenset({"odd"}),
        frozenset({"left", "righthand"}),
    }


def test_lines_side_by_side_go_into_one_commit(folder: Path) -> None:
    repository(folder, {"a.py": b"a = WRONG\nb = ODD\nc = 1\nd = 2\ne = WRONG\n"})
    commits = committed(planned())
    (tied,) = (one for one in commits if {"wrong", "odd"} <= {change.rule for change in one.changes})
    assert tied.subject == "Fix wrong and odd in a.py"
    assert "side by side" in git(folder, "log", "-1", "--format=%b", tied.hash)
    assert [one.subject for one in commits if one is not tied] == ["Fix wrong in a.py"]
    require_revertible(folder, commits)


def test_two_rules_on_one_line_are_one_commit(folder: Path) -> None:
    repository(folder, {"a.py": b"a = WRONG, RIGHTHAND, LEFT\n"})
    commits = committed(planned())
    assert len(commits) == 1
    require_revertible(folder, commits)


def test_nothing_to_write_is_no_commit(folder: Path) -> None:
    repository(folder, {"clean.py": b"x = 1\n"})
    before = snapshot(folder)
    assert committed(planned()) == ()
    assert snapshot(folder) == before


def test_strongest_promise_first(folder: Path) -> None:
    repository(folder, {"a.py": b"a = RISKY\n\n\nb = WRONG\n"})
    commits = committed(planned(unsafe=True), options=Options(unsafe=True))
    assert [one.changes[0].promise.value for one in commits] == ["exact", "behaviour"]


def test_a_stage_that_does_not_hold_is_joined_with_the_next(folder: Path) -> None:
    """By its own analysis the second rule's finding comes back as long as the third's stands."""
    repository(folder, {"a.py": b"a = WRONG\n\n\nb = ODD\n"})

    class Stubborn(Analyser):
        def __call__(self, targets: Any, **given: Any) -> Any:
            found = super().__call__(targets, **given)
            text = (given.get("overlay") or {}).get("a.py", "")
            if "WRONG" in text and "ODD" not in text:
                found.findings.append(self.first)
            elif "ODD" in text:
                self.first = next(f for f in found.findings if f.rule == "odd")
            return found

    stubborn = Stubborn()
    stubborn(read_targets(["."]).sources, options=Options(), overlay={"a.py": (folder / "a.py").read_text()})
    commits = committed(planned(), analyse=stubborn)
    assert ["odd" in one.subject and "wrong" in one.subject for one in commits].count(True) == 1
    require_revertible(folder, commits)


# the messages


def test_messages(folder: Path) -> None:
    repository(folder, FILES)
    result = planned()
    proofs = {mended.key: Proof("kept", "bit for bit the same") for mended in result.mended}
    wording = Wording("fix: ", ("Signed-off-by: Ada <ada@example.org>",), ("codemod", "apply", "a folder"))
    commits = committed(result, proofs=proofs, wording=wording, author="Bob <bob@example.org>")
    told = git(folder, "log", "-1", "--format=%an|%ae|%cn|%B", commits[-1].hash)
    assert told.startswith("Bob|bob@example.org|Ada|fix: Fix ")
    assert "Promise: exact. The rewritten program" in told
    assert "Verified by running: kept: bit for bit the same" in told
    assert "Made by: codemod apply 'a folder'" in told
    assert told.rstrip().endswith("Signed-off-by: Ada <ada@example.org>")
    for one in commits:
        message = git(folder, "log", "-1", "--format=%B", one.hash).split("\n")
        assert message[0] == one.subject
        assert message[1] == ""


def test_subjects_are_short_and_of_one_line(folder: Path) -> None:
    long = "n" * 90 + ".py"
    repository(folder, {long: b"a = WRONG\n", "with\nline.py": b"a = WRONG\n"})
    for one in committed(planned(), style="per-file"):
        assert len(one.subject) <= 72
        assert git(folder, "log", "-1", "--format=%s", one.hash).rstrip("\n") == one.subject


def test_names_are_names_and_no_patterns(folder: Path) -> None:
    repository(
        folder, {"a[b].py": b"a = WRONG\n", "ab.py": b"x = 1\n", ":(top).py": b"a = WRONG\n", "-x.py": b"a = WRONG\n"}
    )
    (folder / "ab.py").write_bytes(b"x = 2\n")
    (commit,) = committed(planned(), allow_dirty=True)
    assert set(git(folder, "show", "--format=", "--name-only", commit.hash).split()) == {
        "a[b].py",
        ":(top).py",
        "-x.py",
    }
    assert git(folder, "status", "--porcelain") == " M ab.py\n"


def test_after_writing_what_remains_stands_at_its_new_lines(folder: Path) -> None:
    repository(folder, {"a.py": b"x = 1\na = ACROSS\nb = RISKY\n", "other.py": b"x = 1\nc = RISKY\n"})
    told = written(planned())
    assert not told.dry_run
    assert {(one.finding.path, one.finding.span.line) for one in told.remaining} == {("a.py", 3), ("other.py", 3)}


# what git does not allow, or the user has not finished


def test_no_repository(folder: Path) -> None:
    (folder / "a.py").write_bytes(b"a = WRONG\n")
    with pytest.raises(CommitError, match="is not in a git repository"):
        committed(planned())
    assert (folder / "a.py").read_bytes() == b"a = WRONG\n"


def test_bare_repository(folder: Path) -> None:
    git(folder, "init", "-q", "--bare")
    (folder / "a.py").write_bytes(b"a = WRONG\n")
    with pytest.raises(CommitError, match="bare repository"):
        committed(planned("a.py"))


def test_no_commit_yet(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "a.py").write_bytes(b"a = WRONG\n")
    assert "has no commit yet" in refused(planned(), folder)


def test_git_is_not_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(folder, FILES)
    result = planned()
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(CommitError, match="git is not installed"):
        committed(result)


def test_nobody_knows_who_commits(folder: Path) -> None:
    repository(folder, FILES)
    git(folder, "config", "--unset", "user.name")
    git(folder, "config", "--unset", "user.email")
    git(folder, "config", "user.useConfigOnly", "true")
    assert "user.name" in refused(planned(), folder)


def test_dirty_tree(folder: Path) -> None:
    repository(folder, FILES)
    (folder / "clean.py").write_bytes(b"x = 2\n")
    (folder / "new.txt").write_bytes(b"nobody asked\n")
    assert "uncommitted changes in clean.py;" in refused(planned(), folder)


def test_a_dirty_tree_that_is_allowed_stays_as_it_is(folder: Path) -> None:
    repository(folder, {**FILES, "staged.py": b"x = 1\n", "gone.txt": b"1\n", "moved.txt": b"moved\n" * 9})
    (folder / "clean.py").write_bytes(b"x = 2\n")
    (folder / "staged.py").write_bytes(b"x = 2\n")
    git(folder, "add", "staged.py")
    git(folder, "mv", "moved.txt", "elsewhere.txt")
    (folder / "gone.txt").unlink()
    before = git(folder, "status", "--porcelain")
    commits = committed(planned(), allow_dirty=True)
    assert git(folder, "status", "--porcelain") == before
    assert not {"clean.py", "staged.py"} & {path for one in commits for path in one.paths}


@pytest.mark.parametrize("stage", [False, True])
def test_a_file_of_ours_that_was_dirty_is_never_committed(folder: Path, stage: bool) -> None:
    repository(folder, FILES)
    with (folder / "one.py").open("ab") as file:
        file.write(b"z = 1\n")
    if stage:
        git(folder, "add", "one.py")
    assert "one.py would be changed and has uncommitted changes" in refused(planned(), folder, allow_dirty=True)


def _merging(folder: Path) -> None:
    git(folder, "checkout", "-q", "-b", "side")
    git(folder, "commit", "-q", "--allow-empty", "-m", "side")
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "--no-ff", "--no-commit", "side")


def _rebasing(folder: Path) -> None:
    (folder / ".git" / "rebase-merge").mkdir()


def _picking(folder: Path) -> None:
    (folder / ".git" / "CHERRY_PICK_HEAD").write_text(git(folder, "rev-parse", "HEAD"))


def _bisecting(folder: Path) -> None:
    git(folder, "bisect", "start")


@pytest.mark.parametrize(
    ("begin", "what"),
    [(_merging, "a merge"), (_rebasing, "a rebase"), (_picking, "a cherry-pick"), (_bisecting, "a bisection")],
)
def test_something_is_under_way(folder: Path, begin: Any, what: str) -> None:
    repository(folder, FILES)
    begin(folder)
    assert refused(planned(), folder, allow_dirty=True).startswith(f"{what} is under way")


def test_the_index_is_locked(folder: Path) -> None:
    repository(folder, FILES)
    (folder / ".git" / "index.lock").write_bytes(b"")
    assert "index.lock" in refused(planned(), folder)


def test_a_detached_head_is_fine(folder: Path) -> None:
    repository(folder, FILES)
    git(folder, "checkout", "-q", "--detach")
    commits = committed(planned())
    assert git(folder, "rev-parse", "HEAD").strip() == commits[-1].hash
    assert git(folder, "rev-list", "--count", "main").strip() == "1"


def test_untracked_and_ignored_files_are_named(folder: Path) -> None:
    repository(folder, {**FILES, ".gitignore": b"local.py\n"})
    (folder / "new.py").write_bytes(b"a = WRONG\n")
    (folder / "local.py").write_bytes(b"a = WRONG\n")
    told = refused(planned(".", "local.py"), folder)
    assert "new.py (untracked)" in told
    assert "local.py (ignored)" in told
    assert "--exclude" in told


def test_submodules_and_other_repositories_are_named(folder: Path, tmp_path: Path) -> None:
    repository(tmp_path / "library", {"lib.py": b"a = WRONG\n"})
    repository(folder, FILES)
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "library"), "library")
    git(folder, "commit", "-q", "-m", "a submodule")
    repository(folder / "beside", {"b.py": b"a = WRONG\n"})
    told = refused(planned(".", "library/lib.py", "beside/b.py"), folder)
    assert "lib.py (in the submodule library)" in told
    assert "b.py (in another repository, beside)" in told


def test_a_file_outside_is_named(folder: Path, tmp_path: Path) -> None:
    repository(folder, FILES)
    (tmp_path / "far.py").write_bytes(b"a = WRONG\n")
    assert "far.py (outside" in refused(planned(".", "../far.py"), folder, repository=folder)


def test_a_link_in_the_tree_is_committed_where_it_leads(folder: Path) -> None:
    repository(folder, {"real/a.py": b"a = WRONG\n"})
    (folder / "link.py").symlink_to("real/a.py")
    git(folder, "add", "link.py")
    git(folder, "commit", "-q", "-m", "a link")
    (commit,) = committed(planned("link.py"))
    assert git(folder, "show", "--format=", "--name-only", commit.hash).split() == ["real/a.py"]


# hooks


def hook(folder: Path, name: str, script: str) -> None:
    place = folder / ".git" / "hooks" / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)


def test_hooks_run(folder: Path) -> None:
    repository(folder, FILES)
    hook(folder, "pre-commit", "echo ran >> .git/seen")
    commits = committed(planned())
    assert (folder / ".git" / "seen").read_text().split() == ["ran"] * len(commits)


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg"])
def test_a_hook_that_fails_at_the_second_commit_leaves_no_trace(folder: Path, name: str) -> None:
    repository(folder, FILES)
    (folder / "clean.py").write_bytes(b"x = 2\n")
    git(folder, "add", "clean.py")
    hook(folder, name, "test -e .git/once && { echo 'no tabs, please' >&2; exit 1; }; touch .git/once")
    told = refused(planned(), folder, allow_dirty=True)
    assert "no tabs, please" in told
    assert "nothing was committed" in told
    assert not (folder / ".git" / "index.lock").exists()


def test_hooks_are_skipped_on_request_alone(folder: Path) -> None:
    repository(folder, FILES)
    hook(folder, "pre-commit", "exit 1")
    assert committed(planned(), hooks=False)


def test_a_hook_that_rewrites_our_files(folder: Path) -> None:
    repository(folder, FILES)
    hook(folder, "pre-commit", "echo '# by a hook' >> one.py; git add one.py")
    assert "a hook changed one.py" in refused(planned(), folder)


def test_an_interruption_leaves_no_trace(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(folder, FILES)
    result, before = planned(), snapshot(folder)
    from codemods.commits.repository import Repository

    commit, calls = Repository.commit, []

    def interrupted(*words: Any, **given: Any) -> str:
        calls.append(words)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return commit(*words, **given)

    monkeypatch.setattr(Repository, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        committed(result)
    assert snapshot(folder) == before


def test_a_file_that_changed_since_it_was_read(folder: Path) -> None:
    repository(folder, FILES)
    result = planned()
    (folder / "two.py").write_bytes(b"new = 1\n")
    git(folder, "commit", "-qam", "meanwhile")
    assert "two.py: changed since it was read" in refused(result, folder)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_file_that_cannot_be_written(folder: Path) -> None:
    repository(folder, FILES)
    (folder / "two.py").chmod(0o444)
    assert "two.py" in refused(planned(), folder)


# with the real engine


REAL = """\
import torch
from torch import nn
from torch.autograd import Variable

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0
for _ in range(3):
    x = Variable(torch.randn(2, 4))
    y = Variable(torch.randn(2, 1))
    loss = (model(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    total += loss
    opt.step()
print(total)


def evaluate(data):
    model.eval()
    right = 0
    for x, y in data:
        x = Variable(x, volatile=True)
        right += ((model(x) > 0) == y).sum().item()
    return right


print(evaluate([(torch.randn(2, 4), torch.ones(2, 1))]))
"""


@pytest.mark.parametrize("style", STYLES)
def test_real_rules_in_one_file(folder: Path, style: str) -> None:
    repository(folder, {"train.py": REAL.encode(), "again.py": REAL.replace("model", "net").encode()})
    options = Options()
    result = apply(read_targets(["."]).sources, options=options, dry_run=True)
    commits = commit_result(result, style=style, options=options)
    for rewrite in result.rewrites:
        assert rewrite.source.absolute.read_text() == rewrite.new
    require_revertible(folder, commits)
    assert len(commits) == {"per-rule": 2, "per-file": 2, "one": 1}[style]


def test_python_2_is_translated_in_a_commit_of_its_own(folder: Path) -> None:
    pytest.importorskip("fissix")
    text = REAL.replace("print(total)", "print total").replace("print(evaluate", "print (evaluate")
    repository(folder, {"train.py": text.encode(), "today.py": REAL.encode()})
    options = Options(python2=True)
    result = apply(read_targets(["."]).sources, options=options, dry_run=True)
    commits = commit_result(result, options=options)
    assert commits[0].subject == "Translate train.py from Python 2"
    for rewrite in result.rewrites:
        assert rewrite.source.absolute.read_text() == rewrite.new
    tip = git(folder, "rev-parse", "HEAD").strip()
    for one in commits[1:]:
        assert not fails(folder, "revert", "--no-edit", one.hash)
        ast.parse((folder / "train.py").read_text())
        git(folder, "reset", "-q", "--hard", tip)


def test_every_stage_parses(folder: Path) -> None:
    repository(folder, {"train.py": REAL.encode()})
    result = apply(read_targets(["."]).sources, options=Options(), dry_run=True)
    for one in commit_result(result, options=Options()):
        text = subprocess.run(
            ["git", "show", f"{one.hash}:train.py"], cwd=folder, capture_output=True, text=True, check=True
        ).stdout
        ast.parse(text)


@pytest.mark.slow
def test_every_commit_over_fixtures_can_be_reverted(folder: Path) -> None:
    """Whatever rules meet in one file: undone alone, a commit leaves exactly what the others make."""
    fixtures = Path(__file__).parents[2] / "fixtures"
    files = {}
    for name in ("legacy-variable", "unreset-loss", "surplus-retain-graph"):
        for file in (fixtures / name).rglob("*.py"):
            if "after" not in (*file.parts, file.stem):
                files[file.relative_to(fixtures).as_posix()] = file.read_bytes()
    repository(folder, files)
    options = Options(unsafe=True)
    result = apply(read_targets(["."]).sources, options=options, dry_run=True)
    commits = commit_result(result, options=options)
    assert len(commits) >= 5
    for rewrite in result.rewrites:
        assert rewrite.source.absolute.read_bytes() == rewrite.encoded
    require_revertible(folder, commits)
