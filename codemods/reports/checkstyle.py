"""Checkstyle's XML, which many tools of build servers read."""

from __future__ import annotations

from itertools import groupby
from xml.sax.saxutils import quoteattr

from codemods import __version__
from codemods.reports import Detail, Report
from codemods.reports._listed import Listed, listed
from codemods.source.diffs import printable

_SEVERITIES = {"error": "error", "warning": "warning", "note": "info"}


def render(report: Report, detail: Detail, *, colour: bool = False) -> str:
    """Return a file with an error a finding; ``detail`` and ``colour`` change nothing."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<checkstyle version={attribute(__version__)}>"]
    for path, group in groupby(listed(report), key=lambda one: one.path):
        lines += [f"  <file name={attribute(path)}>", *map(_error, group), "  </file>"]
    return "\n".join([*lines, "</checkstyle>", ""])


def _error(one: Listed) -> str:
    place = (f" line={attribute(one.line)}" if one.line else "") + (f' column="{one.column}"' if one.column else "")
    told = f" severity={attribute(_SEVERITIES[one.level])} message={attribute(one.text)}"
    return f"    <error{place}{told} source={attribute(f'codemod.{one.rule}')}/>"


def attribute(value: object) -> str:
    """Return a value with its quotes, without characters that XML has no way to hold."""
    return quoteattr(printable(str(value)))
