"""Reading tensors without the script noticing: no random numbers, no graph, no function that a mode could intercept."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable
from typing import Any

#: Dispatch modes that the probe itself has entered for the whole run, see shapes.py.
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
        import torch

        # What torch.no_grad does, which takes three times as long.
        self._grad = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)
        self._function = torch._C.DisableTorchFunction()
        self._function.__enter__()

    def __exit__(self, *error: Any) -> None:
        import torch

        self._function.__exit__(*error)
        torch._C._set_grad_enabled(self._grad)


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
        entry["digest"] = digest([tensor])
        if tensor.numel() == 1 and not tensor.is_complex():
            with unseen():
                entry["value"] = float(tensor.detach().cpu().item()).hex()
    except (RuntimeError, TypeError, NotImplementedError):
        pass
    return entry


def _add_numpy(numpy: Any, state: Any) -> None:
    """Add the state of numpy's global generator; where it is the usual one, out of its memory, forty times as fast."""
    generator: Any = getattr(getattr(numpy.mtrand, "_rand", None), "_bit_generator", None)
    if type(generator).__name__ == "MT19937":
        # Its 624 numbers of 32 bits, and the place among them.
        state.update(ctypes.string_at(generator.ctypes.state_address, 625 * 4))
    else:
        algorithm = numpy.get_state()
        state.update(repr(algorithm).encode())


def generators() -> str:
    """A fingerprint of the random generators: torch's (CUDA's too once in use), Python's and numpy's."""
    import torch

    state = hasher()
    state.update(content(torch.default_generator.get_state()))
    cuda: Any = torch.cuda
    if cuda.is_available() and cuda.is_initialized():
        for generator in cuda.default_generators:
            state.update(content(generator.get_state()))
    python = sys.modules.get("random")
    if python is not None:
        version, numbers, gauss = python.getstate()
        # Not the hash of the whole: that of None is an address before Python 3.12.
        state.update(repr((version, hash(numbers), gauss)).encode())
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        _add_numpy(numpy, state)
    return str(state.hexdigest()[:16])
