"""Whatever became of a tree: a hunk is refused, or what it makes parses, mends, and touches nothing else."""

from __future__ import annotations

import ast
import functools
import os
import re
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from codemods.checking.check import check
from codemods.patches.bundle import load, sides
from codemods.patches.fitting import fit
from codemods.patches.results import State
from codemods.source.options import Options
from codemods.source.targets import read_targets
from codemods.terms.findings import Promise
from tests.patches.drift import SCRIPT, recorded

FIXTURES = Path(__file__).parents[2] / "fixtures"
WORDS = re.compile(r"\w+|[^\w\s]")


def small_fixtures() -> list[str]:
    found = []
    for folder in sorted(FIXTURES.iterdir()):
        texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*/before.py"))]
        found += sorted(texts, key=len)[:1]
    return [text for text in found if len(text) < 3000]


PROGRAMS = [SCRIPT, *small_fixtures()]


@functools.cache
def bundle_of(index: int, folder: str) -> bytes:
    os.chdir(folder)
    return recorded(PROGRAMS[index])


def drifted(text: str, steps: list[tuple[str, int, int]]) -> str:
    for kind, at, amount in steps:
        lines = text.splitlines(keepends=True)
        place = at % max(1, len(lines))
        names = sorted(set(re.findall(r"\b[a-z_]{3,}\b", text)) - {"torch", "self"})
        if kind == "comment":
            lines[place:place] = ["# said since\n"] * (1 + amount % 3)
        elif kind == "delete":
            del lines[place : place + 1 + amount % 2]
        elif kind == "duplicate":
            lines[place:place] = lines[place : place + 4 + amount % 12]
        elif kind == "move":
            part = lines[place : place + 1 + amount % 12]
            del lines[place : place + len(part)]
            lines[amount % max(1, len(lines)) : 0] = part
        elif kind == "rename" and names:
            text = re.sub(rf"\b{names[at % len(names)]}\b", f"name{amount % 7}", text)
            continue
        elif kind == "respell" and lines:
            lines[place] = lines[place].replace(", ", ",").replace(" = ", "=").replace("(", "( ")
        elif kind == "break" and lines and "(" in lines[place]:
            lines[place] = lines[place].replace("(", "(\n            ", 1)
        elif kind == "reindent":
            text = re.sub(r"^ +", lambda found: " " * (len(found[0]) // 2), text, flags=re.MULTILINE)
            continue
        elif kind == "ends":
            text = text.replace("\r\n", "\n").replace("\n", "\r\n") if amount % 2 else text.rstrip("\n")
            continue
        text = "".join(lines)
    return text


KINDS = ["comment", "delete", "duplicate", "move", "rename", "respell", "break", "reindent", "ends"]
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 400), st.integers(0, 400)), min_size=1, max_size=4)


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def found_in(path: Path) -> Counter[str]:
    result = check(read_targets([str(path)]).sources, options=Options())
    return Counter(one.finding.rule for one in result.findings if one.finding.promise is not Promise.ADVICE)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(index=st.integers(0, len(PROGRAMS) - 1), steps=STEPS)
@example(index=19, steps=[("duplicate", 0, 227)])
def test_refused_or_right(folder: Path, index: int, steps: list[tuple[str, int, int]]) -> None:
    data = bundle_of(index, str(folder))
    os.chdir(folder)
    text = drifted(PROGRAMS[index], steps)
    path = folder / "train.py"
    path.write_bytes(text.encode())
    before = found_in(path)
    result = fit(load(data))
    after = path.read_bytes().decode()
    made = [hunk for hunk in result.hunks if hunk.state in (State.APPLIED, State.MOVED, State.FUZZY)]
    if not made:
        assert after == text
        return
    assert parses(after)
    assert after.endswith("\n") == text.endswith("\n")
    assert ("\r\n" in after) == ("\r\n" in text)
    # What is mended is gone and nothing is new, but for what comes to light by a repair.
    now = found_in(path)
    # Of twins only the first may have been found: where that raises, the other is never come to.
    twins = any(kind == "duplicate" for kind, _, _ in steps)
    for rule in {rule for hunk in made for rule in hunk.rules}:
        assert now[rule] < before[rule] + twins
    # Of the words those go and come that the hunks take and bring, and no others.
    assert exchange(text, after) == total(data, {hunk.number for hunk in made})
    if twins:
        # What a hunk brings may be what its twin had from the beginning; then nothing tells that it was brought here.
        return
    again = fit(load(data))
    assert not [hunk for hunk in again.hunks if hunk.state in (State.APPLIED, State.MOVED, State.FUZZY)], again
    assert path.read_bytes().decode() == after


def exchange(old: str, new: str) -> Counter[str]:
    found = Counter(WORDS.findall(new))
    found.subtract(WORDS.findall(old))
    return Counter({word: count for word, count in found.items() if count})


def total(data: bytes, numbers: set[int]) -> Counter[str]:
    """The words that the hunks of these numbers bring, less those that they take."""
    bundle = load(data)
    (file,) = bundle.diff
    stretches = [one for hunk in file.hunks for one in sides(hunk)]
    recorded_hunks = (bundle.files or {})[file.path].hunks
    words: Counter[str] = Counter()
    for number, one in enumerate(recorded_hunks, 1):
        if number not in numbers:
            continue
        start, _, gone, come = next(s for s in stretches if s[0] <= one.about.line <= s[0] + len(s[2]))
        if len(gone) == len(come):
            part = slice(one.about.line - start, one.about.line - start + one.removed)
            gone, come = gone[part], come[part]
        words.update(WORDS.findall(b"".join(come).decode()))
        words.subtract(WORDS.findall(b"".join(gone).decode()))
    return Counter({word: count for word, count in words.items() if count})
