"""The settings that a project keeps in its own files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from codemods.source.toml import NotToml, read_toml


class ConfigError(Exception):
    """A settings file cannot be used; the text names file, key and what would have been right."""


class _Kind(NamedTuple):
    wanted: str
    read: Callable[[Any], object]
    """The value as the command line would give it; raises TypeError or ValueError for one that does not fit."""


def _flag(value: Any) -> object:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _number(value: Any) -> object:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError
    return value


def _text(value: Any) -> object:
    if not isinstance(value, str) or not value.strip():
        raise TypeError
    return value


def _version(value: Any) -> object:
    if not is_version(_text(value)):
        raise ValueError
    return value


def is_version(text: object) -> bool:
    """Whether it names a release of PyTorch: 0.4, 1.13.1, 2.1.0+cu118, or the current one."""
    return text == "current" or bool(re.fullmatch(r"\d+(\.\d+)*([.+a-z]\w*)*", str(text)))


def _list(value: Any) -> object:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise TypeError
    return tuple(item.strip() for item in value)


def _names(value: Any) -> object:
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    return _list(value)


def _one_of(*choices: str) -> _Kind:
    def read(value: Any) -> object:
        if value not in choices:
            raise ValueError
        return value

    return _Kind("one of " + ", ".join(f'"{choice}"' for choice in choices), read)


def _by_pattern(value: Any) -> object:
    if not isinstance(value, dict) or not all(isinstance(pattern, str) and pattern.strip() for pattern in value):
        raise TypeError
    return tuple((pattern.strip(), _names(rules)) for pattern, rules in value.items())


_FLAG = _Kind("true or false", _flag)
_NAMES = _Kind('a list of rule names, or a text like "rule-a,rule-b"', _names)

_KEYS: Mapping[str, _Kind] = {
    "select": _NAMES,
    "ignore": _NAMES,
    "unsafe": _FLAG,
    "jobs": _Kind("a whole number that is not negative", _number),
    "exclude": _Kind("a list of patterns", _list),
    "hidden-state": _one_of("auto", "reinit", "detach"),
    "total-style": _one_of("auto", "float", "item", "detach"),
    "no-grad-style": _one_of("auto", "decorator", "with"),
    "target-torch": _Kind('a version of PyTorch, as "0.4", or "current"', _version),
    "python2": _FLAG,
    "format": _one_of(
        *("text", "full", "concise", "grouped", "json", "sarif", "github", "gitlab", "azure", "junit", "checkstyle"),
        *("markdown", "html", "suggestions", "json-lines", "pylint", "rdjson"),
    ),
    "output": _Kind("a path", _text),
    "color": _one_of("auto", "always", "never"),
    "no-cache": _FLAG,
    "per-file-ignores": _Kind('a table such as "tests/" = ["rule-a", "rule-b"]', _by_pattern),
    "baseline": _Kind("a path", _text),
    "report-unused-ignores": _FLAG,
    "exit-code": _FLAG,
    "exit-zero": _FLAG,
    "max-hunks": _Kind("a whole number that is not negative", _number),
    "quiet": _FLAG,
    "verbose": _FLAG,
}


def find_config(start: str | os.PathLike[str]) -> Path | None:
    """The pyproject.toml that holds for ``start``, a file or a folder: the nearest one with a [tool.codemod] table.

    It is looked for up to the root of the git repository, or of the file system. Raises `ConfigError` for one on the
    way that cannot be read.
    """
    place = Path(os.path.abspath(start))
    for folder in (place, *place.parents):
        file = folder / "pyproject.toml"
        if file.is_file() and _table(file, _load(file)) is not None:
            return file
        if (folder / ".git").exists():
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
    return _checked(file, table or {})


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


def _checked(file: Path, table: dict[str, Any]) -> dict[str, object]:
    settings: dict[str, object] = {}
    for written, value in table.items():
        key = written.replace("_", "-")
        kind = _KEYS.get(key)
        if kind is None:
            raise ConfigError(f"{file}: unknown key {written!r} in [tool.codemod]{_nearest(key)}")
        name = key.replace("-", "_")
        if name in settings:
            raise ConfigError(f"{file}: {key!r} is set twice in [tool.codemod], with - and with _")
        try:
            settings[name] = kind.read(value)
        except (TypeError, ValueError):
            raise ConfigError(f"{file}: {written!r} in [tool.codemod] must be {kind.wanted}, not {value!r}") from None
    return settings


def _nearest(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key.lower(), _KEYS, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else "; known are " + ", ".join(_KEYS)
