"""Texts with names in them that are no UTF-8, as texts that are: everywhere alike."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

_LONE = re.compile("[\ud800-\udfff]")


def carried(text: str) -> str:
    """``text`` with ``\\xff`` for each byte of a name that is no UTF-8: git's names are bytes."""
    return text if text.isascii() else _LONE.sub(lambda match: _escaped(ord(match[0])), text)


def encoded(text: str) -> bytes:
    """``text`` :func:`carried`, in UTF-8."""
    return carried(text).encode()


def shell(words: Iterable[str]) -> str:
    """``words`` as bash and zsh take them: names that are no UTF-8, or that would move a cursor, in ``$'...'``."""
    return " ".join(shlex.quote(word) if word.isprintable() else f"$'{_in_dollars(word)}'" for word in words)


def _in_dollars(word: str) -> str:
    plain = word.replace("\\", "\\\\").replace("'", "\\'")
    return "".join(letter if letter.isprintable() else _bytes(letter) for letter in plain)


def _bytes(letter: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "surrogateescape"))


def _escaped(code: int) -> str:
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
