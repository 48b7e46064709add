"""``lightning``: its Fabric wraps models, optimizers and loaders (docs: lightning.Fabric)."""

from __future__ import annotations

import ast

from codemods.graph.libraries.table import METHODS, handed_back
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import Unknown
from codemods.graph.torch.model import Torch


@METHODS.of("lightning.Fabric.setup", "lightning.fabric.Fabric.setup")
def _setup(engine: Torch, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value | None:
    return handed_back(receiver, args)
