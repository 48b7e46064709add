"""A key in a comment or a docstring: the program is the same, and is not looked at again."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.editor import documents
from codemods.editor.documents import Documents
from codemods.editor.recent import Stopped, program_of

SCRIPT = """\
import torch

# a model
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0
for x in torch.ones(3, 2):  # steps
    text = "# no comment"
    loss = net(x).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
print(
    text,  # in brackets
)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# steps", "# the steps"),
        ("# a model", "# a model, an eval() of which"),
        ("# a model", "#"),
        (":  # steps", ":    # steps"),
        ("    opt.step()\n", "    opt.step()   \n"),
    ],
)
def test_the_same_program(old: str, new: str) -> None:
    assert program_of(SCRIPT.replace(old, new)) == program_of(SCRIPT) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# steps", ""),
        ("# a model", "# a model\n"),
        ("# a model", "# a model on cuda"),
        ("# a model", '# a "model"'),
        ("# no comment", "# a comment"),
        ("# in brackets", "# inside"),
        ("lr=0.1", "lr=0.2"),
        ("net = ", "net  = "),
        ("import torch\n", "import torch  # coding: latin-1\n"),
    ],
)
def test_another_program(old: str, new: str) -> None:
    assert SCRIPT.replace(old, new) != SCRIPT
    assert program_of(SCRIPT.replace(old, new)) != program_of(SCRIPT)


DOCUMENTED = '''\
"""Trains a model."""

import torch


class Net(torch.nn.Module):
    """A net.

    It has one layer.
    """

    def forward(self, x):
        """Apply it."""
        text = "plain"
        return x, text

    def one(self):
        "Nothing."; return 1
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Trains a model.", "Trains a larger model."),
        ("A net.", "A network, \u03b1."),
        ("It has one layer.", "It has"),
        ("Apply it.", ""),
        ("Apply it.", 'It\'s "applied" here.'),
        ("Apply it.", "Calls loss.backward() # not."),
    ],
)
def test_docstrings_are_no_part_of_a_program(old: str, new: str) -> None:
    assert DOCUMENTED.replace(old, new) != DOCUMENTED
    assert program_of(DOCUMENTED.replace(old, new)) == program_of(DOCUMENTED) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # another text than a docstring, one that has another line, one of which rules ask, one that may be no Python,
        # one that moves what follows
        ("plain", "other"),
        ("It has one layer.", "It has\n    one layer."),
        ("A net.", "A net in torch."),
        ("A net.", "A net, \\\\x."),
        ("A net.", "A net, \x00."),
        ("Nothing.", "Nothing more."),
        ('    """Apply it."""\n', '    """Apply it."""  \n        pass\n'),
        ('"""Trains a model."""', "# coding: latin-1"),
        ('"""Trains a model."""', 'b"""Trains a model."""'),
        ('"""Trains a model."""', 'f"""Trains a model."""'),
    ],
)
def test_other_strings_and_other_lines_are(old: str, new: str) -> None:
    assert DOCUMENTED.replace(old, new) != DOCUMENTED
    assert program_of(DOCUMENTED.replace(old, new)) != program_of(DOCUMENTED)


@pytest.mark.parametrize("text", ["def f(:\n", "x = '\x00'\n", "(" * 500])
def test_what_is_no_program(text: str) -> None:
    assert program_of(text) is None


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    ran: list[str] = []
    analyse = documents.analyse

    def counting(targets, **more):  # type: ignore[no-untyped-def]
        ran.append(targets[0].text)
        return analyse(targets, **more)

    monkeypatch.setattr(documents, "analyse", counting)
    return ran


def test_a_comment_is_not_analysed_and_counts_all_the_same(tmp_path: Path, counted: list[str]) -> None:
    path = str(tmp_path / "train.py")
    first = Documents({path: SCRIPT})
    found = first.diagnose(path).findings
    assert [finding.rule for finding in found] == ["surplus-retain-graph"]
    assert Documents({path: SCRIPT.replace("# steps", "# more")}, recent=first.recent).diagnose(path).findings == found
    assert len(counted) == 1
    silent = SCRIPT.replace("retain_graph=True)", "retain_graph=True)  # codemod: ignore")
    assert Documents({path: silent}, recent=first.recent).diagnose(path).findings == ()
    changed = Documents({path: SCRIPT.replace("retain_graph=True", "")}, recent=first.recent)
    assert changed.diagnose(path).findings == ()
    assert len(counted) == 3


def test_another_text_beside_it_is_another_program(tmp_path: Path, counted: list[str]) -> None:
    path, other = str(tmp_path / "train.py"), str(tmp_path / "other.py")
    first = Documents({path: SCRIPT, other: "x = 1\n"})
    first.diagnose(path)
    Documents({path: SCRIPT, other: "x = 2\n"}, recent=first.recent).diagnose(path)
    assert len(counted) == 2
    first.recent.clear()
    first.diagnose(path)
    assert len(counted) == 3


def test_work_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    path = str(tmp_path / "train.py")
    with pytest.raises(Stopped):
        Documents({path: SCRIPT}, stopped=lambda: True).diagnose(path)
