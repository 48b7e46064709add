"""What functions returned; of one that was called by itself also what it left behind, and the gradients behind that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from ..graph.holders import slots
from ..graph.nodes import behind
from ..values.digests import Parameters
from ..values.tensors import hasher

#: What is larger, or deeper, is cut off.
_MOST_ELEMENTS = 1 << 22
_MOST_PARTS = 2000
_DEEPEST = 6
_LONGEST = 190
_MADE_UP = "_codemod_made_up"


class Parts:
    """The tensors and numbers in a value, through containers and objects, and ``form``: what it is made of."""

    def __init__(self, value: Any) -> None:
        self.tensors: list[Any] = []
        self.numbers: list[float] = []
        self.form: list[str] = []
        #: Of each tensor and number whether it carries a graph, and those that do.
        self.graphs: list[str] = []
        self.outputs: list[Any] = []
        #: Whether nothing was cut off, and nothing is in it that cannot be looked into.
        self.whole = True
        self._seen: set[int] = set()
        self._add(value, 0)

    @property
    def size(self) -> int:
        """How many elements all tensors have."""
        return sum([tensor.numel() for tensor in self.tensors])

    def _add(self, value: Any, depth: int) -> None:
        import torch

        if len(self.form) >= _MOST_PARTS or depth > _DEEPEST:
            self.whole = False
            return
        if isinstance(value, torch.Tensor):
            self._tensor(value)
        elif type(value).__module__ == "numpy" and hasattr(value, "dtype") and value.dtype.kind in "fiub":
            self._tensor(torch.as_tensor(value))
        elif isinstance(value, (bool, int, float)):
            self._number(float(value) if abs(value) < 1e300 else 0.0)
            self.graphs.append("0")
        elif isinstance(value, (str, bytes)) or value is None:
            self.form.append(repr(value)[:200])
            self.whole = self.whole and (value is None or len(value) < _LONGEST)
        elif isinstance(value, (torch.device, torch.dtype, os.PathLike)):
            self.form.append(str(value)[:200])
        elif id(value) not in self._seen:
            self._seen.add(id(value))
            self._inside(value, depth)

    def _inside(self, value: Any, depth: int) -> None:
        kind = type(value).__name__
        children = list(_children(value))
        self.form.append(f"{kind} of {len(children)}" if isinstance(value, (list, tuple, dict, set)) else kind)
        self.whole = self.whole and (bool(children) or _plain(value))
        if isinstance(value, dict):
            self.form += [key[:100] for key in value if isinstance(key, str)]
        for child in children[:_MOST_PARTS]:
            self._add(child, depth + 1)

    def _tensor(self, tensor: Any) -> None:
        self.graphs.append("1" if tensor.requires_grad else "0")
        if tensor.grad_fn is not None and tensor.is_floating_point():
            self.outputs.append(tensor)
        if tensor.numel() == 1 and not tensor.is_complex() and not tensor.is_meta:
            # A total may become a number: that is the same value.
            size = "".join([f"{count}×" for count in tensor.shape])
            self._number(float(tensor.detach()), f" ({size}{str(tensor.dtype).rpartition('.')[2]})")
        else:
            size = "×".join(map(str, tensor.shape))
            self.form.append(f"a tensor of {size} {str(tensor.dtype).rpartition('.')[2]}")
            self.tensors.append(tensor)
        if tensor.is_leaf and tensor.grad is not None:
            self.tensors.append(tensor.grad)
            self.form.append("its gradient")

    def _number(self, value: float, kind: str = "") -> None:
        self.form.append(f"a number{kind}")
        self.numbers.append(value)


def _plain(value: Any) -> bool:
    """Whether ``value``, which has nothing in it, is known by what it is called."""
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return not value
    return isinstance(value, (type, ModuleType, FunctionType)) or type(value).__module__.startswith("_codemod_probe")


def _opaque(module: str) -> bool:
    return module == "builtins" or module.startswith("_codemod_probe")


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from list(value.values())
    elif isinstance(value, (list, tuple)):
        yield from value
    elif isinstance(value, (set, frozenset)):
        yield from sorted([str(each) for each in value])
    elif not isinstance(value, (type, ModuleType, FunctionType)) and not _opaque(type(value).__module__):
        yield from list(getattr(value, "__dict__", {}).values())
        yield from [child for _, child in slots(value)]


def before(given: Any) -> tuple[Any, ...]:
    """What tells later whether ``given`` was changed; nothing where it cannot be read."""
    try:
        parts = Parts(given)
    except Exception:
        # Objects of the user's may answer in their own ways; that is no matter of the call's.
        return ()
    tensors = tuple([(id(each), 0 if each.is_inference() else each._version) for each in parts.tensors])
    return tuple(parts.form), tuple(map(str, parts.numbers)), tensors


def after(result: Any, given: Any, known: tuple[Any, ...], reader: Parameters) -> dict[str, Any] | None:
    """The fields of the event for a call that returned ``result``; None where there is too much to read.

    ``given`` are its arguments and its object, ``known`` what :func:`before` said of them.
    """
    import torch

    back, rest = Parts(result), Parts(given)
    told = bool(back.tensors or back.numbers) or known != before(given)
    if back.size > _MOST_ELEMENTS:
        return None
    if back.size + rest.size > _MOST_ELEMENTS:
        rest = Parts(None)
    numbers = [torch.tensor(number, dtype=torch.float64) for number in (*back.numbers, *rest.numbers)]
    behind = _behind(back.outputs) or []
    own = [gradient for leaf, gradient in behind if not hasattr(leaf, _MADE_UP)]
    # Whether the program gives it a tensor with a graph is not known.
    made = [gradient for leaf, gradient in behind if hasattr(leaf, _MADE_UP) and bool(gradient.any())]
    graphs = "".join(back.graphs) + (f"|{reader.read(made)['digest']}" if made else "")
    fields = {"told": told, "form": back.form + rest.form, "graphs": graphs}
    return {**fields, **reader.read([*back.tensors, *rest.tensors, *own, *numbers])}


def gave(value: Any, reader: Parameters) -> dict[str, Any] | None:
    """The fields of the event for a value that the program goes on with; None where there is too much to read."""
    import torch

    parts = Parts(value)
    if parts.size > _MOST_ELEMENTS:
        return None
    numbers = [torch.tensor(number, dtype=torch.float64) for number in parts.numbers]
    return {"form": parts.form, **reader.read([*parts.tensors, *numbers])}


def gradients(outputs: list[Any]) -> list[Any] | None:
    """The gradients of ``outputs`` for all that they were computed from; None where no backward can go through."""
    found = _behind(outputs)
    return None if found is None else [gradient for _, gradient in found]


def mark(leaf: Any) -> Any:
    """``leaf``, of which is known from here on that it was made up."""
    setattr(leaf, _MADE_UP, True)
    return leaf


def _behind(outputs: list[Any]) -> list[tuple[Any, Any]] | None:
    """What ``outputs`` were computed from, each with its gradient."""
    import torch

    if not outputs:
        return []
    leaves = _leaves([each.grad_fn for each in outputs])
    # Not all alike: the sum of what a softmax returns is 1, whatever it is computed from.
    weights = [torch.linspace(0.5, 1.5, each.numel(), dtype=each.dtype).view(each.shape) for each in outputs]
    try:
        found = torch.autograd.grad(outputs, leaves, weights, retain_graph=True, allow_unused=True)
    except RuntimeError:
        return None
    return [
        (leaf, torch.zeros(()) if each is None else each)
        for leaf, each in zip(leaves, found)  # noqa: B905 - Python 3.8
    ]


def structure(outputs: list[Any]) -> str:
    """A digest of the graph behind ``outputs``: its operations, how they follow from each other, what they end in."""
    numbers: dict[Any, int] = {}
    state = hasher()
    stack = [each.grad_fn for each in outputs]
    while stack:
        node = stack.pop()
        if node in numbers:
            state.update(b"%d " % numbers[node])
            continue
        numbers[node] = len(numbers)
        leaf = getattr(node, "variable", None)
        state.update(f"{type(node).__name__} {'' if leaf is None else tuple(leaf.shape)};".encode())
        children = [child for child, _ in node.next_functions if child is not None]
        state.update(b"%d " % len(children))
        stack.extend(children)
    return str(state.hexdigest()[:16])


def _leaves(nodes: list[Any]) -> list[Any]:
    """The tensors that the graphs of ``nodes`` end in, always in the same order."""
    order: dict[int, Any] = {}
    for leaf in (getattr(node, "variable", None) for node in behind(dict.fromkeys(nodes))):
        if leaf is not None:
            order.setdefault(id(leaf), leaf)
    return list(order.values())
