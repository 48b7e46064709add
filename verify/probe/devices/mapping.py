"""What uses a device: tensors, modules, factories, files, process groups. A CUDA device is answered by the CPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .requests import Requests, names_cuda

#: Tensor methods that take a device by keyword only.
_METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros", "new")
#: Factories beside those that torch lists itself (in ``torch.utils._device``): these take a device as well.
_FACTORIES = ("normal", "from_file")


def install(requests: Requests) -> None:
    """Patch torch's functions and methods; ``requests`` records what they are asked."""
    import torch

    _tensors(torch, requests)
    _modules(torch, requests)
    _factories(torch, requests)
    _files(torch, requests)
    _default_device(torch, requests)
    _generators(torch, requests)
    if torch.distributed.is_available():
        _distributed(torch, requests)


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Set ``owner.name`` to ``make(original)``, made to look like it; nothing where this torch has no such name."""
    original = getattr(owner, name, None)
    if original is None:
        return
    replacement: Any = functools.wraps(original)(make(original))
    # Builtins have no module, and their qualified name is internal; pickle goes by the public one.
    replacement.__module__ = getattr(original, "__module__", None) or getattr(owner, "__name__", "")
    if replacement.__qualname__.startswith("_"):
        replacement.__qualname__ = name
    setattr(owner, name, replacement)
    _register_for_script(original, replacement)


def _register_for_script(original: Any, replacement: Any) -> None:
    # TorchScript knows builtin functions by identity.
    from torch.jit import _builtins

    operator = _builtins._find_builtin(original)
    if operator is not None:
        _builtins._register_builtin(replacement, operator)


def _instead(requests: Requests, what: str, answer: Callable[..., Any]) -> Callable[[Any], Any]:
    """A wrapper for functions that ask for CUDA and nothing else: ``answer`` takes their place."""

    def make(_original: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            requests.note(what)
            return answer(*args, **kwargs)

        return wrapper

    return make


def _keyword(requests: Requests, what: str) -> Callable[[Any], Any]:
    """A wrapper for functions that take a device by keyword."""

    def make(original: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            asked = kwargs.get("device")
            if asked is None:
                return original(*args, **kwargs)
            kwargs["device"] = requests.device(asked, what)
            return requests.placed(None, original(*args, **kwargs), asked)

        return wrapper

    return make


def _moved(requests: Requests, what: str, overridden: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """A wrapper for ``to``, where a device is the first argument or a keyword.

    ``overridden`` says of an object whether its class answers for all functions of torch, as torchvision's images do;
    it is then asked as torch would ask it, with the wrapper for the function: that is what it knows ``to`` by.
    """

    from torch import device as torch_device
    from torch.overrides import handle_torch_function

    def make(original: Any) -> Any:
        def to(self: Any, *args: Any, **kwargs: Any) -> Any:
            if overridden(self):
                return handle_torch_function(to, (self,), self, *args, **kwargs)
            asked = _asked(args[0] if args else kwargs.get("device"))
            if args:
                args = (requests.device(args[0], what), *args[1:])
            elif kwargs.get("device") is not None:
                kwargs["device"] = requests.device(kwargs["device"], what)
            if requests.labels is not None and what.startswith("Module") and names_cuda(asked):
                # Each tensor of it is moved by this function, and is told the name of the device.
                cuda = torch_device("cuda")
                args, kwargs = ((cuda, *args[1:]), kwargs) if args else (args, {**kwargs, "device": cuda})
            return requests.placed(self, original(self, *args, **kwargs), asked)

        return to

    return make


def _asked(value: Any) -> Any:
    """The device that an argument of ``to`` asks for: a tensor stands for its own, an index for CUDA's."""
    if type(value) is int:
        return "cuda"
    return value.device if hasattr(value, "device") and hasattr(value, "dtype") else value


def _tensors(torch: Any, requests: Requests) -> None:
    from torch.overrides import handle_torch_function, has_torch_function_unary

    def cuda(_original: Any) -> Any:
        def cuda(
            self: Any, device: Any = None, non_blocking: Any = False, memory_format: Any = torch.preserve_format
        ) -> Any:
            if has_torch_function_unary(self):
                return handle_torch_function(
                    cuda, (self,), self, device, non_blocking=non_blocking, memory_format=memory_format
                )
            requests.note("Tensor.cuda()")
            return requests.placed(self, self.to("cpu", memory_format=memory_format), "cuda")

        return cuda

    def type_(original: Any) -> Any:
        def convert(self: Any, dtype: Any = None, non_blocking: Any = False, **kwargs: Any) -> Any:
            if dtype is None:
                return original(self)
            return original(self, _tensor_type(dtype, requests), non_blocking, **kwargs)

        return convert

    tensor = torch.Tensor
    replace(tensor, "to", _moved(requests, "Tensor.to('cuda')", has_torch_function_unary))
    replace(tensor, "cuda", cuda)
    replace(tensor, "type", type_)
    replace(tensor, "pin_memory", _instead(requests, "Tensor.pin_memory()", lambda self, device=None: self))
    replace(tensor, "record_stream", _instead(requests, "Tensor.record_stream()", lambda self, stream: None))
    for name in _METHODS:
        replace(tensor, name, _keyword(requests, f"Tensor.{name}(device='cuda')"))


