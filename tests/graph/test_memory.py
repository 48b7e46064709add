"""Which functions and modules may share memory with what they get, or write to it: the tables, compared with torch."""

from __future__ import annotations

import inspect
import json
import operator
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from codemods.graph.model.facts.memory import (
    IN_PLACE_OPERATORS,
    INPLACE_AT,
    INPLACE_OF_LAYER,
    MAY_SHARE,
    SHARING_MEMORY,
)

ARGUMENTS: tuple[tuple[object, ...], ...] = (
    *((), (0,), (1,), (-1,), (0, 1), ((0, 1),), ((1, 0),), (2, 3), ((2, 3),), ((3, 2),), ((6,),), (1, 0), (0, 0)),
    *((0, 0, 1), (0, (1, 3)), ([0, 1], [1, 0]), (0.5,), (0.1, 0.2)),
)
SETTINGS = frozenset(
    [
        "manual_seed",
        "seed",
        "set_num_threads",
        "set_num_interop_threads",
        "set_default_device",
        "load",
        "save",
        "compile",
    ]
)


def functions(space: type | ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(space):
        function = getattr(space, name, None)
        public = callable(function) and not isinstance(function, type) and name.strip("_") == name
        if public and name not in SETTINGS and "backward" not in name and not name.endswith("storage"):
            yield name, function


def shares(function: Callable[..., Any], *arguments: object) -> bool:
    given = torch.randn(2, 3)
    try:
        made = function(given, *arguments)
    except Exception:
        return False
    outputs = made if isinstance(made, (tuple, list)) else (made,)
    address = given.untyped_storage().data_ptr()
    try:
        return any(isinstance(o, torch.Tensor) and o.untyped_storage().data_ptr() == address for o in outputs)
    except NotImplementedError:
        return False


SPACES = {"torch.Tensor": (torch.Tensor, 40), "torch": (torch, 25), "torch.nn.functional": (nn.functional, 5)}


def sharing(space: type | ModuleType) -> list[str]:
    """The functions that shared memory with their first argument at least once."""
    warnings.simplefilter("ignore")
    return [name for name, function in functions(space) if any(shares(function, *given) for given in ARGUMENTS)]


@pytest.fixture(scope="module")
def shared() -> dict[str, list[str]]:
    """By space; asked in a process of its own, because some functions change settings of torch."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("space", SPACES)
def test_what_may_share_memory_is_known(space: str, shared: dict[str, list[str]]) -> None:
    assert len(shared[space]) >= SPACES[space][1]
    assert set(shared[space]) - MAY_SHARE - SHARING_MEMORY - {"requires_grad_"} == set()


def test_positions_of_inplace_are_those_of_the_signatures() -> None:
    given = {}
    for name, function in functions(nn.functional):
        parameters = [] if inspect.isbuiltin(function) else list(inspect.signature(function).parameters)
        if "inplace" in parameters:
            given[name] = parameters.index("inplace")
    assert given == INPLACE_AT
    layers = {}
    for name, layer in vars(nn).items():
        if isinstance(layer, type) and issubclass(layer, nn.Module):
            parameters = list(inspect.signature(layer).parameters)
            if "inplace" in parameters:
                layers[name] = parameters.index("inplace")
    assert layers == INPLACE_OF_LAYER


def test_operators_that_write_are_those_of_python() -> None:
    named = {name for name in dir(operator) if name.startswith("i") and hasattr(operator, f"__{name}__")}
    assert named - {"index", "inv", "invert", "is_", "is_not"} == IN_PLACE_OPERATORS


if __name__ == "__main__":
    print(json.dumps({name: sharing(space) for name, (space, _) in SPACES.items()}))
