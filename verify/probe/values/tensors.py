"""Reading tensors without the script noticing: no random numbers, no graph, no function that a mode could intercept."""

from __future__ import annotations

import ctypes
import hashlib
import struct
import sys
from collections.abc import Callable
from typing import Any

#: Where Python's generators have their numbers, by identity; -1 where they are not found.
_places: dict[int, int] = {}
#: NumPy's generator, and where its numbers are.
_numpy: list[Any] = [None, 0]
#: Dispatch modes that the probe itself has entered for the whole run, see process/shapes.py.
own_modes = 0


def watchable() -> Callable[[], bool]:
    """A function that tells whether a backward or step is the script's own and may be looked at.

    It is not while torch.compile or functorch traces it, under a dispatch mode (fake tensors, AOTAutograd), or while a
    CUDA graph is captured, where reading a value is an error.
    """
    import torch

    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    modes = getattr(torch._C, "_len_torch_dispatch_stack", None)
    functorch = getattr(getattr(torch._C, "_functorch", None), "maybe_current_level", None)
    cuda: Any = torch.cuda
    capturing = getattr(cuda, "is_current_stream_capturing", None)

    def own() -> bool:
        if compiling is not None and compiling():
            return False
        if modes is not None and modes() > own_modes:
            return False
        if functorch is not None and functorch() is not None:
            return False
        return not (capturing is not None and cuda.is_initialized() and capturing())

    return own


class unseen:  # noqa: N801 - used like torch.no_grad
    """A context in which neither the graph nor a TorchFunctionMode or subclass sees what is done to tensors."""

    __slots__ = ("_function", "_grad")

    def __enter__(self) -> None:
        inside = sys.modules["torch._C"]
        # What torch.no_grad does, which takes three times as long.
        self._grad = inside.is_grad_enabled()
        inside._set_grad_enabled(False)
        self._function = inside.DisableTorchFunction()
        self._function.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._function.__exit__(*error)
        sys.modules["torch._C"]._set_grad_enabled(self._grad)


def content(tensor: Any) -> Any:
    """The bytes of a tensor in its logical order, as a buffer; copied only where they are not one block of host memory.

    Raises RuntimeError or TypeError where a tensor has no plain memory (meta, fake, sparse, wrapped).
    """
    import torch

    if tensor.layout is not torch.strided or tensor.is_meta or hasattr(tensor, "fake_mode"):
        raise TypeError("a tensor without memory of its own")
    plain = tensor
    if tensor.device.type != "cpu" or not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
        with unseen():
            plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    size = plain.numel() * plain.element_size()
    if size == 0:
        return b""
    # The copy must outlive the view on it.
    buffer = (ctypes.c_char * size).from_address(plain.data_ptr())
    buffer._tensor = plain
    return buffer


def storage(tensor: Any) -> int | None:
    """What tells the storage of ``tensor`` from others that are alive; None for layouts that have none.

    Tensors without memory (meta) have storages too.
    """
    import torch

    return int(tensor.untyped_storage()._cdata) if tensor.layout is torch.strided else None


def hasher() -> Any:
    """What digests are made with; their first 16 hexadecimal digits are kept.

    Processors compute SHA-1 themselves, which makes it twice as fast as anything else; it guards against no one here.
    """
    try:
        return hashlib.sha1()
    except ValueError:
        # Forbidden where only approved algorithms are (FIPS).
        return hashlib.blake2b()


def digest(tensors: list[Any]) -> str:
    """A digest of all bits of ``tensors``, 16 hexadecimal digits."""
    state = hasher()
    for tensor in tensors:
        state.update(content(tensor))
    return str(state.hexdigest()[:16])


def loss(tensor: Any) -> dict[str, Any]:
    """One output of a backward as records.py has it; the digest is empty where a tensor has no memory to read."""
    entry: dict[str, Any] = {"value": None, "digest": "", "numel": tensor.numel()}
    try:
        data = bytes(content(tensor))
        # A few bytes are their own digest.
        entry["digest"] = data.hex() if len(data) <= 8 else digest([tensor])
        if tensor.numel() == 1 and not tensor.is_complex():
            with unseen():
                entry["value"] = float(tensor.item()).hex()
    except (RuntimeError, TypeError, NotImplementedError):
        pass
    return entry


def _of_numpy(numpy: Any) -> bytes:
    """The state of numpy's global generator; where it is the usual one, out of its memory, forty times as fast."""
    generator: Any = getattr(getattr(numpy.mtrand, "_rand", None), "_bit_generator", None)
    if type(generator).__name__ == "MT19937":
        if _numpy[0] is not generator:
            _numpy[:] = generator, generator.ctypes.state_address
        # Its 624 numbers of 32 bits, and the place among them.
        return ctypes.string_at(_numpy[1], 625 * 4)
    return repr(numpy.get_state()).encode()


def _of_python(random: Any) -> bytes:
    """The state of Python's global generator, out of its memory where that can be found there."""
    generator = random._inst
    place = _places.get(id(generator))
    if place is None:
        _, numbers, _ = generator.getstate()
        # The place among the numbers stands in front of them.
        packed = struct.pack("625I", numbers[-1], *numbers[:-1])
        memory = ctypes.string_at(id(generator), type(generator).__basicsize__)
        place = _places[id(generator)] = memory.find(packed)
    if place < 0:
        _, numbers, _ = generator.getstate()
        return repr((hash(numbers), generator.gauss_next)).encode()
    return ctypes.string_at(id(generator) + place, 625 * 4) + repr(generator.gauss_next).encode()


def generators() -> Callable[[], str]:
    """The random generators as they are now: torch's (CUDA's too once in use), Python's and numpy's.

    The function that comes back makes a fingerprint of them.
    """
    import torch

    states = [torch.default_generator.get_state()]
    cuda: Any = torch.cuda
    if cuda.is_available() and cuda.is_initialized():
        states += [generator.get_state() for generator in cuda.default_generators]
    python, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
    drawn = b"" if python is None else _of_python(python)
    others = b"" if numpy is None else _of_numpy(numpy)

    def fingerprint() -> str:
        state = hasher()
        for each in states:
            state.update(content(each))
        state.update(drawn)
        state.update(others)
        return str(state.hexdigest()[:16])

    return fingerprint
