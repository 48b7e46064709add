"""The dynamic half: runs original and rewritten code briefly and holds each rewrite to its promise.

The static half, :mod:`codemods`, never imports it. For people's own tests and notebooks it offers :func:`watch`.
Importing this package imports nothing: torch comes with the first watch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verify.diagnosis.attached import watch as watch
    from verify.live.watching import TooFewSteps as TooFewSteps
    from verify.live.watching import Watch as Watch

__all__ = ["TooFewSteps", "Watch", "watch"]


def __getattr__(name: str) -> Any:
    if name == "watch":
        from verify.diagnosis import attached

        return attached.watch
    if name in __all__:
        from verify.live import watching

        return getattr(watching, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
