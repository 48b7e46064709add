"""Sees every step of every optimizer, and tells when enough has been seen."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from .tensors import watchable

#: Backwards at one line without any step after which waiting is pointless: the scaler of AMP skips all steps, a custom
#: optimizer is none of torch's. ``autograd.grad`` is called far more often within one step (jacobians, inner loops).
_BACKWARDS = 16
_GRADS = 100


class Steps:
    """Calls ``after(optimizer, index, call, frame)`` after each optimizer step; ``remove`` undoes ``install``.

    ``index`` counts optimizers in the order of their first steps, ``call`` the steps of this one from 1. ``after`` must
    not raise.
    """

    def __init__(self, after: Callable[[Any, int, int, FrameType | None], None]) -> None:
        self._after = after
        self._own: Callable[[], bool] = lambda: False
        self._seen: list[weakref.ref[Any]] = []
        self._counts: list[int] = []
        self._handle: Any = None
        self.pid = os.getpid()

    @property
    def total(self) -> int:
        """Steps of all optimizers together."""
        return sum(self._counts)

    def install(self) -> None:
        """Needs an imported torch; does nothing the second time."""
        if self._handle is not None:
            return
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._own = watchable()
        self._handle = register_optimizer_step_post_hook(self._stepped)

    def remove(self) -> None:
        """Leave torch as it was."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def restart(self) -> None:
        """Forget the steps so far: they were another process's."""
        self._seen = []
        self._counts = []

    def enough(self, wanted: int) -> bool:
        """Whether every living optimizer that ever stepped made ``wanted`` steps, or one of them five times as many.

        Ten times as many by all together also do: some scripts make a new optimizer every epoch.
        """
        living = [self._counts[i] for i in range(len(self._seen)) if self._seen[i]() is not None]
        return bool(living) and (min(living) >= wanted or max(living) >= 5 * wanted or sum(self._counts) >= 10 * wanted)

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if os.getpid() != self.pid or not self._own():
            return
        from sys import _getframe

        for index in range(len(self._seen)):
            if self._seen[index]() is optimizer:
                break
        else:
            index = len(self._seen)
            self._seen.append(weakref.ref(optimizer))
            self._counts.append(0)
        self._counts[index] += 1
        self._after(optimizer, index, self._counts[index], _getframe(1))


class Calls:
    """Counts backwards per site, the clock of a script that steps by hand."""

    def __init__(self) -> None:
        self._counts: dict[tuple[Any, ...], int] = {}

    def count(self, site: tuple[Any, ...]) -> int:
        """One more at ``site``; its number from 1."""
        self._counts[site] = self._counts.get(site, 0) + 1
        return self._counts[site]

    def enough(self, site: tuple[Any, ...], grad: bool, wanted: int, stepped: bool) -> bool:
        """Whether ``site``, the last one counted, was called often enough; ``grad`` is True for ``autograd.grad``.

        While torch optimizers exist their steps decide, however many backwards they accumulate first.
        """
        calls = self._counts[site]
        if calls >= wanted * (_GRADS if grad else _BACKWARDS):
            return True
        if stepped or grad or calls < wanted or calls % wanted:
            return False
        return not _optimizers()


def _optimizers() -> bool:
    import torch

    return any(issubclass(type(thing), torch.optim.Optimizer) for thing in gc.get_objects())


def parameters(optimizer: Any) -> list[Any]:
    """The tensors that ``optimizer`` changes, in its own order."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
