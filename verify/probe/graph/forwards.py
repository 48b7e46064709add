"""Wasted forwards: calls of a root module with gradients on, whose graph no backward ever uses.

A root module is one that is not called inside another module's forward. Its outputs' nodes carry a token that dies with
them; a backward that walks over such a node (nodes.py) marks the token as used. A forward may also be made for what a
hook takes from its middle: as long as nothing is used of a site, all nodes of its first forwards carry their token.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ..values.tensors import watchable
from .nodes import FORWARD, behind

_DEEPEST = 4
_MOST_OUTPUTS = 64
#: How many forwards of a site are looked at in the middle, and how many nodes of each.
_WHOLE = 3
_MOST_INSIDE = 20_000
#: Sequence numbers from here on say nothing about the order of nodes.
_NO_ORDER = 1 << 62


class _Row:
    """What is known of the forwards at one site."""

    __slots__ = ("calls", "peak", "site", "unused", "used")

    def __init__(self, site: Any) -> None:
        self.site = site
        self.calls = self.used = self.unused = self.peak = 0


class _Forward:
    """One forward, as long as its graph is alive."""

    __slots__ = ("_row", "_used")

    def __init__(self, row: _Row) -> None:
        self._row = row
        self._used = False
        row.calls += 1
        row.unused += 1
        row.peak = max(row.peak, row.unused)

    def use(self) -> None:
        if not self._used:
            self._used = True
            self._row.used += 1
            self._row.unused -= 1

    def __del__(self) -> None:
        if not self._used:
            self._row.unused -= 1


class _Depth(threading.local):
    """How deep this thread is in module calls."""

    depth = 0
    #: The exception that was being handled when the outermost module was called.
    handled: BaseException | None = None
    #: The number that the next node gets when the outermost module is called.
    began = 0


class Forwards:
    """Watches module calls between ``install`` and ``remove``.

    ``site`` turns a frame into the site that a forward is booked on; ``busy`` tells that a backward runs, whose
    recomputed forwards (checkpoints) are not the script's own; ``error`` gets what went wrong in here. ``called`` is
    told the frame of every call, those without gradients included; ``returned`` is given the module and its output,
    the site, and how many of the calls there a backward has used; ``raised`` the frame and what came out of a call.
    """

    def __init__(
        self,
        site: Callable[[FrameType], Any],
        busy: Callable[[], bool],
        error: Callable[[Exception], None],
        called: Callable[[FrameType], None] | None = None,
        returned: Callable[[Any, Any, Any, int], None] | None = None,
        raised: Callable[[FrameType, BaseException], None] | None = None,
    ) -> None:
        self._site = site
        self._busy = busy
        self._error = error
        self._called = called
        self._returned = returned
        self._raised = raised
        self._always = called is not None or returned is not None
        self._rows: dict[Any, _Row] = {}
        self._thread = _Depth()
        self._handles: list[Any] = []
        self._undo: Callable[[], None] | None = None
        self._compiling: Callable[[], bool] = lambda: False
        self._own: Callable[[], bool] = lambda: False
        self._grad: Callable[[], bool] = lambda: False
        self._sequence: Callable[[], int] | None = None
        self.pid = os.getpid()

    def install(self) -> None:
        """Needs an imported torch; does nothing the second time."""
        if self._handles:
            return
        import torch
        from torch.nn.modules import module

        self._own = watchable()
        self._grad = torch.is_grad_enabled
        self._sequence = getattr(torch.autograd, "_get_sequence_nr", None)
        self._compiling = getattr(getattr(torch, "compiler", None), "is_compiling", self._compiling)
        after = module.register_module_forward_hook
        try:
            handle = after(self._leave, always_call=True)
        except TypeError:
            # Before torch 2.1 a forward that raises skips the hook; `rewind` sets that right at the next step.
            handle = after(self._leave)
        self._handles = [module.register_module_forward_pre_hook(self._enter), handle]
        self._hide(module)

    def remove(self) -> None:
        """Leave torch as it was."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _hide(self, module: Any) -> None:
        """Keep torch.compile from warning of hooks that the script does not have."""
        original = getattr(module, "_has_any_global_hook", None)
        if original is None:
            return
        ours = {handle.id for handle in self._handles}
        hooks = [
            value for name, value in vars(module).items() if name.startswith("_global_") and hasattr(value, "keys")
        ]

        def has_any_global_hook() -> bool:
            return any(key not in ours for each in hooks for key in each)

        def undo() -> None:
            module._has_any_global_hook = original

        module._has_any_global_hook = has_any_global_hook
        self._undo = undo

    def rewind(self) -> None:
        """Note that this thread is in no module: optimizers step outside of forwards."""
        self._thread.depth = 0

    def restart(self) -> None:
        """Forget the forwards so far: they were another process's."""
        self._rows = {}

    def sites(self) -> list[dict[str, Any]]:
        """The rows of the forwards event."""
        rows = list(self._rows.values())
        return [{"site": row.site, "calls": row.calls, "used": row.used, "peak": row.peak} for row in rows]

    # torch.compile inlines these two into its graph; with the question first, nothing of them is left there.
    def _enter(self, module: Any, inputs: Any) -> None:
        if self._compiling():
            return
        thread = self._thread
        if thread.depth == 0:
            thread.handled = sys.exc_info()[1]
            if self._sequence is not None:
                thread.began = self._sequence()
        thread.depth += 1

    def _leave(self, module: Any, inputs: Any, output: Any) -> None:
        if self._compiling():
            return
        thread = self._thread
        if thread.depth > 0:
            thread.depth -= 1
        if thread.depth == 0 and (self._always or self._grad()):
            error = sys.exc_info()[1] if output is None else None
            if error is not None and error is not thread.handled:
                self._failed(error)
            else:
                self._finished(module, output)

    def _failed(self, error: BaseException) -> None:
        if self._raised is None or os.getpid() != self.pid or self._busy() or not self._own():
            return
        self._raised(sys._getframe(2), error)

    def _finished(self, module: Any, output: Any) -> None:
        if os.getpid() != self.pid or self._busy() or not self._own():
            return
        from sys import _getframe

        try:
            row: _Row | None = None
            site = self._site(_getframe(2))
            ends = list(_nodes(output)) if self._grad() else []
            if ends:
                row = self._row(site)
                forward = _Forward(row)
                whole = row.used == 0 and row.calls <= _WHOLE and self._sequence is not None
                for node in _inside(ends, self._thread.began) if whole else ends:
                    metadata = node.metadata
                    # One node can be the output of several calls: a Dropout in evaluation returns its input.
                    metadata[FORWARD] = (*metadata.get(FORWARD, ()), forward)
            if self._called is not None:
                self._called(_getframe(2))
            if self._returned is not None:
                self._returned(module, output, site, row.used if row is not None else 0)
        except Exception as error:
            self._error(error)
            self.remove()

    def _row(self, site: Any) -> _Row:
        key: tuple[Any, ...] = () if site is None else tuple(site)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = _Row(site)
        return row


