"""The functions of ``torch.cuda`` on a machine without a GPU: those that would raise are answered.

``is_available``, ``device_count``, ``is_initialized``, seeding and the counters of memory answer by themselves, and
truly: False, 0 and nothing allocated.
"""

from __future__ import annotations

import os
import sys
import time
import types
from typing import Any

from .mapping import replace
from .requests import Requests

#: Functions that have nothing to do here.
_NOTHING = (
    "synchronize",
    "set_device",
    "ipc_collect",
    "init",
    "set_stream",
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_accumulated_memory_stats",
    "set_per_process_memory_fraction",
    "set_sync_debug_mode",
)
_PROFILING = ("range_push", "range_pop", "mark", "range_start", "range_end")


def install(requests: Requests) -> None:
    """Patch ``torch.cuda``; ``requests`` records the calls."""
    import torch

    cuda = torch.cuda
    answers: dict[str, Any] = dict.fromkeys(_NOTHING, _nothing)
    answers.update(
        current_device=lambda: 0,
        get_device_name=lambda device=None: "cpu",
        # The least capability: what needs a newer card is then not chosen.
        get_device_capability=lambda device=None: (0, 0),
        get_device_properties=lambda device=None: types.SimpleNamespace(
            name="cpu", major=0, minor=0, total_memory=_memory(), multi_processor_count=1, is_integrated=0
        ),
        can_device_access_peer=lambda device, peer_device: False,
        mem_get_info=lambda device=None: (_memory(), _memory()),
        memory_summary=lambda device=None, abbreviated=False: "",
        utilization=lambda device=None: 0,
        current_stream=lambda device=None: cuda.Stream(),
        default_stream=lambda device=None: cuda.Stream(),
        get_rng_state=lambda device="cuda": torch.get_rng_state(),
        initial_seed=torch.initial_seed,
    )
    for name, answer in answers.items():
        _answer(cuda, name, answer, requests)
    for module in ("memory", "random"):
        for name in answers:
            if hasattr(getattr(cuda, module), name):
                setattr(getattr(cuda, module), name, getattr(cuda, name))
    for name in _PROFILING:
        _answer(cuda.nvtx, name, _nothing, requests)
    _answer(cuda.memory, "_record_memory_history", _nothing, requests)
    _classes(cuda, requests)
    _tensor_types(torch, requests)
    _mixed_precision(torch, requests)


def _nothing(*args: Any, **kwargs: Any) -> Any:
    return None


def _answer(owner: Any, name: str, answer: Any, requests: Requests) -> None:
    spelled = f"{owner.__name__}.{name}()"

    def make(original: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            by_torch = sys._getframe(1).f_globals.get("__name__", "").startswith("torch.")
            # torch's compiler asks too what card there is, and goes by the exception.
            if by_torch and name.startswith("get_device"):
                return original(*args, **kwargs)
            if not by_torch:
                requests.note(spelled)
            return answer(*args, **kwargs)

        return wrapper

    replace(owner, name, make)


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0


def _classes(cuda: Any, requests: Requests) -> None:
    """Devices and streams as contexts, streams and events."""

    class Context:
        """A device or a stream as a context: nothing is switched."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            requests.note(f"torch.cuda.{type(self).__name__}")

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: Any) -> Any:
            return False

    class Stream(Context):
        """The CPU's one order of execution: whatever was asked for is already done."""

        device_index = 0
        cuda_stream = 0
        wait_stream = wait_event = synchronize = _nothing

        def query(self) -> bool:
            return True

        def record_event(self, event: Any = None) -> Any:
            event = cuda.Event() if event is None else event
            event.record(self)
            return event

    class Event:
        """A point in time, as the host's clock has it."""

        wait = synchronize = _nothing

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            requests.note("torch.cuda.Event")
            self._time: Any = None

        def record(self, stream: Any = None) -> None:
            self._time = time.perf_counter()

        def query(self) -> bool:
            return True

        def elapsed_time(self, end_event: Any) -> float:
            """Milliseconds between two recorded events; RuntimeError where one was not recorded."""
            if self._time is None or end_event._time is None:
                raise RuntimeError("Both events must be recorded before calculating elapsed time.")
            return float(end_event._time - self._time) * 1000.0

    def context(name: str) -> Any:
        return type(name, (Context,), {"__module__": "torch.cuda"})

    for name in ("device", "device_of", "StreamContext"):
        setattr(cuda, name, context(name))
    cuda.nvtx.range = context("range")
    for kind in (Stream, Event):
        kind.__module__, kind.__qualname__ = "torch.cuda", kind.__name__
        setattr(cuda, kind.__name__, kind)
    replace(cuda, "stream", lambda _original: lambda stream=None: cuda.StreamContext(stream))


def _tensor_types(torch: Any, requests: Requests) -> None:
    cuda = torch.cuda
    names = [name for name in vars(cuda) if name.endswith("Tensor") and hasattr(torch, name)]
    # Not in the module's dictionary, so that asking for one can be recorded.
    for name in names:
        delattr(cuda, name)
    before = vars(cuda).get("__getattr__")

    def find(name: str) -> Any:
        if name in names:
            requests.note(f"torch.cuda.{name}")
            return getattr(torch, name)
        if before is not None:
            return before(name)
        raise AttributeError(f"module 'torch.cuda' has no attribute {name!r}")

    cuda.__getattr__ = find


def _mixed_precision(torch: Any, requests: Requests) -> None:
    """Note what torch switches off by itself, with a warning, where there is no CUDA."""

    def noted(what: str, device: str) -> Any:
        """Of a class whose first argument is called ``device``; empty for one that is of CUDA alone."""

        def make(original: Any) -> Any:
            def construct(self: Any, *args: Any, **kwargs: Any) -> None:
                if not device or (args[0] if args else kwargs.get(device, "cuda")) == "cuda":
                    requests.note(f"{what} (switched off)")
                original(self, *args, **kwargs)

            return construct

        return make

    replace(torch.autocast, "__init__", noted("autocast on 'cuda'", "device_type"))
    replace(torch.cuda.amp.GradScaler, "__init__", noted("GradScaler", ""))
    if hasattr(torch.amp, "GradScaler"):
        replace(torch.amp.GradScaler, "__init__", noted("GradScaler", "device"))
