"""Suggestions: taken by a click, they are what ``apply`` writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from codemods.checking.check import check
from codemods.reports import Detail, Report, renderer, shows_edits
from codemods.rewriting.apply import apply
from codemods.source.options import Options
from codemods.source.targets import read_targets
from tests.notebooks import code, notebook
from tests.rewriting.test_fixes import PROGRAM

pytestmark = pytest.mark.usefixtures("folder")

CARRIED = """\
import torch
from torch import nn

cell = nn.RNNCell(4, 8)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
state = torch.zeros(2, 8)
for step in range(10):
    state = cell(torch.randn(2, 4), state)
    loss = state.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def review(**files: str | bytes) -> dict[str, Any]:
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        Path(name.replace("_", ".")).write_bytes(data)
    sources = read_targets(["."]).sources
    made = apply(sources, options=Options(), dry_run=True)
    report = Report.of_check(check(sources, options=Options()), made)
    found: dict[str, Any] = json.loads(renderer("suggestions")(report, Detail.NORMAL))
    return found


def taken(path: str, comments: list[dict[str, Any]]) -> str:
    """The file with all suggestions taken, as GitHub does it: whole lines."""
    lines = Path(path).read_text().splitlines(keepends=True)
    for one in sorted((one for one in comments if one["path"] == path), key=lambda one: -one["line"]):
        (text,) = re.findall(r"^(?:`{3,})suggestion\n(.*?)^`{3,}$", one["body"], re.DOTALL | re.MULTILINE)
        lines[one.get("start_line", one["line"]) - 1 : one["line"]] = [text]
    return "".join(lines)


def test_taken_they_are_what_apply_writes() -> None:
    found = review(carried_py=CARRIED)
    (comment,) = found["comments"]
    assert comment["path"] == "carried.py"
    assert comment["side"] == "RIGHT"
    assert "**repair**: the rewritten program" in comment["body"]
    assert "UNVERIFIED" in comment["body"]
    result = apply(read_targets(["."]).sources, options=Options(), dry_run=True)
    assert taken("carried.py", found["comments"]) == result.rewrites[0].new


def test_what_is_not_small_is_counted() -> None:
    found = review(train_py=PROGRAM, book_ipynb=notebook(code(CARRIED)))
    assert found["event"] == "COMMENT"
    assert all(one["path"] == "train.py" for one in found["comments"])
    assert "codemod apply" in found["body"]
    assert "attached-loss-total" in "".join(one["body"] for one in found["comments"])


def test_after_writing_and_without_findings_there_are_none() -> None:
    assert review(a_py="x = 1\n")["comments"] == []
    Path("b.py").write_text(CARRIED)
    report = Report.of_apply(apply(read_targets(["."]).sources, options=Options()))
    assert json.loads(renderer("suggestions")(report, Detail.NORMAL))["comments"] == []
    assert shows_edits("suggestions")


def test_a_fence_is_longer_than_any_in_the_code() -> None:
    found = review(a_py=CARRIED.replace("optimizer.step()", "optimizer.step()  # ```` suggestion"))
    (comment,) = found["comments"]
    result = apply(read_targets(["."]).sources, options=Options(), dry_run=True)
    assert taken("a.py", [comment]) == result.rewrites[0].new
