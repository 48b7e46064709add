"""Small programs under one rule: what it finds in them and what they become."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest

from codemods.analysis.analyse import analyse
from codemods.edits.apply import apply_edits
from codemods.source.files import read_source
from codemods.source.options import Options
from codemods.terms.edits import Edit
from codemods.terms.findings import Finding, Promise, promoted

MAIN = "train.py"

LEARNING = """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters())
criterion = nn.MSELoss()

def batches():
    for _ in range(50):
        yield torch.randn(16, 4), torch.randn(16, 2)

def learn(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
"""The head of a program that learns a little, for rules about what becomes of its losses."""

REMEMBERING = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.layer = nn.Linear(4, width)
        self.last = torch.zeros(1)

    def forward(self, x):
        out = self.layer(x) + self.last
        self.last = out.mean()
        return out
"""
"""A model, called by a name of the test's, that carries the graph of each forward into the next."""

CLIPPED = """
        class Clipped(torch.autograd.Function):
            @staticmethod
            def forward(ctx, values):
                return values.view_as(values)

            @staticmethod
            def backward(ctx, gradient):
                return gradient.clamp(-0.05, 0.05)
"""
"""A function whose backward is no derivative."""


def found(folder: Path, rule: str, *sources: str, **files: str) -> list[Finding]:
    """What ``rule`` finds in a project: ``sources``, joined, are its script, ``files`` its modules by name."""
    return analysed(folder, Options(unsafe=True, select=(rule,)), *sources, **files)


def analysed(folder: Path, options: Options, *sources: str, **files: str) -> list[Finding]:
    """The same for whatever ``options`` select."""
    (folder / "pyproject.toml").touch()
    texts = {MAIN: "\n".join(dedent(s) for s in sources), **{f"{name}.py": dedent(s) for name, s in files.items()}}
    for name, text in texts.items():
        (folder / name).write_text(text)
    targets = [read_source(folder / name, name) for name in texts]
    return analyse(targets, options=options, jobs=1).findings


def mended(folder: Path, findings: list[Finding], name: str = MAIN) -> str:
    """A file of the project after the edits of ``findings``."""
    edits: dict[str, list[Edit]] = defaultdict(list)
    for finding in findings:
        if finding.promise is not Promise.ADVICE:
            for path, edit in finding.edits:
                edits[path].append(edit)
    text = (folder / name).read_text()
    return apply_edits(text, edits[name]) if edits[name] else text


def added(before: str, after: str) -> list[str]:
    """The lines of ``after`` that ``before`` has not, without their indentation."""
    old = dedent(before).splitlines()
    return [line.strip() for line in after.splitlines() if line not in old]


def lines(findings: list[Finding]) -> list[tuple[int, str]]:
    """Where fixable findings stand, with their promises."""
    return [(f.span.line, f.promise.value) for f in findings if f.promise is not Promise.ADVICE]


def marked(program: str) -> int:
    """The line of ``program`` that ends in a comment of nothing."""
    return next(i for i, text in enumerate(program.splitlines(), 1) if text.endswith("  #"))


def assert_mended(folder: Path, rule: str, promise: str, head: str, before: str, after: str) -> None:
    """One finding of ``rule``, at the marked line of ``before``, which becomes ``after``; ``head`` stays as it is."""
    program = head + dedent(before)
    findings = found(folder, rule, program)
    assert lines(findings) == [(marked(program), promise)]
    assert mended(folder, findings) == head + dedent(after)


class Told(NamedTuple):
    """What a rule says of a program: the lines that it finds, and those that its edits write, likely ones too."""

    lines: list[str]
    written: list[str]


def told_of(folder: Path, rule: str, head: str, programs: Mapping[str, str]) -> dict[str, Told]:
    """What ``rule`` says of several programs, by their names; they are looked at in one go."""
    (folder / "pyproject.toml").touch()
    files = {f"program_{i}.py": (name, head + dedent(text)) for i, (name, text) in enumerate(programs.items())}
    for file, (_, text) in files.items():
        (folder / file).write_text(text)
    targets = [read_source(folder / file, file) for file in files]
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in promoted(analyse(targets, options=Options(unsafe=True, select=(rule,)), jobs=1).findings):
        assert finding.remedy
        assert bool(finding.edits) is (finding.promise is not Promise.ADVICE)
        found[finding.path].append(finding)
    return {
        name: Told(
            [text.splitlines()[finding.span.line - 1].strip() for finding in found[file]],
            added(text, mended(folder, found[file], file)),
        )
        for file, (name, text) in files.items()
    }


def sited(
    rule: str, head: str, found: Mapping[str, tuple[str, ...]], left: Mapping[str, str]
) -> tuple[Any, Callable[..., None], Callable[..., None]]:
    """The fixture ``told`` and the two tests of a ``rule`` of single sites, which looks at all programs in one go.

    ``found`` are programs with the line that the rule points at and those that its edits write; ``left`` are those of
    which it says nothing.
    """

    @pytest.fixture(scope="module", name="told")
    def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
        programs = {name: text for name, (text, *_) in found.items()} | dict(left)
        return told_of(tmp_path_factory.mktemp(rule), rule, head, programs)

    @pytest.mark.parametrize("name", found)
    def test_found(told: dict[str, Told], name: str) -> None:
        _, line, *written = found[name]
        assert told[name] == Told([line], written)

    @pytest.mark.parametrize("name", left)
    def test_left(told: dict[str, Told], name: str) -> None:
        assert told[name] == Told([], [])

    return told, test_found, test_left
