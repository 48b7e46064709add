"""Notebooks as commands: the program that :mod:`verify.probe.notebook` runs, and records by cell and line."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path
from typing import Any

import verify.probe
from codemods.source.errors import SourceError
from codemods.source.files import SourceFile, source_from_bytes
from verify.errors import VerifyError
from verify.measured.records import Record
from verify.measured.values import Site

RUNNER = Path(verify.probe.__file__).parent / "notebook.py"
#: What these do is no part of a program, or is nothing without somebody who looks at it.
_QUIET = frozenset(
    {
        *("matplotlib", "pylab", "config", "load_ext", "reload_ext", "autoreload", "precision", "xmode", "who", "whos"),
        *("history", "cd", "env", "set_env", "pwd", "run", "?"),
    }
)
_WRITES = re.compile(r"\s*%%(?:writefile|file)[ \t]+([^\r\n]+)(?:\r\n|\r|\n|$)")
_SHOWN = 5
_LINE_END = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


class RunnableNotebook:
    """A notebook with the bytes ``data``, found at ``path`` below the root of the tree.

    Raises :class:`VerifyError` for one that cannot be read.
    """

    def __init__(self, data: bytes, path: str) -> None:
        try:
            self.source: SourceFile = source_from_bytes(data, path)
        except SourceError as error:
            raise VerifyError(str(error)) from None
        assert self.source.notebook is not None
        self._notebook = self.source.notebook
        self._path = path

    def program(self) -> str:
        """The JSON for the runner."""
        starts: dict[int | None, int] = {}
        lines = [part for part in _LINE_END.split(self.source.text) if part]
        for number in range(1, len(lines) + 1):
            starts.setdefault(self.source.place(number).cell, number)
        cells: list[dict[str, object]] = []
        for cell in self._notebook.cells:
            written = _WRITES.match(cell.text)
            if written is not None:
                cells.append({"write": _words(written[1]), "code": cell.text[written.end() :]})
            if cell.program is None:
                continue
            start = starts[cell.number]
            magics = [magic._asdict() for magic in cell.program.magics if magic.stand_in]
            code = "\n" * start + f"{cell.program.header}\n{cell.program.text}\n"
            cells.append({"number": cell.number, "code": code, "magics": magics})
            for offset, line in enumerate(_LINE_END.split(cell.text)):
                if start + 1 + offset < len(lines):
                    lines[start + 1 + offset] = line
        return json.dumps({"lines": lines, "cells": cells})

    def notes(self) -> list[str]:
        """What of the notebook is not run, for users."""
        left = [f"cell {entry.cell} ({entry.reason})" for entry in self._notebook.skipped]
        for cell in self._notebook.cells:
            first = cell.text.strip().partition("\n")[0].strip()
            if cell.program is None:
                if first.startswith("%%") and not _WRITES.match(cell.text):
                    left.append(f"cell {cell.number} ({first})")
                continue
            for magic in cell.program.magics:
                cell_magic = magic.text.startswith("%%")
                if magic.stand_in and not cell_magic and magic.name not in _QUIET:
                    text = magic.text.partition("\n")[0].strip()
                    left.append(f"cell {cell.number}:{magic.line} ({text})")
        if not left:
            return []
        more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        return [f"not run of {self._path}: {', '.join(left[:_SHOWN])}{more}"]

    def place(self, record: Record) -> None:
        """Convert the places of ``record`` that are in the notebook to cells and their lines.

        Lines that were reached stay as they were asked for.
        """
        record.backwards = [dataclasses.replace(each, site=self._site(each.site)) for each in record.backwards]
        record.steps = [dataclasses.replace(each, site=self._site(each.site)) for each in record.steps]
        record.forwards = [each._replace(site=self._site(each.site)) for each in record.forwards]
        record.caught = [each._replace(site=self._site(each.site)) for each in record.caught]
        record.error_program = record.error_line
        record.error_site = self._site(record.error_site)
        record.traceback = self.text(record.traceback)
        for loader in record.capped:
            if loader.get("site") and (site := self._site(Site(*loader["site"][:3]))) is not None:
                loader["site"] = [site.path if site.cell is None else f"{site.path}:cell {site.cell}", *site[1:3]]

        if record.census is not None:
            holders = tuple(each._replace(made=self._site(each.made)) for each in record.census.holders)
            record.census = dataclasses.replace(record.census, holders=holders)
        record.diagnoses = [self._placed(each) for each in record.diagnoses]

    def _placed(self, value: Any) -> Any:
        """``value`` with each site in it, ``[path, line, function]``, converted to its cell."""
        if isinstance(value, dict):
            return {key: self._placed(each) for key, each in value.items()}
        if not isinstance(value, list):
            return value
        if len(value) == 3 and list(map(type, value)) == [str, int, str]:
            site = self._site(Site(*value))
            if site is not None and site.cell is not None:
                return [*value[:1], site.line, site.function, site.cell]
        return [self._placed(each) for each in value]

    def text(self, printed: str) -> str:
        """What a program printed, with the lines in tracebacks converted to cells."""
        name = re.escape(self._path.rpartition("/")[2])

        def told(match: re.Match[str]) -> str:
            place = self.source.place(int(match[2]))
            return f"{match[1]}, cell {place.cell}, line {place.line}"

        return re.sub(rf'(File "[^"\n]*\b{name}"), line (\d+)', told, printed)

    def _site(self, site: Site | None) -> Site | None:
        if site is None or site.path != self._path:
            return site
        place = self.source.place(site.line)
        return site._replace(line=place.line, cell=place.cell)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text) or [text]
    except ValueError:
        return [text]
