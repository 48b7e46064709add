"""The probe's part of ``codemod doctor``: it records what explains a fault, where the rest records what compares.

The first run of a diagnosis watches everything that costs little. The ``plan`` of a second run names what that run is
to look at more closely; places in it are numbers (of backwards, of nodes) that are the same in both runs.
"""

from __future__ import annotations

import _thread
import os
import typing
from types import FrameType
from typing import Any

from ..graph.backward import Call
from ..graph.growth import Growth
from ..graph.nodes import live_tensors, roots
from ..guarding.guard import Clock, Write
from ..lines import errors
from ..lines.sites import Tree
from ..values import tensors
from . import names
from .cache import Cache
from .holdings import Holdings
from .learning import Learning
from .lines import Lines
from .pace import Pace
from .picture import Picture
from .stores import Stores
from .walks import Walks

_MOST_WALKS = 400
#: After so many nodes the size of the process is read.
_OFTEN = 16
#: At so many lines it is told who holds memory when half of it is gone.
_MOST_NEAR = 8


class Living(typing.Protocol):
    """Who knows the optimizers of this process."""

    def living(self) -> list[tuple[int, Any]]:
        """(number, optimizer), in the order in which they were made or stepped."""


class Doctor:
    """Told by the session what happens; writes ``diagnosis`` events. ``plan`` is what the second run looks for:

    | key | meaning |
    | --- | --- |
    | number, user, freed_index | nodes of a second backward, and the backward that frees them: who holds them? |
    | writes | whether to note who changes tensors in place |
    | flow | [[optimizer, place], ...] of parameters without a gradient: where do their graphs end? May be empty |
    | devices | whether to tell where tensors of two devices meet |
    | pace | whether to time lines |
    | cache | whether to tell the lines for which the CUDA cache grows |
    | picture | whether to tell what the graph looks like where nothing is wrong |
    | ceiling | bytes of this process from which on memory counts as short, in any run |
    """

    def __init__(
        self,
        plan: dict[str, Any],
        tree: Tree,
        write: Write,
        clock: Clock,
        optimizers: Living,
        growth: Growth,
    ) -> None:
        self._plan = plan
        self._tree = tree
        self._write = write
        self._optimizers = optimizers
        self._growth = growth
        growth.seen = self._grown
        self._thread = _thread.get_ident()
        self._lines = Lines(tree)
        self._walks = Walks()
        self._learning = Learning(tree)
        self._holdings = Holdings()
        self._stores = Stores(tree)
        self._picture = Picture(self._walks, tree)
        self._pace = Pace(clock, tree)
        self._cache = Cache(tree, lines=bool(plan.get("cache")))
        self._rows: list[list[Any]] = []
        self._steps = 0
        self._evaluations = 0
        #: Where backwards began since an evaluation of the closure that an optimizer's step runs; None outside of one.
        self._inside: Any = None
        self._flow: Any = None
        self._writes: Any = None
        self._modes: list[Any] = []
        self._named: dict[int, str] = {}
        self._late = False
        self._nodes = 0
        self._weighed = 0
        self._full = False
        self._told: set[tuple[Any, ...]] = set()
        self._called: list[dict[str, str]] = []
        self.pid = os.getpid()

    def install(self) -> None:
        """Needs an imported torch."""
        self._lines.install()
        self._lines.made = self._making
        if self._plan.get("writes"):
            from .writes import Writes

            self._writes = self._entered(Writes(self._tree))
        if self._plan.get("flow") is not None:
            from .flow import Flow

            self._flow = self._entered(Flow(self._tree))
        if self._plan.get("devices"):
            from .places import Places

            self._entered(Places(self._tree, self._tell))
        if self._plan.get("pace"):
            self._pace.install()

    def _entered(self, mode: Any) -> Any:
        """``mode`` of torch's, entered until the end."""
        tensors.own_modes += hasattr(mode, "__torch_dispatch__")
        mode.__enter__()
        self._modes.append(mode)
        return mode

    def _tell(self, event: dict[str, Any]) -> None:
        self._write({"event": "diagnosis", **event})

    def remove(self) -> None:
        """Leave torch as it was; of a doctor without a plan."""
        self._lines.remove()
        self._growth.seen = None

    # While the script runs.

    def before(self, call: Call, site: Any) -> None:
        """A backward begins."""
        self._watch_leaves()
        self._note_evaluation(site)
        fresh, again, leaves = self._walks.before(call, site, self._steps + self._evaluations)
        rootless = all(
            getattr(output, "grad_fn", None) is None for output in call.outputs if hasattr(output, "grad_fn")
        )
        self._learning.backward(site, leaves, rootless, call.grad)
        if len(self._rows) < _MOST_WALKS:
            self._rows.append([site, fresh, again])
        event = self._holdings.before(call, self._walks.count, self._living(), site)
        if event is not None:
            self._tell(event)
        if self._plan.get("picture") and event is not None:
            self._draw("step", roots(call.outputs), self._tree.frames(call.frame))
        if self._flow is not None and not call.grad:
            self._tell({**self._flow.event(call.outputs, self._named), "loss": site})

    def after(self, call: Call, site: Any) -> None:
        """A backward is over, or has raised."""
        self._walks.after(call)
        if call.error is None:
            if self._plan.get("freed_index") == self._walks.count - 1 and self._plan.get("number") is not None:
                self._called = self._names(self._tree.frames(call.frame)) or self._called
            return
        kind = errors.kind(call.error)
        if kind == "freed":
            found = self._walks.second(call)
            if found is not None:
                self._explain_second(found, call, site)
        elif kind == "inplace":
            self._explain_change(call, site)

    def _explain_second(self, found: dict[str, Any], call: Call, site: Any) -> None:
        if not self._living():
            found["stepped"] = None
        planned = self._plan.get("number") is not None
        same = all(found.get(key) == self._plan.get(key) for key in ("number", "user")) if planned else None
        if not self._called:
            number = found["number"]
            self._called = self._names(self._tree.frames(call.frame), number)
        self._tell({"what": "second", "site": site, "names": self._called, "same": same, **found})
        cause, consumer = found["number"], found["user"]
        places = {cause: "cause"} if consumer is None else {cause: "cause", consumer: "consumer"}
        self._draw("second", roots(call.outputs), self._tree.frames(call.frame), places, {cause: self._called})

    def _explain_change(self, call: Call, site: Any) -> None:
        hits = []
        for hit, tensor in self._walks.changed(call, site):
            by = None if self._writes is None or tensor is None else self._writes.after(tensor, hit["expected"])
            hit["changed"], hit["by"] = (None, "") if by is None else (by.site, by.operation)
            hit["through"] = [] if by is None else by.through
            frames = self._tree.frames(call.frame)
            hit["names"] = [] if tensor is None else names.sharing(tensor, self._tree, frames)
            if by is not None and by.name and by.site is not None and not hit["names"]:
                hit["names"] = [{"name": by.name, "function": by.site[2]}]
            hits.append(hit)
        if hits:
            self._tell({"what": "inplace", "site": site, "hits": hits})
            number = hits[0]["number"]
            carriers = {number: hits[0]["names"]} if hits[0]["names"] else {}
            self._draw("inplace", roots(call.outputs), self._tree.frames(call.frame), {number: "saved by"}, carriers)

    def _grown(self, frames: list[FrameType]) -> None:
        """Graphs pile up, seen from ``frames``."""
        self._draw("growth", roots(live_tensors()), frames)

    def _draw(
        self,
        purpose: str,
        nodes: list[Any],
        frames: list[FrameType],
        roles: dict[int, str] | None = None,
        names: dict[int, list[dict[str, str]]] | None = None,
    ) -> None:
        self._tell(self._picture.event(purpose, nodes, frames, roles, names))

    def _making(self, frame: FrameType) -> None:
        """A node is about to be made: of the one that uses the stale graph again, the carrier has its name now."""
        self._nodes += 1
        if self._nodes >= self._weighed:
            self._weigh(frame)
        user = self._plan.get("user")
        if user is None or self._late or _thread.get_ident() != self._thread:
            return
        if self._walks.sequence() - self._walks.origin <= user:
            return
        self._late = True
        self._called = self._names(self._tree.frames(frame)) or self._called

    def _weigh(self, frame: FrameType) -> None:
        """Tell once who holds memory, when this process comes near the limit: nobody may ask later."""
        ceiling = self._plan.get("ceiling")
        here = 0 if ceiling is None or self._full else resident()
        # Half way to the limit a few large tensors reach it, or one.
        near = ceiling is not None and 2 * here > ceiling
        self._weighed = self._nodes + (1 if near else _OFTEN)
        if not 0 < (ceiling or 0) < here:
            if near:
                self._near(frame)
            return
        self._full = True
        self._tell({**self._holdings.everything(self._living(), self._tree.site(frame)), "what": "exhausted"})
        self._draw("memory", roots(live_tensors()), self._tree.frames(frame))
        self._write(self._growth.census(self._tree.frames(frame)))

    def _near(self, frame: FrameType) -> None:
        """Tell who holds memory at a line that runs when it is half gone, of a few lines."""
        site = self._tree.site(frame)
        if tuple(site or ()) in self._told or len(self._told) >= _MOST_NEAR:
            return
        self._told.add(tuple(site or ()))
        self._tell({**self._holdings.everything(self._living(), site), "what": "near"})

    def _names(self, frames: list[FrameType], number: int | None = None) -> list[dict[str, str]]:
        wanted = self._plan.get("number") if number is None else number

        def carries(value: Any) -> bool:
            node = value.grad_fn
            return node is not None and self._walks.number(node) == wanted

        found = names.names(carries, self._tree, frames)
        if found:
            return found
        stale = [tensor for tensor in live_tensors() if carries(tensor)]
        return [name for tensor in stale[:2] for name in names.outward(tensor, self._tree)]

    def begun(self, optimizer: Any, index: int) -> None:
        """An optimizer's step begins."""
        self._inside = set()
        self._learning.begun(optimizer, index)

    def _note_evaluation(self, site: Any) -> None:
        """Within a step a backward that comes again belongs to the next evaluation of the closure (LBFGS)."""
        if self._inside is None:
            return
        place = tuple(site or ())
        if place in self._inside:
            self._evaluations += 1
            self._inside.clear()
        self._inside.add(place)

    def stepped(self, index: int, site: Any, frame: FrameType | None) -> None:
        """An optimizer's step is over."""
        self._steps += 1
        self._inside = None
        self._learning.stepped(index, site)
        self._pace.stepped()
        self._cache.stepped()
        self._stores.stepped(self._steps, frame)

    def _watch_leaves(self) -> None:
        if self._flow is None or self._named:
            return
        from ..graph.steps import parameters

        living = self._living()
        for number, place, name in self._plan["flow"]:
            if number < len(living):
                held = parameters(living[number])
                if place < len(held):
                    self._named[id(held[place])] = name
        self._flow.watched = set(self._named)

    def _living(self) -> list[Any]:
        return [optimizer for _, optimizer in self._optimizers.living()]

    # The end.

    def failed(self, error: BaseException, site: Any) -> None:
        """The program dies of ``error``."""
        if errors.kind(error) == "memory":
            self._tell({**self._holdings.everything(self._living(), site), "what": "exhausted"})
            self._draw("memory", roots(live_tensors()), [])

    def end(self, frames: list[FrameType]) -> None:
        """The process ends here; ``frames`` are the user's, innermost first."""
        self._pace.remove()
        for mode in reversed(self._modes):
            mode.__exit__(None, None, None)
            tensors.own_modes -= hasattr(mode, "__torch_dispatch__")
        self._tell(self._learning.event(frames, self._walks.leaves))
        if self._steps:
            self._stores.look(self._steps, frames)
            self._tell(self._stores.event())
        self._tell(self._pace.event())
        self._tell(self._cache.event())
        self._tell({"what": "walks", "backwards": self._rows})


def resident() -> int:
    """Bytes of memory that this process has; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
