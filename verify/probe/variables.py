"""What the program holds when it ends: numbers and tensors by the names of the variables that lead to them.

An average of weights, the patience of an early stop, the counters of a scaler: what no loss of this run shows yet.
"""

from __future__ import annotations

import sys
import time
from types import FrameType
from typing import Any

from .holders import variables
from .params import Parameters
from .sites import Tree

#: What takes longer to read says nothing: only names that both runs have are compared.
_SECONDS = 2.0
_MOST_NAMES = 5000
_MOST_ELEMENTS = 1 << 22
_MOST_IN_ALL = 1 << 25


def held(tree: Tree, frames: list[FrameType], reader: Parameters) -> dict[str, Any]:
    """The event: ``numbers`` {name: hex}, and ``names`` of tensors with their *values*.

    ``frames`` are the user's frames, innermost first. One-element tensors are numbers; of generators of random numbers
    the state is read. Runs no code of the user's.
    """
    import torch

    until = time.perf_counter() + _SECONDS
    numbers: dict[str, str] = {}
    tensors: dict[str, Any] = {}
    total = 0
    for name, value, function in variables(tree, frames, until, exact=True):
        name = f"{name} in {function}" if function != "<module>" else name
        if len(numbers) + len(tensors) >= _MOST_NAMES:
            break
        if name in numbers or name in tensors:
            continue
        tensor = _tensor(value)
        if tensor is None:
            number = _number(value)
            if number is not None:
                numbers[name] = float(number).hex()
        elif tensor.layout is torch.strided and not tensor.is_meta and tensor.device.type != "meta":
            count = tensor.numel()
            if count == 1 and not tensor.is_complex():
                numbers[name] = float(tensor.detach().item()).hex()
            elif count <= _MOST_ELEMENTS and total + count <= _MOST_IN_ALL:
                total += count
                tensors[name] = tensor
    event = {"event": "variables", "names": list(tensors), "numbers": numbers}
    event.update(reader.read(list(tensors.values())))
    return event


def _number(value: Any) -> Any:
    if isinstance(value, (bool, int, float)):
        return value if abs(value) < 1e300 or value != value else None
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        number = value.item()
        return number if isinstance(number, (bool, int, float)) else None
    return None


def _tensor(value: Any) -> Any:
    """``value`` as a tensor: itself, an array's values, the state of a generator; None where it is none of these."""
    import torch

    if issubclass(type(value), torch.Tensor):
        return None if hasattr(value, "materialize") else value
    if isinstance(value, torch.Generator):
        return value.get_state() if value.device.type == "cpu" else None
    numpy = sys.modules.get("numpy")
    if numpy is not None and type(value) is numpy.ndarray and value.ndim and value.dtype.kind in "fiub":
        try:
            return torch.from_numpy(numpy.ascontiguousarray(value))
        except TypeError:
            # Types that torch has not (uint32 before 2.3).
            return None
    return None
