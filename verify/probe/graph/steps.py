"""Sees every step of every optimizer, and tells when enough has been seen."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..values.tensors import watchable

#: Backwards at one line without any step after which waiting is pointless: the scaler of AMP skips all steps, a custom
#: optimizer is none of torch's. ``autograd.grad`` is called far more often within one step (jacobians, inner loops).
_BACKWARDS = 16
_GRADS = 100


class Steps:
    """Calls ``after(optimizer, index, call, frame)`` after each optimizer step; ``remove`` undoes ``install``.

    ``index`` counts optimizers in the order of their first steps, ``call`` the steps of this one from 1. ``before``
    is called with the same ``(optimizer, index, call)`` when the step begins. Neither may raise.
    """

    def __init__(
        self,
        after: Callable[[Any, int, int, FrameType | None], None],
        before: Callable[[Any, int, int], None] | None = None,
    ) -> None:
        self._after = after
        self._before = before
        self._own: Callable[[], bool] = lambda: False
        self._seen: list[weakref.ref[Any]] = []
        self._counts: list[int] = []
        self._handles: list[Any] = []
        self.pid = os.getpid()

    @property
    def total(self) -> int:
        """Steps of all optimizers together."""
        return sum(self._counts)

    def install(self) -> None:
        """Needs an imported torch; does nothing the second time."""
        if self._handles:
            return
        from torch.optim import optimizer

        self._own = watchable()
        self._handles = [optimizer.register_optimizer_step_post_hook(self._stepped)]
        if self._before is not None:
            self._handles.append(optimizer.register_optimizer_step_pre_hook(self._begun))

    def remove(self) -> None:
        """Leave torch as it was."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def restart(self) -> None:
        """Forget the steps so far: they were another process's."""
        self._seen = []
        self._counts = []

    def enough(self, wanted: int) -> bool:
        """Whether every living optimizer that ever stepped made ``wanted`` steps, or one of them five times as many.

        Ten times as many by all together also do: some scripts make a new optimizer every epoch.
        """
        living = [self._counts[i] for i in range(len(self._seen)) if self._counts[i] and self._seen[i]() is not None]
        return bool(living) and (min(living) >= wanted or max(living) >= 5 * wanted or sum(self._counts) >= 10 * wanted)

    def _begun(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if os.getpid() == self.pid and self._own() and self._before is not None:
            index = self._index(optimizer)
            self._before(optimizer, index, self._counts[index] + 1)

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if os.getpid() != self.pid or not self._own():
            return
        from sys import _getframe

        index = self._index(optimizer)
        self._counts[index] += 1
        self._after(optimizer, index, self._counts[index], _getframe(1))

    def _index(self, optimizer: Any) -> int:
        for index in range(len(self._seen)):
            if self._seen[index]() is optimizer:
                return index
        self._seen.append(weakref.ref(optimizer))
        self._counts.append(0)
        return len(self._seen) - 1

    def stepped(self, optimizer: Any) -> bool:
        """Whether ``optimizer`` ever made a step."""
        return any(self._counts[i] and self._seen[i]() is optimizer for i in range(len(self._seen)))


class Optimizers:
    """Knows the optimizers of this process from the moment that they are made, also those that never step."""

    def __init__(self) -> None:
        self._made: list[weakref.ref[Any]] = []

    def install(self) -> None:
        """Needs an imported torch."""
        import functools

        from torch.optim import Optimizer

        original = Optimizer.__init__
        made = self._made

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            original(self, *args, **kwargs)
            made.append(weakref.ref(self))

        Optimizer.__init__ = __init__  # type: ignore[method-assign]

    def living(self) -> list[tuple[int, Any]]:
        """(number in the order in which they were made, optimizer)."""
        found = [(number, self._made[number]()) for number in range(len(self._made))]
        return [(number, optimizer) for number, optimizer in found if optimizer is not None]


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
