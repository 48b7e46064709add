"""One program run in a forked child, watched lightly: losses, parameters, live graph nodes, output, errors.

The parent has torch loaded and warm, so that a run costs some milliseconds.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import itertools
import os
import pickle
import random
import runpy
import shutil
import signal
import sys
import tempfile
import traceback
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import torch
import torch.distributions
import torch.optim
import torch.utils.checkpoint
import torch.utils.data
from torch.optim.optimizer import register_optimizer_step_post_hook

SECONDS = 20
"""After so long a child is ended."""

Arrays = list[numpy.ndarray[Any, Any]]

GRAPH_ERRORS = (
    "Trying to backward through the graph a second time",
    "modified by an inplace operation",
    "does not require grad and does not have a grad_fn",
    "Saved intermediate values",
    "One of the differentiated Tensors",
    "a leaf Variable that requires grad",
    "a view of a leaf Variable",
)


@dataclass
class Step:
    """The parameters of an optimizer (numbered as they were made) after a step."""

    optimizer: int
    parameters: Arrays


@dataclass
class Run:
    """What came of a program. ``losses`` are the outputs of each backward in order, ``starts`` the parameters of each
    optimizer when it was made, ``state`` those and the buffers of each module at the end, ``alive`` the graph nodes
    that were alive after each optimizer step."""

    losses: list[Arrays] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    starts: dict[int, Arrays] = field(default_factory=dict)
    state: list[Arrays] = field(default_factory=list)
    alive: list[int] = field(default_factory=list)
    output: str = ""
    error: str | None = None
    message: str = ""
    where: str = ""
    site: tuple[str, int] = ("", 0)
    rng: str = ""

    @property
    def graph_error(self) -> bool:
        """Whether autograd refused."""
        return self.error == "RuntimeError" and any(text in self.message for text in GRAPH_ERRORS)


@functools.cache
def warm() -> None:
    """Load and start what every program needs, once, in the parent: in each child it would take a second."""
    torch.set_num_threads(1)
    net = torch.nn.Linear(2, 2)
    for made in (torch.optim.Adam(net.parameters()), torch.optim.LBFGS(net.parameters())):

        def closure() -> torch.Tensor:
            loss = net(torch.ones(1, 2)).sum()
            loss.backward()
            return loss

        made.step(closure)
    torch.optim.lr_scheduler.StepLR(torch.optim.SGD(net.parameters(), lr=0.1), 1)
    torch.amp.GradScaler("cpu", enabled=False)
    torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(1, 1))
    torch.vmap(lambda row: row * 2)(torch.ones(2, 2))
    with torch.autocast("cpu", enabled=False):
        torch.linalg.svdvals(torch.eye(2))
    repr(torch.ones(2))


def run(files: Mapping[str, str], *, double: bool = False, retain: bool = False) -> Run:
    """Run ``main.py`` of ``files`` in a child of its own.

    Numbers have 64 bits by default if ``double``; every backward keeps its graph if ``retain``.
    """
    warm()
    folder = tempfile.mkdtemp(prefix="hunt-", dir=_memory())
    try:
        for path, text in files.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _child(folder, writing, double=double, retain=retain)
        os.close(writing)
        with open(reading, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(child, 0)
        if not data:
            return Run(error="Killed", message=f"status {status}")
        found: Run = pickle.loads(data)
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _memory() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def _child(folder: str, writing: int, *, double: bool, retain: bool) -> None:
    signal.alarm(SECONDS)
    try:
        if double:
            torch.set_default_dtype(torch.float64)
            torch.FloatTensor = torch.DoubleTensor  # type: ignore[misc]
        found = _watched(folder, retain=retain)
        with open(writing, "wb") as pipe:
            pickle.dump(found, pipe)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _watched(folder: str, *, retain: bool) -> Run:
    found = Run()
    watch = _Watch(found)
    watch.install(retain=retain)
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            runpy.run_path(os.path.join(folder, "main.py"), run_name="__main__")
        except BaseException as error:
            found.error, found.message = type(error).__name__, str(error)
            lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(folder)]
            if lines:
                path = os.path.relpath(lines[-1].filename, folder)
                found.where, found.site = f"{path}:{lines[-1].line}", (path, lines[-1].lineno or 0)
    found.output = out.getvalue()
    watch.finish()
    return found


class _Token:
    """Lives as long as the graph node that it is tied to."""


class _Watch:
    def __init__(self, found: Run) -> None:
        self._run = found
        self._modules: list[torch.nn.Module] = []
        self._optimizers: dict[int, int] = {}
        self._numbers = itertools.count()
        self._alive: weakref.WeakSet[_Token] = weakref.WeakSet()

    def install(self, *, retain: bool) -> None:
        """Hook what is watched into torch; ``retain`` every graph if so."""
        engine: Any = torch.autograd._engine_run_backward  # type: ignore[attr-defined]
        made = torch.nn.Module.__init__
        watch = self

        def backward(
            tensors: Iterable[torch.Tensor], gradients: Any, keep_graph: bool, *args: Any, **kwargs: Any
        ) -> Any:
            tensors = tuple(tensors)
            watch._run.losses.append([_array(t) for t in tensors])
            watch._mark(tensors)
            return engine(tensors, gradients, keep_graph or retain, *args, **kwargs)

        def module(this: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
            made(this, *args, **kwargs)
            watch._modules.append(this)

        torch.autograd._engine_run_backward = backward  # type: ignore[attr-defined]
        torch.nn.Module.__init__ = module  # type: ignore[method-assign]
        built = torch.optim.Optimizer.__init__

        def optimizer(this: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            built(this, *args, **kwargs)
            watch._optimizers[id(this)] = next(watch._numbers)
            watch._run.starts[watch._optimizers[id(this)]] = watch._parameters(this)

        torch.optim.Optimizer.__init__ = optimizer  # type: ignore[method-assign]
        register_optimizer_step_post_hook(self._stepped)

    def finish(self) -> None:
        """Note what is there at the end."""
        for module in self._modules:
            own = itertools.chain(module.parameters(recurse=False), module.buffers(recurse=False))
            self._run.state.append([_array(t) for t in own])
        self._run.rng = hashlib.sha1(bytes(torch.get_rng_state().tolist())).hexdigest()

    def _stepped(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        number = self._optimizers.get(id(optimizer), -1)
        self._run.steps.append(Step(number, self._parameters(optimizer)))
        self._run.alive.append(len(self._alive))

    def _parameters(self, optimizer: torch.optim.Optimizer) -> Arrays:
        return [_array(p) for group in optimizer.param_groups for p in group["params"]]

    def _mark(self, tensors: Iterable[torch.Tensor]) -> None:
        """Tie a token to each node of a graph: what is alive later was kept by somebody."""
        stack: list[Any] = [t.grad_fn for t in tensors if isinstance(t, torch.Tensor)]
        seen = set()
        while stack:
            node = stack.pop()
            if node is None or node in seen or type(node).__name__ == "AccumulateGrad":
                continue
            seen.add(node)
            if "hunt" not in node.metadata:
                token = node.metadata["hunt"] = _Token()
                self._alive.add(token)
            stack.extend(following for following, _ in node.next_functions)


def _array(tensor: Any) -> numpy.ndarray[Any, Any]:
    if not isinstance(tensor, torch.Tensor):
        return numpy.zeros(0)
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        # what torch.func computes with has no memory of its own
        tensor = torch._C._functorch.get_unwrapped(tensor)
    with torch._C._DisableFuncTorch():
        return tensor.detach().cpu().numpy().copy()
