"""What runs had in place of what is not there, in sentences: they limit what such runs show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from verify.measured.records import Record


def stood_in(records: Sequence[Record]) -> Iterator[str]:
    """The stand-ins of ``records``, and what cannot be shown with them."""
    standins = [standin for record in records for standin in record.standins]
    yield from map(_standin, standins)
    if standins:
        yield "on stand-in data errors, memory and equal computation can be shown, nothing about accuracy"


def left_out(record: Record) -> Iterator[str]:
    """The calls that were left out, and what they gave instead."""
    for left in record.left:
        yield f"{left['place']} was left out, because the program stops there ({left['why']}); it gave {left['told']}"


def _standin(standin: Mapping[str, Any]) -> str:
    shape = standin.get("shape")
    size = f", shape {'×'.join(map(str, shape)) if isinstance(shape, (list, tuple)) else shape}" if shape else ""
    why = f" ({standin['why']})" if standin.get("why") else ""
    return f"stand-in data for {standin.get('what', 'missing data')}{size}{why}"
