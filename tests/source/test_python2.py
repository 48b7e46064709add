"""Python 2 to Python 3, before anything else and as a change of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.checking.check import check
from codemods.rewriting.apply import apply
from codemods.source.files import SourceFile, read_source
from codemods.source.options import Options
from codemods.source.python2 import translated, translation
from codemods.terms.findings import Promise
from tests.commands import codemod

OLD = """\
import torch
from torch.autograd import Variable
net = torch.nn.Linear(2, 1)
for i in xrange(2):
    x = Variable(torch.randn(3, 2))
    loss = net(x).pow(2).mean()
    loss.backward()
    print "loss", loss.data[0]
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("print 'x'\n", "print('x')\n"),
        ("print >>f, 'x',\n", "print('x', end=' ', file=f)\n"),
        (
            "try:\n    f()\nexcept E, e:\n    raise E, 'no'\n",
            "try:\n    f()\nexcept E as e:\n    raise E('no')\n",
        ),
        ("if a <> b: print `a`, 0777, 10L  # why\n", "if a != b: print(repr(a), 0o777, 10)  # why\n"),
        ("print d.has_key(1)\r\ns = '''a\r\nb'''\r\n", "print(1 in d)\r\ns = '''a\r\nb'''\r\n"),
        ("x.cuda(async=True); print x", "x.cuda(async=True); print(x)"),
        (
            "def f():\n\tif a:\n\t    print 1\n        return 2\n",
            "def f():\n        if a:\n            print(1)\n        return 2\n",
        ),
        ("print 'x'\nt = '''\n\tkept\n'''\n", "print('x')\nt = '''\n\tkept\n'''\n"),
    ],
)
def test_translated(old: str, new: str) -> None:
    assert translated(old) == new


@pytest.mark.parametrize(
    "text", ["print('x')\n", "<<<<<<< HEAD\nprint 'x'\n", "def f(:\n", "print 'x'\n%matplotlib inline\n"]
)
def test_what_is_no_python_2_is_left(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.py").write_text(text)
    assert translation(read_source(tmp_path / "a.py")) is None


def _project(folder: Path, text: str = OLD) -> list[SourceFile]:
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(text)
    return [read_source(folder / "train.py", "train.py")]


def test_check_names_it_and_looks_at_what_it_becomes(tmp_path: Path) -> None:
    targets = _project(tmp_path)
    plain = check(targets, options=Options(), jobs=1)
    assert [(s.line, s.reason) for s in plain.skipped] == [(8, "Python 2 print statement")]
    assert not plain.findings
    result = check(targets, options=Options(python2=True), jobs=1)
    assert not result.skipped
    found = [(r.finding.rule, r.finding.span.line, r.finding.promise) for r in result.findings]
    assert found == [
        ("legacy-variable", 5, Promise.EXACT),
        ("python2", 8, Promise.REPAIR),
        ("legacy-variable", 8, Promise.REPAIR),
    ]
    assert all(r.fixable for r in result.findings)


def test_the_two_kinds_of_change_stand_apart_in_the_diff(tmp_path: Path) -> None:
    targets = _project(tmp_path)
    result = apply(targets, options=Options(python2=True), jobs=1, dry_run=True)
    assert (tmp_path / "train.py").read_text() == OLD
    first, second = result.diff().decode().split("--- a/train.py\n")[1:]
    assert '+    print("loss", loss.data[0])' in first
    assert "item()" not in first
    assert '+    print("loss", loss.item())' in second
    assert "-from torch.autograd import Variable" in second
    assert not result.failures


def test_apply_writes_both_and_a_second_time_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _project(tmp_path)
    codemod("apply", ".", "--python2")
    text = (tmp_path / "train.py").read_text()
    assert 'print("loss", loss.item())' in text
    assert "xrange" not in text
    assert codemod("apply", ".", "--python2", "--dry-run").stdout == ""


@pytest.mark.parametrize(("head", "told"), [("", True), ("from __future__ import division\n", False)])
def test_division_is_told(tmp_path: Path, head: str, told: bool) -> None:
    (target,) = _project(tmp_path, f"{head}n = 7 / 2\nprint n\n")
    made = translation(target)
    assert made is not None
    assert ("each /" in made.finding.message) is told
