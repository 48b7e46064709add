"""Where tensors of two devices meet, and where each was made: a dispatch mode, in the second run of a diagnosis.

On a machine without CUDA the places are labels (:mod:`..devices.labels`), and the operation goes on; else torch raises.
"""

from __future__ import annotations

import typing
from types import FrameType
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from ..devices import labels as known
from ..lines.sites import Tree
from ..values.tensors import storage
from . import names

#: Operations that take no tensors of two devices but for single numbers. Of others it is not said.
_TOGETHER = frozenset(
    """
    add sub rsub mul div pow eq ne lt le gt ge minimum maximum fmod remainder atan2 where lerp addcmul addcdiv
    logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor masked_fill masked_select
    mm addmm bmm baddbmm mv addmv dot vdot convolution embedding cat stack gather scatter scatter_add index_select
    native_layer_norm native_batch_norm native_group_norm _native_batch_norm_legit mkldnn_rnn_layer _cdist_forward
    nll_loss_forward nll_loss2d_forward mse_loss smooth_l1_loss huber_loss binary_cross_entropy
    binary_cross_entropy_with_logits
    """.split()  # noqa: SIM905 - read as a table
)
_MESSAGES = ("Expected all tensors to be on the same device", "is not on the expected device")
_MOST_KEPT = 100_000
#: How many operations are followed back from a tensor without a name.
_DEEPEST = 16


class _Made(typing.NamedTuple):
    """A tensor's memory: its address, the line that made it, and a weak reference that keeps the address its own."""

    key: int
    site: Any
    kept: Any


class Places(TorchDispatchMode):
    """Writes a ``mixed`` event for the first operation that mixes devices."""

    def __init__(self, tree: Tree, write: typing.Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._tree = tree
        self._write = write
        self._told = False
        #: By storage: itself, and what it is made of, nearest first.
        self._born: dict[int, tuple[_Made, ...]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from sys import _getframe

        inputs = list(_tensors([*args, *(kwargs or {}).values()]))
        # A single number goes along with any other tensor, and decides where nothing else does.
        places = {self._place(tensor) for tensor in inputs if tensor.dim()} or set(map(self._place, inputs))
        labels = known.current
        operation = func._schema.name.rpartition("::")[2].rstrip("_")
        if labels is not None and len(places) > 1 and operation in _TOGETHER and not labels.lost:
            self._mixed(func, args, kwargs or {}, _getframe(1))
        try:
            result = func(*args, **(kwargs or {}))
        except RuntimeError as error:
            if len(places) > 1 and any(text in str(error) for text in _MESSAGES):
                self._mixed(func, args, kwargs or {}, _getframe(1))
            raise
        self._follow(result, inputs, places, _getframe(1))
        return result

    def _follow(self, result: Any, inputs: list[Any], places: set[str], frame: FrameType) -> None:
        import torch
        from torch.multiprocessing.reductions import StorageWeakRef

        labels = known.current
        old = set(map(storage, inputs))
        sources = [tensor for tensor in inputs if tensor.dim()] if len(places) == 1 else []
        # What a layer gets says more than its own weights.
        source = min(sources, key=lambda tensor: isinstance(tensor, torch.nn.Parameter), default=None)
        made_of = () if source is None else self._line(source)
        for tensor in _tensors([result]):
            key = storage(tensor)
            if key is None or key in old:
                continue
            if labels is not None:
                # What is computed of a tensor is where that is.
                labels.put(tensor, "cuda" if "cuda" in places else "cpu")
            if len(self._born) < _MOST_KEPT:
                made = _Made(key, self._tree.site(frame), StorageWeakRef(tensor.untyped_storage()))
                self._born[key] = (made, *made_of)[:_DEEPEST]

    def _place(self, tensor: Any) -> str:
        import torch

        real = str(torch._C.TensorBase.device.__get__(tensor))
        return real if known.current is None or real != "cpu" else known.current.of(tensor)

    def _mixed(self, func: Any, args: Any, kwargs: dict[str, Any], frame: FrameType) -> None:
        if self._told:
            return
        self._told = True
        described = [argument.name for argument in func._schema.arguments]
        given = [(described[i], args[i]) for i in range(len(args))] + list(kwargs.items())
        frames = self._tree.frames(frame)
        operands = []
        for argument, value in given:
            for tensor in _tensors([value]):
                if tensor.dim():
                    born, named = self._named(tensor, frames)
                    operands.append(
                        {
                            "argument": argument,
                            "device": self._place(tensor),
                            "born": born,
                            "names": named,
                            "near": self._near(self._place(tensor), frames),
                        }
                    )
        operation = func._schema.name.rpartition("::")[2]
        self._write({"what": "mixed", "site": self._tree.site(frame), "operation": operation, "operands": operands})

    def _named(self, tensor: Any, frames: list[FrameType]) -> tuple[Any, list[dict[str, str]]]:
        """Where ``tensor`` was made, and what it is called; of one without a name the same of what it is made of."""
        place, line = self._place(tensor), self._line(tensor)
        for made in line:
            # What was moved is made of a tensor that is somewhere else.
            named = [] if made.kept.expired() else self._names(made.key, place, frames)
            if named:
                return made.site, named
        return line[0].site if line else None, []

    def _names(self, key: int, place: str, frames: list[FrameType]) -> list[dict[str, str]]:
        """What the tensors at ``place`` are called whose memory is ``key``."""
        return names.names(lambda value: storage(value) == key and self._place(value) == place, self._tree, frames)

    def _line(self, tensor: Any) -> tuple[_Made, ...]:
        """``tensor``, and what it is made of, nearest first; nothing of one without memory of its own."""
        from torch.multiprocessing.reductions import StorageWeakRef

        key = storage(tensor)
        if key is None:
            return ()
        known = self._born.get(key)
        # The memory of another one may have been there before.
        alive = known is not None and not known[0].kept.expired()
        return known if known is not None and alive else (_Made(key, None, StorageWeakRef(tensor.untyped_storage())),)

    def _near(self, place: str, frames: list[FrameType]) -> list[dict[str, str]]:
        """What else is at ``place`` and has a name where it happens."""
        return names.names(lambda value: self._place(value) == place and value.dim() > 0, self._tree, frames[:1])[:1]


def _tensors(values: Any) -> Any:
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)
