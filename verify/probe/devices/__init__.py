"""Where the script computes: on the GPU that is there, or on the CPU although it says ``.cuda()``.

Three cases, by ``config["device"]``:

* ``cpu``, or ``auto`` on a machine without a GPU: requests for CUDA are answered by the CPU (:mod:`.mapping` for
  tensors, modules, files and process groups, :mod:`.absent` for the functions of ``torch.cuda``), each kind recorded
  once. ``torch.cuda.is_available()`` stays False and ``torch.device("cuda")`` stays what it is: it is a type of C++
  that cannot be subclassed, scripts print, compare and pickle it, and they also say plain strings; so nothing happens
  where a device is named, only where one is used. The script runs as if it had said ``cpu`` there: a tensor that is
  moved to the device it is on is itself and no copy. No mode is entered: a TorchFunctionMode would switch fast paths
  off and so change numerics. (With ``cpu`` on a machine with a GPU, the runner has hidden it by CUDA_VISIBLE_DEVICES.)
* ``cuda``, or ``auto`` with a GPU: nothing is mapped, and a memory limit is set as soon as CUDA is initialized.

* ``cpu`` with ``config["doctor"]["devices"]``: the same, and tensors remember where the script has put them; see
  :mod:`.labels`.

With ``config["deterministic"]``, both run torch's deterministic algorithms; see :mod:`.settings`.
"""

from __future__ import annotations

from typing import Any

from ..guarding.guard import Write
from . import absent, mapping, settings
from .labels import Labels
from .requests import Requests


def install(config: dict[str, Any], write: Write) -> None:
    """Prepare torch, which must have been imported just now; writes ``device`` and ``note`` events.

    Of ``config`` it reads ``device`` ("auto", "cpu" or "cuda"), ``deterministic`` and ``memory_limit`` (bytes of CUDA
    memory a process, or None).
    """
    if config.get("deterministic"):
        settings.deterministic(write)
    if maps(config):
        labels = None
        if (config.get("doctor") or {}).get("devices"):
            labels = Labels()
            labels.install()
        requests = Requests(write, labels)
        mapping.install(requests)
        absent.install(requests)
    elif config.get("memory_limit"):
        settings.limit_memory(config["memory_limit"])


def maps(config: dict[str, Any]) -> bool:
    """Whether requests for CUDA are answered by the CPU."""
    import torch

    device = config.get("device", "auto")
    # device_count() asks NVML and, unlike is_available(), leaves no CUDA context that a forked worker would inherit.
    return device == "cpu" or (device == "auto" and torch.cuda.device_count() == 0)
