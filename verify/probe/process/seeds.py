"""The same random numbers in every run: fixed seeds at the start, and what the script seeds with replayed.

Scripts seed with the time, or with nothing; the first run's values are written down, and later runs are given them in
the same order, generator by generator. NumPy's generators that are made without a seed, by the script or by a library
for it (environments of reinforcement learning), begin with numbers of ours in place of the system's entropy.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..guarding.guard import Write
from ..guarding.hooks import when_imported
from ..lines.sites import Tree
from .identity import seeded_as

_MOST_BITS = 2**31


class Seeds:
    """Fixes and watches the seeds of ``random``, ``numpy.random`` and ``torch``, each once it is imported.

    ``seed`` is None where nothing is to be fixed; ``replay`` is a list of [generator, value, process] from an earlier
    run, ``process()`` the name of this process: each rank and worker draws its own.
    """

    def __init__(
        self,
        seed: int | None,
        replay: list[list[Any]] | None,
        tree: Tree,
        write: Write,
        process: Callable[[], str],
    ) -> None:
        self._seed = seed
        self._tree = tree
        self._write = write
        self._process = process
        self._replay: dict[tuple[str, str], list[Any]] = {}
        for generator, value, name in replay or ():
            self._replay.setdefault((generator, name), []).append(value)
        self._unseeded = 0
        self._inside = False
        self.pid = os.getpid()

    def install(self) -> None:
        """Call at the start of the process."""
        when_imported("random", self._python)
        when_imported("numpy.random", self._numpy)

    def _python(self) -> None:
        import random

        if self._seed is not None:
            random.seed(self._seed)
        self._wrap([random], "seed", "random", "a")

    def _numpy(self) -> None:
        # numpy is still being imported, and asking it for `random` would import it again.
        random = sys.modules["numpy.random"]
        if self._seed is not None:
            random.seed(self._seed % 2**32)
            self._fix_entropy()
        self._wrap([random], "seed", "numpy", "seed")

    def _fix_entropy(self) -> None:
        """NumPy asks ``randbits`` of this module what to begin with (numpy/random/bit_generator.pyx, since 1.17)."""
        import random

        source = sys.modules.get("numpy.random.bit_generator")
        if not hasattr(source, "randbits"):
            return
        numbers = itertools.count()

        def randbits(count: int) -> int:
            # A forked worker goes on counting where its parent was: its place in the family sets it apart.
            processes = sys.modules.get("multiprocessing.process")
            place = processes.current_process()._identity if processes is not None else ()
            return random.Random(f"{self._seed} {place} {next(numbers)}").getrandbits(count)

        setattr(source, "randbits", randbits)  # noqa: B010

    def torch(self) -> None:
        """Call once torch has been imported."""
        import torch

        if self._seed is not None:
            torch.manual_seed(self._seed)
        self._wrap([torch, torch.random], "manual_seed", "torch", "seed")
        self._wrap([torch.cuda, torch.cuda.random], "manual_seed", "cuda", "seed")
        self._wrap([torch.cuda, torch.cuda.random], "manual_seed_all", "cuda", "seed")
        self._wrap_torch_seed(torch)

    def _wrap(self, modules: list[Any], name: str, generator: str, argument: str) -> None:
        """Replace ``name`` in all ``modules`` by a function that asks which value, its ``argument``, to seed with."""
        original = getattr(modules[0], name)

        @functools.wraps(original)
        def seed(*args: Any, **kwargs: Any) -> Any:
            if not self._ours():
                return original(*args, **kwargs)
            given = args[0] if args else kwargs.get(argument)
            self._inside = True
            try:
                rest = {key: value for key, value in kwargs.items() if key != argument}
                return original(self._value(generator, given), *args[1:], **rest)
            finally:
                self._inside = False

        for module in modules:
            if getattr(module, name, None) is original:
                setattr(module, name, seed)

    def _wrap_torch_seed(self, torch: ModuleType) -> None:
        original: Callable[[], int] = torch.seed

        @functools.wraps(original)
        def seed() -> int:
            if not self._ours():
                return original()
            self._inside = True
            try:
                value = self._value("torch", None) if self._seed is not None or self._replay else original()
                torch.manual_seed(value)
                return int(value)
            finally:
                self._inside = False

        for module in (torch, torch.random):
            if getattr(module, "seed", None) is original:
                setattr(module, "seed", seed)  # noqa: B010

    def _ours(self) -> bool:
        """Whether the script called, by whatever way, and not a worker process or another seeding function."""
        return not self._inside and os.getpid() == self.pid and self._tree.site(sys._getframe(2)) is not None

    def _value(self, generator: str, given: Any) -> Any:
        if given is None and self._seed is not None:
            # A stream of its own for each, and the same ones in every run.
            self._unseeded += 1
            given = (self._seed * 1_000_003 + self._unseeded * 7919) % _MOST_BITS
        plain = _plain(given)
        if plain is None:
            return given
        earlier = self._replay.get((generator, seeded_as(self._process(), getattr(sys, "argv", []))))
        event = {"event": "seed", "generator": generator, "value": plain}
        if earlier:
            value = earlier.pop(0)
            if value != plain:
                event.update(value=value, instead=plain)
                given = value
        self._write(event)
        return given


def _plain(value: Any) -> Any:
    """``value`` as JSON keeps it exactly, or None where it does not."""
    if isinstance(value, (bool, str, int, float)):
        return value if type(value) in (bool, str, int, float) else None
    if isinstance(value, (list, tuple)):
        return list(value) if all(type(each) is int for each in value) else None
    if hasattr(value, "__index__") and not hasattr(value, "__array_interface__"):
        return int(value)
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        number = value.item()
        return number if isinstance(number, (int, float)) else None
    return None
