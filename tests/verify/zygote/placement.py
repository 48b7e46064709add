"""Lets a script that says nothing of devices train on one, as the fixtures do not; their leaks are the same there."""

from __future__ import annotations

from typing import Any

import torch


def place(device: str) -> None:
    """Make ``device`` the one on which tensors and modules are created in this process, arrays' tensors included.

    Samplers shuffle on the CPU, by the generator that they made there, and arrays are on the CPU again.
    """
    torch.set_default_device(device)
    from_numpy, as_array, permutation = torch.from_numpy, torch.Tensor.numpy, torch.randperm
    generator_of = torch.Generator

    def placed(array: Any) -> torch.Tensor:
        return from_numpy(array).to(device)

    def numpy(self: torch.Tensor, *, force: bool = False) -> Any:
        return as_array(self.cpu(), force=force)

    def randperm(*args: Any, generator: Any = None, **kwargs: Any) -> torch.Tensor:
        if isinstance(generator, generator_of):
            kwargs.setdefault("device", generator.device)
        return permutation(*args, generator=generator, **kwargs)

    torch.from_numpy, torch.Tensor.numpy, torch.randperm = placed, numpy, randperm  # type: ignore[assignment]
