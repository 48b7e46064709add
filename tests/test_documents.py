"""The documents lead where they say: links between them, their anchors, and the files of the project they name."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import typer

from codemods.cli._app import build, command_names

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])

FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\[[^\[\]]*\]\(\s*<?([^()\s<>]+)>?[^()]*\)")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)


def links(text: str) -> list[str]:
    """The targets of all links, those of code left out."""
    return LINK.findall(INLINE.sub("x", FENCE.sub("", text)))


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub makes them: the same heading a second time gets a number."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        number = 0
        while (anchor := f"{name}-{number}" if number else name) in found:
            number += 1
        found.add(anchor)
    return found


def broken(document: Path) -> list[str]:
    """The relative links of a document that lead nowhere."""
    wrong = []
    for target in links(document.read_text(encoding="utf-8")):
        if re.match(r"[a-z][a-z+.-]*:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / unquote(path)).resolve() if path else document
        inside = file.exists() and ROOT in [file, *file.parents]
        if not inside or (anchor and (file.suffix != ".md" or anchor not in anchors(file.read_text(encoding="utf-8")))):
            wrong.append(target)
    return wrong


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_relative_links_lead_somewhere(document: Path) -> None:
    assert broken(document) == []


def test_a_link_that_leads_nowhere_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(broken.__globals__, "ROOT", tmp_path)
    (tmp_path / "b.md").write_text("# One `two`, three\n\n# Twice\n\n# Twice\n", encoding="utf-8")
    document = tmp_path / "a.md"
    document.write_text(
        "[x](b.md#one-two-three) [x](b.md#twice-1) [x](https://example.org/none) `[x](code.md)`\n\n"
        "```\n[x](fence.md)\n```\n\n[x](none.md) [x](b.md#twice-2) [x](#none) [x](../out.md)\n",
        encoding="utf-8",
    )
    assert broken(document) == ["none.md", "b.md#twice-2", "#none", "../out.md"]


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        document = waiting.pop()
        if document in seen or document.suffix != ".md" or not document.is_file():
            continue
        seen.add(document)
        for target in links(document.read_text(encoding="utf-8")):
            if not re.match(r"[a-z][a-z+.-]*:", target) and target.partition("#")[0]:
                waiting.append((document.parent / unquote(target.partition("#")[0])).resolve())
    # The first page of the site is the README itself.
    assert set((ROOT / "docs").rglob("*.md")) - seen == {ROOT / "docs" / "index.md"}


PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^```(?:console|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def missing(text: str) -> list[str]:
    """What the Python of a document imports from us and there is not."""
    wanted = [
        (node.module or "", name.name)
        for code in PYTHON.findall(text)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("codemods", "verify")
        for name in node.names
    ]
    return [f"{module}.{name}" for module, name in wanted if not hasattr(importlib.import_module(module), name)]


@functools.cache
def commands() -> Any:
    return typer.main.get_command(build(command_names()))


def unknown_options(text: str) -> list[str]:
    """The options in the commands of a document that the command has not."""
    wrong = []
    for line in "\n".join(TYPED.findall(text)).replace("\\\n", " ").splitlines():
        plain = re.sub(r"'[^']*'|\"[^\"]*\"|\$\([^)]*\)", "x", line.partition("  #")[0])
        for words in re.split(r"&&|[|;]", plain):
            typed = re.search(r"\bcodemod ([a-z].*?)(?: -- |[<>]|$)", words)
            if typed is None:
                continue
            command, *rest = typed[1].split()
            holder = commands().commands[command]
            if hasattr(holder, "commands"):
                holder = holder.commands[rest.pop(0)]
            known = {option for one in holder.params for option in (*one.opts, *one.secondary_opts)} | {"-h", "--help"}
            options = [word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)]
            wrong += [f"{command} {option}" for option in options if option not in known]
    return wrong


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_is_shown_of_python_and_of_commands_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert missing(text) == []
    assert unknown_options(text) == []


def test_what_does_not_exist_is_seen() -> None:
    assert missing("```python\nfrom codemods.reports import Report, Nothing\n```\n") == ["codemods.reports.Nothing"]
    typed = "```console\n$ codemod check . --since x --nope && codemod batch run c.toml --nor=1 -- --this\n```\n"
    assert unknown_options(typed) == ["check --nope", "batch --nor"]


@pytest.mark.slow
def test_site_is_built_without_a_warning(tmp_path: Path) -> None:
    # Links and anchors that lead nowhere are warnings, and so is a page that no list of pages names.
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", str(ROOT / "docs")]
    done = subprocess.run([*command, str(tmp_path / "site")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    first = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 'href="verify.html' in first
    assert 'src="_images/recording.svg"' in first
    shown = "".join(page.read_text(encoding="utf-8") for page in (tmp_path / "site").rglob("*.html"))
    # A reader's browser asks nobody else.
    assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?://[^"]+"', shown) == []


def test_the_architecture_names_files_that_are_there_and_all_of_the_engine() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.py)`", text))
    there = [
        f"/{path.relative_to(ROOT)}"
        for folder in ("codemods", "verify", "tests")
        for path in (ROOT / folder).rglob("*.py")
    ]
    assert [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in there)] == []
    engine = {path.name for path in (ROOT / "codemods" / "graph").rglob("*.py")} - {"__init__.py"}
    assert engine - {name.rpartition("/")[2] for name in named} == set()
