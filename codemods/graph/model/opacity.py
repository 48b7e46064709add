"""Nodes of which it cannot be seen how they were made."""

from __future__ import annotations

import ast

from codemods.graph.model.facts.layers import (
    LOSS_MODULES,
    MODULE_CONTAINERS,
    MODULES_WITH_PARAMETERS,
    MODULES_WITHOUT_PARAMETERS,
)
from codemods.graph.model.kinds import NodeKind
from codemods.graph.model.nodes import Node

_SEEN_MODULES = MODULES_WITH_PARAMETERS | MODULES_WITHOUT_PARAMETERS | LOSS_MODULES | MODULE_CONTAINERS
_OPERATORS = frozenset(c.__name__ for c in ast.operator.__subclasses__())


def opaque(node: Node) -> bool:
    """Whether it cannot be seen how (and if) the node depends on its parents."""
    if node.kind in (NodeKind.CALL, NodeKind.ARGUMENT):
        return True
    if node.kind is not NodeKind.MODULE:
        return False
    label = node.operation
    return label in ("module", "forward") or (
        label[:1].isupper() and label not in _SEEN_MODULES and label not in _OPERATORS
    )
