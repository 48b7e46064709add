"""Spares a program that compiles nothing the import of torch._dynamo, which takes as long as that of torch itself.

Optimizers import it to tell the compiler to leave them alone. Here they do without until somebody else imports it; from
then on everything is as torch made it.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

from . import hooks

_NAME = "torch._dynamo"


def put_off() -> None:
    """Let torch's own functions do without torch._dynamo; to be called before torch is imported."""
    if "torch" not in sys.modules and _NAME not in hooks.waiting():
        hooks.when_imported("torch._compile", _disable_later)
        hooks.when_imported("torch.optim.optimizer", _tell_nobody)


def _disable_later() -> None:
    """While torch is imported, what it keeps from being compiled remembers itself as the function not to compile."""
    module: Any = sys.modules["torch._compile"]
    disable = module._disable_dynamo
    kept: list[Any] = []

    def _disable_dynamo(fn: Callable[..., Any] | None = None, recursive: bool = True) -> Callable[..., Any]:
        if fn is None:
            return functools.partial(_disable_dynamo, recursive=recursive)
        made: Callable[..., Any] = disable(fn, recursive)
        # The wrapper asks for it before it imports torch._dynamo to have it made.
        fn.__dynamo_disable = fn  # type: ignore[attr-defined]
        kept.append(fn)
        return made

    def imported() -> None:
        sys.modules["torch"]._disable_dynamo = module._disable_dynamo = disable  # type: ignore[attr-defined]

    def compiles() -> None:
        for function in kept:
            del function.__dynamo_disable

    module._disable_dynamo = _disable_dynamo
    hooks.when_imported("torch", imported)
    hooks.when_imported(_NAME, compiles)


def _tell_nobody() -> None:
    """What optimizers wrap their steps in imports torch._dynamo to tell it of a break: functions that are made in that
    module from now on get one that drops what it is told."""
    module: Any = sys.modules["torch.optim.optimizer"]
    module.__builtins__ = {**vars(builtins), "__import__": _import}


def _import(name: str, *args: Any, **more: Any) -> Any:
    if name == _NAME and name not in sys.modules and not any(args[2:3]):
        return _Torch()
    return builtins.__import__(name, *args, **more)


class _Torch:
    """The torch package, with a torch._dynamo that is not imported."""

    @property
    def _dynamo(self) -> Any:
        return sys.modules.get(_NAME) or _Dynamo()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.modules["torch"], name)


class _Dynamo:
    def graph_break(self, *_: Any, **__: Any) -> None:
        """Nothing is compiled that could be interrupted."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(_NAME), name)
