"""TOML, read by the standard library or, before Python 3.11, by tomli."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from codemods.source.errors import Unreadable
from codemods.source.files import read_bytes


class NotToml(ValueError):
    """A file that cannot be read as TOML; the message names it and says why."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return what a TOML document holds; raises :class:`ValueError` where it is none."""
    # loaded only when a file is there: most runs have none
    read: dict[str, Any] = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text)
    return read


def read_toml(file: Path) -> dict[str, Any]:
    """Return what a TOML file holds, with or without a byte order mark.

    Raises :class:`NotToml` for a file that is missing or cannot be read, and for one that is no TOML.
    """
    try:
        return parse_toml(read_bytes(file, str(file)).decode("utf-8-sig"))
    except Unreadable as error:
        raise NotToml(str(error)) from None
    except UnicodeDecodeError as error:
        raise NotToml(f"{file}: byte 0x{error.object[error.start]:02x} is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise NotToml(f"{file}: not valid TOML: {error}") from None
