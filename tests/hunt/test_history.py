"""The comparison with what people fixed, on a repository made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.hunt.history import CASES, RULES, Case, cases, compare, judge, reach, repository, table
from tests.repositories import alone, git
from tests.repositories import repository as made

BEFORE = """\
import torch


def evaluate(model: torch.nn.Module, loader):
    model.eval()
    right = 0
    for value, label in loader:
        right += (model(value).argmax(1) == label).sum().item()
    return right


def learn(model: torch.nn.Module, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0
    for value, label in loader:
        loss = torch.nn.functional.cross_entropy(model(value), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss
    evaluate(model, loader)
    return float(total)


if __name__ == "__main__":
    net = torch.nn.Linear(4, 3)
    batches = [(torch.randn(2, 4), torch.zeros(2, dtype=torch.long)) for _ in range(3)]
    learn(net, batches)
"""


def _finding(line: int, rule: str, *, fixable: bool = True, message: str = "", **more: Any) -> dict[str, Any]:
    return {"path": "a.py", "line": line, "rule": rule, "fixable": fixable, "message": message, **more}


def test_the_table_is_of_known_kinds_and_whole_commits() -> None:
    known = cases(CASES)
    assert len({(c.repo, c.commit) for c in known}) >= 100
    assert len({c.repo for c in known}) >= 60
    assert all(len(c.commit) == 40 and c.path.endswith(".py") and c.line > 0 for c in known)
    assert len({(c.repo, c.commit, c.path, c.line, c.kind) for c in known}) == len(known)


def test_a_kind_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cases.tsv"
    file.write_text("repo\tcommit\tpath\tline\tkind\tnote\na/b\tc\td.py\t1\twonder\t\n")
    with pytest.raises(ValueError, match="no such kind: wonder"):
        cases(file)


@pytest.mark.slow
def test_the_commit_before_a_fix_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch)
    folder = made(tmp_path / "ada+tiny", {"train.py": BEFORE.encode()})
    fixed = BEFORE.replace("def evaluate", "@torch.no_grad()\ndef evaluate").replace("+= loss\n", "+= loss.item()\n")
    (folder / "train.py").write_text(fixed)
    git(folder, "commit", "-q", "-a", "-m", "fix")
    commit = git(folder, "rev-parse", "HEAD").strip()
    group = [
        Case("ada/tiny", commit, "train.py", 3, "evaluation", ""),
        Case("ada/tiny", commit, "train.py", 20, "total", ""),
        Case("ada/tiny", commit, "train.py", 18, "retain", ""),
    ]
    assert compare(group, tmp_path, 120) == ["found", "found", "missed"]
    assert compare([Case("ada/none", commit, "train.py", 3, "evaluation", "")], tmp_path, 120) == ["absent"]


def test_where_a_mirror_may_keep_a_repository(tmp_path: Path) -> None:
    for name in ("a+one/repo/.git", "a+two/repo", "a+three", "a/four/.git"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "HEAD").write_text("ref: refs/heads/main\n")
    found = {name: repository(tmp_path, f"a/{name}") for name in ("one", "two", "three", "four", "five")}
    assert {n: f is not None and f.relative_to(tmp_path).as_posix() for n, f in found.items()} == {
        "one": "a+one/repo/.git", "two": "a+two/repo", "three": "a+three", "four": "a/four/.git", "five": False,
    }  # fmt: skip


def test_a_fix_reaches_as_far_as_its_function() -> None:
    assert reach(BEFORE, 7) == (4, 9)
    assert reach(BEFORE, 3) == (4, 9)
    assert reach(BEFORE, 27) == (7, 47)
    script = "for batch in data:\n" + 60 * "    step(batch)\n"
    assert reach(script, 3) == (1, 61)
    old = BEFORE.replace("    return right", "    print right")
    assert reach(old, 7) == (4, 11)


@pytest.mark.parametrize(
    ("kind", "line", "findings", "state"),
    [
        ("evaluation", 7, [_finding(4, "grad-in-evaluation")], "found"),
        ("evaluation", 7, [_finding(4, "grad-in-evaluation", fixable=False)], "advised"),
        ("evaluation", 7, [_finding(7, "legacy-variable", fixable=False, message="volatile=True ...")], "advised"),
        ("evaluation", 7, [_finding(7, "legacy-variable")], "something else"),
        ("evaluation", 7, [_finding(13, "grad-in-evaluation")], "missed"),
        ("evaluation", 7, [_finding(13, "grad-in-evaluation", trail=[{"path": "a.py", "line": 8}])], "found"),
        ("evaluation", 7, [_finding(13, "grad-in-evaluation", trail=[{"path": "b.py", "line": 8}])], "missed"),
        ("evaluation", 7, [_finding(2, "grad-in-evaluation", end_line=8)], "found"),
        ("evaluation", 7, [_finding(21, "grad-in-evaluation", end_line=21)], "found"),
        ("evaluation", 7, [_finding(20, "grad-in-evaluation", end_line=20)], "missed"),
        ("evaluation", 21, [_finding(4, "grad-in-evaluation", message="evaluate() only evaluates")], "found"),
        ("evaluation", 7, [_finding(40, "grad-in-evaluation", message="evaluate() only evaluates")], "missed"),
        ("total", 20, [_finding(19, "attached-loss-total")], "found"),
        ("total", 20, [_finding(17, "attached-loss-total")], "missed"),
        ("leave", 20, [_finding(20, "attached-loss-total")], "wrong"),
        ("leave", 20, [_finding(20, "attached-loss-total", fixable=False)], "right"),
        ("leave", 20, [_finding(20, "missing-zero-grad")], "right"),
    ],
)
def test_what_counts(kind: str, line: int, findings: list[dict[str, Any]], state: str) -> None:
    note = "attached-loss-total, walked by nobody" if kind == "leave" else ""
    assert judge(Case("a/b", "c", "a.py", line, kind, note), findings, BEFORE) == state


def test_a_call_from_another_file_counts() -> None:
    other = "from a import evaluate\n\nevaluate(net, batches)\n"
    finding = {**_finding(3, "grad-in-evaluation", end_line=3), "path": "b.py"}
    case = Case("a/b", "c", "a.py", 7, "evaluation", "")
    assert judge(case, [finding], BEFORE, {"b.py": other}.__getitem__) == "found"
    assert judge(case, [{**finding, "line": 1, "end_line": 1}], BEFORE, {"b.py": other}.__getitem__) == "missed"


def test_states_are_counted_by_kind() -> None:
    total = Case("a/b", "c", "a.py", 1, "total", "")
    assert table([(total, "found"), (total, "missed")]).splitlines() == [
        "| kind | found | missed | of |",
        "| --- | --- | --- | --- |",
        "| total | 1 | 1 | 2 |",
        "| all | 1 | 1 | 2 |",
    ]
    assert set(RULES) >= {c.kind for c in cases(CASES)} - {"leave"}
