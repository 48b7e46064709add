"""Keeps torch.compile from tracing what the probe does when it is called between compiled graphs, and tells of the
lines that it takes into graphs.

The probe's own functions are left out for good, and while they work nothing that they call is looked at. None of this
imports torch._dynamo, which takes a second.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from . import hooks

_NOTHING = object()


def pause() -> Any:
    """Stop torch's frame evaluation in this thread; what :func:`resume` needs to go on."""
    frames = sys.modules.get("torch._C._dynamo.eval_frame")
    return _NOTHING if frames is None else frames.set_eval_frame(None)


def resume(paused: Any) -> None:
    """Undo :func:`pause`."""
    if paused is not _NOTHING:
        sys.modules["torch._C._dynamo.eval_frame"].set_eval_frame(paused)


def hide(package: str) -> None:
    """Tell torch's frame evaluation to run all code of ``package`` as it stands."""
    import torch

    frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if frames is None:
        return
    skip = getattr(frames, "skip_code", None)
    if skip is None:
        action = frames._FrameAction
        # What is called from there keeps being compiled: a backward calls the user's own hooks and Functions.
        strategy = frames._FrameExecStrategy(action.SKIP, action.DEFAULT)

        def skip(code: CodeType) -> None:
            frames.set_code_exec_strategy(code, strategy)

    for code in _codes(package):
        skip(code)


def when_taken(tell: Callable[[str, int], None]) -> None:
    """Call ``tell`` with the file and the number of each line that torch.compile takes into a graph.

    They run with the graph, where no trace function sees them. What a graph holds apart, such as the sides of
    ``torch.cond``, may never run and is not told.
    """
    name = "torch._dynamo.symbolic_convert"

    def imported() -> None:
        translator = sys.modules[name].InstructionTranslatorBase
        starts = getattr(translator, "starts_line", None)
        if starts is None:
            # Old versions of torch have no such place.
            return

        def starts_line(self: Any, lineno: int, *rest: Any, **more: Any) -> Any:
            tracer = getattr(getattr(self, "output", None), "current_tracer", None)
            if getattr(tracer, "parent", tracer) is None and tracer is not None:
                tell(self.f_code.co_filename, lineno)
            return starts(self, lineno, *rest, **more)

        translator.starts_line = starts_line

    hooks.when_imported(name, imported)


def _codes(package: str) -> Iterator[CodeType]:
    done: set[CodeType] = set()
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(package + "."):
            for value in list(vars(module).values()):
                yield from _codes_of(value, name, done)


def _codes_of(value: Any, module: str, done: set[CodeType]) -> Iterator[CodeType]:
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, FunctionType):
        value = value.__code__
    if isinstance(value, CodeType):
        if value not in done:
            done.add(value)
            yield value
            for inner in value.co_consts:
                yield from _codes_of(inner, module, done)
    elif isinstance(value, type) and value.__module__ == module:
        for member in list(vars(value).values()):
            yield from _codes_of(member, module, done)
