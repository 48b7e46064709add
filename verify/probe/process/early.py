"""torch imported ahead, in a process from which programs are forked, and hidden from them until they import it.

A program that is forked finds what it would find after a start of its own: its arguments, environment and signals, no
module of torch or NumPy among those that are there, functions for the end of the process behind those of the probe.
What it imports then is there already.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import importlib
import itertools
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, cast

from ..guarding import dynamo, hooks

#: What stays hidden until it is asked for itself: what else the imports brought comes with it.
_LAST = "torch"
#: Imported before it, so that it is known what it brings by itself.
_FIRST = "numpy"
#: Of setuptools, for distutils alone.
_HARMLESS = "_distutils_hack"


class _Failed(Exception):
    """Why nothing can be forked from here, and how many of the modules can be imported ahead."""


class _Asked:
    """First in ``sys.meta_path``: what is asked for at all."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        self.names.add(name.partition(".")[0])


class _Hidden:
    """Finds the modules that were imported ahead, and shows them: with each what was imported before it and by it.

    ``groups`` are modules by name, by the first part of their names: whoever has one can reach its parts. ``turns`` say
    by which import, in order, a group was begun.
    """

    def __init__(self, groups: dict[str, dict[str, ModuleType]], turns: dict[str, int]) -> None:
        self._groups, self._turns = groups, turns

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        module = self._groups.get(name, {}).get(name)
        real: ModuleSpec | None = getattr(module, "__spec__", None)
        if module is None or real is None:
            return None
        spec = copy.copy(real)
        spec.loader = cast(Any, _Loader(self, module, real))
        return spec

    def show(self, name: str) -> None:
        """Have ``name`` and what came with it among the modules that are there."""
        last = self._turns[name]
        for group in list(self._groups):
            # What torch imports may be asked for without it.
            alone = group == _LAST != name and self._turns[group] == last
            if self._turns[group] > last or alone:
                continue
            modules = self._groups.pop(group)
            for each, module in modules.items():
                sys.modules.setdefault(each, module)
            for each in modules:
                if each != name:
                    hooks.shown(each)
        if not self._groups and self in sys.meta_path:
            sys.meta_path.remove(self)


class _Loader:
    """Gives a module that is there already."""

    def __init__(self, hidden: _Hidden, module: ModuleType, real: ModuleSpec) -> None:
        self._hidden, self._module, self._real = hidden, module, real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._real
        self._hidden.show(self._real.name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real.loader, name)


def wait(told: str, load: Callable[[str, str], Any]) -> Callable[[], None]:
    """Import what the JSON ``told`` says and be forked from until nobody asks any more (see verify/isolation/warm.py).

    Returns in programs alone: what is to be called once the probe has started. ``load`` executes a package under a
    name.
    """
    # What other modules import is not to be found out by whoever may have others of these names.
    asked = _Asked()
    sys.meta_path.insert(0, asked)
    request = json.loads(told)
    # Before anything is imported that could come from elsewhere.
    refused = _refused(request["tree"])
    control = int(request["control"])
    load("_codemod_launcher", request["launcher"])
    forking = importlib.import_module("_codemod_launcher.forking")
    ends: list[tuple[Any, ...]] = []
    hidden = None
    first = 0
    before = os.listdir("/proc/self/fd")
    if not refused:
        try:
            hidden = _imported(request["modules"], ends)
        except _Failed as failed:
            refused, first = failed.args
    if not refused and os.listdir("/proc/self/fd") != before:
        refused = "an import keeps files open"
    sys.meta_path.remove(asked)
    said = {"refused": refused, "first": first, "imports": sorted(asked.names)}
    command, environment = forking.serve(control, json.dumps(said).encode())
    if hidden is not None:
        hooks.behind(hidden)
    _become(command, environment)

    def begin() -> None:
        for function, arguments, named in ends:
            atexit.register(function, *arguments, **named)

    return begin


def _printed() -> bool:
    """Whether something was printed; standard output is a pipe from which nobody reads."""
    import array
    import fcntl
    import termios

    count = array.array("i", [0])
    fcntl.ioctl(1, termios.FIONREAD, count)
    return count[0] > 0


def _refused(tree: str) -> str:
    """Why nothing may be imported here, outside of any isolation; empty where all comes from the interpreter."""
    root = os.path.realpath(tree)
    own = [os.path.realpath(place) for place in (sys.prefix, sys.base_prefix)]
    for entry in sys.path:
        place = os.path.realpath(entry)
        if not os.path.isabs(entry):
            return "modules are looked for in the working directory"
        if _inside(place, root) and not any(_inside(place, each) and _inside(each, root) for each in own):
            return "modules are looked for in the tree"
    known = (BuiltinImporter, FrozenImporter, PathFinder, _Asked)
    for finder in sys.meta_path:
        kind = finder if isinstance(finder, type) else type(finder)
        if kind not in known and kind.__module__ != _HARMLESS:
            return "modules are found by others"
    return ""


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _imported(modules: Sequence[str], ends: list[tuple[Any, ...]]) -> _Hidden:
    """Import ``modules`` and hide what is not of the standard library; ``ends`` gets what is to be called at the end of
    the process."""
    register = atexit.register

    def later(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Callable[..., Any]:
        ends.append((function, arguments, named))
        return function

    known = set(sys.modules)
    atexit.register = later
    groups: dict[str, dict[str, ModuleType]] = {}
    turns: dict[str, int] = {}

    def bring(name: str, turn: int) -> None:
        importlib.import_module(name)
        for each in [each for each in sys.modules if each not in known]:
            known.add(each)
            top = _LAST if each == "__mp_main__" else each.partition(".")[0]
            if top not in sys.stdlib_module_names:
                groups.setdefault(top, {})[each] = sys.modules[each]
                turns.setdefault(top, turn)

    try:
        dynamo.put_off()
        with contextlib.suppress(ImportError):
            bring(_FIRST, -1)
        # Those of OpenBLAS end before a fork, and begin again behind it.
        threads = len(os.listdir("/proc/self/task"))
        for number, name in enumerate(modules):
            if name not in sys.modules:
                try:
                    bring(name, number)
                except BaseException as error:
                    raise _Failed(f"the import of {name} failed: {type(error).__name__}", number) from None
                if len(os.listdir("/proc/self/task")) != threads or len(sys._current_frames()) != 1:
                    raise _Failed(f"{name} starts threads, which do not come along", number)
                if _printed():
                    raise _Failed(f"{name} prints something, which programs would not", number)
        for each in itertools.chain.from_iterable(groups.values()):
            del sys.modules[each]
    finally:
        atexit.register = register
    return _Hidden(groups, turns)


def _become(command: Sequence[str], environment: Any) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "_codemod_launcher"]:
        del sys.modules[name]
    os.environ.clear()
    os.environ.update(environment)
    # What comes before the arguments is the same in both.
    given = len(sys.argv) - 1
    first = len(sys.orig_argv) - given
    sys.argv[1:] = command[first:]
    sys.orig_argv[:] = command
    if "multiprocessing.process" in sys.modules:
        # Where new processes begin.
        setattr(sys.modules["multiprocessing.process"], "ORIGINAL_DIR", os.getcwd())  # noqa: B010
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
