"""Settings of torch that make two runs comparable, and a ceiling for CUDA memory."""

from __future__ import annotations

import re
import sys
import warnings
from typing import Any

from ..guarding.guard import Write
from ..guarding.hooks import when_imported

_COMPILER = "torch._inductor.config"
#: What torch warns of where it was asked for deterministic kernels and has none (at::alertNotDeterministic).
_NONE_HERE = re.compile(r"(\S+) does not have a deterministic implementation|.*non-deterministic algorithm")


def deterministic(write: Write) -> None:
    """Let torch choose deterministic kernels, warning where there is none (CUBLAS_WORKSPACE_CONFIG is the runner's).

    Memory that ``torch.empty`` returns is not filled with NaN, as torch then would by default: a script would compute
    something else than it does outside. ``torch.backends.cudnn.benchmark`` is held at False, whatever the script sets:
    which kernel a benchmark picks differs from run to run; the first attempt is written as a ``note``. Torch's warning
    of an operation becomes an event, and is not shown: the script did not ask for it.
    """
    import torch

    # torch's own function imports the compiler, to tell it too; that can wait until the program does.
    torch._C._set_deterministic_algorithms(True, warn_only=True)
    when_imported(_COMPILER, _compile_deterministically)
    if hasattr(torch.utils, "deterministic"):
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    _tell_unrepeatable(write)
    torch.backends.cudnn.benchmark = False
    _hold_benchmark(type(torch.backends.cudnn), write)


def _compile_deterministically() -> None:
    config: Any = sys.modules[_COMPILER]
    if hasattr(config, "deterministic"):
        config.deterministic = True


def _tell_unrepeatable(write: Write) -> None:
    shown, told = warnings.showwarning, set[str]()

    def show(message: Any, *args: Any, **kwargs: Any) -> None:
        found = _NONE_HERE.match(str(message))
        if found is None:
            shown(message, *args, **kwargs)
            return
        what = found[1] or found[0]
        if what not in told:
            told.add(what)
            write({"event": "unrepeatable", "what": what})

    warnings.filterwarnings("always", message=_NONE_HERE.pattern)
    warnings.showwarning = show


def _hold_benchmark(cudnn: Any, write: Write) -> None:
    import torch
    from torch.backends import ContextProp

    noted: list[bool] = []

    def ignore(value: Any) -> None:
        if value and not noted:
            noted.append(True)
            write(
                {"event": "note", "text": "torch.backends.cudnn.benchmark = True was not obeyed: it is not repeatable"}
            )

    cudnn.benchmark = ContextProp(torch._C._get_cudnn_benchmark, ignore)


def limit_memory(limit: int) -> None:
    """Let every card of this process give at most ``limit`` bytes; more is torch's out-of-memory error.

    Set once CUDA is initialized, so that a script that never uses it makes no context.
    """
    import torch

    def set_fraction() -> None:
        for index in range(torch.cuda.device_count()):
            total = torch.cuda.get_device_properties(index).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total), index)

    torch.cuda._lazy_call(set_fraction)
