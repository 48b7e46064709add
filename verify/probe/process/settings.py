"""What makes a run repeatable and concerns neither a device nor a generator: threads, and what libraries read early."""

from __future__ import annotations

import os
from typing import Any


def before_torch(config: dict[str, Any]) -> None:
    """What libraries read from the environment when they are loaded."""
    if config.get("deterministic"):
        # cuBLAS is deterministic only with a workspace of a fixed size.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def after_torch(config: dict[str, Any]) -> None:
    """Set the number of threads, on which sums depend bit for bit; needs an imported torch."""
    import torch

    if config.get("threads"):
        torch.set_num_threads(int(config["threads"]))
