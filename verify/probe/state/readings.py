"""What is read at each backward, at each step and at the end, part by part: one that fails leaves the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from ..graph.backward import Call
from ..graph.growth import Growth
from ..graph.holders import named, variables
from ..graph.nodes import Graph
from ..graph.steps import Optimizers, Steps, parameters
from ..guarding.guard import Part, Write
from ..lines.sites import Tree, key
from ..process.shapes import Shapes
from ..values.copies import Copies
from ..values.digests import Parameters
from ..values.plain import definition_of, keys_of, number_of, size_of, tensor_of, text_of
from ..values.tensors import generators, loss
from . import ambient
from .memory import Memory
from .state import State

#: What takes longer to read says nothing: only names that both runs have are compared.
_SECONDS = 2.0
#: For the variables of functions that return: for one call, and in all.
_SECONDS_A_CALL, _SECONDS_IN_ALL = 0.3, 3.0
_MOST_NAMES = 5000
_MOST_ELEMENTS = 1 << 22
_MOST_IN_ALL = 1 << 25


class Readings:
    """The counters of one process. ``part`` gives the part of a name, ``config`` is that of the session."""

    def __init__(
        self,
        config: dict[str, Any],
        tree: Tree,
        write: Write,
        part: Callable[[str], Part],
        optimizers: Optimizers,
        steps: Steps,
    ) -> None:
        self._tree, self._write, self._part, self._steps = tree, write, part, steps
        self._params, self._shapes = bool(config.get("params", True)), bool(config.get("shapes"))
        self.memory: Memory | Shapes = Memory()
        self._graph = Graph()
        self.growth = Growth(self._graph, tree)
        #: Backwards so far.
        self.index = 0
        self._parameters = Parameters()
        self._copies = Copies(self._parameters)
        self._state = State(self._parameters, self._copies, optimizers, steps, tree, write)
        self._gradients: dict[int, Any] = {}
        self._sites: dict[Any, int] = {}
        self._left = _SECONDS_IN_ALL

    # A backward.

    def before(self, call: Call) -> None:
        """Begin the event of ``call``, as its notes."""
        event: dict[str, Any] = {"event": "backward", "index": self.index}
        self.index += 1
        event.update(site=None, call=0, time=0.0, losses=[], rng="", retain=call.retain, create=call.create)
        event.update(grad=call.grad, nodes=0, live=0, seconds=0.0, bytes=0, peak=0, error=None)
        call.notes = event
        self._part("backward").attempt(lambda: self._describe(call, event))
        if not self._steps.total:
            # From the first step on, steps tell.
            self._draw(event)
        self.look(event)
        self._part("the graph").attempt(lambda: event.update(nodes=self._graph.walk(call.outputs)))

    def _describe(self, call: Call, event: dict[str, Any]) -> None:
        site = self._tree.site(call.frame)
        place = key(site)
        count = self._sites[place] = self._sites.get(place, 0) + 1
        event.update(site=site, call=count)
        event.update(losses=[loss(output) for output in call.outputs if hasattr(output, "numel")])

    # A step.

    def begun(self, optimizer: Any, index: int) -> None:
        """A step begins."""
        self._gradients.pop(index, None)
        if self._params:
            told = self._gradients
            self._part("the gradients").attempt(lambda: told.update({index: self._state.begun(optimizer, index)}))

    def stepped(self, optimizer: Any, index: int) -> dict[str, Any]:
        """What there is to tell of a step that has been made; in it copies that are to be read."""
        event: dict[str, Any] = {"params": {"digest": "", "count": 0, "sums": ""}, "live": 0, "bytes": 0, "peak": 0}
        self.look(event)
        if not self._params:
            return event
        state, grads = self._state, self._gradients
        self._part("the parameters").attempt(lambda: event.update(params=self._copies.take(parameters(optimizer))))
        self._part("learning rates").attempt(
            lambda: event.update(grads=grads.pop(index, None), rates=state.rates(optimizer, index))
        )
        self._part("the buffers").attempt(lambda: event.update(buffers=state.buffers()))
        self.wait(event, self._steps.total)
        self._draw(event)
        return event

    def look(self, event: dict[str, Any]) -> None:
        """Add memory and live nodes."""
        measured = ("bytes", "peak")
        self._part("memory").attempt(
            lambda: event.update(zip(measured, self.memory.look()), live=self._graph.live())  # noqa: B905 - Python 3.8
        )

    def wait(self, event: dict[str, Any], count: int) -> None:
        """Add the gradients that no step has taken yet."""
        if self._params:
            self._part("the gradients").attempt(lambda: event.update(self._state.waiting_at(count)))

    def _draw(self, event: dict[str, Any]) -> None:
        if not self._shapes:
            self._part("the random generators").attempt(lambda: event.update(rng=generators()))

    def cut(self, frame: FrameType | None) -> None:
        """A unit of the run is over: a step, or a backward where nothing steps."""
        self._part("the graph").attempt(lambda: self.growth.cut(frame))

    # What modules and functions return.

    def returned(self, module: Any, output: Any, site: Any, used: int) -> None:
        """Write what a root module returned."""
        if self._params:
            self._part("outputs").attempt(lambda: self._tell(self._state.returned(module, output, site, used)))

    def came_back(self, number: int, site: list[Any], call: int, values: Any, known: tuple[Any, ...]) -> None:
        """Write what a function returned that was called at the end."""
        with self._part("outputs"):
            self._tell(self._state.came_back(number, site, call, values, known))

    def gave(self, name: list[str], call: int, value: Any, variables: list[tuple[str, Any]]) -> None:
        """Write what the function ``name`` (its path and full name) returned, and its ``variables``."""
        with self._part("what functions return"):
            self._tell(self._state.gave(name, call, value))
            begun = time.perf_counter()
            if variables and self._left > 0:
                found = named(self._tree, variables, begun + min(self._left, _SECONDS_A_CALL))
                self._write({"event": "carried", "name": name, "call": call, **read(found, self._parameters)})
                self._left -= time.perf_counter() - begun

    def _tell(self, event: dict[str, Any] | None) -> None:
        if event is not None:
            self._write(event)

    # The end.

    def end(self, reason: str, frames: list[FrameType]) -> None:
        """Write what is left; ``frames`` are the user's, innermost first."""
        if reason != "watchdog" and self._params:
            with self._part("what is left at the end"):
                self._write(self._state.event())
            frozen: dict[str, str] = {}
            with self._part("the frozen parameters"):
                frozen = self._state.frozen()
            with self._part("what variables hold at the end"):
                event = held(self._tree, frames, self._parameters)
                event["numbers"].update(frozen)
                self._write(event)
        if self.index:
            with self._part("the census"):
                self._write(self.growth.census(frames))


