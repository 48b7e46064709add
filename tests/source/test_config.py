from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from codemods.source.config import ConfigError, find_config, load_config
from codemods.source.options import Options


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_every_kind_of_value(tmp_path: Path) -> None:
    write(
        tmp_path / "pyproject.toml",
        """
        [tool.codemod]
        select = ["stored-graph", "surplus-retain-graph"]
        ignore = "attached-loss-total, grad-in-evaluation"
        unsafe = true
        exclude = ["tests", "*/gen/*.py"]
        jobs = 4
        hidden-state = "reinit"
        total_style = "item"
        no-grad-style = "with"
        format = "sarif"
        output = "out.sarif"
        color = "never"
        no_cache = true
        """,
    )
    assert load_config(tmp_path) == {
        "select": ("stored-graph", "surplus-retain-graph"),
        "ignore": ("attached-loss-total", "grad-in-evaluation"),
        "unsafe": True,
        "exclude": ("tests", "*/gen/*.py"),
        "jobs": 4,
        "hidden_state": "reinit",
        "total_style": "item",
        "no_grad_style": "with",
        "format": "sarif",
        "output": "out.sarif",
        "color": "never",
        "no_cache": True,
    }


def test_every_option_can_be_set_and_takes_its_own_default(tmp_path: Path) -> None:
    for option in fields(Options):
        default = option.default
        if default is MISSING or option.metadata:
            continue  # a table, read below, or no choice of the user's
        value = "[]" if default == () else str(default).lower() if isinstance(default, bool) else f'"{default}"'
        file = write(tmp_path / "c.toml", f"{option.name} = {value}\n")
        assert load_config(config=file) == {option.name: default}


def test_the_nearest_file_that_speaks_of_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = write(tmp_path / "pyproject.toml", "[tool.codemod]\njobs = 1\n")
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    assert find_config(tmp_path / "repo") is None
    assert load_config(tmp_path / "repo") == {}
    inner = write(tmp_path / "repo" / "pyproject.toml", "[tool.codemod]\njobs = 2\n")
    write(tmp_path / "repo" / "pkg" / "pyproject.toml", "[tool.ruff]\nline-length = 1\n")
    write(tmp_path / "repo" / "pkg" / "a.py", "")
    assert find_config(tmp_path / "repo" / "pkg" / "a.py") == inner
    assert find_config(tmp_path) == outer
    monkeypatch.chdir(tmp_path / "repo" / "pkg")
    assert load_config() == {"jobs": 2}
    assert load_config(config=outer) == {"jobs": 1}


def test_an_empty_table_ends_the_search(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", "[tool.codemod]\njobs = 1\n")
    write(tmp_path / "a" / "pyproject.toml", "[tool.codemod]\n")
    assert load_config(tmp_path / "a") == {}


def test_a_given_file_may_be_ours_alone(tmp_path: Path) -> None:
    assert load_config(config=write(tmp_path / "codemod.toml", "\ufeffjobs = 3\n")) == {"jobs": 3}
    assert load_config(config=write(tmp_path / "c.toml", "[tool.codemod]\njobs = 3\n")) == {"jobs": 3}
    assert load_config(config=write(tmp_path / "pyproject.toml", "jobs = 3\n[project]\n")) == {}
    assert load_config(config=write(tmp_path / "empty.toml", "")) == {}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("selct = []", ["'selct'", "did you mean 'select'?"]),
        ("hidden_stat = 'auto'", ["'hidden_stat'", "'hidden-state'"]),
        ("Unsafe = true", ["'Unsafe'", "'unsafe'"]),
        ("zzzzzz = 1", ["'zzzzzz'", "known are select, ignore"]),
        ("unsafe = 'yes'", ["'unsafe'", "true or false", "not 'yes'"]),
        ("jobs = true", ["'jobs'", "whole number"]),
        ("jobs = -1", ["'jobs'", "-1"]),
        ("jobs = 1.5", ["'jobs'", "1.5"]),
        ("select = 3", ["'select'", "list of rule names"]),
        ("ignore = ['a', 1]", ["'ignore'", "list of rule names"]),
        ("exclude = 'tests'", ["'exclude'", "list of patterns"]),
        ("exclude = ['']", ["'exclude'"]),
        ("format = 'yaml'", ["'format'", '"json"', "'yaml'"]),
        ("total_style = ['item']", ["'total_style'", '"item"']),
        ("output = ''", ["'output'", "path"]),
        ("no_grad_style = 'with'\nno-grad-style = 'with'", ["'no-grad-style'", "twice"]),
    ],
)
def test_what_does_not_fit_is_named_with_what_would(tmp_path: Path, line: str, words: list[str]) -> None:
    file = write(tmp_path / "pyproject.toml", f"[tool.codemod]\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path)
    for word in (str(file), *words):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[tool.codemod\n", "line 1"),
        (b"[tool.codemod]\njobs = 1\njobs = 2\n", "line 3"),
        (b"x = '\xe4'\n", "0xe4 is not UTF-8"),
        (b"[tool]\ncodemod = 3\n", "must be a table"),
        (b"x = " + b"[" * 5000, "not valid TOML"),
    ],
)
def test_a_file_that_is_no_settings_file(tmp_path: Path, text: bytes, words: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_bytes(text)
    for call in (lambda: load_config(tmp_path), lambda: load_config(config=file)):
        with pytest.raises(ConfigError) as caught:
            call()
        assert str(file) in str(caught.value)
        assert words in str(caught.value)


def test_a_given_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: no such file"):
        load_config(config=tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="is a folder"):
        load_config(config=tmp_path)


def test_a_tool_that_is_no_table_is_none_of_our_business(tmp_path: Path) -> None:
    assert load_config(config=write(tmp_path / "pyproject.toml", "tool = 3\n")) == {}


def test_rules_left_out_of_some_files(tmp_path: Path) -> None:
    text = '[tool.codemod.per-file-ignores]\n"tests/" = ["rule-a", "rule-b"]\n"*_test.py" = "rule-c, rule-d"\n'
    settings = load_config(config=write(tmp_path / "pyproject.toml", text))
    entries = (("tests/", ("rule-a", "rule-b")), ("*_test.py", ("rule-c", "rule-d")))
    assert settings == {"per_file_ignores": entries}


@pytest.mark.parametrize("value", ["[]", "'tests/'", "{a = 1}", "{a = [1]}", "{'' = ['x']}"])
def test_rules_left_out_of_some_files_must_be_a_table(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match="per-file-ignores"):
        load_config(config=write(tmp_path / "c.toml", f"per-file-ignores = {value}\n"))
