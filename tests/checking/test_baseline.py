"""A baseline: findings known again however the code around them moves."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from codemods.checking.baseline import Baseline, BaselineError, Compared, compare, load_baseline, save_baseline
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Span
from tests.closed import as_nobody, closed_folder


def findings(path: str, text: str) -> list[Finding]:
    """A finding of the rule wrong at each line that says WRONG, of other where OTHER stands."""
    lines = text.splitlines()
    return [
        Finding(word.lower(), path, Span(number, line.index(word), number, len(line)), Promise.EXACT, "")
        for number, line in enumerate(lines, 1)
        for word in ("WRONG", "OTHER")
        if word in line
    ]


def held(baseline: Baseline, **texts: str) -> Compared:
    named = {f"{name}.py": text for name, text in texts.items()}
    found = [finding for path, text in named.items() for finding in findings(path, text)]
    return compare(found, named, baseline)


def frozen(**texts: str) -> Baseline:
    return held(Baseline(Path("baseline.json"), {}), **texts).after


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "b.py"):
        (tmp_path / name).touch()


TEXT = """\
class Trainer:
    def fit(self):
        for x in self.data:
            total += WRONG(x, y)
"""


@pytest.mark.parametrize(
    "now",
    [
        TEXT,
        "import torch\n\n" + TEXT,
        TEXT.replace("total += WRONG(x, y)", "if y:\n                total += WRONG(x, y)"),
        TEXT.replace("WRONG(x, y)", "WRONG(x, y)  # why"),
        TEXT.replace("WRONG(x, y)", "WRONG(\n                x,  # of the batch\n                y,\n            )"),
        TEXT.replace("(x, y)", "( x,y )").replace("x,y", "x, y"),
        TEXT.replace("    def fit(self)", "    @torch.jit.ignore\n    def fit(self, epochs=1)"),
    ],
)
def test_what_is_known_is_known_again(now: str) -> None:
    compared = held(frozen(a=TEXT), a=now)
    assert (compared.new, compared.known, compared.gone) == ((), 1, ())


@pytest.mark.parametrize(
    "now",
    [
        TEXT.replace("def fit", "def train"),
        TEXT.replace("class Trainer", "class Other"),
        TEXT.replace("total +=", "sum +="),
        TEXT.replace("WRONG", "OTHER"),
    ],
)
def test_what_is_another_finding_is_new_and_the_old_one_gone(now: str) -> None:
    compared = held(frozen(a=TEXT), a=now)
    assert (len(compared.new), compared.known, len(compared.gone)) == (1, 0, 1)


def test_of_several_alike_as_many_are_known_as_there_were() -> None:
    before = frozen(a="x = WRONG\nx = WRONG\n")
    assert list(before.entries.values()) == [2]
    more = held(before, a="x = WRONG\ny = 1\nx = WRONG\nx = WRONG\n")
    assert [finding.span.line for finding in more.new] == [4]
    fewer = held(before, a="x = WRONG\n")
    assert (fewer.new, fewer.known, len(fewer.gone)) == ((), 1, 1)
    assert list(fewer.after.entries.values()) == [1]


def test_a_block_is_known_by_its_head() -> None:
    before = "def validate(batches):  # WRONG\n    return 1\n"
    assert held(frozen(a=before), a=before.replace("1", "2")).new == ()
    assert len(held(frozen(a=before), a=before.replace("batches", "data")).new) == 1


def test_what_was_not_looked_at_is_not_gone() -> None:
    before = frozen(a="x = WRONG\n", b="x = WRONG\ny = OTHER\n")
    compared = compare([], {"b.py": ""}, before, left_out={"other"})
    assert [(mark.path, mark.rule) for mark in compared.gone] == [("b.py", "wrong")]
    assert sorted((mark.path, mark.rule) for mark in compared.after.entries) == [("a.py", "wrong"), ("b.py", "other")]
    unread = compare([], {"b.py": ""}, before, unread={"b.py"})
    assert (unread.gone, unread.after.entries) == ((), before.entries)


def test_a_renamed_file_brings_nothing_new() -> None:
    before = frozen(a="x = WRONG\ny = WRONG\n")
    os.rename("a.py", "c.py")
    compared = held(before, c="x = WRONG\ny = WRONG\nz = WRONG\n")
    assert [finding.span.line for finding in compared.new] == [3]
    assert (compared.known, compared.gone) == (2, ())
    assert {mark.path for mark in compared.after.entries} == {"c.py"}
    # A copy is another file: the one it was made of is still there.
    Path("a.py").touch()
    assert len(held(before, c="x = WRONG\n").new) == 1


def test_what_was_in_a_removed_file_is_gone() -> None:
    before = frozen(a="x = WRONG\n")
    os.unlink("a.py")
    assert len(held(before, b="").gone) == 1


def test_paths_are_those_from_the_file_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "a.py").touch()
    text = "x = WRONG\n"
    found = compare(findings("pkg/a.py", text), {"pkg/a.py": text}, Baseline(Path("b.json"), {}))
    save_baseline(found.after)
    monkeypatch.chdir(tmp_path / "pkg")
    again = compare(findings("a.py", text), {"a.py": text}, load_baseline(Path("../b.json")))
    assert again.known == 1


def test_the_file_is_sorted_a_line_an_entry_and_stable(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    before = frozen(b="x = WRONG\nx = WRONG\n", a='y = "\u00e9" + WRONG\n')
    assert save_baseline(Baseline(file, before.entries))
    assert file.read_text(encoding="utf-8") == (
        '{\n "codemod-baseline": 1,\n "findings": [\n'
        '  {"path": "a.py", "rule": "wrong", "function": "", "statement": "y = \\"\u00e9\\" + WRONG"},\n'
        '  {"path": "b.py", "rule": "wrong", "function": "", "statement": "x = WRONG", "count": 2}\n'
        " ]\n}\n"
    )
    assert load_baseline(file).entries == before.entries
    assert load_baseline(file).count == 3
    assert not save_baseline(Baseline(file, before.entries))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "b.py", "baseline.json"]


def test_an_empty_one_and_names_that_are_no_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    save_baseline(Baseline(file, {}))
    assert json.loads(file.read_text()) == {"codemod-baseline": 1, "findings": []}
    name = os.fsdecode(b"bad\xff.py")
    (mark,) = frozen(a="x = WRONG\n").entries
    save_baseline(Baseline(file, {mark._replace(path=name): 1}))
    assert [mark.path for mark in load_baseline(file).entries] == [name]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not a baseline"),
        ("{", "not a baseline"),
        ("[]", "not a baseline of codemod"),
        ('{"findings": []}', "not a baseline of codemod"),
        ('{"version": 1, "findings": []}', "not a baseline of codemod"),
        ('{"codemod-baseline": 2, "findings": []}', "written by a newer codemod"),
        ('{"codemod-baseline": 1}', "no list of findings"),
        ('{"codemod-baseline": 1, "findings": {}}', "no list of findings"),
        ('{"codemod-baseline": true, "findings": []}', "not a baseline of codemod"),
        ('{"codemod-baseline": ' + "1" * 5000 + "}", "a number is too long"),
        ("[" * 100_000, "the nesting too deep"),
        ('{"codemod-baseline": 1, "findings": [{"path": "a.py"}]}', "entry 1"),
        ('{"codemod-baseline": 1, "findings": ["x"]}', "entry 1"),
        (
            '{"codemod-baseline": 1, "findings": '
            '[{"path": "a", "rule": "b", "function": "", "statement": "", "count": -1}]}',
            "entry 1",
        ),
        ("<<<<<<< HEAD", "not a baseline"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "b.json"
    file.write_text(content)
    with pytest.raises(BaselineError, match=words):
        load_baseline(file)


def test_a_file_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="--update-baseline writes one"):
        load_baseline(tmp_path / "none.json")
    with pytest.raises(BaselineError, match="is a folder"):
        load_baseline(tmp_path)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    with pytest.raises(BaselineError, match="read-only folder"):
        save_baseline(Baseline(closed / "b.json", {}))
    assert list(closed.iterdir()) == []
    with pytest.raises(BaselineError, match="no such file"):
        save_baseline(Baseline(tmp_path / "none" / "b.json", {}))
    file = tmp_path / "b.json"
    save_baseline(Baseline(file, {}))
    file.chmod(0o444)
    with pytest.raises(BaselineError, match="read-only file"):
        save_baseline(Baseline(file, frozen(a="x = WRONG\n").entries))


def test_a_closed_folder_is_no_missing_one() -> None:
    with closed_folder() as closed:
        file, text = closed / "baseline.json", "WRONG\n"
        (closed / "a.py").write_text(text)
        made = frozen(a=text)
        save_baseline(Baseline(file, made.entries))
        elsewhere = Baseline(
            closed.parent / "baseline.json",
            {mark._replace(path="closed/a.py"): count for mark, count in made.entries.items()},
        )
        closed.chmod(0)
        told = as_nobody(lambda: load_baseline(file))
        saved = as_nobody(lambda: save_baseline(Baseline(file, {})))
        compared = as_nobody(lambda: compare([], {}, elsewhere))
    assert told == f"BaselineError('{file}: permission denied')"
    assert saved == told
    # what nobody could look at is not gone
    assert isinstance(compared, Compared)
    assert (compared.gone, compared.after.count) == ((), 1)
