"""State dictionaries that are not there: who loads one keeps the state that it was made with.

Only for runs of a script that has died for the lack of one. What ``torch.load`` returns then can be loaded into
modules, optimizers, schedulers and scalers, alone or by a key; its numbers are 0, as at a fresh start. Whatever else is
asked of it raises the error that there was.
"""

from __future__ import annotations

import functools
import operator
import os
import sys
from collections.abc import Callable
from typing import Any

from ..guarding.guard import Write

_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


class Absent:
    """What should have been read of ``source``; ``error`` is why it could not be."""

    def __init__(self, error: BaseException, source: str) -> None:
        self._error = error
        self._source = source

    def __getitem__(self, key: object) -> Absent:
        return Absent(self._error, f"{self._source}[{key!r}]")

    def get(self, key: object, default: object = None) -> Absent:
        """Something that is not there either."""
        return self[key]

    def __contains__(self, key: object) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._error

    def __iter__(self) -> Any:
        raise self._error

    def __len__(self) -> int:
        raise self._error

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise self._error

    def __index__(self) -> int:
        return 0

    def __float__(self) -> float:
        return 0.0

    def __format__(self, spec: str) -> str:
        return format(0, spec)

    def __repr__(self) -> str:
        return "0"

    __int__ = __index__
    __hash__ = None  # type: ignore[assignment]


def _as_zero(name: str) -> None:
    apply = getattr(operator, name)
    if name in _COMPARISONS:
        setattr(Absent, f"__{name}__", lambda self, other: apply(0, other))
        return
    setattr(Absent, f"__{name}__", lambda self, other: apply(0, other))
    setattr(Absent, f"__r{name}__", lambda self, other: apply(other, 0))


for _name in (*_ARITHMETIC, *_COMPARISONS):
    _as_zero(_name)


def patch(write: Write, see: Callable[..., None] | None = None) -> None:
    """Let torch do without; call it once torch has been imported. Writes ``standin`` events; ``see`` is shown what is
    asked for and who loads it, because neither leaves a trace in what the program computes."""
    import torch
    from torch.optim import lr_scheduler

    told: set[str] = set()

    def absent(error: BaseException, what: str) -> Absent:
        if what not in told:
            told.add(what)
            print(f"codemod: {what}: not there; what loads it keeps the state that it was made with", file=sys.stderr)
            why = "not there: what loads it keeps the state that it was made with, its numbers are 0"
            write({"event": "standin", "what": what, "why": why, "shape": None})
        if see is not None:
            see("torch.load of a state that is not there", (what,))
        return Absent(error, what)

    def reading(original: Any, errors: tuple[type[BaseException], ...]) -> Any:
        @functools.wraps(original)
        def read(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except errors as error:
                source = args[0] if args else next(iter(kwargs.values()), None)
                if not isinstance(source, (str, os.PathLike)):
                    raise
                return absent(error, os.fspath(source))

        return read

    torch.load = reading(torch.load, (FileNotFoundError,))
    torch.hub.load_state_dict_from_url = reading(torch.hub.load_state_dict_from_url, (OSError,))
    keys = torch.nn.modules.module._IncompatibleKeys([], [])
    _let_keep(torch.nn.Module, keys, see)
    _let_keep(torch.optim.Optimizer, None, see)
    for kind in vars(lr_scheduler).values():
        if isinstance(kind, type) and "load_state_dict" in vars(kind):
            _let_keep(kind, None, see)
    scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
    _let_keep(scaler, None, see)


def _let_keep(kind: Any, answer: object, see: Callable[..., None] | None) -> None:
    original = kind.load_state_dict

    @functools.wraps(original)
    def load_state_dict(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(state_dict, Absent):
            return original(self, state_dict, *args, **kwargs)
        if see is not None:
            own = list(self.parameters()) if hasattr(self, "parameters") else []
            see("load_state_dict of a state that is not there", (type(self).__name__, state_dict._source, own))
        return answer

    kind.load_state_dict = load_state_dict
