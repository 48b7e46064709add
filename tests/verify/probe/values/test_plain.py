"""What values are told by."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

from verify.probe.values.plain import definition_of


class Loud(type):
    """Runs code when its classes are asked for anything."""

    def __getattribute__(cls, name: str) -> Any:
        if name in ("__module__", "__qualname__"):
            raise AssertionError(name)
        return type.__getattribute__(cls, name)


class Quiet(metaclass=Loud):
    pass


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (torch.optim.Adam, ("Adam", "torch.optim.adam.Adam")),
        (functools.reduce, ("reduce", "_functools.reduce")),
        (torch.nn.functional.mse_loss, ("mse_loss", "torch.nn.functional.mse_loss")),
        (Quiet, ("Quiet", f"{__name__}.Quiet")),
        (torch.nn.MSELoss(), None),
        ("Adam", None),
        (None, None),
    ],
)
def test_classes_and_functions_are_told_by_where_they_are_defined(value: Any, told: tuple[str, str] | None) -> None:
    assert definition_of(value) == told
