"""A run by shapes alone: tensors without memory, as torch's FakeTensorMode has them, so that any model fits.

What autograd refuses (a graph that was freed, a tensor that was changed in place) and shapes that do not fit are errors
here as they are with memory. Numbers there are none: where the script reads one out of a tensor it gets 1, and is told
of; what cannot go on without numbers stops with an error that says so.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

from ..guarding.guard import Write
from ..lines.sites import Tree, key
from ..values import tensors
from .identity import version
from .loaders import in_this_process

#: Storages keep their Python object from this torch on, and only so is it seen when one is gone.
OLDEST = (2, 1)


class Shapes:
    """Makes every tensor of the main thread one without memory, and estimates what all of them would take.

    It takes the place of :class:`Memory`. ``write`` gets an ``invented`` event for each line of ``tree`` that
    reads numbers which are made up.
    """

    def __init__(self, write: Write, tree: Tree) -> None:
        self._write = write
        self._tree = tree
        self._told: set[Any] = set()
        self._known: set[int] = set()
        self._bytes = 0
        self._peak = 0

    def install(self) -> None:
        """Enter the mode for good; right after torch was imported."""
        from torch._subclasses import fake_tensor

        kind: Any = fake_tensor.FakeTensor
        kind.__format__ = _formatted
        kind.numpy = kind.__array__ = functools.partialmethod(_array, self._invent)
        kind.tolist = functools.partialmethod(_list, self._invent)
        in_this_process()
        tensors.own_modes += 1
        _mode(self).__enter__()

    def look(self) -> tuple[int, int]:
        """(bytes, peak) that the tensors would take now."""
        return self._bytes, self._peak

    def reset(self) -> None:
        """Start a new peak."""
        self._peak = self._bytes

    def made(self, storage: Any) -> None:
        """Count ``storage`` until it is gone; once, however many tensors share it."""
        address, size = storage._cdata, int(storage.nbytes())
        if address not in self._known:
            self._known.add(address)
            self._bytes += size
            self._peak = max(self._peak, self._bytes)
            weakref.finalize(storage, self._gone, address, size)

    def _gone(self, address: int, size: int) -> None:
        self._known.discard(address)
        self._bytes -= size

    def _invent(self) -> None:
        """Tell that a number is made up."""
        site = self._tree.site(sys._getframe(1))
        if key(site) not in self._told:
            self._told.add(key(site))
            self._write({"event": "invented", "site": site})

    def number(self, tensor: Any) -> Any:
        """What stands for the one number of ``tensor``."""
        self._invent()
        return 1.0 if tensor.dtype.is_floating_point else 1j if tensor.dtype.is_complex else 1


def _mode(shapes: Shapes) -> Any:
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
    from torch.utils import _pytree

    read = torch.ops.aten._local_scalar_dense.default

    class Mode(FakeTensorMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            try:
                result = super().__torch_dispatch__(func, types, args, kwargs or {})
            except DataDependentOutputException:
                if func is not read:
                    raise
                return shapes.number(args[0])
            for each in _pytree.tree_flatten(result)[0]:
                if isinstance(each, FakeTensor) and each.layout is torch.strided:
                    shapes.made(each.untyped_storage())
            return result

    # Arrays that become tensors have memory.
    return Mode(allow_non_fake_inputs=True)


def _array(self: Any, invent: Any, *args: Any, **named: Any) -> Any:
    import numpy
    import torch

    invent()
    kind = str(self.dtype).rpartition(".")[2]
    return numpy.ones(tuple(self.shape), dtype="float32" if self.dtype == torch.bfloat16 else kind)


def _list(self: Any, invent: Any) -> Any:
    return _array(self, invent).tolist()


def _formatted(self: Any, form: str) -> str:
    return format(self.item(), form) if self.dim() == 0 else object.__format__(self, form)


def shapes_alone(write: Write, tree: Tree) -> Shapes:
    """Go on without memory from here on. Raises RuntimeError where torch is too old for that."""
    import torch

    if version(torch.__version__) < OLDEST:
        raise RuntimeError(f"torch {torch.__version__} is older than {OLDEST[0]}.{OLDEST[1]}")
    shapes = Shapes(write, tree)
    shapes.install()
    return shapes
