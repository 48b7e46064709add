"""Transforms of torchvision's that do not fit images that are made up: they are left out.

An image that nobody has may have other channels than those that a program was written for, and older releases took
transforms that the installed one refuses (means of three channels for a gray image).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from ..guarding.guard import Write


def patch(write: Write, see: Callable[..., None] | None = None) -> None:
    """Have ``Compose`` hand on an image as it was where a transform raises. Writes ``standin`` events; ``see`` is shown
    what such a transform holds, because that leaves no trace in the image."""
    import torch

    module = sys.modules["torchvision.transforms"]
    original = module.Compose.__call__
    told: set[str] = set()

    @functools.wraps(original)
    def call(self: Any, img: Any) -> Any:
        for transform in self.transforms:
            try:
                img = transform(img)
            except Exception as error:
                # What the program wrote itself raises what it raises. In a worker nobody would see what is left out.
                own = not type(transform).__module__.startswith("torchvision.") or isinstance(transform, module.Lambda)
                if own or torch.utils.data.get_worker_info() is not None:
                    raise
                name = type(transform).__name__
                if see is not None:
                    see(f"transforms.{name}", (repr(transform), vars(transform)))
                if name not in told:
                    told.add(name)
                    first = (str(error).strip().splitlines() or [""])[0]
                    why = f"left out, it does not fit the made-up images: {type(error).__name__}: {first}"
                    write({"event": "standin", "what": f"transforms.{name}", "why": why[:200], "shape": None})
        return img

    module.Compose.__call__ = call
