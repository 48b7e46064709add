"""Where a loss loses its graph: a function mode that follows what depends on leaves, for the second run of a diagnosis.

Function modes switch fast paths of torch off, so numbers may differ in their last digits; only lines are read off here.
"""

from __future__ import annotations

import collections
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..lines.sites import Tree

_KEY = "_codemod_flow"
#: Calls by which a value leaves torch.
_LEAVING = frozenset({"item", "tolist", "numpy", "__float__", "__int__", "__array__"})
#: Calls whose results are about the tensor, not made of it.
_ASIDE = frozenset({"grad", "requires_grad", "shape", "device", "dtype", "zeros_like", "ones_like", "empty_like"})
_MOST_CUTS = 6
#: Calls that make a leaf of their argument.
_MAKING = frozenset({"tensor", "as_tensor", "requires_grad_", "from_numpy", "Tensor", "scalar_tensor"})
#: Of these, those that copy, whatever they are told of gradients.
_ANEW = frozenset({"tensor", "Tensor", "scalar_tensor"})
_BORN = "_codemod_born"


class _Flow:
    """What a tensor comes from: ``leaves`` are the watched ones, ``cuts`` the calls that took its graph away, ``born``
    is where it was made of what is no tensor."""

    __slots__ = ("born", "cuts", "leaves")

    def __init__(self, leaves: frozenset[int], cuts: tuple[Any, ...], born: Any = None) -> None:
        self.leaves = leaves
        self.cuts = cuts
        self.born = born


class Flow(TorchFunctionMode):
    """Follows tensors that depend on leaves with gradients; ``watched`` are ids of leaves told apart."""

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._tree = tree
        self.watched: set[int] = set()
        self.used: set[int] = set()
        #: The last calls by which something with a graph left torch: line, call.
        self.left: list[tuple[Any, str]] = []
        #: The line that switched gradients off, while they are off.
        self._off: Any = None
        #: Numbers that lost their graph: a class that wraps one makes a tensor of its own, with the same memory.
        self._numbers: collections.deque[Any] = collections.deque(maxlen=64)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from sys import _getframe

        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name == "__get__":
            name = getattr(getattr(func, "__self__", None), "__name__", name)
        if name == "_set_grad_enabled":
            self._off = None if args[0] else self._tree.site(_getframe(1))
        if name in _MAKING:
            self._make(result, _getframe(1))
        if name not in _ASIDE:
            given = [*args, *(kwargs or {}).values()]
            flow, attached = self._inputs(given)
            # Of a leaf that somebody made anew nothing is lost.
            if flow is not None and any(self._made(tensor) for tensor in _tensors(given)):
                self._outputs(result, flow, attached, name, _getframe(1))
        return result

    def _inputs(self, values: list[Any]) -> tuple[_Flow | None, bool]:
        leaves: frozenset[int] = frozenset()
        cuts: tuple[Any, ...] = ()
        born = None
        found = attached = False
        for tensor in _tensors(values):
            flow = tensor.__dict__.get(_KEY)
            born = tensor.__dict__.get(_BORN, born)
            if flow is not None:
                born = flow.born or born
                leaves |= flow.leaves
                cuts += tuple(cut for cut in flow.cuts if cut not in cuts)
            if id(tensor) in self.watched:
                leaves |= {id(tensor)}
                self.used.add(id(tensor))
            found = found or flow is not None or tensor.requires_grad
            attached = attached or tensor.requires_grad
        return (_Flow(leaves, cuts[:_MOST_CUTS], born) if found else None), attached

    def _outputs(self, result: Any, flow: _Flow, attached: bool, name: str, frame: FrameType) -> None:
        tensors = list(_tensors([result]))
        if not tensors:
            if name in _LEAVING:
                self.left = [*self.left[-3:], (self._tree.site(frame), name)]
            return
        anew = name in _ANEW
        if attached and (anew or not any(tensor.requires_grad for tensor in tensors)):
            reason = name if torch.is_grad_enabled() else "no_grad"
            cut = (self._tree.site(frame), name, reason, flow.leaves, self._off)
            flow = _Flow(flow.leaves, (*flow.cuts, cut)[:_MOST_CUTS], flow.born)
            self._numbers.extend(tensor for tensor in tensors if tensor.numel() == 1)
            if name in _LEAVING:
                self.left = [*self.left[-3:], (cut[0], name)]
        for tensor in tensors:
            if not (tensor.is_leaf and tensor.requires_grad) or name in ("tensor", "as_tensor"):
                tensor.__dict__[_KEY] = flow

    def _made(self, tensor: Any) -> bool:
        known = tensor.__dict__.keys() & {_KEY, _BORN}
        return bool(known) or not tensor.is_leaf or isinstance(tensor, torch.nn.Parameter)

    def _make(self, result: Any, frame: FrameType) -> None:
        for tensor in _tensors([result]):
            tensor.__dict__[_BORN] = self._tree.site(frame)

    def _wrapped(self, tensor: Any) -> _Flow | None:
        """What is known of the number whose memory ``tensor`` has."""
        if tensor.numel() != 1:
            return None
        with torch._C.DisableTorchFunction():
            key = tensor.untyped_storage()._cdata
            found = (each for each in reversed(self._numbers) if each.untyped_storage()._cdata == key)
            return next((each.__dict__.get(_KEY) for each in found), None)

    def event(self, outputs: Any, named: dict[int, str]) -> dict[str, Any]:
        """What is known of the loss ``outputs``; ``named`` are the watched leaves."""
        cuts: list[Any] = []
        born = None
        for tensor in _tensors(list(outputs)):
            flow = tensor.__dict__.get(_KEY) or self._wrapped(tensor)
            born = tensor.__dict__.get(_BORN, born if flow is None else flow.born or born)
            cuts += [] if flow is None else flow.cuts
        return {
            "what": "flow",
            "born": born,
            "cuts": [
                {
                    "site": site,
                    "call": call,
                    "reason": reason,
                    "leaves": sorted(named[k] for k in leaves if k in named),
                    "off": off,
                }
                for site, call, reason, leaves, off in cuts
            ],
            "left": [{"site": site, "call": call} for site, call in self.left],
            "used": sorted(named[key] for key in self.used if key in named),
            "unused": sorted(named[key] for key in named if key not in self.used),
        }


def _tensors(values: Any) -> Any:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif type(value) in (list, tuple):
            yield from _tensors(value)
        elif type(value) is dict:
            yield from _tensors(list(value.values()))
