"""Modules of the tree as an import leaves them: loaded once, shared by all runs over the tree.

What a run writes to them stays with that run: its state hides the shared cells.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from codemods.graph.model.cells import Key
from codemods.graph.model.nodes import Node, Shadow
from codemods.graph.model.state import by_owner
from codemods.graph.model.values import Class, Unknown


class Quiet(NamedTuple):
    """What the import of a file looked at: the files that were loaded, and those whose text showed that they need not
    be."""

    needs: frozenset[str]
    passed: frozenset[str]


class Modules:
    """Cells of loaded modules, and what else outlives a run.

    ``loaded`` maps a file (path below the root) to the identity that owns its globals; ``needs`` to the files that were
    loaded for it, ``passed`` to those whose text showed that they need not be. ``clock`` and ``oids`` go on from run to
    run, so that nothing of one run is taken for another's.
    """

    def __init__(self) -> None:
        self.cells: dict[Key, Any] = {}
        self.loaded: dict[str, int] = {}
        self.globals: dict[int, dict[str, None]] = {}
        """The names of each module's globals, for ``from module import *``: looking through all cells takes long."""
        self.needs: dict[str, set[str]] = {}
        self.passed: dict[str, set[str]] = {}
        self.made: list[tuple[int, int, str]] = []
        """The first and last identity that was given while a file was loaded, files that it loads itself first."""
        self.attributes: dict[int, dict[Any, None]] = {}
        self.closures: dict[int, int] = {}
        self.stars: dict[int, list[str]] = {}
        self.answering: dict[str, frozenset[str]] = {}
        """Of each file, the modules of libraries that may hand what they get to its code."""
        self.nodes: dict[Node, tuple[bool, bool, Shadow]] = {}
        self.unknowns: list[tuple[Unknown, Unknown]] = []
        self._names: dict[int, list[Hashable]] | None = None
        self.clock = 0
        self.oids = 0

    def keep(self, nodes: Iterable[Node], unknowns: Iterable[Unknown]) -> None:
        """Remember what a loaded module made, as it is now."""
        self.nodes.update((node, (node.certain, node.scalar, node.shadow)) for node in nodes)
        self.unknowns += [(one, replace(one, members=dict(one.members))) for one in unknowns]

    def keep_cells(self, cells: dict[Key, Any]) -> None:
        """The same for what it bound."""
        self.cells.update(cells)
        self._names = None
        for owner, name in cells:
            if owner in self.globals and isinstance(name, str):
                self.globals[owner][name] = None

    def names(self, owner: int) -> list[Hashable]:
        """The names under which ``owner`` holds anything in them."""
        if self._names is None:
            self._names = by_owner(self.cells)
        return self._names.get(owner, [])

    def forget(self) -> None:
        """Break the circles in what was loaded, so that it goes without a look for garbage."""
        for value in self.cells.values():
            if isinstance(value, Class):
                value.info.members.clear()
        self.cells.clear()
        self.nodes.clear()
        self.unknowns.clear()

    def clean(self) -> None:
        """Take away what the last run wrote on module-level values, or learned of them."""
        for one, before in self.unknowns:
            one.node, one.module, one.data, one.shadow = before.node, before.module, before.data, before.shadow
            one.as_module = before.as_module
            one.members = dict(before.members)
        for node, (certain, scalar, shadow) in self.nodes.items():
            node.certain, node.scalar, node.shadow = certain, scalar, shadow
            node.walks.clear()
            node.uses.clear()
            node.stores.clear()
            node.reads.clear()
            node.escapes.clear()
            node.children = [child for child in node.children if child in self.nodes]
