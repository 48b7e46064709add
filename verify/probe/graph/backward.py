"""The choke point of every backward: ``Tensor.backward``, ``autograd.backward``, ``autograd.grad``, checkpoints.

From torch 2.3 on that is ``torch.autograd.graph._engine_run_backward``, which ``torch.autograd`` imports by name;
before, both functions ask ``Variable._execution_engine`` themselves.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..values.tensors import watchable


class Call:
    """One call into the autograd engine.

    ``outputs`` are the tensors or graph edges that it starts from; ``grad`` is True for ``autograd.grad``, whose
    results go to its caller and not into ``.grad``; ``error`` is the exception that came out of it.
    """

    __slots__ = ("create", "error", "frame", "grad", "notes", "outputs", "retain")

    def __init__(self, frame: FrameType | None, outputs: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        self.frame = frame
        self.outputs = tuple(outputs)
        self.retain = bool(args[1] if len(args) > 1 else kwargs.get("keep_graph", kwargs.get("retain_graph", False)))
        self.create = bool(args[2] if len(args) > 2 else kwargs.get("create_graph", False))
        self.grad = not kwargs.get("accumulate_grad", True)
        self.error: BaseException | None = None
        #: What ``before`` wants ``after`` to know.
        self.notes: Any = None


class Backwards:
    """Calls ``before(call)`` and ``after(call)`` around every backward of the script; ``remove`` undoes ``install``.

    Backwards inside a backward (re-entrant checkpoints) belong to the outer one, and those that are not the script's
    own (see ``values/tensors.py``) or run in a forked process that did not ask are passed on untouched. What torch
    refuses before the engine is asked (a loss that is no number) is told to ``refused(frame, error)``. The callbacks
    must not raise.
    """

    def __init__(
        self,
        before: Callable[[Call], None],
        after: Callable[[Call], None],
        refused: Callable[[FrameType | None, BaseException], None] = lambda _, __: None,
    ) -> None:
        self._before = before
        self._after = after
        self._refused = refused
        self._own: Callable[[], bool] = lambda: False
        self._undo: Callable[[], None] | None = None
        self.running = 0
        self.pid = os.getpid()

    def install(self) -> None:
        """Needs an imported torch; does nothing the second time."""
        if self._undo is not None:
            return
        import torch

        self._own = watchable()
        autograd: Any = torch.autograd
        graph = autograd.graph
        make = getattr(autograd, "_make_grads", None)
        if make is not None:
            autograd._make_grads = self._wrap_make(make)
        if hasattr(graph, "_engine_run_backward"):
            original = graph._engine_run_backward
            patched = self._wrap(original)
            graph._engine_run_backward = patched
            autograd._engine_run_backward = patched

            def undo() -> None:
                # Only what is still ours: torch.compile's tracer puts a wrapper of its own around it for a while.
                if graph._engine_run_backward is patched:
                    graph._engine_run_backward = original
                if autograd._engine_run_backward is patched:
                    autograd._engine_run_backward = original

        else:
            variable = autograd.Variable
            engine = variable._execution_engine
            variable._execution_engine = _Engine(engine, self._wrap(engine.run_backward))

            def undo() -> None:
                variable._execution_engine = engine

        def undo_all() -> None:
            undo()
            if make is not None:
                autograd._make_grads = make

        self._undo = undo_all

    def remove(self) -> None:
        """Leave torch as it was."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _wrap_make(self, original: Callable[..., Any]) -> Callable[..., Any]:
        from sys import _getframe

        @functools.wraps(original)
        def make_grads(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except Exception as error:
                if not self.running and self._undo is not None and os.getpid() == self.pid and self._own():
                    self._refused(_getframe(1), error)
                raise

        return make_grads

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        from sys import _getframe

        @functools.wraps(original)
        def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if self.running or self._undo is None or os.getpid() != self.pid or not self._own():
                return original(outputs, *args, **kwargs)
            call = Call(_getframe(1), outputs, args, kwargs)
            self._before(call)
            self.running += 1
            try:
                return original(outputs, *args, **kwargs)
            except BaseException as error:
                call.error = error
                raise
            finally:
                self.running -= 1
                self._after(call)
                # Else the traceback of an error keeps this frame, and through it the graph, alive.
                del call

        return run_backward


class _Engine:
    """Stands in for torch's engine object, whose methods cannot be replaced; everything else is the engine's own."""

    def __init__(self, engine: Any, run_backward: Callable[..., Any]) -> None:
        self.__dict__.update(_engine=engine, run_backward=run_backward)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._engine, name, value)
