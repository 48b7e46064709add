"""The trees that are measured: a copy of the installed torch, and training scripts made from the fixtures."""

from __future__ import annotations

import ast
import importlib.util
import random
import re
import shutil
from collections.abc import Iterable, Iterator
from itertools import cycle
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"

SCRIPT_LINES = 100
"""Single scripts are joined from fixtures until they have so many lines: a file of the tree then has some 111."""

QUICK_TORCH = ("optim", "distributions")
"""The packages of torch that stand for all of it in a quick run."""


def installed_torch() -> Path | None:
    """The folder of the torch that this interpreter would import, which is not imported."""
    spec = importlib.util.find_spec("torch")
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) if places else None


def copy_torch(source: Path, tree: Path, *, quick: bool) -> None:
    """Copy the Python files of the torch at ``source`` into ``tree``, out of the folders that tools pass over."""
    for file in sorted(source.rglob("*.py")):
        relative = file.relative_to(source)
        if not quick or relative.parts[0] in QUICK_TORCH:
            target = tree / "torch" / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def sample(tree: Path, target: Path, files: int) -> float:
    """Copy ``files`` random files of ``tree``, the same ones every time; the share of its lines that they hold."""
    found = sorted(tree.rglob("*.py"))
    chosen = random.Random(0).sample(found, min(files, len(found)))
    for file in chosen:
        copy = target / file.relative_to(tree)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return lines(chosen) / lines(found)


def lines(files: Iterable[Path]) -> int:
    """The lines of files."""
    return sum(file.read_bytes().count(b"\n") for file in files)


def make_scripts(tree: Path, files: int) -> None:
    """Make ``files`` training scripts in ``tree``: a quarter in cases of several files, each in its folder.

    No two are alike: functions and classes are named anew in each. The same fixtures give the same tree.
    """
    count = 0
    number = 0
    for folder in cycle(sorted(FIXTURES.glob("*/*/before"))):
        texts = {f.relative_to(folder): f.read_text(encoding="utf-8") for f in sorted(folder.rglob("*.py"))}
        if count + len(texts) > files // 4:
            break
        names = {name for text in texts.values() for name in _definitions(text)}
        for relative, text in texts.items():
            target = tree / f"project_{number:03}" / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_renamed(text, names, number), encoding="utf-8")
        count += len(texts)
        number += 1
    scripts = _scripts(number)
    (tree / "scripts").mkdir(parents=True)
    for i in range(files - count):
        (tree / "scripts" / f"train_{i:03}.py").write_text(next(scripts), encoding="utf-8")


def _scripts(number: int) -> Iterator[str]:
    """Scripts without end, each joined from several fixtures; ``number`` is the first that names are given."""
    text = ""
    for fixture in cycle(filter(_is_python, sorted(FIXTURES.glob("*/*/before.py")))):
        part = fixture.read_text(encoding="utf-8")
        if "from __future__" in part:  # must stand first in a file
            continue
        text += _renamed(part, _definitions(part), number) + "\n\n"
        number += 1
        if text.count("\n") >= SCRIPT_LINES:
            yield text
            text = ""


def _is_python(path: Path) -> bool:
    """Whether today's Python reads it: one fixture has ``async=`` arguments, which the peers do not."""
    try:
        ast.parse(path.read_bytes())
    except SyntaxError:
        return False
    return True


def _definitions(text: str) -> set[str]:
    """The functions and classes at the top of a module."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {statement.name for statement in ast.parse(text).body if isinstance(statement, kinds)}


def _renamed(text: str, names: set[str], number: int) -> str:
    """``text`` with a number at the end of each of ``names``, but for attributes and keywords of that name."""
    if not names:
        return text
    pattern = rf"(?<![\w.])(?:{'|'.join(sorted(names))})\b(?!=[^=])"
    return re.sub(pattern, lambda match: f"{match.group()}_{number}", text)
