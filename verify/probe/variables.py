"""What the program holds when it ends: numbers, tensors and texts by the names of the variables that lead to them.

An average of weights, the patience of an early stop, the counters of a scaler: what no loss of this run shows yet.
"""

from __future__ import annotations

import time
from types import FrameType
from typing import Any

from . import ambient
from .holders import variables
from .params import Parameters
from .plain import keys_of, number_of, size_of, tensor_of, text_of
from .sites import Tree

#: What takes longer to read says nothing: only names that both runs have are compared.
_SECONDS = 2.0
_MOST_NAMES = 5000
_MOST_ELEMENTS = 1 << 22
_MOST_IN_ALL = 1 << 25


def held(tree: Tree, frames: list[FrameType], reader: Parameters) -> dict[str, Any]:
    """The event: ``numbers`` {name: hex}, ``texts`` {name: text}, and ``names`` of tensors with their *values*.

    ``frames`` are the user's frames, innermost first. One-element tensors are numbers; of generators of random numbers
    the state is read, of containers the size. What holds for the whole process stands among them. Runs no code of the
    user's.
    """
    import torch

    until = time.perf_counter() + _SECONDS
    numbers: dict[str, str] = {}
    texts: dict[str, str] = {}
    tensors: dict[str, Any] = {}
    total = 0
    for name, value, function in variables(tree, frames, until, exact=True):
        name = f"{name} in {function}" if function != "<module>" else name
        if len(numbers) + len(tensors) >= _MOST_NAMES:
            break
        if name in numbers or name in tensors or name in texts:
            continue
        tensor = tensor_of(value)
        if tensor is None:
            number, text, size = number_of(value), text_of(value), size_of(value)
            if number is not None:
                numbers[name] = float(number).hex()
            elif text is not None and len(texts) < _MOST_NAMES:
                texts[name] = text
            elif size is not None:
                numbers[f"len({name})"] = float(size).hex()
                keys = keys_of(value)
                if keys is not None:
                    texts[f"list({name})"] = keys
        elif tensor.layout is torch.strided and not tensor.is_meta and tensor.device.type != "meta":
            count = tensor.numel()
            if count == 1 and not tensor.is_complex():
                numbers[name] = float(tensor.detach().item()).hex()
            elif count <= _MOST_ELEMENTS and total + count <= _MOST_IN_ALL:
                total += count
                tensors[name] = tensor
    of_all = ambient.held()
    numbers.update({name: float(value).hex() for name, value in of_all.items() if not isinstance(value, str)})
    texts.update({name: value for name, value in of_all.items() if isinstance(value, str)})
    event = {"event": "variables", "names": list(tensors), "numbers": numbers, "texts": texts}
    event.update(reader.read(list(tensors.values())))
    return event
