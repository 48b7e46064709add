"""The model of torch as a whole: the second of the engine's three parts."""

from __future__ import annotations

from codemods.graph.torch.storing import Stores


class Torch(Stores):
    """What calls of torch do to tensors, modules and optimizers, recorded in a :class:`~codemods.graph.run.run.Run`."""
