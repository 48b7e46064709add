"""Which parameters learn: what optimizers hold, what backwards come to, whether gradients are ever cleared."""

from __future__ import annotations

import re
import time
from types import FrameType
from typing import Any

from ..graph.holders import variables
from ..graph.steps import parameters
from ..lines.sites import Tree
from .names import typed

#: Parameters of an optimizer whose gradients are looked at to see whether somebody clears them.
_SAMPLE = 3
_MOST = 40
_SECONDS = 2.0
#: The first steps, and one of so many later on, in which all gradients are looked at.
_LOOKED_AT = 8


class _Optimizer:
    """What is known of one optimizer: ``silent`` are the places of the parameters that never had a gradient."""

    def __init__(self, optimizer: Any) -> None:
        self.name = type(optimizer).__name__
        self.parameters = parameters(optimizer)
        self.silent = {i for i in range(len(self.parameters)) if self.parameters[i].requires_grad}
        self.steps = 0
        self.site: Any = None
        #: In how many steps running the gradients were those of the step before, with more added to them.
        self.uncleared = 0
        self.cleared = False
        self.kept: list[tuple[int, Any, int]] = []


class Learning:
    """Told of every step and backward; holds the optimizers that stepped, and their parameters, until the end."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._optimizers: dict[int, _Optimizer] = {}
        #: Backwards by site: how many there were, and how many came to a parameter of an optimizer.
        self._calls: dict[tuple[Any, ...], list[Any]] = {}
        #: id of each leaf: the number of the last backward that came to it.
        self._last: dict[int, int] = {}
        #: id of each parameter whose gradient was zero when last looked at: how many backwards there were when the
        #: looks that found it so began.
        self._zero: dict[int, int] = {}
        #: Of those that were looked at, the ones that had another gradient than zero.
        self._moved: set[int] = set()
        self._count = 0

    def backward(self, site: Any, leaves: set[int], rootless: bool, grad: bool) -> None:
        """A backward at ``site`` comes to ``leaves``; ``rootless``: the loss itself has no graph."""
        for state in self._optimizers.values():
            state.cleared = state.cleared or any(_clear(state.parameters[i]) for i, _, _ in state.kept)
        self._last.update(dict.fromkeys(leaves, self._count))
        self._count += 1
        if not grad:
            row = self._calls.setdefault(tuple(site or ()), [site, 0, 0, set()])
            row[1] += 1
            row[2] += rootless
            row[3] |= leaves

    def begun(self, optimizer: Any, index: int) -> None:
        """A step begins: these are its gradients."""
        state = self._optimizers.get(index)
        if state is None:
            state = self._optimizers[index] = _Optimizer(optimizer)
        current = parameters(optimizer)
        if len(current) != len(state.parameters):
            fresh = range(len(state.parameters), len(current))
            state.parameters = current
            state.silent |= {i for i in fresh if current[i].requires_grad}
        state.silent -= {i for i in state.silent if current[i].grad is not None}
        if state.steps < _LOOKED_AT or state.steps % _LOOKED_AT == 0:
            self._look(current)
        if state.kept:
            same = all(
                current[i].grad is gradient and gradient._version > version for i, gradient, version in state.kept
            )
            state.uncleared = state.uncleared + 1 if same and not state.cleared else 0

    def _look(self, held: list[Any]) -> None:
        """Note which gradients are zero: two ways to a parameter can take each other's gradients away."""
        for parameter in held:
            if parameter.grad is not None and not parameter.grad.is_sparse:
                if _clear(parameter):
                    self._zero.setdefault(id(parameter), self._count)
                else:
                    self._zero.pop(id(parameter), None)
                    self._moved.add(id(parameter))

    def stepped(self, index: int, site: Any) -> None:
        """The step is over."""
        state = self._optimizers.get(index)
        if state is None:
            return
        state.steps += 1
        state.site = site
        state.cleared = False
        # Held until the next step: a gradient that is let go is cleared, and its address may be used again.
        held = [i for i in range(len(state.parameters)) if state.parameters[i].grad is not None][:_SAMPLE]
        state.kept = [(i, state.parameters[i].grad, state.parameters[i].grad._version) for i in held]

    def event(self, frames: list[FrameType], leaves: set[int]) -> dict[str, Any]:
        """What became of it all; ``leaves`` are the ids of all that backwards came to."""
        named = self._named(frames)
        held = {id(p) for state in self._optimizers.values() for p in state.parameters}
        outside = [
            {"name": name, "module": module, "shape": list(shape)}
            for key, (name, module, shape) in named.items()
            if held and key in leaves and key not in held
        ]
        return {
            "what": "learning",
            "taught": self._taught(held or set(named) & leaves, named),
            "optimizers": [self._row(index, state, named, leaves) for index, state in self._optimizers.items()],
            "outside": outside[:_MOST],
            "backwards": [
                {"site": site, "calls": calls, "rootless": rootless, "reaches": bool(came & held), "leaves": len(came)}
                for site, calls, rootless, came in self._calls.values()
            ],
        }

    def _row(self, index: int, state: _Optimizer, named: dict[int, Any], leaves: set[int]) -> dict[str, Any]:
        """What became of the parameters of an optimizer."""

        def name(parameter: Any) -> str:
            return str(named[id(parameter)][0]) if id(parameter) in named else ""

        silent = [(place, state.parameters[place]) for place in sorted(state.silent)[:_MOST]]
        zero = self._zero.keys() - self._moved
        return {
            "index": index,
            "name": state.name,
            "site": state.site,
            "steps": state.steps,
            "parameters": len(state.parameters),
            "uncleared": state.uncleared,
            "silent": [
                {"name": name(p), "place": place, "reached": id(p) in leaves, "shape": list(p.shape)}
                for place, p in silent
            ],
            "silent_count": len(state.silent),
            "zero": [name(p) for p in state.parameters if id(p) in zero],
            "frozen": [name(p) for p in state.parameters if not p.requires_grad and p.grad is None],
        }

    def _taught(self, meant: set[int], named: dict[int, Any]) -> dict[str, Any]:
        """How many of ``meant`` backwards still gave gradients in the second half of the run, and who others are."""
        half = self._count // 2
        late = {key for key in meant if self._last.get(key, -1) >= half and self._zero.get(key, half + 1) > half}
        idle = sorted(named[key][0] for key in meant - late if key in named)
        return {"meant": len(meant), "learning": len(late), "idle": idle[:_MOST]}

    def _named(self, frames: list[FrameType]) -> dict[int, Any]:
        """(name, whether a module registers it, shape) of each parameter that the user's variables lead to."""
        import torch

        found: dict[int, tuple[str, Any]] = {}
        modules: dict[str, Any] = {}
        optimizers: list[str] = []
        until = time.perf_counter() + _SECONDS
        for name, value, _ in variables(self._tree, frames, until):
            if isinstance(value, torch.nn.Module):
                modules[name] = value
            elif isinstance(value, torch.optim.Optimizer):
                optimizers.append(name + ".")
            elif type(value) is torch.nn.Parameter and not name.startswith(tuple(optimizers)):
                first = found.setdefault(id(value), (name, value.shape))[0]
                root = re.split(r"[.[]", name, maxsplit=1)[0]
                if first.isidentifier() and root != name and root in modules:
                    # The variable of a loop is left over, and says less than the way from the model.
                    found[id(value)] = (name, value.shape)
        known = _Registered(modules)
        return {key: (typed(name), known.holds(key, name), shape) for key, (name, shape) in found.items()}


class _Registered:
    """Which parameters the modules that hold them would give out: ``modules`` by the names that lead to them."""

    def __init__(self, modules: dict[str, Any]) -> None:
        self._modules = modules
        self._children = {id(child) for module in modules.values() for child in module._modules.values()}
        self._own = {id(p) for module in modules.values() for p in module._parameters.values()}

    def holds(self, parameter: int, name: str) -> bool:
        """Whether the parameter that ``name`` leads to is registered all the way; or no module is on that way."""
        on_the_way = [module for path, module in self._modules.items() if name.startswith((path + ".", path + "["))]
        if not on_the_way:
            return True
        return parameter in self._own and all(id(module) in self._children for module in on_the_way[1:])


def _clear(parameter: Any) -> bool:
    """Whether the gradient is gone or zero. Reading it on a card waits for the card."""
    from ..values.tensors import unseen

    gradient = parameter.grad
    if gradient is None:
        return True
    with unseen():
        return not bool(gradient.detach().any())
