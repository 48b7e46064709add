"""``apex``: mixed precision before torch had it (docs: apex.amp)."""

from __future__ import annotations

import ast

from codemods.graph.libraries.table import CALLS
from codemods.graph.model.arguments import Arguments
from codemods.graph.model.nodes import Value
from codemods.graph.model.values import Tuple
from codemods.graph.torch.model import Torch


@CALLS.of("apex.amp.initialize")
def _initialize(engine: Torch, path: str, args: Arguments, at: ast.AST) -> Value:
    # the models and optimizers that it is given
    handed = [args.get(i, name) for i, name in enumerate(("models", "optimizers"))]
    values = [value for value in handed if value is not None]
    return values[0] if len(values) == 1 else Tuple(tuple(values))
