"""Modules of the tree as an import leaves them: loaded once, shared by all runs over the tree.

What a run writes to them stays with that run: its state hides the shared cells.
"""

from __future__ import annotations

from typing import Any

from codemods.graph.state import Key
from codemods.graph.values import Node


class Modules:
    """Cells of loaded modules, and what else outlives a run.

    ``loaded`` maps a file (path below the root) to the identity that owns its globals; ``needs`` to the files that were
    loaded for it. ``clock`` and ``oids`` go on from run to run, so that nothing of one run is taken for another's.
    """

    def __init__(self) -> None:
        self.cells: dict[Key, Any] = {}
        self.loaded: dict[str, int] = {}
        self.needs: dict[str, set[str]] = {}
        self.attributes: dict[int, set[str]] = {}
        self.closures: dict[int, int] = {}
        self.stars: dict[int, list[str]] = {}
        self.nodes: list[Node] = []
        self.clock = 0
        self.oids = 0

    def clean(self) -> None:
        """Take away what the last run wrote on the nodes of module-level values."""
        for node in self.nodes:
            node.walks.clear()
            node.uses.clear()
            node.stores.clear()
            node.stale_reads.clear()
            node.escapes.clear()
            del node.children[:]
