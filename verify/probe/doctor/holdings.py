"""Who holds memory when a backward begins, by the user's lines: what the graph saved, and all that training keeps."""

from __future__ import annotations

from typing import Any

from ..graph import origins
from ..graph.backward import Call
from ..graph.nodes import live_tensors, reached, roots
from ..graph.steps import parameters
from ..values.tensors import storage
from .walks import saved_names

_MOST = 12


class Holdings:
    """Looks before backwards whose number is a power of two, and tells of each that finds more."""

    def __init__(self) -> None:
        self._most = -1

    def before(self, call: Call, count: int, optimizers: list[Any], site: Any) -> dict[str, Any] | None:
        """``count`` backwards were made, with this one; the event, where there is one to tell."""
        if count & (count - 1):
            return None
        event = self.look(roots(call.outputs), optimizers, site)
        if event["saved"] <= self._most:
            return None
        self._most = event["saved"]
        return event

    def look(self, nodes: list[Any], optimizers: list[Any], site: Any) -> dict[str, Any]:
        """What the graphs behind ``nodes`` hold, by line, in bytes; and parameters, gradients, states."""
        fixed = {storage(p) for optimizer in optimizers for p in parameters(optimizer)}
        rows: dict[tuple[Any, ...], int] = {}
        found = reached(nodes)
        # What an operation saved of a parameter counts as the parameter's.
        known = fixed | {storage(node.variable) for node in found if hasattr(node, "variable")}
        for node in found:
            line = tuple(origins.site(node) or ())
            for tensor in _saved(node):
                key = storage(tensor)
                if key not in known:
                    known.add(key)
                    rows[line] = rows.get(line, 0) + tensor.untyped_storage().nbytes()
        largest = sorted(rows.items(), key=lambda row: -row[1])[:_MOST]
        return {
            "what": "holdings",
            "site": site,
            "nodes": len(found),
            "saved": sum(rows.values()),
            "lines": [{"site": list(line) or None, "bytes": size} for line, size in largest],
            **training(optimizers),
        }

    def everything(self, optimizers: list[Any], site: Any) -> dict[str, Any]:
        """The same of all graphs that are alive: where memory ran out."""
        return self.look(roots(live_tensors()), optimizers, site)


def training(optimizers: list[Any]) -> dict[str, int]:
    """Bytes of the parameters that ``optimizers`` hold, of their gradients, and of the optimizers' states."""
    held = [p for optimizer in optimizers for p in parameters(optimizer)]
    states = [
        value
        for optimizer in optimizers
        for state in list(optimizer.state.values())
        if isinstance(state, dict)
        for value in state.values()
        if hasattr(value, "untyped_storage")
    ]
    return {
        "parameters": sum(p.untyped_storage().nbytes() for p in held),
        "gradients": sum(p.grad.untyped_storage().nbytes() for p in held if p.grad is not None),
        "state": sum(value.untyped_storage().nbytes() for value in states),
    }


def _saved(node: Any) -> list[Any]:
    import torch

    found: list[Any] = []
    for name in saved_names(node):
        try:
            value = getattr(node, name)
        except Exception:
            # Freed or changed since; the engine tells of it where it matters.
            continue
        values = value if isinstance(value, (tuple, list)) else (value,)
        found += [each for each in values if isinstance(each, torch.Tensor) and each.layout is torch.strided]
    return found
