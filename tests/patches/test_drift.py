"""A reviewed patch on trees that were changed on purpose since."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codemods.analysis.analyse import Analysis, analyse
from codemods.patches.bundle import dump, load
from codemods.patches.fitting import fit
from codemods.rewriting.apply import apply
from codemods.source.files import SourceFile
from codemods.source.options import Options
from codemods.source.targets import read_targets
from tests.patches.drift import SCRIPT, fitted, now, recorded, rules, states

MENDED = (
    SCRIPT.replace("def validate", "@torch.no_grad()\ndef validate")
    .replace("retain_graph=True", "")
    .replace("total += loss", "total += loss.item()")
)
LOOP = SCRIPT[SCRIPT.index("def train") : SCRIPT.index("data =")]


@pytest.fixture
def bundle() -> bytes:
    return recorded()


def test_on_the_tree_it_was_made_for(bundle: bytes) -> None:
    assert states(fitted(bundle)) == ["applied"] * 3
    assert now() == MENDED
    assert rules() == []


def test_twice_changes_nothing(bundle: bytes) -> None:
    fitted(bundle)
    again = fitted(bundle)
    assert states(again) == ["already applied"] * 3
    assert (again.status, again.rewrites) == (0, ())
    assert now() == MENDED


def test_a_dry_run_writes_nothing(bundle: bytes) -> None:
    result = fitted(bundle, dry_run=True)
    assert states(result) == ["applied"] * 3
    assert now() == SCRIPT
    assert b"+@torch.no_grad()\n" in result.diff()


def test_code_inserted_before(bundle: bytes) -> None:
    drifted = SCRIPT.replace("import torch\n", "import argparse\nimport logging\n\nimport torch\n")
    result = fitted(bundle, drifted)
    assert states(result) == ["moved"] * 3
    assert [(hunk.line, hunk.now[1]) for hunk in result.hunks] == [(10, 13), (23, 26), (25, 28)]
    assert now() == MENDED.replace("import torch\n", "import argparse\nimport logging\n\nimport torch\n", 1)


def test_functions_moved(bundle: bytes) -> None:
    drifted = SCRIPT.replace(LOOP, "").replace("def validate", LOOP + "def validate")
    result = fitted(bundle, drifted)
    assert set(states(result)) <= {"moved", "fuzzy", "applied"}
    assert result.status == 0
    assert rules() == []


def test_variables_renamed(bundle: bytes) -> None:
    drifted = re.sub(r"\bmodel\b", "net", re.sub(r"\bloss\b", "batch_loss", SCRIPT))
    result = fitted(bundle, drifted)
    assert result.status == 0
    assert "fuzzy" in states(result)
    assert "        batch_loss.backward()\n" in now()
    assert "        total += batch_loss.item()\n" in now()
    assert rules() == []


def test_the_function_renamed(bundle: bytes) -> None:
    result = fitted(bundle, SCRIPT.replace("validate", "evaluate").replace("train(", "run_epoch("))
    assert result.status == 0
    assert rules() == []


def test_reformatted(bundle: bytes) -> None:
    drifted = SCRIPT.replace(
        "loss = ((model(x) - y) ** 2).mean()",
        "loss = (\n            (model(x) - y) ** 2\n        ).mean()",
    ).replace("loss.backward(retain_graph=True)", "loss.backward(\n            retain_graph=True,\n        )")
    result = fitted(bundle, drifted)
    assert states(result)[0] == "applied"
    assert states(result)[2] == "fuzzy"
    assert "total += loss.item()" in now()
    # The comma is not what was removed in the original: whoever reformats that far gets a refusal, not half an edit.
    assert states(result)[1] == "refused"
    assert "retain_graph=True,\n" in now()


def test_reindented(bundle: bytes) -> None:
    drifted = re.sub(r"^ +", lambda found: " " * (len(found[0]) // 2), SCRIPT, flags=re.MULTILINE)
    result = fitted(bundle, drifted)
    assert result.status == 0
    assert now() == re.sub(r"^ +", lambda found: " " * (len(found[0]) // 2), MENDED, flags=re.MULTILINE)


def test_put_into_a_class(bundle: bytes) -> None:
    body = SCRIPT[SCRIPT.index("def train") : SCRIPT.index("data =")]
    method = "class Trainer:\n" + re.sub(r"^(?=.)", "    ", body.replace("(batches)", "(self, batches)"), flags=re.M)
    drifted = SCRIPT.replace(body, method).replace("train(data)", "Trainer().train(data)")
    result = fitted(bundle, drifted)
    assert result.status == 0
    assert "            total += loss.item()\n" in now()
    assert rules() == []


def test_the_same_code_twice_is_refused() -> None:
    text = SCRIPT.replace("print(epoch, train(data))", "print(epoch, train(data), train(data))")
    bundle = recorded(text)
    twin = LOOP.replace("def train", "def other")
    drifted = text.replace(LOOP, twin + LOOP.replace("def train", "def another"))
    drifted = drifted.replace("train(data), train(data)", "other(data), another(data)").replace("Trains", "It trains")
    result = fitted(bundle, drifted)
    assert states(result)[1:] == ["refused", "refused"]
    assert "2 places are equally good: lines 23, 34" in result.hunks[1].reason
    assert now().count("retain_graph=True") == 2
    assert result.status == 1


def test_the_function_tells_equal_places_apart(bundle: bytes) -> None:
    drifted = SCRIPT.replace(LOOP, LOOP.replace("def train", "def pretrain") + LOOP).replace("Trains", "It trains")
    result = fitted(bundle, drifted)
    assert states(result) == ["applied", "moved", "moved"]
    assert now().index("retain_graph=True") < now().index("def train")
    assert now().count("retain_graph=True") == 1


def test_a_twin_of_what_is_made_already_is_left_alone(bundle: bytes) -> None:
    fitted(bundle)
    drifted = now() + "\n\n" + LOOP
    again = fitted(bundle, drifted)
    assert states(again) == ["already applied"] * 3
    assert now() == drifted


def test_mended_by_hand_in_the_same_way(bundle: bytes) -> None:
    result = fitted(bundle, "# new\n" + SCRIPT.replace("total += loss", "total += loss.item()"))
    assert states(result) == ["moved", "moved", "already applied"]
    assert result.status == 0
    assert rules() == []


def test_mended_by_hand_in_another_way_is_not_mended_twice(bundle: bytes) -> None:
    drifted = SCRIPT.replace("total += loss", "total += float(loss)")
    result = fitted(bundle, drifted)
    assert states(result)[2] == "refused"
    assert "total += float(loss)\n" in now()
    assert "attached-loss-total is not found in train.py any more" in result.hunks[2].reason


def test_needed_by_now_is_refused(bundle: bytes) -> None:
    drifted = SCRIPT.replace(
        "        loss.backward(retain_graph=True)\n",
        "        loss.backward(retain_graph=True)\n        (loss * 2).backward()\n",
    )
    result = fitted(bundle, drifted)
    assert "retain_graph=True" in now()
    assert result.hunks[1].state.value == "refused"
    assert result.hunks[1].reason


def test_what_is_only_advice_by_now_is_refused(bundle: bytes) -> None:
    # The model's class is not known any more: it may keep a graph between its calls.
    result = fitted(bundle, SCRIPT.replace("from torch import nn\n", "from layers import nn\n"))
    assert result.hunks[1].state.value == "refused"
    assert "surplus-retain-graph at train.py:23 is advice now" in result.hunks[1].reason
    assert "retain_graph=True" in now()


def test_the_code_is_gone(bundle: bytes) -> None:
    drifted = SCRIPT.replace(LOOP, "").replace("    print(epoch, train(data))\n", "")
    result = fitted(bundle, drifted)
    assert states(result) == ["applied", "refused", "refused"]
    assert result.hunks[1].reason.startswith("nothing there is like the lines that it changes; surplus-retain-graph is")


def test_a_comment_that_says_leave_it_is_heard(bundle: bytes) -> None:
    drifted = SCRIPT.replace("total += loss\n", "total += loss  # codemod: ignore[attached-loss-total]\n")
    result = fitted(bundle, drifted)
    assert states(result)[2] == "refused"
    assert "left alone by a comment" in result.hunks[2].reason


def test_broken_since_is_refused_with_its_line(bundle: bytes) -> None:
    result = fitted(bundle, SCRIPT + "def (\n")
    assert states(result) == ["refused"] * 3
    assert "cannot be read, line 33" in result.hunks[0].reason
    assert now() == SCRIPT + "def (\n"


@pytest.mark.parametrize("made", ["\n", "\r\n"])
@pytest.mark.parametrize("is_now", ["\n", "\r\n"])
def test_line_ends_are_those_of_the_file(made: str, is_now: str) -> None:
    bundle = recorded(SCRIPT.replace("\n", made))
    result = fitted(bundle, ("# new\n" + SCRIPT).replace("\n", is_now))
    assert states(result) == ["moved"] * 3
    assert now() == ("# new\n" + MENDED).replace("\n", is_now)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("coding", ["utf-8", "latin-1", "cp1252"])
def test_bytes_of_the_file_stay(mark: bytes, coding: str) -> None:
    if mark and coding != "utf-8":
        pytest.skip("Python knows no such file")
    text = SCRIPT.replace('"""Trains."""', f"# coding: {coding}\nNAME = 'caf\xe9'")
    drifted = text.replace("def train", "# na\xefve\ndef train").replace("data = [", "data=[")
    Path("train.py").write_bytes(mark + text.encode(coding))
    bundle = dump(apply(read_targets(["train.py"]).sources, options=Options(), dry_run=True), options=Options())
    result = fitted(bundle, mark + drifted.encode(coding))
    assert result.status == 0
    data = Path("train.py").read_bytes()
    assert data.startswith(mark + b"# coding")
    assert data[len(mark) :].decode(coding).replace("@torch.no_grad()\n", "").count("\n") == drifted.count("\n")
    assert "caf\xe9" in data.decode(coding)


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_end_of_the_file_stays_as_it_is(end: str) -> None:
    loop = (
        "\n".join(SCRIPT.split("\n")[:7])
        + """
