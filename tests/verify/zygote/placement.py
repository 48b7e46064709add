"""Lets a script that says nothing of devices train on one, as the fixtures do not; their leaks are the same there."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

#: Functions that draw numbers by a ``generator``, which is the CPU's where a script makes one.
DRAWING = ("bernoulli", "multinomial", "normal", "rand", "randint", "randn", "randperm")


def place(device: str) -> None:
    """Make ``device`` the one on which tensors and modules are created in this process, arrays' tensors included.

    Samplers shuffle on the CPU, by the generator that they made there, and arrays are on the CPU again. What old
    constructors make (``torch.FloatTensor``) is on the CPU and moves where it meets a tensor of the device.
    """
    torch.set_default_device(device)
    # torch remembers its factories when the first is called: that has to be before they are replaced.
    torch.zeros(())
    from_numpy, as_array = torch.from_numpy, torch.Tensor.numpy

    def placed(array: Any) -> torch.Tensor:
        return from_numpy(array).to(device)

    def numpy(self: torch.Tensor, *, force: bool = False) -> Any:
        return as_array(self.cpu(), force=force)

    torch.from_numpy, torch.Tensor.numpy = placed, numpy  # type: ignore[assignment]
    for name in DRAWING:
        setattr(torch, name, _drawing(getattr(torch, name), device, stays=name == "randperm"))
    # it took its own when it was imported
    torch.utils.data.dataset.randperm = torch.randperm  # type: ignore[attr-defined]
    _Meeting(device).__enter__()


def _drawing(function: Any, device: str, *, stays: bool) -> Any:
    made = torch.Generator

    @functools.wraps(function)
    def drawn(*args: Any, generator: Any = None, **kwargs: Any) -> Any:
        if not isinstance(generator, made) or "device" in kwargs:
            return function(*args, **kwargs) if generator is None else function(*args, generator=generator, **kwargs)
        asks = kwargs.pop("requires_grad", False)
        args = pytree.tree_map_only(torch.Tensor, lambda each: each.to(generator.device), args)
        if function.__name__ not in ("bernoulli", "multinomial", "normal"):
            kwargs["device"] = generator.device
        with torch.device(generator.device):
            found = function(*args, generator=generator, **kwargs)
        found = found if stays else found.to(device)
        return found.requires_grad_() if asks else found

    return drawn


class _Meeting(TorchFunctionMode):
    """Moves the tensors of the CPU that meet some of ``device``; what is written in place stays where it is."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        kinds = {each.device.type for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)}
        name = getattr(func, "__name__", "")
        written = name.startswith("__i") or name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        if len(kinds) > 1 and not (written and isinstance(args[0], torch.Tensor) and args[0].device.type == "cpu"):
            args, kwargs = pytree.tree_map_only(torch.Tensor, lambda each: each.to(self._device), (args, kwargs))
        return func(*args, **kwargs)
