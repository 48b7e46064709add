"""Paths into libraries, one public name for each function and class."""

from __future__ import annotations

_ALIASES = {
    "torch.autograd.variable": "torch.autograd",
    "torch.nn.modules": "torch.nn",
    "torch.functional": "torch",
    "torch.nn.parameter": "torch.nn",
    "torch.optim.adam": "torch.optim",
    "torch.optim.sgd": "torch.optim",
}


def canonical(path: str) -> str:
    """The public name of something that ``path`` names, e.g. ``torch.nn.modules.loss.MSELoss`` ->
    ``torch.nn.MSELoss``."""
    if path.startswith("torchvision.transforms.transforms."):
        return "torchvision.transforms." + path.rpartition(".")[2]
    if not path.startswith("torch."):
        return path
    if path.startswith("torch.nn.modules."):
        return "torch.nn." + path.rpartition(".")[2]
    head, _, last = path.rpartition(".")
    if head.startswith("torch.optim.") and head != "torch.optim.lr_scheduler" and last[:1].isupper():
        return "torch.optim." + last
    return f"{_ALIASES.get(head, head)}.{last}"
