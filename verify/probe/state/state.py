"""What there is beside losses and parameters: names, buffers, gradients, learning rates, outputs, the end."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

from ..graph.forwards import tensors_in
from ..graph.steps import Optimizers, Steps, parameters
from ..guarding.guard import Write
from ..lines.sites import Tree, key
from ..values.copies import Copies, Copy, now
from ..values.digests import Parameters
from ..values.tensors import generators
from . import returned

#: Buffers of more elements (masks, tables of positions) are read again only when their version has moved. Those of
#: BatchNorm are changed inside its kernel, which counts no version.
_LARGE = 1 << 16
#: Outputs of more elements take too long to read in full.
_MOST_ELEMENTS = 1 << 22
_MOST_OUTPUTS = 500
#: What functions return that are called at the end counts as outputs of lines from this number on.
_DRIVEN = 1 << 20
#: What other threads than the main one call counts as lines from this number on.
_THREADS = 1 << 19
#: A line whose outputs so many backwards have used trains: losses and gradients speak for it.
_TRAINS = 3
_SCHEDULED = ("lr", "momentum", "betas", "weight_decay")


class State:
    """Reads what ``step``, ``backward``, ``output`` and ``state`` events have, and writes ``tensors`` events."""

    def __init__(
        self, reader: Parameters, copies: Copies, optimizers: Optimizers, steps: Steps, tree: Tree, write: Write
    ) -> None:
        self._reader = reader
        self._copies = copies
        self._optimizers = optimizers
        self._steps = steps
        self._tree = tree
        self._write = write
        self._roots: list[weakref.ref[Any]] = []
        self._known: dict[int, weakref.ref[Any]] = {}
        self._tables: list[tuple[str, Any]] | None = None
        self._told: dict[str, Any] = {}
        self._versions: dict[str, Any] = {}
        self._rates: dict[int, Any] = {}
        self._lines: dict[Any, list[int]] = {}
        self._threaded: dict[Any, list[int]] = {}
        self._half = ""

    # Optimizers.

    def begun(self, optimizer: Any, index: int) -> Copy | dict[str, Any]:
        """A step begins: the gradients of the parameters that it is to change."""
        tensors = parameters(optimizer)
        known = [(tensor.shape, tensor.dtype) for tensor in tensors]
        if self._told.get(str(index)) != known:
            self._told[str(index)] = known
            event = {"event": "tensors", "of": index, "names": self._names(optimizer, tensors), **_described(tensors)}
            event["initial"] = self._reader.read(tensors)
            event["made"] = [number for number, each in self._optimizers.living() if each is optimizer]
            self._write(event)
        return self._gradients(tensors)

    def _gradients(self, tensors: list[Any]) -> Copy | dict[str, Any]:
        return self._copies.take([each.grad for each in tensors], light=True)

    def waiting(self) -> list[dict[str, Any]]:
        """The gradients that wait for optimizers which never made a step."""
        found = []
        for number, optimizer in self._optimizers.living():
            if not self._steps.stepped(optimizer):
                entry = {"made": number, "name": type(optimizer).__name__}
                entry.update(now(self._gradients(parameters(optimizer))))
                found.append(entry)
        return found

    def waiting_at(self, count: int) -> dict[str, Any]:
        """The same now and then, as the field of an event: after backward or step number ``count``."""
        now_and_then = count & (count - 1) == 0 or count % 16 == 0
        return {"waiting": found} if now_and_then and (found := self.waiting()) else {}

    def rates(self, optimizer: Any, index: int) -> Any:
        """What schedulers change of ``optimizer``; None where that is as it was at its last step."""
        found = []
        for group in optimizer.param_groups:
            values = {}
            for name in _SCHEDULED:
                value = group.get(name)
                for place, number in enumerate(value if isinstance(value, (tuple, list)) else (value,)):
                    if number is not None and not isinstance(number, bool):
                        values[name if place == 0 else f"{name}[{place}]"] = float(number).hex()
            found.append(values)
        if self._rates.get(index) == found:
            return None
        self._rates[index] = found
        return found

    def frozen(self) -> dict[str, str]:
        """How many parameters of each optimizer get no gradients, as the field of an event."""
        return {
            f"frozen parameters of {type(optimizer).__name__} {number}": float(
                sum([not tensor.requires_grad for tensor in parameters(optimizer)])
            ).hex()
            for number, optimizer in self._optimizers.living()
        }

    # Modules.

    def note(self, module: Any) -> None:
        """``module`` was called, and by no other module."""
        known = self._known.get(id(module))
        if known is None or known() is not module:
            reference = weakref.ref(module)
            self._known[id(module)] = reference
            self._roots.append(reference)
            self._tables = None

    def buffers(self, all_of_them: bool = False) -> Copy | dict[str, Any] | None:
        """The buffers of all modules that were called; large ones only where they were changed since."""
        names, tensors = [], []
        for name, tensor in self._buffers():
            if tensor.numel() > _LARGE and not all_of_them:
                version = (id(tensor), tensor._version)
                if self._versions.get(name) == version:
                    continue
                self._versions[name] = version
            names.append(name)
            tensors.append(tensor)
        if not names:
            return None
        if self._told.get("buffers") != names:
            self._told["buffers"] = names
            self._write({"event": "tensors", "of": "buffers", "names": names, **_described(tensors)})
        return self._copies.take(tensors)

    def _buffers(self) -> Iterator[tuple[str, Any]]:
        import torch

        if self._tables is None:
            self._tables = []
            seen = set()
            for prefix, module in self._modules():
                table = vars(module).get("_buffers")
                if id(table) not in seen:
                    seen.add(id(table))
                    # One that has none yet may be given some.
                    self._tables.append((prefix, weakref.ref(module)))
        for prefix, reference in self._tables:
            module = reference()
            table = None if module is None else vars(module).get("_buffers")
            if table:
                for name, tensor in list(table.items()):
                    if isinstance(tensor, torch.Tensor) and not hasattr(tensor, "materialize"):
                        yield prefix + name, tensor

    def _modules(self) -> Iterator[tuple[str, Any]]:
        import torch

        for reference in self._roots:
            root = reference()
            if root is not None:
                # Not the method of the root's own class, which may be another one.
                for name, module in torch.nn.Module.named_modules(root):
                    yield f"{type(root).__name__}.{name}." if name else f"{type(root).__name__}.", module

    def _parameters(self) -> Iterator[tuple[str, Any]]:
        seen = set()
        for prefix, module in self._modules():
            for name, tensor in list((vars(module).get("_parameters") or {}).items()):
                if tensor is not None and id(tensor) not in seen and not hasattr(tensor, "materialize"):
                    seen.add(id(tensor))
                    yield prefix + name, tensor

    def _names(self, optimizer: Any, tensors: list[Any]) -> list[str]:
        known = {id(tensor): name for name, tensor in self._parameters()}
        return [known.get(id(tensors[place]), f"parameter {place}") for place in range(len(tensors))]

    # What modules return.

    def returned(self, module: Any, output: Any, site: Any, used: int) -> dict[str, Any] | None:
        """The event for what a root module returned; once, that it is the business of backwards; None from there on."""
        self.note(module)
        self._note_precision(output)
        training = bool(module.training)
        kind = type(module).__name__
        # A loss that is a module, on the line of the model that it judges, is counted by itself.
        # Which of several threads comes first is another one each time.
        thread = threading.current_thread() is not threading.main_thread()
        lines = self._threaded if thread else self._lines
        row = lines.setdefault((key(site), training, kind), [len(lines) + _THREADS * thread, 0])
        if row[1] < 0:
            return None
        if training and used >= _TRAINS:
            row[1] = -1
            return {"event": "trains", "line": row[0]}
        row[1] += 1
        if row[1] > _MOST_OUTPUTS:
            return None
        tensors = list(tensors_in(output))
        if not tensors:
            return None
        event: dict[str, Any] = {"event": "output", "site": site, "line": row[0], "call": row[1], "module": kind}
        event["thread"] = thread
        if sum([tensor.numel() for tensor in tensors]) > _MOST_ELEMENTS:
            event.update(digest="", sums="", count=sum([tensor.numel() for tensor in tensors]))
        else:
            event.update(self._reader.read(tensors))
        return event

    def came_back(
        self, number: int, site: list[Any], call: int, values: Any, known: tuple[Any, ...]
    ) -> dict[str, Any] | None:
        """The event for what a function, the ``number``-th that was called at the end, returned (the first of
        ``values``) and was given; ``known`` as :func:`verify.probe.state.returned.before` said of that."""
        result, *given = values
        found = returned.after(result, tuple(given), known, self._reader)
        about = {"event": "output", "site": site, "line": _DRIVEN + number, "call": call}
        return None if found is None else {**about, **found}

    def gave(self, name: list[str], call: int, value: Any) -> dict[str, Any] | None:
        """The event for what a function of the program returned; None where there is too much to read."""
        found = returned.gave(value, self._reader)
        return None if found is None else {"event": "returned", "name": name, "call": call, **found}

    def _note_precision(self, output: Any) -> None:
        """Tell once that modules compute in half precision, which rounds more than any parameter shows."""
        if self._half:
            return
        import torch

        if type(output) is torch.Tensor and output.dtype is torch.float32:
            return
        for tensor in tensors_in(output):
            if tensor.dtype in (torch.float16, torch.bfloat16):
                self._half = str(tensor.dtype).rpartition(".")[2]
                self._write({"event": "precision", "type": self._half})
                return

    # The end.

    def event(self) -> dict[str, Any]:
        """The event of the end: all that is alive."""
        found = list(self._parameters())
        event: dict[str, Any] = {"event": "state", "rng": generators()(), "waiting": self.waiting()}
        event.update(names=[name for name, _ in found], parameters=self._reader.read([tensor for _, tensor in found]))
        event["buffers"] = now(self.buffers(all_of_them=True))
        event["rates"] = [self.rates(optimizer, -1 - number) for number, optimizer in self._optimizers.living()]
        return event


def _described(tensors: list[Any]) -> dict[str, Any]:
    kinds = [str(tensor.dtype).rpartition(".")[2] for tensor in tensors]
    return {"shapes": [list(tensor.shape) for tensor in tensors], "types": kinds}
