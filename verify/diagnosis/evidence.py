"""Reads what the doctor's part of the probe wrote, the ``diagnosis`` events (:mod:`verify.probe.doctor`), by ``what``:

* ``second``: a backward through a freed graph. site, index (of the backward), freed (the site of the one that freed),
  freed_index, producer and consumer (sites of the stale node and of the one that uses it), operation, crosses (whether
  the consumer was made after the freeing), twice (whether nobody is between: the same loss again), stepped (whether an
  optimizer's step was made between the two, or its closure was evaluated again; null without an optimizer), fresh
  (whether the stale node was made since this backward was called before), number and user (the two nodes' places in the
  order of making), names (list of {name, function}: who holds the stale tensor), same (whether a second run came to the
  same nodes; null in the first)
* ``inplace``: site, hits: list of {reader, operation, operand, number, version, expected, changed, through, by, names,
  old}: ``through``: the lines from which the change was called, from the inside out;
  ``old``: the reader was made before an earlier call of that backward
* ``learning``: taught: {meant (parameters of optimizers, or where none steps all that backwards came to), learning (how
  many of them backwards still came to in the second half), idle: names of others}, optimizers: list of {index, name,
  site, steps, parameters, uncleared, silent: list of {name, place, reached, shape}, silent_count, frozen: names (empty
  where there is none) of those without requires_grad, zero: names of those whose gradients were always zero};
  outside: list of {name, module, shape}: parameters with gradients that no optimizer holds, ``module`` whether a module
  registers them; backwards: list of {site, calls, rootless, reaches, leaves}
* ``flow``: of one backward: loss (the backward's site), born (where the loss was made of numbers), cuts: list of {site,
  call, reason, leaves}, left: list of {site, call}, used and unused (names of the watched parameters)
* ``holdings``, ``near`` and ``exhausted`` (memory is half, or almost, gone): site, nodes, saved, lines: list of {site,
  bytes}, parameters, gradients, state; bytes
* ``stores``: looks (steps), containers: list of {name, kind, length, added, tensor_bytes, plain_bytes, graph}, per step
* ``pace``: seconds (of each step), lines: list of {site, before, after}: medians of a step in the first and last third
* ``cache``: steps: list of [bytes reserved on cards, most bytes of tensors in the step]; retries: how often the
  allocator gave back what it keeps to find memory; lines: list of {site, bytes} for which it took memory
* ``walks``: backwards: list of [site, new nodes, nodes that were walked before]
* ``graph``: for (``second``, ``inplace``, ``growth``, ``memory``, ``step``), nodes, whole (whether all are told),
  boxes: list of {site, nodes, turns, steps, operations: list of [name, count], freed (index of a backward or null),
  roles, holders: list of {name, function, tensors}}, edges: list of [made, used, count, how many lead from one step to
  a later one] (places in boxes), walks: list of {index, site, boxes, freed}, the last backward first
* ``mixed``: site, operation, operands: list of {argument, device, born, names, near}: ``near``: what else has a
  name and is on that device

A site is ``[path, line, function]``, of a notebook with the number of the cell in which the line is, or null.
"""

from __future__ import annotations

import io
import linecache
import tokenize
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codemods.source.errors import SourceError
from codemods.source.files import read_source, source_from_bytes
from verify.diagnosis.model import Clue
from verify.measured.results import Run
from verify.measured.values import Site


def events(run: Run, what: str) -> list[Mapping[str, Any]]:
    """Return the events of that kind, of the process that trains."""
    return [event for event in run.record.diagnoses if event.get("what") == what]


def last(run: Run, what: str) -> Mapping[str, Any] | None:
    """Return the last of them."""
    found = events(run, what)
    return found[-1] if found else None


def site_of(value: Any) -> Site | None:
    """Return a site as records have it."""
    return None if not value else Site(str(value[0]), int(value[1]), str(value[2]), *value[3:4])


class Sources:
    """The lines of the tree at ``root``, with ``files`` (by path below it) in place of its own."""

    def __init__(self, root: Path, files: Mapping[str, bytes] | None = None) -> None:
        self._root = root
        self._files = files or {}
        self._notebooks: dict[str, dict[int, list[str]]] = {}
        self._texts: dict[str, list[str]] = {}

    def text(self, site: Site | None) -> str:
        """The source of a line, less its indentation; empty where it cannot be read."""
        if site is None:
            return ""
        if site.cell is None:
            if site.path in self._files:
                lines = self._changed(site.path)
                return _code(lines[site.line - 1]) if 0 < site.line <= len(lines) else ""
            return _code(linecache.getline(str(self._root / site.path), site.line))
        lines = self._cells(site.path).get(site.cell, [])
        return _code(lines[site.line - 1]) if site.line <= len(lines) else ""

    def _changed(self, path: str) -> list[str]:
        if path not in self._texts:
            self._texts[path] = list(io.StringIO(source_from_bytes(self._files[path], path).text))
        return self._texts[path]

    def _cells(self, path: str) -> dict[int, list[str]]:
        if path not in self._notebooks:
            try:
                data = self._files.get(path)
                source = read_source(self._root / path) if data is None else source_from_bytes(data, path)
                notebook = source.notebook
            except SourceError:
                # Gone since it ran.
                notebook = None
            cells = () if notebook is None else notebook.cells
            self._notebooks[path] = {cell.number: cell.text.splitlines() for cell in cells}
        return self._notebooks[path]

    def clue(self, role: str, value: Any, text: str = "") -> Clue:
        """A clue at a site of an event."""
        site = value if isinstance(value, Site) else site_of(value)
        return Clue(role, site, self.text(site), text=text)


def _code(line: str) -> str:
    """A line of a program without indentation and without its comment."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(line.strip()).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        # A line of a longer statement.
        return line.strip()
    comment = next((token.start[1] for token in tokens if token.type == tokenize.COMMENT), None)
    return line.strip()[:comment].rstrip()


def size(count: float) -> str:
    """Return bytes as people read them."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} bytes"
