"""The settings that a project keeps in its own files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codemods.source.keys import FLAG, NATURAL, Key, KeyProblem, one_of, read_table, text, texts
from codemods.source.options import CHOICES
from codemods.source.toml import NotToml, read_toml
from codemods.terms.errors import UserError


class ConfigError(UserError):
    """A settings file cannot be used; the text names file, key and what would have been right."""


def _version(value: Any) -> object:
    if not is_version(text(value)):
        raise ValueError
    return value


def is_version(text: object) -> bool:
    """Whether it names a release of PyTorch: 0.4, 1.13.1, 2.1.0+cu118, or the current one."""
    return text == "current" or bool(re.fullmatch(r"\d+(\.\d+)*([.+a-z]\w*)*", str(text)))


def _names(value: Any) -> object:
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    return texts(value)


def _by_pattern(value: Any) -> object:
    if not isinstance(value, dict) or not all(isinstance(pattern, str) and pattern.strip() for pattern in value):
        raise TypeError
    return tuple((pattern.strip(), _names(rules)) for pattern, rules in value.items())


_NAMES = Key('a list of rule names, or a text like "rule-a,rule-b"', _names)

KEYS: Mapping[str, Key] = {
    "select": _NAMES,
    "ignore": _NAMES,
    "unsafe": FLAG,
    "jobs": NATURAL,
    "exclude": Key("a list of patterns", texts),
    "hidden-state": one_of(*CHOICES["hidden_state"]),
    "total-style": one_of(*CHOICES["total_style"]),
    "no-grad-style": one_of(*CHOICES["no_grad_style"]),
    "target-torch": Key('a version of PyTorch, as "0.4", or "current"', _version),
    "python2": FLAG,
    "format": one_of(
        *("text", "full", "concise", "grouped", "json", "sarif", "github", "gitlab", "azure", "junit", "checkstyle"),
        *("markdown", "html", "suggestions", "json-lines", "pylint", "rdjson"),
    ),
    "output": Key("a path", text),
    "color": one_of(*CHOICES["color"]),
    "no-cache": FLAG,
    "per-file-ignores": Key('a table such as "tests/" = ["rule-a", "rule-b"]', _by_pattern),
    "baseline": Key("a path", text),
    "report-unused-ignores": FLAG,
    "exit-code": FLAG,
    "exit-zero": FLAG,
    "max-hunks": NATURAL,
    "quiet": FLAG,
    "verbose": FLAG,
}


def find_config(start: str | os.PathLike[str]) -> Path | None:
    """The pyproject.toml that holds for ``start``, a file or a folder: the nearest one with a [tool.codemod] table.

    It is looked for up to the root of the git repository, or of the file system. Raises `ConfigError` for one on the
    way that cannot be read.
    """
    place = Path(os.path.abspath(start))
    for folder in (place, *place.parents):
        file = folder / "pyproject.toml"
        # A path would raise where a folder is closed to us; what is in there cannot be read, and its reader says so.
        if os.path.isfile(file) and _table(file, _load(file)) is not None:
            return file
        if os.path.exists(folder / ".git"):
            return None
    return None


def load_config(start: str | os.PathLike[str] = ".", config: str | os.PathLike[str] | None = None) -> dict[str, object]:
    """The settings that hold for ``start``, or those of the file ``config`` where one is given.

    Keys are those of the command line, spelled with underscores (``no_grad_style``); lists come as tuples of str. Empty
    where nothing is set. In a file other than pyproject.toml the keys may stand at the top, without [tool.codemod].

    Raises `ConfigError` for a given file that is not there, one that is not TOML, an unknown key or a value that does
    not fit.
    """
    file = Path(config) if config is not None else find_config(start)
    if file is None:
        return {}
    table = _table(file, _load(file))
    try:
        return read_table("[tool.codemod]", table or {}, KEYS)
    except KeyProblem as error:
        raise ConfigError(f"{file}: {error}") from None


def _load(file: Path) -> dict[str, Any]:
    try:
        return read_toml(file)
    except NotToml as error:
        raise ConfigError(str(error)) from None


def _table(file: Path, data: dict[str, Any]) -> dict[str, Any] | None:
    if file.name != "pyproject.toml" and "tool" not in data:
        return data
    tools = data.get("tool", {})
    table = tools.get("codemod") if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{file}: tool.codemod must be a table, [tool.codemod]")
    return table