total = 0
for _ in range(3):
    loss = model(torch.randn(2, 4)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss"""
    )
    bundle = recorded(loop)
    result = fitted(bundle, "# new\n" + loop + end)
    assert result.status == 0
    assert now().endswith(f"total += loss.item(){end}")


def test_a_change_of_several_hunks_is_made_wholly_or_not() -> None:
    text = SCRIPT.replace("torch.optim", "torch . optim")
    bundle = recorded(text)
    changes = load(bundle).changes
    assert changes
    lines = bundle.split(b"\n")
    at = next(i for i, line in enumerate(lines) if line.startswith(b'#codemod {"path"'))
    # As if the first change had made the second and third hunk too.
    lines[at] = lines[at].replace(b'"changes": [1]', b'"changes": [0]').replace(b'"changes": [2]', b'"changes": [0]')
    result = fitted(b"\n".join(lines), text.replace("        total += loss\n", ""))
    assert states(result) == ["refused"] * 3
    assert now() == text.replace("        total += loss\n", "")
    assert "belongs together with hunk 3" in result.hunks[0].reason


def test_a_hunk_taken_out_by_the_reviewer_is_left_out(bundle: bytes) -> None:
    first = bundle.index(b"@@ -7,")
    second = bundle.index(b"@@ -", first + 4)
    result = fitted(bundle[:first] + bundle[second:], "# new\n" + SCRIPT)
    assert states(result) == ["moved", "moved"]
    assert "no_grad" not in now()
    assert any("taken out of the patch" in note for note in result.notes)


def test_the_whole_tree_is_looked_at_for_programs_that_show_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = recorded()
    Path("main.py").write_text("import train\n")
    seen: list[set[str]] = []

    def looking(targets: Sequence[SourceFile], **given: Any) -> Analysis:
        seen.append({target.path for target in targets})
        return analyse(targets, **given)

    assert fit(load(data), dry_run=True, analyse=looking).status == 0
    assert all(paths == {"train.py", "main.py"} for paths in seen)
