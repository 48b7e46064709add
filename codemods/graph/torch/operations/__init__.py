"""Operations on tensors that tables of facts do not describe: a function each, found by its name in ``table``."""

from __future__ import annotations

from codemods.graph.torch.operations import functions, methods
from codemods.graph.torch.operations.table import OF_SEVERAL, OF_TENSORS, OF_TORCH

__all__ = ["OF_SEVERAL", "OF_TENSORS", "OF_TORCH", "functions", "methods"]
