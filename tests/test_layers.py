"""Who may import what: the rules of the house that nothing else would notice being broken."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STATIC = sorted((ROOT / "codemods").rglob("*.py"))
PROBE = sorted((ROOT / "verify" / "probe").rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """The top-level names of all that ``path`` imports, at its top or inside functions; relative imports left out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("path", STATIC, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_static_half_never_imports_torch(path: Path) -> None:
    assert not {"torch", "numpy", "matplotlib"} & set(imported(path))


@pytest.mark.parametrize("path", STATIC, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_commands_know_the_dynamic_half(path: Path) -> None:
    batch = (ROOT / "codemods" / "batch") in path.parents
    if path.parent.name != "cli" and path.name != "pytest_plugin.py" and not batch:
        assert "verify" not in set(imported(path))


@pytest.mark.parametrize("path", PROBE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_probe_needs_torch_and_the_standard_library_only(path: Path) -> None:
    others = {name for name in imported(path) if name not in sys.stdlib_module_names}
    # The last three only where the script has them already, or a declared file asks for their format.
    assert others <= {"torch", "numpy", "torchvision", "PIL", "_codemod_probe"}


@pytest.mark.parametrize("path", PROBE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_probe_is_python_3_8(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_checking_a_file_loads_neither_torch_nor_the_dynamic_half(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nloss.backward(retain_graph=True)\n")
    program = (
        "import sys\nfrom codemods.cli import main\nmain(['check', 'train.py'])\n"
        "print(sorted({'torch', 'verify', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


def test_imports_go_down_and_never_in_a_circle() -> None:
    done = subprocess.run([sys.executable, "-c", LINT], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_nothing_lies_loose() -> None:
    loose = {path.name for path in (ROOT / "codemods").glob("*.py")}
    assert loose == {"__init__.py", "__main__.py", "pytest_plugin.py"}
    loose = {path.name for path in (ROOT / "verify").glob("*.py")}
    assert loose == {"__init__.py", "applying.py", "errors.py", "syntax.py", "verification.py"}


ENGINE = sorted(path for path in (ROOT / "codemods" / "graph").rglob("*.py") if path.name != "__init__.py")


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: path.name)
def test_every_subject_of_the_engine_is_told(path: Path) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert f"`{path.name}`" in text[text.index("## The engine") : text.index("## A new rule")]