def _modules(torch: Any, requests: Requests) -> None:
    def cuda(self: Any, device: Any = None) -> Any:
        return self._apply(lambda tensor: tensor.cpu() if requests.labels is None else tensor.cuda())

    # Reaches the parameters through Tensor.to, but is itself what scripts say, and refuses an index before that.
    replace(torch.nn.Module, "to", _moved(requests, "Module.to('cuda')", lambda module: False))
    replace(torch.nn.Module, "cuda", _instead(requests, "Module.cuda()", cuda))
    for storage in (torch.UntypedStorage, torch.TypedStorage):
        replace(storage, "cuda", _instead(requests, "Storage.cuda()", lambda self, *args, **kwargs: self))


def _tensor_type(dtype: Any, requests: Requests) -> Any:
    """``"torch.cuda.FloatTensor"`` as ``"torch.FloatTensor"``; the classes of that name are mapped in ``absent``."""
    if isinstance(dtype, str) and dtype.startswith("torch.cuda."):
        requests.note(dtype)
        return dtype.replace("torch.cuda.", "torch.", 1)
    return dtype


def _factories(torch: Any, requests: Requests) -> None:
    from torch.utils import _device

    # Remembered by torch from here on, as it would have them: a device context compares with the original functions.
    listed = _device._device_constructors()
    for owner in (torch, torch.fft, torch.nested):
        for name in dir(owner):
            function = getattr(owner, name)
            if not callable(function) or isinstance(function, type):
                continue
            if _is_in(function, listed) or name.endswith("_like") or (owner is torch and name in _FACTORIES):
                spelled = f"{owner.__name__}.{name}(device='cuda')"
                replace(owner, name, _keyword(requests, spelled))


def _is_in(function: Any, functions: Any) -> bool:
    try:
        return function in functions
    except TypeError:  # not hashable
        return False


def _files(torch: Any, requests: Requests) -> None:
    # Asked for every storage that a file or a map_location puts on a device; the numbers below 10 come before torch's.
    def restore(storage: Any, location: Any) -> Any:
        if not (isinstance(location, str) and location.startswith("cuda")):
            return None
        requests.note("torch.load() onto 'cuda'")
        return storage

    torch.serialization.register_package(0, lambda storage: None, restore)

    def load(original: Any) -> Any:
        def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
            return original(f, requests.device(map_location, "torch.jit.load() onto 'cuda'"), *args, **kwargs)

        return load

    replace(torch.jit, "load", load)


def _default_device(torch: Any, requests: Requests) -> None:
    from torch.utils._device import DeviceContext

    # Both `with torch.device("cuda"):` and torch.set_default_device come here.
    def init(original: Any) -> Any:
        return lambda self, device: original(self, requests.device(device, "a default device 'cuda'"))

    replace(DeviceContext, "__init__", init)
    replace(torch, "set_default_tensor_type", lambda original: lambda t: original(_tensor_type(t, requests)))


def _generators(torch: Any, requests: Requests) -> None:
    original = torch.Generator

    class Kind(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls: Any, instance: Any) -> Any:
            return isinstance(instance, original)

        def __subclasscheck__(cls: Any, subclass: Any) -> Any:
            return issubclass(subclass, original)

        def __call__(cls: Any, device: Any = "cpu") -> Any:
            return original(device=requests.device(device, "torch.Generator('cuda')"))

    torch.Generator = Kind(
        "Generator", (original,), {"__module__": original.__module__, "__doc__": original.__doc__, "__slots__": ()}
    )


def _distributed(torch: Any, requests: Requests) -> None:
    from torch.distributed import distributed_c10d
    from torch.nn.parallel import DistributedDataParallel

    def without_nccl(original: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            # The backend is the first argument of init_process_group, a later one of new_group.
            args = tuple(_backend(arg, requests) for arg in args)
            kwargs = {key: _backend(value, requests) for key, value in kwargs.items()}
            if names_gpu(kwargs.get("device_id")):
                del kwargs["device_id"]
            return original(*args, **kwargs)

        return wrapper

    def names_gpu(device: Any) -> bool:
        return device is not None and requests.device(device, "init_process_group(device_id='cuda')") == "cpu"

    def barrier(original: Any) -> Any:
        return lambda *args, device_ids=None, **kwargs: original(*args, **kwargs)

    def init(original: Any) -> Any:
        def construct(
            self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *args: Any, **kwargs: Any
        ) -> None:
            if device_ids is not None or output_device is not None:
                requests.note("DistributedDataParallel(device_ids=...)")
            original(self, module, None, None, *args, **kwargs)

        return construct

    for name, make in (("init_process_group", without_nccl), ("new_group", without_nccl), ("barrier", barrier)):
        replace(distributed_c10d, name, make)
        setattr(torch.distributed, name, getattr(distributed_c10d, name))
    replace(DistributedDataParallel, "__init__", init)
    # Needs a GPU in training; BatchNorm takes its place, which normalizes over one process instead of over all.
    synchronized, name = torch.nn.SyncBatchNorm, "convert_sync_batchnorm"
    replace(
        synchronized, name, _instead(requests, f"SyncBatchNorm.{name}()", lambda module, process_group=None: module)
    )
    synchronized.convert_sync_batchnorm = staticmethod(synchronized.convert_sync_batchnorm)


def _backend(value: Any, requests: Requests) -> Any:
    if isinstance(value, str) and (value == "nccl" or "cuda:nccl" in value):
        requests.note("the process group's backend 'nccl'")
        return "gloo"
    return value