def held(tree: Tree, frames: list[FrameType], reader: Parameters) -> dict[str, Any]:
    """The event of what variables hold at the end; ``frames`` are the user's frames, innermost first. What holds for
    the whole process stands among them."""
    event = read(variables(tree, frames, time.perf_counter() + _SECONDS, exact=True), reader)
    of_all = ambient.held()
    numbers = {name: float(value).hex() for name, value in of_all.items() if not isinstance(value, str)}
    event["numbers"].update(numbers)
    event["texts"].update({name: value for name, value in of_all.items() if isinstance(value, str)})
    return {"event": "variables", **event}


def read(values: Iterable[tuple[str, Any, str]], reader: Parameters) -> dict[str, Any]:
    """The fields of an event for ``values``, (name, value, function) each: ``numbers`` {name: hex}, ``texts`` {name:
    text}, and ``names`` of tensors with their *values*.

    One-element tensors are numbers; of generators of random numbers the state is read, of containers the size. Runs no
    code of the user's.
    """
    import torch

    numbers: dict[str, str] = {}
    texts: dict[str, str] = {}
    tensors: dict[str, Any] = {}
    total = 0
    for name, value, function in values:
        name = f"{name} in {function}" if function != "<module>" else name
        if len(numbers) + len(tensors) >= _MOST_NAMES:
            break
        if name in numbers or name in tensors or name in texts:
            continue
        tensor = tensor_of(value)
        if tensor is None:
            number, text, size = number_of(value), text_of(value), size_of(value)
            defined = definition_of(value)
            if defined is not None and defined[0] != name:
                # Under its own name it is what was imported or defined there.
                text = defined[1]
            if number is not None:
                numbers[name] = float(number).hex()
            elif text is not None and len(texts) < _MOST_NAMES:
                texts[name] = text
            elif size is not None:
                numbers[f"len({name})"] = float(size).hex()
                keys = keys_of(value)
                if keys is not None:
                    texts[f"list({name})"] = keys
        elif tensor.layout is torch.strided and not tensor.is_meta and tensor.device.type != "meta":
            count = tensor.numel()
            if count != 1:
                texts[f"the type of {name}"] = f"{tensor.dtype}, {tuple(tensor.shape)}"
            if count == 1 and not tensor.is_complex():
                numbers[name] = float(tensor.detach().item()).hex()
            elif count <= _MOST_ELEMENTS and total + count <= _MOST_IN_ALL:
                total += count
                tensors[name] = tensor
    event = {"names": list(tensors), "numbers": numbers, "texts": texts}
    return {**event, **reader.read(list(tensors.values()))}
