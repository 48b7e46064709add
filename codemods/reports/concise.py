"""A line a finding, for `grep` and for editors that jump to places: what ``text`` is where nobody watches."""

from __future__ import annotations

from codemods.reports.text import render

__all__ = ["render"]
