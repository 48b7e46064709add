"""What a verification looks like: a module a form, each of :class:`verify.measured.results.Verification` alone.

What the forms have in common stands once: numbers in :mod:`~verify.reports.figures`, the cells of the table in
:mod:`~verify.reports.table`, sentences in :mod:`~verify.reports.remarks`.
"""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from verify.measured.results import Verification

#: What ``render`` can be asked for, the default first.
FORMATS = ("text", "json", "html", "markdown")


class Renderer(Protocol):
    """The ``render`` of a format: the whole report, ended by a newline."""

    def __call__(self, verification: Verification, *, colour: bool = False) -> str: ...


def render(verification: Verification, format: str, *, colour: bool = False) -> str:
    """Return ``verification`` in the form ``format``, one of :data:`FORMATS`; ``colour`` is for terminals only.

    Raises KeyError for an unknown format.
    """
    if format not in FORMATS:
        raise KeyError(format)
    return cast(Renderer, importlib.import_module(f"{__name__}.{format}").render)(verification, colour=colour)
