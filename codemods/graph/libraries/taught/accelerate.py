"""``accelerate``: wraps models, optimizers and loaders (docs: accelerate.Accelerator)."""

from __future__ import annotations

import ast

from codemods.graph.libraries.table import METHODS, handed_back
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import Unknown
from codemods.graph.torch.model import Torch


@METHODS.of("accelerate.Accelerator.prepare")
def _prepare(engine: Torch, receiver: Unknown, name: str, args: Arguments, at: ast.AST) -> Value | None:
    return handed_back(receiver, args)
