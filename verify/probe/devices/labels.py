"""Which tensors a script has put where, on a machine where the CPU answers for CUDA: for one run of a diagnosis.

Each storage that the script asked to be on CUDA has a label, and a tensor that is moved there or back is a copy, as it
would be. ``Tensor.device`` answers with the label. What labels cannot follow (default devices, what files bring
along) makes them ``lost``; then nothing that is said of devices may be believed.
"""

from __future__ import annotations

import typing
from typing import Any

from ..values.tensors import storage

#: The labels of this process, if it has any.
current: Labels | None = None
_LOST = (
    "Storage.cuda()",
    "torch.load() onto 'cuda'",
    "torch.jit.load() onto 'cuda'",
    "a default device 'cuda'",
)


class Labels:
    """``cuda`` storages, by address. Weak references keep an address from being another storage's."""

    def __init__(self) -> None:
        self._known: dict[int | None, Any] = {}
        self.lost = False

    def noted(self, what: str) -> None:
        """A request was answered by the CPU."""
        self.lost = self.lost or what in _LOST or (what.startswith("torch.cuda.") and what.endswith("Tensor"))

    def of(self, tensor: Any) -> str:
        """``cuda`` or ``cpu``."""
        return "cuda" if self._key(tensor) in self._known else "cpu"

    def put(self, tensor: Any, place: str) -> None:
        """``tensor``, which has memory of its own, is at ``place``."""
        from torch.multiprocessing.reductions import StorageWeakRef

        key = self._key(tensor)
        if place == "cuda" and key is not None:
            self._known.setdefault(key, StorageWeakRef(tensor.untyped_storage()))
        else:
            self._known.pop(key, None)

    def moved(self, source: Any, result: Any, place: str) -> Any:
        """``result`` of moving ``source`` to ``place``: a copy where it is somewhere else."""
        import torch

        if not isinstance(result, torch.Tensor) or self.of(result) == place:
            return result
        if source is not None and self._key(result) == self._key(source):
            result = result.clone()
        self.put(result, place)
        return result

    def _key(self, tensor: Any) -> int | None:
        try:
            return storage(tensor)
        except (RuntimeError, NotImplementedError):
            # Wrappers around tensors have no memory of their own.
            return None

    def install(self) -> None:
        """Have tensors say where they are, and copies made on the way back. Needs an imported torch."""
        import torch

        global current
        current = self
        base: Any = torch._C.TensorBase
        device, cuda = torch.device("cuda", 0), base.device
        tensor: Any = torch.Tensor

        def where(self: Any) -> Any:
            known = cuda.__get__(self)
            return device if known.type == "cpu" and labels.of(self) == "cuda" else known

        labels = self
        tensor.device = property(where)
        tensor.is_cuda = property(lambda self: where(self).type == "cuda")
        tensor.get_device = lambda self: -1 if where(self).type == "cpu" else 0
        original: typing.Callable[..., Any] = tensor.cpu

        def cpu(self: Any, *args: Any, **kwargs: Any) -> Any:
            return labels.moved(self, original(self, *args, **kwargs), "cpu")

        tensor.cpu = cpu
