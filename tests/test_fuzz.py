"""Code that nobody prepared: nothing breaks, nothing is found where torch is not, edits touch what they say.

``CODEMOD_FUZZ`` is the number of files that are drawn, and ``CODEMOD_FUZZ_SEED`` draws others.
"""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

import libcst
import pytest

from codemods.analysis.analyse import analyse
from codemods.analysis.job import Job, run_job
from codemods.analysis.project import Project
from codemods.proofs.observations import Decision, Observation
from codemods.rewriting.apply import apply
from codemods.rewriting.result import ApplyResult
from codemods.rules import all_rules
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, read_source
from codemods.source.options import Options
from codemods.source.targets import read_targets
from codemods.terms.findings import Finding
from fixtures import cases

pytestmark = pytest.mark.slow

FILES = int(os.environ.get("CODEMOD_FUZZ", "150"))
SEED = int(os.environ.get("CODEMOD_FUZZ_SEED", "0"))
SECONDS = 60
"""Of processor time, for one run of the engine; generous, because machines that test are slow and shared."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def libraries() -> list[Path]:
    """All Python files of the standard library and of site-packages, in order."""
    paths = sysconfig.get_paths()
    site = Path(paths["purelib"])
    library = Path(paths["stdlib"])
    inside = [p for p in library.rglob("*.py") if "site-packages" not in p.parts]
    return sorted(p for p in (*inside, *site.rglob("*.py")) if p.is_file())


def sources(paths: Sequence[Path]) -> list[SourceFile]:
    """Those of some files that can be decoded."""
    found = []
    for path in paths:
        try:
            found.append(read_source(path, str(path)))
        except SourceError:
            continue
    return found


def findings_of(targets: Sequence[SourceFile], root: Path) -> list[Finding]:
    """Run the engine and all rules over files, without the gate that would leave most of them out."""
    relative = {target.absolute.relative_to(root).as_posix(): target for target in targets}
    project = Project(
        root,
        {r: t.absolute for r, t in relative.items()},
        {r: t.path for r, t in relative.items()},
        {t.path: t for t in targets},
        {},
    )
    rules = list(all_rules().values())
    observations: list[Observation] = []
    entered = set()
    for path in relative:
        began = time.process_time()
        record = run_job(project, rules, Job(path, None))
        observations += [o for noted in record.noted for o in noted.observations]
        entered |= record.entered
        assert time.process_time() - began < SECONDS, f"{path} as a script"
    for path in relative:
        file = project.files.file(path)
        if file is None:
            continue
        functions = {(path, n.lineno, n.col_offset) for n in ast.walk(file.tree) if isinstance(n, _FUNCTIONS)}
        if functions - entered:
            began = time.process_time()
            record = run_job(project, rules, Job(path, frozenset(functions - entered)))
            observations += [o for noted in record.noted for o in noted.observations]
            assert time.process_time() - began < SECONDS, f"functions of {path}"
    decision = Decision(project.parsed, Options())
    return [f for rule in rules for f in rule.decide([o for o in observations if o.rule == rule.name], decision)]


def chunks(count: int) -> list[list[Path]]:
    """Drawn files, in portions of ten."""
    drawn = random.Random(SEED).sample(libraries(), count)
    return [drawn[i : i + 10] for i in range(0, len(drawn), 10)]


@pytest.mark.parametrize("number", range((FILES + 9) // 10))
def test_each_file_alone(number: int) -> None:
    for path in chunks(FILES)[number]:
        for source in sources([path]):
            found = findings_of([source], source.absolute.parent)
            assert "torch" in source.text or not found, found


@pytest.mark.parametrize("number", range((FILES + 29) // 30))
def test_neighbours_together(number: int) -> None:
    files = libraries()
    start = random.Random(f"{SEED} {number}").randrange(len(files) - 10)
    targets = sources(files[start : start + 10])
    root = Path(os.path.commonpath([str(t.absolute.parent) for t in targets]))
    found = findings_of(targets, root)
    assert not [f for f in found if not any("torch" in t.text for t in targets)]


def check_result(result: ApplyResult, folder: Path) -> None:
    """Check what every ``apply`` promises, whatever it was given: no broken edit, text that parses, an exact diff."""
    # What Python reads and libcst does not (dedents after odd mixtures of tabs) can only be refused by name.
    assert [failure for failure in result.failures if readable(folder / failure.path)] == []
    for source, new in result.rewrites:
        ast.parse(new)
        assert new != source.text
    if result.rewrites:
        # git puts nothing outside the hunks, so the diff says all that was changed
        subprocess.run(["git", "apply", "-p1", "-"], input=result.diff(), cwd=folder, check=True)
        for rewrite in result.rewrites:
            assert (folder / rewrite.source.path).read_bytes() == rewrite.encoded


def readable(path: Path) -> bool:
    """Whether libcst can parse a file at all, before any edit."""
    try:
        libcst.parse_module(path.read_bytes())
    except libcst.ParserSyntaxError:
        return False
    return True


def mutated(text: str, chance: random.Random) -> str:
    """``text`` with some statements deleted, repeated or swapped, by their lines."""
    for _ in range(chance.randint(1, 4)):
        lines = text.splitlines(keepends=True)
        blocks = [
            (n.lineno - 1, n.end_lineno or n.lineno) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.stmt)
        ]
        if not blocks:
            return text
        start, end = chance.choice(blocks)
        kind = chance.choice(["delete", "repeat", "swap", "indent"])
        if kind == "delete":
            new = lines[:start] + lines[end:]
        elif kind == "repeat":
            new = lines[:end] + lines[start:end] + lines[end:]
        elif kind == "indent":
            new = lines[:start] + [f"    {line}" for line in lines[start:end]] + lines[end:]
        else:
            low, high = chance.choice(blocks)
            if low < end and start < high:
                continue
            first, second = sorted([(start, end), (low, high)])
            new = [
                *lines[: first[0]],
                *lines[second[0] : second[1]],
                *lines[first[1] : second[0]],
                *lines[first[0] : first[1]],
                *lines[second[1] :],
            ]
        try:
            ast.parse("".join(new))
        except (SyntaxError, ValueError):
            continue
        text = "".join(new)
    return text


CASES = list(cases())


@pytest.mark.parametrize("number", range(max(1, FILES // 5)))
def test_mutated_training_code(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(f"{SEED} {number}")
    case = chance.choice(CASES)
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    for path, data in case.before.items():
        try:
            text = mutated(data.decode(), chance)
        except (UnicodeDecodeError, SyntaxError):
            continue
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text.encode())
    options = Options(unsafe=chance.random() < 0.5)

    targets = read_targets(["."]).sources
    result = apply(targets, options=options, dry_run=True, jobs=1)
    check_result(result, tmp_path)

    again = apply(read_targets(["."]).sources, options=options, dry_run=True, jobs=1)
    assert [rewrite.source.path for rewrite in again.rewrites] == [], str(case)


def test_the_pipeline_over_a_folder_of_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    for i, source in enumerate(sources(random.Random(SEED).sample(libraries(), FILES))):
        (tmp_path / f"file_{i}.py").write_bytes(source.encode(source.text))
    targets = read_targets(["."]).sources
    texts = {target.path: target.text for target in targets}
    for finding in analyse(targets, options=Options(), jobs=1).findings:
        assert "torch" in texts[finding.path], finding
    check_result(apply(targets, options=Options(unsafe=True), dry_run=True, jobs=1), tmp_path)
