"""Calls back when a module is executed, whoever imports it and however it is found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Finder:
    """First in ``sys.meta_path``: lets the other finders find, and looks over the loader's shoulder."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Callable[[], None]]] = {}
        self.around: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {}
        self._finding: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if (name not in self.waiting and name not in self.around) or name in self._finding:
            return None
        self._finding.append(name)
        try:
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)
                spec: ModuleSpec | None = None if finder is self or find is None else find(name, path, target)
                if spec is not None:
                    self._watch(name, spec.loader)
                    return spec
        finally:
            self._finding.remove(name)
        return None

    def _watch(self, name: str, loader: Any) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            # The module keeps its real loader: inspect, pkgutil and importlib.resources ask it.
            del loader.exec_module
            begin, end = self.around.pop(name, (_nothing, _nothing))
            _call(begin)
            try:
                execute(module)
            finally:
                _call(end)
                self._leave()
            self.executed(name)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            # A loader that is a class or has slots serves many modules and cannot be watched from outside.
            return

    def executed(self, name: str) -> None:
        for callback in self.waiting.pop(name, ()):
            _call(callback)
        self._leave()

    def _leave(self) -> None:
        if not self.waiting and not self.around and self in sys.meta_path:
            sys.meta_path.remove(self)


_FINDER = _Finder()
_REPORTS: list[Callable[[Exception], None]] = []


def _nothing() -> None:
    """Nothing was asked for."""


def _call(callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception as error:
        for report in _REPORTS:
            report(error)


def when_imported(name: str, callback: Callable[[], None]) -> None:
    """Call ``callback`` once the module ``name`` has been executed: now if it already is, else right after it was.

    The module is then in ``sys.modules``, but not yet an attribute of its parent package.
    """
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        _call(callback)
        return
    _FINDER.waiting.setdefault(name, []).append(callback)
    _look()


def shown(name: str) -> None:
    """To be called for a module that was executed before anybody could see it, and is there now."""
    _FINDER.executed(name)


def around_import(name: str, begin: Callable[[], None], end: Callable[[], None]) -> None:
    """Call ``begin`` before the module ``name`` is executed and ``end`` after it, also after one that failed.

    Nothing is called for a module that is there already, nor for a second try.
    """
    if name not in sys.modules:
        _FINDER.around[name] = (begin, end)
        _look()


def _look() -> None:
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def behind(finder: Any) -> None:
    """Ask ``finder`` before all others but the one of this module, which looks over its shoulder."""
    sys.meta_path.insert(sys.meta_path[:1].count(_FINDER), finder)


def waiting() -> frozenset[str]:
    """The names of the modules that somebody waits for."""
    return frozenset(_FINDER.waiting)


def on_error(report: Callable[[Exception], None]) -> None:
    """Give what callbacks raise to ``report``; it never reaches whoever imports."""
    _REPORTS[:] = [report]


def forget() -> None:
    """Leave the import system as it was."""
    _FINDER.waiting.clear()
    _FINDER.around.clear()
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
