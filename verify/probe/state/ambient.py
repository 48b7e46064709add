"""What a program sets for its whole process: of most of it one short run on one device shows nothing."""

from __future__ import annotations

import functools
import gc
import logging
import operator
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from ..values.plain import text_of

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM")
#: What the runner, Python and launchers set themselves.
_NOT_HIS = ("CODEMOD_", "PYTHON", "_", "LC_CTYPE", "KMP_", "MASTER_", "TORCHELASTIC_")
_CALLS = (
    *("get_default_dtype", "get_float32_matmul_precision", "are_deterministic_algorithms_enabled"),
    *("is_anomaly_enabled", "is_autocast_cache_enabled", "get_default_device", "is_grad_enabled"),
)
_BACKENDS = (
    *("cudnn.enabled", "cudnn.benchmark", "cudnn.deterministic", "cudnn.allow_tf32", "mkldnn.enabled"),
    *("cuda.matmul.allow_tf32", "cuda.matmul.allow_fp16_reduced_precision_reduction"),
    *("cuda.flash_sdp_enabled", "cuda.mem_efficient_sdp_enabled", "cuda.math_sdp_enabled"),
)
_THREADS = ("torch.set_num_threads", "torch.set_num_interop_threads")
#: The numbers of threads that the program asked for: every run has one in any case.
_asked: dict[str, str] = {}


def install() -> None:
    """Note which numbers of threads are asked for. Call once torch has been imported."""
    import torch

    for name in _THREADS:
        _note(torch, name.partition(".")[2])


def _note(torch: Any, name: str) -> None:
    original = getattr(torch, name)

    @functools.wraps(original)
    def noted(number: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(number, *args, **kwargs)
        _asked[f"torch.{name}"] = str(number)
        return result

    setattr(torch, name, noted)


def held() -> dict[str, Any]:
    """The settings as they are now, numbers and texts by their names."""
    found: dict[str, Any] = {**dict.fromkeys(_THREADS, "never called"), **_asked}
    with warnings.catch_warnings():
        # Some are old names, and who asks for them is told so.
        warnings.simplefilter("ignore")
        for name, value in (*_of_torch(), *_of_python()):
            if isinstance(value, (bool, int, float)):
                found[name] = float(value)
            elif value is not None:
                found[name] = text_of(str(value))
    return found


def _of_torch() -> Iterator[tuple[str, Any]]:
    import torch

    for name in _CALLS:
        function = getattr(torch, name, None)
        if function is not None:
            yield f"torch.{name}()", _told(function)
    for name in _BACKENDS:
        yield f"torch.backends.{name}", _told(operator.attrgetter(name), torch.backends)


def _told(function: Any, *args: Any) -> Any:
    try:
        value = function(*args)
        return value() if callable(value) else value
    except Exception:
        # Builds of torch that know the name and not the thing.
        return None


def _of_python() -> Iterator[tuple[str, Any]]:
    yield "os.getcwd()", _told(os.getcwd)
    names = [name for name in sorted(os.environ) if not name.startswith(_NOT_HIS)]
    yield "os.environ", ", ".join(names)
    yield from ((f"os.environ[{name!r}]", os.environ[name]) for name in names)
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        handler = None if number is None else signal.getsignal(number)
        yield f"the handler of {name}", getattr(handler, "__qualname__", None) or str(handler)
    yield "sys.getrecursionlimit()", sys.getrecursionlimit()
    yield "the umask", _told(_umask)
    yield "logging.root.manager.disable", logging.root.manager.disable
    yield "gc.isenabled()", gc.isenabled()
    yield "gc.get_threshold()", str(gc.get_threshold())
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        yield "numpy.geterr()", _told(numpy.geterr)


def _umask() -> str | None:
    """Which modes new files do not get; only who sets it is told by Python."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
        return next((line.split()[1] for line in lines if line.startswith("Umask:")), None)
