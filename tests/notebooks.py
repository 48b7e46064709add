"""Notebooks made for tests."""

from __future__ import annotations

import json
from typing import Any


def code(source: str | list[str], **more: Any) -> dict[str, Any]:
    """A code cell with an output; ``more`` are further members."""
    lines = source.splitlines(keepends=True) if isinstance(source, str) else source
    outputs = [{"name": "stdout", "output_type": "stream", "text": ["café <b>\n"]}]
    return {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": outputs, "source": lines, **more}


def text(source: str) -> dict[str, Any]:
    """A cell of text."""
    return {"cell_type": "markdown", "metadata": {}, "source": [source]}


def notebook(*cells: dict[str, Any] | str, language: str | None = "python", **style: Any) -> bytes:
    """A notebook of ``cells`` (of text: code cells), written by ``json.dumps`` in this ``style``."""
    made = [code(cell) if isinstance(cell, str) else cell for cell in cells]
    metadata = {"kernelspec": {"name": "k", "language": language}} if language else {}
    whole = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(whole, **{"indent": 1, "ensure_ascii": False, **style}) + "\n").encode()


SETUP = """\
import torch
from torch import nn
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
STEP = """\
for _ in range(10):
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
"""
