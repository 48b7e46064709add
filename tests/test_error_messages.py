"""The page on error messages: its scripts raise them, and what it says mends them does."""

from __future__ import annotations

import contextlib
import gc
import io
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codemods.rewriting.apply import apply
from codemods.source.files import source_from_bytes
from codemods.source.options import Options

PAGE = Path(__file__).resolve().parents[1] / "docs" / "from-the-error-message.md"
MEMORY = "CUDA out of memory"


class Part(NamedTuple):
    """A section of the page."""

    message: str
    script: str
    rule: str
    diff: str


def _parts() -> list[Part]:
    found = []
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        script, diff = (re.findall(rf"```{name}\n(.*?)```", section, re.DOTALL)[0] for name in ("python", "diff"))
        rule = re.findall(r"The rule is \[([\w-]+)\]", section)[0]
        found.append(Part(section.split("\n", 1)[0], script, rule, diff))
    return found


PARTS = _parts()


def mended(script: str) -> tuple[str, list[str], str]:
    """The script after ``apply``, the rules that changed it, and the hunks."""
    result = apply([source_from_bytes(script.encode(), "train.py")], options=Options(), dry_run=True)
    diff = result.diff().decode().split("\n", 2)[2]
    return result.rewrites[0].new, [finding.rule for finding in result.fixed], diff


def test_there_are_five() -> None:
    assert len({part.message for part in PARTS}) == 5


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.rule)
def test_apply_makes_of_it_what_the_page_shows(part: Part) -> None:
    _, rules, diff = mended(part.script)
    assert part.rule in rules
    assert diff == part.diff


def said(script: str) -> tuple[str, dict[str, Any]]:
    """What a script says at its end and in its warnings, and its variables."""
    names: dict[str, Any] = {"__name__": "__main__"}
    told = []
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            exec(compile(script, "train.py", "exec"), names)
        except Exception as error:
            told.append(str(error))
    return " ".join([*told, *(str(one.message) for one in caught)]), names


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.rule)
def test_the_script_says_so_and_once_mended_no_more(part: Part) -> None:
    pytest.importorskip("torch")
    before, old = said(part.script)
    after, new = said(mended(part.script)[0])
    if part.message == MEMORY:
        assert [all(loss.grad_fn for loss in old["losses"]), {type(loss) for loss in new["losses"]}] == [True, {float}]
    else:
        assert part.message in before
    assert part.message not in after
    assert "Error" not in after
    gc.collect()
