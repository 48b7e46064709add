"""Texts with names in them that are no UTF-8, as texts that are: everywhere alike."""

from __future__ import annotations

import re

_LONE = re.compile("[\ud800-\udfff]")


def carried(text: str) -> str:
    """``text`` with ``\\xff`` for each byte of a name that is no UTF-8: git's names are bytes."""
    return text if text.isascii() else _LONE.sub(lambda match: _escaped(ord(match[0])), text)


def encoded(text: str) -> bytes:
    """``text`` :func:`carried`, in UTF-8."""
    return carried(text).encode()


def _escaped(code: int) -> str:
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