def _nodes(output: Any) -> Iterator[Any]:
    """The graph nodes that made the tensors in ``output``, each once."""
    import torch

    if type(output) is torch.Tensor:
        if output.grad_fn is not None:
            yield output.grad_fn
        return
    found: list[Any] = []
    for tensor in tensors_in(output):
        node = tensor.grad_fn
        if node is not None and not any(node is each for each in found):
            found.append(node)
            yield node


def _inside(ends: list[Any], began: int) -> Iterator[Any]:
    """``ends`` and the nodes before them that were made since ``began`` was the next number, each once; not all of
    very many."""

    def since(node: Any) -> bool:
        return hasattr(node, "_sequence_nr") and began <= node._sequence_nr() < _NO_ORDER

    return itertools.islice(behind(ends, since), _MOST_INSIDE)


def tensors_in(output: Any) -> Iterator[Any]:
    """The tensors in ``output``; deep and long structures are cut off."""
    import torch

    stack = [(output, 0)]
    found = 0
    while stack and found < _MOST_OUTPUTS:
        value, depth = stack.pop()
        if isinstance(value, torch.Tensor):
            found += 1
            yield value
        elif depth < _DEEPEST:
            if isinstance(value, (list, tuple)):
                children: Any = value[:_MOST_OUTPUTS]
            elif isinstance(value, dict):
                children = list(value.values())[:_MOST_OUTPUTS]
            elif hasattr(type(value), "__dataclass_fields__"):
                children = list(vars(value).values()) if hasattr(value, "__dict__") else ()
            else:
                continue
            stack.extend((child, depth + 1) for child in children)
