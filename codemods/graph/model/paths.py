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

_OF_BUILTINS = ("filter", "input", "map", "range", "zip")
_MOVED = {
    **{f"{library}.{name}": f"builtins.{name}" for library in ("six.moves", "past.builtins") for name in _OF_BUILTINS},
    "six.moves.xrange": "builtins.range",
    "past.builtins.xrange": "builtins.range",
    "six.moves.reduce": "functools.reduce",
    "past.builtins.reduce": "functools.reduce",
    "six.moves.zip_longest": "itertools.zip_longest",
    "six.moves.filterfalse": "itertools.filterfalse",
    "six.moves.cPickle": "pickle",
    "six.moves.builtins": "builtins",
    "six.moves.queue": "queue",
}
"""Names under which libraries for two versions of Python hand out Python's own (docs: six, python-future)."""


def of_python(path: str) -> str:
    """What Python itself calls something that a library for two versions of Python hands out; else ``path``."""
    return _MOVED.get(path, path)


def canonical(path: str) -> str:
    """The public name of something that ``path`` names, e.g. ``torch.nn.modules.loss.MSELoss`` ->
    ``torch.nn.MSELoss``."""
    path = of_python(path)
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
